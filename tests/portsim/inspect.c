/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks into the ports of the simulated machine, and changes nothing; see inspect.h. */
#include "inspect.h"

#include <string.h>

#include "../../user/port/port_object.h"
#include "../../user/engine/internal.h"

#define SHARDS (2 * XROCE_MAX_SHARD)
/* user/run: the longest tick; the most a deadline may be late where threads sleep */
#define TICK_NS	 NSEC_PER_MSEC
#define SLACK_NS NSEC_PER_MSEC
/* the duration of a wake-up */
#define WAKE_NS	 (100 * NSEC_PER_USEC)
/* work without an owner is found by the second tick, and done then */
#define LATE_NS	 (3 * NSEC_PER_MSEC)

static struct app_thread *const *threads;
static u32 num_threads;
/* since when each shard has had work that no thread did, without any change */
static struct undone {
	u64 since_ns, done;
} undone[SHARDS];
static u32 quiet;

void inspect_begin(struct app_thread *const *t, u32 n)
{
	threads = t;
	num_threads = n;
	memset(undone, 0, sizeof(undone));
	quiet = 0;
}

/* ---- sleeping threads and their descriptors ---- */

/* Sets *busy if a thread is in the middle of an operation: intermediate states prove nothing. */
static void find_busy(struct actor *a, void *busy)
{
	static const char *const at_rest[] = { "ppoll", "computes", "packet", "join", "settle" };

	for (u32 i = 0; i < ARRAY_SIZE(at_rest); i++)
		if (strcmp(sched_what(a), at_rest[i]) == 0)
			return;
	*(bool *)busy = true;
}

struct waiting {
	int fd;
	u64 first_ns; /* when the first waiter for fd will run */
	u32 num;
};

static void find_waiting(struct actor *a, void *arg)
{
	struct waiting *l = arg;
	u32 n;
	const struct pollfd *p = machine_waits_for(a, &n);

	for (u32 i = 0; p && i < n; i++)
		if (p[i].fd == l->fd) {
			l->num++;
			l->first_ns = min_u64(l->first_ns, sched_until_ns(a));
			return;
		}
}

static struct waiting waiting_for(int fd)
{
	struct waiting l = { fd, NSEC_NEVER, 0 };

	sched_each(find_waiting, &l);
	return l;
}

/* ---- a shard ---- */

/* Returns whether other shards have handed frames over that this one has not taken. */
static bool has_handed(const struct shards *all, const struct shard *s)
{
	for (u32 i = 0; i < all->num; i++) {
		const struct handover_ring *r = &all->shard[i].handover.to[s->number];

		if (r->size && r->put != r->used)
			return true;
	}
	return false;
}

static u32 unread(const struct shard *s, const struct nic *n)
{
	u32 count = 0;

	for (u32 i = 0; i < s->io->xsks.count; i++)
		count += nic_unread(n, xsk_queue(&s->io->xsks, i));
	return count;
}

/* Returns whether the shard has work now; `what` is set to its description. */
static bool is_due(const struct shards *all, const struct shard *s, const struct nic *n, u64 now_ns,
		   const char **what)
{
	*what = unread(s, n)					 ? "packets in its rings" :
		has_handed(all, s)				 ? "frames of other shards" :
		!s->blocked_ns && engine_has_doorbells(s->engine) ? "doorbells" :
		!s->blocked_ns && !defer_has_acks(&s->defer) &&
				s->engine->ready_head != s->engine->ready_tail ?
								   "something to send" :
		shard_deadline_ns(s) <= now_ns			 ? "a deadline that has passed" :
								   NULL;
	return *what;
}

/* Checks that the due work (NULL: none) is done soon. */
static void check_age(struct undone *before, const struct shard *s, const char *what, u64 now_ns)
{
	struct undone u = { .since_ns = now_ns };

	for (u32 i = 0; i < s->io->xsks.count; i++)
		u.done += s->io->xsks.xsk[i].taken;
	/* whatever an engine does it counts */
	for (u32 i = 0; i < sizeof(*s->io->stats) / sizeof(u64); i++)
		u.done += ((const u64 *)s->io->stats)[i];
	if (what && before->since_ns && before->done == u.done) {
		if (now_ns - before->since_ns > LATE_NS)
			sched_fail("shard %u: %s since %llu", s->number, what,
				   (unsigned long long)before->since_ns);
		return;
	}
	*before = what ? u : (struct undone){ 0 };
}

/* Checks that a thread looks at the shard in time: its own, or a sleeper on its sockets. */
static void check_shard(struct shards *all, u32 number, u32 i, u64 now_ns)
{
	const struct shard *s = &all->shard[i];
	const struct nic *n = nic_get(number);
	const struct waiting control = waiting_for(s->worker.control_fd);
	struct undone *before = &undone[number * XROCE_MAX_SHARD + i];
	u64 wake_ns = control.first_ns, due_ns;
	const char *what;
	const bool due = is_due(all, s, n, now_ns, &what);

	if (!control.num && s->worker.started && !s->worker.stop)
		return; /* it is about to run */
	for (u32 q = 0; q < s->io->xsks.count; q++) {
		const u32 queue = xsk_queue(&s->io->xsks, q);
		const struct waiting socket = waiting_for(s->io->xsks.xsk[q].fd);
		const struct xroce_vector *v = &all->maps->vector[queue];

		wake_ns = min_u64(wake_ns, socket.first_ns);
		if (v->watched != s->worker.sleepers)
			sched_fail("queue %u of %s is watched by %u, and %u sleep", queue,
				   nic_name(number), v->watched, s->worker.sleepers);
		/* for the next packet; a ring buffer does not wake a thread that only polls it */
		if (!(xsk_is_ring(&s->io->xsks) ? v->watched : socket.num) && !v->asleep &&
		    control.first_ns > now_ns + TICK_NS + WAKE_NS &&
		    !ring_has_records(xdp_ring(s->io->ring_fd)))
			sched_fail("shard %u of %s: nobody would be woken for a packet", i,
				   nic_name(number));
	}
	due_ns = due ? now_ns : shard_deadline_ns(s);
	if (due_ns != NSEC_NEVER && wake_ns > max_u64(due_ns, now_ns) + TICK_NS + SLACK_NS)
		sched_fail("shard %u of %s: %s, due at %llu, is nobody's before %llu", i,
			   nic_name(number), due ? what : "a deadline", (unsigned long long)due_ns,
			   (unsigned long long)wake_ns);
	check_age(before, s, due ? what : NULL, now_ns);
}

/* ---- CQs ---- */

/* Returns whether the thread waits for its channel, and not, with an event, for a packet. */
static bool sleeps_on(const struct app_thread *t)
{
	const int fd = port_channel_fd(t->channel->pc);
	const struct pollfd *p = NULL;
	u32 n;

	if (t->waiting && sched_is_blocked(t->actor))
		p = machine_waits_for(t->actor, &n);
	return p && p[0].fd == fd;
}

/* Returns whether a worker serves CQs whose channels have no ring. */
static bool threads_have_records(const struct port *port)
{
	bool any = false;

	for (u32 i = 0; i < port->shards.num; i++)
		any |= ring_has_records(xdp_ring(port->shards.shard[i].io->ring_fd)) ||
		       port->shards.shard[i].worker.records;
	return any;
}

static void check_cq(struct app_cq *cq, void *arg)
{
	const struct cq_notify *notify = &cq->port->shards.cq_notify;
	const u32 index = cq->cq.index, word = notify->maps->cq[index].armed;
	struct app_channel *ch = cq->channel;
	bool record;

	if (!ch)
		return;
	record = ch->pc->ring ? ring_has_records(xdp_ring(ch->pc->ring_fd)) || ch->pc->records :
				threads_have_records(cq->port);
	/* XDP has the arm word, or a record that it took the word */
	if (cq->cq.armed && !word && !record)
		sched_fail("CQ %u is armed, and XDP does not know", index);
	if (!sleeps_on(cq->thread))
		return;
	if (ch->head && !ch->raised)
		sched_fail("CQ %u has an event, and its channel is not readable", index);
	if (ch->head || record)
		return;
	if (!cq_empty(&cq->cq))
		sched_fail("%s sleeps, and CQ %u has completions (%sarmed)", cq->thread->name,
			   index, cq->cq.armed ? "" : "not ");
	if (!cq->cq.armed && cq->outstanding)
		sched_fail("%s sleeps, and the event of CQ %u is lost", cq->thread->name, index);
}

/* ---- frames ---- */

/* Checks that each frame has one owner, and that the kernel has the frames it owns. */
static void check_frames(const struct shard *s, const struct nic *n, bool at_end)
{
	const struct umem *u = &s->io->umem;
	const struct xsk_set *set = &s->io->xsks;
	u32 owners[4] = { 0 };
	static u8 is_free[2048], kernel[2048];

	memset(is_free, 0, u->rx_frames);
	memset(kernel, 0, sizeof(kernel));
	for (u32 q = 0; q < set->count && !xsk_is_ring(set); q++)
		nic_count_frames(n, xsk_queue(set, q), kernel);
	for (u32 i = 0; i < u->rx_free_count; i++) {
		sim_check(u->rx_free[i] < u->rx_frames);
		if (is_free[u->rx_free[i]]++)
			sched_fail("frame %u is free twice", u->rx_free[i]);
	}
	for (u32 i = 0; i < u->rx_frames; i++) {
		owners[u->rx_owner[i]]++;
		if ((u->rx_owner[i] == UMEM_FREE) != is_free[i])
			sched_fail("frame %u is %sin the list of the free", i,
				   is_free[i] ? "" : "not ");
		if ((u->rx_owner[i] == UMEM_FILL) != kernel[i])
			sched_fail("frame %u is the kernel's %u times, and %u here", i, kernel[i],
				   u->rx_owner[i]);
	}
	sim_check(owners[UMEM_FREE] == u->rx_free_count);
	if (at_end && owners[UMEM_HELD])
		sched_fail("%u frames were never given back", owners[UMEM_HELD]);
	memset(is_free, 0, u->tx_slots);
	memset(owners, 0, sizeof(owners));
	for (u32 i = 0; i < u->tx_free_count; i++)
		if (is_free[u->tx_free[i]]++)
			sched_fail("slot %u is free twice", u->tx_free[i]);
	for (u32 i = 0; i < u->tx_slots; i++)
		owners[u->tx_owner[i]]++;
	sim_check(owners[UMEM_FREE] == u->tx_free_count);
	sim_check(owners[UMEM_KERNEL] == u->tx_kernel_count);
	if (at_end && owners[UMEM_HELD])
		sched_fail("%u transmit slots were never given back", owners[UMEM_HELD]);
}

void inspect_idle(u64 now_ns, u64 next_ns)
{
	bool busy = false;

	sched_each(find_busy, &busy);
	if (busy || !num_threads)
		return;
	quiet++;
	for (u32 i = 0; i < NICS; i++) {
		struct shards *all = nic_get(i) ? &app_port(i)->shards : NULL;

		for (u32 k = 0; all && k < all->num; k++) {
			check_shard(all, i, k, now_ns);
			if (quiet % 64 == 0)
				check_frames(&all->shard[k], nic_get(i), false);
		}
	}
	app_each_cq(check_cq, NULL);
}

/* Checks that each arming had its event once a completion was pushed after it. */
static void check_owed(struct app_cq *cq, void *arg)
{
	if (cq->channel && cq->events < cq->owed)
		sched_fail("CQ %u has had %u events of %u armings at least", cq->cq.index,
			   cq->events, cq->owed);
}

/* Reasons for which our own packets may be dropped: they were early, duplicate or late. */
static u64 expected_drops(const struct xroce_drops *d)
{
	return d->psn_ahead + d->psn_duplicate + d->unexpected_response + d->qp_unknown;
}

void inspect_end(struct port *port, u32 number)
{
	const struct shards *all = &port->shards;
	const struct nic *n = nic_get(number);

	app_each_cq(check_owed, NULL);
	for (u32 i = 0; i < all->num; i++) {
		const struct shard *s = &all->shard[i];
		const __u64 *reason = (const __u64 *)s->io->drops;
		u64 dropped = 0;
		const char *what;

		if (is_due(all, s, n, 0, &what))
			sched_fail("shard %u of %s: %s at the end", i, nic_name(number), what);
		if (s->handover.lent)
			sched_fail("shard %u of %s: %u frames are lent at the end", i,
				   nic_name(number), s->handover.lent);
		check_frames(s, n, true);
		for (u32 k = 0; k < XROCE_DROP_COUNT; k++)
			dropped += reason[k];
		if (dropped != expected_drops(s->io->drops))
			sched_fail("shard %u of %s dropped packets that nobody has damaged "
				   "(ICRC %llu, descriptor %llu)", i, nic_name(number),
				   (unsigned long long)s->io->drops->icrc,
				   (unsigned long long)s->io->drops->descriptor);
	}
}
