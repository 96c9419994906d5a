/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/clock.h"
#include "tracer.h"

#define MAPS_MAX 64 /* more than any program of ours has */

/* A descriptor of the program's map of that name, if it is of that kind; -ENOENT or -errno. */
static int tracer_map(const u32 *ids, u32 n, const char *name, u32 type, u32 value_size)
{
	for (u32 i = 0; i < n && i < MAPS_MAX; i++) {
		struct bpf_map_info info = { 0 };
		u32 len = sizeof(info);
		const int fd = bpf_map_get_fd_by_id(ids[i]);

		if (fd == -EPERM)
			return fd;
		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) && !strcmp(info.name, name) &&
		    info.type == type && info.value_size == value_size)
			return fd;
		close(fd);
	}
	return -ENOENT;
}

/* The memory that says who looks, and the map of rings. */
static int tracer_find(struct tracer *t, u32 prog_id)
{
	u32 ids[MAPS_MAX], len = sizeof(struct bpf_prog_info);
	struct bpf_prog_info prog = { .nr_map_ids = MAPS_MAX, .map_ids = (uintptr_t)ids };
	int fd = bpf_prog_get_fd_by_id(prog_id), err;
	void *memory;

	if (fd < 0)
		return fd;
	err = bpf_obj_get_info_by_fd(fd, &prog, &len);
	close(fd);
	if (err)
		return err;
	fd = tracer_map(ids, prog.nr_map_ids, XROCE_MAP_TRACE, BPF_MAP_TYPE_ARRAY,
			sizeof(struct xroce_trace));
	if (fd < 0)
		return fd;
	memory = mmap(NULL, sizeof(struct xroce_trace), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	err = memory == MAP_FAILED ? -errno : 0;
	close(fd);
	if (err)
		return err;
	t->trace = memory;
	t->places_fd = tracer_map(ids, prog.nr_map_ids, XROCE_MAP_TRACER,
				  BPF_MAP_TYPE_ARRAY_OF_MAPS, sizeof(u32));
	return t->places_fd < 0 ? t->places_fd : 0;
}

static struct xroce_tracer *tracer_place(const struct tracer *t)
{
	return &t->trace->tracer[t->place];
}

static void tracer_listen(const struct tracer *t, bool on)
{
	_Atomic u32 *word = shared_word(&t->trace->listening);
	const u32 bit = 1u << t->place;

	/* what the place says is there before its bit, and its ring in it after it has gone */
	if (on)
		atomic_fetch_or_explicit(word, bit, memory_order_seq_cst);
	else
		atomic_fetch_and_explicit(word, ~bit, memory_order_seq_cst);
}

/*
 * A free place, or one whose tracer has been gone for as long as a lease. Of several that want it
 * the one has it that moves until_ns on from what all have read.
 */
static int tracer_take(struct tracer *t)
{
	const u64 now_ns = clock_now_ns();

	for (t->place = 0; t->place < XROCE_TRACERS; t->place++) {
		struct xroce_tracer *p = tracer_place(t);
		__u64 until_ns = atomic_load_explicit(shared_word(&p->until_ns),
						      memory_order_relaxed);

		if (until_ns && now_ns < until_ns + XROCE_TRACE_LEASE)
			continue;
		if (!atomic_compare_exchange_strong_explicit(
			    shared_word(&p->until_ns), &until_ns, now_ns + XROCE_TRACE_LEASE,
			    memory_order_seq_cst, memory_order_relaxed))
			continue;
		atomic_store_explicit(shared_word(&p->owner), (u32)getpid(), memory_order_relaxed);
		return 0;
	}
	return -EBUSY;
}

static int tracer_put_ring(struct tracer *t)
{
	const int err = bpf_map_update_elem(t->places_fd, &t->place, &t->ring_fd, BPF_ANY);
	struct xroce_tracer *p = tracer_place(t);

	if (err)
		return err;
	p->what = t->want.what;
	p->qpn = t->want.qpn;
	p->bytes = t->want.bytes;
	p->has_peer = t->want.has_peer;
	memcpy(p->peer, t->want.peer.raw, sizeof(p->peer));
	return 0;
}

static void tracer_prolong(const struct tracer *t)
{
	atomic_store_explicit(shared_word(&tracer_place(t)->until_ns),
			      clock_now_ns() + XROCE_TRACE_LEASE, memory_order_relaxed);
}

static int tracer_record(void *arg, void *data, size_t size)
{
	struct tracer *t = arg;

	if (size < sizeof(struct xroce_record) || size > UINT32_MAX)
		return 0;
	return t->fn(t->arg, data, (u32)size);
}

static int tracer_begin(struct tracer *t)
{
	int err;

	tracer_listen(t, false);
	err = tracer_put_ring(t);
	if (err)
		return err;
	tracer_prolong(t);
	tracer_listen(t, true);
	return 0;
}

int tracer_open(struct tracer *t, u32 prog_id, const struct tracer_want *want, tracer_fn *fn,
		void *arg)
{
	int err;

	*t = (struct tracer){ .want = *want, .fn = fn, .arg = arg, .places_fd = -1, .ring_fd = -1,
			      .place = XROCE_TRACERS };
	err = tracer_find(t, prog_id);
	if (!err) {
		t->ring_fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "xroce_trace", 0, 0,
					    want->ring_bytes, NULL);
		err = t->ring_fd < 0 ? t->ring_fd : 0;
	}
	if (!err) {
		t->ring = ring_buffer__new(t->ring_fd, tracer_record, t, NULL);
		err = t->ring ? 0 : -errno;
	}
	if (!err)
		err = tracer_take(t);
	if (!err) {
		t->lost_before = tracer_place(t)->lost;
		err = tracer_begin(t);
	}
	if (err)
		tracer_close(t);
	return err;
}

static bool tracer_is_owner(const struct tracer *t)
{
	return t->trace && t->place < XROCE_TRACERS &&
	       atomic_load_explicit(shared_word(&tracer_place(t)->owner),
				    memory_order_relaxed) == (u32)getpid();
}

void tracer_renew(struct tracer *t)
{
	const u32 listening =
		atomic_load_explicit(shared_word(&t->trace->listening), memory_order_relaxed);

	if (likely(tracer_is_owner(t) && listening & 1u << t->place)) {
		tracer_prolong(t);
		return;
	}
	/* we have not run for as long as that: another may have the place by now */
	t->interrupted++;
	if (!tracer_is_owner(t) && tracer_take(t)) {
		t->place = XROCE_TRACERS;
		return;
	}
	tracer_begin(t);
}

void tracer_read(struct tracer *t)
{
	ring_buffer__consume(t->ring);
}

u64 tracer_lost(const struct tracer *t)
{
	if (!tracer_is_owner(t))
		return 0;
	return atomic_load_explicit(shared_word(&tracer_place(t)->lost), memory_order_relaxed) -
	       t->lost_before;
}

void tracer_stop(struct tracer *t)
{
	if (tracer_is_owner(t))
		tracer_listen(t, false);
}

void tracer_close(struct tracer *t)
{
	if (tracer_is_owner(t)) {
		tracer_listen(t, false);
		bpf_map_delete_elem(t->places_fd, &t->place);
		atomic_store_explicit(shared_word(&tracer_place(t)->owner), 0,
				      memory_order_relaxed);
		/* release: pairs with the exchange in tracer_take(); the place is empty */
		atomic_store_explicit(shared_word(&tracer_place(t)->until_ns), 0,
				      memory_order_release);
	}
	if (t->ring)
		ring_buffer__free(t->ring);
	if (t->ring_fd >= 0)
		close(t->ring_fd);
	if (t->places_fd >= 0)
		close(t->places_fd);
	if (t->trace)
		munmap(t->trace, sizeof(*t->trace));
	*t = (struct tracer){ .places_fd = -1, .ring_fd = -1 };
}
