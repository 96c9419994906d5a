/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The capture of a lab: all frames as they came to the cable, in a pcapng file. */
#ifndef LAB_CAPTURE_H
#define LAB_CAPTURE_H

#include "../trace/pcapng.h"
#include "lab_wire.h"

struct lab_capture {
	struct pcapng out; /* out.out NULL: there is no capture */
};

/* Begins a file for frames of `hosts` hosts. fd: of the file, which the capture closes; -1: none.
 */
void lab_capture_begin(struct lab_capture *c, int fd, u32 hosts);
/*
 * Adds a frame from one host to another, by their numbers from 1. fate: what the rules decided, for
 * the comment; NULL: it is no RoCEv2 packet.
 */
void lab_capture_frame(struct lab_capture *c, const struct lab_wire *wire, u32 from, u32 to,
		       const u8 *data, u32 len, const struct lab_fate *fate);
/* Closes the file. Returns 0, or -errno of the first failed write. */
int lab_capture_end(struct lab_capture *c);

#endif
