/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../os/clock.h"
#include "place.h"

#define PLACE_IDS 64 /* more maps than any program of ours has */

const struct place place_none = { .rings_fd = -1, .number = XROCE_TRACERS };

/* ---- the maps ---- */

struct place_ids {
	u32 num;
	u32 id[PLACE_IDS];
};

static int place_list(u32 prog_id, struct place_ids *ids)
{
	struct bpf_prog_info prog = { .nr_map_ids = PLACE_IDS, .map_ids = (uintptr_t)ids->id };
	u32 len = sizeof(prog);
	const int fd = bpf_prog_get_fd_by_id(prog_id);
	int err;

	if (fd < 0)
		return fd;
	err = bpf_obj_get_info_by_fd(fd, &prog, &len);
	close(fd);
	ids->num = min_u32(prog.nr_map_ids, PLACE_IDS);
	return err;
}

/* Returns a descriptor of the map of that name; -ENOENT or -errno. */
static int place_map(const struct place_ids *ids, const char *name)
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

void place_maps_close(struct place_maps *maps)
{
	const int fd[] = { maps->trace_fd, maps->engine_fd, maps->rings_fd, maps->page_fd };

	for (u32 i = 0; i < ARRAY_SIZE(fd); i++)
		if (fd[i] >= 0)
			close(fd[i]);
	*maps = (struct place_maps)PLACE_MAPS_NONE;
}

/* Returns 0; -ENOENT: the map is of another kind, as another version's; -errno. */
static int place_check(int fd, u32 type, u32 value_size)
{
	struct bpf_map_info info = { 0 };
	u32 len = sizeof(info);
	int err = bpf_obj_get_info_by_fd(fd, &info, &len);

	return err ? err : info.type == type && info.value_size == value_size ? 0 : -ENOENT;
}

static int place_map_memory(int fd, u32 bytes, void **out)
{
	int err = place_check(fd, BPF_MAP_TYPE_ARRAY, bytes);
	void *memory;

	if (err)
		return err;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	*out = memory;
	return 0;
}

static void place_forget(struct place *p)
{
	if (p->rings_fd >= 0)
		close(p->rings_fd);
	if (p->trace)
		munmap(p->trace, sizeof(*p->trace));
	if (p->engine)
		munmap(p->engine, sizeof(*p->engine));
	*p = place_none;
}

int place_use(struct place *p, const struct place_maps *maps)
{
	int err;

	*p = place_none;
	err = place_map_memory(maps->trace_fd, sizeof(*p->trace), (void **)&p->trace);
	if (!err)
		err = place_map_memory(maps->engine_fd, sizeof(*p->engine), (void **)&p->engine);
	if (!err)
		err = place_check(maps->rings_fd, BPF_MAP_TYPE_ARRAY_OF_MAPS, sizeof(u32));
	if (!err) {
		p->rings_fd = fcntl(maps->rings_fd, F_DUPFD_CLOEXEC, 0);
		err = p->rings_fd < 0 ? -errno : 0;
	}
	if (err)
		place_forget(p);
	return err;
}

int place_find(struct place *p, u32 prog_id)
{
	struct place_maps maps = PLACE_MAPS_NONE;
	struct place_ids ids;
	int err = place_list(prog_id, &ids);

	*p = place_none;
	if (err)
		return err;
	maps.trace_fd = place_map(&ids, XROCE_MAP_TRACE);
	maps.engine_fd = maps.trace_fd < 0 ? maps.trace_fd : place_map(&ids, XROCE_MAP_ENGINE);
	maps.rings_fd = maps.engine_fd < 0 ? maps.engine_fd : place_map(&ids, XROCE_MAP_TRACER);
	err = maps.rings_fd < 0 ? maps.rings_fd : place_use(p, &maps);
	place_maps_close(&maps);
	return err;
}

/* ---- a place ---- */

static struct xroce_tracer *place_of(const struct place *p)
{
	return &p->trace->tracer[p->number];
}

bool place_is_ours(const struct place *p)
{
	return p->trace && p->number < XROCE_TRACERS &&
	       atomic_load_explicit(shared_word(&place_of(p)->owner), memory_order_relaxed) ==
		       p->owner;
}

static u64 place_count_lost(const struct place *p)
{
	return atomic_load_explicit(shared_word(&place_of(p)->lost), memory_order_relaxed);
}

/* Of several that want it the one has it that moves until_ns on from what all have read. */
static bool place_try(struct place *p, u64 lease_ns)
{
	struct xroce_tracer *t = place_of(p);
	const u64 now_ns = clock_now_ns();
	__u64 until_ns = atomic_load_explicit(shared_word(&t->until_ns), memory_order_relaxed);

	/* the longest lease there is: what is further away nobody of ours has written */
	if (until_ns && now_ns < until_ns + XROCE_TRACE_LEASE && until_ns < now_ns + 2 * ASK_LEASE)
		return false;
	return atomic_compare_exchange_strong_explicit(shared_word(&t->until_ns), &until_ns,
						       now_ns + lease_ns, memory_order_seq_cst,
						       memory_order_relaxed);
}

int place_take(struct place *p, u32 owner, bool for_user, u64 lease_ns)
{
	const u32 all = for_user ? PLACE_USERS : XROCE_TRACERS;

	for (u32 i = 0; i < all; i++) {
		p->number = for_user ? i : XROCE_TRACERS - 1 - i;
		if (!place_try(p, lease_ns))
			continue;
		p->owner = owner;
		atomic_store_explicit(shared_word(&place_of(p)->owner), owner,
				      memory_order_relaxed);
		p->lost_before = place_count_lost(p);
		return 0;
	}
	p->number = XROCE_TRACERS;
	return -EBUSY;
}

/* What the place says is there before its bit, and its ring in it after it has gone. */
static void place_listen(const struct place *p, bool on)
{
	_Atomic u32 *word = shared_word(&p->trace->listening);
	const u32 bit = 1u << p->number;

	if (on)
		atomic_fetch_or_explicit(word, bit, memory_order_seq_cst);
	else
		atomic_fetch_and_explicit(word, ~bit, memory_order_seq_cst);
}

/* The library sees it, whatever it was about to take out. */
static void place_hint(const struct place *p)
{
	_Atomic u32 *word = shared_word(&p->engine->traced);
	u32 before = atomic_load_explicit(word, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(word, &before,
						      (before + XROCE_TRACED_STEP) | XROCE_TRACED,
						      memory_order_seq_cst, memory_order_relaxed))
		;
}

static void place_prolong(const struct place *p, u64 lease_ns)
{
	atomic_store_explicit(shared_word(&place_of(p)->until_ns), clock_now_ns() + lease_ns,
			      memory_order_relaxed);
}

int place_begin(struct place *p, const struct ask_trace *want, int ring_fd, u64 lease_ns)
{
	struct xroce_tracer *t = place_of(p);
	int err;

	place_listen(p, false);
	err = bpf_map_update_elem(p->rings_fd, &p->number, &ring_fd, BPF_ANY);
	if (err)
		return err;
	t->what = want->what;
	t->qpn = want->qpn;
	t->bytes = want->bytes;
	t->has_peer = want->has_peer;
	memcpy(t->peer, want->peer, sizeof(t->peer));
	place_prolong(p, lease_ns);
	place_listen(p, true);
	place_hint(p);
	return 0;
}

bool place_renew(struct place *p, u64 lease_ns)
{
	const u32 listening =
		atomic_load_explicit(shared_word(&p->trace->listening), memory_order_relaxed);

	if (unlikely(!place_is_ours(p) || !(listening & 1u << p->number)))
		return false;
	place_prolong(p, lease_ns);
	return true;
}

u64 place_lost(const struct place *p)
{
	return place_is_ours(p) ? place_count_lost(p) - p->lost_before : 0;
}

void place_stop(struct place *p)
{
	if (place_is_ours(p))
		place_listen(p, false);
}

u64 place_leave(struct place *p)
{
	u64 lost = 0;

	if (place_is_ours(p)) {
		place_listen(p, false);
		bpf_map_delete_elem(p->rings_fd, &p->number);
		lost = place_lost(p);
		atomic_store_explicit(shared_word(&place_of(p)->owner), 0, memory_order_relaxed);
		/* release: pairs with the exchange in place_try(); the place is empty */
		atomic_store_explicit(shared_word(&place_of(p)->until_ns), 0,
				      memory_order_release);
	}
	place_forget(p);
	return lost;
}

/* ---- what it is looked through ---- */

int place_make_ring(u32 bytes)
{
	return bpf_map_create(BPF_MAP_TYPE_RINGBUF, "xroce_trace", 0, 0, bytes, NULL);
}
