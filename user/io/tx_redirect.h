/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends frames from user memory to an interface's ndo_xdp_xmit, without skbs. Owns the transmit
 * program (bpf/xroce_tx.bpf.c), the TAP device it is attached to, and the memory it reads frames
 * from. tx_policy.c chooses the way of a frame. Under the shard's lock.
 *
 * A frame that the interface has no room for is dropped silently.
 */
#ifndef IO_TX_REDIRECT_H
#define IO_TX_REDIRECT_H

#include <xroce/abi.h>

#include "../engine/types.h"

#define TX_TAP_BYTES 3456u /* the longest frame that a TAP hands to its XDP program in one page */

#define TX_PIECES_MAX 16u /* frames in one write */

struct xroce_tx_bpf;

struct tx_redirect {
	struct xroce_tx_bpf *bpf; /* NULL once tx_redirect_open() is done */
	int tap_fd, link_fd, program_fd;
	/* most bytes in one write of several frames; by link MTU, at most TX_TAP_BYTES */
	u32 write_max;
	struct xroce_tx_ring *ring;
	struct xroce_tx_frame *frame; /* XROCE_TX_FRAMES of them */
};

/* Steps whose failure has a remedy. */
#define TX_STEP_PROGRAM	  "loading the transmit program"
#define TX_STEP_NAMESPACE "creating a network namespace"
#define TX_STEP_TAP	  "creating a TAP device"

/*
 * Returns 0 or -errno, with the failed step in *why. The TAP is in its own network namespace, where
 * no network manager sees it; the kernel removes both when the process's descriptors are closed.
 */
int tx_redirect_open(struct tx_redirect *r, u32 ifindex, const char **why);
void tx_redirect_close(struct tx_redirect *r);
/* Returns advice for a failed step to a process with these capabilities (privilege.h), or NULL. */
const char *tx_redirect_remedy(const char *step, u64 caps);

/* Sets the only CPU that may send the next batch, and so its queue; -1: any. */
void tx_redirect_by(struct tx_redirect *r, int cpu);
/*
 * Sends n entries of ring->batch, each at most TX_TAP_BYTES, several small ones in one write.
 * Returns how many are done with: n, or the entries before the first that would have left on
 * another CPU. Adds the number of lost ones to *lost, and the number of writes to *writes.
 */
u32 tx_redirect_tap(struct tx_redirect *r, u32 n, u32 *lost, __u64 *writes);
/* As tx_redirect_tap(), in one call; each entry is at most XROCE_TX_LIVE_BYTES. */
u32 tx_redirect_live(struct tx_redirect *r, u32 n, u32 *lost);

#endif
