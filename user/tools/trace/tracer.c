/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "tracer.h"

static const struct tracer tracer_none = {
	.place = { .rings_fd = -1, .number = XROCE_TRACERS }, .page_fd = -1, .ring_fd = -1
};

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
	return t->fn(t->arg, data, (u32)size);
}

static int tracer_map_ring(struct tracer *t)
{
	t->ring = ring_buffer__new(t->ring_fd, tracer_record, t, NULL);
	return t->ring ? 0 : -errno;
}

/* ---- root: without a broker ---- */

static int tracer_take(struct tracer *t)
{
	return trace_slot_take(&t->place, (u32)getpid(), false, XROCE_TRACE_LEASE);
}

static int tracer_begin(struct tracer *t)
{
	const struct ask_trace want = tracer_wants(t);

	return trace_slot_begin(&t->place, &want, t->ring_fd, XROCE_TRACE_LEASE);
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
	err = trace_slot_find(&t->place, prog_id);
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

/* ---- through the broker ---- */

static u64 tracer_look_up_lost(const struct tracer *t)
{
	struct xroce_trace page;
	const u32 first = 0;

	return bpf_map_lookup_elem(t->page_fd, &first, &page) ? t->lost :
							       page.tracer[t->number].lost;
}

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

/* ---- both ---- */

bool tracer_renew(struct tracer *t)
{
	const bool was_out = t->is_out;

	if (t->page_fd >= 0 || !t->place.trace ||
	    likely(trace_slot_renew(&t->place, XROCE_TRACE_LEASE)))
		return false;
	/* the lease expired, so another tracer may have taken the slot */
	if (!trace_slot_is_ours(&t->place)) {
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
	const bool is_whole = ring_buffer__consume(t->ring) >= 0;

	if (t->asker)
		t->lost = tracer_look_up_lost(t);
	else if (trace_slot_is_ours(&t->place))
		t->lost = trace_slot_lost(&t->place);
	return is_whole;
}

u64 tracer_lost(const struct tracer *t)
{
	return t->lost_elsewhere + t->lost - t->lost_before;
}

void tracer_stop(struct tracer *t)
{
	if (t->asker)
		ask_untrace(t->asker, t->prog_id, &t->lost);
	else if (trace_slot_is_ours(&t->place))
		t->lost = trace_slot_leave(&t->place);
	t->asker = NULL;
}

void tracer_close(struct tracer *t)
{
	tracer_stop(t);
	trace_slot_leave(&t->place);
	if (t->ring)
		ring_buffer__free(t->ring);
	if (t->ring_fd >= 0)
		close(t->ring_fd);
	if (t->page_fd >= 0)
		close(t->page_fd);
	*t = tracer_none;
}
