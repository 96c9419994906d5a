/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes pcapng files (draft-ietf-opsawg-pcapng): a section, interfaces, packets with comments and
 * directions, statistics. In the byte order of this machine, as the format has it. libpcap reads
 * such files but writes none.
 */
#ifndef TRACE_PCAPNG_H
#define TRACE_PCAPNG_H

#include <stdio.h>

#include "../../engine/types.h"

#define PCAPNG_COMMENT_MAX 1024 /* bytes of a comment; what is behind is cut off */

struct pcapng {
	FILE *out;
	u64 bytes;	/* written to this file */
	u32 interfaces;
	int err;	/* of the first write that failed; nothing is written after it */
};

enum pcapng_direction { PCAPNG_UNKNOWN, PCAPNG_INBOUND, PCAPNG_OUTBOUND };

struct pcapng_packet {
	u32 interface;	/* as pcapng_interface() numbers them */
	u64 time_ns;	/* CLOCK_REALTIME */
	const u8 *data;
	u32 captured;	/* bytes of data, */
	u32 len;	/* of the packet's so many */
	enum pcapng_direction direction;
	u64 lost;	/* packets between this one and the one before */
	const char *comment; /* UTF-8; NULL: none */
};

/*
 * A new section in out, which stays the caller's; application is who writes it. All of these
 * functions return 0, or -errno of this or an earlier write.
 */
int pcapng_begin(struct pcapng *p, FILE *out, const char *application);
/* The next interface: Ethernet, times in ns, so many bytes of a packet at most. */
int pcapng_interface(struct pcapng *p, const char *name, u32 snaplen);
int pcapng_packet(struct pcapng *p, const struct pcapng_packet *packet);
/* What became of an interface's packets, at the end. */
int pcapng_statistics(struct pcapng *p, u32 interface, u64 time_ns, u64 received, u64 lost);

#endif
