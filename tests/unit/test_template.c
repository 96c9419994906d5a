/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Cached headers: the result equals packet_put_headers() and packet_seal(), and a frame matches
 * only if packet_parse() would give the same result as for the frame that the headers were learned
 * from.
 */
#include "packets.h"

#include "../../user/engine/template.h"

static u64 seed;
static struct icrc_table table;
static u8 data[ROCE_PMTU_MAX];

static int setup(void **state)
{
	seed = 0x7e31;
	icrc_table_init(&table);
	fill_random(&seed, data, sizeof(data));
	return 0;
}

/* As the engine makes them: no mark, no identification. */
static struct packet own_packet(u8 opcode)
{
	struct packet p = random_packet(&seed, opcode);

	p.fecn = p.becn = false;
	p.ip_id = 0;
	return p;
}

static u32 build(u8 *frame, const struct path *path, const struct packet *p)
{
	u8 *payload = packet_put_headers(frame, path, p);

	memcpy(payload, data, p->payload_len);
	return packet_seal(frame, payload, p->payload_len);
}

static void icrc_words__every_length(void **state)
{
	for (size_t len = 0; len < 600; len += 4) {
		u8 *exact = exact_copy(data, len);
		icrc_t crc = (u32)next_random(&seed);

		assert_int_equal(icrc_words(&table, crc, exact, len), icrc_update(crc, exact, len));
		free(exact);
	}
}

static void icrc_common__is_the_start_without_a_word(void **state)
{
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		u32 bytes = icrc_start_bytes(is_ipv6) - 4, word;
		u8 *exact = exact_copy(data, bytes + 4), *shorter = exact_copy(data, bytes);

		memcpy(&word, exact + bytes, sizeof(word));
		assert_int_equal(icrc_word(&table, icrc_common(shorter, is_ipv6), word),
				 icrc_start(exact, is_ipv6));
		free(shorter);
		free(exact);
	}
}

/*
 * One cache for all: each opcode and length there and back, some twice in a row, so that both ways
 * are gone.
 */
static void header_out__the_same_bytes(void **state)
{
	static u8 frame[PACKET_FRAME_MAX], want[PACKET_FRAME_MAX];

	for (int kind = 0; kind < 4; kind++) {
		struct header_out h = { 0 };
		struct path path = random_path(&seed, kind & 1, kind & 2);
		struct packet base = own_packet(0);
		int built = 0, acks = 0;

		for (int n = 0; n < 256 * 24; n++) {
			u8 opcode = (u8)(n / 24);
			struct packet p = own_packet(opcode);
			struct unsealed u;
			u32 len;

			if (!opcode_flags(opcode) || opcode == OPCODE_CNP)
				continue;
			p.pkey = base.pkey;
			p.dest_qpn = base.dest_qpn;
			/* as the one before, but for what changes from packet to packet */
			if (n % 3) {
				p.payload_len = base.payload_len;
				p.solicited = base.solicited;
				p.migreq = base.migreq;
			}
			if (!(opcode_flags(opcode) & OP_PAYLOAD))
				p.payload_len = 0;
			base = p;
			len = build(want, &path, &p);
			memset(frame, 0xa5, sizeof(frame));
			header_out(&h, &table, &path, &p, frame, &u);
			assert_ptr_equal(u.payload, frame + packet_header_bytes(&path, opcode));
			memcpy(u.payload, data, p.payload_len);
			assert_int_equal(header_out_seal(&u, &table, p.payload_len), len);
			assert_memory_equal(frame, want, len);
			if (opcode_flags(opcode) & OP_ACK && !p.ackreq) {
				memset(frame, 0xa5, sizeof(frame));
				assert_int_equal(h.key,
						 header_out_key(opcode, p.solicited, p.migreq, 0));
				assert_int_equal(header_out_ack(&h, &table, p.psn,
								packet_aeth(p.syndrome, p.msn),
								frame),
						 len);
				assert_memory_equal(frame, want, len);
				acks++;
			}
			built++;
		}
		assert_true(built > 1000 && acks > 10);
	}
}

/* The result of the long way. */
static bool accepted(const struct rx_frame *f, struct packet *p)
{
	return packet_parse(p, f) == 0 && packet_icrc_ok(p);
}

static bool matches(const struct header_in *h, const struct rx_frame *f, struct packet *p)
{
	const struct bth *bth;
	u32 qpn;
	u8 opcode;

	memset(p, 0x5a, sizeof(*p));
	bth = header_in_peek(f, &qpn, &opcode) ? header_in_match(h, f) : NULL;
	if (bth)
		header_in_decode(h, f, bth, p);
	return bth;
}

static void learn(struct header_in *h, const struct rx_frame *f)
{
	struct packet p;

	assert_true(accepted(f, &p));
	header_in_learn(h, f, &p);
	header_in_learn(h, f, &p);
}

static void header_in_match__decodes_as_the_parser(void **state)
{
	u8 frame[PACKET_FRAME_MAX];
	int matched = 0;

	for (int n = 0; n < 256 * 8; n++) {
		u8 opcode = (u8)(n / 8);
		struct path path = random_path(&seed, n & 1, false);
		struct packet first = own_packet(opcode), second = own_packet(opcode), want, got;
		struct header_in h = { 0 };
		struct rx_frame f = { .data = frame };

		if (!opcode_flags(opcode) || opcode == OPCODE_CNP)
			continue;
		f.len = build(frame, &path, &first);
		learn(&h, &f);
		second.pkey = first.pkey;
		second.dest_qpn = first.dest_qpn;
		second.solicited = first.solicited;
		second.migreq = first.migreq;
		second.payload_len = first.payload_len;
		second.fecn = n & 2;
		second.becn = n & 4;
		path.tos ^= 3;
		path.hop_limit ^= 7;
		path.flow_label ^= 5;
		f.data = exact_copy(frame, f.len = build(frame, &path, &second));
		assert_true(matches(&h, &f, &got));
		assert_true(!header_in_difference(&h, &table, &got));
		assert_true(accepted(&f, &want));
		assert_same_packet(&got, &want);
		assert_int_equal(got.flags, want.flags);
		assert_int_equal(got.pad, want.pad);
		assert_int_equal(got.tver, 0);
		assert_int_equal(got.is_ipv6, want.is_ipv6);
		assert_int_equal(got.tos, want.tos);
		assert_int_equal(got.hop_limit, want.hop_limit);
		assert_false(got.has_vlan);
		assert_int_equal(got.vlan_tci, 0);
		assert_ptr_equal(got.ip, want.ip);
		assert_ptr_equal(got.payload, want.payload);
		assert_ptr_equal(got.end, want.end);
		assert_null(got.frag);
		assert_int_equal(got.frag_len, 0);
		free((void *)f.data);
		matched++;
	}
	assert_true(matched > 500);
}

/*
 * Whichever bit flips: what matches is what the parser takes for the same kind of packet, and the
 * ICRC's verdict is the same.
 */
static void header_in_match__each_bit(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		bool is_ipv6 = kind & 1, is_ack = kind & 2;
		struct path path = random_path(&seed, is_ipv6, false);
		struct packet sent = own_packet(
				      OPCODE(XROCE_RC, is_ack ? OP5_ACKNOWLEDGE : OP5_WRITE_ONLY)),
			      want, got;
		struct header_in h = { 0 };
		u8 frame[PACKET_FRAME_MAX];
		struct rx_frame f = { .data = frame };
		int matching = 0;

		sent.payload_len = is_ack ? 0 : 21;
		f.len = build(frame, &path, &sent);
		learn(&h, &f);
		for (u32 bit = 12 * 8; bit < f.len * 8; bit++) {
			frame[bit / 8] ^= (u8)(1 << bit % 8);
			if (matches(&h, &f, &got)) {
				assert_int_equal(packet_parse(&want, &f), 0);
				assert_same_packet(&got, &want);
				assert_int_equal(got.flags, want.flags);
				assert_memory_equal(want.src.raw, path.local.raw, 16);
				assert_memory_equal(want.dst.raw, path.peer.raw, 16);
				assert_int_equal(!header_in_difference(&h, &table, &got),
						 packet_icrc_ok(&want));
				if (is_ack) {
					u32 aeth;

					assert_int_equal(!header_in_ack_difference(&h, &table,
									  header_in_match(&h, &f),
									  &aeth),
							 packet_icrc_ok(&want));
					assert_int_equal(aeth, (u32)want.syndrome << 24 | want.msn);
				}
				matching++;
			} else {
				/* before the PSN, and not a byte that the ICRC masks */
				u32 at = bit / 8 - 14;

				assert_true(bit / 8 < 14 || at < icrc_start_bytes(is_ipv6) - 4);
				assert_true(bit / 8 < 14 ||
					    !(icrc_masked_bits(is_ipv6, at) >> bit % 8 & 1));
			}
			frame[bit / 8] ^= (u8)(1 << bit % 8);
		}
		assert_true(matching > (is_ack ? 140 : 300));
	}
}

static void header_in_match__frames_cut_short(void **state)
{
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		struct path path = random_path(&seed, is_ipv6, false);
		struct packet sent = own_packet(OPCODE(XROCE_RC, OP5_SEND_ONLY)), got;
		u8 frame[PACKET_FRAME_MAX];
		struct header_in h = { 0 };
		u32 len;

		sent.payload_len = 40;
		len = build(frame, &path, &sent);
		learn(&h, &(struct rx_frame){ .data = frame, .len = len });
		for (u32 n = 0; n < len; n++) {
			u8 *exact = exact_copy(frame, n);

			assert_false(
				matches(&h, &(struct rx_frame){ .data = exact, .len = n }, &got));
			free(exact);
		}
		/* Ethernet padding after it is not read */
		assert_true(matches(&h, &(struct rx_frame){ .data = frame, .len = len + 7 }, &got));
		assert_ptr_equal(got.end, frame + len);
	}
}

/* Once is not enough; a tag or a second buffer is never learned; another family does not match. */
static void header_in_learn__what_is_kept(void **state)
{
	struct packet sent = own_packet(OPCODE(XROCE_RC, OP5_SEND_ONLY)), p;
	u8 frame[PACKET_FRAME_MAX];
	struct header_in h = { 0 };
	struct path path = random_path(&seed, false, false);
	struct rx_frame f = { .data = frame };

	sent.payload_len = 64;
	f.len = build(frame, &path, &sent);
	assert_true(accepted(&f, &p));
	assert_false(matches(&h, &f, &p));
	assert_true(accepted(&f, &p));
	header_in_learn(&h, &f, &p);
	assert_false(matches(&h, &f, &p));
	assert_true(accepted(&f, &p));
	header_in_learn(&h, &f, &p);
	assert_true(matches(&h, &f, &p));
	path.is_ipv6 = true;
	f.len = build(frame, &path, &sent);
	assert_false(matches(&h, &f, &p));

	h = (struct header_in){ 0 };
	path.has_vlan = true;
	f.len = build(frame, &path, &sent);
	learn(&h, &f);
	assert_false(matches(&h, &f, &p));

	path.has_vlan = path.is_ipv6 = false;
	f.len = build(frame, &path, &sent);
	f = (struct rx_frame){
		.data = frame, .len = f.len - 20, .frag = frame + f.len - 20, .frag_len = 20
	};
	learn(&h, &f);
	assert_false(matches(&h, &f, &p));
	assert_int_equal(h.frame_len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(icrc_words__every_length),
		cmocka_unit_test(icrc_common__is_the_start_without_a_word),
		cmocka_unit_test(header_out__the_same_bytes),
		cmocka_unit_test(header_in_match__decodes_as_the_parser),
		cmocka_unit_test(header_in_match__each_bit),
		cmocka_unit_test(header_in_match__frames_cut_short),
		cmocka_unit_test(header_in_learn__what_is_kept),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
