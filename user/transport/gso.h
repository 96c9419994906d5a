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
#ifndef TRANSPORT_GSO_H
#define TRANSPORT_GSO_H

#include "icrc.h"
#include "packet.h"

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

#endif
