/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The XDP program of a process without sockets: a packet's hint and frame come into its ring
 * buffer, whole, and threads that sleep on that are woken. All that decides on the packet is as
 * ever (the other programs here).
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "bench.h"

#define RING_BYTES (256u << 10)
#define CHANNEL	   7
#define QUEUE	   3 /* of the interface, which is nothing to such a process */
#define BUSY	   (1u << 31)
#define DISCARD	   (1u << 30)

static struct frame f;
static uint8_t bytes[BENCH_BYTES];

/* The ring as its reader maps it. */
static struct {
	int fd, wakes;
	unsigned long *consumer;
	const unsigned long *producer;
	const uint8_t *data;
	size_t page;
} ring;

static int setup(void **state)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	uint8_t *memory;

	bench_ring_bytes = RING_BYTES;
	if (bench_setup(state))
		return -1;
	ring.page = (size_t)sysconf(_SC_PAGESIZE);
	ring.fd = bpf_map__fd(bench->skel->maps.xroce_ring);
	ring.consumer = mmap(NULL, ring.page, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, 0);
	memory = mmap(NULL, ring.page + 2 * RING_BYTES, PROT_READ, MAP_SHARED, ring.fd,
		      (off_t)ring.page);
	ring.wakes = epoll_create1(EPOLL_CLOEXEC);
	if (ring.consumer == MAP_FAILED || memory == MAP_FAILED ||
	    epoll_ctl(ring.wakes, EPOLL_CTL_ADD, ring.fd, &event))
		return -1;
	ring.producer = (const unsigned long *)memory;
	ring.data = memory + ring.page;
	return 0;
}

static int teardown(void **state)
{
	close(ring.wakes);
	munmap((void *)ring.producer, ring.page + 2 * RING_BYTES);
	munmap(ring.consumer, ring.page);
	return bench_teardown(state);
}

static void reset(void)
{
	bench_reset();
	/* no socket */
	bench_put_xsk(0, false);
	*ring.consumer = *ring.producer;
}

/* True once for each time that the ring has woken its sleepers, unless all has been read since. */
static bool was_woken(int timeout_ms)
{
	struct epoll_event event;

	return epoll_wait(ring.wakes, &event, 1, timeout_ms) == 1;
}

/* Returns the next record or NULL. It must be whole and lie on its own cache lines. */
static const struct xroce_rx_record *next_record(void)
{
	const uint8_t *at = ring.data + (*ring.consumer & (RING_BYTES - 1));
	uint32_t len;

	if (*ring.consumer == *ring.producer)
		return NULL;
	memcpy(&len, at, sizeof(len));
	assert_false(len & (BUSY | DISCARD));
	assert_int_equal((8 + len) % 64, 0);
	assert_true(len >= sizeof(struct xroce_rx_record));
	*ring.consumer += 8 + len;
	return (const struct xroce_rx_record *)(at + 8);
}

/* Room that the record of a frame of len bytes takes. */
static uint32_t room(uint32_t len)
{
	uint32_t header;

	memcpy(&header, ring.data + (*ring.consumer & (RING_BYTES - 1)), sizeof(header));
	assert_true(header >= sizeof(struct xroce_rx_record) + len);
	return header - sizeof(struct xroce_rx_record);
}

static const struct xroce_rx_record *expect_record(const char *what, const uint8_t *frame,
						   uint32_t len, const struct bench_entry *entry)
{
	struct bench_counts before = bench_count(), after;
	const struct xroce_rx_record *r;
	int verdict = bench_run_with(frame, len, entry);

	after = bench_count();
	check(verdict == XDP_DROP, "%s: verdict %d", what, verdict);
	check(after.rx.dropped == before.rx.dropped, "%s: counted as dropped", what);
	check(after.rx.redirected == before.rx.redirected + 1, "%s: rx.redirected", what);
	check(after.rx.redirected_bytes == before.rx.redirected_bytes + len,
	      "%s: rx.redirected_bytes", what);
	check(*ring.consumer != *ring.producer, "%s: no record", what);
	room(len);
	r = next_record();
	check(r->len == len && r->pad == 0, "%s: %u bytes, want %u", what, r->len, len);
	check(memcmp(r->frame, frame, len) == 0, "%s: another frame", what);
	check(!next_record(), "%s: two records", what);
	return r;
}

/* ---- the content of a record ---- */

/* What cqe_write() puts before a packet that goes to a socket, test_parse.c has in full. */
static void deliver__hint(void **state)
{
	struct frame_spec s = bench_spec();
	const struct xroce_rx_record *r;
	struct xroce_qp qp;

	reset();
	s.opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY_IMM);
	s.ecn_qpn = BENCH_UD_QPN;
	s.bth_flags = BTH_SE;
	s.ext_len = 12;
	frame_put32(s.ext, BENCH_QKEY);
	frame_put32(s.ext + 4, 0x123456);
	frame_put32(s.ext + 8, 0xcafe0001);
	s.tos = 0x63;
	s.tags = 1;
	s.tag_proto[0] = 0x8100;
	s.tag_tci[0] = 0x2005;
	frame_build(&f, &s);
	r = expect_record("UD with an immediate", f.bytes, f.len, &(struct bench_entry){ 0 });
	assert_false(bench->has_cqe);
	assert_int_equal(r->cqe.qpn, BENCH_UD_QPN);
	assert_int_equal(r->cqe.src_qpn, 0x123456);
	assert_int_equal(ntohl(r->cqe.imm), 0xcafe0001);
	assert_int_equal(r->cqe.byte_len, 64);
	assert_int_equal(r->cqe.vlan_tci, 0x2005);
	assert_int_equal(r->cqe.opcode, s.opcode);
	assert_int_equal(r->cqe.flags,
			 XROCE_RX_IMM | XROCE_RX_SOLICITED | XROCE_RX_VLAN | XROCE_RX_CE);
	assert_int_equal(r->cqe.tos, 0x63);
	assert_int_equal(r->cqe.l3_offset, f.l3);
	assert_true(r->cqe.rx_time_ns > 0);
	assert_true(r->cqe.flow_tag != 0);
	qp = bench_get_qp(BENCH_UD_QPN);
	assert_int_equal(qp.rx_packets, 1);
	assert_int_equal(qp.rx_bytes, 64);
	assert_int_equal(qp.rx_dropped, 0);
	qp.with_time = qp.with_flow_tag = 0;
	bench_put_qp(BENCH_UD_QPN, &qp);
	r = expect_record("without time", f.bytes, f.len, &(struct bench_entry){ 0 });
	assert_int_equal(r->cqe.rx_time_ns, 0);
	assert_int_equal(r->cqe.flow_tag, 0);
}

/* Every size of room, one byte less, and one more: padding after the packet makes the lengths. */
static void deliver__every_size(void **state)
{
	static const uint32_t rooms[] = { 80,	144,   400,   656,   1168,  2192,  4240,
					  8144, 12240, 16336, 24528, 32720, 49104, 65616 };
	struct frame_spec s = bench_spec();

	reset();
	s.payload_len = 4;
	frame_build(&f, &s);
	for (size_t i = 0; i < BENCH_BYTES; i++)
		bytes[i] = (uint8_t)(i * 31 + i / 251);
	memcpy(bytes, f.bytes, f.len);
	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++)
		for (uint32_t len = rooms[i] - 1; len <= rooms[i] + 1 && len <= 65616; len++) {
			assert_int_equal(bench_run(bytes, len), XDP_DROP);
			assert_int_equal(room(len), rooms[len > rooms[i] ? i + 1 : i]);
			next_record();
			expect_record("of this length", bytes, len, &(struct bench_entry){ 0 });
		}
	bench_expect_drop("longer than any", bytes, 65617, XROCE_DROP_ring_full, BENCH_RC_QPN);
	assert_null(next_record());
}

/* The headers alone in the first piece. */
static void deliver__in_pieces(void **state)
{
	struct frame_spec s = bench_spec();

	reset();
	s.payload_len = 4096;
	frame_build(&f, &s);
	expect_record("in two pieces", f.bytes, f.len,
		      &(struct bench_entry){ .linear = f.bth + 12 });
}

static void deliver__super_packet(void **state)
{
	const struct xroce_rx_record *r;
	const uint32_t segments = 60, each = 1040, len = 42 + segments * each;
	struct frame_spec s = bench_spec();
	struct bench_counts before, after;
	struct frame sum;

	reset();
	s.payload_len = each - 16;
	frame_build(&f, &s);
	memset(bytes, 0xa5, sizeof(bytes));
	memcpy(bytes, f.bytes, f.len);
	frame_put16(bytes + f.l3 + 2, (uint16_t)(len - f.l3));
	frame_put16(bytes + f.l3 + 4, (uint16_t)each);
	frame_put16(bytes + f.l4 + 4, (uint16_t)(len - f.l4));
	/* only its headers are looked at */
	memcpy(sum.bytes, bytes, 64);
	sum.l3 = f.l3;
	sum.l4 = f.l4;
	sum.len = len;
	bench_sum_super(&sum);
	memcpy(bytes, sum.bytes, 64);
	before = bench_count();
	r = expect_record("super-packet", bytes, len, &(struct bench_entry){ 0 });
	after = bench_count();
	assert_true(r->cqe.flags & XROCE_RX_GSO);
	assert_int_equal(r->cqe.byte_len, (uint16_t)(segments * (each - 16)));
	assert_int_equal(after.rx.super_segments, before.rx.super_segments + segments);
	assert_int_equal(bench_get_qp(BENCH_RC_QPN).rx_packets, segments);
}

/* ---- undelivered packets ---- */

static void deliver__not_refused_packets(void **state)
{
	struct frame_spec s = bench_spec();

	reset();
	s.pkey = 0x8001;
	frame_build(&f, &s);
	bench_expect_drop("another P_Key", f.bytes, f.len, XROCE_DROP_pkey, BENCH_RC_QPN);
	s = bench_spec();
	s.ecn_qpn = 0x4321;
	frame_build(&f, &s);
	bench_expect_drop("no such QP", f.bytes, f.len, XROCE_DROP_qp_unknown, 0);
	s = bench_spec();
	s.dst[15] ^= 0x40;
	frame_build(&f, &s);
	bench_expect_pass("another's address", f.bytes, f.len, true);
	assert_null(next_record());
}

/* Counted, as the others' are at their sockets; what came before stays, and room is room again. */
static void deliver__full_ring(void **state)
{
	struct frame_spec s = bench_spec();
	const uint32_t fit = RING_BYTES / (8 + sizeof(struct xroce_rx_record) + 4240);
	struct bench_counts before;
	uint32_t records = 0;

	reset();
	s.payload_len = 4096;
	frame_build(&f, &s);
	for (uint32_t i = 0; i < fit; i++)
		assert_int_equal(bench_run(f.bytes, f.len), XDP_DROP);
	before = bench_count();
	bench_expect_drop("no room", f.bytes, f.len, XROCE_DROP_ring_full, BENCH_RC_QPN);
	assert_int_equal(bench_count().rx.redirected, before.rx.redirected);
	next_record();
	assert_int_equal(bench_run(f.bytes, f.len), XDP_DROP);
	bench_expect_drop("no room again", f.bytes, f.len, XROCE_DROP_ring_full, BENCH_RC_QPN);
	for (const struct xroce_rx_record *r; (r = next_record()); records++)
		assert_memory_equal(r->frame, f.bytes, f.len);
	assert_int_equal(records, fit);
	assert_int_equal(bench_get_qp(BENCH_RC_QPN).rx_packets, fit + 1);
}

/* ---- waking ---- */

/*
 * To a multicast group: the broker's program has found that members are here, so all groups' are
 * taken, and nothing else that is to no address of ours.
 */
static void deliver__to_a_group(void **state)
{
	struct frame_spec s = bench_spec();
	const struct bench_entry usual = { 0 };
	const struct xroce_rx_record *r;

	reset();
	s.opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY);
	s.ecn_qpn = ROCE_MULTICAST_QPN;
	s.ext_len = 8;
	frame_put32(s.ext + 4, 0x777);
	memcpy(s.dst + 12, (const uint8_t[]){ 239, 1, 2, 3 }, 4);
	frame_build(&f, &s);
	r = expect_record("group", f.bytes, f.len, &usual);
	assert_int_equal(r->cqe.qpn, ROCE_MULTICAST_QPN);
	assert_int_equal(r->cqe.src_qpn, 0x777);
	assert_true(r->cqe.rx_time_ns != 0);
	assert_int_equal(r->cqe.flags, 0);
	assert_false(was_woken(0));
	bench->vector[0].watched = 1;
	assert_int_equal(bench_run(f.bytes, f.len), XDP_DROP);
	assert_true(was_woken(1000));
	r = next_record();
	assert_int_equal(r->cqe.flags, XROCE_RX_UNANNOUNCED);
	assert_int_equal(bench->vector[0].unannounced, 1);
	s.ecn_qpn = BENCH_UD_QPN;
	frame_build(&f, &s);
	bench_expect_pass("to one QP", f.bytes, f.len, true);
	s.ecn_qpn = ROCE_MULTICAST_QPN;
	s.opcode = OPCODE(XROCE_RC, OP5_SEND_ONLY);
	s.ext_len = 0;
	frame_build(&f, &s);
	bench_expect_drop("no datagram", f.bytes, f.len, XROCE_DROP_qp_transport, 0);
	assert_null(next_record());
}

/* A ring in a slot of xroce_channel, for the receive CQ's wake-up records. */
static int put_channel(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "wakes", 0, 0, XROCE_RING_BYTES, NULL);
	uint32_t slot = CHANNEL;

	assert_true(fd >= 0);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(bench->skel->maps.xroce_channel), &slot,
					     &fd, BPF_ANY),
			 0);
	bench->cq[BENCH_RECV_CQ].channel = CHANNEL;
	return fd;
}

/* By queue 0, whichever the packet came by; arm words are for CQs that are not watched. */
static void deliver__wakes_watchers(void **state)
{
	struct frame_spec s = bench_spec();
	const uint32_t ifindex = bench_make_queues();
	const struct bench_entry entry = { .ifindex = ifindex, .queue = QUEUE };
	const struct xroce_rx_record *r;
	int channel;

	reset();
	channel = put_channel();
	frame_build(&f, &s);
	bench->vector[QUEUE].watched = 1;
	bench->cq[BENCH_RECV_CQ].armed = XROCE_CQ_ARMED_ANY;
	was_woken(0);
	assert_int_equal(bench_run_with(f.bytes, f.len, &entry), XDP_DROP);
	assert_false(was_woken(0));
	r = next_record();
	assert_false(r->cqe.flags & XROCE_RX_UNANNOUNCED);
	assert_int_equal(bench->vector[QUEUE].unannounced, 0);
	assert_int_equal(bench->cq[BENCH_RECV_CQ].armed, XROCE_CQ_DISARMED);

	bench->cq[BENCH_RECV_CQ].armed = XROCE_CQ_ARMED_ANY;
	bench->vector[QUEUE].watched = 0;
	bench->vector[0].watched = 1;
	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(bench_run_with(f.bytes, f.len, &entry), XDP_DROP);
		assert_true(was_woken(10000));
		assert_false(was_woken(0));
		r = next_record();
		assert_true(r->cqe.flags & XROCE_RX_UNANNOUNCED);
		assert_int_equal(bench->vector[0].unannounced, i);
	}
	assert_int_equal(bench->cq[BENCH_RECV_CQ].armed, XROCE_CQ_ARMED_ANY);
	close(channel);
	bench_unmake_queues();
}

/* A watched ring is woken by a record that follows ones another thread has not read yet. */
static void deliver__wakes_behind_unread_records(void **state)
{
	struct frame_spec s = bench_spec();

	reset();
	frame_build(&f, &s);
	assert_int_equal(bench_run(f.bytes, f.len), XDP_DROP);
	was_woken(0);
	bench->vector[0].watched = 1;
	assert_int_equal(bench_run(f.bytes, f.len), XDP_DROP);
	assert_true(was_woken(10000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deliver__hint),
		cmocka_unit_test(deliver__to_a_group),
		cmocka_unit_test(deliver__every_size),
		cmocka_unit_test(deliver__in_pieces),
		cmocka_unit_test(deliver__super_packet),
		cmocka_unit_test(deliver__not_refused_packets),
		cmocka_unit_test(deliver__full_ring),
		cmocka_unit_test(deliver__wakes_watchers),
		cmocka_unit_test(deliver__wakes_behind_unread_records),
	};

	return cmocka_run_group_tests_name("deliver", tests, setup, teardown);
}
