/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames out of user memory and into ndo_xdp_xmit of an interface, without skbs: the transmit
 * program (bpf/xroce_tx.bpf.c), the TAP device that it is attached to, and the memory that it reads
 * frames from. Which way a frame goes is tx_policy.c's business. Under the shard's lock.
 *
 * What the interface has no room for is lost without a word.
 */
#ifndef IO_TX_REDIRECT_H
#define IO_TX_REDIRECT_H

#include <xroce/abi.h>

#include "../engine/types.h"

#define TX_TAP_BYTES 3456u /* the longest frame that a TAP hands to its XDP program in one page */

#define TX_PIECES_MAX 16u /* frames in one write */

struct xroce_tx_bpf;

struct tx_redirect {
	struct xroce_tx_bpf *bpf; /* while it is opened */
	int tap_fd, link_fd, program_fd;
	/*
	 * bytes in one write of several frames; the owner sets it: by the link MTU, and no more
	 * than TX_TAP_BYTES
	 */
	u32 write_max;
	struct xroce_tx_ring *ring;
	struct xroce_tx_frame *frame; /* XROCE_TX_FRAMES of them */
};

/* Steps that fail for a reason that can be taken away. */
#define TX_STEP_PROGRAM	  "loading the transmit program"
#define TX_STEP_NAMESPACE "making a network namespace"
#define TX_STEP_TAP	  "making a TAP device"

/*
 * Returns 0 or -errno, with *why the step that failed. The TAP is in a network namespace of its
 * own, where no network manager sees it; both go when the descriptors do, however the process ends.
 */
int tx_redirect_open(struct tx_redirect *r, u32 ifindex, const char **why);
void tx_redirect_close(struct tx_redirect *r);
/* What helps a process of such capabilities (privilege.h) where that step failed, or NULL. */
const char *tx_redirect_remedy(const char *step, u64 caps);

/*
 * Frames leave by the queue of the CPU that sends them. The next batch: by this CPU only, -1: by
 * any.
 */
void tx_redirect_by(struct tx_redirect *r, int cpu);
/*
 * Send n entries of ring->batch, several small ones in one write; none is longer than TX_TAP_BYTES.
 * Returns how many are done with: all, or those before the first that would have left by another
 * CPU. Adds to *lost how many of these were lost, and to *writes the number of writes.
 */
u32 tx_redirect_tap(struct tx_redirect *r, u32 n, u32 *lost, __u64 *writes);
/* The same in one call for all; none is longer than XROCE_TX_LIVE_BYTES. */
u32 tx_redirect_live(struct tx_redirect *r, u32 n, u32 *lost);

#endif
