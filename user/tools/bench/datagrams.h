/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A UD queue pair with its buffers, for a round trip at a time: QP 1, which exchanges MADs, or one
 * of its own. It sleeps on a completion channel.
 */
#ifndef BENCH_DATAGRAMS_H
#define BENCH_DATAGRAMS_H

#include "verbs.h"

#define DATAGRAM_SLOTS 256u
#define DATAGRAM_GRH   40u
#define DATAGRAM_MOST  4096u

struct datagrams {
	const struct device *dev;
	struct ibv_comp_channel *channel;
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	u8 *memory;	/* the receive slots, then the send slots */
	u32 slot_bytes; /* of each, with room for a GRH */
	u32 qkey;
	u32 sent, done; /* sends */
};

/* One that has come. All zero before the first datagrams_take(). */
struct datagram {
	struct ibv_wc wc;
	struct gid from;
	const u8 *data;
	u32 len;
};

/*
 * is_qp1: QP 1, for CM_MAD_BYTES. qkey: of its own QP and of the peer's. 0 or -errno; -EBUSY: this
 * process has a QP 1 there. datagrams_free() of one that is all zero does nothing.
 */
int datagrams_make(const struct device *dev, bool is_qp1, u32 qkey, u32 most_bytes,
		   struct datagrams *d);
void datagrams_free(struct datagrams *d);

/*
 * Sends len bytes to that queue pair, of which data is copied. 0, -EAGAIN (the send queue is full)
 * or -errno.
 */
int datagrams_send(struct datagrams *d, struct ibv_ah *ah, u32 qpn, const void *data, u32 len);

/*
 * The next one that has come: datagram->data is valid until datagrams_take() is called with it
 * again, or datagrams_give_back(). 1; 0: none; -EIO: the device has gone.
 */
int datagrams_take(struct datagrams *d, struct datagram *datagram);
/* The reader is done with it. 0 or -EIO. */
int datagrams_give_back(struct datagrams *d, struct datagram *datagram);
/* Sleeps until one may have come, for so long at most, or a signal. */
void datagrams_wait(struct datagrams *d, u64 timeout_ns);
void datagrams_wait_both(struct datagrams *a, struct datagrams *b, u64 timeout_ns);

/* Every send has ended, so that address handles may go. Waits for a moment if need be. */
void datagrams_settle(struct datagrams *d);

#endif
