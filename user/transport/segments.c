/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A super-packet is one header and the UDP payloads of its packets in a row, in several buffers.
 * Each packet gets a header of its own in front, over what was the end of the one before; nothing
 * else moves, but for the few bytes of a packet whose beginning lies at the end of a buffer. Where
 * the buffer may not be written, packets are copied, one at a time.
 *
 * The lengths are the sender's word, and checked here; what is in the packets is checked by the
 * engine, the ICRC first of all.
 */
#include "segments.h"

#include "ip_bytes.h"

#define IPV4_BYTES 20u
#define UDP_BYTES  8u
#define IPV4_PLAIN 0x45 /* version 4, no options */
#define IP_LENGTH  2    /* offsets in the IP header */
#define IP_ID	   4
#define IP_CHECKSUM 10
#define UDP_LENGTH 4	/* in the UDP header */
/* The ICRC covers it from behind the identification to itself. */
#define ID_TAIL(size) (IPV4_BYTES - IP_ID - 2 + UDP_BYTES + (size) - ROCE_ICRC_BYTES)
#define SEGMENT_MIN   XROCE_SEGMENT_MIN
#define SEGMENT_MAX   XROCE_SEGMENT_MAX
/* All headers lie in the linear part of a frame. */
#define LINEAR_MIN    160u

_Static_assert(SEGMENT_MIN == sizeof(struct bth) + ROCE_ICRC_BYTES, "the smallest packet");
_Static_assert(SEGMENT_HEADER_MAX + SEGMENT_MAX <= PACKET_FRAME_MAX, "struct segments' copy");
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
	s->size = get16(ip + IP_ID);
	if (ip[0] != IPV4_PLAIN || ip_len > total - l3 || ip_len < IPV4_BYTES + UDP_BYTES ||
	    s->size < SEGMENT_MIN || s->size > SEGMENT_MAX)
		return false;
	s->left = ip_len - IPV4_BYTES - UDP_BYTES;
	if (s->left > XROCE_SEGMENTS_MAX * s->size)
		return false;
	s->count = s->at = 0;
	s->offset = s->header_len;
	/* what they have in common; length and checksum are each one's own */
	put16(s->header + l3 + IP_ID, 0);
	put16(s->header + l3 + IP_LENGTH, 0);
	put16(s->header + l3 + IP_CHECKSUM, 0);
	s->sum = sum16(ip, IPV4_BYTES);
	return true;
}

/*
 * The identification was size + count when the ICRC was made, and is 0 now. A table takes 32 passes
 * over as many bytes: none is made for the last packet, which may have any length, nor for the
 * first, which any host may have sent.
 */
static void segments_change_icrc(struct segments *s, u8 *icrc, u32 len)
{
	const u16 was = (u16)(s->size + s->count);
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

/* n bytes on, all of them in this part. */
static void segments_advance(struct segments *s, u32 n)
{
	s->offset += n;
	if (s->offset == s->part[s->at].len) {
		s->at++;
		s->offset = 0;
	}
}

/* A segment in a memory of its own, wherever it lies. */
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

/* The few bytes that are left in this part go in front of the next one, if there is room. */
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

/*
 * The segment where it lies, in one part or two. False: it does not lie so that a frame can be made
 * of it.
 */
static bool segments_in_place(struct segments *s, u32 len, struct rx_frame *frame)
{
	const struct segment_part *part = &s->part[s->at];
	const u32 first = min_u32(segments_part_left(s), len), rest = len - first;

	if (!part->room || s->offset + part->room < s->header_len)
		return false;
	/* the ICRC is in one piece, since it has to be changed */
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
	/*
	 * a UD receiver finds this header in its buffer, and ibv_init_ah_from_wc(3) looks whether
	 * it is one
	 */
	put16(header + s->l3 + IP_LENGTH, IPV4_BYTES + UDP_BYTES + len);
	put16(header + s->l3 + IP_CHECKSUM, ~fold16(s->sum + IPV4_BYTES + UDP_BYTES + len));
	put16(header + s->l3 + IPV4_BYTES + UDP_LENGTH, UDP_BYTES + len);
	if (len >= SEGMENT_MIN)
		segments_change_icrc(s, segments_icrc_of(frame), len);
	s->left -= len;
	s->count++;
	return true;
}
