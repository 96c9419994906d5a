/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "gso.h"

#include "ip_bytes.h"

/* Where the fields are that differ from segment to segment, and those that a frame is told by. */
#define ETHERTYPE_AT	 12u
#define IP_AT		 14u
#define IP_LEN_AT	 16u
#define IP_ID_AT	 18u
#define IP_FRAGMENT_AT	 20u
#define IP_PROTOCOL_AT	 23u
#define IP_CHECKSUM_AT	 24u
#define IP_ADDRESSES_AT	 26u
#define UDP_LEN_AT	 38u

#define ETHERTYPE_IPV4	 0x0800u
#define VERSION_IHL	 0x45u	/* no options */
#define MAY_BE_FRAGMENT	 0x3fffu /* more fragments, offset */
#define PROTOCOL_UDP	 17u

/* ---- which frames ---- */

/* It is what its lengths say, and RoCEv2 pads to words. */
static bool gso_lengths_fit(const struct gso_frame *f)
{
	return get16(f->bytes + IP_LEN_AT) == f->len - IP_AT &&
	       get16(f->bytes + UDP_LEN_AT) == f->len - GSO_UDP_AT &&
	       (f->len - GSO_HEADER_BYTES) % 4 == 0;
}

static bool gso_may_lead(const struct gso_frame *f)
{
	const u8 *b = f->bytes;

	/* what is to a multicast group, one of several engines may have to pass on */
	return f->len >= GSO_HEADER_BYTES + sizeof(struct bth) + ROCE_ICRC_BYTES && !(b[0] & 1) &&
	       f->len <= PACKET_FRAME_MAX && get16(b + ETHERTYPE_AT) == ETHERTYPE_IPV4 &&
	       b[IP_AT] == VERSION_IHL && !(get16(b + IP_FRAGMENT_AT) & MAY_BE_FRAGMENT) &&
	       b[IP_PROTOCOL_AT] == PROTOCOL_UDP && gso_lengths_fit(f);
}

/* MADs to QP 1 may be for several processes of the receiver's: each is a frame of its own. */
static bool gso_is_for_cm(const u8 *bth)
{
	return !bth[5] && get16(bth + 6) == XROCE_CM_QPN;
}

/*
 * The receiver's XDP program checks the first packet of a super-packet for all: they have one
 * transport (a CNP has its own), P_Key, QP number and, of UD, Q_Key.
 */
static bool gso_is_for_same_qp(const struct gso_frame *a, const struct gso_frame *b)
{
	/* of the BTH: see wire.h */
	static const u8 alike[8] = { 0xe0, 0, 0xff, 0xff, 0, 0xff, 0xff, 0xff };
	const u8 *x = a->bytes + GSO_HEADER_BYTES, *y = b->bytes + GSO_HEADER_BYTES;
	u64 of_a, of_b, mask;

	memcpy(&of_a, x, sizeof(of_a));
	memcpy(&of_b, y, sizeof(of_b));
	memcpy(&mask, alike, sizeof(mask));
	if ((of_a ^ of_b) & mask)
		return false;
	/* a Q_Key is what comes first behind the BTH */
	return OPCODE_TRANSPORT(gso_opcode(a)) != XROCE_UD ||
	       (memcmp(x + sizeof(struct bth), y + sizeof(struct bth), sizeof(__be32)) == 0 &&
		!gso_is_for_cm(x));
}

/*
 * Behind a frame that may lead, and no longer than it: all of the headers is equal but lengths,
 * identification and the IPv4 checksum over them; and it is for the same QP.
 */
static bool gso_may_follow(const struct gso_frame *lead, const struct gso_frame *f)
{
	const u8 *a = lead->bytes, *b = f->bytes;

	return f->len >= GSO_HEADER_BYTES + sizeof(struct bth) + ROCE_ICRC_BYTES &&
	       f->len <= lead->len && memcmp(a, b, IP_LEN_AT) == 0 &&
	       memcmp(a + IP_FRAGMENT_AT, b + IP_FRAGMENT_AT, IP_CHECKSUM_AT - IP_FRAGMENT_AT) ==
		       0 &&
	       memcmp(a + IP_ADDRESSES_AT, b + IP_ADDRESSES_AT, UDP_LEN_AT - IP_ADDRESSES_AT) ==
		       0 &&
	       memcmp(a + GSO_UDP_CHECKSUM_AT, b + GSO_UDP_CHECKSUM_AT,
		      GSO_HEADER_BYTES - GSO_UDP_CHECKSUM_AT) == 0 &&
	       gso_lengths_fit(f) && gso_is_for_same_qp(lead, f);
}

void gso_order(struct gso_frame *frame, u32 n)
{
	for (u32 i = 0; i + 1 < n; i++) {
		const struct gso_frame ack = frame[i], next = frame[i + 1];

		/* most frames are none, or not short enough */
		if (ack.len >= next.len || !gso_may_lead(&ack) ||
		    (gso_opcode(&ack) & 0x1f) != OP5_ACKNOWLEDGE || !gso_may_lead(&next) ||
		    !(opcode_flags(gso_opcode(&next)) & OP_REQUEST) || !gso_may_follow(&next, &ack))
			continue;
		frame[i] = next;
		frame[i + 1] = ack;
	}
}

u32 gso_count(const struct gso_frame *frame, u32 n)
{
	u32 bytes = frame->len, count = 1;

	if (n < 2 || !gso_may_lead(frame))
		return 1;
	n = min_u32(n, GSO_SEGMENTS_MAX);
	while (count < n && gso_may_follow(frame, &frame[count])) {
		bytes += frame[count].len - GSO_HEADER_BYTES;
		if (bytes > GSO_FRAME_MAX)
			break;
		if (frame[count++].len < frame->len)
			break;
	}
	return count;
}

/* ---- the super-packet ---- */

/* Another identification: RFC 1624 for the IPv4 checksum, and what it does to the ICRC. */
static void gso_identify(struct gso_ids *ids, const struct gso_frame *f, u32 id)
{
	u8 *stored = f->bytes + f->len - ROCE_ICRC_BYTES;
	struct icrc_id *c = &ids->of[(f->len - GSO_HEADER_BYTES) / 4];
	u32 was = get16(f->bytes + IP_ID_AT);

	if (unlikely(!c->tail))
		icrc_id_init(c, f->len - ROCE_ICRC_BYTES - IP_FRAGMENT_AT);
	icrc_flip(stored, icrc_id_change(c, (u16)(was ^ id)));
	put16(f->bytes + IP_CHECKSUM_AT,
	      ~fold16((~get16(f->bytes + IP_CHECKSUM_AT) & 0xffff) + (~was & 0xffff) + id));
	put16(f->bytes + IP_ID_AT, id);
}

/* From the first segment's; len: of UDP, with its header. */
static void gso_put_header(u8 header[GSO_HEADER_BYTES], const u8 *first, u32 len)
{
	memcpy(header, first, GSO_HEADER_BYTES);
	put16(header + IP_LEN_AT, GSO_UDP_AT - IP_AT + len);
	put16(header + IP_CHECKSUM_AT, 0);
	put16(header + IP_CHECKSUM_AT, ~fold16(sum16(header + IP_AT, GSO_UDP_AT - IP_AT)));
	put16(header + UDP_LEN_AT, len);
	put16(header + GSO_UDP_CHECKSUM_AT,
	      fold16(sum16(header + IP_ADDRESSES_AT, GSO_UDP_AT - IP_ADDRESSES_AT) + PROTOCOL_UDP +
		     len));
}

u32 gso_join(struct gso_ids *ids, const struct gso_frame *frame, u32 count,
	     u8 header[GSO_HEADER_BYTES])
{
	const u32 segment = frame->len - GSO_HEADER_BYTES;
	u32 payload = 0;

	for (u32 i = 0; i < count; i++) {
		gso_identify(ids, &frame[i], segment + i);
		payload += frame[i].len - GSO_HEADER_BYTES;
	}
	gso_put_header(header, frame->bytes, GSO_HEADER_BYTES - GSO_UDP_AT + payload);
	return segment;
}
