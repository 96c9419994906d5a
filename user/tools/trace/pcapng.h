/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes pcapng files (draft-ietf-opsawg-pcapng): a section, interfaces, packets with comments and
 * directions, statistics. In host byte order, as the format allows. libpcap reads such files but
 * writes none.
 */
#ifndef TRACE_PCAPNG_H
#define TRACE_PCAPNG_H

#include <stdio.h>

#include "../../engine/types.h"

#define PCAPNG_COMMENT_MAX 1024 /* bytes of a comment; longer ones are cut */

struct pcapng {
	FILE *out;
	u64 bytes;	/* written to the current section */
	u32 interfaces;
	int err;	/* -errno of the first failed write, after which nothing is written */
};

enum pcapng_direction { PCAPNG_UNKNOWN, PCAPNG_INBOUND, PCAPNG_OUTBOUND };

struct pcapng_packet {
	u32 interface;	/* number in the order of pcapng_interface() calls, from 0 */
	u64 time_ns;	/* CLOCK_REALTIME */
	const u8 *data;
	u32 captured;	/* bytes of data */
	u32 len;	/* bytes of the packet on the wire */
	enum pcapng_direction direction;
	u64 lost;	/* packets lost before this one, since the previous one */
	const char *comment; /* UTF-8; NULL: none */
};

/*
 * Begins a section in out, which the caller keeps and closes. application: name of the writing
 * program. These functions return 0, or -errno of this or an earlier write.
 */
int pcapng_begin(struct pcapng *p, FILE *out, const char *application);
/* Adds an interface: Ethernet, times in ns, at most snaplen bytes of each packet. */
int pcapng_interface(struct pcapng *p, const char *name, u32 snaplen);
int pcapng_packet(struct pcapng *p, const struct pcapng_packet *packet);
/* Adds the final counters of an interface. */
int pcapng_statistics(struct pcapng *p, u32 interface, u64 time_ns, u64 received, u64 lost);

#endif
