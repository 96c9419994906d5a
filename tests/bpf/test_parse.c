/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Packets that the XDP program takes or passes: other traffic byte for byte, VLAN tags,
 * IPv6, every opcode, frames in two buffers.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "bench.h"

static struct frame f;

/* ---- other traffic ---- */

static void parse_ip__arp_passes(void **state)
{
	static const uint8_t arp[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0,
					 1,    0x08, 0x06, 0,	 1,    8,    0, 6, 4, 0, 1 };

	bench_reset();
	bench_expect_pass("ARP", arp, sizeof(arp), false);
	bench_expect_pass("ARP of 14 bytes", arp, 14, false);
}

/* TCP, ICMP, ICMPv6, SCTP whose bytes at the place of the UDP port say 4791. */
static void parse_ip__other_protocols_pass(void **state)
{
	static const uint8_t protocols[] = { 1, 2, 6, 47, 50, 58, 132, 136, 255 };

	bench_reset();
	for (size_t i = 0; i < sizeof(protocols); i++) {
		struct frame_spec s = bench_spec();

		s.protocol = protocols[i];
		frame_build(&f, &s);
		bench_expect_pass("IPv4 protocol", f.bytes, f.len, false);
		s.ipv6 = true;
		memcpy(s.dst, bench_local6, 16);
		frame_build(&f, &s);
		bench_expect_pass("IPv6 next header", f.bytes, f.len, false);
	}
}

static void parse_ip__other_udp_ports_pass(void **state)
{
	static const uint16_t ports[] = { 53, 4790, 4792, 0xb712, 0x12b6, 0xffff };

	bench_reset();
	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		struct frame_spec s = bench_spec();

		s.dport = ports[i];
		s.sport = ROCE_UDP_PORT; /* the source port is no reason */
		frame_build(&f, &s);
		bench_expect_pass("UDP port", f.bytes, f.len, false);
		s.option_bytes = 8;
		frame_build(&f, &s);
		bench_expect_pass("UDP port behind options", f.bytes, f.len, false);
		s = bench_spec();
		s.dport = ports[i];
		s.ipv6 = true;
		frame_build(&f, &s);
		bench_expect_pass("UDP port, IPv6", f.bytes, f.len, false);
	}
}

static void parse_ip__wrong_versions_pass(void **state)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	for (int version = 0; version < 16; version++) {
		frame_build(&f, &s);
		f.bytes[f.l3] = version << 4 | 5;
		if (version != 4)
			bench_expect_pass("IPv4 frame of another version", f.bytes, f.len, false);
	}
	for (int ihl = 0; ihl < 5; ihl++) {
		frame_build(&f, &s);
		f.bytes[f.l3] = 0x40 | ihl;
		bench_expect_pass("IPv4 header shorter than 20 bytes", f.bytes, f.len, false);
	}
	s.ipv6 = true;
	memcpy(s.dst, bench_local6, 16);
	frame_build(&f, &s);
	f.bytes[f.l3] = 0x40;
	bench_expect_pass("IPv6 frame of version 4", f.bytes, f.len, false);
}

static void parse_ip__later_fragments_pass(void **state)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	frame_build(&f, &s);
	frame_put16(f.bytes + f.l3 + 6, 0x0001);
	bench_expect_pass("last fragment", f.bytes, f.len, false);
	frame_put16(f.bytes + f.l3 + 6, 0x2000 | 0x1fff);
	bench_expect_pass("middle fragment", f.bytes, f.len, false);
}

/* Puts an extension header of 8 bytes between IPv6 and UDP. */
static void insert_extension(uint8_t type, uint16_t second_word)
{
	uint8_t *ext = f.bytes + f.l4;

	memmove(ext + 8, ext, f.len - f.l4);
	memset(ext, 0, 8);
	ext[0] = f.bytes[f.l3 + 6];
	frame_put16(ext + 2, second_word);
	f.bytes[f.l3 + 6] = type;
	f.len += 8;
	frame_put16(f.bytes + f.l3 + 4, f.len - f.l4);
}

static void parse_ip__ipv6_extension_headers_pass(void **state)
{
	static const uint8_t types[] = { 0, 43, 51, 60, 135 };
	struct frame_spec s = bench_spec();

	bench_reset();
	s.ipv6 = true;
	memcpy(s.src, bench_peer6, 16);
	memcpy(s.dst, bench_local6, 16);
	for (size_t i = 0; i < sizeof(types); i++) {
		frame_build(&f, &s);
		insert_extension(types[i], 0);
		bench_expect_pass("IPv6 extension header", f.bytes, f.len, false);
	}
	frame_build(&f, &s);
	insert_extension(44, 0x0008);
	bench_expect_pass("later IPv6 fragment", f.bytes, f.len, false);
	frame_build(&f, &s);
	insert_extension(44, 0x0001);
	f.bytes[f.l4] = 6;
	bench_expect_pass("first IPv6 fragment of TCP", f.bytes, f.len, false);
	frame_build(&f, &s);
	frame_put16(f.bytes + f.l4 + 2, 53);
	insert_extension(44, 0x0001);
	bench_expect_pass("first IPv6 fragment of other UDP", f.bytes, f.len, false);
}

/*
 * RoCEv2 to an address that is not ours passes, however malformed it is, and is counted as passed.
 */
static void steer_is_ours__other_destination_passes(void **state)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	s.dst[15] = 99;
	frame_build(&f, &s);
	bench_expect_pass("known QPN, other IPv4 address", f.bytes, f.len, true);
	bench_expect_pass("the same, cut", f.bytes, f.len - 1, true);
	f.bytes[f.bth + 1] |= 1;
	bench_expect_pass("the same, wrong version", f.bytes, f.len, true);
	frame_put16(f.bytes + f.l3 + 6, 0x2000);
	bench_expect_pass("the same, first fragment", f.bytes, f.len, true);
	s.option_bytes = 4;
	frame_build(&f, &s);
	bench_expect_pass("the same, with options", f.bytes, f.len, true);
	s = bench_spec();
	s.dst[15] = 99;
	s.ecn_qpn = 0x777;
	frame_build(&f, &s);
	bench_expect_pass("unknown QPN, other address", f.bytes, f.len, true);
	s.ecn_qpn = BENCH_UD_QPN;
	s.ipv6 = true;
	memcpy(s.dst, bench_peer6, 16);
	frame_build(&f, &s);
	bench_expect_pass("UD QPN, other IPv6 address", f.bytes, f.len, true);
}

/* A GID that went away no longer draws packets, but for a QP that is connected with it. */
static void steer_is_ours__gid_removed(void **state)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	bench_put_gid(bench_local4, false);
	frame_build(&f, &s);
	bench_expect_redirect("connected", f.bytes, f.len, BENCH_RC_QPN);
	s.ecn_qpn = 0x777;
	frame_build(&f, &s);
	bench_expect_pass("unknown QPN", f.bytes, f.len, true);
}

/* The first GID is known without a search: and then only that one, and none while it is zero. */
static void steer_is_ours__first_gid(void **state)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	bench_put_gid(bench_local4, false);
	s.ecn_qpn = 0x777;
	frame_build(&f, &s);
	bench_expect_pass("no first GID", f.bytes, f.len, true);
	memcpy(bench->engine->gid, bench_local6, 16);
	bench_expect_pass("another first GID", f.bytes, f.len, true);
	memcpy(bench->engine->gid, bench_local4, 16);
	bench_expect_drop("to the first GID", f.bytes, f.len, XROCE_DROP_qp_unknown, 0);
	bench->engine->gid[15] ^= 1;
	bench_expect_pass("the last byte differs", f.bytes, f.len, true);
	memset(bench->engine->gid, 0, 16);
	s.ipv6 = true;
	memset(s.dst, 0, 16);
	frame_build(&f, &s);
	bench_expect_pass("to no address, without a first GID", f.bytes, f.len, true);
}

/* ---- VLAN ---- */

static const struct {
	const char *what;
	unsigned int tags;
	uint16_t proto[3], tci[3];
	unsigned int customers; /* the tag that the CQE has */
} vlans[] = {
	{ "802.1Q", 1, { 0x8100 }, { 0xa123 }, 0 },
	{ "802.1ad", 1, { 0x88a8 }, { 0x0fff }, 0 },
	{ "priority tag", 1, { 0x8100 }, { 0xe000 }, 0 },
	{ "802.1ad over 802.1Q", 2, { 0x88a8, 0x8100 }, { 0x2064, 0x6065 }, 1 },
	{ "802.1ad twice", 2, { 0x88a8, 0x88a8 }, { 0x0003, 0x0004 }, 0 },
	{ "802.1Q over 802.1ad", 2, { 0x8100, 0x88a8 }, { 0x0005, 0x0006 }, 0 },
	{ "802.1Q twice", 2, { 0x8100, 0x8100 }, { 0x0001, 0x0002 }, 0 },
};

static void parse_ip__vlan(void **state)
{
	bench_reset();
	for (size_t i = 0; i < sizeof(vlans) / sizeof(vlans[0]); i++) {
		struct frame_spec s = bench_spec();
		uint32_t len;

		s.tags = vlans[i].tags;
		memcpy(s.tag_proto, vlans[i].proto, sizeof(s.tag_proto));
		memcpy(s.tag_tci, vlans[i].tci, sizeof(s.tag_tci));
		frame_build(&f, &s);
		bench_expect_redirect(vlans[i].what, f.bytes, f.len, BENCH_RC_QPN);
		assert_int_equal(bench->cqe.vlan_tci, vlans[i].tci[vlans[i].customers]);
		assert_int_equal(bench->cqe.flags, XROCE_RX_VLAN);
		assert_int_equal(bench->cqe.l3_offset, 14 + 4 * s.tags);
		assert_int_equal(bench->cqe.byte_len, 64);
		len = f.len;
		for (f.len = 14; f.len < len; f.len++)
			assert_int_equal(bench_run(f.bytes, f.len),
					 f.len < f.l4 + 8 ? XDP_PASS : XDP_DROP);
		s.dport = 53;
		frame_build(&f, &s);
		bench_expect_pass("other UDP with tags", f.bytes, f.len, false);
	}
}

static void parse_ip__three_tags_pass(void **state)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	s.tags = 3;
	s.tag_proto[0] = s.tag_proto[1] = s.tag_proto[2] = 0x8100;
	frame_build(&f, &s);
	bench_expect_pass("three tags", f.bytes, f.len, false);
}

/* ---- IPv6, ECN, padding ---- */

static void parse_ip__ipv6(void **state)
{
	struct xroce_qp qp = bench_qp(XROCE_RC, bench_local6, bench_peer6);
	struct frame_spec s = bench_spec();

	bench_reset();
	bench_put_qp(0x66, &qp);
	s.ipv6 = true;
	memcpy(s.src, bench_peer6, 16);
	memcpy(s.dst, bench_local6, 16);
	s.tos = 0xb7; /* both nibbles, DSCP 45 and CE */
	s.ecn_qpn = 0x66;
	frame_build(&f, &s);
	f.bytes[f.l3 + 1] |= 0x0f; /* a flow label next to the traffic class */
	f.bytes[f.l3 + 2] = f.bytes[f.l3 + 3] = 0xff;
	bench_expect_redirect("IPv6", f.bytes, f.len, 0x66);
	assert_int_equal(bench->cqe.tos, 0xb7);
	assert_int_equal(bench->cqe.flags, XROCE_RX_IPV6 | XROCE_RX_CE);
}

static void cqe__ecn(void **state)
{
	bench_reset();
	for (unsigned int tos = 0; tos < 256; tos++) {
		struct frame_spec s = bench_spec();

		s.tos = tos;
		frame_build(&f, &s);
		bench_expect_redirect("TOS", f.bytes, f.len, BENCH_RC_QPN);
		assert_int_equal(bench->cqe.tos, tos);
		assert_int_equal(bench->cqe.flags, (tos & 3) == 3 ? XROCE_RX_CE : 0);
	}
}

/* Bits around the QPN and the PSN that are no part of them. */
static void cqe__reserved_bits(void **state)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	s.ecn_qpn |= 0xff000000;
	s.ack_psn |= 0xff000000;
	s.bth_flags = BTH_SE | BTH_MIGREQ;
	frame_build(&f, &s);
	bench_expect_redirect("reserved bits", f.bytes, f.len, BENCH_RC_QPN);
	assert_int_equal(bench->cqe.qpn, BENCH_RC_QPN);
	assert_int_equal(bench->cqe.flags, XROCE_RX_SOLICITED);
}

static void parse_roce__ethernet_padding(void **state)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	s.payload_len = 1;
	frame_build(&f, &s);
	bench_expect_redirect("20 bytes behind the IP packet", f.bytes, f.len + 20, BENCH_RC_QPN);
	assert_int_equal(bench->cqe.byte_len, 1);
}

/* ---- every opcode ---- */

/*
 * From the protocol sheet: extension header bytes of RC, and which end in an immediate or an R_Key.
 */
static const struct {
	uint8_t low, ext;
	bool payload, imm, inv, uc, ud, request;
} opcodes[] = {
	{ .low = 0x00, .ext = 0, .payload = true, .uc = true, .request = true },
	{ .low = 0x01, .ext = 0, .payload = true, .uc = true, .request = true },
	{ .low = 0x02, .ext = 0, .payload = true, .uc = true, .request = true },
	{ .low = 0x03, .ext = 4, .payload = true, .imm = true, .uc = true, .request = true },
	{ .low = 0x04, .ext = 0, .payload = true, .uc = true, .ud = true, .request = true },
	{ .low = 0x05,
	  .ext = 4,
	  .payload = true,
	  .imm = true,
	  .uc = true,
	  .ud = true,
	  .request = true },
	{ .low = 0x06, .ext = 16, .payload = true, .uc = true, .request = true },
	{ .low = 0x07, .ext = 0, .payload = true, .uc = true, .request = true },
	{ .low = 0x08, .ext = 0, .payload = true, .uc = true, .request = true },
	{ .low = 0x09, .ext = 4, .payload = true, .imm = true, .uc = true, .request = true },
	{ .low = 0x0a, .ext = 16, .payload = true, .uc = true, .request = true },
	{ .low = 0x0b, .ext = 20, .payload = true, .imm = true, .uc = true, .request = true },
	{ .low = 0x0c, .ext = 16, .request = true },
	{ .low = 0x0d, .ext = 4, .payload = true },
	{ .low = 0x0e, .ext = 0, .payload = true },
	{ .low = 0x0f, .ext = 4, .payload = true },
	{ .low = 0x10, .ext = 4, .payload = true },
	{ .low = 0x11, .ext = 4 },
	{ .low = 0x12, .ext = 12 },
	{ .low = 0x13, .ext = 28, .request = true },
	{ .low = 0x14, .ext = 28, .request = true },
	{ .low = 0x16, .ext = 4, .payload = true, .inv = true, .request = true },
	{ .low = 0x17, .ext = 4, .payload = true, .inv = true, .request = true },
	{ .low = 0x1c, .ext = 20, .request = true },
	{ .low = 0x1d, .ext = 16, .payload = true, .request = true },
};

static void one_opcode(int opcode, size_t row, uint32_t qpn, uint32_t ext_before)
{
	struct frame_spec s = bench_spec();
	uint32_t ext_len = opcodes[row].ext + ext_before;

	s.opcode = opcode;
	s.ecn_qpn = qpn;
	s.payload_len = opcodes[row].payload ? 61 : 0;
	s.ext_len = ext_len;
	for (uint32_t i = 0; i < ext_len; i++)
		s.ext[i] = 0xa0 + i;
	if (qpn == BENCH_UD_QPN) {
		frame_put32(s.ext, BENCH_QKEY);
		frame_put32(s.ext + 4, 0xee123456);
	}
	frame_build(&f, &s);
	bench_expect_redirect("opcode", f.bytes, f.len, qpn);
	check(bench->cqe.opcode == opcode, "opcode %02x reported as %02x", opcode,
	      bench->cqe.opcode);
	check(bench->cqe.byte_len == s.payload_len, "opcode %02x: byte_len %u", opcode,
	      bench->cqe.byte_len);
	check(bench->cqe.src_qpn == (qpn == BENCH_UD_QPN ? 0x123456 : 0), "opcode %02x: src_qpn %x",
	      opcode, bench->cqe.src_qpn);
	check(bench->cqe.flags == ((opcodes[row].imm ? XROCE_RX_IMM : 0) |
				   (opcodes[row].inv ? XROCE_RX_INV : 0)),
	      "opcode %02x: flags %02x", opcode, bench->cqe.flags);
	if (opcodes[row].imm || opcodes[row].inv)
		assert_memory_equal(&bench->cqe.imm, s.ext + ext_len - 4, 4);
	else
		assert_int_equal(bench->cqe.imm, 0);
	if (!opcodes[row].payload) {
		s.payload_len = 4;
		frame_build(&f, &s);
		bench_expect_drop("payload where there can be none", f.bytes, f.len, XROCE_DROP_pad,
				  qpn);
	}
	if (!ext_len)
		return;
	s.payload_len = 0;
	s.ext_len = ext_len - 1;
	frame_build(&f, &s);
	bench_expect_drop("one byte of extension headers is missing", f.bytes, f.len,
			  XROCE_DROP_ext_short, qpn);
}

/* A reserved opcode that its QP refuses: all after the BTH is payload. */
static void reserved_opcode(int opcode, uint32_t qpn)
{
	struct frame_spec s = bench_spec();

	s.opcode = opcode;
	s.ecn_qpn = qpn;
	s.payload_len = 61;
	frame_build(&f, &s);
	bench_expect_redirect("reserved opcode", f.bytes, f.len, qpn);
	check(bench->cqe.byte_len == s.payload_len, "opcode %02x: byte_len %u", opcode,
	      bench->cqe.byte_len);
	check(!bench->cqe.flags, "opcode %02x: flags %02x", opcode, bench->cqe.flags);
}

/*
 * All 256: opcodes of the protocol sheet are taken with its headers, reserved ones of RC and XRC
 * too, for their QPs to refuse; all others are dropped.
 */
static void parse_roce__every_opcode(void **state)
{
	bench_reset();
	for (int opcode = 0; opcode < 256; opcode++) {
		struct frame_spec s = bench_spec();
		int transport = opcode >> 5;
		size_t row = 0;

		while (row < sizeof(opcodes) / sizeof(opcodes[0]) &&
		       opcodes[row].low != (opcode & 0x1f))
			row++;
		if (row < sizeof(opcodes) / sizeof(opcodes[0])) {
			if (transport == XROCE_RC)
				one_opcode(opcode, row, BENCH_RC_QPN, 0);
			else if (transport == XROCE_UC && opcodes[row].uc)
				one_opcode(opcode, row, BENCH_UC_QPN, 0);
			else if (transport == XROCE_UD && opcodes[row].ud)
				one_opcode(opcode, row, BENCH_UD_QPN, 8);
			else if (transport == XROCE_XRC)
				one_opcode(opcode, row, BENCH_XRC_QPN,
					   opcodes[row].request ? 4 : 0);
			else
				row = sizeof(opcodes) / sizeof(opcodes[0]);
		}
		if (row < sizeof(opcodes) / sizeof(opcodes[0]) || opcode == OPCODE_CNP ||
		    opcode == OPCODE_CREDIT_PROBE || opcode == OPCODE_CREDIT_ANSWER)
			continue;
		if (transport == XROCE_RC || transport == XROCE_XRC) {
			reserved_opcode(opcode,
					transport == XROCE_RC ? BENCH_RC_QPN : BENCH_XRC_QPN);
			continue;
		}
		s.opcode = opcode;
		s.ext_len = FRAME_EXT_MAX;
		frame_build(&f, &s);
		bench_expect_drop("opcode that does not exist", f.bytes, f.len, XROCE_DROP_opcode,
				  BENCH_RC_QPN);
	}
}

/* A CNP has 16 zero bytes and goes to a connected QP of any service. */
static void parse_roce__cnp(void **state)
{
	static const uint32_t qpns[] = { BENCH_RC_QPN, BENCH_UC_QPN, BENCH_XRC_QPN };
	struct frame_spec s = bench_spec();

	bench_reset();
	s.opcode = OPCODE_CNP;
	s.payload_len = 0;
	s.ext_len = 16;
	for (size_t i = 0; i < sizeof(qpns) / sizeof(qpns[0]); i++) {
		s.ecn_qpn = BTH_BECN | qpns[i];
		frame_build(&f, &s);
		bench_expect_redirect("CNP", f.bytes, f.len, qpns[i]);
		assert_int_equal(bench->cqe.opcode, OPCODE_CNP);
		assert_int_equal(bench->cqe.byte_len, 0);
	}
	s.ecn_qpn = BTH_BECN | BENCH_UD_QPN;
	frame_build(&f, &s);
	bench_expect_drop("CNP to a datagram QP", f.bytes, f.len, XROCE_DROP_qp_transport,
			  BENCH_UD_QPN);
	s.ecn_qpn = BENCH_RC_QPN;
	s.ext_len = 15;
	frame_build(&f, &s);
	bench_expect_drop("CNP of 15 bytes", f.bytes, f.len, XROCE_DROP_ext_short, BENCH_RC_QPN);
}

/*
 * Flow control has a DETH and 8 bytes, and goes to QPs without acknowledgements; to one of UD with
 * its Q_Key only.
 */
static void parse_roce__flow(void **state)
{
	static const uint32_t qpns[] = { BENCH_UC_QPN, BENCH_UD_QPN };
	struct frame_spec s = bench_spec();

	bench_reset();
	s.payload_len = 0;
	s.ext_len = 16;
	for (uint8_t opcode = OPCODE_CREDIT_PROBE; opcode <= OPCODE_CREDIT_ANSWER; opcode++) {
		s.opcode = opcode;
		for (size_t i = 0; i < sizeof(qpns) / sizeof(qpns[0]); i++) {
			struct xroce_qp qp = bench_get_qp(qpns[i]);

			s.ecn_qpn = qpns[i];
			for (uint32_t byte = 0; byte < 4; byte++)
				s.ext[byte] = (uint8_t)(qp.qkey >> (24 - 8 * byte));
			frame_build(&f, &s);
			bench_expect_redirect("flow control", f.bytes, f.len, qpns[i]);
			assert_int_equal(bench->cqe.opcode, opcode);
		}
		s.ext[0] ^= 1;
		frame_build(&f, &s);
		bench_expect_drop("flow control, wrong Q_Key", f.bytes, f.len, XROCE_DROP_qkey,
				  BENCH_UD_QPN);
		s.ecn_qpn = BENCH_RC_QPN;
		frame_build(&f, &s);
		bench_expect_drop("flow control of RC", f.bytes, f.len, XROCE_DROP_qp_transport,
				  BENCH_RC_QPN);
	}
	s.ext_len = 15;
	frame_build(&f, &s);
	bench_expect_drop("flow control of 15 bytes", f.bytes, f.len, XROCE_DROP_ext_short,
			  BENCH_RC_QPN);
}

/* ---- several buffers ---- */

/* The largest frame of PMTU 4096: two VLAN tags, IPv6, RETH and immediate, in more than a page. */
static void parse_roce__jumbo(void **state)
{
	struct xroce_qp qp = bench_qp(XROCE_RC, bench_local6, bench_peer6);
	struct frame_spec s = bench_spec();

	bench_reset();
	bench_put_qp(0x66, &qp);
	s.tags = 2;
	s.tag_proto[0] = 0x88a8;
	s.tag_proto[1] = 0x8100;
	s.ipv6 = true;
	memcpy(s.src, bench_peer6, 16);
	memcpy(s.dst, bench_local6, 16);
	s.ecn_qpn = 0x66;
	s.opcode = OPCODE(XROCE_RC, OP5_WRITE_ONLY_IMM);
	s.ext_len = 20;
	s.payload_len = 4096;
	frame_build(&f, &s);
	assert_int_equal(f.len, 14 + 8 + 40 + 8 + 12 + 20 + 4096 + 4);
	bench_expect_redirect("jumbo frame", f.bytes, f.len, 0x66);
	assert_int_equal(bench->cqe.byte_len, 4096);
	bench_expect_drop("jumbo frame, one byte short", f.bytes, f.len - 1, XROCE_DROP_ip_length,
			  0);
	s.payload_len = 4097;
	frame_build(&f, &s);
	bench_expect_drop("4097 bytes of payload", f.bytes, f.len, XROCE_DROP_payload_long, 0x66);
	s.dport = 53;
	frame_build(&f, &s);
	bench_expect_pass("other jumbo frame", f.bytes, f.len, false);
}

/*
 * The first buffer ends at each place of the headers. Without the port in it the frame passes; with
 * the port but not its BTH and DETH it is dropped. With all three in the first buffer the packet is
 * taken, wherever its immediate and its payload lie.
 */
static void parse_roce__headers_across_buffers(void **state)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	s.opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY_IMM);
	s.ecn_qpn = BENCH_UD_QPN;
	frame_put32(s.ext, BENCH_QKEY);
	frame_put32(s.ext + 8, 0xcafe0001);
	s.ext_len = 12;
	frame_build(&f, &s);
	if (bench_run_with(f.bytes, f.len, &(struct bench_entry){ .linear = f.len - 1 }) == -EINVAL)
		skip(); /* the kernel cannot be told how long the first buffer is (before 6.18) */
	for (uint32_t linear = 14; linear <= f.len; linear++) {
		struct bench_entry entry = { .linear = linear };

		if (linear < f.l4 + 8) {
			assert_int_equal(bench_run_with(f.bytes, f.len, &entry), XDP_PASS);
		} else if (linear < f.ext + 8) {
			bench_expect_drop_with("header in the second buffer", f.bytes, f.len,
					       XROCE_DROP_multibuffer,
					       linear < f.bth + 12 ? 0 : BENCH_UD_QPN, &entry);
		} else {
			assert_int_equal(bench_run_with(f.bytes, f.len, &entry), XDP_REDIRECT);
			assert_true(bench->has_cqe);
			assert_int_equal(bench->cqe.byte_len, 64);
			assert_memory_equal(&bench->cqe.imm, s.ext + 8, 4);
			assert_int_equal(bench->frame_len, f.len);
			assert_memory_equal(bench->frame, f.bytes, f.len);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_ip__arp_passes),
		cmocka_unit_test(parse_ip__other_protocols_pass),
		cmocka_unit_test(parse_ip__other_udp_ports_pass),
		cmocka_unit_test(parse_ip__wrong_versions_pass),
		cmocka_unit_test(parse_ip__later_fragments_pass),
		cmocka_unit_test(parse_ip__ipv6_extension_headers_pass),
		cmocka_unit_test(steer_is_ours__other_destination_passes),
		cmocka_unit_test(steer_is_ours__gid_removed),
		cmocka_unit_test(steer_is_ours__first_gid),
		cmocka_unit_test(parse_ip__vlan),
		cmocka_unit_test(parse_ip__three_tags_pass),
		cmocka_unit_test(parse_ip__ipv6),
		cmocka_unit_test(cqe__ecn),
		cmocka_unit_test(cqe__reserved_bits),
		cmocka_unit_test(parse_roce__ethernet_padding),
		cmocka_unit_test(parse_roce__every_opcode),
		cmocka_unit_test(parse_roce__cnp),
		cmocka_unit_test(parse_roce__flow),
		cmocka_unit_test(parse_roce__jumbo),
		cmocka_unit_test(parse_roce__headers_across_buffers),
	};

	return cmocka_run_group_tests_name("parse", tests, bench_setup, bench_teardown);
}
