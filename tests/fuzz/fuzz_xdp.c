/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=1 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: any frame into the parser of XDP (bpf/parse.h, bpf/mad.h) as a function of the
 * host. Looks for reads after the linear part and of fields that are not set. Compares the result
 * with user space: the engine's parser accepts and refuses the same frames, for the same reason,
 * with the same fields. The cutter finds as many packets in a super-packet, and the connection
 * manager the same client for a MAD.
 *
 * scripts/fuzz.sh BUILD xdp SECONDS runs it. An input is struct shape, then the frame.
 */
#include "bpf_host.h"

#define bpf_xdp_load_bytes   host_load_bytes
#define bpf_xdp_get_buff_len host_frame_len
#define packet		     xdp_packet
#define opcode_flags	     xdp_opcode_flags
#include "../../bpf/mad.h"
#include "../../bpf/parse.h"
#undef opcode_flags
#undef packet

#include "../../user/cm/internal.h"
#include "../../user/cm/mad.h"
#include "../../user/engine/gso.h"
#include "golden.h"

#define LINEAR_MIN 160u /* bytes that hold all headers */

#define IS_SHORT 0x80 /* a flag after enum host_fix: the linear part ends anywhere */

struct shape {
	u8 fixes, pad;
	u16 linear;
};

/* ---- XDP ---- */

/* Parses into *p, of which each byte is `before` at first. */
static enum xroce_drop xdp_parse(struct xdp_packet *p, u8 before)
{
	struct xdp_md ctx = { .data = host_data(), .data_end = host_data() + host_frame.linear };
	enum xroce_drop drop = XROCE_DROP_none;

	memset(p, before, sizeof(*p));
	if (!parse_ip(&ctx, p, &drop))
		return XROCE_DROP_not_roce;
	return drop == XROCE_DROP_none ? parse_roce(&ctx, p) : drop;
}

/* Requires that every field of an accepted packet comes from the frame, not from the stack. */
static void check_set(const struct xdp_packet *a, const struct xdp_packet *b)
{
	REQUIRE(!memcmp(&a->src, &b->src, sizeof(a->src) + sizeof(a->dst)));
	REQUIRE(a->l3 == b->l3 && a->l4 == b->l4 && a->udp == b->udp && a->ip_end == b->ip_end);
	REQUIRE(a->vlan_tci == b->vlan_tci && a->tos == b->tos && a->rx_flags == b->rx_flags);
	REQUIRE(a->ip_id == b->ip_id && a->has_bth == 1 && b->has_bth == 1);
	REQUIRE(a->opcode == b->opcode && a->bth_flags == b->bth_flags && a->sport == b->sport);
	REQUIRE(a->pkey == b->pkey && a->qpn == b->qpn && a->psn == b->psn);
	REQUIRE(a->flags == b->flags && a->frame_len == b->frame_len && a->imm == b->imm);
	REQUIRE(a->src_qpn == b->src_qpn && a->qkey == b->qkey && a->byte_len == b->byte_len);
	REQUIRE(a->segments == b->segments && a->syndrome == b->syndrome);
}

/* ---- compared with user space ---- */

static void check_fields(const struct xdp_packet *x, const struct packet *p)
{
	const u32 flags = x->rx_flags;

	REQUIRE(!memcmp(&x->src, &p->src, 16) && !memcmp(&x->dst, &p->dst, 16));
	REQUIRE(x->opcode == p->opcode && x->flags == p->flags && x->pkey == p->pkey);
	REQUIRE(x->qpn == p->dest_qpn && x->psn == p->psn && x->sport == p->udp_sport);
	REQUIRE(x->src_qpn == p->src_qpn && x->qkey == p->qkey && x->syndrome == p->syndrome);
	REQUIRE(x->tos == p->tos && x->vlan_tci == p->vlan_tci);
	REQUIRE(!!(flags & XROCE_RX_VLAN) == p->has_vlan);
	REQUIRE(!!(flags & XROCE_RX_IPV6) == p->is_ipv6);
	REQUIRE(!!(flags & XROCE_RX_SOLICITED) == p->solicited);
	REQUIRE(!!(flags & XROCE_RX_CE) == ((p->tos & 3) == 3));
	REQUIRE(!!(flags & XROCE_RX_IMM) == !!(p->flags & OP_IMM));
	REQUIRE(!!(flags & XROCE_RX_INV) == !!(p->flags & OP_IETH));
	REQUIRE(x->imm == (p->flags & OP_IETH ? htobe32(p->inv_rkey) : p->imm));
}

/* Requires the same verdict and reason, if both parsers see all headers. */
static void check_single(const struct xdp_packet *x, enum xroce_drop verdict)
{
	const struct rx_frame frame = { .data = host_frame.bytes,
					.len = host_frame.linear,
					.frag = host_frame.bytes + host_frame.linear,
					.frag_len = host_frame.len - host_frame.linear };
	struct packet p;
	const enum xroce_drop drop = packet_parse(&p, &frame);

	if (host_frame.linear == host_frame.len || host_frame.linear >= LINEAR_MIN)
		REQUIRE(drop == verdict);
	if (drop != XROCE_DROP_none || verdict != XROCE_DROP_none)
		return;
	check_fields(x, &p);
	REQUIRE(x->byte_len == p.payload_len && x->ip_id == p.ip_id);
	REQUIRE(x->l3 == (u32)(p.ip - frame.data));
	packet_icrc_ok(&p); /* reads all of it */
}

/* Requires as many packets as XDP has counted, and that the first has the fields XDP has read. */
static void check_super(const struct xdp_packet *x)
{
	static struct segments s;
	struct rx_frame frame;
	struct packet p;
	u32 num = 0;

	s.part[0] = (struct segment_part){ .data = host_frame.room,
					   .len = host_frame.linear };
	s.part[1] = (struct segment_part){ .data = (u8 *)(uintptr_t)host_frame.bytes +
						   host_frame.linear,
					   .len = host_frame.len - host_frame.linear };
	s.parts = host_frame.linear < host_frame.len ? 2 : 1;
	REQUIRE(segments_begin(&s, x->l3));
	REQUIRE(segments_left(&s) == x->segments && x->rx_flags & XROCE_RX_GSO);
	while (segments_next(&s, &frame)) {
		const enum xroce_drop drop = packet_parse(&p, &frame);

		if (num++)
			continue;
		REQUIRE(drop == XROCE_DROP_none);
		check_fields(x, &p);
	}
	REQUIRE(num == x->segments && x->byte_len <= host_frame.len);
}

/* Requires that XDP and the connection manager find the same client for a MAD. */
static void check_mad(const struct xdp_packet *x)
{
	const u32 at = x->l4 + sizeof(struct udphdr) + sizeof(struct bth) + sizeof(struct deth);
	u64 service_id = 0;
	struct cm_mad m;
	struct mad head;
	u32 id = 0;

	if (x->opcode != OPCODE(XROCE_UD, OP5_SEND_ONLY) || x->byte_len != MAD_BYTES)
		return;
	memcpy(&head, host_frame.bytes + at, sizeof(head));
	if (cm_mad_decode(&m, host_frame.bytes + at, MAD_BYTES) != CM_DROP_none)
		return;
	REQUIRE(mad_is_cm(&head) && mad_kind(&head) == (u32)m.kind);
	switch (cm_mad_names(&m, &id, &service_id)) {
	case CM_NAMES_SERVICE:
		REQUIRE(mad_is_request(&head));
		REQUIRE(bpf_be64_to_cpu(head.service_id) == service_id);
		REQUIRE(mad_service_is_ip(service_id) == cm_service_is_ip(service_id));
		break;
	case CM_NAMES_PEER:
		REQUIRE(mad_names_peer(&head));
		break;
	case CM_NAMES_ID:
		REQUIRE(!mad_is_request(&head) && !mad_names_peer(&head));
		REQUIRE(mad_id(&head) == id);
	}
	REQUIRE(m.kind != CM_REP || mad_rep_qpn(&head) == m.rep.qpn);
}

/* ---- seeds ---- */

/* An IPv4 packet `count` times in a row, as one UDP datagram. */
static void seed_super(const u8 *frame, u32 len, size_t number)
{
	const struct shape shape = { .fixes = HOST_FIX_LENGTHS | HOST_FIX_SUM, .linear = 200 };
	const u32 at = sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr);
	const u32 size = len - at, count = 5;
	static u8 super[HOST_FRAME_MAX];

	memcpy(super, frame, at);
	put16(super + sizeof(struct ethhdr) + 4, size);
	for (u32 i = 0; i < count; i++)
		memcpy(super + at + i * size, frame + at, size);
	fuzz_seed("super", number, &shape, sizeof(shape), super, at + count * size);
}

/* The same packet with two VLAN tags. */
static void seed_tagged(const u8 *frame, u32 len, size_t number)
{
	static const u8 tags[] = { 0x88, 0xa8, 0x20, 7, 0x81, 0, 0x60, 9 };
	const struct shape shape = { .linear = UINT16_MAX };
	static u8 tagged[HOST_FRAME_MAX];

	memcpy(tagged, frame, 12);
	memcpy(tagged + 12, tags, sizeof(tags));
	memcpy(tagged + 12 + sizeof(tags), frame + 12, len - 12);
	fuzz_seed("tagged", number, &shape, sizeof(shape), tagged, len + sizeof(tags));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct shape shape = { .linear = UINT16_MAX };
	struct golden golden;

	if (!fuzz_seed_dir()) {
		host_open();
		return 0;
	}
	if (golden_load(&golden))
		exit(1);
	for (size_t i = 0; i < golden.count; i++) {
		const struct golden_packet *p = &golden.packets[i];

		shape.fixes = i % 3 == 2 ? IS_SHORT : 0;
		shape.linear = i % 3 ? (u16)(i % 100 + 40) : UINT16_MAX;
		fuzz_seed("golden", i, &shape, sizeof(shape), p->frame, p->len);
		if (i % 8 == 0 && !golden_is_ipv6(p))
			seed_super(p->frame, p->len, i);
		if (i % 8 == 1)
			seed_tagged(p->frame, p->len, i);
	}
	golden_free(&golden);
	exit(0);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct xdp_packet first, second;
	enum xroce_drop verdict;
	struct shape shape;
	u32 len, linear;
	u8 *frame;

	frame = fuzz_frame(data, size, &shape, sizeof(shape), HOST_FRAME_MAX, &len);
	if (!frame)
		return 0;
	host_fix(frame, len, shape.fixes);
	linear = min_u32(shape.fixes & IS_SHORT ? shape.linear : shape.linear + LINEAR_MIN, len);
	host_take(frame, len, linear);
	verdict = xdp_parse(&first, 0);
	REQUIRE(xdp_parse(&second, 0xff) == verdict);
	if (verdict == XROCE_DROP_none)
		check_set(&first, &second);
	if (verdict == XROCE_DROP_none && first.segments > 1)
		check_super(&first);
	else if (verdict == XROCE_DROP_not_roce || first.segments == 1)
		check_single(&first, verdict);
	if (verdict == XROCE_DROP_none && first.segments == 1)
		check_mad(&first);
	free(frame);
	return 0;
}
