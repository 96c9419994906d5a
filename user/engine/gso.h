/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UDP segmentation offload (GSO): consecutive RoCEv2 packets from one QP to another are sent as one
 * super-packet, a UDP datagram too long for any link. The kernel, the NIC or the receiver splits
 * it. This file decides which packets may share one, and writes its headers.
 *
 * The splitter copies the super-packet's headers to each segment, with the segment's own lengths,
 * and increments the IPv4 identification by 1 from segment to segment. The ICRC covers the
 * identification, so each packet gets its final identification beforehand: it is a valid packet
 * before and after the split, also when sent alone.
 *
 * The first identification is the length of a segment, from which a receiver of the whole
 * super-packet computes where to split. A UDP socket sends 0 as the first identification: the first
 * BTH then has a code for the length (roce_segment_of_code).
 */
#ifndef ENGINE_GSO_H
#define ENGINE_GSO_H

#include "icrc.h"
#include "packet.h"
#include "types.h"

/* Ethernet, IPv4 without options, UDP: the splitter treats the rest as payload */
#define GSO_HEADER_BYTES 42u
#define GSO_UDP_AT	 34u	/* offset of the UDP header */
#define GSO_UDP_CHECKSUM_AT 40u
#define GSO_SEGMENTS_MAX 64u	/* UDP_MAX_SEGMENTS of the older kernels */
/*
 * super-packet with its Ethernet header: from 64 KiB on the kernel splits it before the interface
 * could take it
 */
#define GSO_FRAME_MAX	 65535u

struct gso_frame {
	u8 *bytes;
	u32 len;
};

/* Returns the opcode. The frame is at least as long as a RoCEv2 packet over untagged IPv4. */
static inline u8 gso_opcode(const struct gso_frame *f)
{
	return f->bytes[GSO_HEADER_BYTES + offsetof(struct bth, opcode)];
}

/*
 * Effect of a changed identification on the ICRC, by packet length; each entry is computed when
 * first needed. Initialise to zeros.
 */
struct gso_ids {
	struct icrc_id of[(PACKET_FRAME_MAX - GSO_HEADER_BYTES) / 4 + 1];
};

/*
 * Returns whether two packets, from the BTH on, of 16 bytes or more, may be in one super-packet.
 * The receiver's XDP program checks only the first: all have the same transport (a CNP has a
 * different one), P_Key, QP number and, for UD, Q_Key.
 */
bool gso_is_alike(const u8 *a, const u8 *b);

/*
 * Moves requests ahead of the acknowledgement before them, since IBA does not order the two. A
 * shorter packet may only be the last of a super-packet, and a ping-pong sends only the answer and
 * the ACK of the request. Responses stay in order among themselves.
 */
void gso_order(struct gso_frame *frame, u32 n);

/*
 * Returns how many of n frames, from the first, may be sent as one super-packet; 1 if the second
 * cannot join the first. n is at least 1. The joined frames have equal headers and lengths, but the
 * last may be shorter. Only headers are read; frames may be anything.
 */
u32 gso_count(const struct gso_frame *frame, u32 n);

/*
 * Turns count frames, 2 at least, as gso_count() found them, into segments, and writes the
 * super-packet's header: CHECKSUM_PARTIAL, with the plain sum of the pseudo-header as UDP checksum.
 * Returns the length of a segment, in bytes of UDP payload.
 */
u32 gso_join(struct gso_ids *ids, const struct gso_frame *frame, u32 count,
	     u8 header[GSO_HEADER_BYTES]);

/*
 * Returns the code for the length in bytes of UDP payload, in 1..63; 0: no code means that length.
 */
u32 gso_segment_code(u32 len);

/*
 * The code in the first BTH of a super-packet: the reserved bits next to the QP number. A segment
 * is longer than `GSO_CODE_AT` bytes.
 */
#define GSO_CODE_AT   offsetof(struct bth, ecn_qpn)
#define GSO_CODE_MASK (BTH_RESERVED >> 24)

/* Returns the code in the BTH, or 0 if it has none. */
static inline u32 gso_get_code(const u8 *bth)
{
	return bth[GSO_CODE_AT] & GSO_CODE_MASK;
}

/* Writes the code, or 0, over a code that the BTH may have. */
static inline void gso_put_code(u8 *bth, u32 code)
{
	bth[GSO_CODE_AT] = (u8)((bth[GSO_CODE_AT] & ~GSO_CODE_MASK) | code);
}

/*
 * Splitting received UDP super-packets. A packet sent with UDP segmentation offload arrives whole
 * if nothing on the path had to split it: on veth, at an interface without native XDP. XDP marks
 * such packets (XROCE_RX_GSO).
 */

/*
 * Buffers of 64 KiB with headers, in AF_XDP chunks of 4096 bytes less 256 of headroom; one more in
 * case the first is not full.
 */
#define SEGMENTS_PARTS_MAX 19

/* A buffer of the packet. room: writable bytes before data; if 0, data is read-only too. */
struct segment_part {
	u8 *data;
	u32 len;
	u32 room;
};

/* The longest header before the BTH: Ethernet, two tags, IPv4, UDP. */
#define SEGMENT_HEADER_MAX 50u

struct segments {
	struct segment_part part[SEGMENTS_PARTS_MAX];
	u32 parts;
	/* the fields below are private to gso.c */
	u8 header[SEGMENT_HEADER_MAX];
	u32 header_len, l3;
	u32 sum;	/* of the IP header without its length and checksum */
	u32 size;	/* of a segment: UDP payload */
	u32 first_id;	/* identification of the first segment when its ICRC was computed */
	u32 left;	/* UDP payload not split yet */
	u32 count;	/* segments so far */
	u32 at, offset;	/* where the next segment begins: part and byte in it */
	struct icrc_id id[4]; /* for the most recent sizes */
	/* a segment that is not contiguous enough to use in place, or is read-only */
	u8 copy[PACKET_FRAME_MAX];
};

/*
 * Begins with the parts that the caller has filled in. l3 is the offset of the IP header according
 * to XDP, which is verified. Returns false if this is not a super-packet.
 */
bool segments_begin(struct segments *s, u32 l3);
/* Returns the number of packets not split yet. */
static inline u32 segments_left(const struct segments *s)
{
	return (s->left + s->size - 1) / s->size;
}
/*
 * Returns the next packet as a frame like one sent without GSO, with its identification 0. If
 * possible it is built in place: its header overwrites the end of the previous frame, which must no
 * longer be in use. The last packet may be too short to be valid. False at the end.
 */
bool segments_next(struct segments *s, struct rx_frame *frame);

/*
 * 16-bit header fields in place, and Internet checksum arithmetic (RFC 1071), for editing headers.
 */

static inline u32 get16(const u8 *at)
{
	return (u32)at[0] << 8 | at[1];
}

static inline void put16(u8 *at, u32 value)
{
	at[0] = (u8)(value >> 8);
	at[1] = (u8)value;
}

/* Sums an even number of bytes, up to 64 Ki. */
static inline u32 sum16(const u8 *at, u32 bytes)
{
	u32 sum = 0;

	for (u32 i = 0; i < bytes; i += 2)
		sum += get16(at + i);
	return sum;
}

/* Folds a sum of up to 64 Ki words to 16 bits, not complemented. */
static inline u32 fold16(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

#endif
