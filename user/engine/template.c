/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Headers that were built or checked before. This file compares them; packet.c has the layout,
 * except for the few fields that are read in a frame before it is known to be RoCEv2.
 *
 * No load here may span several recent stores: the processor would wait for the stores, and for all
 * work before them. So the words after the common part enter the ICRC from registers.
 */
#include "template.h"

#define ETH_BYTES  14
#define ETH_IPV4   0x0800
#define ETH_IPV6   0x86dd
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define IPV6_SKIP  4 /* version, traffic class, flow label */
#define UDP_BYTES  8
#define BTH_COMMON offsetof(struct bth, ack_psn)

/* ---- out ---- */

void header_out_remember(struct header_out *h, const struct path *path, const struct packet *p)
{
	u8 frame[PACKET_HEADER_MAX];
	/* without extension headers */
	u32 ip = packet_header_bytes(path, OPCODE(XROCE_RC, OP5_SEND_ONLY)) -
		 icrc_start_bytes(path->is_ipv6);

	packet_put_headers(frame, path, p);
	h->len = (u8)(ip + icrc_start_bytes(path->is_ipv6) - (sizeof(struct bth) - BTH_COMMON));
	memcpy(h->bytes, frame, h->len);
	h->icrc = icrc_common(frame + ip, path->is_ipv6);
	h->key = header_out_key(p->opcode, p->solicited, p->migreq, p->payload_len);
}

void header_out(struct header_out *h, const struct icrc_table *t, const struct path *path,
		const struct packet *p, u8 *frame, struct unsealed *u)
{
	u32 flags = opcode_flags(p->opcode), odd, aeth;
	__be32 word = htobe32((p->ackreq ? BTH_ACKREQ : 0) | (p->psn & ROCE_PSN_MASK));
	icrc_t icrc;
	u8 *pos;

	if (unlikely(h->key != header_out_key(p->opcode, p->solicited, p->migreq, p->payload_len)))
		header_out_remember(h, path, p);
	pos = header_out_copy(h, frame, word);
	u->frame = frame;
	u->from = u->payload = pos;
	if ((flags & OP_EXTENSIONS) == OP_AETH) {
		aeth = packet_aeth(p->syndrome, p->msn);
		memcpy(pos, &aeth, sizeof(aeth));
		u->payload = pos + sizeof(aeth);
		u->from = u->payload;
		u->icrc = icrc_two_words(t, h->icrc, word, aeth);
		return;
	}
	icrc = icrc_word(t, h->icrc, word);
	if (flags & OP_EXTENSIONS) {
		u->payload = packet_put_extensions(pos, p, flags);
		/* ISA-L starts at a multiple of 16 bytes before the payload */
		odd = (u32)(u->payload - pos) % 16;
		icrc = icrc_words(t, icrc, pos, odd);
		u->from = pos + odd;
	}
	u->icrc = icrc;
}

u32 header_out_seal(const struct unsealed *u, const struct icrc_table *t, u32 payload_len)
{
	u8 *end = u->payload + payload_len;
	u32 pad = -payload_len & 3;

	for (; pad; pad--)
		*end++ = 0;
	icrc_store(icrc_words(t, u->icrc, u->from, (size_t)(end - u->from)), end);
	return (u32)(end + ROCE_ICRC_BYTES - u->frame);
}

/* ---- in ---- */

/* The fields that the ICRC replaces by ones, in struct header_in's bytes. */
static const u8 masks[2][52] = {
	{ [1] = 0xff, [8] = 0xff, [10] = 0xff, 0xff, [26] = 0xff, 0xff, [32] = 0xff },
	{ [3] = 0xff, [42] = 0xff, 0xff, [48] = 0xff },
};

static u32 template_common_bytes(bool is_ipv6)
{
	return is_ipv6 ? IPV6_BYTES - IPV6_SKIP + UDP_BYTES + BTH_COMMON :
			 IPV4_BYTES + UDP_BYTES + BTH_COMMON;
}

static const u8 *template_common(const struct rx_frame *f, bool is_ipv6)
{
	return f->data + ETH_BYTES + (is_ipv6 ? IPV6_SKIP : 0);
}

static u16 template_ethertype(const struct rx_frame *f)
{
	__be16 type;

	memcpy(&type, f->data + ETH_BYTES - sizeof(type), sizeof(type));
	return be16toh(type);
}

bool header_in_peek(const struct rx_frame *f, u32 *qpn, u8 *opcode)
{
	const struct bth *bth;
	bool is_ipv6;

	if (unlikely(f->len < ETH_BYTES + IPV4_BYTES + UDP_BYTES + sizeof(*bth)))
		return false;
	is_ipv6 = template_ethertype(f) != ETH_IPV4;
	if (is_ipv6 && (template_ethertype(f) != ETH_IPV6 ||
			f->len < ETH_BYTES + IPV6_BYTES + UDP_BYTES + sizeof(*bth)))
		return false;
	bth = (const struct bth *)(f->data + ETH_BYTES + (is_ipv6 ? IPV6_BYTES : IPV4_BYTES) +
				   UDP_BYTES);
	*qpn = be32toh(bth->ecn_qpn) & ROCE_QPN_MASK;
	*opcode = bth->opcode;
	return true;
}

/*
 * Compares kept and got with the mask applied. is_ipv6 is a compile-time constant, so the loop is
 * unrolled and the mask is in the instructions.
 */
static inline __attribute__((always_inline)) bool same(const u8 *kept, const u8 *got, bool is_ipv6)
{
	const u32 len = template_common_bytes(is_ipv6);
	u64 a, b, m, differ = 0;

#pragma GCC unroll 8
	for (u32 at = 0; at < len; at += sizeof(a)) {
		/* the last words overlap */
		u32 i = at + sizeof(a) <= len ? at : len - (u32)sizeof(a);

		memcpy(&a, kept + i, sizeof(a));
		memcpy(&b, got + i, sizeof(b));
		memcpy(&m, masks[is_ipv6] + i, sizeof(m));
		differ |= a ^ (b | m);
	}
	return !differ;
}

const struct bth *header_in_match(const struct header_in *h, const struct rx_frame *f)
{
	bool is_ipv6 = template_ethertype(f) == ETH_IPV6;
	const u8 *ip = f->data + ETH_BYTES;

	if (!h->frame_len || f->len < h->frame_len || is_ipv6 != h->is_ipv6)
		return NULL;
	if (is_ipv6 ? ip[0] >> 4 != 6 || !same(h->bytes, ip + IPV6_SKIP, true) :
		      !same(h->bytes, ip, false))
		return NULL;
	return (const struct bth *)(ip + (is_ipv6 ? IPV6_BYTES : IPV4_BYTES) + UDP_BYTES);
}

void header_in_decode(const struct header_in *h, const struct rx_frame *f, const struct bth *bth,
		      struct packet *p)
{
	const u8 *ip = f->data + ETH_BYTES;

	p->is_ipv6 = h->is_ipv6;
	p->tos = h->is_ipv6 ? (u8)(ip[0] << 4 | ip[1] >> 4) : ip[1];
	p->hop_limit = h->is_ipv6 ? ip[7] : ip[8];
	p->has_vlan = false;
	p->vlan_tci = 0;
	p->ip = ip;
	p->end = f->data + h->frame_len;
	p->frag = NULL;
	p->frag_len = 0;
	p->payload = packet_get_transport(bth, p);
	p->payload_len = h->payload_len;
}

u32 header_in_difference(const struct header_in *h, const struct icrc_table *t,
			 const struct packet *p)
{
	const u8 *from = p->ip + icrc_start_bytes(p->is_ipv6) - (sizeof(struct bth) - BTH_COMMON);
	const u8 *end = p->end - ROCE_ICRC_BYTES;

	return icrc_difference(icrc_words(t, h->icrc, from, (size_t)(end - from)), end);
}

void header_in_learn(struct header_in *h, const struct rx_frame *f, const struct packet *p)
{
	u16 candidate = (u16)(p->opcode << 11 ^ p->payload_len);
	const u8 *common = template_common(f, p->is_ipv6);

	if (h->candidate != candidate) {
		h->candidate = candidate;
		return;
	}
	/* as header_in_peek() expects: no tag, no second buffer */
	if (p->ip != f->data + ETH_BYTES || p->frag_len)
		return;
	for (u32 i = 0; i < template_common_bytes(p->is_ipv6); i++)
		h->bytes[i] = common[i] | masks[p->is_ipv6][i];
	h->icrc = icrc_common(p->ip, p->is_ipv6);
	h->is_ipv6 = p->is_ipv6;
	h->payload_len = (u16)p->payload_len;
	h->frame_len = (u16)(p->end - f->data);
}
