/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets of one QP look alike: from one to the next of the same opcode and length only AckReq and the PSN change before the extension headers. So
 * the headers up to there, and the ICRC over them, are kept: of the last packet that was built, to be copied, and of the last one that was checked,
 * to be compared with. A frame that compares equal needs no parsing and no look at its addresses, as its like has passed both.
 *
 * Both are caches: what is not in them is built by packet_put_headers() and parsed by packet_parse(), with the same result to the byte.
 */
#ifndef TRANSPORT_TEMPLATE_H
#define TRANSPORT_TEMPLATE_H

#include "icrc.h"
#include "packet.h"

/* Ethernet with a tag, IPv6, UDP, BTH without its last four bytes: 74. Without tag or over IPv4 it is at most 54, so that all is in one cache line. */
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
	const u8 *from;	/* what the ICRC does not cover yet starts here, before the payload or at it */
	icrc_t icrc;
};

/* Write the frame's headers for p, as packet_put_headers() does, and start *u; p may not be a CNP or marked for congestion. */
void header_out(struct header_out *h, const struct icrc_table *t, const struct path *path, const struct packet *p, u8 *frame, struct unsealed *u);
/* Pad and ICRC behind payload_len bytes of payload, as packet_seal(); returns the frame's length. */
u32 header_out_seal(const struct unsealed *u, const struct icrc_table *t, u32 payload_len);

/*
 * The headers that were checked last, from the IP header through the BTH's first eight bytes, in which what the ICRC takes as ones are ones. Of an
 * IPv6 header the first four bytes are left out: of them the version alone would count.
 */
struct header_in {
	u8 bytes[52];
	icrc_t icrc;
	u16 frame_len;	   /* 0 = none */
	u16 payload_len;
	u16 candidate;	   /* a hash of the last one that did not match: what comes twice is worth keeping */
	bool is_ipv6;
};

/* The destination QPN of a frame that looks like untagged RoCEv2, where it would be; false if it does not. Nothing is checked but the length. */
bool header_in_peek(const struct rx_frame *f, u32 *qpn, u8 *opcode);

/*
 * Does the frame differ from h only where packets of one kind do? Then *p is decoded, but for src, dst, ip_id and udp_sport. The frame must have
 * passed header_in_peek().
 */
bool header_in_match(const struct header_in *h, const struct rx_frame *f, struct packet *p);
/* The ICRC of a packet that matched. */
bool header_in_icrc_ok(const struct header_in *h, const struct icrc_table *t, const struct packet *p);
/* A packet that was parsed and whose addresses, P_Key and ICRC are right: its like may come again. */
void header_in_learn(struct header_in *h, const struct rx_frame *f, const struct packet *p);

#endif
