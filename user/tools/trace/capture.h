/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What `xroce capture` writes, and where to. */
#ifndef TRACE_CAPTURE_H
#define TRACE_CAPTURE_H

#include "pcapng.h"
#include "tracers.h"

struct capture_file {
	const char *path;	/* "-": standard output */
	u64 max_bytes;		/* then the next file begins; 0: never */
	u32 max_files;		/* then the first is written over; 0: never */
	u32 nth;		/* file, from 0 */
	struct pcapng out;
	/* of this file */
	struct captured_iface {
		char name[IF_NAMESIZE];
		u64 packets;
	} * iface;
	u32 ifaces, room;
	u32 snaplen;
	u64 flushed_bytes;	/* of this file: whole blocks */
	u64 lost_told;		/* by packets, */
	u64 lost_before;	/* and by the statistics of the files before this one */
	char opened[4096];	/* the path of this one */
};

/* Opens the first. Returns 0 or -errno. */
int capture_file_open(struct capture_file *f);
/*
 * A packet that came by, or left by, that interface; lost: records that found no room so far. The
 * next file begins first if this one is full. Returns 0 or -errno.
 */
int capture_file_put(struct capture_file *f, const char *iface, struct pcapng_packet *packet,
		     u64 lost);
/* What was written is where others can read it. */
int capture_file_flush(struct capture_file *f);
/*
 * Ends it with what was lost since it was begun, of lost in all. A file that could not be written
 * ends with the last block of the last capture_file_flush() that could. Returns 0 or -errno.
 */
int capture_file_close(struct capture_file *f, u64 lost);

#endif
