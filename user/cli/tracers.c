/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <time.h>

#include "../attach/ask.h"
#include "../base/clock.h"
#include "../base/process.h"
#include "../transport/packet.h"
#include "cli.h"
#include "tracers.h"

#define LOOK_NS	    (25 * NSEC_PER_MSEC) /* from one look for ports to the next */
/* for a broker's answer: leases have to be renewed meanwhile */
#define ASK_NS	    (300 * NSEC_PER_MSEC)
#define ROUND_BYTES (64u << 20)		  /* that are read before they are passed on */

/* ---- records, until their order is known ---- */

static bool tracers_make_room(struct tracers *t, u32 size)
{
	if (t->num == t->room) {
		const u32 room = t->room ? 2 * t->room : 1024;
		struct traced_record *more = realloc(t->record, room * sizeof(*more));

		if (!more)
			return false;
		t->record = more;
		t->room = room;
	}
	if (t->used + size > t->bytes_room) {
		const u64 room = 2 * (t->bytes_room + size);
		u8 *more = realloc(t->bytes, room);

		if (!more)
			return false;
		t->bytes = more;
		t->bytes_room = room;
	}
	return true;
}

/* A copy of a record that is a header and bytes of data; aligned as a struct xroce_record. */
static int tracers_put(struct traced *from, const struct xroce_record *head, const void *data,
		       u32 bytes)
{
	const u32 size = (u32)sizeof(*head) + bytes;
	struct tracers *t = from->all;

	if (!tracers_make_room(t, size + 8)) {
		t->err = -ENOMEM;
		return -ENOMEM;
	}
	memcpy(t->bytes + t->used, head, sizeof(*head));
	memcpy(t->bytes + t->used + sizeof(*head), data, bytes);
	t->record[t->num++] =
		(struct traced_record){ head->cqe.rx_time_ns, t->used, size, from };
	t->used += (size + 7) & ~7u;
	return 0;
}

/* Is it one of the QP and the peer that are wanted? XDP has not looked. */
static bool tracers_wants(const struct tracers *t, const struct xroce_told *told, const u8 *data)
{
	const struct rx_frame frame = { .data = data, .len = told->size };
	const bool event = told->kind == XROCE_RECORD_EVENT;
	struct packet p;

	if (!(t->want.what & (event ? XROCE_TRACE_EVENTS : XROCE_TRACE_SENT)) ||
	    (t->want.qpn && t->want.qpn != told->qpn))
		return false;
	if (event || !t->want.has_peer)
		return true;
	return packet_parse(&p, &frame) == XROCE_DROP_none && gid_equal(&p.dst, &t->want.peer);
}

/*
 * What a process told: size bytes, which it may have filled with anything. Each record that is
 * whole and of a kind that can be is taken; the first that is not ends it.
 */
static int tracers_take_tale(struct traced *from, const u8 *tale, u32 size)
{
	u32 at = sizeof(struct xroce_tale);
	struct xroce_told told;
	int err = 0;

	while (!err && at + sizeof(told) <= size) {
		const u8 *data = tale + at + sizeof(told);
		struct xroce_record head = { .len = 0 };

		memcpy(&told, tale + at, sizeof(told));
		at += (u32)(sizeof(told) + told.size + 7) & ~7u;
		if (at > size || told.kind < XROCE_RECORD_SENT || told.kind > XROCE_RECORD_EVENT ||
		    (told.kind == XROCE_RECORD_EVENT) != !told.size ||
		    told.size > PACKET_FRAME_MAX)
			break;
		if (!tracers_wants(from->all, &told, data))
			continue;
		head.cqe.rx_time_ns = told.time_ns;
		head.cqe.qpn = told.qpn;
		head.cqe.src_qpn = told.peer_qpn;
		head.kind = told.kind;
		head.drop = told.event;
		head.len = told.size;
		err = told.kind == XROCE_RECORD_EVENT ?
			      tracers_put(from, &head, &told, sizeof(told)) :
			      tracers_put(from, &head, data, told.size);
	}
	return err;
}

static int tracers_take(void *arg, const struct xroce_record *r, u32 size)
{
	struct traced *from = arg;
	const u32 bytes = size - (u32)sizeof(*r);
	const int err = r->kind == XROCE_RECORD_TALE ?
				tracers_take_tale(from, r->data, min_u32(bytes, r->len)) :
				tracers_put(from, r, r->data, bytes);

	return !err && from->all->used > ROUND_BYTES ? -ENOBUFS : err;
}

static int tracers_compare(const void *a, const void *b)
{
	const struct traced_record *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

/* ---- the ports ---- */

static struct traced *tracers_find(struct tracers *t, u32 prog_id)
{
	for (struct traced *p = t->first; p; p = p->next)
		if (p->prog_id == prog_id)
			return p;
	return NULL;
}

static void tracers_add(struct tracers *t, const struct netdev *dev, u32 prog_id, u32 pid,
			bool is_broker)
{
	struct traced *p = tracers_find(t, prog_id);
	int err;

	if (p)
		p->seen = true;
	if (p || !prog_id || (t->pid && (is_broker || t->pid != pid)))
		return;
	p = calloc(1, sizeof(*p));
	if (!p)
		return;
	*p = (struct traced){ .prog_id = prog_id, .ifindex = dev->ifindex, .pid = pid,
			      .is_broker = is_broker, .seen = true, .all = t };
	snprintf(p->iface, sizeof(p->iface), "%s", dev->name);
	process_name((pid_t)pid, p->command, sizeof(p->command));
	err = tracer_open(&p->tracer, prog_id, &t->want, tracers_take, p);
	if (err) {
		/* it may have ended just now */
		t->err = err == -ENOENT ? t->err : err;
		free(p);
		return;
	}
	p->next = t->first;
	t->first = p;
}

static void tracers_remove(struct tracers *t, struct traced *p)
{
	struct traced **at = &t->first;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	t->lost_before += tracer_lost(&p->tracer);
	t->interrupted += p->tracer.interrupted;
	tracer_close(&p->tracer);
	free(p);
}

/*
 * Each client of a broker has a program; what is nobody's the broker's own drops. One that does not
 * answer may have the clients that it had.
 */
static void tracers_look_at_broker(struct tracers *t, const struct netdev *dev)
{
	struct ask_client client;
	struct asker asker;
	int err;

	ask_init(&asker);
	asker.max_ns = ASK_NS;
	err = ask_connect(&asker, netdev_netns(), dev->ifindex);
	for (u32 n = 0; !err; n++) {
		err = ask_list(&asker, n, &client);
		if (!err)
			tracers_add(t, dev, client.prog_id, client.pid, false);
	}
	ask_close(&asker);
	if (err == -ENOENT)
		return;
	for (struct traced *p = t->first; p; p = p->next)
		p->seen |= p->ifindex == dev->ifindex;
}

static void tracers_look_at(struct tracers *t, const struct netdev *dev)
{
	struct xdp_hook hook;
	char comm[32];
	pid_t pid = 0;

	if (xdp_hook_query(dev->ifindex, &hook) || !hook.prog_id)
		return;
	if (hook.is_broker) {
		tracers_add(t, dev, hook.prog_id, 0, true);
		tracers_look_at_broker(t, dev);
	} else if (hook.ours_id) {
		if (netdev_holder(dev->ifindex, &pid, comm, sizeof(comm)))
			pid = 0;
		tracers_add(t, dev, hook.ours_id, (u32)pid, false);
	}
}

static int tracers_look(struct tracers *t)
{
	struct netdev one, *list = NULL;
	int n = t->dev ? netdev_find(t->dev, &one) : netdev_list(&list);

	if (n < 0)
		return n == -ENODEV && t->first ? 0 : n;
	for (struct traced *p = t->first; p; p = p->next)
		p->seen = false;
	if (t->dev)
		tracers_look_at(t, &one);
	for (int i = 0; !t->dev && i < n; i++)
		tracers_look_at(t, &list[i]);
	free(list);
	return 0;
}

/* Those that have ended, after their last records have been read. */
static void tracers_sweep(struct tracers *t)
{
	for (struct traced *p = t->first, *next; p; p = next) {
		next = p->next;
		if (!p->seen)
			tracers_remove(t, p);
	}
}

void tracers_begin(struct tracers *t, const struct tracer_want *want, const char *dev, u32 pid)
{
	*t = (struct tracers){ .want = *want, .dev = dev, .pid = pid };
}

int tracers_round(struct tracers *t, traced_fn *fn, void *arg)
{
	const u64 now_ns = clock_now_ns();
	const bool looks = now_ns >= t->look_ns;
	int err = 0, n;

	if (looks) {
		t->look_ns = now_ns + LOOK_NS;
		err = tracers_look(t);
	}
	if (err)
		return err;
	t->num = 0;
	t->used = 0;
	for (struct traced *p = t->first; p; p = p->next) {
		if (t->look_ns != NSEC_NEVER)
			tracer_renew(&p->tracer);
		tracer_read(&p->tracer);
	}
	qsort(t->record, t->num, sizeof(*t->record), tracers_compare);
	for (u32 i = 0; i < t->num; i++)
		fn(arg, t->record[i].from, (struct xroce_record *)(t->bytes + t->record[i].at),
		   t->record[i].size);
	n = (int)t->num;
	if (looks)
		tracers_sweep(t);
	return t->err == -ENOMEM ? -ENOMEM : n;
}

u32 tracers_num(const struct tracers *t)
{
	u32 n = 0;

	for (const struct traced *p = t->first; p; p = p->next)
		n++;
	return n;
}

u64 tracers_lost(const struct tracers *t)
{
	u64 lost = t->lost_before;

	for (const struct traced *p = t->first; p; p = p->next)
		lost += tracer_lost(&p->tracer);
	return lost;
}

void tracers_stop(struct tracers *t)
{
	t->look_ns = NSEC_NEVER;
	for (struct traced *p = t->first; p; p = p->next)
		tracer_stop(&p->tracer);
}

void tracers_end(struct tracers *t)
{
	while (t->first)
		tracers_remove(t, t->first);
	free(t->record);
	free(t->bytes);
	t->record = NULL;
	t->bytes = NULL;
}

/* ---- what the commands have in common ---- */

s64 tracers_real_ns(void)
{
	struct timespec real;
	const u64 now_ns = clock_now_ns();

	clock_gettime(CLOCK_REALTIME, &real);
	return (s64)((u64)real.tv_sec * NSEC_PER_SEC + (u64)real.tv_nsec - now_ns);
}

bool tracers_number(const char *text, u64 max, u64 *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	return !errno && end != text && !*end && *out && *out <= max && *text != '-';
}

bool tracers_direction(const char *text, u32 *what)
{
	const bool in = !strcmp(text, "in"), out = !strcmp(text, "out");

	*what = in ? XROCE_TRACE_RECEIVED | XROCE_TRACE_DROPPED : XROCE_TRACE_SENT;
	return in || out;
}
