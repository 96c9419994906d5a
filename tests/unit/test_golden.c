/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * The codec against the captures of tests/golden: what another implementation (Linux's rdma_rxe)
 * sent decodes to the fields of decode.txt, its ICRC recomputes, and encoding it again gives the
 * same bytes.
 */
#include "unit.h"

#include "../../user/engine/packet.h"
#include "golden.h"
#include "reference.h"

#define ETH_BYTES 14

static struct golden golden;

static int load(void **state)
{
	return golden_load(&golden);
}

static int unload(void **state)
{
	golden_free(&golden);
	return 0;
}

#define for_each_packet(g) for (g = golden.packets; g < golden.packets + golden.count; g++)

static void parse(const struct golden_packet *g, struct packet *p)
{
	struct rx_frame f = { .data = g->frame, .len = g->len };
	enum xroce_drop drop = packet_parse(p, &f);

	if (drop != XROCE_DROP_none)
		fail_msg("%s %u: dropped, reason %d", g->file, g->index, drop);
}

/*
 * The field of the decode line, 0 where it has none, is what was parsed. Returns whether it has
 * one.
 */
static bool expect(const struct golden_packet *g, const char *name, int base, uint64_t parsed)
{
	uint64_t want = 0;
	bool has = golden_field(g, name, base, &want);

	if (parsed != want)
		fail_msg("%s %u: %s is %#lx, not %#lx", g->file, g->index, name,
			 (unsigned long)parsed, (unsigned long)want);
	return has;
}

static void require(const struct golden_packet *g, const char *name, int base, uint64_t parsed)
{
	if (!expect(g, name, base, parsed))
		fail_msg("%s %u: decode.txt has no %s", g->file, g->index, name);
}

/*
 * A field of an extension header: decode.txt has it exactly if the opcode carries one of those
 * headers, and it is 0 where it has not.
 */
static void expect_with(const struct golden_packet *g, const struct packet *p, uint32_t headers,
			const char *name, int base, uint64_t parsed)
{
	if (expect(g, name, base, parsed) != !!(p->flags & headers))
		fail_msg("%s %u: %s and the opcode's headers do not agree", g->file, g->index,
			 name);
}

static uint32_t load_be(const uint8_t *p, int bytes)
{
	uint32_t v = 0;

	while (bytes--)
		v = v << 8 | *p++;
	return v;
}

/* One of the two addresses that all captures were made between. */
static bool is_end(const struct gid *gid, bool is_ipv6, uint8_t host)
{
	static const uint8_t v4[15] = { [10] = 0xff, 0xff, 10, 9, 0 };
	static const uint8_t v6[15] = { 0xfd, 0x00, 0x00, 0x09 };

	return memcmp(gid->raw, is_ipv6 ? v6 : v4, 15) == 0 && gid->raw[15] == host;
}

static void packet_parse__golden_ip_and_udp_fields(void **state)
{
	const struct golden_packet *g;
	struct packet p;

	for_each_packet(g) {
		const uint8_t *ip = g->frame + ETH_BYTES, *udp;

		parse(g, &p);
		assert_int_equal(p.is_ipv6, golden_is_ipv6(g));
		assert_ptr_equal(p.ip, ip);
		assert_false(p.has_vlan);
		assert_true((is_end(&p.src, p.is_ipv6, 1) && is_end(&p.dst, p.is_ipv6, 2)) ||
			    (is_end(&p.src, p.is_ipv6, 2) && is_end(&p.dst, p.is_ipv6, 1)));
		if (p.is_ipv6) {
			require(g, "w0", 16,
				0x60000000u | (uint32_t)p.tos << 20 | (load_be(ip, 4) & 0xfffff));
			require(g, "hop", 10, p.hop_limit);
			assert_int_equal(p.ip_id, 0);
			udp = ip + 40;
		} else {
			require(g, "tos", 16, p.tos);
			require(g, "ttl", 10, p.hop_limit);
			require(g, "id", 16, p.ip_id);
			require(g, "frag", 16, load_be(ip + 6, 2));
			require(g, "ipck", 16, load_be(ip + 10, 2));
			udp = ip + 20;
		}
		require(g, "sp", 10, p.udp_sport);
		require(g, "uck", 16, load_be(udp + 6, 2));
		require(g, "ulen", 10,
			(uint64_t)(p.payload - udp) + p.payload_len + p.pad + ROCE_ICRC_BYTES);
		assert_ptr_equal(p.end, g->frame + g->len);
		assert_null(p.frag);
	}
}

static void packet_parse__golden_transport_fields(void **state)
{
	const struct golden_packet *g;
	struct packet p;

	for_each_packet(g) {
		parse(g, &p);
		assert_int_equal(p.opcode, golden_opcode(g));
		assert_int_equal(p.flags, opcode_flags(p.opcode));
		require(g, "se", 10, p.solicited);
		require(g, "m", 10, p.migreq);
		require(g, "pad", 10, p.pad);
		require(g, "tv", 10, p.tver);
		require(g, "pkey", 16, p.pkey);
		require(g, "r4", 16, (uint64_t)p.fecn << 7 | (uint64_t)p.becn << 6);
		require(g, "qp", 16, p.dest_qpn);
		require(g, "a", 10, p.ackreq);
		require(g, "psn", 16, p.psn);
		require(g, "data", 10, p.payload_len);
		/* each extension header's fields, or zeros where the packet has none */
		expect_with(g, &p, OP_DETH, "qkey", 16, p.qkey);
		expect_with(g, &p, OP_DETH, "src", 16, p.src_qpn);
		expect_with(g, &p, OP_RETH | OP_ATOMIC_ETH, "va", 16, p.va);
		expect_with(g, &p, OP_RETH | OP_ATOMIC_ETH, "rkey", 16, p.rkey);
		expect_with(g, &p, OP_RETH, "len", 10, p.dma_len);
		expect_with(g, &p, OP_ATOMIC_ETH, "swap/add", 16, p.swap_add);
		expect_with(g, &p, OP_ATOMIC_ETH, "cmp", 16, p.compare);
		expect_with(g, &p, OP_AETH, "syn", 16, p.syndrome);
		expect_with(g, &p, OP_AETH, "msn", 10, p.msn);
		expect_with(g, &p, OP_ATOMIC_ACK_ETH, "orig", 16, p.original);
		expect_with(g, &p, OP_IMM, "imm", 16, be32toh(p.imm));
		expect_with(g, &p, OP_IETH, "ieth", 16, p.inv_rkey);
		assert_int_equal(p.xrc_srqn, 0);
		assert_int_equal(p.flush, 0);
	}
}

/* What follows the headers is the payload: connection-manager MADs name themselves in it. */
static void packet_parse__golden_mads(void **state)
{
	static const struct {
		const char *name;
		uint16_t id;
	} attr[] = {
		{ "attr=REQ ", 0x10 },	{ "attr=MRA ", 0x11 },	    { "attr=REJ ", 0x12 },
		{ "attr=REP ", 0x13 },	{ "attr=RTU ", 0x14 },	    { "attr=DREQ ", 0x15 },
		{ "attr=DREP ", 0x16 }, { "attr=SIDR_REQ ", 0x17 }, { "attr=SIDR_REP ", 0x18 }
	};
	const struct golden_packet *g;
	struct packet p;
	size_t mads = 0, known = 0;

	for_each_packet(g) {
		if (!strstr(g->decode, " MAD "))
			continue;
		parse(g, &p);
		mads++;
		require(g, "class", 16, p.payload[1]);
		require(g, "method", 16, p.payload[3]);
		for (size_t i = 0; i < ARRAY_SIZE(attr); i++)
			if (strstr(g->decode, attr[i].name)) {
				assert_int_equal(load_be(p.payload + 16, 2), attr[i].id);
				known++;
			}
	}
	assert_true(mads > 0);
	assert_int_equal(known, mads);
}

static void packet_icrc_ok__golden(void **state)
{
	const struct golden_packet *g;
	struct packet p;

	for_each_packet(g) {
		const uint8_t *stored = g->frame + g->len - ROCE_ICRC_BYTES;
		uint64_t in_decode;

		parse(g, &p);
		assert_true(packet_icrc_ok(&p));
		assert_int_equal(reference_icrc(p.ip, p.is_ipv6, (size_t)(stored - p.ip)),
				 load_le32(stored));
		/* decode.txt has the four bytes in the order of the wire */
		assert_true(golden_field(g, "icrc", 16, &in_decode));
		assert_int_equal(load_be(stored, 4), in_decode);
	}
}

static void packet_icrc_ok__golden_with_another_icrc(void **state)
{
	const struct golden_packet *g;
	struct packet p;

	for_each_packet(g)
		for (int bit = 0; bit < 32; bit++) {
			uint8_t *copy = exact_copy(g->frame, g->len);
			struct rx_frame f = { .data = copy, .len = g->len };

			copy[g->len - 4 + bit / 8] ^= 1 << bit % 8;
			assert_int_equal(packet_parse(&p, &f), 0);
			assert_false(packet_icrc_ok(&p));
			free(copy);
		}
}

/* The path that a packet came along, for building it again. */
static struct path path_of(const struct golden_packet *g, const struct packet *p)
{
	struct path path = {
		.is_ipv6 = p->is_ipv6,
		.tos = p->tos,
		.hop_limit = p->hop_limit,
		.udp_sport = p->udp_sport,
		.flow_label = p->is_ipv6 ? load_be(p->ip, 4) & 0xfffff : 0,
		.local = p->src,
		.peer = p->dst,
	};

	memcpy(path.dmac, g->frame, 6);
	memcpy(path.smac, g->frame + 6, 6);
	return path;
}

static void packet_put_headers__golden_gives_the_same_bytes(void **state)
{
	const struct golden_packet *g;
	struct packet p;

	for_each_packet(g) {
		uint8_t *frame = malloc(PACKET_FRAME_MAX), *payload;
		struct path path;

		assert_non_null(frame);
		memset(frame, 0xa5, PACKET_FRAME_MAX);
		parse(g, &p);
		path = path_of(g, &p);
		payload = packet_put_headers(frame, &path, &p);
		assert_int_equal(payload - frame, packet_header_bytes(&path, p.opcode));
		assert_int_equal(payload - frame, p.payload - g->frame);
		packet_copy_payload(&p, 0, payload, p.payload_len);
		assert_int_equal(packet_seal(frame, payload, p.payload_len), g->len);
		assert_memory_equal(frame, g->frame, g->len);
		for (uint32_t i = g->len; i < PACKET_FRAME_MAX; i++)
			assert_int_equal(frame[i], 0xa5);
		free(frame);
	}
}

static void packet_parse__golden_truncated_at_every_length(void **state)
{
	const struct golden_packet *g;
	struct packet p;

	for_each_packet(g)
		for (uint32_t len = 0; len < g->len; len++) {
			uint8_t *copy = exact_copy(g->frame, len);
			struct rx_frame f = { .data = copy, .len = len };
			enum xroce_drop drop = packet_parse(&p, &f);

			assert_true(drop != XROCE_DROP_none);
			/*
			 * all of Ethernet, IP and UDP there: the IP length tells; before that it is
			 * no RoCE packet at all
			 */
			assert_int_equal(drop, len < ETH_BYTES + (golden_is_ipv6(g) ? 48u : 28u) ?
						       XROCE_DROP_not_roce :
						       XROCE_DROP_ip_length);
			free(copy);
		}
}

static void packet_parse__golden_split_at_every_offset(void **state)
{
	const struct golden_packet *g;
	struct packet whole, p;

	for_each_packet(g) {
		uint8_t payload[ROCE_PMTU_MAX];
		uint32_t headers;

		parse(g, &whole);
		headers = (uint32_t)(whole.payload - g->frame);
		for (uint32_t at = 0; at < g->len; at++) {
			uint8_t *first = exact_copy(g->frame, at),
				*second = exact_copy(g->frame + at, g->len - at);
			struct rx_frame f = { first, at, second, g->len - at };
			enum xroce_drop drop = packet_parse(&p, &f);

			if (at < headers) {
				assert_true(drop != XROCE_DROP_none);
			} else {
				assert_int_equal(drop, XROCE_DROP_none);
				assert_int_equal(p.payload_len, whole.payload_len);
				assert_int_equal(p.pad, whole.pad);
				assert_true(packet_icrc_ok(&p));
				memset(payload, 0xa5, p.payload_len);
				packet_copy_payload(&p, 0, payload, p.payload_len);
				assert_memory_equal(payload, whole.payload, p.payload_len);
				second[g->len - at - 1] ^= 0x80;
				assert_false(packet_icrc_ok(&p));
			}
			free(first);
			free(second);
		}
	}
}

/*
 * Short frames are padded by Ethernet: the bytes behind the IP packet belong to nobody, wherever a
 * buffer ends.
 */
static void packet_parse__golden_with_ethernet_padding(void **state)
{
	const struct golden_packet *g;
	struct packet whole, p;

	for_each_packet(g) {
		parse(g, &whole);
		for (uint32_t extra = 1; extra <= 18; extra++) {
			uint32_t len = g->len + extra;
			uint8_t *copy = malloc(len);
			struct rx_frame f = { .data = copy, .len = len };

			assert_non_null(copy);
			memcpy(copy, g->frame, g->len);
			memset(copy + g->len, 0xa5, extra);
			assert_int_equal(packet_parse(&p, &f), 0);
			assert_int_equal(p.payload_len, whole.payload_len);
			assert_ptr_equal(p.end, copy + g->len);
			assert_true(packet_icrc_ok(&p));

			/*
			 * the same with a second buffer that holds part of the padding, or the last
			 * byte of the packet and all padding
			 */
			for (uint32_t at = g->len - 1; at < len; at++) {
				uint8_t *second = exact_copy(copy + at, len - at);
				struct rx_frame split = { copy, at, second, len - at };

				assert_int_equal(packet_parse(&p, &split), 0);
				assert_int_equal(p.frag_len, at < g->len ? 1 : 0);
				assert_true(packet_icrc_ok(&p));
				free(second);
			}
			free(copy);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packet_parse__golden_ip_and_udp_fields),
		cmocka_unit_test(packet_parse__golden_transport_fields),
		cmocka_unit_test(packet_parse__golden_mads),
		cmocka_unit_test(packet_parse__golden_truncated_at_every_length),
		cmocka_unit_test(packet_parse__golden_split_at_every_offset),
		cmocka_unit_test(packet_parse__golden_with_ethernet_padding),
		cmocka_unit_test(packet_icrc_ok__golden),
		cmocka_unit_test(packet_icrc_ok__golden_with_another_icrc),
		cmocka_unit_test(packet_put_headers__golden_gives_the_same_bytes),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
