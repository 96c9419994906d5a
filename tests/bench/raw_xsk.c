/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The baseline: AF_XDP in copy mode as fast as plain code drives it, with nothing above it, between
 * two interfaces in two namespaces. A few hundred hot frames, last in first out, a raised transmit
 * budget, native XDP, multi-buffer. Frames carry an EtherType of local experiments and no meaning.
 *
 *   raw_xsk rate SIZE SECONDS NETNS:IF:CPU NETNS:IF:CPU
 *	packets/s from the first end to the second, which spins
 *   raw_xsk rtt spin|poll SIZE SECONDS NETNS:IF:CPU NETNS:IF:CPU
 *	half round trip in us: median, 99 %
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <xdp/xsk.h>

#include "ends.h"

#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD 1
#endif
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif
#ifndef BPF_F_XDP_HAS_FRAGS
#define BPF_F_XDP_HAS_FRAGS (1U << 5)
#endif

#define CHUNK	  4096
#define RX_FRAMES 512
#define TX_SLOTS  128	/* of two chunks */
#define RING	  512
/* the kernel frees places here after it has shown the packets that took them */
#define FILL_RING 1024
#define BUSY_MS	  500	/* a socket that was closed a moment ago holds its queue for a while */
#define TX_BATCH  64
/* returned together: each return moves a cache line to the other CPU and back */
#define FILL_BATCH 64

struct raw {
	uint8_t *area;
	struct xsk_umem *umem;
	struct xsk_socket *xsk;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons comp, rx;
	int fd;
	uint64_t slot[TX_SLOTS]; /* free transmit slots: a stack */
	uint32_t slots;
	uint64_t taken[FILL_BATCH]; /* receive frames to go back to the fill ring */
	uint32_t takens;
};

/* return bpf_redirect_map(map, ctx->rx_queue_index, XDP_PASS) */
static int load_program(int map)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_W,
		  .dst_reg = BPF_REG_2,
		  .src_reg = BPF_REG_1,
		  .off = offsetof(struct xdp_md, rx_queue_index) },
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
		  .dst_reg = BPF_REG_1,
		  .src_reg = BPF_PSEUDO_MAP_FD,
		  .imm = map },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = BPF_F_XDP_HAS_FRAGS);

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "bench_redirect", "GPL", code,
			     sizeof(code) / sizeof(code[0]), &opts);
}

static void fill(struct raw *r, const uint64_t *addr, uint32_t n)
{
	uint32_t idx;

	if (xsk_ring_prod__reserve(&r->fill, n, &idx) != n)
		die("fill ring");
	for (uint32_t i = 0; i < n; i++)
		*xsk_ring_prod__fill_addr(&r->fill, idx + i) = addr[n - 1 - i];
	xsk_ring_prod__submit(&r->fill, n);
}

static void raw_open(struct raw *r, const struct end *end)
{
	const struct xsk_umem_config umem = { .fill_size = FILL_RING,
					      .comp_size = RING,
					      .frame_size = CHUNK };
	const struct xsk_socket_config config = {
		.rx_size = RING,
		.tx_size = RING,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = XDP_COPY | XDP_USE_NEED_WAKEUP | XDP_USE_SG,
	};
	const size_t bytes = (RX_FRAMES + 2 * TX_SLOTS) * CHUNK;
	const int budget = 256, buffer = 8 << 20;
	uint64_t addr[RX_FRAMES];
	int map, key = 0;
	LIBBPF_OPTS(bpf_link_create_opts, link, .flags = XDP_FLAGS_DRV_MODE);

	end_enter(end);
	r->area = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (r->area == MAP_FAILED)
		die("mmap");
	for (int ms = 0;; ms++) {
		errno = -xsk_umem__create(&r->umem, r->area, bytes, &r->fill, &r->comp, &umem);
		if (!errno)
			errno = -xsk_socket__create(&r->xsk, end->ifname, 0, r->umem, &r->rx,
						    &r->tx, &config);
		if (!errno)
			break;
		if (errno != EBUSY || ms == BUSY_MS)
			die("AF_XDP socket");
		xsk_umem__delete(r->umem);
		usleep(1000);
	}
	r->fd = xsk_socket__fd(r->xsk);
	setsockopt(r->fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof(budget));
	setsockopt(r->fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	map = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "bench_xsk", 4, 4, 1, NULL);
	if (map < 0 || bpf_map_update_elem(map, &key, &r->fd, BPF_ANY))
		die("XSKMAP");
	if (bpf_link_create(load_program(map), (int)if_nametoindex(end->ifname), BPF_XDP, &link) <
	    0)
		die("attach XDP");
	for (uint32_t i = 0; i < RX_FRAMES; i++)
		addr[i] = (uint64_t)i * CHUNK;
	fill(r, addr, RX_FRAMES);
	for (uint32_t i = 0; i < TX_SLOTS; i++) {
		r->slot[i] = (uint64_t)(RX_FRAMES + 2 * (TX_SLOTS - 1 - i)) * CHUNK;
		memset(r->area + r->slot[i], 0, size);
		memset(r->area + r->slot[i], 0xff, 6);
		memcpy(r->area + r->slot[i] + 6, (uint8_t[]){ 2, 0, 0, 0, 0, 9, 0x88, 0xb5 }, 8);
	}
	r->slots = TX_SLOTS;
	pthread_barrier_wait(&ready);
}

/* Packets received; their frames go back to the kernel. */
static uint32_t receive(struct raw *r)
{
	uint32_t idx, n = xsk_ring_cons__peek(&r->rx, TX_BATCH, &idx), packets = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct xdp_desc *d = xsk_ring_cons__rx_desc(&r->rx, idx + i);

		r->taken[r->takens++] = d->addr & ~(uint64_t)(CHUNK - 1);
		packets += !(d->options & XDP_PKT_CONTD);
		if (r->takens == FILL_BATCH) {
			fill(r, r->taken, FILL_BATCH);
			r->takens = 0;
		}
	}
	if (n)
		xsk_ring_cons__release(&r->rx, n);
	return packets;
}

static void reap(struct raw *r)
{
	uint32_t idx, n = xsk_ring_cons__peek(&r->comp, RING, &idx);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = *xsk_ring_cons__comp_addr(&r->comp, idx + i);

		if ((addr / CHUNK - RX_FRAMES) % 2 == 0) /* a slot's first descriptor */
			r->slot[r->slots++] = addr;
	}
	if (n)
		xsk_ring_cons__release(&r->comp, n);
}

static void transmit(struct raw *r, uint32_t packets)
{
	const uint32_t each = size > CHUNK ? 2 : 1;
	uint32_t idx, n;

	reap(r);
	packets = packets < r->slots ? packets : r->slots;
	n = packets * each;
	if (!n || xsk_ring_prod__reserve(&r->tx, n, &idx) != n)
		n = 0;
	for (uint32_t i = 0; i < n; i += each) {
		uint64_t addr = r->slot[--r->slots];

		*xsk_ring_prod__tx_desc(&r->tx, idx + i) =
			(struct xdp_desc){ addr, each == 2 ? CHUNK : size,
					   each == 2 ? XDP_PKT_CONTD : 0 };
		if (each == 2)
			*xsk_ring_prod__tx_desc(&r->tx, idx + i + 1) =
				(struct xdp_desc){ addr + CHUNK, size - CHUNK, 0 };
	}
	if (n)
		xsk_ring_prod__submit(&r->tx, n);
	if (xsk_ring_prod__needs_wakeup(&r->tx))
		sendto(r->fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
}

static void *rate_sender(void *end)
{
	static struct raw r;

	raw_open(&r, end);
	while (!stopped())
		transmit(&r, TX_BATCH);
	return NULL;
}

static void *rate_receiver(void *end)
{
	static struct raw r;
	uint64_t packets = 0, t0, t;

	raw_open(&r, end);
	t0 = now_ns() + WARM_NS;
	while (now_ns() < t0)
		receive(&r);
	t0 = now_ns();
	do {
		for (int i = 0; i < 256; i++)
			packets += receive(&r);
		t = now_ns();
	} while ((double)(t - t0) < seconds * 1e9);
	print_rate(packets, t - t0);
	return NULL;
}

static void transmit_one(void *r)
{
	transmit(r, 1);
}

/* One packet. */
static bool await(void *arg)
{
	struct raw *r = arg;
	struct pollfd fd = { .fd = r->fd, .events = POLLIN };
	uint64_t until = now_ns() + WAIT_NS;
	uint32_t tries = 0;

	for (;;) {
		if (receive(r))
			return true;
		if (sleeps ? poll(&fd, 1, WAIT_NS / 1000000) <= 0 :
			     (++tries % 1024 == 0 && now_ns() > until))
			return false;
	}
}

static void *rtt_echo(void *end)
{
	static struct raw r;

	raw_open(&r, end);
	while (!stopped())
		if (await(&r))
			transmit(&r, 1);
	return NULL;
}

static void *rtt_client(void *end)
{
	static struct raw r;

	raw_open(&r, end);
	measure_rtt(transmit_one, await, &r);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct roles roles = { "raw_xsk",	    14,		2 * CHUNK, rate_sender,
				     rate_receiver, rtt_client, rtt_echo };

	return run_ends(&roles, argc, argv);
}
