/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../os/clock.h"
#include "trace_slot.h"

#define TRACE_SLOT_IDS 64 /* more maps than any program of ours has */

const struct trace_slot trace_slot_none = { .rings_fd = -1, .number = XROCE_TRACERS };

/* ---- the maps ---- */

struct trace_slot_ids {
	u32 num;
	u32 id[TRACE_SLOT_IDS];
};

static int trace_slot_list(u32 prog_id, struct trace_slot_ids *ids)
{
	struct bpf_prog_info prog = { .nr_map_ids = TRACE_SLOT_IDS, .map_ids = (uintptr_t)ids->id };
	u32 len = sizeof(prog);
	const int fd = bpf_prog_get_fd_by_id(prog_id);
	int err;

	if (fd < 0)
		return fd;
	err = bpf_obj_get_info_by_fd(fd, &prog, &len);
	close(fd);
	ids->num = min_u32(prog.nr_map_ids, TRACE_SLOT_IDS);
	return err;
}

/* Returns a descriptor of the map with that name, -ENOENT or -errno. */
static int trace_slot_map(const struct trace_slot_ids *ids, const char *name)
{
	for (u32 i = 0; i < ids->num; i++) {
		struct bpf_map_info info = { 0 };
		u32 len = sizeof(info);
		const int fd = bpf_map_get_fd_by_id(ids->id[i]);

		if (fd == -EPERM || fd == -EMFILE || fd == -ENFILE)
			return fd;
		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) && !strcmp(info.name, name))
			return fd;
		close(fd);
	}
	return -ENOENT;
}

void trace_slot_maps_close(struct trace_slot_maps *maps)
{
	const int fd[] = { maps->trace_fd, maps->engine_fd, maps->rings_fd, maps->page_fd };

	for (u32 i = 0; i < ARRAY_SIZE(fd); i++)
		if (fd[i] >= 0)
			close(fd[i]);
	*maps = (struct trace_slot_maps)TRACE_SLOT_MAPS_NONE;
}

/* Returns 0; -ENOENT: the map has another type or size (another version); -errno. */
static int trace_slot_check(int fd, u32 type, u32 value_size)
{
	struct bpf_map_info info = { 0 };
	u32 len = sizeof(info);
	int err = bpf_obj_get_info_by_fd(fd, &info, &len);

	return err ? err : info.type == type && info.value_size == value_size ? 0 : -ENOENT;
}

static int trace_slot_map_memory(int fd, u32 bytes, void **out)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	*out = memory;
	return 0;
}

static void trace_slot_forget(struct trace_slot *p)
{
	if (p->rings_fd >= 0)
		close(p->rings_fd);
	if (p->trace)
		munmap(p->trace, sizeof(*p->trace));
	if (p->engine)
		munmap(p->engine, sizeof(*p->engine));
	*p = trace_slot_none;
}

static int trace_slot_use_memory(struct trace_slot *p, const struct trace_slot_maps *maps)
{
	int err;

	*p = trace_slot_none;
	err = trace_slot_map_memory(maps->trace_fd, sizeof(*p->trace), (void **)&p->trace);
	return err ? err : trace_slot_map_memory(maps->engine_fd, sizeof(*p->engine),
						 (void **)&p->engine);
}

int trace_slot_use_host(struct trace_slot *p, const struct trace_slot_maps *maps,
			struct host_ring **rings, struct host_ring *ring)
{
	const int err = trace_slot_use_memory(p, maps);

	p->rings = rings;
	p->ring = ring;
	if (err)
		trace_slot_forget(p);
	return err;
}

int trace_slot_use(struct trace_slot *p, const struct trace_slot_maps *maps)
{
	int err;

	*p = trace_slot_none;
	err = trace_slot_check(maps->trace_fd, BPF_MAP_TYPE_ARRAY, sizeof(*p->trace));
	if (!err)
		err = trace_slot_check(maps->engine_fd, BPF_MAP_TYPE_ARRAY, sizeof(*p->engine));
	if (!err)
		err = trace_slot_check(maps->rings_fd, BPF_MAP_TYPE_ARRAY_OF_MAPS, sizeof(u32));
	if (!err)
		err = trace_slot_use_memory(p, maps);
	if (!err) {
		p->rings_fd = fcntl(maps->rings_fd, F_DUPFD_CLOEXEC, 0);
		err = p->rings_fd < 0 ? -errno : 0;
	}
	if (err)
		trace_slot_forget(p);
	return err;
}

int trace_slot_find(struct trace_slot *p, u32 prog_id)
{
	struct trace_slot_maps maps = TRACE_SLOT_MAPS_NONE;
	struct trace_slot_ids ids;
	int err = trace_slot_list(prog_id, &ids);

	*p = trace_slot_none;
	if (err)
		return err;
	maps.trace_fd = trace_slot_map(&ids, XROCE_MAP_TRACE);
	maps.engine_fd = maps.trace_fd < 0 ? maps.trace_fd : trace_slot_map(&ids, XROCE_MAP_ENGINE);
	maps.rings_fd =
		maps.engine_fd < 0 ? maps.engine_fd : trace_slot_map(&ids, XROCE_MAP_TRACER);
	err = maps.rings_fd < 0 ? maps.rings_fd : trace_slot_use(p, &maps);
	trace_slot_maps_close(&maps);
	return err;
}

/* ---- a slot ---- */

static struct xroce_tracer *trace_slot_of(const struct trace_slot *p)
{
	return &p->trace->tracer[p->number];
}

bool trace_slot_is_ours(const struct trace_slot *p)
{
	return p->trace && p->number < XROCE_TRACERS &&
	       atomic_load_explicit(shared_word(&trace_slot_of(p)->owner), memory_order_relaxed) ==
		       p->owner;
}

static u64 trace_slot_count_lost(const struct trace_slot *p)
{
	return atomic_load_explicit(shared_word(&trace_slot_of(p)->lost), memory_order_relaxed);
}

/* Takes the slot unless its until_ns has changed: of several tracers only one succeeds. */
static bool trace_slot_try(struct trace_slot *p, u64 lease_ns)
{
	struct xroce_tracer *t = trace_slot_of(p);
	const u64 now_ns = clock_now_ns();
	__u64 until_ns = atomic_load_explicit(shared_word(&t->until_ns), memory_order_relaxed);

	/* ASK_LEASE is the longest lease: a much later time was not written by a tracer of ours */
	if (until_ns && now_ns < until_ns + XROCE_TRACE_LEASE && until_ns < now_ns + 2 * ASK_LEASE)
		return false;
	return atomic_compare_exchange_strong_explicit(shared_word(&t->until_ns), &until_ns,
						       now_ns + lease_ns, memory_order_seq_cst,
						       memory_order_relaxed);
}

int trace_slot_take(struct trace_slot *p, u32 owner, bool for_user, u64 lease_ns)
{
	const u32 all = for_user ? TRACE_SLOT_USERS : XROCE_TRACERS;

	for (u32 i = 0; i < all; i++) {
		p->number = for_user ? i : XROCE_TRACERS - 1 - i;
		if (!trace_slot_try(p, lease_ns))
			continue;
		p->owner = owner;
		atomic_store_explicit(shared_word(&trace_slot_of(p)->owner), owner,
				      memory_order_relaxed);
		p->lost_before = trace_slot_count_lost(p);
		return 0;
	}
	p->number = XROCE_TRACERS;
	return -EBUSY;
}

/* The slot's fields are set before its bit, and its ring stays until the bit is cleared. */
static void trace_slot_listen(const struct trace_slot *p, bool on)
{
	_Atomic u32 *word = shared_word(&p->trace->listening);
	const u32 bit = 1u << p->number;

	if (on)
		atomic_fetch_or_explicit(word, bit, memory_order_seq_cst);
	else
		atomic_fetch_and_explicit(word, ~bit, memory_order_seq_cst);
}

/* Sets the hint and changes the word, so that the library does not clear the hint unread. */
static void trace_slot_hint(const struct trace_slot *p)
{
	_Atomic u32 *word = shared_word(&p->engine->traced);
	u32 before = atomic_load_explicit(word, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(word, &before,
						      (before + XROCE_TRACED_STEP) | XROCE_TRACED,
						      memory_order_seq_cst, memory_order_relaxed))
		;
}

static void trace_slot_prolong(const struct trace_slot *p, u64 lease_ns)
{
	atomic_store_explicit(shared_word(&trace_slot_of(p)->until_ns), clock_now_ns() + lease_ns,
			      memory_order_relaxed);
}

static int trace_slot_put_ring(struct trace_slot *p, int ring_fd)
{
	if (!p->rings)
		return bpf_map_update_elem(p->rings_fd, &p->number, &ring_fd, BPF_ANY);
	p->rings[p->number] = p->ring;
	return 0;
}

static void trace_slot_take_ring(struct trace_slot *p)
{
	if (p->rings)
		p->rings[p->number] = NULL;
	p->rings = NULL;
	if (p->rings_fd >= 0)
		bpf_map_delete_elem(p->rings_fd, &p->number);
}

int trace_slot_begin(struct trace_slot *p, const struct ask_trace *want, int ring_fd, u64 lease_ns)
{
	struct xroce_tracer *t = trace_slot_of(p);
	int err;

	trace_slot_listen(p, false);
	err = trace_slot_put_ring(p, ring_fd);
	if (err)
		return err;
	t->what = want->what;
	t->qpn = want->qpn;
	t->bytes = want->bytes;
	t->has_peer = want->has_peer;
	memcpy(t->peer, want->peer, sizeof(t->peer));
	trace_slot_prolong(p, lease_ns);
	trace_slot_listen(p, true);
	trace_slot_hint(p);
	return 0;
}

bool trace_slot_renew(struct trace_slot *p, u64 lease_ns)
{
	const u32 listening =
		atomic_load_explicit(shared_word(&p->trace->listening), memory_order_relaxed);

	if (unlikely(!trace_slot_is_ours(p) || !(listening & 1u << p->number)))
		return false;
	trace_slot_prolong(p, lease_ns);
	return true;
}

u64 trace_slot_lost(const struct trace_slot *p)
{
	return trace_slot_is_ours(p) ? trace_slot_count_lost(p) - p->lost_before : 0;
}

void trace_slot_stop(struct trace_slot *p)
{
	if (!trace_slot_is_ours(p))
		return;
	trace_slot_listen(p, false);
	/* a client's table ends with it; a BPF map keeps its ring until the slot is freed */
	if (p->rings)
		trace_slot_take_ring(p);
}

u64 trace_slot_leave(struct trace_slot *p)
{
	u64 lost = 0;

	if (trace_slot_is_ours(p)) {
		trace_slot_listen(p, false);
		trace_slot_take_ring(p);
		lost = trace_slot_lost(p);
		atomic_store_explicit(shared_word(&trace_slot_of(p)->owner), 0,
				      memory_order_relaxed);
		/* release: pairs with the exchange in trace_slot_try(); the slot is empty */
		atomic_store_explicit(shared_word(&trace_slot_of(p)->until_ns), 0,
				      memory_order_release);
	}
	trace_slot_forget(p);
	return lost;
}

/* ---- the ring ---- */

int trace_slot_make_ring(u32 bytes)
{
	return bpf_map_create(BPF_MAP_TYPE_RINGBUF, "xroce_trace", 0, 0, bytes, NULL);
}
