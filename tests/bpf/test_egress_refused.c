/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Frames that a client may not send (xroce_egress): each frame with one fault is refused, for the
 * right reason, and the same frame without the fault goes out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <linux/if_ether.h>

#include "egress_side.h"

static struct frame f;

/* ---- the faults of a frame ---- */

static void arp(void)
{
	frame_put16(f.bytes + 12, ETH_P_ARP);
}

static void ethertype_ipv6(void)
{
	frame_put16(f.bytes + 12, ETH_P_IPV6);
}

static void ethertype_ipv4(void)
{
	frame_put16(f.bytes + 12, ETH_P_IP);
}

static void tag(struct frame_spec *s)
{
	s->tags = 1;
	s->tag_proto[0] = ETH_P_8021Q;
	s->tag_tci[0] = 5;
}

static void priority_tag(struct frame_spec *s)
{
	tag(s);
	s->tag_tci[0] = 0;
}

static void provider_tag(struct frame_spec *s)
{
	tag(s);
	s->tag_proto[0] = ETH_P_8021AD;
}

static void two_tags(struct frame_spec *s)
{
	tag(s);
	s->tags = 2;
	s->tag_proto[1] = ETH_P_8021Q;
}

static void options(struct frame_spec *s)
{
	s->option_bytes = 4;
}

static void most_options(struct frame_spec *s)
{
	s->option_bytes = 40;
}

static void tcp(struct frame_spec *s)
{
	s->protocol = 6;
}

static void another_port(struct frame_spec *s)
{
	s->dport = 4790;
}

static void version_5(void)
{
	f.bytes[EGRESS_IP_AT] = 0x55;
}

static void version_6(void)
{
	f.bytes[EGRESS_IP_AT] = 0x65;
}

static void header_of_16(void)
{
	f.bytes[EGRESS_IP_AT] = 0x44;
}

static void first_fragment(void)
{
	frame_put16(f.bytes + EGRESS_IP_AT + 6, 0x2000);
}

static void last_fragment(void)
{
	frame_put16(f.bytes + EGRESS_IP_AT + 6, 0x0001);
}

static void evil_bit(void)
{
	frame_put16(f.bytes + EGRESS_IP_AT + 6, 0x8000);
}

static void ip_length(int more)
{
	frame_put16(f.bytes + EGRESS_IP_AT + 2, (uint16_t)(f.len - EGRESS_IP_AT + (uint32_t)more));
}

static void ip_length_more(void)
{
	ip_length(1);
}

static void both_lengths_more(void)
{
	ip_length(4);
	frame_put16(f.bytes + f.l4 + 4, (uint16_t)(f.len - f.l4 + 4));
}

static void ip_length_less(void)
{
	ip_length(-4);
}

static void ip_length_0(void)
{
	frame_put16(f.bytes + EGRESS_IP_AT + 2, 0);
}

static void udp_length_more(void)
{
	frame_put16(f.bytes + f.l4 + 4, (uint16_t)(f.len - f.l4 + 1));
}

static void udp_length_less(void)
{
	frame_put16(f.bytes + f.l4 + 4, (uint16_t)(f.len - f.l4 - 4));
}

static void udp_length_0(void)
{
	frame_put16(f.bytes + f.l4 + 4, 0);
}

static void padding(void)
{
	f.len += 4;
}

static void cut_to(uint32_t len)
{
	f.len = len;
	frame_fix_lengths(&f);
}

static void no_bth(void)
{
	cut_to(f.bth);
}

static void bth_and_no_icrc(void)
{
	cut_to(f.bth + 12);
}

static void no_deth(void)
{
	cut_to(f.bth + 16);
}

static void cut_in_ip(void)
{
	f.len = EGRESS_IP_AT + 19;
}

static void cut_in_udp(void)
{
	f.len = f.l4 + 7;
}

static void ethernet_alone(void)
{
	f.len = 14;
}

static void ipv6_cut(void)
{
	f.len = EGRESS_IP_AT + 39;
}

static void ipv6_version_4(void)
{
	f.bytes[EGRESS_IP_AT] = 0x40;
}

static void ipv6_another_header(void)
{
	f.bytes[EGRESS_IP_AT + 6] = 136; /* UDP-Lite */
}

static void ipv6_length_0(void)
{
	frame_put16(f.bytes + EGRESS_IP_AT + 4, 0);
}

static void ipv6_length_more(void)
{
	frame_put16(f.bytes + EGRESS_IP_AT + 4, (uint16_t)(f.len - f.l4 + 1));
}

/* An extension header of 8 bytes before UDP. */
static void ipv6_extension(uint8_t kind)
{
	uint8_t *ext = f.bytes + f.l4;

	memmove(ext + 8, ext, f.len - f.l4);
	memset(ext, 0, 8);
	ext[0] = 17;
	f.bytes[EGRESS_IP_AT + 6] = kind;
	f.len += 8;
	frame_put16(f.bytes + EGRESS_IP_AT + 4, (uint16_t)(f.len - f.l4));
}

static void hop_by_hop(void)
{
	ipv6_extension(0);
}

static void ipv6_fragment(void)
{
	ipv6_extension(44);
}

static void destination_options(void)
{
	ipv6_extension(60);
}

static void opcode_reserved(struct frame_spec *s)
{
	s->opcode = 0x1f;
}

static void opcode_rd(struct frame_spec *s)
{
	s->opcode = 0x44;
}

static void another_source(struct frame_spec *s)
{
	s->src[15] ^= 4;
}

static void no_source(struct frame_spec *s)
{
	memset(s->src + 12, 0, 4);
}

static void peers_source(struct frame_spec *s)
{
	memcpy(s->src, bench_peer4, 16);
}

static void another_ipv6_source(struct frame_spec *s)
{
	egress_ipv6(s);
	s->src[6] ^= 1;
}

static void multicast(struct frame_spec *s)
{
	memcpy(s->dst + 12, (uint8_t[]){ 224, 0, 0, 1 }, 4);
}

static void broadcast(struct frame_spec *s)
{
	memset(s->dst + 12, 0xff, 4);
}

/* A group's, but to one QP; to all members of an unknown group. */
static void ud_multicast(struct frame_spec *s)
{
	egress_ud(s);
	multicast(s);
}

static void ud_broadcast(struct frame_spec *s)
{
	egress_ud(s);
	broadcast(s);
	s->ecn_qpn = ROCE_MULTICAST_QPN;
}

static void rc_to_group(struct frame_spec *s)
{
	multicast(s);
	s->ecn_qpn = ROCE_MULTICAST_QPN;
}

static void ipv6_multicast(struct frame_spec *s)
{
	egress_ipv6(s);
	s->dst[0] = 0xff;
}

static void to_loopback(struct frame_spec *s)
{
	memcpy(s->dst + 12, (uint8_t[]){ 127, 0, 0, 1 }, 4);
}

static void to_this_network(struct frame_spec *s)
{
	memset(s->dst + 12, 0, 4);
}

/* Bytes of an IPv6 header that parse as the GID of an IPv4 address. */
static void ipv4_source_in_ipv6(void)
{
	memcpy(f.bytes + EGRESS_IP_AT + 8, bench_local4, 16);
}

static void ipv6_to_loopback(struct frame_spec *s)
{
	egress_ipv6(s);
	memset(s->dst, 0, 15);
	s->dst[15] = 1;
}

static void ipv6_to_nowhere(struct frame_spec *s)
{
	ipv6_to_loopback(s);
	s->dst[15] = 2;
}

static void qp1(struct frame_spec *s)
{
	s->ecn_qpn = 1;
}

static void qp1_reserved_bits(struct frame_spec *s)
{
	s->ecn_qpn = 0xff000001;
}

static void ud_qp1(struct frame_spec *s)
{
	egress_ud(s);
	s->ecn_qpn = 1;
}

static void privileged_qkey(struct frame_spec *s)
{
	egress_ud(s);
	frame_put32(s->ext, 0x80010000);
}

static void another_pkey(struct frame_spec *s)
{
	s->pkey = EGRESS_PKEY_OF_NOBODY;
}

/* Of a partition that the table has, as the member that it does not have. */
static void pkey_not_limited(struct frame_spec *s)
{
	s->pkey = BROKER_PKEY & 0x7fff;
}

static void pkey_not_full(struct frame_spec *s)
{
	s->pkey = BROKER_PKEY_LIMITED | 0x8000;
}

static void default_limited(struct frame_spec *s)
{
	s->pkey = 0x7fff;
}

static void no_pkey(struct frame_spec *s)
{
	s->pkey = 0;
}

static void ud_pkey(struct frame_spec *s)
{
	egress_ud(s);
	another_pkey(s);
}

static void src_of_other(struct frame_spec *s)
{
	egress_ud(s);
	frame_put32(s->ext + 4, BROKER_UD(EGRESS_OTHER));
}

static void src_of_nobody(struct frame_spec *s)
{
	egress_ud(s);
	frame_put32(s->ext + 4, 0x777);
}

static void src_1(struct frame_spec *s)
{
	egress_ud(s);
	frame_put32(s->ext + 4, 1);
}

static void flow_of_other(struct frame_spec *s)
{
	src_of_other(s);
	s->opcode = OPCODE_CREDIT_PROBE;
}

static void too_long(struct frame_spec *s)
{
	s->payload_len = EGRESS_MTU;
}

/* One packet, that its receiver would cut in two and more. */
static void looks_like_super(void)
{
	frame_put16(f.bytes + EGRESS_IP_AT + 4, 20);
	bench_sum_super(&f);
}

static void code_for_segments(struct frame_spec *s)
{
	s->ecn_qpn |= 24u << 24;
}

static const struct row {
	const char *what;
	enum xroce_egress_reason reason;
	void (*before)(struct frame_spec *);
	void (*after)(void);
	bool right_of_other; /* the owner of QP 0x202, and the privileged client */
} rows[] = {
	{ "ARP", XROCE_EGRESS_not_roce, .after = arp },
	{ "IPv4 as IPv6", XROCE_EGRESS_not_roce, .after = ethertype_ipv6 },
	{ "IPv6 as IPv4", XROCE_EGRESS_not_roce, .before = egress_ipv6, .after = ethertype_ipv4 },
	{ "VLAN tag", XROCE_EGRESS_not_roce, .before = tag },
	{ "priority tag", XROCE_EGRESS_not_roce, .before = priority_tag },
	{ "provider's tag", XROCE_EGRESS_not_roce, .before = provider_tag },
	{ "two tags", XROCE_EGRESS_not_roce, .before = two_tags },
	{ "options", XROCE_EGRESS_not_roce, .before = options },
	{ "40 bytes of options", XROCE_EGRESS_not_roce, .before = most_options },
	{ "TCP", XROCE_EGRESS_not_roce, .before = tcp },
	{ "another port", XROCE_EGRESS_not_roce, .before = another_port },
	{ "version 5", XROCE_EGRESS_not_roce, .after = version_5 },
	{ "version 6", XROCE_EGRESS_not_roce, .after = version_6 },
	{ "IP header of 16 bytes", XROCE_EGRESS_not_roce, .after = header_of_16 },
	{ "first fragment", XROCE_EGRESS_not_roce, .after = first_fragment },
	{ "last fragment", XROCE_EGRESS_not_roce, .after = last_fragment },
	{ "reserved bit", XROCE_EGRESS_not_roce, .after = evil_bit },
	{ "IP length too long", XROCE_EGRESS_not_roce, .after = ip_length_more },
	{ "IP and UDP length too long", XROCE_EGRESS_not_roce, .after = both_lengths_more },
	{ "IP length too short", XROCE_EGRESS_not_roce, .after = ip_length_less },
	{ "IP length 0", XROCE_EGRESS_not_roce, .after = ip_length_0 },
	{ "UDP length too long", XROCE_EGRESS_not_roce, .after = udp_length_more },
	{ "UDP length too short", XROCE_EGRESS_not_roce, .after = udp_length_less },
	{ "UDP length 0", XROCE_EGRESS_not_roce, .after = udp_length_0 },
	{ "padding", XROCE_EGRESS_not_roce, .after = padding },
	{ "no BTH", XROCE_EGRESS_not_roce, .after = no_bth },
	{ "BTH and no ICRC", XROCE_EGRESS_not_roce, .after = bth_and_no_icrc },
	{ "no DETH", XROCE_EGRESS_not_roce, .before = egress_ud, .after = no_deth },
	{ "cut in the IP header", XROCE_EGRESS_not_roce, .after = cut_in_ip },
	{ "cut in the UDP header", XROCE_EGRESS_not_roce, .after = cut_in_udp },
	{ "Ethernet alone", XROCE_EGRESS_not_roce, .after = ethernet_alone },
	{ "cut in the IPv6 header", XROCE_EGRESS_not_roce, .before = egress_ipv6,
	  .after = ipv6_cut },
	{ "IPv6 of version 4", XROCE_EGRESS_not_roce, .before = egress_ipv6,
	  .after = ipv6_version_4 },
	{ "UDP-Lite over IPv6", XROCE_EGRESS_not_roce, .before = egress_ipv6,
	  .after = ipv6_another_header },
	{ "IPv6 length 0", XROCE_EGRESS_not_roce, .before = egress_ipv6, .after = ipv6_length_0 },
	{ "IPv6 length too long", XROCE_EGRESS_not_roce, .before = egress_ipv6,
	  .after = ipv6_length_more },
	{ "hop-by-hop options", XROCE_EGRESS_not_roce, .before = egress_ipv6, .after = hop_by_hop },
	{ "IPv6 fragment", XROCE_EGRESS_not_roce, .before = egress_ipv6, .after = ipv6_fragment },
	{ "destination options", XROCE_EGRESS_not_roce, .before = egress_ipv6,
	  .after = destination_options },
	{ "reserved opcode", XROCE_EGRESS_not_roce, .before = opcode_reserved },
	{ "RD", XROCE_EGRESS_not_roce, .before = opcode_rd },
	{ "another source", XROCE_EGRESS_source, .before = another_source },
	{ "source 0.0.0.0", XROCE_EGRESS_source, .before = no_source },
	{ "the peer's source", XROCE_EGRESS_source, .before = peers_source },
	{ "another IPv6 source", XROCE_EGRESS_source, .before = another_ipv6_source },
	{ "multicast", XROCE_EGRESS_multicast, .before = multicast },
	{ "broadcast", XROCE_EGRESS_multicast, .before = broadcast },
	{ "IPv6 multicast", XROCE_EGRESS_multicast, .before = ipv6_multicast },
	{ "a datagram to a group's address", XROCE_EGRESS_multicast, .before = ud_multicast },
	{ "a datagram to all by broadcast", XROCE_EGRESS_multicast, .before = ud_broadcast },
	{ "RC to a group", XROCE_EGRESS_multicast, .before = rc_to_group },
	{ "to 127.0.0.1", XROCE_EGRESS_not_roce, .before = to_loopback },
	{ "to 0.0.0.0", XROCE_EGRESS_not_roce, .before = to_this_network },
	{ "to ::1", XROCE_EGRESS_not_roce, .before = ipv6_to_loopback },
	{ "to ::2", XROCE_EGRESS_not_roce, .before = ipv6_to_nowhere },
	{ "the own IPv4 address in an IPv6 header", XROCE_EGRESS_not_roce, .before = egress_ipv6,
	  .after = ipv4_source_in_ipv6 },
	{ "marked as a super-packet", XROCE_EGRESS_segments, .after = looks_like_super },
	{ "a code for a super-packet", XROCE_EGRESS_segments, .before = code_for_segments },
	{ "QP 1", XROCE_EGRESS_qp1, .before = qp1, .right_of_other = true },
	{ "QP 1, reserved bits set", XROCE_EGRESS_qp1, .before = qp1_reserved_bits,
	  .right_of_other = true },
	{ "a datagram to QP 1", XROCE_EGRESS_qp1, .before = ud_qp1 },
	{ "privileged Q_Key", XROCE_EGRESS_qkey, .before = privileged_qkey },
	{ "another P_Key", XROCE_EGRESS_pkey, .before = another_pkey },
	{ "the P_Key of a limited member", XROCE_EGRESS_pkey, .before = pkey_not_limited },
	{ "the P_Key of a full member", XROCE_EGRESS_pkey, .before = pkey_not_full },
	{ "the default P_Key, limited", XROCE_EGRESS_pkey, .before = default_limited },
	{ "no P_Key", XROCE_EGRESS_pkey, .before = no_pkey },
	{ "a datagram with another P_Key", XROCE_EGRESS_pkey, .before = ud_pkey },
	{ "another client's source QPN", XROCE_EGRESS_src_qpn, .before = src_of_other,
	  .right_of_other = true },
	{ "nobody's source QPN", XROCE_EGRESS_src_qpn, .before = src_of_nobody },
	{ "source QPN 1", XROCE_EGRESS_src_qpn, .before = src_1 },
	{ "another client's flow probe", XROCE_EGRESS_src_qpn, .before = flow_of_other,
	  .right_of_other = true },
	{ "longer than the interface's MTU allows", XROCE_EGRESS_mtu, .before = too_long },
};

static void build(const struct row *row)
{
	struct frame_spec s = egress_spec();

	if (row && row->before)
		row->before(&s);
	frame_build(&f, &s);
	if (row && row->after)
		row->after();
}

static void egress__row(void **state)
{
	const struct row *row = *state;

	egress_reset();
	build(row);
	egress_expect_refused(EGRESS_ME, row->what, row->reason, &egress_plain, f.bytes, f.len);
	if (row->right_of_other)
		egress_expect_wire(EGRESS_PRIVILEGED, row->what, &egress_plain, f.bytes, f.len);
	/* the drop reason is the row's */
	build(NULL);
	egress_expect_wire(EGRESS_ME, "the packet unspoiled", &egress_plain, f.bytes, f.len);
}

static void egress__every_reason_has_a_test(void **state)
{
	for (int reason = XROCE_EGRESS_none + 1; reason < XROCE_EGRESS_END; reason++) {
		/* of devices, of what else is written with a frame, of MADs: the other
		 * test_egress*.c */
		bool found = reason == XROCE_EGRESS_unknown_tap || reason == XROCE_EGRESS_offload ||
			     reason == XROCE_EGRESS_no_wire || reason == XROCE_EGRESS_mad ||
			     reason == XROCE_EGRESS_mad_id || reason == XROCE_EGRESS_mad_answer;

		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			found |= (int)rows[i].reason == reason;
		check(found, "no test of %s", egress_reason_name(reason));
	}
}

int main(void)
{
	enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
	static struct CMUnitTest tests[ROWS + 1];
	static char names[ROWS][96];

	for (size_t i = 0; i < ROWS; i++) {
		snprintf(names[i], sizeof(names[i]), "egress__%s(%s)",
			 egress_reason_name(rows[i].reason), rows[i].what);
		tests[i] = (struct CMUnitTest){ .name = names[i],
						.test_func = egress__row,
						.initial_state = (void *)&rows[i] };
	}
	tests[ROWS] = (struct CMUnitTest)cmocka_unit_test(egress__every_reason_has_a_test);
	return _cmocka_run_group_tests("egress_refused", tests, ROWS + 1, egress_setup,
				       egress_teardown);
}
