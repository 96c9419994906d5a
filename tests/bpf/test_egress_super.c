/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Super-packets of a client (xroce_egress), and its offload requests to the kernel: each packet in
 * one is checked like a single packet, and nothing is written into checked bytes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "egress_side.h"

static struct frame f;
/* A frame that is longer than struct frame's. */
static struct {
	uint8_t bytes[BENCH_BYTES];
	uint32_t len;
} big;

/* ---- super-packets ---- */

static struct virtio_net_hdr super_vnet(uint32_t size)
{
	return (struct virtio_net_hdr){ .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
					.hdr_len = 42,
					.gso_size = (uint16_t)size,
					.csum_start = EGRESS_UDP_AT,
					.csum_offset = 6 };
}

/* The checksum and lengths of big, as a super-packet's. */
static void super_fix(uint32_t size)
{
	struct frame sum = { .l3 = EGRESS_IP_AT, .l4 = EGRESS_UDP_AT, .len = 64 };

	memcpy(sum.bytes, big.bytes, 64);
	frame_put16(sum.bytes + EGRESS_IP_AT + 4, (uint16_t)size);
	sum.len = big.len;
	frame_put16(sum.bytes + EGRESS_IP_AT + 2, (uint16_t)(big.len - EGRESS_IP_AT));
	frame_put16(sum.bytes + EGRESS_UDP_AT + 4, (uint16_t)(big.len - EGRESS_UDP_AT));
	bench_sum_super(&sum);
	memcpy(big.bytes, sum.bytes, 64);
}

/* n packets, whose last has `last` bytes of UDP payload. Returns the size of the others. */
static uint32_t super_build(const struct frame_spec *s, uint32_t n, uint32_t last)
{
	uint32_t size;

	frame_build(&f, s);
	size = f.len - f.bth;
	memcpy(big.bytes, f.bytes, f.bth);
	big.len = f.bth;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t bytes = last && i + 1 == n ? last : size;

		memcpy(big.bytes + big.len, f.bytes + f.bth, bytes);
		big.len += bytes;
	}
	super_fix(size);
	return size;
}

/* Packet i's BTH. */
static uint8_t *super_bth(uint32_t i, uint32_t size)
{
	return big.bytes + f.bth + i * size;
}

static void expect_super_refused(const char *what, enum xroce_egress_reason reason, uint32_t size)
{
	const struct virtio_net_hdr vnet = super_vnet(size);

	egress_expect_refused(EGRESS_ME, what, reason, &vnet, big.bytes, big.len);
}

/* The kernel may refuse it itself, then it is not our matter. */
static void expect_not_sent(const char *what, enum xroce_egress_reason reason,
			    const struct virtio_net_hdr *vnet, const uint8_t *bytes, uint32_t len)
{
	if (egress_sent(EGRESS_ME, vnet, bytes, len)) {
		egress_check_nothing_out(what);
		egress_expect_refused(EGRESS_ME, what, reason, vnet, bytes, len);
	} else {
		check(errno == EINVAL, "%s: %s", what, strerror(errno));
	}
}

/* Before 6.2 a TAP device takes none. */
static void super_reset(void)
{
	const struct frame_spec s = egress_spec();
	const struct virtio_net_hdr vnet = super_vnet(super_build(&s, 2, 0));

	egress_reset();
	if (!egress_sent(EGRESS_ME, &vnet, big.bytes, big.len))
		skip();
	egress_check_out("two", egress_peer_mac, big.bytes, big.len);
	egress_reset();
}

static void super__whole(void **state)
{
	struct frame_spec s = egress_spec();
	struct virtio_net_hdr vnet;
	uint32_t size;

	super_reset();
	size = super_build(&s, 2, 0);
	vnet = super_vnet(size);
	egress_expect_wire(EGRESS_ME, "two", &vnet, big.bytes, big.len);
	size = super_build(&s, 10, 16);
	vnet = super_vnet(size);
	egress_expect_wire(EGRESS_ME, "ten, the last without payload", &vnet, big.bytes, big.len);
	s.payload_len = 1024;
	size = super_build(&s, 62, 0);
	vnet = super_vnet(size);
	egress_expect_wire(EGRESS_ME, "62 of 1 KiB", &vnet, big.bytes, big.len);
	vnet.hdr_len = 14;
	egress_expect_wire(EGRESS_ME, "with headers in pieces", &vnet, big.bytes, big.len);
	s.payload_len = 4096;
	size = super_build(&s, 15, 0);
	vnet = super_vnet(size);
	egress_expect_wire(EGRESS_ME, "15 of 4 KiB", &vnet, big.bytes, big.len);
	s = egress_spec();
	egress_ud(&s);
	size = super_build(&s, 12, 24);
	vnet = super_vnet(size);
	egress_expect_wire(EGRESS_ME, "datagrams", &vnet, big.bytes, big.len);

	s = egress_spec();
	s.payload_len = 1024;
	memcpy(s.dst, bench_local4, 16);
	s.ecn_qpn = BROKER_RC(EGRESS_OTHER);
	size = super_build(&s, 62, 0);
	vnet = super_vnet(size);
	egress_expect_round("62 of 1 KiB", EGRESS_OTHER, &vnet, big.bytes, big.len);
}

/* The first is right, another is not: the second, and the last of many. */
static void super__others_are_checked(void **state)
{
	static const uint32_t spoiled[] = { 1, 49 };
	struct frame_spec s;
	uint32_t size;

	super_reset();
	for (size_t i = 0; i < sizeof(spoiled) / sizeof(spoiled[0]); i++) {
		const uint32_t at = spoiled[i];

		s = egress_spec();
		size = super_build(&s, 50, 0);
		frame_put32(super_bth(at, size) + 4, 0x4322);
		expect_super_refused("another QP", XROCE_EGRESS_segments, size);
		size = super_build(&s, 50, 0);
		frame_put32(super_bth(at, size) + 4, 1);
		expect_super_refused("to QP 1", XROCE_EGRESS_segments, size);
		size = super_build(&s, 50, 0);
		frame_put16(super_bth(at, size) + 2, 0x8001);
		expect_super_refused("another P_Key", XROCE_EGRESS_segments, size);
		size = super_build(&s, 50, 0);
		*super_bth(at, size) = OPCODE(XROCE_UC, OP5_SEND_ONLY);
		expect_super_refused("another transport", XROCE_EGRESS_segments, size);
		size = super_build(&s, 50, 0);
		*super_bth(at, size) = 0x1f;
		expect_super_refused("no opcode", XROCE_EGRESS_not_roce, size);
		egress_ud(&s);
		size = super_build(&s, 50, 0);
		frame_put32(super_bth(at, size) + 12, 0x80010000);
		expect_super_refused("a privileged Q_Key", XROCE_EGRESS_qkey, size);
		size = super_build(&s, 50, 0);
		frame_put32(super_bth(at, size) + 16, BROKER_UD(EGRESS_OTHER));
		expect_super_refused("another client's source QPN", XROCE_EGRESS_src_qpn, size);
	}
	s.ecn_qpn = 1;
	size = super_build(&s, 50, 0);
	expect_super_refused("all to QP 1", XROCE_EGRESS_qp1, size);
	s = egress_spec();
	s.pkey = EGRESS_PKEY_OF_NOBODY;
	size = super_build(&s, 50, 0);
	expect_super_refused("all with another P_Key", XROCE_EGRESS_pkey, size);
	s = egress_spec();
	size = super_build(&s, 5, 12);
	expect_super_refused("the last is no packet", XROCE_EGRESS_segments, size);
	egress_ud(&s);
	size = super_build(&s, 5, 16);
	expect_super_refused("the last has no DETH", XROCE_EGRESS_not_roce, size);
}

/*
 * A hostile packet at each place of one super-packet, whose linear part ends before it, in its
 * headers, or after it: none passes, wherever the kernel has put it.
 */
static void check_each_place(const char *what, uint32_t payload, uint32_t n)
{
	/* the ends of a linear part, from the beginning of a packet's BTH on */
	static const uint32_t ends[] = { 0, 1, 8, 12, 20, 28 };
	struct frame_spec s = egress_spec();
	struct virtio_net_hdr vnet;
	uint32_t size;

	egress_ud(&s);
	s.payload_len = payload;
	size = super_build(&s, n, 0);
	for (uint32_t i = 0; i < n; i++)
		for (size_t end = 0; end <= sizeof(ends) / sizeof(ends[0]); end++) {
			uint8_t *bth = super_bth(i, size), kept[24];

			vnet = super_vnet(size);
			vnet.hdr_len = (uint16_t)(end ? f.bth + i * size + ends[end - 1] : big.len);
			egress_expect_wire(EGRESS_ME, what, &vnet, big.bytes, big.len);
			memcpy(kept, bth, sizeof(kept));
			frame_put32(bth + 4, i ? 0x4322 : 1);
			egress_expect_refused(EGRESS_ME, what,
					      i ? XROCE_EGRESS_segments : XROCE_EGRESS_qp1, &vnet,
					      big.bytes, big.len);
			memcpy(bth, kept, sizeof(kept));
			frame_put32(bth + 16, BROKER_UD(EGRESS_OTHER));
			egress_expect_refused(EGRESS_ME, what, XROCE_EGRESS_src_qpn, &vnet,
					      big.bytes, big.len);
			memcpy(bth, kept, sizeof(kept));
		}
}

static void super__each_place_is_checked(void **state)
{
	super_reset();
	check_each_place("64 small ones", 64, 64);
	check_each_place("short ones", 1024, 40);
	check_each_place("long ones", 4096, 15);
}

/* The kernel, the receiver and the check must cut it alike. */
static void super__cut_alike(void **state)
{
	struct frame_spec s = egress_spec();
	struct virtio_net_hdr vnet;
	uint32_t size;

	super_reset();
	size = super_build(&s, 10, 0);
	super_fix(size - 4);
	expect_super_refused("another identification", XROCE_EGRESS_segments, size);
	super_build(&s, 10, 0);
	big.bytes[EGRESS_UDP_AT + 7]++;
	expect_super_refused("another checksum", XROCE_EGRESS_segments, size);
	super_build(&s, 10, 0);
	frame_put16(big.bytes + EGRESS_UDP_AT + 6, 0);
	expect_super_refused("no checksum", XROCE_EGRESS_segments, size);
	/* to the kernel two packets, the second of which would be checked nowhere */
	super_build(&s, 10, 0);
	expect_super_refused("another size", XROCE_EGRESS_segments, 9 * size);
	super_build(&s, 1, 0);
	vnet = super_vnet(size);
	expect_not_sent("one packet", XROCE_EGRESS_offload, &vnet, big.bytes, big.len);
	s.payload_len = 0;
	size = super_build(&s, XROCE_SEGMENTS_MAX + 1, 0);
	vnet = super_vnet(size);
	expect_not_sent("too many", XROCE_EGRESS_segments, &vnet, big.bytes, big.len);
	s = egress_spec();
	egress_ipv6(&s);
	frame_build(&f, &s);
	vnet = super_vnet(40);
	vnet.csum_start = 54;
	expect_not_sent("IPv6", XROCE_EGRESS_segments, &vnet, f.bytes, f.len);
}

/* Only its receiver would cut it: the packets that one would see are checked. */
static void super__without_the_kernel(void **state)
{
	struct frame_spec s = egress_spec();
	uint32_t size;

	egress_reset();
	egress_ud(&s);
	size = super_build(&s, 10, 0);
	egress_expect_wire(EGRESS_ME, "right ones", &egress_plain, big.bytes, big.len);
	frame_put32(super_bth(9, size) + 16, BROKER_UD(EGRESS_OTHER));
	egress_expect_refused(EGRESS_ME, "another client's source QPN", XROCE_EGRESS_src_qpn,
			      &egress_plain, big.bytes, big.len);
	super_build(&s, 10, 0);
	frame_put32(super_bth(1, size) + 12, 0x80010000);
	egress_expect_refused(EGRESS_ME, "a privileged Q_Key", XROCE_EGRESS_qkey, &egress_plain,
			      big.bytes, big.len);
}

/*
 * Identification 0, and the code for the length that senders by UDP sockets use: a receiver would
 * find ten packets. A client has no use for it.
 */
static void super__by_code(void **state)
{
	struct frame_spec s = egress_spec();
	uint32_t size, code = 0;

	egress_reset();
	egress_ud(&s);
	size = super_build(&s, 10, 0);
	while (roce_segment_of_code[code] != size)
		check(++code < 64, "no code for %u bytes", size);
	super_fix(0);
	super_bth(0, size)[4] |= (uint8_t)code;
	egress_expect_refused(EGRESS_ME, "a code", XROCE_EGRESS_segments, &egress_plain, big.bytes,
			      big.len);
}

/* Each packet in it is as long as the interface takes, or it is refused. */
static void super__longer_than_the_interface_takes(void **state)
{
	struct frame_spec s = egress_spec();
	struct virtio_net_hdr vnet;
	uint32_t size;

	super_reset();
	s.payload_len = EGRESS_MTU - 44;
	size = super_build(&s, 4, 0);
	vnet = super_vnet(size);
	egress_expect_wire(EGRESS_ME, "just as long", &vnet, big.bytes, big.len);
	s.payload_len = EGRESS_MTU - 40;
	size = super_build(&s, 4, 0);
	expect_super_refused("longer", XROCE_EGRESS_mtu, size);
}

/* ---- offload requests to the kernel ---- */

/* The client chooses the place of the kernel's write: into checked bytes. */
static void offload__single(void **state)
{
	static const uint16_t at[][2] = { { 34, 6 }, { 34, 12 }, { 14, 10 }, { 26, 0 }, { 42, 4 } };
	struct frame_spec s = egress_spec();

	egress_reset();
	egress_ud(&s);
	frame_build(&f, &s);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		const struct virtio_net_hdr vnet = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
						     .csum_start = at[i][0],
						     .csum_offset = at[i][1] };

		expect_not_sent("a checksum", XROCE_EGRESS_offload, &vnet, f.bytes, f.len);
	}
	egress_expect_wire(EGRESS_ME, "without", &egress_plain, f.bytes, f.len);
}

static void offload__super(void **state)
{
	static const uint8_t types[] = { VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_UDP,
					 VIRTIO_NET_HDR_GSO_TCPV6,
					 VIRTIO_NET_HDR_GSO_UDP_L4 | VIRTIO_NET_HDR_GSO_ECN };
	struct frame_spec s = egress_spec();
	struct virtio_net_hdr vnet;
	uint32_t size;

	super_reset();
	egress_ud(&s);
	size = super_build(&s, 10, 0);
	for (size_t i = 0; i < sizeof(types); i++) {
		vnet = super_vnet(size);
		vnet.gso_type = types[i];
		expect_not_sent("another kind", XROCE_EGRESS_offload, &vnet, big.bytes, big.len);
	}
	vnet = super_vnet(size);
	vnet.flags = 0;
	expect_not_sent("no checksum", XROCE_EGRESS_offload, &vnet, big.bytes, big.len);
	for (uint16_t start = 14; start < 60; start += 2) {
		vnet = super_vnet(size);
		vnet.csum_start = start;
		if (start != EGRESS_UDP_AT)
			expect_not_sent("from elsewhere", XROCE_EGRESS_offload, &vnet, big.bytes,
					big.len);
	}
	vnet = super_vnet(size);
	vnet.csum_offset = 16;
	expect_not_sent("to elsewhere", XROCE_EGRESS_offload, &vnet, big.bytes, big.len);
	vnet = super_vnet(size);
	egress_expect_wire(EGRESS_ME, "as it ought to be", &vnet, big.bytes, big.len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(super__whole),
		cmocka_unit_test(super__others_are_checked),
		cmocka_unit_test(super__each_place_is_checked),
		cmocka_unit_test(super__cut_alike),
		cmocka_unit_test(super__without_the_kernel),
		cmocka_unit_test(super__by_code),
		cmocka_unit_test(super__longer_than_the_interface_takes),
		cmocka_unit_test(offload__single),
		cmocka_unit_test(offload__super),
	};

	return cmocka_run_group_tests_name("egress_super", tests, egress_setup, egress_teardown);
}
