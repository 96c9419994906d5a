/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UDP segmentation offload (GSO): RoCEv2 packets that follow each other from one QP to another
 * leave as one super-packet, one UDP datagram too long for any link, which the kernel, the NIC or
 * the receiver cuts into packets again. This file owns which packets may share one, and its
 * headers.
 *
 * The cutter gives each segment the headers of the whole with its own lengths, and counts the IPv4
 * identification up by 1 from segment to segment. The ICRC covers the identification, so each
 * packet is changed to have the one that it will be given: it is a right packet before and after,
 * alone as well.
 *
 * The first identification is the length of a segment, by which a receiver that is handed the whole
 * can tell where to cut.
 */
#ifndef ENGINE_GSO_H
#define ENGINE_GSO_H

#include "icrc.h"
#include "packet.h"
#include "types.h"

/* Ethernet, IPv4 without options, UDP: all else is payload to the cutter */
#define GSO_HEADER_BYTES 42u
#define GSO_UDP_AT	 34u	/* in these, as is */
#define GSO_UDP_CHECKSUM_AT 40u
#define GSO_SEGMENTS_MAX 64u	/* UDP_MAX_SEGMENTS of the older kernels */
/*
 * the whole with its Ethernet header: from 64 KiB on the kernel cuts it before the interface could
 * take it
 */
#define GSO_FRAME_MAX	 65535u

struct gso_frame {
	u8 *bytes;
	u32 len;
};

/* Of one that is as long as a RoCEv2 packet over untagged IPv4 at least. */
static inline u8 gso_opcode(const struct gso_frame *f)
{
	return f->bytes[GSO_HEADER_BYTES + offsetof(struct bth, opcode)];
}

/*
 * What a change of the identification does to the ICRC, by the length of the packet: each is made
 * when it is first needed. Starts as zeroes.
 */
struct gso_ids {
	struct icrc_id of[(PACKET_FRAME_MAX - GSO_HEADER_BYTES) / 4 + 1];
};

/*
 * Let requests pass the acknowledgement before them, for IBA gives the two no order: what is
 * shorter may only be the last of a super-packet, and in a ping-pong the answer and the
 * acknowledgement of what it answers are all that leaves. Responses keep their order among
 * themselves.
 */
void gso_order(struct gso_frame *frame, u32 n);

/*
 * How many of n frames, in order from the first, may leave as one super-packet; 1 if the first is
 * not followed by one that may join it. n is 1 at least. They have equal headers and lengths, but
 * that the last may be shorter. Looks at the headers only; frames may be anything.
 */
u32 gso_count(const struct gso_frame *frame, u32 n);

/*
 * Make segments of count frames, 2 at least, as gso_count() found them, and the headers of the
 * whole: a CHECKSUM_PARTIAL packet's, with the bare sum of the pseudo-header in the UDP checksum.
 * Returns the length of a segment, in bytes of UDP payload.
 */
u32 gso_join(struct gso_ids *ids, const struct gso_frame *frame, u32 count,
	     u8 header[GSO_HEADER_BYTES]);

/*
 * Cutting received UDP super-packets: what leaves with UDP segmentation offload (gso.h) arrives in
 * one piece where nothing on the way had to cut, on veth towards an interface without native XDP.
 * XDP marks such packets (XROCE_RX_GSO).
 */

/*
 * 64 KiB with headers, in AF_XDP's chunks of 4096 bytes less its headroom of 256; one more where
 * the first is not full.
 */
#define SEGMENTS_PARTS_MAX 19

/*
 * A buffer of the packet. room: bytes in front of data that may be written; where there are none,
 * data may not be written either.
 */
struct segment_part {
	u8 *data;
	u32 len;
	u32 room;
};

/* The longest header in front of the BTH: Ethernet, two tags, IPv4, UDP. */
#define SEGMENT_HEADER_MAX 50u

struct segments {
	struct segment_part part[SEGMENTS_PARTS_MAX];
	u32 parts;
	/* the fields below are private to gso.c */
	u8 header[SEGMENT_HEADER_MAX];
	u32 header_len, l3;
	u32 sum;	/* of the IP header, but for its length and checksum */
	u32 size;	/* of a segment: UDP payload */
	u32 left;	/* UDP payload still to be cut */
	u32 count;	/* segments so far */
	u32 at, offset;	/* where the next one begins: part and byte in it */
	struct icrc_id id[4]; /* for the sizes that were met last */
	/* of a segment that lies too awkwardly, or where nothing may be written */
	u8 copy[PACKET_FRAME_MAX];
};

/*
 * Begin with the parts that the caller has filled in, of which l3 is what XDP says of the IP
 * header's offset; nothing is believed. False if this is no such packet.
 */
bool segments_begin(struct segments *s, u32 l3);
/* Packets that have not been cut yet. */
static inline u32 segments_left(const struct segments *s)
{
	return (s->left + s->size - 1) / s->size;
}
/*
 * The next packet as a frame like those that were not sent in this way, down to the identification
 * of 0. It is put together where it lies, if it may be: the frame before it, whose end its header
 * overwrites, must be done with. The last one may be too short for any packet. False at the end.
 */
bool segments_next(struct segments *s, struct rx_frame *frame);

/*
 * Header fields of 16 bits where they lie, and the Internet checksum's arithmetic (RFC 1071), to
 * change headers in place.
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

/* Of an even number of bytes, up to 64 Ki of them. */
static inline u32 sum16(const u8 *at, u32 bytes)
{
	u32 sum = 0;

	for (u32 i = 0; i < bytes; i += 2)
		sum += get16(at + i);
	return sum;
}

/* 16 bits of a sum of up to 64 Ki words, not complemented. */
static inline u32 fold16(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

#endif
