/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "gso.h"

/* Offsets of the fields that differ from segment to segment or identify a frame. */
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

/* Returns whether the frame has the length that its headers state, padded to words as in RoCEv2. */
static bool gso_lengths_fit(const struct gso_frame *f)
{
	return get16(f->bytes + IP_LEN_AT) == f->len - IP_AT &&
	       get16(f->bytes + UDP_LEN_AT) == f->len - GSO_UDP_AT &&
	       (f->len - GSO_HEADER_BYTES) % 4 == 0;
}

static bool gso_may_lead(const struct gso_frame *f)
{
	const u8 *b = f->bytes;

	/* no multicast: one of several engines may have to pass such a packet on */
	return f->len >= GSO_HEADER_BYTES + sizeof(struct bth) + ROCE_ICRC_BYTES && !(b[0] & 1) &&
	       f->len <= PACKET_FRAME_MAX && get16(b + ETHERTYPE_AT) == ETHERTYPE_IPV4 &&
	       b[IP_AT] == VERSION_IHL && !(get16(b + IP_FRAGMENT_AT) & MAY_BE_FRAGMENT) &&
	       b[IP_PROTOCOL_AT] == PROTOCOL_UDP && gso_lengths_fit(f);
}

/* MADs to QP 1 may be for several processes of the receiver: each is sent alone. */
static bool gso_is_for_cm(const u8 *bth)
{
	return !bth[5] && get16(bth + 6) == XROCE_CM_QPN;
}

bool gso_is_alike(const u8 *a, const u8 *b)
{
	/* of the BTH: see wire.h */
	static const u8 alike[8] = { 0xe0, 0, 0xff, 0xff, 0, 0xff, 0xff, 0xff };
	u64 of_a, of_b, mask;

	memcpy(&of_a, a, sizeof(of_a));
	memcpy(&of_b, b, sizeof(of_b));
	memcpy(&mask, alike, sizeof(mask));
	/* the Q_Key directly follows the BTH */
	return !((of_a ^ of_b) & mask) &&
	       (OPCODE_TRANSPORT(a[0]) != XROCE_UD ||
		!memcmp(a + sizeof(struct bth), b + sizeof(struct bth), sizeof(__be32)));
}

static bool gso_is_for_same_qp(const struct gso_frame *a, const struct gso_frame *b)
{
	const u8 *x = a->bytes + GSO_HEADER_BYTES, *y = b->bytes + GSO_HEADER_BYTES;

	return gso_is_alike(x, y) &&
	       (OPCODE_TRANSPORT(gso_opcode(a)) != XROCE_UD || !gso_is_for_cm(x));
}

/*
 * Returns whether f may follow a frame that may lead. It is no longer and for the same QP; all
 * headers are equal but lengths, identification and the IPv4 checksum.
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

		/* most frames are not ACKs, or are not shorter */
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

/* Changes the identification, and with it the IPv4 checksum (RFC 1624) and the ICRC. */
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

/* Builds the header from the first segment's; len: UDP length with header. */
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

u32 gso_segment_code(u32 len)
{
	if (len >= 20 && len <= 188 && len % 4 == 0)
		return len / 4 + 16;
	for (u32 code = 1; code <= 20; code++)
		if (roce_segment_of_code[code] == len)
			return code;
	return 0;
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

/*
 * A super-packet is one header and the UDP payloads of its packets in a row, in several buffers.
 * Each packet gets its own header, written over the end of the previous one. Nothing else moves,
 * except the few bytes of a packet that begins at the end of a buffer. If a buffer is read-only,
 * packets are copied, one at a time.
 *
 * The lengths come from the sender and are checked here; the engine checks the packets themselves,
 * first the ICRC.
 */

#define IPV4_BYTES 20u
#define UDP_BYTES  8u
#define IPV4_PLAIN 0x45 /* version 4, no options */
#define IP_LENGTH  2    /* offsets in the IP header */
#define IP_ID	   4
#define IP_CHECKSUM 10
#define UDP_LENGTH 4	/* in the UDP header */
/* Bytes that the ICRC covers after the identification. */
#define ID_TAIL(size) (IPV4_BYTES - IP_ID - 2 + UDP_BYTES + (size) - ROCE_ICRC_BYTES)
#define SEGMENT_MIN   XROCE_SEGMENT_MIN
#define SEGMENT_MAX   XROCE_SEGMENT_MAX
/* Minimum of the linear part: all headers lie in it. */
#define LINEAR_MIN    160u

_Static_assert(SEGMENT_MIN == sizeof(struct bth) + ROCE_ICRC_BYTES, "the smallest packet");
_Static_assert(SEGMENT_HEADER_MAX + SEGMENT_MAX <= PACKET_FRAME_MAX, "struct segments' copy");
_Static_assert(SEGMENT_MAX + XROCE_SEGMENTS_MAX <= ICRC_LOW_IDS, "their identifications are low");
_Static_assert(ID_TAIL(SEGMENT_MAX) <= ICRC_ID_TAIL_MAX, "icrc_id_init()");

bool segments_begin(struct segments *s, u32 l3)
{
	u32 total = 0, ip_len;
	const u8 *ip;

	s->l3 = l3;
	s->header_len = l3 + IPV4_BYTES + UDP_BYTES;
	if (s->parts == 0 || s->header_len > sizeof(s->header) || s->part[0].len <= s->header_len)
		return false;
	memcpy(s->header, s->part[0].data, s->header_len);
	for (u32 i = 0; i < s->parts; i++) {
		if (s->part[i].len == 0)
			return false;
		total += s->part[i].len;
	}
	ip = s->header + l3;
	ip_len = get16(ip + IP_LENGTH);
	s->first_id = s->size = get16(ip + IP_ID);
	if (!s->first_id && s->part[0].len >= s->header_len + sizeof(struct bth))
		s->size = roce_segment_of_code[gso_get_code(s->part[0].data + s->header_len)];
	if (ip[0] != IPV4_PLAIN || ip_len > total - l3 || ip_len < IPV4_BYTES + UDP_BYTES ||
	    s->size < SEGMENT_MIN || s->size > SEGMENT_MAX)
		return false;
	s->left = ip_len - IPV4_BYTES - UDP_BYTES;
	if (s->left > XROCE_SEGMENTS_MAX * s->size)
		return false;
	s->count = s->at = 0;
	s->offset = s->header_len;
	/* common to all segments; length and checksum differ */
	put16(s->header + l3 + IP_ID, 0);
	put16(s->header + l3 + IP_LENGTH, 0);
	put16(s->header + l3 + IP_CHECKSUM, 0);
	s->sum = sum16(ip, IPV4_BYTES);
	return true;
}

/*
 * The identification was first_id + count when the ICRC was computed, and is now 0. A table costs
 * 32 passes over the segment's length. None is made for the last packet, whose length may vary, or
 * for the first, which any host may have sent.
 */
static void segments_change_icrc(struct segments *s, u8 *icrc, u32 len)
{
	const u16 was = (u16)(s->first_id + s->count);
	struct icrc_id *id = &s->id[len / 4 % ARRAY_SIZE(s->id)];

	if (s->count && len == s->size && id->tail != ID_TAIL(len))
		icrc_id_init(id, ID_TAIL(len));
	icrc_flip(icrc, id->tail == ID_TAIL(len) ? icrc_id_change(id, was)
						 : icrc_id_change_once(ID_TAIL(len), was));
}

static u32 segments_part_left(const struct segments *s)
{
	return s->part[s->at].len - s->offset;
}

/* Advances by n bytes, all in this part. */
static void segments_advance(struct segments *s, u32 n)
{
	s->offset += n;
	if (s->offset == s->part[s->at].len) {
		s->at++;
		s->offset = 0;
	}
}

/* Copies a segment to s->copy. */
static void segments_copy_out(struct segments *s, u32 len, struct rx_frame *frame)
{
	u8 *dst = s->copy + s->header_len;

	*frame = (struct rx_frame){ .data = s->copy, .len = s->header_len + len };
	while (len) {
		u32 n = min_u32(len, segments_part_left(s));

		memcpy(dst, s->part[s->at].data + s->offset, n);
		dst += n;
		len -= n;
		segments_advance(s, n);
	}
}

/* Moves the few remaining bytes of this part to the front of the next one, if there is room. */
static void segments_move_on(struct segments *s)
{
	struct segment_part *next = &s->part[s->at + 1];
	const u32 n = segments_part_left(s);

	if (next->room < n)
		return;
	next->data -= n;
	next->len += n;
	next->room -= n;
	memcpy(next->data, s->part[s->at].data + s->offset, n);
	s->at++;
	s->offset = 0;
}

/* Returns the segment in place, in one part or two; false if its location does not allow that. */
static bool segments_in_place(struct segments *s, u32 len, struct rx_frame *frame)
{
	const struct segment_part *part = &s->part[s->at];
	const u32 first = min_u32(segments_part_left(s), len), rest = len - first;

	if (!part->room || s->offset + part->room < s->header_len)
		return false;
	/* the ICRC must be contiguous, since it is changed */
	if (rest && (first < LINEAR_MIN || rest < ROCE_ICRC_BYTES || rest > part[1].len))
		return false;
	*frame = (struct rx_frame){ .data = part->data + s->offset - s->header_len,
				    .len = s->header_len + first };
	segments_advance(s, first);
	if (rest) {
		frame->frag = s->part[s->at].data;
		frame->frag_len = rest;
		segments_advance(s, rest);
	}
	return true;
}

static u8 *segments_icrc_of(const struct rx_frame *frame)
{
	const u8 *end = frame->frag_len ? frame->frag + frame->frag_len : frame->data + frame->len;

	return (u8 *)(uintptr_t)end - ROCE_ICRC_BYTES;
}

bool segments_next(struct segments *s, struct rx_frame *frame)
{
	const u32 len = min_u32(s->size, s->left);
	u8 *header;

	if (len == 0)
		return false;
	if (segments_part_left(s) < len && segments_part_left(s) < LINEAR_MIN)
		segments_move_on(s);
	if (!segments_in_place(s, len, frame))
		segments_copy_out(s, len, frame);
	header = (u8 *)(uintptr_t)frame->data;
	memcpy(header, s->header, s->header_len);
	/* a UD receiver gets this header in its buffer, and ibv_init_ah_from_wc(3) validates it */
	put16(header + s->l3 + IP_LENGTH, IPV4_BYTES + UDP_BYTES + len);
	put16(header + s->l3 + IP_CHECKSUM, ~fold16(s->sum + IPV4_BYTES + UDP_BYTES + len));
	put16(header + s->l3 + IPV4_BYTES + UDP_LENGTH, UDP_BYTES + len);
	if (len >= SEGMENT_MIN)
		segments_change_icrc(s, segments_icrc_of(frame), len);
	s->left -= len;
	s->count++;
	return true;
}
