/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A tracer of one program (tracer_); the tracers of all programs on some interfaces (tracers_). */
#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "../../os/kernel.h"
#include "../../os/privilege.h"
#include "../cli.h"
#include "../counters.h"
#include "../output.h"
#include "tracer.h"

#define TRACERS_LONGEST_NS ((1ull << 30) * NSEC_PER_SEC) /* of --duration */

#define LOOK_NS	    (25 * NSEC_PER_MSEC) /* between two searches for ports */
/* Limit of a broker's answer while this process has leases to renew. */
#define ASK_NS	    (300 * NSEC_PER_MSEC)
/* pause after a broker exceeded ASK_NS, if a port is traced; else LOOK_NS */
#define SILENT_NS   (2 * NSEC_PER_SEC)
#define ROUND_BYTES (64u << 20)		  /* limit over all ports of a round */

static const struct tracer tracer_none = { .slot = { .rings_fd = -1, .number = XROCE_TRACERS },
					   .page_fd = -1,
					   .ring_fd = -1 };

static struct ask_trace tracer_wants(const struct tracer *t)
{
	struct ask_trace want = { .qpn = t->want.qpn,
				  .bytes = t->want.bytes,
				  .ring_bytes = t->want.ring_bytes,
				  .what = (u8)t->want.what,
				  .has_peer = t->want.has_peer };

	memcpy(want.peer, t->want.peer.raw, sizeof(want.peer));
	return want;
}

static int tracer_record(void *arg, void *data, size_t size)
{
	struct tracer *t = arg;

	if (size < sizeof(struct xroce_record) || size > UINT32_MAX)
		return 0;
	if (t->copy)
		data = memcpy(t->copy, data, size);
	return t->fn(t->arg, data, (u32)size);
}

static int tracer_map_ring(struct tracer *t)
{
	bool is_file;
	const u32 bytes = observe_ring_bytes(t->ring_fd, &is_file);

	if (!bytes)
		return -EPROTO;
	t->copy = is_file ? malloc(bytes) : NULL;
	if (is_file && !t->copy)
		return -ENOMEM;
	return kernel_ring_open(t->ring_fd, bytes, tracer_record, t, &t->ring);
}

/* ---- one program: as root, without a broker ---- */

static int tracer_take(struct tracer *t)
{
	return trace_slot_take(&t->slot, (u32)getpid(), false, XROCE_TRACE_LEASE);
}

static int tracer_begin(struct tracer *t)
{
	const struct ask_trace want = tracer_wants(t);

	return trace_slot_begin(&t->slot, &want, t->ring_fd, XROCE_TRACE_LEASE);
}

int tracer_open(struct tracer *t, u32 prog_id, const struct tracer_want *want, tracer_fn *fn,
		void *arg)
{
	int err;

	*t = tracer_none;
	t->want = *want;
	t->fn = fn;
	t->arg = arg;
	t->prog_id = prog_id;
	err = trace_slot_find(&t->slot, prog_id);
	if (!err) {
		t->ring_fd = trace_slot_make_ring(want->ring_bytes);
		err = t->ring_fd < 0 ? t->ring_fd : 0;
	}
	if (!err)
		err = tracer_map_ring(t);
	if (!err)
		err = tracer_take(t);
	if (!err)
		err = tracer_begin(t);
	if (err)
		tracer_close(t);
	return err;
}

/* ---- one program: through the broker ---- */

int tracer_ask(struct tracer *t, struct asker *asker, u32 number, u32 prog_id,
	       const struct tracer_want *want, tracer_fn *fn, void *arg)
{
	struct ask_traced traced;
	struct ask_trace wanted;
	int fds[ASK_TRACE_FDS], err;

	*t = tracer_none;
	t->want = *want;
	t->fn = fn;
	t->arg = arg;
	wanted = tracer_wants(t);
	err = ask_trace(asker, number, &wanted, &traced, fds);
	if (err)
		return err;
	t->asker = asker;
	t->prog_id = traced.client.prog_id;
	t->number = traced.place;
	t->lost = t->lost_before = traced.lost;
	t->ring_fd = fds[ASK_TRACE_RING];
	t->page_fd = fds[ASK_TRACE_PAGE];
	/* the list of clients may have changed since it was read */
	err = t->prog_id == prog_id ? tracer_map_ring(t) : -ENOENT;
	if (err)
		tracer_close(t);
	return err;
}

/* ---- one program: both ---- */

bool tracer_renew(struct tracer *t)
{
	const bool was_out = t->is_out;

	if (t->page_fd >= 0 || !t->slot.trace ||
	    likely(trace_slot_renew(&t->slot, XROCE_TRACE_LEASE)))
		return false;
	/* the lease expired, so another tracer may have taken the slot */
	if (!trace_slot_is_ours(&t->slot)) {
		t->lost_before = 0;
		t->lost_elsewhere += t->lost;
		t->lost = 0;
		t->is_out = tracer_take(t) != 0;
	}
	if (!t->is_out)
		tracer_begin(t);
	return !was_out;
}

bool tracer_read(struct tracer *t)
{
	const bool is_whole = kernel_ring_consume(t->ring) >= 0;

	if (t->asker)
		observe_trace_lost(t->page_fd, t->number, &t->lost);
	else if (trace_slot_is_ours(&t->slot))
		t->lost = trace_slot_lost(&t->slot);
	return is_whole;
}

u64 tracer_lost(const struct tracer *t)
{
	return t->lost_elsewhere + t->lost - t->lost_before;
}

void tracer_stop(struct tracer *t)
{
	u64 lost;

	if (t->asker) {
		ask_untrace(t->asker, t->prog_id, &t->lost);
	} else if (trace_slot_is_ours(&t->slot)) {
		/* what a process has reported to its broker is passed on before */
		if (t->broker)
			ask_untrace(t->broker, t->prog_id, &lost);
		t->lost = trace_slot_leave(&t->slot);
	}
	t->asker = t->broker = NULL;
}

void tracer_close(struct tracer *t)
{
	tracer_stop(t);
	trace_slot_leave(&t->slot);
	if (t->ring)
		kernel_ring_close(t->ring);
	free(t->copy);
	if (t->ring_fd >= 0)
		close(t->ring_fd);
	if (t->page_fd >= 0)
		close(t->page_fd);
	*t = tracer_none;
}

/* ---- all programs: records ---- */

static int tracers_put(struct traced *from, const struct xroce_record *head, const void *data,
		       u32 bytes)
{
	struct tracers *t = from->all;
	int err = records_put(&t->records, from, head, data, bytes);

	t->no_memory |= err != 0;
	return err;
}

/* Returns whether the entry matches the wanted QP and peer, which XDP did not check. */
static bool tracers_wants(const struct tracers *t, const struct xroce_trace_entry *entry,
			  const u8 *data)
{
	const struct rx_frame frame = { .data = data, .len = entry->size };
	const bool event = entry->kind == XROCE_RECORD_EVENT;
	struct packet p;

	if (!(t->want.what & (event ? XROCE_TRACE_EVENTS : XROCE_TRACE_SENT)) ||
	    (t->want.qpn && t->want.qpn != entry->qpn))
		return false;
	if (event || !t->want.has_peer)
		return true;
	return packet_parse(&p, &frame) == XROCE_DROP_none && gid_equal(&p.dst, &t->want.peer);
}

/* Takes the records of a batch that a process wrote at time_ns. */
static int tracers_take_tale(struct traced *from, u64 time_ns, const u8 *bytes, u32 size)
{
	struct xroce_trace_entry entry;
	struct trace_record record;
	const u8 *data;
	int err = 0;

	trace_record_begin(&record, bytes, size);
	while (!err && trace_record_next(&record, &entry, &data)) {
		const struct xroce_record head = { .cqe = { .rx_time_ns = time_ns,
							    .qpn = entry.qpn,
							    .src_qpn = entry.peer_qpn },
						   .kind = entry.kind,
						   .drop = entry.event,
						   .len = entry.size };

		if (!tracers_wants(from->all, &entry, data))
			continue;
		err = entry.kind == XROCE_RECORD_EVENT ?
			      tracers_put(from, &head, &entry, sizeof(entry)) :
			      tracers_put(from, &head, data, entry.size);
	}
	return err;
}

static int tracers_take(void *arg, const struct xroce_record *r, u32 size)
{
	struct traced *from = arg;
	const u32 bytes = size - (u32)sizeof(*r);
	int err = 0;

	/* the latest time, as a process's reports may come in any order */
	from->last_ns = max_u64(from->last_ns, r->cqe.rx_time_ns);
	from->read_bytes += size;
	/* XDP writes received and dropped packets; the process's batches contain the other kinds */
	switch (r->kind) {
	case XROCE_RECORD_RECEIVED:
	case XROCE_RECORD_DROPPED:
		err = tracers_put(from, r, r->data, bytes);
		break;
	case XROCE_RECORD_TRACE:
		err = tracers_take_tale(from, r->cqe.rx_time_ns, r->data,
					min_u32(bytes, r->len));
		break;
	}
	return !err && from->read_bytes > from->all->round_bytes ? -ENOBUFS : err;
}

/* ---- all programs: their ports ---- */

static struct traced *tracers_find(struct tracers *t, u32 prog_id)
{
	for (struct traced *p = t->first; p; p = p->next)
		if (p->prog_id == prog_id && !p->has_ended)
			return p;
	return NULL;
}

static int tracers_open(struct tracers *t, struct traced *p, const struct observed *o)
{
	int err;

	/* a process at a broker with UDP sockets has no program */
	if (!t->asks && !(p->prog_id & ASK_NO_PROGRAM)) {
		err = tracer_open(&p->tracer, p->prog_id, &t->want, tracers_take, p);
		p->tracer.broker = !err && o->iface->asks ? o->iface->asker : NULL;
		/* a user namespace or a filter refuses bpf(2) despite CAP_SYS_ADMIN */
		if (err != -EPERM || !o->iface->asks)
			return err;
	}
	return tracer_ask(&p->tracer, o->iface->asker, o->client, p->prog_id, &t->want,
			  tracers_take, p);
}

/* Reads the counters at the start of the trace. */
static void tracers_count_before(struct traced *p, struct observed *o)
{
	struct snapshot s;

	if (p->is_broker || observed_open(o))
		return;
	if (!snapshot_read(&s, o, SNAPSHOT_COUNTERS)) {
		p->received = s.sums.engine.rx_packets;
		p->sent = s.sums.engine.tx_packets;
	}
	snapshot_end(&s);
	observed_close(o);
}

static void tracers_add(struct tracers *t, struct observed *o)
{
	struct traced *p = tracers_find(t, o->prog_id);
	const bool is_broker = o->kind == OBSERVED_BROKER;
	int err;

	if (p) {
		p->seen = true;
		snprintf(p->iface, sizeof(p->iface), "%s", o->iface->name);
	}
	if (p || !o->prog_id || (t->pid && (is_broker || t->pid != o->pid)))
		return;
	p = calloc(1, sizeof(*p));
	if (!p)
		return;
	*p = (struct traced){ .prog_id = o->prog_id, .ifindex = o->iface->ifindex,
			      .pid = is_broker ? 0 : o->pid, .is_broker = is_broker, .seen = true,
			      .all = t };
	snprintf(p->iface, sizeof(p->iface), "%s", o->iface->name);
	snprintf(p->command, sizeof(p->command), "%s", o->command);
	err = tracers_open(t, p, o);
	if (err) {
		/* the process or its broker may have just exited */
		t->err = err == -ENOENT || ask_is_over(err) ? t->err : err;
		free(p);
		return;
	}
	tracers_count_before(p, o);
	p->next = t->first;
	t->first = p;
}

static void tracers_remove(struct tracers *t, struct traced *p)
{
	struct traced **at = &t->first;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	tracer_close(&p->tracer);
	free(p);
}

/* Stops the tracer of p; records already written are still read. */
static void tracers_leave(struct tracers *t, struct traced *p)
{
	tracer_stop(&p->tracer);
	t->lost_before += tracer_lost(&p->tracer);
	p->has_ended = true;
}

/* Reports a broker that has been silent for as long as the other commands wait. */
static void tracers_look_at_silence(struct tracers *t, bool is_silent)
{
	const u64 now_ns = clock_now_ns();

	if (!is_silent)
		t->silent_ns = 0;
	else if (!t->silent_ns)
		t->silent_ns = now_ns - t->observer.ask_ns;
	if (is_silent && now_ns - t->silent_ns >= OBSERVE_ASK_NS)
		t->err = -ETIMEDOUT;
}

/*
 * Adds new ports. A silent broker's ports count as seen, unless the broker granted their tracers.
 * Reports -EPERM if this user may see no port of any interface.
 */
static void tracers_look_at(struct tracers *t)
{
	const struct observer *o = &t->observer;
	bool any = false, hidden = false, is_silent = false;

	t->err = 0;
	t->is_partial = false;
	for (u32 i = 0; i < o->num_ifaces; i++) {
		const struct observed_iface *iface = &o->ifaces[i];
		const bool silent = iface->broker_prog_id && !iface->asks && !t->asks;

		any |= iface->asks;
		hidden |= iface->is_hidden;
		t->is_partial |= iface->is_partial;
		is_silent |= iface->is_silent;
		for (struct traced *p = t->first; p; p = p->next)
			p->seen |= p->ifindex == iface->ifindex && silent;
	}
	tracers_look_at_silence(t, is_silent);
	for (const struct traced *p = t->first; p; p = p->next)
		t->err = p->tracer.is_out ? -EBUSY : t->err;
	for (u32 i = 0; i < o->num; i++)
		tracers_add(t, &o->ports[i]);
	if (hidden && !any && !t->first)
		t->err = -EPERM;
}

static int tracers_look(struct tracers *t)
{
	int err = t->observer.ifaces ? observer_follow(&t->observer, t->dev) :
				       observer_begin(&t->observer, t->dev);

	if (err)
		return err == -ENODEV && t->first ? 0 : err;
	t->observer.ask_ns = t->asks ? ASK_MAX_NS : ASK_NS;
	t->observer.silent_ns = t->first ? SILENT_NS : LOOK_NS;
	for (struct traced *p = t->first; p; p = p->next)
		p->seen = false;
	observer_list(&t->observer);
	tracers_look_at(t);
	return 0;
}

/* Stops tracers of processes that exited, and frees them once their records are delivered. */
static void tracers_sweep(struct tracers *t, u64 given_ns)
{
	for (struct traced *p = t->first, *next; p; p = next) {
		next = p->next;
		if (!p->has_ended && !p->seen)
			tracers_leave(t, p);
		else if (p->has_ended && p->read_ns == NSEC_NEVER && p->last_ns < given_ns)
			tracers_remove(t, p);
	}
}

void tracers_begin(struct tracers *t, const struct tracer_want *want, const char *dev, u32 pid)
{
	*t = (struct tracers){ .want = *want, .dev = dev, .pid = pid,
			       .asks = !privilege_has(privilege_caps(), CAP_SYS_ADMIN) };
}

/*
 * Reads all ports. Returns the time up to which all records were read; the slowest port limits it.
 */
static u64 tracers_read(struct tracers *t, u64 now_ns)
{
	const bool is_stopped = t->look_ns == NSEC_NEVER;
	bool interrupted = false;
	u64 all_ns = NSEC_NEVER;

	t->round_bytes = ROUND_BYTES / (1 + tracers_num(t));
	for (struct traced *p = t->first; p; p = p->next) {
		if (!is_stopped && !p->has_ended)
			interrupted |= tracer_renew(&p->tracer);
		p->read_bytes = 0;
		if (!tracer_read(&p->tracer))
			p->read_ns = p->last_ns - RECORDS_WINDOW_NS;
		else
			p->read_ns = is_stopped || p->has_ended ? NSEC_NEVER :
								  now_ns - RECORDS_WINDOW_NS;
		all_ns = min_u64(all_ns, p->read_ns);
	}
	t->interrupted += interrupted;
	return all_ns;
}

int tracers_round(struct tracers *t, traced_fn *fn, void *arg)
{
	const u64 now_ns = clock_now_ns();
	const bool looks = now_ns >= t->look_ns;
	u64 given_ns;
	int err = 0, n;

	if (looks) {
		t->look_ns = now_ns + LOOK_NS;
		err = tracers_look(t);
	}
	if (err)
		return err;
	given_ns = tracers_read(t, now_ns);
	n = (int)records_give(&t->records, given_ns, fn, arg);
	if (looks)
		tracers_sweep(t, given_ns);
	return t->no_memory ? -ENOMEM : n;
}

u32 tracers_num(const struct tracers *t)
{
	u32 n = 0;

	for (const struct traced *p = t->first; p; p = p->next)
		n += !p->has_ended;
	return n;
}

u64 tracers_lost(const struct tracers *t)
{
	u64 lost = t->lost_before;

	for (const struct traced *p = t->first; p; p = p->next)
		if (!p->has_ended)
			lost += tracer_lost(&p->tracer);
	return lost;
}

void tracers_stop(struct tracers *t)
{
	t->look_ns = NSEC_NEVER;
	for (struct traced *p = t->first; p; p = p->next)
		if (!p->has_ended)
			tracer_stop(&p->tracer);
}

bool tracers_are_read(const struct tracers *t)
{
	for (const struct traced *p = t->first; p; p = p->next)
		if (p->read_ns != NSEC_NEVER)
			return false;
	return t->look_ns == NSEC_NEVER;
}

void tracers_end(struct tracers *t)
{
	t->late = t->records.late;
	records_free(&t->records);
	for (struct traced *p = t->first; p; p = t->first) {
		if (!p->has_ended)
			tracers_leave(t, p);
		tracers_remove(t, p);
	}
	observer_end(&t->observer);
}

/* ---- shared by the commands ---- */

static void tracers_say_error(struct tracers *t, const char *command, int err)
{
	const char *why = strerror(-err), *what = "";

	t->told = err;
	if (err == -EPERM || err == -EACCES)
		what = "; run as root, or use a broker (xroce serve) to trace the user's own "
		       "processes";
	else if (err == -EBUSY)
		why = "all trace slots of the process are in use";
	else if (err == -EDQUOT)
		why = "the broker's limit of rings for this user is reached";
	else if (err == -ETIMEDOUT)
		why = "the broker does not answer";
	terminal_say(NULL);
	fprintf(stderr, "xroce %s: cannot trace a process: %s%s\n", command, why, what);
}

void tracers_complain(struct tracers *t, const char *command)
{
	if (!t->err && !t->first && !t->silent_ns && !t->told_waits) {
		t->told_waits = true;
		fprintf(stderr, "xroce %s: no process%s uses %s yet; waiting\n", command,
			t->is_partial ? " of this user" : "", t->dev ? t->dev : "an interface");
	}
	if (t->err && t->err != t->told)
		tracers_say_error(t, command, t->err);
}

void tracers_say_end(struct tracers *t, const char *command)
{
	if (t->silent_ns && t->told != -ETIMEDOUT)
		tracers_say_error(t, command, -ETIMEDOUT);
	if (t->late)
		fprintf(stderr,
			"xroce %s: %llu packets were written out of order because they arrived "
			"late\n",
			command, (unsigned long long)t->late);
	if (t->interrupted)
		fprintf(stderr,
			"xroce %s: the command was stopped %llu times for longer than %llu s; "
			"packets of that time are neither recorded nor counted\n",
			command, (unsigned long long)t->interrupted,
			XROCE_TRACE_LEASE / NSEC_PER_SEC);
}

s64 tracers_real_ns(void)
{
	struct timespec real;
	const u64 now_ns = clock_now_ns();

	clock_gettime(CLOCK_REALTIME, &real);
	return (s64)((u64)real.tv_sec * NSEC_PER_SEC + (u64)real.tv_nsec - now_ns);
}

static bool tracers_direction(const char *text, u32 *what)
{
	const bool in = !strcmp(text, "in"), out = !strcmp(text, "out");

	*what = in ? XROCE_TRACE_RECEIVED | XROCE_TRACE_DROPPED : XROCE_TRACE_SENT;
	return in || out;
}

bool tracers_option(struct tracer_want *want, u32 *pid, u64 *until_ns, int id, const char *value)
{
	bool good = false;

	switch (id) {
	case 'q': good = cli_number32(value, 1, ROCE_QPN_MASK, &want->qpn); break;
	case 'p': good = cli_number32(value, 1, INT_MAX, pid); break;
	case 'Q': good = tracers_direction(value, &want->what); break;
	case 'D':
		good = cli_seconds(value, NSEC_PER_MSEC, TRACERS_LONGEST_NS, until_ns);
		*until_ns += clock_now_ns();
		break;
	}
	return good;
}
