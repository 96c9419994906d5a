/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * RoCEv2 by UDP sockets: what user/io/tx_udp.c puts on the wire, as a packet socket sees it, and
 * what user/host makes of datagrams. In a network namespace of the test's own, which needs root.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../unit/packets.h"

#include "../../user/engine/gso.h"
#include "../../user/host/receive.h"
#include "../../user/io/tx_udp.h"
#include "../../user/io/xsk.h"
#include "../../user/os/clock.h"

#define LOOPBACK   1 /* ifindex of lo */
#define QPN	   0x123456
#define RING_BYTES (1u << 20)
#define CLIENT	   3
#define WAIT_MS	   2000

static u64 seed = 0x0d9;
static struct xroce_engine_stats stats;
static struct gid v4 = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
static struct gid v6 = { .raw = { [15] = 1 } };

static u32 make_between(u8 *frame, const struct gid *local, const struct gid *peer, u8 opcode,
			u32 psn, u32 payload_len)
{
	struct path path = { .is_ipv6 = !gid_is_ipv4(peer),
			     .tos = 0x28,
			     .hop_limit = 33,
			     .udp_sport = 0xc123,
			     .local = *local,
			     .peer = *peer };
	struct packet p = random_packet(&seed, opcode);
	u8 *payload;

	p.dest_qpn = QPN;
	p.pkey = 0xffff;
	p.psn = psn;
	p.ip_id = 0;
	p.qkey = 0x11111111;
	p.payload_len = payload_len;
	payload = packet_put_headers(frame, &path, &p);
	fill_random(&seed, payload, payload_len);
	return packet_seal(frame, payload, payload_len);
}

static u32 make(u8 *frame, const struct gid *address, u8 opcode, u32 psn, u32 payload_len)
{
	return make_between(frame, address, address, opcode, psn, payload_len);
}

static struct tx *open_sender(void)
{
	const struct netdev dev = { .ifindex = LOOPBACK };
	struct tx *tx = NULL;

	assert_int_equal(tx_udp_open(&dev, &stats, &tx), 0);
	return tx;
}

static void send_one(struct tx *tx, const struct gid *address, u8 opcode, u32 psn, u32 payload_len)
{
	u8 *frame = tx_frame(tx);

	assert_non_null(frame);
	tx_commit(tx, frame, make(frame, address, opcode, psn, payload_len));
}

#define MIDDLE OPCODE(XROCE_RC, OP5_SEND_MIDDLE)

/* ---- on the wire ---- */

static int open_wire(void)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET,
					.sll_protocol = htons(ETH_P_ALL),
					.sll_ifindex = LOOPBACK };
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	const int bytes = 4 << 20; /* all packets of a test, and the answers by ICMP */

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* The next RoCEv2 packet that arrives at lo. */
static u32 next_on_wire(int fd, u8 *frame, size_t room)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct sockaddr_ll from;

	while (poll(&p, 1, WAIT_MS) == 1) {
		socklen_t len = sizeof(from);
		const ssize_t n = recvfrom(fd, frame, room, 0, (struct sockaddr *)&from, &len);
		const struct rx_frame f = { .data = frame, .len = (u32)n };
		struct packet parsed;

		/* each packet is seen twice: when it leaves, and when it arrives */
		if (n > 0 && from.sll_pkttype != PACKET_OUTGOING &&
		    packet_parse(&parsed, &f) == XROCE_DROP_none)
			return (u32)n;
	}
	return 0;
}

/*
 * The kernel cuts the super-packets of lo, as its segmentation is off here. Each packet is correct
 * with the identification and the port that the kernel has given it.
 */
static void tx_udp__each_packet_is_correct(void **state)
{
	static const u32 lengths[] = { 64, 64, 64, 64, 20, 1024, 1024, 1024, 0, 64, 4096, 4096 };
	static u8 frame[1 << 17];
	const int wire_fd = open_wire();
	struct tx *tx = open_sender();
	u16 port = 0;
	u32 n = 0, ports = 0;

	memset(&stats, 0, sizeof(stats));
	for (u32 i = 0; i < ARRAY_SIZE(lengths); i++)
		send_one(tx, i == 9 ? &v6 : &v4, MIDDLE, i, lengths[i]);
	assert_true(tx_flush(tx));
	for (u32 i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct rx_frame f = { .data = frame };
		struct packet p;

		f.len = next_on_wire(wire_fd, frame, sizeof(frame));
		assert_true(f.len);
		assert_int_equal(packet_parse(&p, &f), XROCE_DROP_none);
		assert_true(packet_icrc_ok(&p));
		assert_int_equal(p.psn, i);
		assert_int_equal(p.payload_len, lengths[i]);
		assert_int_equal(p.is_ipv6, i == 9);
		assert_int_equal(p.tos, 0x28);
		assert_int_equal(p.hop_limit, 33);
		if (!p.is_ipv6) {
			ports += p.udp_sport != port;
			port = p.udp_sport;
			n += p.ip_id != 0;
		}
	}
	/* 4 of 5, 3 of 4 (the empty one is last) and 1 of 2 follow another one */
	assert_int_equal(n, 4 + 3 + 1);
	/* also the first packets, by a socket on trial */
	assert_int_equal(ports, 1);
	assert_int_equal(stats.tx_udp, ARRAY_SIZE(lengths));
	assert_int_equal(stats.tx_udp_sends, 4);
	assert_int_equal(stats.tx_lost, 0);
	tx_close(tx);
	close(wire_fd);
}

/* A frame that no route takes is lost and counted; the next one leaves. */
/* A kernel that refuses UDP_SEGMENT, in the place of the C library's function. */
static bool refuses_segments;

long syscall(long number, ...)
{
	long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	va_list args;
	long a[6];

	va_start(args, number);
	for (size_t i = 0; i < ARRAY_SIZE(a); i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_sendmmsg && refuses_segments) {
		const struct mmsghdr *m = (const struct mmsghdr *)a[1];

		for (u32 i = 0; i < (u32)a[2]; i++) {
			if (m[i].msg_hdr.msg_iovlen == 1)
				continue;
			if (i == 0) {
				errno = EIO;
				return -1;
			}
			a[2] = (long)i;
		}
	}
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void tx_udp__without_segmentation(void **state)
{
	static u8 frame[1 << 17];
	const int wire_fd = open_wire();
	struct tx *tx = open_sender();

	memset(&stats, 0, sizeof(stats));
	refuses_segments = true;
	for (u32 i = 0; i < 20; i++)
		send_one(tx, &v4, MIDDLE, i, i == 3 ? 256 : 1024);
	assert_true(tx_flush(tx));
	for (u32 i = 0; i < 20; i++) {
		struct rx_frame f = { .data = frame };
		struct packet p;

		f.len = next_on_wire(wire_fd, frame, sizeof(frame));
		assert_int_equal(packet_parse(&p, &f), XROCE_DROP_none);
		assert_int_equal(p.psn, i);
		assert_int_equal(frame[14 + 20 + 8 + 4] & 0x3f, 0);
	}
	assert_int_equal(stats.tx_udp, 20);
	assert_int_equal(stats.tx_udp_sends, 20);
	assert_int_equal(stats.tx_lost, 0);
	refuses_segments = false;
	tx_close(tx);
	close(wire_fd);
}

static void tx_udp__counts_what_is_refused(void **state)
{
	struct gid nowhere = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 9 } };
	struct tx *tx = open_sender();

	memset(&stats, 0, sizeof(stats));
	send_one(tx, &nowhere, MIDDLE, 0, 64);
	send_one(tx, &v4, MIDDLE, 1, 64);
	assert_true(tx_flush(tx));
	assert_int_equal(stats.tx_lost, 1);
	assert_int_equal(stats.tx_udp, 1);
	tx_close(tx);
}

/* ---- neighbours that do not answer ---- */

#define NEIGHBOURS 240u
#define ROUNDS	   100u
#define AGAIN	   40u	/* as many rounds as fill a shared socket, and more */
#define BLOCKED_MS 20u	/* less than a replacement of a full socket takes */
#define STUCK_MS   500u

static void link_begin(void)
{
	assert_int_equal(system("ip link add silent0 type veth peer name silent1 && "
				"ip link set silent0 up && ip link set silent1 up && "
				"ip address add 10.9.0.1/24 dev silent0"), 0);
}

static void link_end(void)
{
	assert_int_equal(system("ip link del silent0"), 0);
}

/* The neighbours answer, that is, the kernel knows their MAC, or they fall silent. */
static void let_answer(bool they_do)
{
	char command[192];

	snprintf(command, sizeof(command),
		 "for i in $(seq 2 %u); do echo neigh %s 10.9.0.$i dev silent0 %s; done | "
		 "ip -batch -", NEIGHBOURS + 1, they_do ? "replace" : "del",
		 they_do ? "lladdr 02:00:00:00:00:09 nud permanent" : "");
	assert_int_equal(system(command), 0);
	/* of a deleted one the kernel keeps no address */
	if (!they_do)
		assert_int_equal(system("ip neigh flush dev silent0"), 0);
}

static void flush_within(struct tx *tx, u32 ms)
{
	const u64 until_ns = clock_now_ns() + ms * NSEC_PER_MSEC;

	while (!tx_flush(tx)) {
		assert_true(clock_now_ns() < until_ns);
		poll(NULL, 0, 1);
	}
}

/* Sends a round of frames to the addresses of a link without any other host, and one to lo. */
static void send_round(struct tx *tx, u32 psn, u32 ms)
{
	struct gid local = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 9, [15] = 1 } };
	struct gid peer = local;

	for (u32 i = 0; i < NEIGHBOURS; i++) {
		u8 *frame = tx_frame(tx);

		assert_non_null(frame);
		peer.raw[15] = (u8)(2 + i);
		tx_commit(tx, frame, make_between(frame, &local, &peer, MIDDLE, psn, 1024));
		flush_within(tx, ms);
	}
	send_one(tx, &v4, MIDDLE, psn, 64);
	flush_within(tx, ms);
}

static void need_all_on_wire(int wire_fd, u32 n)
{
	static u8 frame[1 << 17];

	for (u32 i = 0; i < n; i++) {
		struct rx_frame f = { .data = frame };
		struct packet p;

		f.len = next_on_wire(wire_fd, frame, sizeof(frame));
		assert_true(f.len);
		assert_int_equal(packet_parse(&p, &f), XROCE_DROP_none);
		assert_true(packet_icrc_ok(&p));
		assert_int_equal(p.psn, i);
	}
}

/* Packets to neighbours that never answered wait in the kernel, and delay none to others. */
static void tx_udp__silent_neighbours(void **state)
{
	const int wire_fd = open_wire();
	struct tx *tx = open_sender();

	link_begin();
	memset(&stats, 0, sizeof(stats));
	for (u32 i = 0; i < ROUNDS; i++)
		send_round(tx, i, BLOCKED_MS);
	need_all_on_wire(wire_fd, ROUNDS);
	assert_int_equal(stats.tx_udp + stats.tx_lost, ROUNDS * (NEIGHBOURS + 1));
	tx_close(tx);
	close(wire_fd);
	link_end();
}

/* Neighbours that answered before fill the shared socket once; then they delay no other. */
static void tx_udp__neighbours_fall_silent(void **state)
{
	const int wire_fd = open_wire();
	struct tx *tx = open_sender();

	link_begin();
	let_answer(true);
	memset(&stats, 0, sizeof(stats));
	for (u32 i = 0; i < 2; i++)
		send_round(tx, i, BLOCKED_MS);
	assert_int_equal(stats.tx_lost, 0);
	let_answer(false);
	for (u32 i = 2; i < ROUNDS; i++)
		send_round(tx, i, STUCK_MS);
	for (u32 i = ROUNDS; i < ROUNDS + AGAIN; i++)
		send_round(tx, i, BLOCKED_MS);
	need_all_on_wire(wire_fd, ROUNDS + AGAIN);
	/* and one that answers again gets its packets */
	let_answer(true);
	stats.tx_lost = 0;
	for (u32 i = 0; i < 2; i++)
		send_round(tx, i, BLOCKED_MS);
	assert_int_equal(stats.tx_lost, 0);
	tx_close(tx);
	close(wire_fd);
	link_end();
}

/* All frames of the pool can wait, and come back. */
static void tx_udp__gives_frames_back(void **state)
{
	struct tx *tx = open_sender();
	u8 *taken[XROCE_TX_FRAMES];
	u32 n = 0;

	for (u32 round = 0; round < 3; round++) {
		n = 0;
		while (n < XROCE_TX_FRAMES && (taken[n] = tx_frame(tx)))
			n++;
		assert_int_equal(n, XROCE_TX_FRAMES);
		assert_null(tx_frame(tx));
		while (n)
			tx_give_back(tx, taken[--n]);
	}
	tx_close(tx);
}

/* ---- from a datagram to a client's ring ---- */

struct end {
	struct host *host;
	struct host_client *client;
	struct xroce_sock counted;
	struct xsk_set ring; /* as the client reads it */
};

static void end_begin(struct end *e)
{
	const struct xroce_owner owner = { .client = CLIENT };
	const u32 qpn = QPN, index = 0;
	struct xroce_qp *qp;

	memset(e, 0, sizeof(*e));
	assert_int_equal(host_make(&e->host), 0);
	assert_int_equal(host_client_make(RING_BYTES, &e->client), 0);
	e->host->client[CLIENT] = e->client;
	assert_int_equal(host_map_put(&e->host->map[HOST_OWNER], &qpn, &owner), 0);
	assert_int_equal(host_map_put(&e->host->map[HOST_GID], &v4, &index), 0);
	assert_int_equal(host_map_put(&e->host->map[HOST_GID], &v6, &index), 0);
	qp = &e->client->maps.qp[XROCE_QP_SLOT(QPN)];
	*qp = (struct xroce_qp){
		.qpn = QPN, .transport = XROCE_RC, .receiving = 1, .pkey = 0xffff
	};
	memcpy(qp->local, v4.raw, sizeof(qp->local));
	memcpy(qp->peer, v4.raw, sizeof(qp->peer));
	assert_int_equal(xsk_open_ring(&e->ring, e->client->rx.fd, RING_BYTES, &e->counted), 0);
	assert_int_equal(xsk_set_event(&e->ring, e->client->rx.event_fd), 0);
}

static void end_end(struct end *e)
{
	xsk_close(&e->ring);
	host_client_free(e->client);
	host_free(e->host);
}

/* How many of the drops of this reason the client's program has counted. */
static u64 dropped(const struct end *e, enum xroce_drop drop)
{
	return ((const u64 *)e->client->drops)[XROCE_DROP_INDEX(drop)];
}

/* Passes n frames, of which segment bytes of payload are in each but the last, as one datagram. */
static void pass(struct end *e, u8 (*frame)[PACKET_FRAME_MAX], const u32 *len, u32 n, u32 segment)
{
	static u8 memory[HOST_HEADROOM + (1 << 16)] __attribute__((aligned(64)));
	struct host_datagram d = { .payload = memory + HOST_HEADROOM,
				   .segment = segment,
				   .src = v4, .dst = v4, .sport = 0xc123, .ttl = 9 };

	for (u32 i = 0; i < n; i++) {
		memcpy(d.payload + d.len, frame[i] + GSO_HEADER_BYTES, len[i] - GSO_HEADER_BYTES);
		d.len += len[i] - GSO_HEADER_BYTES;
	}
	host_receive_datagram(e->host, &d);
	host_wake(e->host);
}

/* Frames from take() whose ICRC no identification of 0 .. 63 explains. */
static u32 high_ids;

static void note_identification(const struct packet *p)
{
	struct icrc_unknown u;

	if (p->is_ipv6)
		return;
	icrc_unknown_init(&u, packet_bytes(p) - ICRC_BEFORE_TAIL - ROCE_ICRC_BYTES);
	high_ids += !icrc_unknown_is_low(&u, packet_icrc_difference(p));
}

/* The frames in the client's ring, super-packets cut; their PSNs must go up from `first`. */
static u32 take(struct end *e, u32 first)
{
	static struct segments segments;
	struct xsk_batch b;
	u32 psn = first;

	while (xsk_peek(&e->ring, e->ring.xsk, &b)) {
		for (u32 i = 0; i < b.n; i++) {
			struct rx_frame f = b.frame[i].frame;
			struct packet p;

			if (f.data) {
				assert_int_equal(packet_parse(&p, &f), XROCE_DROP_none);
				/* programs read it in a GRH */
				if (!p.is_ipv6)
					assert_int_equal(fold16(sum16(f.data + 14, 20)), 0xffff);
				assert_int_equal(p.psn, psn++);
				note_identification(&p);
				continue;
			}
			assert_int_equal(b.odd_parts[i], 1);
			segments.part[0] = b.part[b.odd_first[i]];
			segments.parts = 1;
			assert_true(segments_begin(&segments, b.frame[i].hint->l3_offset));
			while (segments_next(&segments, &f)) {
				assert_int_equal(packet_parse(&p, &f), XROCE_DROP_none);
				assert_int_equal(p.psn, psn++);
				note_identification(&p);
			}
		}
		xsk_release(&e->ring, e->ring.xsk, &b);
	}
	return psn - first;
}

static bool is_raised(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static u8 frames[8][PACKET_FRAME_MAX];
static u32 lens[8];

static void host__one_packet(void **state)
{
	struct pollfd fds[XSK_POLLS];
	struct end e;

	end_begin(&e);
	lens[0] = make(frames[0], &v4, MIDDLE, 7, 1024);
	pass(&e, frames, lens, 1, 0);
	/* no thread watches the ring */
	assert_false(is_raised(e.client->rx.event_fd));
	/* one that begins to sees that there is a packet */
	assert_int_equal(xsk_polls(&e.ring, fds), 1);
	assert_true(is_raised(fds[0].fd));
	assert_int_equal(take(&e, 7), 1);
	assert_int_equal(xsk_polls(&e.ring, fds), 1);
	assert_false(is_raised(fds[0].fd));
	/* a later one wakes it */
	e.client->maps.vector[0].watched = 1;
	pass(&e, frames, lens, 1, 0);
	assert_true(is_raised(fds[0].fd));
	assert_int_equal(take(&e, 7), 1);
	end_end(&e);
}

static void host__super_packets(void **state)
{
	struct end e;

	end_begin(&e);
	for (u32 i = 0; i < 6; i++)
		lens[i] = make(frames[i], &v4, MIDDLE, i, i < 5 ? 1024 : 100);
	pass(&e, frames, lens, 6, lens[0] - GSO_HEADER_BYTES);
	assert_int_equal(take(&e, 0), 6);
	assert_int_equal(e.client->stats->super_packets, 1);
	/* the kernel may also join packets for two QPs: each QP gets its own */
	for (u32 i = 3; i < 6; i++)
		lens[i] = make(frames[i], &v4, MIDDLE, i - 1, i < 5 ? 1024 : 100);
	frames[2][GSO_HEADER_BYTES + 7] ^= 1;
	pass(&e, frames, lens, 6, lens[0] - GSO_HEADER_BYTES);
	assert_int_equal(e.client->stats->super_packets, 3);
	assert_int_equal(e.host->stats.dropped, 1);
	assert_int_equal(take(&e, 0), 5);
	end_end(&e);
}

/* The kernel joins packets of any sender: a forged one does not take others with it. */
static void host__bad_first_packet(void **state)
{
	static const struct {
		u32 at;
		u8 value;
	} bad[] = {
		{ 0, 0x3f },			     /* no opcode */
		{ 0, OPCODE(XROCE_RC, OP5_ACKNOWLEDGE) }, /* has no payload */
		{ 1, 0x01 },			     /* another version */
	};

	for (u32 k = 0; k < ARRAY_SIZE(bad); k++) {
		struct end e;

		end_begin(&e);
		for (u32 i = 0; i < 6; i++)
			lens[i] = make(frames[i], &v4, MIDDLE, i, 1024);
		frames[0][GSO_HEADER_BYTES + bad[k].at] = bad[k].value;
		pass(&e, frames, lens, 6, lens[0] - GSO_HEADER_BYTES);
		assert_int_equal(take(&e, 1), 5);
		end_end(&e);
	}
}

/* What is not for a QP of the client does not reach it, and is counted once. */
static void host__refuses(void **state)
{
	struct end e;

	end_begin(&e);
	lens[0] = make(frames[0], &v4, OPCODE(XROCE_UC, OP5_SEND_ONLY), 0, 64);
	pass(&e, frames, lens, 1, 0);
	assert_int_equal(dropped(&e, XROCE_DROP_qp_transport), 1);
	lens[0] = make(frames[0], &v4, MIDDLE, 0, 64);
	e.client->maps.qp[XROCE_QP_SLOT(QPN)].peer[15] = 2;
	pass(&e, frames, lens, 1, 0);
	assert_int_equal(dropped(&e, XROCE_DROP_peer), 1);
	e.client->maps.qp[XROCE_QP_SLOT(QPN)].peer[15] = 1;
	/* another QP's number, and none that is owned */
	frames[0][GSO_HEADER_BYTES + 7] ^= 1;
	pass(&e, frames, lens, 1, 0);
	assert_int_equal(e.host->stats.dropped, 1);
	lens[0] = GSO_HEADER_BYTES + 8;
	pass(&e, frames, lens, 1, 0);
	assert_int_equal(e.host->stats.dropped, 2);
	assert_int_equal(take(&e, 0), 0);
	end_end(&e);
}

/* A client that does not read, or stores any position, loses its own packets only. */
static void host__ring_of_a_hostile_client(void **state)
{
	unsigned long *consumer;
	struct end e;
	u32 n = 0;

	end_begin(&e);
	lens[0] = make(frames[0], &v4, MIDDLE, 0, 4096);
	while (!dropped(&e, XROCE_DROP_ring_full) && n < 10000) {
		pass(&e, frames, lens, 1, 0);
		n++;
	}
	assert_in_range(n, 2, RING_BYTES / 4096);
	consumer = e.ring.ring.memory.consumer;
	for (u32 i = 0; i < 1000; i++) {
		*consumer = next_random(&seed) >> (i % 64);
		pass(&e, frames, lens, 1, 0);
	}
	/* all of it lies in the ring: reading the last of it is enough, with a sanitizer */
	assert_true(e.client->rx.at);
	end_end(&e);
}

/* ---- sockets ---- */

static bool all_arrive(struct end *e, struct host_receive *r, u32 n)
{
	u32 got = 0;

	for (u32 i = 0; i < 200 && got < n; i++) {
		struct pollfd p = { .fd = r->set_fd, .events = POLLIN };

		poll(&p, 1, 10);
		host_receive_take(r);
		got += take(e, got);
	}
	return got == n;
}

static void host_receive__both_families(void **state)
{
	struct netdev dev = { .num_gids = 2 };
	struct host_receive r, other;
	struct gid failed;
	struct tx *tx;
	struct end e;

	end_begin(&e);
	dev.gid[0].gid = v4;
	dev.gid[1].gid = v6;
	assert_int_equal(host_receive_open(&r, e.host, LOOPBACK), 0);
	assert_int_equal(host_receive_follow(&r, &dev, &failed), 0);
	assert_int_equal(r.num, 2);
	tx = open_sender();
	for (u32 i = 0; i < 40; i++)
		send_one(tx, &v4, MIDDLE, i, 1024);
	assert_true(tx_flush(tx));
	assert_true(all_arrive(&e, &r, 40));
	memcpy(e.client->maps.qp[XROCE_QP_SLOT(QPN)].local, v6.raw, 16);
	memcpy(e.client->maps.qp[XROCE_QP_SLOT(QPN)].peer, v6.raw, 16);
	for (u32 i = 0; i < 10; i++)
		send_one(tx, &v6, MIDDLE, i, 64);
	assert_true(tx_flush(tx));
	assert_true(all_arrive(&e, &r, 10));
	/* a second one for the same address */
	assert_int_equal(host_receive_open(&other, e.host, LOOPBACK), 0);
	assert_int_equal(host_receive_follow(&other, &dev, &failed), -EADDRINUSE);
	assert_memory_equal(&failed, &v4, sizeof(v4));
	/* an address that goes */
	dev.num_gids = 1;
	dev.gid[0].gid = v6;
	assert_int_equal(host_receive_follow(&r, &dev, &failed), 0);
	assert_int_equal(r.num, 1);
	assert_memory_equal(&r.address[0].gid, &v6, sizeof(v6));
	dev.gid[0].gid = v4;
	assert_int_equal(host_receive_follow(&other, &dev, &failed), 0);
	host_receive_close(&other);
	host_receive_close(&r);
	tx_close(tx);
	end_end(&e);
}

/* A peer that sends by sockets has low identifications in super-packets, too. */
static void host_receive__low_identifications(void **state)
{
	static const u32 payload[] = { 0, 64, 256, 1024, 2048, 4096 };
	struct netdev dev = { .ifindex = LOOPBACK, .num_gids = 1 };
	struct host_receive r;
	struct gid failed;
	struct tx *tx;
	struct end e;

	/* super-packets arrive uncut */
	assert_int_equal(system("ethtool -K lo gso on tx-udp-segmentation on >/dev/null"), 0);
	dev.gid[0].gid = v4;
	end_begin(&e);
	assert_int_equal(host_receive_open(&r, e.host, LOOPBACK), 0);
	assert_int_equal(host_receive_follow(&r, &dev, &failed), 0);
	tx = open_sender();
	high_ids = 0;
	for (u32 k = 0; k < ARRAY_SIZE(payload); k++) {
		for (u32 i = 0; i < 40; i++)
			send_one(tx, &v4, MIDDLE, i, i < 39 ? payload[k] : 0);
		assert_true(tx_flush(tx));
		assert_true(all_arrive(&e, &r, 40));
	}
	assert_true(e.client->stats->super_packets >= ARRAY_SIZE(payload) - 1);
	assert_int_equal(high_ids, 0);
	assert_int_equal(system("ethtool -K lo gso off tx-udp-segmentation off >/dev/null"), 0);
	host_receive_close(&r);
	tx_close(tx);
	end_end(&e);
}

/* A client that is about to end a QP gets all that is there, and not one turn's datagrams alone. */
static void host_receive_take_all__leaves_none(void **state)
{
	const u32 one_turn = 64, all = 150;
	struct netdev dev = { .ifindex = LOOPBACK, .num_gids = 1 };
	struct host_receive r;
	struct gid failed;
	struct tx *tx;
	struct end e;

	dev.gid[0].gid = v4;
	end_begin(&e);
	assert_int_equal(host_receive_open(&r, e.host, LOOPBACK), 0);
	assert_int_equal(host_receive_follow(&r, &dev, &failed), 0);
	assert_false(host_receive_take(&r));
	tx = open_sender();
	for (u32 i = 0; i < all; i++) {
		send_one(tx, &v4, MIDDLE, i, 64);
		assert_true(tx_flush(tx));
	}
	assert_true(host_receive_take(&r));
	assert_int_equal(take(&e, 0), one_turn);
	host_receive_take_all(&r, all);
	assert_int_equal(take(&e, one_turn), all - one_turn);
	assert_false(host_receive_take(&r));
	host_receive_close(&r);
	tx_close(tx);
	end_end(&e);
}

/* ---- maps ---- */

static void add_key(void *arg, const void *key, const void *value)
{
	u64 *sum = arg;
	u32 k;

	memcpy(&k, key, sizeof(k));
	sum[0] += k;
	sum[1]++;
	assert_int_equal(*(const u64 *)value, k * 3ull);
}

/* Addresses of one network, which differ in the last byte, have different buckets. */
static void host_map__spreads_addresses(void **state)
{
	struct gid key = v4;
	struct host_map m;
	u32 used = 0;

	assert_int_equal(host_map_make(&m, sizeof(key), sizeof(u32), 4096, false), 0);
	for (u32 i = 0; i < 256; i++) {
		key.raw[15] = (u8)i;
		assert_int_equal(host_map_put(&m, &key, &i), 0);
	}
	for (u32 i = 0; i < m.buckets; i++)
		used += m.bucket[i] != 0;
	assert_true(used > 200);
	host_map_free(&m);
}

static void host_map__as_a_hash_map(void **state)
{
	const u32 max = 1000;
	struct host_map m;
	u64 sum[2] = { 0 };

	assert_int_equal(host_map_make(&m, sizeof(u32), sizeof(u64), max, false), 0);
	for (u32 round = 0; round < 3; round++) {
		for (u32 k = 0; k < max; k++) {
			const u64 value = k * 3ull, before = 1;

			assert_null(host_map_find(&m, &k));
			assert_int_equal(host_map_put(&m, &k, &before), 0);
			assert_int_equal(host_map_put(&m, &k, &value), 0);
		}
		assert_int_equal(host_map_put(&m, &max, &sum[0]), -E2BIG);
		for (u32 k = 0; k < max; k += 2)
			assert_int_equal(host_map_remove(&m, &k), 0);
		assert_int_equal(host_map_remove(&m, &(u32){ 0 }), -ENOENT);
		memset(sum, 0, sizeof(sum));
		host_map_each(&m, add_key, sum);
		assert_int_equal(sum[0], max / 2 * (max / 2));
		assert_int_equal(sum[1], max / 2);
		for (u32 k = 1; k < max; k += 2)
			assert_int_equal(host_map_remove(&m, &k), 0);
	}
	host_map_free(&m);
}

static void host_map__the_oldest_goes(void **state)
{
	struct host_map m;

	assert_int_equal(host_map_make(&m, sizeof(u32), 68, 10, true), 0);
	for (u32 k = 0; k < 100; k++) {
		const u8 value[68] = { [67] = (u8)k };
		const u32 gone = k - 10;

		assert_int_equal(host_map_put(&m, &k, value), 0);
		assert_memory_equal(host_map_find(&m, &k), value, sizeof(value));
		assert_null(host_map_find(&m, &gone));
		assert_int_equal(m.num, min_u32(k + 1, 10));
	}
	host_map_free(&m);
}

static int setup(void **state)
{
	if (unshare(CLONE_NEWNET) ||
	    system("ip link set lo mtu 9000 up && ethtool -K lo gso off tx-udp-segmentation off "
		   ">/dev/null 2>&1"))
		return -1;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tx_udp__each_packet_is_correct),
		cmocka_unit_test(tx_udp__without_segmentation),
		cmocka_unit_test(tx_udp__counts_what_is_refused),
		cmocka_unit_test(tx_udp__silent_neighbours),
		cmocka_unit_test(tx_udp__neighbours_fall_silent),
		cmocka_unit_test(tx_udp__gives_frames_back),
		cmocka_unit_test(host__one_packet),
		cmocka_unit_test(host__super_packets),
		cmocka_unit_test(host__bad_first_packet),
		cmocka_unit_test(host__refuses),
		cmocka_unit_test(host__ring_of_a_hostile_client),
		cmocka_unit_test(host_receive__both_families),
		cmocka_unit_test(host_receive__low_identifications),
		cmocka_unit_test(host_receive_take_all__leaves_none),
		cmocka_unit_test(host_map__spreads_addresses),
		cmocka_unit_test(host_map__as_a_hash_map),
		cmocka_unit_test(host_map__the_oldest_goes),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
