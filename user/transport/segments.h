/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cutting received UDP super-packets: what leaves with UDP segmentation offload (gso.h) arrives in
 * one piece where nothing on the way had to cut, on veth towards an interface without native XDP.
 * XDP marks such packets (XROCE_RX_GSO).
 */
#ifndef TRANSPORT_SEGMENTS_H
#define TRANSPORT_SEGMENTS_H

#include "icrc.h"
#include "packet.h"

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
	/* from here on segments.c's */
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

#endif
