/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The input, output and counters of a shard: descriptors and mappings. client/ makes them with
 * privileges; using them needs none.
 */
#ifndef RUN_SHARD_IO_H
#define RUN_SHARD_IO_H

#include "../io/tx.h"
#include "../io/umem.h"
#include "../io/xsk.h"

struct shard_io {
	struct umem umem;
	struct xsk_set xsks;
	struct tx *tx;
	/* for frames to QPs of other processes on the interface; NULL: none, or tx sends them */
	struct tx *local_tx;
	int ring_fd;	   /* ring buffer by which XDP wakes the shard's worker */
	int ring_event_fd; /* a socket that becomes readable with it; -1: ring_fd itself does */
	struct xroce_engine_stats *stats;
	struct xroce_drops *drops;
};

#endif
