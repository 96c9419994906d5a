/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A UD queue pair with its buffers, for single round trips: QP 1, which exchanges MADs, or an
 * ordinary one. Waits on a completion channel.
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
	u8 *memory;	/* receive slots, then send slots */
	u32 slot_bytes; /* of each slot, with room for a GRH */
	u32 qkey;
	u32 sent, done; /* sends posted and completed */
};

/* A received datagram. All zero before the first datagrams_take(). */
struct datagram {
	struct ibv_wc wc;
	struct gid from;
	const u8 *data;
	u32 len;
};

/*
 * is_qp1: QP 1, for MADs of CM_MAD_BYTES. qkey: of this QP and of the peer's. Returns 0 or -errno;
 * -EBUSY: this process already has a QP 1 there. datagrams_free() ignores an all-zero one.
 */
int datagrams_make(const struct device *dev, bool is_qp1, u32 qkey, u32 most_bytes,
		   struct datagrams *d);
void datagrams_free(struct datagrams *d);

/*
 * Sends len bytes, copied from data, to a queue pair. Returns 0, -EAGAIN (the send queue is full)
 * or -errno.
 */
int datagrams_send(struct datagrams *d, struct ibv_ah *ah, u32 qpn, const void *data, u32 len);

/*
 * Takes the next datagram; datagram->data is valid until the next datagrams_take() or
 * datagrams_give_back() with it. Returns 1; 0: none; -EIO: the device is gone.
 */
int datagrams_take(struct datagrams *d, struct datagram *datagram);
/* Posts the datagram's slot again. Returns 0 or -EIO. */
int datagrams_give_back(struct datagrams *d, struct datagram *datagram);
/* Sleeps until a datagram may have arrived, timeout_ns at most, or until a signal. */
void datagrams_wait(struct datagrams *d, u64 timeout_ns);
void datagrams_wait_both(struct datagrams *a, struct datagrams *b, u64 timeout_ns);

/* Waits briefly for all sends to complete, so that address handles can be destroyed. */
void datagrams_settle(struct datagrams *d);

#endif
