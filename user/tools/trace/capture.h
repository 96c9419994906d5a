/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files that `xroce capture` writes. */
#ifndef TRACE_CAPTURE_H
#define TRACE_CAPTURE_H

#include "pcapng.h"
#include "tracer.h"

struct capture_file {
	const char *path;	/* "-": standard output */
	u64 max_bytes;		/* limit of a file; 0: none */
	u32 max_files;		/* number of files before the first is overwritten; 0: no limit */
	u32 nth;		/* index of the current file, from 0 */
	struct pcapng out;
	/* interfaces of the current file */
	struct captured_iface {
		char name[IF_NAMESIZE];
		u64 packets;
	} * iface;
	u32 ifaces, room;
	u32 snaplen;
	u64 flushed_bytes;	/* bytes of whole blocks flushed to the current file */
	u64 lost_told;		/* lost records already reported with packets */
	u64 lost_before;	/* lost records reported with earlier files */
	char opened[4096];	/* path of the current file */
};

/* Opens the first file. Returns 0 or -errno. */
int capture_file_open(struct capture_file *f);
/*
 * Writes a packet of interface iface. lost: total of lost records so far. Begins the next file
 * first if this one is full. Returns 0 or -errno.
 */
int capture_file_put(struct capture_file *f, const char *iface, struct pcapng_packet *packet,
		     u64 lost);
/* Flushes whole blocks, so that readers of the file see them. */
int capture_file_flush(struct capture_file *f);
/*
 * Writes the statistics and closes the file. lost: total of lost records; the file reports the part
 * since it began. After a write error the file is cut to the last successful capture_file_flush().
 * Returns 0 or -errno.
 */
int capture_file_close(struct capture_file *f, u64 lost);

#endif
