/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Raw packet QPs in the engine: the flows that take a frame, the owner of each copy, the content of
 * a receive; sent frames, and their maximum length. Frames come as XDP hands them over, and as our
 * own.
 */
#include "raw_bench.h"

#define TAGGED 18u

static void raw_input__the_whole_frame(void **state)
{
	struct qp *qp = make_raw();
	u8 frame[128];
	const u32 len = make_frame(frame, 0);

	attach(qp, &none, &none, 0);
	post_receive(qp, 0, SLOT);
	assert_int_equal(input(frame, len), XROCE_DROP_none);
	expect_cqe(qp, 0, len);
	assert_memory_equal(memory[0], frame, len);
	assert_int_equal(memory[0][len], 0);
}

static void raw_input__of_two_buffers(void **state)
{
	struct qp *qp = make_raw();
	u8 frame[128];
	const u32 len = make_frame(frame, 0);
	const struct rx_frame f = { .data = frame, .len = 60, .frag = frame + 60,
				    .frag_len = len - 60 };

	attach(qp, &none, &none, 0);
	post_receive(qp, 0, SLOT);
	assert_int_equal(engine_input(engine, &hint, &f, 0), XROCE_DROP_none);
	expect_cqe(qp, 0, len);
	assert_memory_equal(memory[0], frame, len);
}

/* Each field of the mask that is not the frame's refuses it; each that is takes it. */
static void raw_input__fields(void **state)
{
	static const struct {
		struct xroce_flow_key value, mask;
		u32 tags;
		bool taken;
	} rows[] = {
		{ .value.dst_mac = { 2 }, .mask.dst_mac = { 0xff }, .taken = true },
		{ .value.dst_mac = { 3 }, .mask.dst_mac = { 0xff } },
		{ .value.dst_mac = { 2 }, .mask.dst_mac = { 0xfe }, .taken = true },
		{ .value.src_mac = { 0, 5 }, .mask.src_mac = { 0, 0xff } },
		{ .value.ether_type = 8, .mask.ether_type = 0xffff, .taken = true },
		{ .value.ether_type = 8, .mask.ether_type = 0xffff, .tags = 2, .taken = true },
		{ .value.ether_type = 0x81, .mask.ether_type = 0xffff, .tags = 1 },
		{ .value.vlan_tci = 0x0700, .mask.vlan_tci = 0xff0f, .tags = 1, .taken = true },
		/* the first tag's */
		{ .value.vlan_tci = 0x0700, .mask.vlan_tci = 0xff0f, .tags = 2, .taken = true },
		{ .value.vlan_tci = 0x0800, .mask.vlan_tci = 0xff0f, .tags = 2 },
		{ .value.kinds = XROCE_FLOW_VLAN, .mask.kinds = XROCE_FLOW_VLAN },
		{ .value.kinds = XROCE_FLOW_VLAN, .mask.kinds = XROCE_FLOW_VLAN, .tags = 1,
		  .taken = true },
		{ .value.kinds = XROCE_FLOW_IPV4 | XROCE_FLOW_UDP,
		  .mask.kinds = XROCE_FLOW_IPV4 | XROCE_FLOW_UDP, .taken = true },
		{ .value.kinds = XROCE_FLOW_IPV6, .mask.kinds = XROCE_FLOW_IPV6 },
		{ .value.kinds = XROCE_FLOW_TCP, .mask.kinds = XROCE_FLOW_TCP },
		{ .value.kinds = XROCE_FLOW_MULTICAST, .mask.kinds = XROCE_FLOW_MULTICAST },
		{ .value.src = { 0x0100000a }, .mask.src = { ~0u }, .taken = true },
		{ .value.src = { 0x0200000a }, .mask.src = { ~0u } },
		{ .value.dst = { 0x0200000a }, .mask.dst = { ~0u }, .taken = true },
		{ .value.dst = { 0x0000000a }, .mask.dst = { 0xff }, .taken = true },
		{ .value.dport = 0x8813, .mask.dport = 0xffff, .taken = true },
		{ .value.dport = 0x8813, .mask.dport = 0xffff, .tags = 2, .taken = true },
		{ .value.dport = 0x8913, .mask.dport = 0xffff },
		{ .value.sport = 0xa00f, .mask.sport = 0xffff, .taken = true },
		{ .value.sport = 0x8813, .mask.sport = 0xffff },
		{ .value.proto = 17, .mask.proto = 0xff, .taken = true },
		{ .value.proto = 6, .mask.proto = 0xff },
		{ .value.ttl = 64, .mask.ttl = 0xff, .taken = true },
		{ .value.tos = 4, .mask.tos = 0xff },
		{ .value.ip_flags = 2, .mask.ip_flags = 0xff },
	};
	struct qp *qp = make_raw();
	u8 frame[128];

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		const u32 len = make_frame(frame, rows[i].tags);
		struct raw_flow *flow = attach(qp, &rows[i].value, &rows[i].mask, 0);
		enum xroce_drop drop;

		post_receive(qp, 0, SLOT);
		drop = input(frame, len);
		if (drop != (rows[i].taken ? XROCE_DROP_none : XROCE_DROP_flow))
			fail_msg("row %u: %d", i, drop);
		if (rows[i].taken)
			expect_cqe(qp, 0, len);
		else
			rq_reset(&qp->rq);
		raw_detach(engine, flow);
	}
}

/* Cut anywhere, it is read no further than its end. Missing bytes are zeroes. */
static void raw_input__cut_short(void **state)
{
	const struct xroce_flow_key port = { .dport = 0x8813 }, mask = { .dport = 0xffff };
	struct qp *qp = make_raw();
	u8 frame[128];
	const u32 len = make_frame(frame, 2);

	attach(qp, &port, &mask, 0);
	for (u32 n = 1; n < len; n++) {
		const bool has_port = n >= 14 + 8 + 20 + 4;

		/* the rest of it lies after an unreadable page */
		const struct rx_frame f = { .data = frame, .len = n };

		post_receive(qp, 0, SLOT);
		assert_int_equal(engine_input(engine, &hint, &f, 0),
				 has_port ? XROCE_DROP_none : XROCE_DROP_flow);
		if (has_port)
			expect_cqe(qp, 0, n);
		else
			rq_reset(&qp->rq);
	}
}

/* With a byte of its IP header changed the frame shows no ports, and is none of TCP's or UDP's. */
static void expect_no_ports(u32 at, u8 byte)
{
	static const struct xroce_flow_key value[] = {
		{ .dport = 0x8813 }, { .kinds = XROCE_FLOW_TCP }, { .kinds = XROCE_FLOW_UDP },
	}, mask[] = {
		{ .dport = 0xffff }, { .kinds = XROCE_FLOW_TCP }, { .kinds = XROCE_FLOW_UDP },
	};
	struct qp *qp = make_raw();
	u8 frame[128];
	const u32 len = make_frame(frame, 0);

	frame[14 + at] = byte;
	for (u32 i = 0; i < ARRAY_SIZE(value); i++)
		attach(qp, &value[i], &mask[i], 0);
	post_receive(qp, 0, SLOT);
	assert_int_equal(input(frame, len), XROCE_DROP_flow);
	expect_no_cqe();
}

/* Bytes in the place of ports are none. */
static void raw_input__later_fragment(void **state)
{
	expect_no_ports(7, 1);
}

static void raw_input__other_protocol(void **state)
{
	expect_no_ports(9, 132); /* SCTP */
}

/* SPI and sequence number where ports would be; of a later fragment, or cut there: none. */
static void raw_input__esp(void **state)
{
	static const struct {
		u32 spi, seq, spi_mask, seq_mask;
		bool taken;
	} rows[] = {
		{ 0x0fa01388, 0, ~0u, 0, true },
		{ 0x0fa01389, 0, ~0u, 0, false },
		{ 0, 0x11223344, 0, ~0u, true },
		{ 0, 0x11223345, 0, ~0u, false },
		{ 0x0fa00000, 0, 0xffff0000, 0, true },
		{ 0, 0, 0, 0, true },
	};
	struct qp *qp = make_raw();
	u8 frame[128];
	const u32 len = make_frame(frame, 0);

	frame[14 + 9] = 50;
	frame[38] = 0x11, frame[39] = 0x22, frame[40] = 0x33, frame[41] = 0x44;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct xroce_flow_key mask = { .kinds = XROCE_FLOW_ESP,
						     .spi = htobe32(rows[i].spi_mask),
						     .seq = htobe32(rows[i].seq_mask) };
		const struct xroce_flow_key value = { .kinds = XROCE_FLOW_ESP,
						      .spi = htobe32(rows[i].spi),
						      .seq = htobe32(rows[i].seq) };
		struct raw_flow *flow = attach(qp, &value, &mask, 0);

		if ((input(frame, len) == XROCE_DROP_no_receive) != rows[i].taken)
			fail_msg("row %u", i);
		raw_detach(engine, flow);
		frame[21] = 1;
		flow = attach(qp, &value, &mask, 0);
		assert_int_equal(input(frame, len), XROCE_DROP_flow);
		frame[21] = 0;
		assert_int_equal(input(frame, 41), XROCE_DROP_flow);
		raw_detach(engine, flow);
	}
}

/* The first entry after the tags, of either EtherType, whole; nothing after it. */
static void raw_input__mpls(void **state)
{
	const struct xroce_flow_key value = { .kinds = XROCE_FLOW_MPLS,
					      .flow_label = htobe32(0x12345140) },
				    mask = { .kinds = XROCE_FLOW_MPLS, .flow_label = ~0u },
				    upper = { .kinds = XROCE_FLOW_MPLS,
					      .flow_label = htobe32(0xfffff000) },
				    ip = { .kinds = XROCE_FLOW_IPV4 };
	struct xroce_flow_key label = value;
	struct qp *qp = make_raw();
	u8 frame[128];

	label.flow_label &= upper.flow_label;
	for (u32 tags = 0; tags < 3; tags++) {
		u32 len = make_frame(frame, tags), at = 12 + 4 * tags;
		struct raw_flow *flow;

		frame[at] = 0x88;
		frame[at + 1] = 0x47 + (tags & 1);
		memmove(frame + at + 6, frame + at + 2, len - at - 6);
		frame[at + 2] = 0x12, frame[at + 3] = 0x34;
		frame[at + 4] = 0x51, frame[at + 5] = 0x40;
		flow = attach(qp, &value, &mask, 0);
		assert_int_equal(input(frame, len), XROCE_DROP_no_receive);
		assert_int_equal(input(frame, at + 5), XROCE_DROP_flow);
		frame[at + 5]++;
		assert_int_equal(input(frame, len), XROCE_DROP_flow);
		raw_detach(engine, flow);
		flow = attach(qp, &label, &upper, 0);
		assert_int_equal(input(frame, len), XROCE_DROP_no_receive);
		raw_detach(engine, flow);
		flow = attach(qp, &ip, &ip, 0);
		assert_int_equal(input(frame, len), XROCE_DROP_flow);
		raw_detach(engine, flow);
	}
}

static void raw_input__the_smaller_order_first(void **state)
{
	struct qp *behind = make_raw(), *first = make_raw();
	struct raw_flow *flow;
	u8 frame[128];
	const u32 len = make_frame(frame, 0);

	attach(behind, &none, &none, 5);
	flow = attach(first, &none, &none, 4);
	post_receive(behind, 0, SLOT);
	post_receive(first, 1, SLOT);
	assert_int_equal(input(frame, len), XROCE_DROP_none);
	expect_cqe(first, 1, len);
	expect_no_cqe();
	raw_detach(engine, flow);
	assert_int_equal(input(frame, len), XROCE_DROP_none);
	expect_cqe(behind, 0, len);
}

static void raw_input__a_copy_for_each(void **state)
{
	struct qp *a = make_raw(), *b = make_raw();
	u8 frame[128];
	const u32 len = make_frame(frame, 0);

	attach(a, &none, &none, 3);
	attach(b, &none, &none, 3);
	/* one for each QP, however many of its flows take it */
	attach(a, &none, &none, 3);
	attach(a, &none, &none, 4);
	post_receive(a, 0, SLOT);
	post_receive(a, 1, SLOT);
	post_receive(b, 2, SLOT);
	assert_int_equal(input(frame, len), XROCE_DROP_none);
	expect_cqe(a, 0, len);
	expect_cqe(b, 2, len);
	expect_no_cqe();
	assert_memory_equal(memory[2], frame, len);
	/* b has no receive: a has its frame all the same, and the loss is counted */
	assert_int_equal(input(frame, len), XROCE_DROP_none);
	expect_cqe(a, 1, len);
	assert_int_equal(drops.no_receive, 1);
}

static void raw_input__receive_too_short(void **state)
{
	struct qp *qp = make_raw();
	struct cqe cqe;
	u8 frame[128];
	const u32 len = make_frame(frame, 0);

	attach(qp, &none, &none, 0);
	post_receive(qp, 0, len - 1);
	assert_int_equal(input(frame, len), XROCE_DROP_receive_short);
	assert_true(poll_cq(&cqe));
	assert_int_equal(cqe.status, CQE_LOC_LEN_ERR);
	assert_int_equal(qp_state(qp), QPS_ERR);
	assert_int_equal(input(frame, len), XROCE_DROP_qp_state);
}

/* Without XDP's word for it a frame is a flow's only if it is no RoCEv2 packet. */
static void raw_input__our_own(void **state)
{
	struct qp *qp = make_raw();
	struct raw_flow *flow;
	u8 frame[128];
	const u32 len = make_frame(frame, 0);
	const struct rx_frame f = { .data = frame, .len = len };

	assert_int_equal(engine_input(engine, NULL, &f, 0), XROCE_DROP_not_roce);
	flow = attach(qp, &none, &none, 0);
	post_receive(qp, 0, SLOT);
	assert_int_equal(engine_input(engine, NULL, &f, 0), XROCE_DROP_none);
	expect_cqe(qp, 0, len);
	/* XDP has looked, and says that it is a packet: then it is none of ours */
	assert_int_equal(engine_input(engine, &(struct xroce_rx_cqe){ .l3_offset = 14 }, &f, 0),
			 XROCE_DROP_not_roce);
	raw_detach(engine, flow);
}

static void raw_takes_frame__if_any_flow_does(void **state)
{
	const struct xroce_flow_key port = { .dport = 0x8813 }, other = { .dport = 0x8913 },
				    mask = { .dport = 0xffff };
	struct qp *qp = make_raw();
	u8 frame[128];
	const struct rx_frame f = { .data = frame, .len = make_frame(frame, 0) };

	assert_false(raw_takes_frame(engine, &f));
	attach(qp, &other, &mask, 0);
	assert_false(raw_takes_frame(engine, &f));
	attach(qp, &port, &mask, 1);
	assert_true(raw_takes_frame(engine, &f));
}

/* Of one order the flow that drops is first, however old it is; a smaller one is before it. */
static void raw_input__drops(void **state)
{
	const struct raw_rule takes = { .order = 5 }, before = { .order = 4 },
			      dropping = { .order = 5, .drops = true };
	struct qp *qp = make_raw();
	const u64 counted = drops.flow_drop;
	u8 frame[128];
	const u32 len = make_frame(frame, 0);

	post_receive(qp, 0, SLOT);
	attach_rule(qp, &takes);
	attach_rule(qp, &dropping);
	attach_rule(qp, &takes);
	assert_int_equal(input(frame, len), XROCE_DROP_flow_drop);
	assert_int_equal(input_as(frame, len, NULL), XROCE_DROP_flow_drop);
	assert_int_equal(drops.flow_drop, counted + 2);
	expect_no_cqe();
	attach_rule(qp, &before);
	assert_int_equal(input(frame, len), XROCE_DROP_none);
	expect_cqe(qp, 0, len);
}

/* ---- tunnels ---- */

#define OUTER_BYTES 34u /* Ethernet and IPv4 */

/* These bytes after the outer IP header, then the inner frame from byte skip on. */
static u32 make_tunnel(u8 *frame, u8 proto, u16 dport, const u8 *header, u32 bytes, u32 tags,
		       u32 skip)
{
	u8 inner[128];
	const u32 len = make_frame(inner, tags) - skip;
	u8 *at = frame + OUTER_BYTES;

	make_frame(frame, 0);
	frame[23] = proto;
	if (proto != 47) {
		at[2] = (u8)(dport >> 8);
		at[3] = (u8)dport;
		at += 8;
	}
	memcpy(at, header, bytes);
	memcpy(at + bytes, inner + skip, len);
	return (u32)(at - frame) + bytes + len;
}

static const u8 vxlan[] = { 8, 0, 0, 0, 0x12, 0x34, 0x56, 0x99 }, no_vni[8] = { 0 },
		gre[] = { 0, 0, 8, 0 }, gre_bridged[] = { 0, 0, 0x65, 0x58 },
		gre_all[] = { 0xb0, 0, 8, 0, 1, 1, 0, 0, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 5 },
		gre_pptp[] = { 0x20, 1, 8, 0, 0x11, 0x22, 0x33, 0x44 };

/* What such a frame is, looked for by one thing at a time. */
enum {
	IS_TUNNEL = 1, IS_VXLAN = 2, IS_GRE = 4, HAS_VNI = 8, HAS_KEY = 16, GRE_OF_IP = 32,
	INNER_ETHERNET = 64, INNER_VLAN = 128, INNER_UDP = 256, INNER_PORT = 512, INNER_MAC = 1024,
	INNER_TYPE = 2048, LOOKED_FOR = 4096
};

static struct raw_rule tunnel_rule(u32 what)
{
	struct raw_rule r = { .mask.kinds = XROCE_FLOW_TUNNEL };
	struct xroce_flow_tunnel *v = &r.tunnel_value, *m = &r.tunnel_mask;

	switch (what) {
	case IS_VXLAN: r.mask.kinds |= XROCE_FLOW_VXLAN; break;
	case IS_GRE: r.mask.kinds |= XROCE_FLOW_GRE; break;
	case HAS_VNI: v->id = htobe32(0x123456), m->id = ~0u; break;
	case HAS_KEY: v->id = htobe32(0x11223344), m->id = ~0u; break;
	case GRE_OF_IP: v->gre_protocol = htobe16(0x0800), m->gre_protocol = 0xffff; break;
	case INNER_ETHERNET: v->inner.kinds = m->inner.kinds = XROCE_FLOW_ETHERNET; break;
	case INNER_VLAN: v->inner.kinds = m->inner.kinds = XROCE_FLOW_VLAN; break;
	case INNER_UDP: v->inner.kinds = m->inner.kinds = XROCE_FLOW_UDP; break;
	case INNER_PORT: v->inner.dport = htobe16(5000), m->inner.dport = 0xffff; break;
	case INNER_MAC: memset(v->inner.src_mac, 4, 6), memset(m->inner.src_mac, 255, 6); break;
	case INNER_TYPE: v->inner.ether_type = htobe16(0x0800), m->inner.ether_type = 0xffff; break;
	}
	r.value.kinds = r.mask.kinds;
	return r;
}

static void raw_input__tunnels(void **state)
{
	enum { IP = INNER_UDP | INNER_PORT | INNER_TYPE, MACS = INNER_ETHERNET | INNER_MAC };
	static const struct {
		const u8 *header;
		u32 bytes, tags, skip, cut, is;
		u16 dport;
		u8 proto, fragment;
	} rows[] = {
		{ vxlan, 8, 0, 0, 0, IS_TUNNEL | IS_VXLAN | HAS_VNI | IP | MACS, 4789, 17, 0 },
		{ vxlan, 8, 1, 0, 0, IS_TUNNEL | IS_VXLAN | HAS_VNI | IP | MACS | INNER_VLAN, 4789,
		  17, 0 },
		{ vxlan, 8, 0, 0, 0, 0, 4790, 17, 0 },
		{ vxlan, 8, 0, 0, 0, 0, 4789, 6, 0 },
		{ vxlan, 8, 0, 0, 0, 0, 4789, 17, 1 },
		{ no_vni, 8, 0, 0, 0, 0, 4789, 17, 0 },
		/* cut within: its header, the inner MACs, the inner IP header, before the ports */
		{ vxlan, 8, 0, 0, 49, 0, 4789, 17, 0 },
		{ vxlan, 8, 0, 0, 63, IS_TUNNEL | IS_VXLAN | HAS_VNI, 4789, 17, 0 },
		{ vxlan, 8, 0, 0, 83, IS_TUNNEL | IS_VXLAN | HAS_VNI | MACS | INNER_TYPE, 4789, 17,
		  0 },
		{ vxlan, 8, 0, 0, 87, IS_TUNNEL | IS_VXLAN | HAS_VNI | MACS | INNER_TYPE, 4789, 17,
		  0 },
		{ gre, 4, 0, 14, 0, IS_TUNNEL | IS_GRE | GRE_OF_IP | IP, 0, 47, 0 },
		{ gre_bridged, 4, 0, 0, 0, IS_TUNNEL | IS_GRE | IP | MACS, 0, 47, 0 },
		{ gre_all, 16, 0, 14, 0, IS_TUNNEL | IS_GRE | GRE_OF_IP | HAS_KEY | IP, 0, 47, 0 },
		{ gre_pptp, 8, 0, 14, 0, IS_TUNNEL | IS_GRE | GRE_OF_IP | INNER_TYPE, 0, 47, 0 },
		{ gre, 4, 0, 14, 37, 0, 0, 47, 0 },
		{ gre_all, 16, 0, 14, 45, IS_TUNNEL | IS_GRE | GRE_OF_IP | INNER_TYPE, 0, 47, 0 },
	};
	struct qp *qp = make_raw();

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		u8 frame[256];
		u32 len = make_tunnel(frame, rows[i].proto, rows[i].dport, rows[i].header,
				      rows[i].bytes, rows[i].tags, rows[i].skip);

		frame[21] = rows[i].fragment;
		len = rows[i].cut ? rows[i].cut : len;
		for (u32 what = 1; what < LOOKED_FOR; what *= 2) {
			const struct raw_rule rule = tunnel_rule(what);
			struct raw_flow *flow = attach_rule(qp, &rule);
			const bool taken = input(frame, len) == XROCE_DROP_no_receive;

			if (taken != !!(rows[i].is & what))
				fail_msg("row %u, %u: %staken", i, what, taken ? "" : "not ");
			raw_detach(engine, flow);
		}
	}
}

static void expect_tag(u32 qpn, u32 tag)
{
	struct cqe cqe;

	assert_true(poll_cq(&cqe));
	assert_int_equal(cqe.qpn, qpn);
	assert_int_equal(cqe.flow_tag, tag);
}

/* Each QP's completion has the tag of the QP's first flow, and 0 without one; XDP's is no tag. */
static void raw_input__tags(void **state)
{
	const struct raw_rule one = { .tag = 0x12345678 }, two = { .tag = ~0u }, untagged = { 0 };
	const struct xroce_rx_cqe as[] = { { .qpn = 1, .flow_tag = 99, .rx_time_ns = 77 } };
	struct qp *a = make_raw(), *b = make_raw(), *c = make_raw();
	u8 frame[128];
	const u32 len = make_frame(frame, 0);

	attach_rule(a, &one);
	attach_rule(b, &two);
	attach_rule(a, &two);
	attach_rule(c, &untagged);
	for (u32 i = 0; i < 2; i++) {
		post_receive(a, 0, SLOT);
		post_receive(b, 1, SLOT);
		post_receive(c, 2, SLOT);
		assert_int_equal(input_as(frame, len, i ? NULL : as), XROCE_DROP_none);
		assert_int_equal(cq_peek(&cq)->time_ns, i ? 0 : 77);
		expect_tag(a->qpn, 0x12345678);
		expect_tag(b->qpn, ~0u);
		expect_tag(c->qpn, 0);
		expect_no_cqe();
	}
}

/*
 * XDP counts its received frames. Of sent frames each flow that takes one counts it, whether
 * a QP receives it or not, and none of a larger order.
 */
static void raw_input__counts_own_frames(void **state)
{
	struct raw_counter first = { 0 }, second = { 0 }, behind = { 0 };
	const struct xroce_flow_key port = { .dport = 0x8913 }, mask = { .dport = 0xffff };
	const struct raw_rule rules[] = { { .counter = &first },
					  { .counter = &second },
					  { .counter = &second },
					  { .counter = &behind, .order = 1 },
					  { .counter = &behind, .value = port, .mask = mask } };
	struct qp *qp = make_raw();
	u8 frame[128];
	const u32 len = make_frame(frame, 0);

	for (u32 i = 0; i < ARRAY_SIZE(rules); i++)
		attach_rule(qp, &rules[i]);
	post_receive(qp, 0, SLOT);
	assert_int_equal(input(frame, len), XROCE_DROP_none);
	assert_int_equal(first.own.packets, 0);
	assert_int_equal(input_as(frame, len, NULL), XROCE_DROP_no_receive);
	assert_int_equal(input_as(frame, len - 1, NULL), XROCE_DROP_no_receive);
	assert_int_equal(first.own.packets, 2);
	assert_int_equal(first.own.bytes, 2 * len - 1);
	assert_int_equal(second.own.packets, 4);
	assert_int_equal(second.own.bytes, 4 * len - 2);
	assert_int_equal(behind.own.packets, 0);
}

static void raw_attach__refused(void **state)
{
	struct qp *qp = make_raw(), *ud = make_qp(XROCE_UD);
	const struct raw_rule all = { 0 };
	struct raw_flow *flow;

	assert_int_equal(raw_attach(engine, ud, &all, &flow), -EINVAL);
	for (u32 i = 0; i < XROCE_MAX_FLOW; i++)
		attach(qp, &none, &none, 0);
	assert_int_equal(raw_attach(engine, qp, &all, &flow), -ENOMEM);
	assert_int_equal(raw_num_flows(engine), XROCE_MAX_FLOW);
	assert_int_equal(qp->num_flows, XROCE_MAX_FLOW);
}

static void raw_any__while_there_is_one(void **state)
{
	struct qp *qp;

	assert_false(raw_any(engine));
	qp = make_raw();
	assert_true(raw_any(engine));
	assert_false(engine_may_move(qp));
	qp_destroy(engine, qp);
	assert_false(raw_any(engine));
}

static u32 post_send(struct qp *qp, u32 len, u8 *out)
{
	struct send_wqe *wqe;

	sq_begin(&qp->sq);
	wqe = sq_slot(&qp->sq, 0);
	assert_non_null(wqe);
	*wqe = (struct send_wqe){
		.opcode = WR_SEND, .flags = WR_SIGNALED, .num_sge = 2, .length = len
	};
	wqe->sge[0] = (struct sge){ (u64)(uintptr_t)memory[0], 10, mr_key(mr) };
	wqe->sge[1] = (struct sge){ (u64)(uintptr_t)memory[0] + 10, len - 10, mr_key(mr) };
	assert_int_equal(send_wqe_check(qp, wqe), 0);
	sq_publish(&qp->sq, 1);
	engine_doorbell(qp);
	return engine_output(engine, out, PACKET_FRAME_MAX, 0);
}

static void raw_output__lengths(void **state)
{
	static const struct {
		u32 len;
		bool tagged, sent;
	} rows[] = {
		{ 13, false, false },	      { 14, false, true },
		{ 14 + MTU, false, true },    { 14 + MTU + 1, false, false },
		{ TAGGED + MTU, true, true }, { TAGGED + MTU + 1, true, false },
	};
	u8 out[PACKET_FRAME_MAX];
	struct cqe cqe;

	for (u32 i = 0; i < SLOT; i++)
		memory[0][i] = (u8)(i * 13);
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct qp *qp = make_raw();
		u32 len;

		memory[0][12] = rows[i].tagged ? 0x81 : 8;
		memory[0][13] = 0;
		len = post_send(qp, rows[i].len, out);
		if (len != (rows[i].sent ? rows[i].len | ENGINE_RAW : 0))
			fail_msg("row %u: %x", i, len);
		if (rows[i].sent)
			assert_memory_equal(out, memory[0], rows[i].len);
		assert_true(poll_cq(&cqe));
		assert_int_equal(cqe.status, rows[i].sent ? CQE_SUCCESS : CQE_LOC_LEN_ERR);
		assert_int_equal(qp_state(qp), rows[i].sent ? QPS_RTS : QPS_SQE);
		qp_destroy(engine, qp);
	}
}

static void raw_output__other_requests(void **state)
{
	struct qp *qp = make_raw();
	struct send_wqe *wqe;
	u8 out[PACKET_FRAME_MAX];
	struct cqe cqe;

	sq_begin(&qp->sq);
	wqe = sq_slot(&qp->sq, 0);
	*wqe = (struct send_wqe){ .opcode = WR_SEND_WITH_IMM, .length = 0 };
	assert_int_equal(send_wqe_check(qp, wqe), 0);
	sq_publish(&qp->sq, 1);
	engine_doorbell(qp);
	assert_int_equal(engine_output(engine, out, sizeof(out), 0), 0);
	assert_true(poll_cq(&cqe));
	assert_int_equal(cqe.status, CQE_LOC_QP_OP_ERR);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(raw_input__the_whole_frame),
		CASE(raw_input__of_two_buffers),
		CASE(raw_input__fields),
		CASE(raw_input__cut_short),
		CASE(raw_input__later_fragment),
		CASE(raw_input__other_protocol),
		CASE(raw_input__esp),
		CASE(raw_input__mpls),
		CASE(raw_input__the_smaller_order_first),
		CASE(raw_input__a_copy_for_each),
		CASE(raw_input__receive_too_short),
		CASE(raw_input__our_own),
		CASE(raw_takes_frame__if_any_flow_does),
		CASE(raw_input__drops),
		CASE(raw_input__tunnels),
		CASE(raw_input__tags),
		CASE(raw_input__counts_own_frames),
		CASE(raw_attach__refused),
		CASE(raw_any__while_there_is_one),
		CASE(raw_output__lengths),
		CASE(raw_output__other_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
