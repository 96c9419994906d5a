/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Copies of frames for sniffers and for flows that do not trap: a record of each frame that the
 * process would not see otherwise, byte for byte, and the frame's own way as it is without them.
 * Whose the copies are, tests/unit/test_raw.c has.
 */
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
#define BUSY	   (1u << 31)
#define DISCARD	   (1u << 30)
#define RAW_QPN	   0x15
#define LONGEST	   1518
#define OTHER_PORT 5000
#define SEGMENT	   80u /* UDP payload of each packet of a super-packet */

static struct frame f;

/* The ring as its reader maps it. */
static struct {
	int fd, wakes;
	unsigned long *consumer;
	const unsigned long *producer;
	const uint8_t *data;
	size_t page;
} ring;

static int copies_map(void)
{
	return bpf_map__fd(bench->skel->maps.xroce_copies);
}

static int setup(void **state)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	uint8_t *memory;

	if (bench_setup(state))
		return -1;
	ring.page = (size_t)sysconf(_SC_PAGESIZE);
	ring.fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, NULL, 0, 0, RING_BYTES, NULL);
	ring.wakes = epoll_create1(EPOLL_CLOEXEC);
	if (ring.fd < 0 || ring.wakes < 0)
		return -1;
	ring.consumer = mmap(NULL, ring.page, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, 0);
	memory = mmap(NULL, ring.page + 2 * RING_BYTES, PROT_READ, MAP_SHARED, ring.fd,
		      (off_t)ring.page);
	if (ring.consumer == MAP_FAILED || memory == MAP_FAILED ||
	    epoll_ctl(ring.wakes, EPOLL_CTL_ADD, ring.fd, &event))
		return -1;
	ring.producer = (const unsigned long *)memory;
	ring.data = memory + ring.page;
	return 0;
}

static int teardown(void **state)
{
	munmap((void *)ring.producer, ring.page + 2 * RING_BYTES);
	munmap(ring.consumer, ring.page);
	close(ring.wakes);
	close(ring.fd);
	return bench_teardown(state);
}

static void put_ring(bool present)
{
	const uint32_t zero = 0;

	if (present)
		assert_int_equal(bpf_map_update_elem(copies_map(), &zero, &ring.fd, BPF_ANY), 0);
	else
		bpf_map_delete_elem(copies_map(), &zero);
}

/* The next record; NULL: there is none. */
static const struct xroce_rx_record *next_record(void)
{
	const uint8_t *at = ring.data + (*ring.consumer & (RING_BYTES - 1));
	uint32_t len;

	if (*ring.consumer == *ring.producer)
		return NULL;
	memcpy(&len, at, sizeof(len));
	*ring.consumer += 8 + (unsigned long)(len & ~(BUSY | DISCARD));
	assert_false(len & (BUSY | DISCARD));
	assert_int_equal((8 + len) % 64, 0);
	return (const struct xroce_rx_record *)(at + 8);
}

static bool was_woken(void)
{
	struct epoll_event event;

	return epoll_wait(ring.wakes, &event, 1, 0) == 1;
}

static void put_flow(uint32_t key, const struct xroce_flow *flow)
{
	const int fd = bpf_map__fd(bench->skel->maps.xroce_flow);

	assert_int_equal(bpf_map_update_elem(fd, &key, flow, BPF_ANY), 0);
}

static void put_flows(uint32_t num)
{
	const struct xroce_flows flows = { .num = { num, 0 }, .longest = LONGEST };
	const uint32_t zero = 0;
	const int fd = bpf_map__fd(bench->skel->maps.xroce_flows);

	assert_int_equal(bpf_map_update_elem(fd, &zero, &flows, BPF_ANY), 0);
}

/* A flow of any frame, or of frames to OTHER_PORT, with this action. Counter 0: it does not
 * count. */
static struct xroce_flow flow_of(uint32_t actions, uint32_t order, bool port, uint32_t counter)
{
	struct xroce_flow flow = {
		.qpn = RAW_QPN, .actions = actions, .order = order, .counter = counter
	};

	if (port) {
		flow.value.dport = htobe16(OTHER_PORT);
		flow.mask.dport = 0xffff;
	}
	return flow;
}

static void put_sniffer(void)
{
	const struct xroce_flow sniffer = flow_of(XROCE_FLOW_COPY, 0, false, 0);

	put_flow(0, &sniffer);
	put_flows(1);
}

/* Flow 0 has copies of all; the frame is UDP to OTHER_PORT. */
static void reset(void)
{
	struct frame_spec s = bench_spec();
	const struct xroce_qp qp = { .transport = XROCE_RAW,
				     .receiving = true,
				     .recv_cq = BENCH_RECV_CQ,
				     .send_cq = BENCH_SEND_CQ };

	bench_reset();
	bench_put_qp(RAW_QPN, &qp);
	put_ring(true);
	*ring.consumer = *ring.producer;
	was_woken();
	bench->skel->bss->xroce_copying = 1;
	put_sniffer();
	frame_build(&f, &s);
	frame_put16(f.bytes + 14 + 20 + 2, OTHER_PORT);
}

static uint64_t packets(uint32_t counter)
{
	return bench_flow_count(counter).packets;
}

/* One record more, of this frame, and nothing after it. */
static void expect_copy(const char *what, const uint8_t *bytes, uint32_t len, uint32_t kind,
			uint32_t flags, uint32_t l3)
{
	const struct xroce_rx_record *r = next_record();

	check(r, "%s: no copy", what);
	check(r->len == len && !r->pad, "%s: %u bytes, want %u", what, r->len, len);
	check(!memcmp(r->frame, bytes, len), "%s: another frame", what);
	check(r->cqe.opcode == kind, "%s: of kind %u", what, r->cqe.opcode);
	check(r->cqe.flags == flags, "%s: flags %#x", what, r->cqe.flags);
	check(r->cqe.l3_offset == l3, "%s: IP at %u", what, r->cqe.l3_offset);
	check(r->cqe.rx_time_ns, "%s: no time", what);
	check(!next_record(), "%s: two copies", what);
}

static void expect_no_copy(const char *what)
{
	check(!next_record(), "%s: a copy", what);
}

static void expect_copies(const char *what, const struct bench_counts *before, uint64_t copied,
			  uint64_t lost)
{
	const struct bench_counts now = bench_count();

	check(now.rx.copied - before->rx.copied == copied, "%s: %llu counted as copied", what,
	      (unsigned long long)(now.rx.copied - before->rx.copied));
	check(now.rx.copies_lost - before->rx.copies_lost == lost, "%s: %llu counted as lost",
	      what, (unsigned long long)(now.rx.copies_lost - before->rx.copies_lost));
}

static void sniff__what_passes(void **state)
{
	struct bench_counts before;

	reset();
	before = bench_count();
	bench_expect_pass("UDP", f.bytes, f.len, false);
	expect_copy("UDP", f.bytes, f.len, XROCE_COPY_OTHER, 0, 0);
	expect_copies("UDP", &before, 1, 0);
	/* a frame without an IP header */
	f.bytes[12] = 0x08, f.bytes[13] = 0x06;
	f.len = 60;
	bench_expect_pass("ARP", f.bytes, f.len, false);
	expect_copy("ARP", f.bytes, f.len, XROCE_COPY_OTHER, 0, 0);
	f.len = 14;
	bench_expect_pass("a header", f.bytes, f.len, false);
	expect_copy("a header", f.bytes, f.len, XROCE_COPY_OTHER, 0, 0);
}

/* Each size that a record is made in, exactly filled, and with one byte more. */
static void sniff__sizes(void **state)
{
	static const uint32_t sizes[] = { 80, 144, 400, 656, 1168, 1517 };
	static uint8_t bytes[LONGEST];

	reset();
	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + (i >> 8));
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (uint32_t len = sizes[i]; len <= sizes[i] + 1; len++) {
			bench_expect_pass("a length", bytes, len, false);
			expect_copy("a length", bytes, len, XROCE_COPY_OTHER, 0, 0);
		}
}

/* Longer than the MTU allows: not copied, and its way is the same. */
static void sniff__too_long(void **state)
{
	static uint8_t bytes[LONGEST + 1];
	struct bench_counts before;

	reset();
	memcpy(bytes, f.bytes, f.len);
	before = bench_count();
	bench_expect_pass("a TCP super-packet", bytes, sizeof(bytes), false);
	expect_no_copy("a TCP super-packet");
	expect_copies("a TCP super-packet", &before, 0, 1);
}

/* Packets for our own QPs, good or not: to the engine as packets, with where their IP header is. */
static void sniff__own_packets(void **state)
{
	struct frame_spec s = bench_spec();
	struct bench_counts before;

	reset();
	frame_build(&f, &s);
	before = bench_count();
	bench_expect_redirect("RoCEv2", f.bytes, f.len, BENCH_RC_QPN);
	expect_copy("RoCEv2", f.bytes, f.len, XROCE_COPY_OWN, 0, f.l3);
	s.ecn_qpn = 0x999;
	frame_build(&f, &s);
	bench_expect_drop("no such QP", f.bytes, f.len, XROCE_DROP_qp_unknown, 0);
	expect_copy("no such QP", f.bytes, f.len, XROCE_COPY_OWN, 0, f.l3);
	s = bench_spec();
	s.pkey = 0x1234;
	frame_build(&f, &s);
	bench_expect_drop("another partition", f.bytes, f.len, XROCE_DROP_pkey, BENCH_RC_QPN);
	expect_copy("another partition", f.bytes, f.len, XROCE_COPY_OWN, 0, f.l3);
	expect_copies("RoCEv2", &before, 3, 0);
	/* no flag for flows with copies is set: they are not read */
	bench->skel->bss->xroce_copying = 0;
	s = bench_spec();
	frame_build(&f, &s);
	bench_expect_redirect("no copying", f.bytes, f.len, BENCH_RC_QPN);
	expect_no_copy("no copying");
}

/* Whole, whatever the MTU: the engine cuts it. A flag marks it. */
static void sniff__super_packets(void **state)
{
	const uint32_t many = 60;
	const struct xroce_flow sniffer = flow_of(XROCE_FLOW_COPY, 0, false, 1);
	struct frame_spec s = bench_spec();
	struct xroce_flow_count counted_before;
	struct bench_counts before;

	reset();
	s.payload_len = many * SEGMENT - 16;
	frame_build(&f, &s);
	frame_put16(f.bytes + f.l3 + 4, SEGMENT);
	bench_sum_super(&f);
	assert_true(f.len > LONGEST);
	put_flow(0, &sniffer);
	counted_before = bench_flow_count(1);
	before = bench_count();
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	assert_true(bench->cqe.flags & XROCE_RX_GSO);
	expect_copy("a super-packet", f.bytes, f.len, XROCE_COPY_OWN, XROCE_RX_GSO, f.l3);
	expect_copies("a super-packet", &before, 1, 0);
	/* counted as the packets that it is cut into */
	assert_int_equal(bench_flow_count(1).packets, counted_before.packets + many);
	assert_int_equal(bench_flow_count(1).bytes,
			 counted_before.bytes + many * (f.l4 + 8 + SEGMENT));
}

/* Of a multicast group without members in this process: another program's. */
static void sniff__groups(void **state)
{
	static const uint8_t address[16] = { [10] = 0xff, 0xff, 239, 1, 0, 9 };
	const int fd = bpf_map__fd(bench->skel->maps.xroce_group);
	const struct xroce_group value = { .members = 1 };
	struct frame_spec s = bench_spec();

	reset();
	s.opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY);
	s.ecn_qpn = ROCE_MULTICAST_QPN;
	s.ext_len = 8;
	memcpy(s.dst, address, 16);
	frame_build(&f, &s);
	bpf_map_delete_elem(fd, address);
	bench_expect_pass("no member", f.bytes, f.len, true);
	expect_copy("no member", f.bytes, f.len, XROCE_COPY_OTHER, 0, 0);
	assert_int_equal(bpf_map_update_elem(fd, address, &value, BPF_ANY), 0);
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	expect_copy("a member", f.bytes, f.len, XROCE_COPY_OWN, 0, f.l3);
	bpf_map_delete_elem(fd, address);
}

/*
 * What a flow redirects, the engine copies, and there is no record of it; what one drops, or cannot
 * hand over, has one.
 */
static void sniff__what_flows_take(void **state)
{
	const struct xroce_flow takes = flow_of(0, 5, true, 0),
				drops = flow_of(XROCE_FLOW_DROP, 5, true, 0);
	struct bench_counts before;

	reset();
	put_flow(1, &takes);
	put_flows(2);
	before = bench_count();
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	expect_no_copy("taken");
	expect_copies("taken", &before, 0, 0);
	put_flow(1, &drops);
	bench_expect_drop("dropped", f.bytes, f.len, XROCE_DROP_flow_drop, 0);
	expect_copy("dropped", f.bytes, f.len, XROCE_COPY_OTHER, 0, 0);
	put_flow(1, &takes);
	bench_put_xsk(0, false);
	bench_expect_drop("no socket", f.bytes, f.len, XROCE_DROP_no_socket, RAW_QPN);
	expect_copy("no socket", f.bytes, f.len, XROCE_COPY_OTHER, 0, 0);
}

/* A flow that does not trap gets its matches, except frames that an earlier one takes. */
static void sniff__flows_that_do_not_trap(void **state)
{
	const struct xroce_flow takes = flow_of(0, 3, true, 0),
				before = flow_of(XROCE_FLOW_COPY, 2, true, 0),
				behind = flow_of(XROCE_FLOW_COPY, 4, true, 0),
				drops = flow_of(XROCE_FLOW_DROP, 3, true, 0);

	reset();
	put_flow(0, &before);
	bench_expect_pass("its port", f.bytes, f.len, false);
	expect_copy("its port", f.bytes, f.len, XROCE_COPY_OTHER, 0, 0);
	frame_put16(f.bytes + 14 + 20 + 2, OTHER_PORT + 1);
	bench_expect_pass("another port", f.bytes, f.len, false);
	expect_no_copy("another port");
	frame_put16(f.bytes + 14 + 20 + 2, OTHER_PORT);
	put_flow(0, &takes);
	put_flow(1, &behind);
	put_flows(2);
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	expect_no_copy("behind the one that takes it");
	put_flow(0, &drops);
	bench_expect_drop("behind the one that drops it", f.bytes, f.len, XROCE_DROP_flow_drop,
			  0);
	expect_no_copy("behind the one that drops it");
	put_flow(0, &before);
	put_flow(1, &drops);
	bench_expect_drop("before the one that drops it", f.bytes, f.len, XROCE_DROP_flow_drop,
			  0);
	expect_copy("before the one that drops it", f.bytes, f.len, XROCE_COPY_OTHER, 0, 0);
}

/* For packets of our QPs, flows that trap or drop are not read. */
static void sniff__no_flow_takes_own_packets(void **state)
{
	const struct xroce_flow takes = flow_of(0, 1, false, 2),
				drops = flow_of(XROCE_FLOW_DROP, 1, false, 2),
				behind = flow_of(XROCE_FLOW_COPY, 2, false, 3);
	struct frame_spec s = bench_spec();
	uint64_t behind_before, taken_before;

	reset();
	frame_build(&f, &s);
	behind_before = packets(3);
	taken_before = packets(2);
	put_flow(0, &takes);
	put_flow(1, &drops);
	put_flow(2, &behind);
	put_flows(3);
	bench_expect_redirect("RoCEv2", f.bytes, f.len, BENCH_RC_QPN);
	expect_copy("RoCEv2", f.bytes, f.len, XROCE_COPY_OWN, 0, f.l3);
	assert_int_equal(packets(2), taken_before);
	assert_int_equal(packets(3), behind_before + 1);
}

/*
 * Each matching flow with copies counts the frame, and so does the flow that takes it; no other,
 * and no later flow. Several flows make one record.
 */
static void sniff__counts(void **state)
{
	const struct xroce_flow flow[] = {
		flow_of(XROCE_FLOW_COPY, 0, false, 1), flow_of(XROCE_FLOW_COPY, 0, false, 1),
		flow_of(XROCE_FLOW_COPY, 1, true, 2),  flow_of(0, 2, true, 3),
		flow_of(XROCE_FLOW_COPY, 3, false, 4),
	};
	uint64_t before[5];

	reset();
	for (uint32_t i = 0; i < 5; i++)
		put_flow(i, &flow[i]);
	put_flows(5);
	for (uint32_t i = 1; i < 5; i++)
		before[i] = packets(i);
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	assert_int_equal(packets(1), before[1] + 2);
	assert_int_equal(packets(2), before[2] + 1);
	assert_int_equal(packets(3), before[3] + 1);
	assert_int_equal(packets(4), before[4]);
	expect_no_copy("the engine's to copy");
	/* no flow takes another port's: the last one gets it too, and there is one record */
	frame_put16(f.bytes + 14 + 20 + 2, OTHER_PORT + 1);
	bench_expect_pass("another port", f.bytes, f.len, false);
	expect_copy("another port", f.bytes, f.len, XROCE_COPY_OTHER, 0, 0);
	assert_int_equal(packets(1), before[1] + 4);
	assert_int_equal(packets(2), before[2] + 1);
	assert_int_equal(packets(3), before[3] + 1);
	assert_int_equal(packets(4), before[4] + 1);
}

/*
 * As many as there is room for, and no more; the others are counted, and pass. Reading frees room.
 */
static void sniff__full_ring(void **state)
{
	const uint32_t too_many = 5000;
	struct bench_counts before;
	uint32_t record, fit, header;

	reset();
	bench_expect_pass("the first", f.bytes, f.len, false);
	memcpy(&header, ring.data + (*ring.consumer & (RING_BYTES - 1)), sizeof(header));
	record = 8 + header;
	expect_copy("the first", f.bytes, f.len, XROCE_COPY_OTHER, 0, 0);
	/* the kernel keeps a byte of the ring free */
	fit = (RING_BYTES - 1) / record;
	before = bench_count();
	for (uint32_t i = 0; i < too_many; i++) {
		frame_put16(f.bytes + f.len - 2, (uint16_t)i);
		assert_int_equal(bench_run(f.bytes, f.len), XDP_PASS);
	}
	expect_copies("a full ring", &before, fit, too_many - fit);
	for (uint32_t i = 0; i < fit; i++) {
		const struct xroce_rx_record *r = next_record();

		check(r, "only %u of %u copies", i, fit);
		frame_put16(f.bytes + f.len - 2, (uint16_t)i);
		check(!memcmp(r->frame, f.bytes, f.len), "copy %u is another", i);
	}
	expect_no_copy("more than there was room for");
	bench_expect_pass("room again", f.bytes, f.len, false);
	expect_copy("room again", f.bytes, f.len, XROCE_COPY_OTHER, 0, 0);
}

static void sniff__no_ring(void **state)
{
	struct bench_counts before;

	reset();
	put_ring(false);
	before = bench_count();
	bench_expect_pass("no ring", f.bytes, f.len, false);
	expect_copies("no ring", &before, 0, 1);
	put_ring(true);
	expect_no_copy("no ring");
}

/* The reader sleeps on the ring, which wakes it where it has read all before. */
static void sniff__wakes(void **state)
{
	reset();
	bench_run(f.bytes, f.len);
	assert_true(was_woken());
	bench_run(f.bytes, f.len);
	assert_false(was_woken());
	assert_non_null(next_record());
	assert_non_null(next_record());
	bench_run(f.bytes, f.len);
	assert_true(was_woken());
}

/* Longer than one buffer of the driver's. */
static void sniff__of_two_buffers(void **state)
{
	const struct bench_entry entry = { .linear = 200 };
	static uint8_t bytes[1400];

	reset();
	memcpy(bytes, f.bytes, f.len);
	for (uint32_t i = f.len; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 3);
	assert_int_equal(bench_run_with(bytes, sizeof(bytes), &entry), XDP_PASS);
	expect_copy("two buffers", bytes, sizeof(bytes), XROCE_COPY_OTHER, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sniff__what_passes),
		cmocka_unit_test(sniff__sizes),
		cmocka_unit_test(sniff__too_long),
		cmocka_unit_test(sniff__own_packets),
		cmocka_unit_test(sniff__super_packets),
		cmocka_unit_test(sniff__groups),
		cmocka_unit_test(sniff__what_flows_take),
		cmocka_unit_test(sniff__flows_that_do_not_trap),
		cmocka_unit_test(sniff__no_flow_takes_own_packets),
		cmocka_unit_test(sniff__counts),
		cmocka_unit_test(sniff__full_ring),
		cmocka_unit_test(sniff__no_ring),
		cmocka_unit_test(sniff__wakes),
		cmocka_unit_test(sniff__of_two_buffers),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
