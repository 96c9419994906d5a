/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a shard receives from, sends to and counts in. attach/ makes it, with privileges; using it
 * needs none: all of it is descriptors and mappings.
 */
#ifndef RUN_SHARD_IO_H
#define RUN_SHARD_IO_H

#include "../io/tx.h"
#include "../io/umem.h"
#include "../io/xsk.h"

/* Receive frames for packets of other processes of the interface. */
#define SHARD_LOCAL_FRAMES 1024u

struct shard_io {
	struct umem umem;
	struct xsk_set xsks;
	struct tx *tx;
	/*
	 * for frames to QPs of other processes of the interface; NULL: there are none, or tx sends
	 * those too
	 */
	struct tx *local_tx;
	int ring_fd;	/* the ring buffer by which XDP wakes the shard's service thread */
	struct xroce_engine_stats *stats;
	struct xroce_drops *drops;
};

#endif
