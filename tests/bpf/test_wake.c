/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The wake-ups by packets: arm words taken, records written, both once. The receive CQ and the send
 * CQ of the QPs have their own rings, of differing sizes, and the engine has a third.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>
#include <linux/capability.h>

#include "bench.h"

#define NO_CHANNEL 0
#define RECV_RING   3
#define SEND_RING   7

static struct frame f;

/* A ring in slot `channel` of xroce_channel, and the records read from it. */
struct ring {
	uint32_t channel;
	uint32_t bytes;
	int fd;
	struct ring_buffer *reader;
	unsigned int records; /* since the last drain() */
	struct xroce_wakeup last;
};

static struct ring rings[] = {
	{ .channel = NO_CHANNEL, .bytes = XROCE_RING_BYTES },
	{ .channel = RECV_RING, .bytes = XROCE_RING_BYTES },
	{ .channel = SEND_RING, .bytes = 4 * XROCE_RING_BYTES },
};
static struct ring *const engine_ring = &rings[0], *const recv_ring = &rings[1],
			  *const send_ring = &rings[2];

static int on_record(void *ctx, void *data, size_t size)
{
	struct ring *r = ctx;

	if (size != sizeof(r->last))
		return -EINVAL;
	memcpy(&r->last, data, size);
	r->records++;
	return 0;
}

static int channel_map(void)
{
	return bpf_map__fd(bench->skel->maps.xroce_channel);
}

static int setup(void **state)
{
	if (bench_setup(state))
		return -1;
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		struct ring *r = &rings[i];

		r->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "xroce_ring", 0, 0, r->bytes, NULL);
		if (r->fd < 0)
			return -1;
		r->reader = ring_buffer__new(r->fd, on_record, r, NULL);
		if (!r->reader)
			return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		ring_buffer__free(rings[i].reader);
		close(rings[i].fd);
	}
	return bench_teardown(state);
}

static void reset(void)
{
	bench_reset();
	bench->cq[BENCH_RECV_CQ].channel = RECV_RING;
	bench->cq[BENCH_SEND_CQ].channel = SEND_RING;
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++)
		assert_int_equal(bpf_map_update_elem(channel_map(), &rings[i].channel, &rings[i].fd,
						     BPF_ANY),
				 0);
}

/* Reads all rings: the number of records in each is in ->records. */
static void drain(void)
{
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		rings[i].records = 0;
		assert_true(ring_buffer__consume(rings[i].reader) >= 0);
	}
}

static struct frame_spec packet(uint8_t opcode, uint32_t qpn, uint32_t ext_len, bool solicited,
				uint8_t syndrome)
{
	struct frame_spec s = bench_spec();

	s.opcode = opcode;
	s.ecn_qpn = qpn;
	s.ext_len = ext_len;
	s.bth_flags = solicited ? BTH_SE : 0;
	if (qpn == BENCH_UD_QPN)
		frame_put32(s.ext, BENCH_QKEY);
	else
		s.ext[0] = syndrome;
	return s;
}

/* ---- which packets wake which CQ ---- */

enum side { NEITHER, RECV, SEND };

static const struct row {
	const char *what;
	uint8_t opcode;
	uint32_t ext_len;
	bool payload;
	bool solicited;
	uint8_t syndrome;
	enum side any;	     /* the CQ that fires when armed for any completion */
	bool solicited_only; /* it fires as well when armed for solicited completions only */
} rows[] = {
	{ "SEND first", 0x00, 0, true, false, 0, NEITHER, false },
	{ "SEND first, solicited", 0x00, 0, true, true, 0, NEITHER, false },
	{ "SEND middle", 0x01, 0, true, false, 0, NEITHER, false },
	{ "SEND last", 0x02, 0, true, false, 0, RECV, false },
	{ "SEND last, solicited", 0x02, 0, true, true, 0, RECV, true },
	{ "SEND last with immediate", 0x03, 4, true, false, 0, RECV, false },
	{ "SEND only", 0x04, 0, true, false, 0, RECV, false },
	{ "SEND only, solicited", 0x04, 0, true, true, 0, RECV, true },
	{ "SEND only with immediate, solicited", 0x05, 4, true, true, 0, RECV, true },
	{ "SEND last with invalidate", 0x16, 4, true, false, 0, RECV, false },
	{ "SEND only with invalidate, solicited", 0x17, 4, true, true, 0, RECV, true },
	{ "SEND only with immediate that looks like a NAK", 0x05, 4, true, false, 0x60, RECV,
	  false },
	{ "WRITE first", 0x06, 16, true, false, 0, NEITHER, false },
	{ "WRITE middle", 0x07, 0, true, false, 0, NEITHER, false },
	{ "WRITE last, solicited", 0x08, 0, true, true, 0, NEITHER, false },
	{ "WRITE last with immediate", 0x09, 4, true, false, 0, RECV, false },
	{ "WRITE last with immediate, solicited", 0x09, 4, true, true, 0, RECV, true },
	{ "WRITE only, solicited", 0x0a, 16, true, true, 0, NEITHER, false },
	{ "WRITE only with immediate", 0x0b, 20, true, false, 0, RECV, false },
	{ "READ request", 0x0c, 16, false, true, 0, NEITHER, false },
	{ "compare and swap", 0x13, 28, false, true, 0, NEITHER, false },
	{ "fetch and add", 0x14, 28, false, true, 0, NEITHER, false },
	{ "FLUSH", 0x1c, 20, false, true, 0, NEITHER, false },
	{ "ATOMIC WRITE", 0x1d, 16, true, true, 0, NEITHER, false },
	{ "READ response first", 0x0d, 4, true, false, 0x1f, SEND, false },
	{ "READ response middle", 0x0e, 0, true, false, 0, SEND, false },
	{ "READ response last", 0x0f, 4, true, false, 0x1f, SEND, false },
	{ "READ response only", 0x10, 4, true, false, 0x1f, SEND, false },
	{ "ACK", 0x11, 4, false, false, 0x1f, SEND, false },
	{ "ACK, solicited bit set", 0x11, 4, false, true, 0x00, SEND, false },
	{ "sequence NAK", 0x11, 4, false, false, 0x60, SEND, false },
	{ "remote access NAK", 0x11, 4, false, false, 0x62, SEND, true },
	{ "RNR NAK", 0x11, 4, false, false, 0x2e, SEND, false },
	{ "atomic response", 0x12, 12, false, false, 0x1f, SEND, false },
	{ "CNP", OPCODE_CNP, 16, false, false, 0, NEITHER, false },
};

/*
 * Which ring got a record for the row's packet with both CQs armed like this; asserts all that must
 * go with it.
 */
static void check_row(const struct row *row, uint32_t recv_arm, uint32_t send_arm, enum side want)
{
	struct frame_spec s =
		packet(row->opcode, BENCH_RC_QPN, row->ext_len, row->solicited, row->syndrome);
	struct bench_counts before = bench_count(), after;
	struct ring *fired = want == RECV ? recv_ring : send_ring;
	uint32_t cq = want == RECV ? BENCH_RECV_CQ : BENCH_SEND_CQ;
	struct xroce_qp qp = bench_get_qp(BENCH_RC_QPN);
	uint64_t cq_wakeups = bench->cq[cq].wakeups;

	s.payload_len = row->payload ? 64 : 0;
	frame_build(&f, &s);
	bench->cq[BENCH_RECV_CQ].armed = recv_arm;
	bench->cq[BENCH_SEND_CQ].armed = send_arm;
	check(bench_run(f.bytes, f.len) == XDP_REDIRECT, "%s: verdict %d", row->what,
	      bench->verdict);
	drain();
	after = bench_count();
	check(recv_ring->records == (want == RECV), "%s, armed %u/%u: %u receive records",
	      row->what, recv_arm, send_arm, recv_ring->records);
	check(send_ring->records == (want == SEND), "%s, armed %u/%u: %u send records", row->what,
	      recv_arm, send_arm, send_ring->records);
	check(engine_ring->records == 0, "%s: the engine was awake and woken", row->what);
	check(bench->cq[BENCH_RECV_CQ].armed == (want == RECV ? 0 : recv_arm),
	      "%s: receive arm word", row->what);
	check(bench->cq[BENCH_SEND_CQ].armed == (want == SEND ? 0 : send_arm), "%s: send arm word",
	      row->what);
	check(after.rx.cq_wakeups - before.rx.cq_wakeups == (want != NEITHER), "%s: rx.cq_wakeups",
	      row->what);
	check(after.rx.engine_wakeups == before.rx.engine_wakeups, "%s: rx.engine_wakeups",
	      row->what);
	check(bench_get_qp(BENCH_RC_QPN).wakeups - qp.wakeups == (want != NEITHER),
	      "%s: the QP's wakeups", row->what);
	check(bench->cq[cq].wakeups - cq_wakeups == (want != NEITHER), "%s: the CQ's wakeups",
	      row->what);
	if (want == NEITHER)
		return;
	check(fired->last.cq == cq && fired->last.qpn == BENCH_RC_QPN, "%s: record {%u, %x}",
	      row->what, fired->last.cq, fired->last.qpn);
}

static void wake_cq__row(void **state)
{
	const struct row *row = *state;

	reset();
	check_row(row, XROCE_CQ_ARMED_ANY, XROCE_CQ_ARMED_ANY, row->any);
	check_row(row, XROCE_CQ_ARMED_SOLICITED, XROCE_CQ_ARMED_SOLICITED,
		  row->solicited_only ? row->any : NEITHER);
	check_row(row, XROCE_CQ_DISARMED, XROCE_CQ_DISARMED, NEITHER);
	check_row(row, XROCE_CQ_ARMED_ANY, XROCE_CQ_DISARMED, row->any == RECV ? RECV : NEITHER);
	check_row(row, XROCE_CQ_DISARMED, XROCE_CQ_ARMED_ANY, row->any == SEND ? SEND : NEITHER);
	check_row(row, 3, 3, NEITHER); /* a value that user space never stores arms nothing */
}

static void wake_cq__ud(void **state)
{
	struct frame_spec s = packet(OPCODE(XROCE_UD, OP5_SEND_ONLY), BENCH_UD_QPN, 8, true, 0);

	reset();
	frame_build(&f, &s);
	bench->cq[BENCH_RECV_CQ].armed = XROCE_CQ_ARMED_SOLICITED;
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	drain();
	assert_int_equal(recv_ring->records, 1);
	assert_int_equal(recv_ring->last.qpn, BENCH_UD_QPN);
}

/* ---- which responses complete something, as the engine says ---- */

static const struct expect_row {
	uint32_t first;	/* with XROCE_EXPECTED, or 0 */
	uint8_t opcode, syndrome;
	uint32_t psn;
	bool wakes;
} expect_rows[] = {
	/* nothing signaled is out */
	{ 0, OP5_ACKNOWLEDGE, 0x1f, 0, false },
	{ 0, OP5_ACKNOWLEDGE, 0x1f, 0x1000, false },
	{ 0x1000, OP5_ACKNOWLEDGE, 0x1f, 0x1000, false }, /* the bit decides, not the number */
	{ 0, OP5_READ_RESPONSE_ONLY, 0x1f, 0x1000, false },
	{ 0, OP5_ATOMIC_ACKNOWLEDGE, 0x1f, 0x1000, false },
	/* an ACK covers its own PSN and all before it */
	{ XROCE_EXPECTED | 0x1000, OP5_ACKNOWLEDGE, 0x1f, 0xfff, false },
	{ XROCE_EXPECTED | 0x1000, OP5_ACKNOWLEDGE, 0x1f, 0x1000, true },
	{ XROCE_EXPECTED | 0x1000, OP5_ACKNOWLEDGE, 0x1f, 0x1001, true },
	{ XROCE_EXPECTED | 0x1000, OP5_READ_RESPONSE_ONLY, 0x1f, 0xfff, false },
	{ XROCE_EXPECTED | 0x1000, OP5_READ_RESPONSE_LAST, 0x1f, 0x1000, true },
	{ XROCE_EXPECTED | 0x1000, OP5_ATOMIC_ACKNOWLEDGE, 0x1f, 0x1000, true },
	/* a response that is not an answer's end covers only earlier requests */
	{ XROCE_EXPECTED | 0x1000, OP5_READ_RESPONSE_FIRST, 0x1f, 0x1000, false },
	{ XROCE_EXPECTED | 0x1000, OP5_READ_RESPONSE_MIDDLE, 0, 0x1000, false },
	{ XROCE_EXPECTED | 0x1000, OP5_READ_RESPONSE_FIRST, 0x1f, 0x1001, true },
	{ XROCE_EXPECTED | 0x1000, OP5_READ_RESPONSE_MIDDLE, 0, 0x1001, true },
	/* PSNs go round */
	{ XROCE_EXPECTED | 0xffffff, OP5_ACKNOWLEDGE, 0x1f, 0xfffffe, false },
	{ XROCE_EXPECTED | 0xffffff, OP5_ACKNOWLEDGE, 0x1f, 0, true },
	{ XROCE_EXPECTED, OP5_ACKNOWLEDGE, 0x1f, 0xffffff, false },
	{ XROCE_EXPECTED, OP5_ACKNOWLEDGE, 0x1f, 0x7fffff, true },
	{ XROCE_EXPECTED, OP5_ACKNOWLEDGE, 0x1f, 0x800000, false },
	/* a NAK for a loss, or a missing receive, covers earlier requests */
	{ XROCE_EXPECTED | 0x1000, OP5_ACKNOWLEDGE, 0x60, 0x1000, false },
	{ XROCE_EXPECTED | 0x1000, OP5_ACKNOWLEDGE, 0x60, 0x1001, true },
	{ XROCE_EXPECTED | 0x1000, OP5_ACKNOWLEDGE, 0x2e, 0x1000, false },
	{ XROCE_EXPECTED | 0x1000, OP5_ACKNOWLEDGE, 0x2e, 0x1001, true },
	{ XROCE_EXPECTED, OP5_ACKNOWLEDGE, 0x60, 0, false },
	{ XROCE_EXPECTED | 0xffffff, OP5_ACKNOWLEDGE, 0x60, 0, true },
	{ 0, OP5_ACKNOWLEDGE, 0x60, 0x1000, false },
	/* the others are errors, of any request */
	{ 0, OP5_ACKNOWLEDGE, 0x61, 0x1000, true },
	{ XROCE_EXPECTED | 0x1000, OP5_ACKNOWLEDGE, 0x62, 0xfff, true },
	{ 0, OP5_ACKNOWLEDGE, 0x63, 0x1000, true },
};

static void wake_cq__only_if_something_is_seen(void **state)
{
	for (size_t i = 0; i < sizeof(expect_rows) / sizeof(expect_rows[0]); i++) {
		const struct expect_row *row = &expect_rows[i];
		struct frame_spec s = packet(row->opcode, BENCH_RC_QPN,
					     row->opcode == OP5_ATOMIC_ACKNOWLEDGE     ? 12
					     : row->opcode == OP5_READ_RESPONSE_MIDDLE ? 0
										       : 4,
					     false, row->syndrome);

		reset();
		s.ack_psn = row->psn | 0x7f000000; /* reserved bits are no part of it */
		s.payload_len = row->opcode == OP5_ACKNOWLEDGE ||
						row->opcode == OP5_ATOMIC_ACKNOWLEDGE
					? 0
					: 64;
		frame_build(&f, &s);
		bench->expect[XROCE_QP_SLOT(BENCH_RC_QPN)].psn = row->first;
		bench->cq[BENCH_SEND_CQ].armed = XROCE_CQ_ARMED_ANY;
		check(bench_run(f.bytes, f.len) == XDP_REDIRECT, "row %zu: verdict %d", i,
		      bench->verdict);
		drain();
		check(send_ring->records == row->wakes, "row %zu: %u records", i,
		      send_ring->records);
		check(bench->cq[BENCH_SEND_CQ].armed == !row->wakes, "row %zu: the arm word", i);
	}
}

/* ---- super-packets ---- */

#define SEGMENT 84u /* UDP payload of each: a BTH, 68 bytes, an ICRC */

/*
 * SEND_MIDDLEs, which complete nothing, and first, in their midst, or last, the row's packet, as
 * number `at`. Of the first XDP checks the lengths.
 */
static void build_super(const struct row *row, uint32_t segments, uint32_t at, uint32_t qpn)
{
	struct frame_spec s = packet(0x01, BENCH_RC_QPN, 0, false, 0);
	const uint32_t size = at || row->payload ? SEGMENT : 16 + row->ext_len;
	uint8_t *bth;

	s.payload_len = segments * size - 16;
	frame_build(&f, &s);
	for (uint32_t i = 1; i < segments; i++)
		memcpy(f.bytes + f.bth + i * size, f.bytes + f.bth, 12);
	bth = f.bytes + f.bth + at * size;
	bth[0] = row->opcode;
	bth[1] = row->solicited ? BTH_SE : 0;
	frame_put32(bth + 4, qpn);
	bth[12] = row->syndrome;
	frame_put16(f.bytes + f.l3 + 4, size);
	bench_sum_super(&f);
}

static void check_super(const struct row *row, uint32_t segments, uint32_t at, uint32_t arm,
			enum side want)
{
	build_super(row, segments, at, BENCH_RC_QPN);
	bench->cq[BENCH_RECV_CQ].armed = bench->cq[BENCH_SEND_CQ].armed = arm;
	check(bench_run(f.bytes, f.len) == XDP_REDIRECT, "%s: verdict %d", row->what,
	      bench->verdict);
	check(bench->cqe.flags & XROCE_RX_GSO, "%s: no super-packet", row->what);
	drain();
	check(recv_ring->records == (want == RECV),
	      "%s, packet %u of %u, armed %u: %u receive records", row->what, at, segments, arm,
	      recv_ring->records);
	check(send_ring->records == (want == SEND),
	      "%s, packet %u of %u, armed %u: %u send records", row->what, at, segments, arm,
	      send_ring->records);
}

/* Any packet of a super-packet may complete a message. */
static void wake_cq__super(void **state)
{
	static const uint32_t counts[] = { 2, 3, 50 };

	reset();
	for (const struct row *row = rows; row < rows + sizeof(rows) / sizeof(rows[0]); row++)
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
			for (uint32_t at = 0; at < counts[i];
			     at += at == 1 && counts[i] > 2 ? counts[i] - 2 : 1) {
				check_super(row, counts[i], at, XROCE_CQ_ARMED_ANY, row->any);
				check_super(row, counts[i], at, XROCE_CQ_ARMED_SOLICITED,
					    row->solicited_only ? row->any : NEITHER);
				check_super(row, counts[i], at, XROCE_CQ_DISARMED, NEITHER);
			}
}

/* Of both kinds, and one record for each all the same. */
static void wake_cq__super_of_both(void **state)
{
	const struct row last = { .opcode = 0x02 }, ack = { .opcode = 0x11, .syndrome = 0x1f };
	uint8_t bth[16];

	reset();
	build_super(&ack, 6, 4, BENCH_RC_QPN);
	memcpy(bth, f.bytes + f.bth + 4 * SEGMENT, sizeof(bth));
	build_super(&last, 6, 2, BENCH_RC_QPN);
	memcpy(f.bytes + f.bth + 4 * SEGMENT, bth, sizeof(bth));
	memcpy(f.bytes + f.bth + 5 * SEGMENT, bth, sizeof(bth));
	bench->cq[BENCH_RECV_CQ].armed = bench->cq[BENCH_SEND_CQ].armed = XROCE_CQ_ARMED_ANY;
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	drain();
	assert_int_equal(recv_ring->records, 1);
	assert_int_equal(send_ring->records, 1);
	/* another QP's packet completes nothing of this one's */
	build_super(&last, 6, 2, BENCH_UC_QPN);
	bench->cq[BENCH_RECV_CQ].armed = XROCE_CQ_ARMED_ANY;
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	drain();
	assert_int_equal(recv_ring->records, 0);
}

/* ---- one-shot, lost and full rings ---- */

static void wake_cq__one_shot(void **state)
{
	struct frame_spec s = bench_spec();

	reset();
	frame_build(&f, &s);
	bench->cq[BENCH_RECV_CQ].armed = XROCE_CQ_ARMED_ANY;
	for (int i = 0; i < 5; i++)
		assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	drain();
	assert_int_equal(recv_ring->records, 1);
	bench->cq[BENCH_RECV_CQ].armed = XROCE_CQ_ARMED_ANY;
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	drain();
	assert_int_equal(recv_ring->records, 1);
}

/* The record has a forced wake-up: a sleeper's epoll reports it. */
static void wake_cq__makes_the_ring_readable(void **state)
{
	struct frame_spec s = bench_spec();
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(0);

	reset();
	assert_true(epoll >= 0);
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, recv_ring->fd, &event), 0);
	frame_build(&f, &s);
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	assert_int_equal(epoll_wait(epoll, &event, 1, 0), 0);
	bench->cq[BENCH_RECV_CQ].armed = XROCE_CQ_ARMED_ANY;
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	assert_int_equal(epoll_wait(epoll, &event, 1, 0), 1);
	drain();
	assert_int_equal(epoll_wait(epoll, &event, 1, 0), 0);
	close(epoll);
}

/* An arm word is never taken for nothing. */
static void wake_cq__keeps_the_arm_without_a_ring(void **state)
{
	static const uint32_t channels[] = { NO_CHANNEL, 8, XROCE_MAX_CHANNEL + 1, ~0u };
	struct frame_spec s = bench_spec();

	reset();
	frame_build(&f, &s);
	for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
		bench->cq[BENCH_RECV_CQ].channel = channels[i];
		bench->cq[BENCH_RECV_CQ].armed = XROCE_CQ_ARMED_ANY;
		assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
		drain();
		assert_int_equal(engine_ring->records + recv_ring->records + send_ring->records, 0);
		assert_int_equal(bench->cq[BENCH_RECV_CQ].armed, XROCE_CQ_ARMED_ANY);
	}
}

/* The worker of the packet's queue is woken for the CQ. */
static void wake_cq__of_a_channel_without_a_ring(void **state)
{
	struct frame_spec s = bench_spec();

	reset();
	frame_build(&f, &s);
	bench->cq[BENCH_RECV_CQ].channel = XROCE_CHANNEL_WORKER;
	bench->cq[BENCH_RECV_CQ].armed = XROCE_CQ_ARMED_ANY;
	for (int i = 0; i < 2; i++)
		assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	drain();
	assert_int_equal(engine_ring->records, 1);
	assert_int_equal(engine_ring->last.cq, BENCH_RECV_CQ);
	assert_int_equal(engine_ring->last.qpn, BENCH_RC_QPN);
	assert_int_equal(recv_ring->records + send_ring->records, 0);
	assert_int_equal(bench->cq[BENCH_RECV_CQ].armed, XROCE_CQ_DISARMED);
}

static void wake_cq__cq_number_beyond_the_map(void **state)
{
	struct xroce_qp qp;
	struct frame_spec s = bench_spec();

	reset();
	qp = bench_get_qp(BENCH_RC_QPN);
	qp.recv_cq = XROCE_MAX_CQ;
	bench_put_qp(BENCH_RC_QPN, &qp);
	frame_build(&f, &s);
	bench_expect_redirect("CQ that is not there", f.bytes, f.len, BENCH_RC_QPN);
}

/* A reader that never reads: packets go on, and it finds a full ring of records. */
static void wake_cq__full_ring(void **state)
{
	struct frame_spec s = bench_spec();

	reset();
	frame_build(&f, &s);
	for (unsigned int i = 0; i < 2 * XROCE_RING_BYTES / 16; i++) {
		bench->cq[BENCH_RECV_CQ].armed = XROCE_CQ_ARMED_ANY;
		assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	}
	drain();
	assert_in_range(recv_ring->records, XROCE_RING_BYTES / 16 - 1, XROCE_RING_BYTES / 16);
}

/* A dropped or passed packet completes nothing. */
static void wake_sleepers__not_for_refused_packets(void **state)
{
	struct frame_spec s = bench_spec();

	reset();
	bench->cq[BENCH_RECV_CQ].armed = bench->cq[BENCH_SEND_CQ].armed = XROCE_CQ_ARMED_ANY;
	bench->vector[0].asleep = 1;
	s.pkey = 0xfffe;
	frame_build(&f, &s);
	assert_int_equal(bench_run(f.bytes, f.len), XDP_DROP);
	s = bench_spec();
	frame_build(&f, &s);
	bench_put_xsk(0, false);
	assert_int_equal(bench_run(f.bytes, f.len), XDP_DROP);
	s.dst[15] = 99;
	frame_build(&f, &s);
	assert_int_equal(bench_run(f.bytes, f.len), XDP_PASS);
	drain();
	assert_int_equal(engine_ring->records + recv_ring->records + send_ring->records, 0);
	assert_int_equal(bench->vector[0].asleep, 1);
	assert_int_equal(bench->cq[BENCH_RECV_CQ].armed, XROCE_CQ_ARMED_ANY);
}

/*
 * Threads sleep on the queue's socket: the packet is marked and counted, without a record, and all
 * arm words stay for the next packet's sleepers.
 */
static void wake_sleepers__not_while_watched(void **state)
{
	struct frame_spec s = bench_spec();
	struct bench_counts before;

	reset();
	frame_build(&f, &s);
	before = bench_count();
	bench->cq[BENCH_RECV_CQ].armed = bench->cq[BENCH_SEND_CQ].armed = XROCE_CQ_ARMED_ANY;
	bench->vector[0].asleep = bench->vector[0].watched = 1;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
		assert_true(bench->cqe.flags & XROCE_RX_UNANNOUNCED);
	}
	drain();
	assert_int_equal(engine_ring->records + recv_ring->records + send_ring->records, 0);
	assert_int_equal(bench->vector[0].unannounced, 3);
	assert_int_equal(bench->vector[0].asleep, 1);
	assert_int_equal(bench->cq[BENCH_RECV_CQ].armed, XROCE_CQ_ARMED_ANY);
	assert_int_equal(bench_count().rx.redirected - before.rx.redirected, 3);

	bench->vector[0].watched = 0;
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	drain();
	assert_false(bench->cqe.flags & XROCE_RX_UNANNOUNCED);
	assert_int_equal(recv_ring->records, 1);
	assert_int_equal(engine_ring->records, 1);
	assert_int_equal(bench->vector[0].unannounced, 3);
}

/* A marked packet that did not reach the socket is not waited for. */
static void wake_sleepers__counts_what_is_redirected(void **state)
{
	struct frame_spec s = bench_spec();

	reset();
	frame_build(&f, &s);
	bench->vector[0].watched = 1;
	bench_put_xsk(0, false);
	assert_int_equal(bench_run(f.bytes, f.len), XDP_DROP);
	assert_int_equal(bench->vector[0].unannounced, 0);
}

/* ---- the engine ---- */

static void wake_engine__asleep(void **state)
{
	struct frame_spec s = packet(OPCODE(XROCE_RC, OP5_SEND_FIRST), BENCH_RC_QPN, 0, false, 0);
	struct bench_counts before = bench_count(), after;

	reset();
	frame_build(&f, &s);
	bench->vector[0].asleep = 1;
	for (int i = 0; i < 3; i++)
		assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	drain();
	after = bench_count();
	assert_int_equal(engine_ring->records, 1);
	assert_int_equal(engine_ring->last.cq, ~0u);
	assert_int_equal(engine_ring->last.qpn, BENCH_RC_QPN);
	assert_int_equal(recv_ring->records + send_ring->records, 0);
	assert_int_equal(bench->vector[0].asleep, 0);
	assert_int_equal(bench->vector[0].wakeups, 1);
	assert_int_equal(after.rx.engine_wakeups - before.rx.engine_wakeups, 1);
	assert_int_equal(after.rx.cq_wakeups - before.rx.cq_wakeups, 0);
}

/*
 * By the queue that the packet came by, through the ring that user space names for it; the other
 * queues' words stay.
 */
static void wake_engine__by_queue(void **state)
{
	static const struct {
		uint32_t queue, ring;
		struct ring *woken; /* NULL: nothing */
	} choices[] = {
		{ 0, NO_CHANNEL, &rings[0] },
		{ 1, NO_CHANNEL, &rings[0] },
		{ 1, RECV_RING, &rings[1] },
		{ 5, SEND_RING, &rings[2] },
		{ XROCE_MAX_QUEUE - 1, RECV_RING, &rings[1] },
		{ 2, 1, NULL },
		{ 2, XROCE_MAX_CHANNEL, NULL },
	};
	struct frame_spec s = packet(OPCODE(XROCE_RC, OP5_SEND_FIRST), BENCH_RC_QPN, 0, false, 0);

	const uint32_t ifindex = bench_make_queues();

	frame_build(&f, &s);
	for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++) {
		const struct bench_entry entry = { .ifindex = ifindex, .queue = choices[i].queue };
		struct bench_counts before = bench_count();

		reset();
		bench_put_xsk(entry.queue, true);
		for (uint32_t q = 0; q < XROCE_MAX_QUEUE; q++)
			bench->vector[q].asleep = 1;
		bench->vector[entry.queue].ring = choices[i].ring;
		for (int n = 0; n < 3; n++)
			assert_int_equal(bench_run_with(f.bytes, f.len, &entry), XDP_REDIRECT);
		drain();
		for (size_t r = 0; r < sizeof(rings) / sizeof(rings[0]); r++)
			check(rings[r].records == (&rings[r] == choices[i].woken),
			      "queue %u, ring %u: %u records in ring %u", entry.queue,
			      choices[i].ring, rings[r].records, rings[r].channel);
		for (uint32_t q = 0; q < XROCE_MAX_QUEUE; q++) {
			const bool taken = q == entry.queue && choices[i].woken;

			check(bench->vector[q].asleep == !taken, "queue %u: asleep of queue %u",
			      entry.queue, q);
			check(bench->vector[q].wakeups == taken, "queue %u: wakeups of queue %u",
			      entry.queue, q);
		}
		assert_int_equal(bench_count().rx.engine_wakeups - before.rx.engine_wakeups,
				 choices[i].woken != NULL);
	}
	bench_unmake_queues();
}

/* The application is hinted and the engine is woken: the application may be slow to come. */
static void wake_engine__beside_the_cq(void **state)
{
	struct frame_spec s = bench_spec();

	reset();
	frame_build(&f, &s);
	bench->vector[0].asleep = 1;
	bench->cq[BENCH_RECV_CQ].armed = XROCE_CQ_ARMED_ANY;
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	drain();
	assert_int_equal(engine_ring->records, 1);
	assert_int_equal(recv_ring->records, 1);
	assert_int_equal(bench->vector[0].asleep, 0);
	assert_int_equal(bench->cq[BENCH_RECV_CQ].armed, 0);
}

static void wake_engine__keeps_asleep_without_a_ring(void **state)
{
	struct frame_spec s = bench_spec();
	uint32_t channel = NO_CHANNEL;

	reset();
	assert_int_equal(bpf_map_delete_elem(channel_map(), &channel), 0);
	frame_build(&f, &s);
	bench->vector[0].asleep = 1;
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	assert_int_equal(bench->vector[0].asleep, 1);
}

/* ---- privileges ---- */

/*
 * The verifier is stricter with programs of processes that lack CAP_PERFMON: ours must load with
 * the three capabilities that opening a device asks for.
 */
static void load__with_three_capabilities(void **state)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { { 0 } };
	const int wanted[] = { CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF };
	int status;
	pid_t child;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		caps[wanted[i] / 32].effective |= 1u << wanted[i] % 32;
	caps[0].permitted = caps[0].effective;
	caps[1].permitted = caps[1].effective;
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(syscall(SYS_capset, &header, caps) == 0 && xroce_bpf__open_and_load() ? 0 :
											      1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest single[] = {
		cmocka_unit_test(wake_cq__ud),
		cmocka_unit_test(wake_cq__only_if_something_is_seen),
		cmocka_unit_test(wake_cq__super),
		cmocka_unit_test(wake_cq__super_of_both),
		cmocka_unit_test(wake_cq__one_shot),
		cmocka_unit_test(wake_cq__makes_the_ring_readable),
		cmocka_unit_test(wake_cq__keeps_the_arm_without_a_ring),
		cmocka_unit_test(wake_cq__of_a_channel_without_a_ring),
		cmocka_unit_test(wake_cq__cq_number_beyond_the_map),
		cmocka_unit_test(wake_cq__full_ring),
		cmocka_unit_test(wake_sleepers__not_for_refused_packets),
		cmocka_unit_test(wake_sleepers__not_while_watched),
		cmocka_unit_test(wake_sleepers__counts_what_is_redirected),
		cmocka_unit_test(wake_engine__asleep),
		cmocka_unit_test(wake_engine__by_queue),
		cmocka_unit_test(wake_engine__beside_the_cq),
		cmocka_unit_test(wake_engine__keeps_asleep_without_a_ring),
		cmocka_unit_test(load__with_three_capabilities),
	};
	enum { ROWS = sizeof(rows) / sizeof(rows[0]), SINGLE = sizeof(single) / sizeof(single[0]) };
	static struct CMUnitTest tests[ROWS + SINGLE];
	static char names[ROWS][96];

	for (size_t i = 0; i < ROWS; i++) {
		snprintf(names[i], sizeof(names[i]), "wake_cq__row(%s)", rows[i].what);
		tests[i] = (struct CMUnitTest){ .name = names[i],
						.test_func = wake_cq__row,
						.initial_state = (void *)&rows[i] };
	}
	memcpy(tests + ROWS, single, sizeof(single));
	return _cmocka_run_group_tests("wake", tests, ROWS + SINGLE, setup, teardown);
}
