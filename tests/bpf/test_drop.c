/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Every drop reason of the XDP program. A row breaks one field of a good packet, and names the one
 * counter that must grow, by one, and the QP that counts it too. A reason of the XDP side without a
 * row fails the program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench.h"

static struct frame f;

/* The reasons that XDP decides on. */
static bool is_xdp_reason(int reason)
{
	return reason <= XROCE_DROP_no_socket || reason == XROCE_DROP_multibuffer;
}

static void edit_qp(uint32_t qpn, void (*edit)(struct xroce_qp *))
{
	struct xroce_qp qp = bench_get_qp(qpn);

	edit(&qp);
	bench_put_qp(qpn, &qp);
}

/* ---- how rows break a packet: before it is built, and after ---- */

static void options(struct frame_spec *s)
{
	s->option_bytes = 4;
}

static void most_options(struct frame_spec *s)
{
	s->option_bytes = 40;
}

static void ipv6(struct frame_spec *s)
{
	s->ipv6 = true;
	memcpy(s->src, bench_peer6, 16);
	memcpy(s->dst, bench_local6, 16);
}

static void first_fragment(void)
{
	frame_put16(f.bytes + f.l3 + 6, 0x2000);
}

static void ipv6_fragment(void)
{
	uint8_t *ext = f.bytes + f.l4;

	memmove(ext + 8, ext, f.len - f.l4);
	memset(ext, 0, 8);
	ext[0] = 17;
	ext[3] = 1; /* offset 0, more fragments */
	f.bytes[f.l3 + 6] = 44;
	f.len += 8;
	frame_put16(f.bytes + f.l3 + 4, f.len - f.l4);
}

static void ip_length_plus_1(void)
{
	frame_put16(f.bytes + f.l3 + 2, f.len - f.l3 + 1);
}

static void ip_length_0(void)
{
	frame_put16(f.bytes + f.l3 + 2, 0);
}

static void ip_length_27(void)
{
	frame_put16(f.bytes + f.l3 + 2, 27);
}

static void ip_length_65535(void)
{
	frame_put16(f.bytes + f.l3 + 2, 65535);
}

static void ipv6_length_0(void)
{
	frame_put16(f.bytes + f.l3 + 4, 0);
}

static void ipv6_length_plus_1(void)
{
	frame_put16(f.bytes + f.l3 + 4, f.len - f.l4 + 1);
}

static void udp_length_plus_1(void)
{
	frame_put16(f.bytes + f.l4 + 4, f.len - f.l4 + 1);
}

static void udp_length_minus_1(void)
{
	frame_put16(f.bytes + f.l4 + 4, f.len - f.l4 - 1);
}

static void udp_length_0(void)
{
	frame_put16(f.bytes + f.l4 + 4, 0);
}

static void no_bth(void)
{
	f.len = f.bth;
	frame_fix_lengths(&f);
}

static void bth_and_3_bytes(void)
{
	f.len = f.bth + 15;
	frame_fix_lengths(&f);
}

static void version_1(void)
{
	f.bytes[f.bth + 1] |= 1;
}

static void version_8(void)
{
	f.bytes[f.bth + 1] |= 8;
}

static void opcode_reserved(struct frame_spec *s)
{
	s->opcode = 0x35;
}

static void opcode_rd(struct frame_spec *s)
{
	s->opcode = 0x44;
}

static void write_without_reth(struct frame_spec *s)
{
	s->opcode = OPCODE(XROCE_RC, OP5_WRITE_ONLY);
	s->payload_len = 12;
}

static void pad_3_of_0(void)
{
	f.bytes[f.bth + 1] |= 0x30;
	f.len = f.payload + 4;
	frame_fix_lengths(&f);
}

static void not_a_multiple_of_4(void)
{
	f.len -= 1;
	frame_fix_lengths(&f);
}

static void ack_with_payload(struct frame_spec *s)
{
	s->opcode = OPCODE(XROCE_RC, OP5_ACKNOWLEDGE);
	s->ext_len = 4;
	s->payload_len = 4;
}

static void payload_4097(struct frame_spec *s)
{
	s->payload_len = 4097;
}

static void unknown_qpn(struct frame_spec *s)
{
	s->ecn_qpn = 0x777;
}

/* Another number of the same slot in xroce_qp, and that of a free slot. */
static void other_qpn_of_the_slot(struct frame_spec *s)
{
	s->ecn_qpn = (BENCH_RC_QPN + XROCE_MAX_QP) & 0xffffff;
}

static void qpn_zero(struct frame_spec *s)
{
	s->ecn_qpn = 0;
}

static void multicast_qpn(struct frame_spec *s)
{
	s->ecn_qpn = ROCE_MULTICAST_QPN;
}

static void uc_opcode(struct frame_spec *s)
{
	s->opcode = OPCODE(XROCE_UC, OP5_SEND_ONLY);
}

static void xrc_opcode(struct frame_spec *s)
{
	s->opcode = OPCODE(XROCE_XRC, OP5_SEND_ONLY);
	s->ext_len = 4;
}

static void rc_to_ud(struct frame_spec *s)
{
	s->ecn_qpn = BENCH_UD_QPN;
}

static void ud(struct frame_spec *s)
{
	s->opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY);
	s->ecn_qpn = BENCH_UD_QPN;
	s->ext_len = 8;
	frame_put32(s->ext, BENCH_QKEY);
	frame_put32(s->ext + 4, 1);
}

static void ud_to_rc(struct frame_spec *s)
{
	ud(s);
	s->ecn_qpn = BENCH_RC_QPN;
}

static void ud_wrong_qkey(struct frame_spec *s)
{
	ud(s);
	frame_put32(s->ext, BENCH_QKEY ^ 1);
}

static void ud_wrong_qkey_top(struct frame_spec *s)
{
	ud(s);
	frame_put32(s->ext, BENCH_QKEY ^ 0x80000000u);
}

static void other_partition(struct frame_spec *s)
{
	s->pkey = 0xfffe;
}

static void limited_member(struct frame_spec *s)
{
	s->pkey = 0x7fff;
}

static void other_sender(struct frame_spec *s)
{
	s->src[15] ^= 1;
}

static void ipv6_sender(struct frame_spec *s)
{
	/* Its last four bytes are the peer's IPv4 address. */
	s->ipv6 = true;
	s->src[10] = s->src[11] = 0;
	memcpy(s->dst, bench_local6, 16);
}

static void edit_ipv6(struct xroce_qp *qp)
{
	memcpy(qp->local, bench_local6, 16);
	memcpy(qp->peer, bench_peer6, 16);
}

/* Same last 64 bits as the peer. */
static void other_network(struct frame_spec *s)
{
	edit_qp(BENCH_RC_QPN, edit_ipv6);
	ipv6(s);
	s->src[7] ^= 1;
}

static void other_local(struct frame_spec *s)
{
	static const uint8_t second[16] = { [10] = 0xff, 0xff, 10, 9, 0, 77 };

	bench_put_gid(second, true);
	memcpy(s->dst, second, 16);
}

static void edit_not_receiving(struct xroce_qp *qp)
{
	qp->receiving = 0;
}

static void not_receiving(struct frame_spec *s)
{
	edit_qp(BENCH_RC_QPN, edit_not_receiving);
}

static void edit_limited(struct xroce_qp *qp)
{
	qp->pkey = 0x7fff;
}

static void both_limited(struct frame_spec *s)
{
	s->pkey = 0x7fff;
	edit_qp(BENCH_RC_QPN, edit_limited);
}

static void no_socket(struct frame_spec *s)
{
	bench_put_xsk(0, false);
}

static void edit_next_owner(struct xroce_qp *qp)
{
	qp->xsk_base = XROCE_MAX_QUEUE;
}

static void owner_without_socket(struct frame_spec *s)
{
	edit_qp(BENCH_RC_QPN, edit_next_owner);
}

static void edit_base_beyond(struct xroce_qp *qp)
{
	qp->xsk_base = ~0u;
}

static void socket_beyond_the_map(struct frame_spec *s)
{
	edit_qp(BENCH_RC_QPN, edit_base_beyond);
}

static const struct row {
	const char *what;
	enum xroce_drop reason;
	uint32_t qpn;			     /* whose rx_dropped moves; 0: none's */
	void (*before)(struct frame_spec *); /* or the maps */
	void (*after)(void);
	struct bench_entry entry;
} rows[] = {
	{ "options", XROCE_DROP_ip_options, .before = options },
	{ "40 bytes of options", XROCE_DROP_ip_options, .before = most_options },
	{ "options of a first fragment", XROCE_DROP_ip_options, .before = options,
	  .after = first_fragment },
	{ "first fragment", XROCE_DROP_ip_fragment, .after = first_fragment },
	{ "first IPv6 fragment", XROCE_DROP_ip_fragment, .before = ipv6, .after = ipv6_fragment },
	{ "IP length one too long", XROCE_DROP_ip_length, .after = ip_length_plus_1 },
	{ "IP length 0", XROCE_DROP_ip_length, .after = ip_length_0 },
	{ "IP length without room for UDP", XROCE_DROP_ip_length, .after = ip_length_27 },
	{ "IP length 65535", XROCE_DROP_ip_length, .after = ip_length_65535 },
	{ "IPv6 length 0", XROCE_DROP_ip_length, .before = ipv6, .after = ipv6_length_0 },
	{ "IPv6 length one too long", XROCE_DROP_ip_length, .before = ipv6,
	  .after = ipv6_length_plus_1 },
	{ "UDP length one too long", XROCE_DROP_udp_length, .after = udp_length_plus_1 },
	{ "UDP length one too short", XROCE_DROP_udp_length, .after = udp_length_minus_1 },
	{ "UDP length 0", XROCE_DROP_udp_length, .after = udp_length_0 },
	{ "no BTH", XROCE_DROP_bth_short, .after = no_bth },
	{ "BTH and half an ICRC", XROCE_DROP_bth_short, .after = bth_and_3_bytes },
	{ "version 1", XROCE_DROP_bth_version, BENCH_RC_QPN, .after = version_1 },
	{ "version 8", XROCE_DROP_bth_version, BENCH_RC_QPN, .after = version_8 },
	{ "reserved opcode", XROCE_DROP_opcode, BENCH_RC_QPN, .before = opcode_reserved },
	{ "reliable datagram", XROCE_DROP_opcode, BENCH_RC_QPN, .before = opcode_rd },
	{ "WRITE without RETH", XROCE_DROP_ext_short, BENCH_RC_QPN, .before = write_without_reth },
	{ "pad without payload", XROCE_DROP_pad, BENCH_RC_QPN, .after = pad_3_of_0 },
	{ "length not a multiple of 4", XROCE_DROP_pad, BENCH_RC_QPN,
	  .after = not_a_multiple_of_4 },
	{ "ACK with payload", XROCE_DROP_pad, BENCH_RC_QPN, .before = ack_with_payload },
	{ "4097 bytes of payload", XROCE_DROP_payload_long, BENCH_RC_QPN, .before = payload_4097 },
	{ "unknown QPN", XROCE_DROP_qp_unknown, .before = unknown_qpn },
	{ "QPN of an occupied slot", XROCE_DROP_qp_unknown, .before = other_qpn_of_the_slot },
	{ "QPN 0", XROCE_DROP_qp_unknown, .before = qpn_zero },
	{ "multicast QPN", XROCE_DROP_qp_unknown, .before = multicast_qpn },
	{ "UC opcode to an RC QP", XROCE_DROP_qp_transport, BENCH_RC_QPN, .before = uc_opcode },
	{ "XRC opcode to an RC QP", XROCE_DROP_qp_transport, BENCH_RC_QPN, .before = xrc_opcode },
	{ "RC opcode to a UD QP", XROCE_DROP_qp_transport, BENCH_UD_QPN, .before = rc_to_ud },
	{ "UD opcode to an RC QP", XROCE_DROP_qp_transport, BENCH_RC_QPN, .before = ud_to_rc },
	{ "QP does not receive", XROCE_DROP_qp_state, BENCH_RC_QPN, .before = not_receiving },
	{ "other partition", XROCE_DROP_pkey, BENCH_RC_QPN, .before = other_partition },
	{ "two limited members", XROCE_DROP_pkey, BENCH_RC_QPN, .before = both_limited },
	{ "Q_Key wrong in its last bit", XROCE_DROP_qkey, BENCH_UD_QPN, .before = ud_wrong_qkey },
	{ "Q_Key wrong in its first bit", XROCE_DROP_qkey, BENCH_UD_QPN,
	  .before = ud_wrong_qkey_top },
	{ "other sender", XROCE_DROP_peer, BENCH_RC_QPN, .before = other_sender },
	{ "IPv6 sender that ends like the peer", XROCE_DROP_peer, BENCH_RC_QPN,
	  .before = ipv6_sender },
	{ "IPv6 sender from another network", XROCE_DROP_peer, BENCH_RC_QPN,
	  .before = other_network },
	{ "to another of our addresses", XROCE_DROP_peer, BENCH_RC_QPN, .before = other_local },
	{ "metadata of an earlier program", XROCE_DROP_metadata, BENCH_RC_QPN,
	  .entry.metadata = 4 },
	{ "no room for metadata", XROCE_DROP_metadata, BENCH_RC_QPN, .entry.metadata = 200 },
	{ "no socket", XROCE_DROP_no_socket, BENCH_RC_QPN, .before = no_socket },
	{ "owner without a socket", XROCE_DROP_no_socket, BENCH_RC_QPN,
	  .before = owner_without_socket },
	{ "socket beyond the map", XROCE_DROP_no_socket, BENCH_RC_QPN,
	  .before = socket_beyond_the_map },
	{ "BTH in the second buffer", XROCE_DROP_multibuffer, .entry.linear = 46 },
};

/* *state is the row. */
static void drop__row(void **state)
{
	const struct row *row = *state;
	struct frame_spec s = bench_spec();
	uint64_t pkeys, qkeys;

	bench_reset();
	if (row->before)
		row->before(&s);
	frame_build(&f, &s);
	if (row->after)
		row->after();
	if (bench_run_with(f.bytes, f.len, &row->entry) == -EINVAL)
		skip(); /* an older kernel, that cannot be told this much of what the program finds
			 */
	pkeys = bench->engine->bad_pkeys;
	qkeys = bench->engine->bad_qkeys;
	bench_expect_drop_with(row->what, f.bytes, f.len, row->reason, row->qpn, &row->entry);
	/* counted for ibv_query_port() as well */
	assert_int_equal(bench->engine->bad_pkeys - pkeys, row->reason == XROCE_DROP_pkey);
	assert_int_equal(bench->engine->bad_qkeys - qkeys, row->reason == XROCE_DROP_qkey);
	/* The drop reason is the row's. */
	bench_reset();
	s = bench_spec();
	frame_build(&f, &s);
	bench_expect_redirect("the packet unspoiled", f.bytes, f.len, BENCH_RC_QPN);
}

/* P_Keys match when one side is a full member; UD has no peer. */
static void steer_check__what_is_allowed(void **state)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	limited_member(&s);
	frame_build(&f, &s);
	bench_expect_redirect("limited member to full member", f.bytes, f.len, BENCH_RC_QPN);
	edit_qp(BENCH_RC_QPN, edit_limited);
	s = bench_spec();
	frame_build(&f, &s);
	bench_expect_redirect("full member to limited member", f.bytes, f.len, BENCH_RC_QPN);
	ud(&s);
	other_sender(&s);
	frame_build(&f, &s);
	bench_expect_redirect("UD from anyone", f.bytes, f.len, BENCH_UD_QPN);
	ipv6(&s);
	frame_build(&f, &s);
	bench_expect_redirect("UD over IPv6", f.bytes, f.len, BENCH_UD_QPN);
}

/*
 * A QP's packets go to its own owner's sockets: slot xsk_base + receive queue, and never beyond the
 * owner's slots.
 */
static void redirect__slot_of_owner_and_queue(void **state)
{
	struct bench_entry entry = { .queue = 1 };
	struct frame_spec s = bench_spec();

	bench_reset();
	frame_build(&f, &s);
	edit_qp(BENCH_RC_QPN, edit_next_owner);
	bench_put_xsk(XROCE_MAX_QUEUE, true);
	bench_put_xsk(0, false);
	bench_expect_redirect("second owner", f.bytes, f.len, BENCH_RC_QPN);

	entry.ifindex = bench_make_queues();
	bench_expect_drop_with("second owner, queue 1 has no socket", f.bytes, f.len,
			       XROCE_DROP_no_socket, BENCH_RC_QPN, &entry);
	bench_put_xsk(XROCE_MAX_QUEUE + 1, true);
	bench_put_xsk(XROCE_MAX_QUEUE, false);
	assert_int_equal(bench_run_with(f.bytes, f.len, &entry), XDP_REDIRECT);
	entry.queue = 64;
	bench_put_xsk(2 * XROCE_MAX_QUEUE, true);
	bench_expect_drop_with("queue 64 would be the next owner's", f.bytes, f.len,
			       XROCE_DROP_no_socket, BENCH_RC_QPN, &entry);
	bench_unmake_queues();
}

/* Each reason that XDP decides on has a row, and no other has. */
static void drop__every_reason_has_a_row(void **state)
{
	for (int reason = XROCE_DROP_none + 1; reason < XROCE_DROP_END; reason++) {
		size_t n = 0;

		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			n += (int)rows[i].reason == reason;
		check((n > 0) == is_xdp_reason(reason), "%s has %zu rows", bench_reason(reason), n);
	}
}

int main(void)
{
	enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
	static struct CMUnitTest tests[ROWS + 3];
	static char names[ROWS][96];

	for (size_t i = 0; i < ROWS; i++) {
		snprintf(names[i], sizeof(names[i]), "drop__%s(%s)", bench_reason(rows[i].reason),
			 rows[i].what);
		tests[i] = (struct CMUnitTest){ .name = names[i],
						.test_func = drop__row,
						.initial_state = (void *)&rows[i] };
	}
	tests[ROWS] = (struct CMUnitTest)cmocka_unit_test(drop__every_reason_has_a_row);
	tests[ROWS + 1] = (struct CMUnitTest)cmocka_unit_test(steer_check__what_is_allowed);
	tests[ROWS + 2] = (struct CMUnitTest)cmocka_unit_test(redirect__slot_of_owner_and_queue);
	return _cmocka_run_group_tests("drop", tests, ROWS + 3, bench_setup, bench_teardown);
}
