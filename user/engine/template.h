/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets of one QP look alike: from one to the next of the same opcode and length only AckReq and
 * the PSN change before the extension headers. So the headers up to there, and the ICRC over them,
 * are kept: of the last packet that was built, to be copied, and of the last one that was checked,
 * to be compared with. A frame that compares equal needs no parsing and no look at its addresses,
 * as its like has passed both.
 *
 * Both are caches: what is not in them is built by packet_put_headers() and parsed by
 * packet_parse(), with the same result to the byte.
 */
#ifndef ENGINE_TEMPLATE_H
#define ENGINE_TEMPLATE_H

#include "icrc.h"
#include "packet.h"

/*
 * Ethernet with a tag, IPv6, UDP, BTH without its last four bytes: 74. Without tag or over IPv4 it
 * is at most 54, so that all is in one cache line.
 */
struct header_out {
	u32 key;	/* of the packet it was made for; 0 = none */
	icrc_t icrc;
	u8 len;		/* of bytes */
	u8 bytes[79];	/* copied by 16: room behind the longest */
};

/* A packet that is being built: headers are written, payload is to come. */
struct unsealed {
	u8 *frame;
	u8 *payload;
	/* what the ICRC does not cover yet starts here, before the payload or at it */
	const u8 *from;
	icrc_t icrc;
};

/*
 * Of a packet: never 0. What is constant for a QP is not in it: qp_modify(), which changes that,
 * clears the key.
 */
static inline u32 header_out_key(u8 opcode, bool solicited, bool migreq, u32 payload_len)
{
	return 1u << 31 | (u32)solicited << 30 | (u32)migreq << 29 | (u32)opcode << 16 |
	       payload_len;
}
/* Make h for packets like p. */
void header_out_remember(struct header_out *h, const struct path *path, const struct packet *p);
/*
 * Write what is kept, and the BTH's last word behind it. Returns where the extension headers start.
 */
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
 * Write the frame's headers for p, as packet_put_headers() does, and start *u; p may not be a CNP
 * or marked for congestion.
 */
void header_out(struct header_out *h, const struct icrc_table *t, const struct path *path,
		const struct packet *p, u8 *frame, struct unsealed *u);
/*
 * Pad and ICRC behind payload_len bytes of payload, as packet_seal(); returns the frame's length.
 */
u32 header_out_seal(const struct unsealed *u, const struct icrc_table *t, u32 payload_len);
/*
 * A whole packet like that which h was made for, with an AETH and nothing behind it: an ACK or NAK.
 * Returns the frame's length.
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
 * The headers that were checked last, from the IP header through the BTH's first eight bytes, in
 * which what the ICRC takes as ones are ones. Of an IPv6 header the first four bytes are left out:
 * of them the version alone would count.
 */
struct header_in {
	u8 bytes[52];
	icrc_t icrc;
	u16 frame_len;	   /* 0 = none */
	u16 payload_len;
	/* a hash of the last one that did not match: what comes twice is worth keeping */
	u16 candidate;
	bool is_ipv6;
};

/*
 * The destination QPN of a frame that looks like untagged RoCEv2, where it would be; false if it
 * does not. Nothing is checked but the length.
 */
bool header_in_peek(const struct rx_frame *f, u32 *qpn, u8 *opcode);

/*
 * Does the frame, which has passed header_in_peek(), differ from h only where packets of one kind
 * do? Then its BTH, else NULL.
 */
const struct bth *header_in_match(const struct header_in *h, const struct rx_frame *f);
/* Of one that does: decode it, but for src, dst, ip_id and udp_sport. */
void header_in_decode(const struct header_in *h, const struct rx_frame *f, const struct bth *bth,
		      struct packet *p);
/* The ICRC of a packet that was decoded so. */
bool header_in_icrc_ok(const struct header_in *h, const struct icrc_table *t,
		       const struct packet *p);
/* The ICRC of an ACK or NAK, which needs no more of decoding than *aeth. */
static inline bool header_in_ack_ok(const struct header_in *h, const struct icrc_table *t,
				    const struct bth *bth, u32 *aeth)
{
	__be32 word;

	memcpy(&word, bth + 1, sizeof(word));
	*aeth = be32toh(word);
	return icrc_equal(icrc_two_words(t, h->icrc, bth->ack_psn, word),
			  (const u8 *)(bth + 1) + sizeof(word));
}
/*
 * A packet that was parsed and whose addresses, P_Key and ICRC are right: its like may come again.
 */
void header_in_learn(struct header_in *h, const struct rx_frame *f, const struct packet *p);

#endif
