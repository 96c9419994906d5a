/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * The packet codec on handmade packets: every opcode there and back, the bytes of headers that no
 * capture has, every reason to refuse, and no read beyond a frame's end.
 */
#include "packets.h"

enum { ETH = 14, VLAN = 4, IPV4 = 20, IPV6 = 40, UDP = 8, BTH = 12, ICRC = 4 };

static u64 seed;

static int reseed(void **state)
{
	seed = 0xc0dec;
	return 0;
}

/* Build a whole frame with payload bytes from data; returns its length. */
static u32 build(u8 *frame, const struct path *path, const struct packet *p, const u8 *data)
{
	u8 *payload = packet_put_headers(frame, path, p);

	assert_int_equal(payload - frame, packet_header_bytes(path, p->opcode));
	if (p->payload_len)
		memcpy(payload, data, p->payload_len);
	return packet_seal(frame, payload, p->payload_len);
}

static void assert_path(const struct packet *p, const struct path *path, const u8 *frame)
{
	assert_int_equal(p->is_ipv6, path->is_ipv6);
	assert_int_equal(p->tos, path->tos);
	assert_int_equal(p->hop_limit, path->hop_limit);
	assert_int_equal(p->udp_sport, path->udp_sport);
	assert_int_equal(p->has_vlan, path->has_vlan);
	assert_int_equal(p->vlan_tci, path->has_vlan ? path->vlan_tci : 0);
	assert_memory_equal(p->src.raw, path->local.raw, 16);
	assert_memory_equal(p->dst.raw, path->peer.raw, 16);
	assert_memory_equal(frame, path->dmac, 6);
	assert_memory_equal(frame + 6, path->smac, 6);
}

static void packet_parse__every_opcode_there_and_back(void **state)
{
	static u8 data[ROCE_PMTU_MAX];
	int opcodes = 0;

	fill_random(&seed, data, sizeof(data));
	for (int n = 0; n < 256 * 4 * 32; n++) {
		u8 opcode = (u8)(n / 128), *frame, *exact;
		struct path path = random_path(&seed, n & 1, n & 2);
		struct packet sent = random_packet(&seed, opcode), p;
		struct rx_frame f;
		u32 len, ip_len;

		if (!(opcode_flags(opcode) & OP_VALID))
			continue;
		opcodes += n % 128 == 0;
		frame = malloc(PACKET_FRAME_MAX);
		assert_non_null(frame);
		memset(frame, 0xa5, PACKET_FRAME_MAX);
		len = build(frame, &path, &sent, data);
		for (u32 i = len; i < PACKET_FRAME_MAX; i++)
			assert_int_equal(frame[i], 0xa5);

		exact = exact_copy(frame, len);
		f = (struct rx_frame){ .data = exact, .len = len };
		memset(&p, 0xa5, sizeof(p));
		assert_int_equal(packet_parse(&p, &f), 0);
		assert_same_packet(&p, &sent);
		assert_path(&p, &path, exact);
		assert_int_equal(p.flags, opcode_flags(opcode));
		assert_int_equal(p.tver, 0);
		assert_int_equal(p.pad, -sent.payload_len & 3);
		assert_int_equal(p.ip_id, path.is_ipv6 ? 0 : sent.ip_id);
		assert_ptr_equal(p.payload, exact + packet_header_bytes(&path, opcode));
		assert_ptr_equal(p.end, exact + len);
		assert_null(p.frag);
		assert_int_equal(p.frag_len, 0);
		assert_memory_equal(p.payload, data, p.payload_len);
		for (u32 i = 0; i < p.pad; i++)
			assert_int_equal(p.payload[p.payload_len + i], 0);

		ip_len = len - ETH - (path.has_vlan ? VLAN : 0);
		assert_true(packet_icrc_ok(&p));
		assert_int_equal(reference_icrc(p.ip, path.is_ipv6, ip_len - ICRC),
				 load_le32(exact + len - ICRC));
		free(exact);
		free(frame);
	}
	assert_int_equal(opcodes, 25 + 12 + 2 + 25 + 1 + 2);
}

/* All four pads and both families, headers and payload by both implementations of the ICRC. */
static void packet_seal__four_pads(void **state)
{
	u8 frame[PACKET_FRAME_MAX], data[64];

	fill_random(&seed, data, sizeof(data));
	for (u32 payload_len = 0; payload_len <= 64; payload_len++)
		for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
			struct path path = random_path(&seed, is_ipv6, false);
			struct packet sent = { .opcode = 0x04, .payload_len = payload_len };
			u32 pad = (4 - payload_len % 4) % 4;
			u32 headers = ETH + (is_ipv6 ? IPV6 : IPV4) + UDP + BTH;
			u32 len = build(frame, &path, &sent, data);

			assert_int_equal(len, headers + payload_len + pad + ICRC);
			assert_int_equal((frame[headers - BTH + 1] & BTH_PAD_MASK) >> 4, pad);
			assert_memory_equal(frame + headers, data, payload_len);
			assert_memory_equal(frame + headers + payload_len, "\0\0\0", pad);
			assert_int_equal(load_le32(frame + len - ICRC),
					 reference_icrc(frame + ETH, is_ipv6, len - ETH - ICRC));
		}
}

static void packet_put_headers__ipv4_checksum(void **state)
{
	u8 frame[PACKET_FRAME_MAX];

	for (int n = 0; n < 20000; n++) {
		struct path path = random_path(&seed, false, false);
		struct packet p = { .opcode = 0x01,
				    .payload_len = random_below(&seed, ROCE_PMTU_MAX + 1) };
		u32 sum = 0;

		p.ip_id = (u16)next_random(&seed);
		if (n % 4 == 0) { /* the corners of the end-around carry */
			memset(path.local.raw + 12, n & 4 ? 0xff : 0, 4);
			memset(path.peer.raw + 12, n & 8 ? 0xff : 0, 4);
			path.tos = n & 16 ? 0xff : 0;
			path.hop_limit = n & 32 ? 0xff : 0;
			p.ip_id = n & 64 ? 0xffff : 0;
		}
		packet_put_headers(frame, &path, &p);
		for (int i = 0; i < IPV4; i += 2)
			sum += (u32)frame[ETH + i] << 8 | frame[ETH + i + 1];
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		assert_int_equal(sum, 0xffff);
	}
}

/*
 * Every identification with one path: the sum passes each value, so each carry of the folding is
 * met.
 */
static void packet_put_headers__ipv4_checksum_every_carry(void **state)
{
	u8 frame[PACKET_FRAME_MAX];
	struct path path = random_path(&seed, false, false);
	struct packet p = { .opcode = 0x01 };

	memset(path.local.raw + 12, 0xff, 4);
	memset(path.peer.raw + 12, 0xff, 4);
	for (u32 id = 0; id < 0x10000; id++) {
		u32 sum = 0;

		p.ip_id = (u16)id;
		packet_put_headers(frame, &path, &p);
		for (int i = 0; i < IPV4; i += 2)
			sum += (u32)frame[ETH + i] << 8 | frame[ETH + i + 1];
		assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
	}
}

/* A path and a packet whose bytes can be told apart at a glance. */
static const struct path plain_path = {
	.dmac = { 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6 },
	.smac = { 0x51, 0x52, 0x53, 0x54, 0x55, 0x56 },
	.tos = 0x68,
	.hop_limit = 64,
	.udp_sport = 0xc123,
	.flow_label = 0x12345,
	.local = { { [10] = 0xff, 0xff, 10, 1, 2, 3 } },
	.peer = { { [10] = 0xff, 0xff, 10, 4, 5, 6 } },
};

static void packet_put_headers__vlan_ipv4_bytes(void **state)
{
	static const u8 want[ETH + VLAN + IPV4 + UDP] = {
		0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0x51, 0x52, 0x53, 0x54,	0x55, 0x56,
		0x81, 0x00, 0x60, 0x2a, 0x08, 0x00, 0x45, 0x68, 0x00, 0x33 + 1, 0xab, 0xcd,
		0x40, 0x00, 0x40, 0x11, 0x00, 0x00, 10,	  1,	2,    3,	10,   4,
		5,    6,    0xc1, 0x23, 0x12, 0xb7, 0x00, 0x20, 0x00, 0x00,
	};
	struct path path = plain_path;
	struct packet p = { .opcode = 0x04, .payload_len = 5, .ip_id = 0xabcd };
	u8 frame[PACKET_FRAME_MAX];

	path.has_vlan = true;
	path.vlan_tci = 0x602a;
	packet_put_headers(frame, &path, &p);
	frame[ETH + VLAN + 10] = frame[ETH + VLAN + 11] = 0; /* the checksum has its own test */
	assert_memory_equal(frame, want, sizeof(want));
}

static void packet_put_headers__ipv6_bytes(void **state)
{
	static const u8 want[ETH + IPV6 + UDP] = {
		0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x86,
		0xdd, 0x66, 0x81, 0x23, 0x45, 0x00, 0x1c, 0x11, 0x40, 0xfd, 0,	  0,	0,
		0,    0,    0,	  0,	0,    0,    0,	  0,	0,    0,    0,	  1,	0xfd,
		0,    0,    0,	  0,	0,    0,    0,	  0,	0,    0,    0,	  0,	0,
		0,    2,    0xc1, 0x23, 0x12, 0xb7, 0x00, 0x1c, 0x00, 0x00,
	};
	struct path path = plain_path;
	struct packet p = { .opcode = 0x11 };
	u8 frame[PACKET_FRAME_MAX];

	path.is_ipv6 = true;
	path.flow_label |= 0xfff00000; /* 20 bits count */
	path.local = (struct gid){ { 0xfd, [15] = 1 } };
	path.peer = (struct gid){ { 0xfd, [15] = 2 } };
	packet_put_headers(frame, &path, &p);
	assert_memory_equal(frame, want, sizeof(want));
}

/*
 * BTH and extension headers of what the captures do not have, byte by byte from the protocol sheet.
 */
static void packet_put_headers__headers_no_capture_has(void **state)
{
	static const struct {
		struct packet p;
		u32 len;
		u8 want[BTH + 24];
	} rows[] = {
		{ { .opcode = 0xab, /* XRC WRITE_ONLY_IMM: XRCETH, RETH, ImmDt */
		    .solicited = true,
		    .migreq = true,
		    .ackreq = true,
		    .pkey = 0x8001,
		    .dest_qpn = 0x123456,
		    .psn = 0xabcdef,
		    .xrc_srqn = 0x00c0de,
		    .va = 0x1122334455667788,
		    .rkey = 0x99aabbcc,
		    .dma_len = 3,
		    .payload_len = 3 },
		  BTH + 24,
		  { 0xab, 0xd0, 0x80, 0x01, 0x00, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd, 0xef,
		    0x00, 0x00, 0xc0, 0xde, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
		    0x99, 0xaa, 0xbb, 0xcc, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00 } },
		{ { .opcode = 0x1c, /* RC FLUSH: FETH, RETH */
		    .pkey = 0xffff,
		    .dest_qpn = 0xfffffe,
		    .psn = 0,
		    .flush = 0x12,
		    .va = 1,
		    .rkey = 2,
		    .dma_len = 0x80000000 },
		  BTH + 20,
		  { 0x1c, 0x00, 0xff, 0xff, 0x00, 0xff, 0xff, 0xfe, 0x00, 0x00, 0x00,
		    0x00, 0x00, 0x00, 0x00, 0x12, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		    0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x80, 0x00, 0x00, 0x00 } },
		{ { .opcode = 0x81, /* CNP: BECN, 16 zeros */
		    .becn = true,
		    .pkey = 0xffff,
		    .dest_qpn = 0x000102 },
		  BTH + 16,
		  { 0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x02 } },
		{ { .opcode = 0xc1, /* flow control's answer: DETH, cookie, allowance */
		    .migreq = true,
		    .pkey = 0xffff,
		    .dest_qpn = 0x000102,
		    .qkey = 0x11111111,
		    .src_qpn = 0x030405,
		    .credit_cookie = 0xcafef00d,
		    .credit_allowance = 0x01000007 },
		  BTH + 16,
		  { 0xc1, 0x40, 0xff, 0xff, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00,
		    0x00, 0x00, 0x11, 0x11, 0x11, 0x11, 0x00, 0x03, 0x04, 0x05,
		    0xca, 0xfe, 0xf0, 0x0d, 0x01, 0x00, 0x00, 0x07 } },
		{ { .opcode = 0xb1, /* XRC ACKNOWLEDGE: a response has no XRCETH */
		    .fecn = true,
		    .pkey = 0xffff,
		    .dest_qpn = 5,
		    .psn = 0xffffff,
		    .syndrome = 0x62,
		    .msn = 0xfffffe },
		  BTH + 4,
		  { 0xb1, 0x00, 0xff, 0xff, 0x80, 0x00, 0x00, 0x05, 0x00, 0xff, 0xff, 0xff, 0x62,
		    0xff, 0xff, 0xfe } },
	};
	u8 frame[PACKET_FRAME_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		u8 *payload = packet_put_headers(frame, &plain_path, &rows[i].p);
		u8 *bth = frame + ETH + IPV4 + UDP;

		assert_int_equal(payload - bth, rows[i].len);
		assert_memory_equal(bth, rows[i].want, rows[i].len);
	}
}

/* Numbers wider than their 24-bit field must not spill into the neighbour. */
static void packet_put_headers__24_bit_fields(void **state)
{
	static const u8 opcodes[] = { 0x64, 0xa4, 0x11 };
	u8 frame[PACKET_FRAME_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct packet wide = { .opcode = opcodes[i],
				       .dest_qpn = ~0u,
				       .psn = ~0u,
				       .src_qpn = ~0u,
				       .xrc_srqn = ~0u,
				       .msn = ~0u };
		struct packet p;
		struct rx_frame f = { .data = frame };

		f.len = build(frame, &plain_path, &wide, NULL);
		assert_int_equal(packet_parse(&p, &f), 0);
		assert_int_equal(p.dest_qpn, 0xffffff);
		assert_int_equal(p.psn, 0xffffff);
		assert_false(p.fecn || p.becn || p.ackreq);
		assert_int_equal(frame[ETH + IPV4 + UDP + 4], 0);
		assert_int_equal(frame[ETH + IPV4 + UDP + 8], 0);
		assert_int_equal(p.syndrome, 0);
		assert_int_equal(p.src_qpn, opcodes[i] == 0x64 ? 0xffffff : 0);
		assert_int_equal(p.xrc_srqn, opcodes[i] == 0xa4 ? 0xffffff : 0);
		assert_int_equal(p.msn, opcodes[i] == 0x11 ? 0xffffff : 0);
		if (opcodes[i] != 0x11)
			assert_int_equal(
				frame[ETH + IPV4 + UDP + BTH + (opcodes[i] == 0x64 ? 4 : 0)], 0);
	}
}

/* ---- frames that are refused, and near misses that are not ---- */

/* Change the byte at an offset from the start of the IP header to a value. */
struct change {
	int at;
	int value;
};

static const struct refused {
	const char *what;
	bool is_ipv6;
	u8 opcode;
	u32 payload_len;
	struct change change[4];
	enum xroce_drop reason;
} refused[] = {
	/* before the UDP port says RoCEv2: someone else's */
	{ "other ethertype", false, 0x04, 8, { { -2, 0x88 }, { -1, 0xb5 } }, XROCE_DROP_not_roce },
	{ "IPv4 type over an IPv6 header",
	  true,
	  0x04,
	  8,
	  { { -2, 0x08 }, { -1, 0x00 } },
	  XROCE_DROP_not_roce },
	{ "IPv6 type over an IPv4 header",
	  false,
	  0x04,
	  8,
	  { { -2, 0x86 }, { -1, 0xdd } },
	  XROCE_DROP_not_roce },
	{ "IPv4 version 5", false, 0x04, 8, { { 0, 0x55 } }, XROCE_DROP_not_roce },
	{ "IPv4 header of 16 bytes", false, 0x04, 8, { { 0, 0x44 } }, XROCE_DROP_not_roce },
	{ "IPv4 header of 0 bytes", false, 0x04, 8, { { 0, 0x40 } }, XROCE_DROP_not_roce },
	{ "IPv4 TCP", false, 0x04, 8, { { 9, 6 } }, XROCE_DROP_not_roce },
	{ "IPv4 later fragment", false, 0x04, 8, { { 6, 0x20 }, { 7, 1 } }, XROCE_DROP_not_roce },
	{ "IPv4 last fragment", false, 0x04, 8, { { 6, 0x1f }, { 7, 0xff } }, XROCE_DROP_not_roce },
	{ "IPv6 version 4", true, 0x04, 8, { { 0, 0x46 } }, XROCE_DROP_not_roce },
	{ "IPv6 TCP", true, 0x04, 8, { { 6, 6 } }, XROCE_DROP_not_roce },
	{ "IPv6 hop-by-hop options", true, 0x04, 8, { { 6, 0 } }, XROCE_DROP_not_roce },
	{ "UDP port 4790", false, 0x04, 8, { { IPV4 + 3, 0xb6 } }, XROCE_DROP_not_roce },
	{ "UDP port 4791 as source only",
	  false,
	  0x04,
	  8,
	  { { IPV4, 0x12 }, { IPV4 + 1, 0xb7 }, { IPV4 + 2, 0 } },
	  XROCE_DROP_not_roce },
	/*
	 * options: the UDP header is read after them; here 4 bytes on, where the BTH is taken for
	 * it
	 */
	{ "IPv4 options, no port", false, 0x04, 8, { { 0, 0x46 } }, XROCE_DROP_not_roce },
	{ "IPv4 options",
	  false,
	  0x04,
	  8,
	  { { 0, 0x46 }, { IPV4 + 6, 0x12 }, { IPV4 + 7, 0xb7 } },
	  XROCE_DROP_ip_options },
	{ "IPv4 first fragment", false, 0x04, 8, { { 6, 0x20 } }, XROCE_DROP_ip_fragment },
	{ "IPv4 no DF", false, 0x04, 8, { { 6, 0x00 } }, XROCE_DROP_none },
	/* lengths: 20 + 8 + 12 + 8 + 4 = 52 */
	{ "IPv4 length 53", false, 0x04, 8, { { 3, 53 } }, XROCE_DROP_ip_length },
	{ "IPv4 length 65535", false, 0x04, 8, { { 2, 0xff }, { 3, 0xff } }, XROCE_DROP_ip_length },
	{ "IPv4 length 27", false, 0x04, 8, { { 3, 27 } }, XROCE_DROP_ip_length },
	{ "IPv4 length 0", false, 0x04, 8, { { 3, 0 } }, XROCE_DROP_ip_length },
	{ "IPv4 length 51", false, 0x04, 8, { { 3, 51 } }, XROCE_DROP_udp_length },
	{ "IPv6 length 33", true, 0x04, 8, { { 5, 33 } }, XROCE_DROP_ip_length },
	{ "IPv6 length 7", true, 0x04, 8, { { 5, 7 } }, XROCE_DROP_ip_length },
	{ "IPv6 length 0 (jumbogram)", true, 0x04, 8, { { 5, 0 } }, XROCE_DROP_ip_length },
	{ "IPv6 length 31", true, 0x04, 8, { { 5, 31 } }, XROCE_DROP_udp_length },
	{ "UDP length + 1", false, 0x04, 8, { { IPV4 + 5, 33 } }, XROCE_DROP_udp_length },
	{ "UDP length - 1", false, 0x04, 8, { { IPV4 + 5, 31 } }, XROCE_DROP_udp_length },
	{ "UDP length 0", false, 0x04, 8, { { IPV4 + 5, 0 } }, XROCE_DROP_udp_length },
	{ "UDP checksum set",
	  false,
	  0x04,
	  8,
	  { { IPV4 + 6, 0x12 }, { IPV4 + 7, 0x34 } },
	  XROCE_DROP_none },
	{ "23 bytes of UDP",
	  false,
	  0x04,
	  8,
	  { { 3, 43 }, { IPV4 + 5, 23 } },
	  XROCE_DROP_bth_short },
	{ "24 bytes of UDP", false, 0x04, 8, { { 3, 44 }, { IPV4 + 5, 24 } }, XROCE_DROP_none },
	{ "8 bytes of UDP", true, 0x04, 8, { { 5, 8 }, { IPV6 + 5, 8 } }, XROCE_DROP_bth_short },
	/* BTH */
	{ "transport version 1",
	  false,
	  0x04,
	  8,
	  { { IPV4 + UDP + 1, 0x01 } },
	  XROCE_DROP_bth_version },
	{ "transport version 8 before a bad opcode",
	  false,
	  0x04,
	  8,
	  { { IPV4 + UDP, 0x60 }, { IPV4 + UDP + 1, 0x08 } },
	  XROCE_DROP_bth_version },
	{ "RC opcode 0x15", false, 0x04, 8, { { IPV4 + UDP, 0x15 } }, XROCE_DROP_none },
	{ "UC opcode 0x35", false, 0x04, 8, { { IPV4 + UDP, 0x35 } }, XROCE_DROP_opcode },
	{ "UC READ_REQUEST", false, 0x04, 8, { { IPV4 + UDP, 0x2c } }, XROCE_DROP_opcode },
	{ "RD SEND_ONLY", false, 0x04, 8, { { IPV4 + UDP, 0x44 } }, XROCE_DROP_opcode },
	{ "UD SEND_FIRST", false, 0x04, 8, { { IPV4 + UDP, 0x60 } }, XROCE_DROP_opcode },
	{ "manufacturer's opcode 0xff",
	  false,
	  0x04,
	  8,
	  { { IPV4 + UDP, 0xff } },
	  XROCE_DROP_opcode },
	/* extension headers: 8 bytes after the BTH where more are needed */
	{ "RETH in 8 bytes", false, 0x04, 8, { { IPV4 + UDP, 0x0a } }, XROCE_DROP_ext_short },
	{ "DETH in 8 bytes", false, 0x04, 8, { { IPV4 + UDP, 0x64 } }, XROCE_DROP_none },
	{ "DETH and immediate in 8 bytes",
	  false,
	  0x04,
	  8,
	  { { IPV4 + UDP, 0x65 } },
	  XROCE_DROP_ext_short },
	{ "CNP of 8 bytes", false, 0x04, 8, { { IPV4 + UDP, 0x81 } }, XROCE_DROP_ext_short },
	{ "CNP of 16 bytes", false, 0x04, 16, { { IPV4 + UDP, 0x81 } }, XROCE_DROP_none },
	{ "CNP of 20 bytes", false, 0x04, 20, { { IPV4 + UDP, 0x81 } }, XROCE_DROP_pad },
	/* pad and payload */
	{ "pad 3 of 0", false, 0x04, 0, { { IPV4 + UDP + 1, 0x30 } }, XROCE_DROP_pad },
	{ "pad 1 of 0", true, 0x04, 0, { { IPV6 + UDP + 1, 0x10 } }, XROCE_DROP_pad },
	{ "pad 3 of 4", false, 0x04, 4, { { IPV4 + UDP + 1, 0x30 } }, XROCE_DROP_none },
	{ "9 bytes of payload and pad",
	  false,
	  0x04,
	  12,
	  { { 3, 53 }, { IPV4 + 5, 33 } },
	  XROCE_DROP_pad },
	{ "11 bytes of payload and pad, pad 3",
	  false,
	  0x04,
	  12,
	  { { 3, 55 }, { IPV4 + 5, 35 }, { IPV4 + UDP + 1, 0x30 } },
	  XROCE_DROP_pad },
	{ "ACK with payload", false, 0x04, 8, { { IPV4 + UDP, 0x11 } }, XROCE_DROP_pad },
	{ "ACK with pad", false, 0x11, 0, { { IPV4 + UDP + 1, 0x10 } }, XROCE_DROP_pad },
	{ "READ request with payload", false, 0x04, 20, { { IPV4 + UDP, 0x0c } }, XROCE_DROP_pad },
	{ "READ response first of nothing",
	  false,
	  0x11,
	  0,
	  { { IPV4 + UDP, 0x0d } },
	  XROCE_DROP_none },
	/* 4096 + 4 bytes: a WRITE_ONLY of 4096 read as a SEND has its RETH as payload */
	{ "4112 bytes of payload",
	  false,
	  0x0a,
	  4096,
	  { { IPV4 + UDP, 0x04 } },
	  XROCE_DROP_payload_long },
	{ "4100 - 3 bytes of payload",
	  false,
	  0x03,
	  4096,
	  { { IPV4 + UDP, 0x04 }, { IPV4 + UDP + 1, 0x30 } },
	  XROCE_DROP_payload_long },
	{ "4096 bytes of payload", true, 0x04, 4096, { { 0 } }, XROCE_DROP_none },
};

static void packet_parse__reasons(void **state)
{
	static u8 frame[PACKET_FRAME_MAX], data[ROCE_PMTU_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		const struct refused *r = &refused[i];
		struct packet sent = { .opcode = r->opcode, .payload_len = r->payload_len }, p;
		struct path path = plain_path;
		struct rx_frame f;
		u8 *exact;
		enum xroce_drop drop;

		path.is_ipv6 = r->is_ipv6;
		f.len = build(frame, &path, &sent, data);
		for (size_t c = 0; c < ARRAY_SIZE(r->change); c++)
			if (r->change[c].at || r->change[c].value)
				frame[ETH + r->change[c].at] = (u8)r->change[c].value;
		exact = exact_copy(frame, f.len);
		f = (struct rx_frame){ .data = exact, .len = f.len };
		drop = packet_parse(&p, &f);
		free(exact);
		if (drop != r->reason)
			fail_msg("%s: %d", r->what, drop);
	}
}

/*
 * An IPv6 packet after a fragment header, even a valid whole one (RFC 6946), is refused as a
 * fragment.
 */
static void packet_parse__ipv6_fragment_header(void **state)
{
	static const struct {
		u8 header[8];
		enum xroce_drop reason;
	} rows[] = {
		{ { 17, 0, 0, 1 }, XROCE_DROP_ip_fragment },
		{ { 17, 0, 0, 0 }, XROCE_DROP_ip_fragment },
		{ { 17, 0, 0, 8 }, XROCE_DROP_not_roce },
		{ { 17, 0, 0xff, 0xf9 }, XROCE_DROP_not_roce },
		{ { 6, 0, 0, 1 }, XROCE_DROP_not_roce },
	};
	u8 frame[PACKET_FRAME_MAX], *exact;
	struct packet sent = { .opcode = 0x04 }, p;
	struct path path = plain_path;

	path.is_ipv6 = true;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		u32 len = build(frame, &path, &sent, NULL);
		struct rx_frame f = { .len = len + 8 };
		enum xroce_drop drop;

		memmove(frame + ETH + IPV6 + 8, frame + ETH + IPV6, len - ETH - IPV6);
		memcpy(frame + ETH + IPV6, rows[i].header, 8);
		frame[ETH + 5] += 8;
		frame[ETH + 6] = 44;
		f.data = exact = exact_copy(frame, f.len);
		drop = packet_parse(&p, &f);
		assert_int_equal(drop, rows[i].reason);
		free(exact);
		/* cut anywhere: never accepted, never read beyond */
		for (u32 cut = 0; cut < len + 8; cut++) {
			f = (struct rx_frame){ .data = exact = exact_copy(frame, cut), .len = cut };
			assert_true(packet_parse(&p, &f) != XROCE_DROP_none);
			free(exact);
		}
	}
}

static u32 add_tag(u8 *frame, u32 len, u16 type, u16 tci)
{
	/* gcc 14 sees that the subtraction could wrap */
	if (len < 12 || len > PACKET_FRAME_MAX - 4)
		fail();
	memmove(frame + 16, frame + 12, len - 12);
	frame[12] = (u8)(type >> 8);
	frame[13] = (u8)type;
	frame[14] = (u8)(tci >> 8);
	frame[15] = (u8)tci;
	return len + 4;
}

static void packet_parse__vlan_tags(void **state)
{
	static const u16 types[] = { 0x8100, 0x88a8 };
	u8 frame[PACKET_FRAME_MAX], *exact;
	struct packet sent = { .opcode = 0x05, .imm = 0x12345678, .payload_len = 7 }, p;
	struct path path = plain_path;

	for (int n = 0; n < 8; n++) {
		u32 len;
		struct rx_frame f;

		path.is_ipv6 = n & 4;
		len = build(frame, &path, &sent, (const u8 *)"payload");
		len = add_tag(frame, len, types[n & 1], 0xe001);
		f = (struct rx_frame){ .data = exact = exact_copy(frame, len), .len = len };
		assert_int_equal(packet_parse(&p, &f), 0);
		assert_true(p.has_vlan);
		assert_int_equal(p.vlan_tci, 0xe001);
		assert_true(packet_icrc_ok(&p));
		free(exact);

		len = add_tag(frame, len, types[n >> 1 & 1], 0x2fff);
		f = (struct rx_frame){ .data = exact = exact_copy(frame, len), .len = len };
		assert_int_equal(packet_parse(&p, &f), 0);
		assert_true(p.has_vlan);
		/* the customer's tag, after a provider's */
		assert_int_equal(p.vlan_tci, types[n >> 1 & 1] == 0x88a8 && types[n & 1] == 0x8100
						     ? 0xe001
						     : 0x2fff);
		assert_same_packet(&p, &sent);
		assert_memory_equal(p.payload, "payload", 7);
		assert_true(packet_icrc_ok(&p));
		free(exact);
		for (u32 cut = 0; cut < len; cut++) {
			f = (struct rx_frame){ .data = exact = exact_copy(frame, cut), .len = cut };
			assert_true(packet_parse(&p, &f) != XROCE_DROP_none);
			free(exact);
		}

		len = add_tag(frame, len, 0x8100, 1);
		f = (struct rx_frame){ .data = exact = exact_copy(frame, len), .len = len };
		assert_int_equal(packet_parse(&p, &f), XROCE_DROP_not_roce);
		free(exact);
	}
}

/*
 * Headers must lie in the linear part: headers that run on into the second buffer and short ones
 * have different reasons.
 */
static void packet_parse__headers_in_two_buffers(void **state)
{
	u8 frame[PACKET_FRAME_MAX];
	struct packet sent = { .opcode = 0xb3 }, p; /* XRC CMP_SWAP: the longest headers */
	u32 len = build(frame, &plain_path, &sent, NULL),
	    headers = packet_header_bytes(&plain_path, 0xb3);

	assert_int_equal(headers + ICRC, len);
	for (u32 at = 0; at <= len; at++) {
		u8 *first = exact_copy(frame, at), *second = exact_copy(frame + at, len - at);
		struct rx_frame f = { first, at, second, len - at };
		enum xroce_drop drop = packet_parse(&p, &f);

		if (at < ETH + IPV4 + UDP)
			assert_int_equal(drop, XROCE_DROP_not_roce);
		else if (at < headers)
			assert_int_equal(drop, XROCE_DROP_multibuffer);
		else
			assert_true(drop == XROCE_DROP_none && packet_icrc_ok(&p));
		free(first);
		free(second);
	}
}

/* A hostile length must not wrap: the sum of both buffers is compared in full width. */
static void packet_parse__lengths_do_not_wrap(void **state)
{
	u8 frame[PACKET_FRAME_MAX];
	struct packet sent = { .opcode = 0x04, .payload_len = 8 }, p;
	struct rx_frame f = { .data = frame };

	f.len = build(frame, &plain_path, &sent, (const u8 *)"12345678");
	f.frag = frame;
	f.frag_len = ~0u;
	assert_int_equal(packet_parse(&p, &f), 0);
	assert_int_equal(p.frag_len, 0);
	assert_null(p.frag);
}

/*
 * Honest packets with a few bytes changed, cut and split: reads stay inside, and the lengths of
 * accepted ones add up.
 */
static void packet_parse__random_bytes(void **state)
{
	u8 frame[PACKET_FRAME_MAX], payload[ROCE_PMTU_MAX];
	int accepted = 0;

	for (int n = 0; n < 40000; n++) {
		struct path path = random_path(&seed, n & 1, n & 2);
		struct packet sent, p;
		struct rx_frame f;
		u8 opcode, *first, *second;
		u32 len, at;
		enum xroce_drop drop;

		do {
			opcode = (u8)next_random(&seed);
		} while (!opcode_flags(opcode));
		sent = random_packet(&seed, opcode);
		if (sent.payload_len > 64)
			sent.payload_len = 64;
		fill_random(&seed, payload, 64);
		len = build(frame, &path, &sent, payload);
		for (u32 i = random_below(&seed, 4); i; i--)
			frame[random_below(&seed, len)] = (u8)next_random(&seed);
		len -= random_below(&seed, 8) ? 0 : random_below(&seed, len);
		at = random_below(&seed, 4) ? len : random_below(&seed, len + 1);
		first = exact_copy(frame, at);
		second = exact_copy(frame + at, len - at);
		f = (struct rx_frame){ first, at, at < len ? second : NULL, len - at };
		drop = packet_parse(&p, &f);
		if (drop == XROCE_DROP_none) {
			accepted++;
			assert_true(p.payload_len <= ROCE_PMTU_MAX);
			assert_int_equal((u32)(p.end - p.payload) + p.frag_len,
					 p.payload_len + p.pad + ICRC);
			packet_icrc_ok(&p);
			packet_copy_payload(&p, 0, payload, p.payload_len);
		} else {
			assert_true(drop < XROCE_DROP_END);
		}
		free(first);
		free(second);
	}
	assert_true(accepted > 1000);
}

static void packet_copy_payload__every_range(void **state)
{
	u8 frame[PACKET_FRAME_MAX], data[37];
	struct packet sent = { .opcode = 0x04, .payload_len = sizeof(data) }, p;
	u32 len, headers = packet_header_bytes(&plain_path, 0x04);

	fill_random(&seed, data, sizeof(data));
	len = build(frame, &plain_path, &sent, data);
	for (u32 at = headers; at <= len; at++) {
		u8 *first = exact_copy(frame, at), *second = exact_copy(frame + at, len - at);
		struct rx_frame f = { first, at, second, len - at };

		assert_int_equal(packet_parse(&p, &f), 0);
		for (u32 offset = 0; offset <= sizeof(data); offset++)
			for (u32 n = 0; n <= sizeof(data) - offset; n++) {
				u8 out[sizeof(data) + 1];

				memset(out, 0xa5, sizeof(out));
				packet_copy_payload(&p, offset, out, n);
				assert_memory_equal(out, data + offset, n);
				assert_int_equal(out[n], 0xa5);
			}
		free(first);
		free(second);
	}
}

static void path_udp_sport__values(void **state)
{
	static const struct {
		u32 flow_label, local_qpn, remote_qpn;
		u16 want;
	} rows[] = {
		/* worked out by hand from the protocol sheet's formula */
		{ 0x00001, 7, 9, 0xc001 },
		{ 0x04000, 7, 9, 0xc001 },
		{ 0xfffff, 7, 9, 0xffc0 },
		{ 0x12345, 7, 9, 0xe341 },
		{ 0, 0x000011, 0x000013, 0xc143 },
		{ 0, 0x000001, 0x000000, 0xc000 },
		{ 0, 0xffffff, 0xffffff, 0xff21 },
		{ 0, 0x123456, 0xabcdef, 0xc3c8 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(
			path_udp_sport(rows[i].flow_label, rows[i].local_qpn, rows[i].remote_qpn),
			rows[i].want);
	for (int n = 0; n < 1000; n++) {
		u32 local = random_below(&seed, 1 << 24), remote = random_below(&seed, 1 << 24);

		assert_true(path_udp_sport(0, local, remote) >= ROCE_UDP_SPORT_MIN);
		assert_int_equal(path_udp_sport(0, local, remote),
				 path_udp_sport(0, remote, local));
		assert_int_equal(path_udp_sport(0xfff00000, local, remote),
				 path_udp_sport(0, local, remote));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(packet_parse__every_opcode_there_and_back, reseed),
		cmocka_unit_test_setup(packet_parse__reasons, reseed),
		cmocka_unit_test_setup(packet_parse__ipv6_fragment_header, reseed),
		cmocka_unit_test_setup(packet_parse__vlan_tags, reseed),
		cmocka_unit_test_setup(packet_parse__headers_in_two_buffers, reseed),
		cmocka_unit_test_setup(packet_parse__lengths_do_not_wrap, reseed),
		cmocka_unit_test_setup(packet_parse__random_bytes, reseed),
		cmocka_unit_test_setup(packet_copy_payload__every_range, reseed),
		cmocka_unit_test_setup(packet_put_headers__ipv4_checksum, reseed),
		cmocka_unit_test_setup(packet_put_headers__ipv4_checksum_every_carry, reseed),
		cmocka_unit_test_setup(packet_put_headers__vlan_ipv4_bytes, reseed),
		cmocka_unit_test_setup(packet_put_headers__ipv6_bytes, reseed),
		cmocka_unit_test_setup(packet_put_headers__headers_no_capture_has, reseed),
		cmocka_unit_test_setup(packet_put_headers__24_bit_fields, reseed),
		cmocka_unit_test_setup(packet_seal__four_pads, reseed),
		cmocka_unit_test_setup(path_udp_sport__values, reseed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
