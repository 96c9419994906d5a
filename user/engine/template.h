/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Header templates. Packets of one QP with the same opcode and length differ before the extension
 * headers only in AckReq and PSN. The headers up to there and the ICRC over them are kept twice: of
 * the last packet built, to be copied, and of the last one checked, to be compared with. A frame
 * that compares equal needs no parsing and no address check: an equal header has passed both.
 *
 * Both are caches: a miss is built by packet_put_headers() or parsed by packet_parse(), with the
 * same result to the byte.
 */
#ifndef ENGINE_TEMPLATE_H
#define ENGINE_TEMPLATE_H

#include "icrc.h"
#include "packet.h"

/*
 * Ethernet with a tag, IPv6, UDP, BTH without its last four bytes: 74. Without tag or over IPv4 at
 * most 54, so that the struct fits in one cache line.
 */
struct header_out {
	u32 key;	/* of the packet it was made from; 0 = none */
	icrc_t icrc;
	u8 len;		/* of bytes */
	u8 bytes[79];	/* copied in units of 16: room after the longest */
};

/* A packet under construction: headers are written, payload is not. */
struct unsealed {
	u8 *frame;
	u8 *payload;
	/* start of the bytes that the ICRC does not cover yet, before the payload or at it */
	const u8 *from;
	icrc_t icrc;
};

/*
 * Returns the key of a packet, never 0. Fields that are constant for a QP are not in it:
 * qp_modify() clears the key when it changes one.
 */
static inline u32 header_out_key(u8 opcode, bool solicited, bool migreq, u32 payload_len)
{
	return 1u << 31 | (u32)solicited << 30 | (u32)migreq << 29 | (u32)opcode << 16 |
	       payload_len;
}
/* Makes h for packets like p. */
void header_out_remember(struct header_out *h, const struct path *path, const struct packet *p);
/* Writes the kept headers and the BTH's last word. Returns where the extension headers start. */
static inline u8 *header_out_copy(const struct header_out *h, u8 *frame, __be32 word)
{
	u8 *pos = frame + h->len;

	memcpy(frame, h->bytes, 48);
	if (unlikely(h->len > 54))
		memcpy(frame + 48, h->bytes + 48, 31);
	else
		memcpy(frame + 48, h->bytes + 48, 6);
	memcpy(pos, &word, sizeof(word));
	return pos + sizeof(word);
}

/*
 * Writes the frame's headers for p, as packet_put_headers() does, and starts *u; p may not be a CNP
 * or carry congestion marks.
 */
void header_out(struct header_out *h, const struct icrc_table *t, const struct path *path,
		const struct packet *p, u8 *frame, struct unsealed *u);
/* Writes pad and ICRC after the payload, as packet_seal() does; returns the frame's length. */
u32 header_out_seal(const struct unsealed *u, const struct icrc_table *t, u32 payload_len);
/*
 * Builds a whole ACK or NAK: a packet like the one h was made for, with only an AETH. Returns the
 * frame's length.
 */
static inline u32 header_out_ack(const struct header_out *h, const struct icrc_table *t, u32 psn,
				 __be32 aeth, u8 *frame)
{
	__be32 word = htobe32(psn);
	u8 *pos = header_out_copy(h, frame, word);

	memcpy(pos, &aeth, sizeof(aeth));
	icrc_store(icrc_two_words(t, h->icrc, word, aeth), pos + sizeof(aeth));
	return (u32)(pos + sizeof(aeth) + ROCE_ICRC_BYTES - frame);
}

/*
 * The headers checked last, from the IP header through the BTH's first eight bytes, with the fields
 * that the ICRC masks set to ones. Of an IPv6 header the first four bytes are left out: only the
 * version would matter.
 */
struct header_in {
	u8 bytes[52];
	icrc_t icrc;
	u16 frame_len;	   /* 0 = none */
	u16 payload_len;
	/* hash of the last mismatch: a header that arrives twice is worth keeping */
	u16 candidate;
	bool is_ipv6;
};

/*
 * Reads the destination QPN and opcode of a frame that looks like untagged RoCEv2; false if it does
 * not. Only the length is checked.
 */
bool header_in_peek(const struct rx_frame *f, u32 *qpn, u8 *opcode);

/*
 * Returns the BTH of a frame, checked by header_in_peek(), that differs from h only in AckReq, PSN
 * and later bytes; else NULL.
 */
const struct bth *header_in_match(const struct header_in *h, const struct rx_frame *f);
/* Decodes a matching frame, except src, dst, ip_id and udp_sport. */
void header_in_decode(const struct header_in *h, const struct rx_frame *f, const struct bth *bth,
		      struct packet *p);
/* Returns packet_icrc_difference() of a packet decoded by header_in_decode(). */
u32 header_in_difference(const struct header_in *h, const struct icrc_table *t,
			 const struct packet *p);
/* The same for a matching ACK or NAK, of which only *aeth needs decoding. */
static inline u32 header_in_ack_difference(const struct header_in *h, const struct icrc_table *t,
					   const struct bth *bth, u32 *aeth)
{
	__be32 word;

	memcpy(&word, bth + 1, sizeof(word));
	*aeth = be32toh(word);
	return icrc_difference(icrc_two_words(t, h->icrc, bth->ack_psn, word),
			       (const u8 *)(bth + 1) + sizeof(word));
}
/* Records a parsed packet whose addresses, P_Key and ICRC are correct: similar ones may follow. */
void header_in_learn(struct header_in *h, const struct rx_frame *f, const struct packet *p);

#endif
