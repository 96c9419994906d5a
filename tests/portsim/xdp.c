/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps, ring buffers and the helpers of XDP programs: for the program, and for user space with the
 * functions of user/os/kernel.h. A record in a ring is visible at once; a waiting thread is woken
 * later.
 */
#define _GNU_SOURCE
#include "xdp.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../user/os/kernel.h"
#include "machine.h"
#include "made.h"

#define CPUS	     16
#define CPU_BYTES    16384u
#define HEADROOM     256u
/* the program has 32 bits for the address of a packet */
#define PACKETS_AT   ((void *)0x20000000)

/* What runs on a CPU. */
struct cpu {
	struct port_maps *maps;
	const struct xdp_packet *packet;
	u8 *room;
};
static struct cpu cpus[CPUS];
static u8 *packets;

/* The program runs in the actor that has this number of a CPU. */
static struct cpu *cpu_of(const struct xdp_md *ctx)
{
	return &cpus[((u8 *)(uintptr_t)ctx->data - packets) / CPU_BYTES];
}
/* of the running actor: the helpers that get no context */
static struct cpu *running[64];
static struct cpu *cpu_running(void)
{
	return running[sched_number(sched_self())];
}

/* ---- maps ---- */

static void *new_map(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	sim_check(p);
	return memset(p, 0, bytes);
}

/* Large maps are fresh memory of which little is touched. */
static void *new_large(size_t bytes)
{
	void *p = calloc(1, bytes + 64);

	sim_check(p);
	return p;
}

static void *aligned(void *p)
{
	return (void *)(((uintptr_t)p + 63) & ~(uintptr_t)63);
}

struct port_maps *xdp_maps_new(void)
{
	struct port_maps *m = calloc(1, sizeof(*m));
	static void *cq[2], *expect[2], *qp[2];
	static u32 next;

	sim_check(m);
	/* kept from run to run, as their pages cost more than the run: their users clear them */
	next = !next;
	if (!cq[next]) {
		cq[next] = new_large(XROCE_MAX_CQ * sizeof(struct xroce_cq));
		expect[next] = new_large(XROCE_MAX_QP * sizeof(struct xroce_expect));
		qp[next] = new_large(XROCE_MAX_QP * sizeof(struct xroce_qp));
	}
	m->shared.cq = aligned(cq[next]);
	m->shared.expect = aligned(expect[next]);
	m->shared.qp = aligned(qp[next]);
	memset(m->shared.cq, 0, 64 * sizeof(*m->shared.cq));
	memset(m->shared.expect, 0, XROCE_MAX_QP * sizeof(*m->shared.expect));
	for (u32 i = 0; i < XROCE_MAX_QP; i++)
		if (m->shared.qp[i].qpn || m->shared.qp[i].pid)
			m->shared.qp[i] = (struct xroce_qp){ 0 };
	m->shared.engine = new_map(sizeof(*m->shared.engine));
	m->shared.vector = new_map(XROCE_MAX_QUEUE * sizeof(*m->shared.vector));
	m->shared.sock = new_map(XROCE_MAX_QUEUE * sizeof(*m->shared.sock));
	m->shared.stats = new_map(XROCE_MAX_SHARD * sizeof(*m->shared.stats));
	m->shared.drops = new_map(XROCE_MAX_SHARD * sizeof(*m->shared.drops));
	m->gid_fd = fd_open(FD_MAP, m);
	m->channel_fd = fd_open(FD_MAP, m);
	m->num_rings = 0;
	m->shared.qp_stat = new_map(XROCE_QP_STATS * sizeof(*m->shared.qp_stat));
	m->shared.cq_stat = new_map(XROCE_CQ_STATS * sizeof(*m->shared.cq_stat));
	m->shared.srq_stat = new_map(XROCE_SRQ_STATS * sizeof(*m->shared.srq_stat));
	m->shared.mr_stat = new_map(XROCE_MR_STATS * sizeof(*m->shared.mr_stat));
	m->shared.trace_fd = -1;
	m->shared.group_fd = -1;
	m->shared.flow_fd = m->shared.flows_fd = m->shared.flow_count_fd = -1;
	m->shared.copies_fd = m->shared.copying_fd = -1;
	return m;
}

void xdp_maps_free(struct port_maps *m)
{
	free(m->shared.engine);
	free(m->shared.vector);
	free(m->shared.sock);
	free(m->shared.stats);
	free(m->shared.drops);
	free(m->shared.qp_stat);
	free(m->shared.cq_stat);
	free(m->shared.srq_stat);
	free(m->shared.mr_stat);
	free(m);
}

static void *gid_value(struct port_maps *m, const void *key)
{
	for (u32 i = 0; i < m->num_gids; i++)
		if (memcmp(m->gid[i], key, 16) == 0)
			return m->gid[i];
	return NULL;
}

void *xdp_map_lookup(const void *map, const void *key);
void *xdp_map_lookup(const void *map, const void *key)
{
	struct port_maps *m = cpu_running()->maps;
	const u32 k = *(const u32 *)key;

	switch (xdp_map_named(map)) {
	case MAP_QP:
		sched_point("lookup");
		return k < XROCE_MAX_QP ? &m->shared.qp[k] : NULL;
	case MAP_CQ:
		return k < XROCE_MAX_CQ ? &m->shared.cq[k] : NULL;
	case MAP_EXPECT:
		return k < XROCE_MAX_QP ? &m->shared.expect[k] : NULL;
	case MAP_CHANNEL:
		sched_point("lookup of a ring");
		return k < XROCE_MAX_CHANNEL ? m->channel[k] : NULL;
	case MAP_ENGINE:
		return m->shared.engine;
	case MAP_VECTOR:
		return k < XROCE_MAX_QUEUE ? &m->shared.vector[k] : NULL;
	case MAP_GID:
		return gid_value(m, key);
	case MAP_GROUP:
		return NULL; /* no process joins one here */
	case MAP_DROP:
		return &m->drop;
	case MAP_RX:
		return &m->rx;
	default:
		sched_fail("a map that has no values");
	}
}

/* ---- the program's helpers ---- */

long bpf_redirect_map(const void *map, __u64 key, __u64 flags);
long bpf_redirect_map(const void *map, __u64 key, __u64 flags)
{
	return key < XROCE_MAX_QUEUE ? XDP_REDIRECT : (long)flags;
}

long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags);
long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags)
{
	struct record_ring *r = ring;
	u32 at;

	sched_point("record");
	if (r->prod - r->cons == RING_RECORDS)
		return -ENOSPC;
	at = r->prod++ % RING_RECORDS;
	r->whole[at] = false;
	sched_point("reserved");
	memcpy(&r->record[at], data, size);
	r->whole[at] = true;
	sched_trace("record for CQ %d to ring %d", (int)((struct xroce_wakeup *)data)->cq, r->fd);
	fd_notify(r->fd);
	sched_point("recorded");
	return 0;
}

long bpf_xdp_load_bytes(struct xdp_md *ctx, __u32 offset, void *to, __u32 len);
long bpf_xdp_load_bytes(struct xdp_md *ctx, __u32 offset, void *to, __u32 len)
{
	const struct xdp_packet *p = cpu_of(ctx)->packet;

	if (offset > p->len || len > p->len - offset)
		return -EINVAL;
	memcpy(to, p->bytes + offset, len);
	return 0;
}

long bpf_xdp_adjust_meta(struct xdp_md *ctx, int delta);
long bpf_xdp_adjust_meta(struct xdp_md *ctx, int delta)
{
	ctx->data_meta += (u32)delta;
	return ctx->data - ctx->data_meta > HEADROOM ? -EINVAL : 0;
}

__u64 bpf_xdp_get_buff_len(struct xdp_md *ctx);
__u64 bpf_xdp_get_buff_len(struct xdp_md *ctx)
{
	return cpu_of(ctx)->packet->len;
}

__u64 bpf_ktime_get_ns(void);
__u64 bpf_ktime_get_ns(void)
{
	return sched_now_ns();
}

long bpf_loop(__u32 n, void *fn, void *arg, __u64 flags);
long bpf_loop(__u32 n, void *fn, void *arg, __u64 flags)
{
	long (*each)(u64 i, void *arg) = (long (*)(u64, void *))fn;
	u32 i = 0;

	while (i < n && !each(i++, arg))
		;
	return i;
}

int xroce_xdp(struct xdp_md *ctx);

bool xdp_run(struct port_maps *m, struct xdp_packet *p, u32 queue, u32 number)
{
	struct cpu *cpu = &cpus[number];
	struct xdp_md ctx = { .rx_queue_index = queue };
	int verdict;

	sim_check(number < CPUS && p->linear <= CPU_BYTES - HEADROOM);
	if (!packets) {
		packets = mmap(PACKETS_AT, CPUS * CPU_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		sim_check(packets == PACKETS_AT);
	}
	cpu->maps = m;
	cpu->packet = p;
	xdp_set_shared(m->packets);
	cpu->room = packets + number * CPU_BYTES;
	running[sched_number(sched_self())] = cpu;
	memcpy(cpu->room + HEADROOM, p->bytes, p->linear);
	ctx.data = ctx.data_meta = (u32)(uintptr_t)(cpu->room + HEADROOM);
	ctx.data_end = ctx.data + p->linear;
	verdict = xroce_xdp(&ctx);
	p->meta_len = ctx.data - ctx.data_meta;
	memcpy(p->meta, cpu->room + HEADROOM - p->meta_len, p->meta_len);
	return verdict == XDP_REDIRECT;
}

struct packet_ring *xdp_packets(void)
{
	return cpu_running()->maps->packets;
}

/* No tracer runs here. */
int kernel_send(int fd, const void *message, u32 bytes)
{
	sched_fail("a report is sent");
}

int kernel_program_run(int program, void *context, u32 bytes)
{
	sched_fail("a program is run");
}

/* ---- maps as user space reaches them ---- */

static struct port_maps *maps_of(int fd)
{
	return fd_object(fd, FD_MAP);
}

int kernel_map_get(int fd, const void *key, void *value)
{
	sched_fail("a map is read");
}

int kernel_map_sum(int map, u32 key, u64 *sums, u32 words)
{
	sched_fail("nobody counts flows here");
}

static int update_channel(struct port_maps *m, u32 slot, int fd)
{
	sim_check(slot < XROCE_MAX_CHANNEL);
	if (made_refuses_rings())
		return -EPERM;
	/* a grace period, in which all goes on */
	sched_sleep("grace period", rng_below(sched_rng(), 20000));
	m->channel[slot] = fd_object(fd, FD_RING);
	return 0;
}

int kernel_map_put(int fd, const void *key, const void *value)
{
	struct port_maps *m = maps_of(fd);

	sched_point("update");
	sched_drain();
	if (fd == m->channel_fd)
		return update_channel(m, *(const u32 *)key, *(const int *)value);
	if (gid_value(m, key))
		return 0;
	sim_check(m->num_gids < XDP_GIDS);
	memcpy(m->gid[m->num_gids++], key, 16);
	return 0;
}

int kernel_map_put_all(int fd, const void *keys, const void *values, u32 n)
{
	for (u32 i = 0; i < n; i++)
		kernel_map_put(fd, (const u32 *)keys + i, (const int *)values + i);
	return 0;
}

void kernel_map_remove(int fd, const void *key)
{
	sched_point("delete");
	sched_drain();
}

/* ---- ring buffers ---- */

/* for copies, of which there are none here: no flows */
int kernel_ring_make_of(u32 bytes)
{
	return -EOPNOTSUPP;
}

int kernel_ring_make(void)
{
	struct record_ring *r = calloc(1, sizeof(*r));

	sim_check(r);
	r->fd = fd_open(FD_RING, r);
	return r->fd;
}

struct record_ring *xdp_ring(int fd)
{
	return fd_object(fd, FD_RING);
}

struct ring_reader {
	struct record_ring *ring;
	kernel_record_fn *fn;
	void *arg;
};

int kernel_ring_open(int fd, u32 bytes, kernel_record_fn *fn, void *arg, struct ring_reader **out)
{
	struct ring_reader *rb = malloc(sizeof(*rb));

	sim_check(rb);
	*rb = (struct ring_reader){ fd_object(fd, FD_RING), fn, arg };
	*out = rb;
	return 0;
}

void kernel_ring_close(struct ring_reader *rb)
{
	free(rb);
}

int kernel_ring_consume(struct ring_reader *rb)
{
	struct record_ring *r = rb->ring;

	sched_point("consume");
	sched_drain();
	while (r->cons != r->prod && r->whole[r->cons % RING_RECORDS]) {
		const struct xroce_wakeup record = r->record[r->cons % RING_RECORDS];

		rb->fn(rb->arg, (void *)&record, sizeof(record));
		r->cons++;
		sched_point("consumed");
	}
	return 0;
}
