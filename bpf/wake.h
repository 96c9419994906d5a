/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The adapter's interrupt logic: which sleepers a packet wakes. Takes arm words and writes wake-up
 * records; never sets an arm word.
 *
 * An arm word has two sides:
 *
 *   	user space                              XDP, here
 *   	store armed (seq_cst)                   read armed: 0 or not for this kind: done
 *   	look for work once more                 exchange it for 0 (full barrier)
 *   	sleep on the ring                       took non-zero: write the record, forced wake-up
 *
 * One transition from armed to disarmed makes one record, however many CPUs see it. A forced
 * wake-up costs microseconds, so a plain read comes before the exchange. A record is a hint: it may
 * be visible before the packet, and the engine may still refuse the packet. An arm word is taken
 * only when there is a ring to write to, otherwise the wake-up would be lost. While threads sleep
 * on the queue's socket none is taken: the packet wakes them.
 */
#ifndef BPF_WAKE_H
#define BPF_WAKE_H

#include "count.h"
#include "maps.h"
#include "parse.h"

/*
 * Reads a word that user space may change, in one piece. BPF has only the __sync builtins for
 * atomics; they are full barriers if their result is used. Each names its partner.
 */
#define READ_ONCE(word) (*(const volatile __typeof__(word) *)&(word))

#define NO_CHANNEL 0 /* a CQ without a channel */
#define NO_CQ	   (~0u)
#define NO_SLOT	   (~0u)

/*
 * Returns the ring in slot *channel, or the vector's ring if that is XROCE_CHANNEL_WORKER. Returns
 * NULL if there is no ring, or the slot is `none`.
 */
static __always_inline void *wake_ring(const __u32 *channel, __u32 none,
				       const struct xroce_vector *vector)
{
	__u32 slot = READ_ONCE(*channel);

	if (slot == none)
		return NULL;
	if (slot == XROCE_CHANNEL_WORKER && vector)
		slot = READ_ONCE(vector->ring);
	return bpf_map_lookup_elem(&xroce_channel, &slot);
}

/*
 * Takes *word and writes the record. Returns true if this packet did so. The exchange pairs with
 * cq_notify_set_word() in user/run/cq_notify.c and worker_set_asleep() in user/run/worker.c.
 */
static __always_inline bool wake_once(__u32 *word, const __u32 *channel, __u32 none,
				      const struct xroce_vector *vector, __u32 cq, __u32 qpn)
{
	struct xroce_wakeup record = { .cq = cq, .qpn = qpn };
	void *before = wake_ring(channel, none, vector), *ring;

	if (!before || !__sync_lock_test_and_set(word, 0))
		return false;
	/* after the exchange: the word may belong to the next CQ with this index by now */
	ring = wake_ring(channel, none, vector);
	/* A full ring has unread records: its reader is awake already, or about to be. */
	if (ring)
		bpf_ringbuf_output(ring, &record, sizeof(record), BPF_RB_FORCE_WAKEUP);
	return true;
}

/*
 * Wakes the channel of CQ key if it is armed for the packet, which arrived by the vector's queue
 * and completes work. urgent: the completion is of a solicited message, or an error, and so also
 * fires a solicited-only arm (ibv_req_notify_cq(3)).
 */
static __attribute__((noinline)) void wake_cq(struct xroce_qp *qp, __u32 key, __u32 qpn,
					      bool urgent, const struct xroce_vector *vector)
{
	struct xroce_cq *cq = bpf_map_lookup_elem(&xroce_cq, &key);
	struct xroce_rx_stats *rx;
	__u32 armed;

	if (!cq)
		return;
	armed = READ_ONCE(cq->armed);
	if (armed != XROCE_CQ_ARMED_ANY && !(armed == XROCE_CQ_ARMED_SOLICITED && urgent))
		return;
	/* cq_notify_add() and cq_notify_hide() store the channel last (user/run/cq_notify.c) */
	if (!wake_once(&cq->armed, &cq->channel, NO_CHANNEL, vector, key, qpn))
		return;
	__sync_fetch_and_add(&cq->wakeups, 1);
	__sync_fetch_and_add(&qp->wakeups, 1);
	rx = count_rx_stats();
	if (rx)
		rx->cq_wakeups++;
}

/*
 * Wakes the worker that user space set for the queue, unless another thread watches the
 * queue's socket. Every packet does so, as the application that was woken may be slow.
 */
static __always_inline void wake_engine(struct xroce_vector *vector, __u32 qpn)
{
	struct xroce_rx_stats *rx;

	if (!vector || !READ_ONCE(vector->asleep))
		return;
	if (!wake_once(&vector->asleep, &vector->ring, NO_SLOT, NULL, NO_CQ, qpn))
		return;
	__sync_fetch_and_add(&vector->wakeups, 1);
	rx = count_rx_stats();
	if (rx)
		rx->engine_wakeups++;
}

/* Work that a packet completes. Urgent: a solicited-only arm fires. */
#define ENDS_RECEIVE   1
#define RECEIVE_URGENT 2
#define ENDS_SEND      4
#define SEND_URGENT    8
#define ENDS_BEFORE    16 /* with ENDS_SEND: only work before its PSN */

/*
 * Returns the work that an AETH completes. An ACK covers its own PSN. A sequence or RNR NAK
 * acknowledges everything before its PSN, the others end the QP.
 */
static __always_inline __u32 wake_acknowledges(__u8 syndrome)
{
	switch (syndrome & AETH_CLASS_MASK) {
	case AETH_ACK:
		return ENDS_SEND;
	case AETH_RNR_NAK:
		return ENDS_SEND | ENDS_BEFORE;
	default:
		return (syndrome & AETH_VALUE_MASK) == NAK_PSN_SEQUENCE ? ENDS_SEND | ENDS_BEFORE
									: ENDS_SEND | SEND_URGENT;
	}
}

/*
 * Returns the work that a packet completes. A receive completes with the end of a SEND or of a
 * WRITE with immediate; it is solicited if that packet has BTH_SE. A send may complete with the end
 * of a response: an ACK, an atomic's result, the last packet of a READ.
 */
static __always_inline __u32 wake_ends(__u32 flags, __u8 bth_flags, __u8 syndrome)
{
	/* any response acknowledges everything before it */
	if (flags & OP_RESPONSE)
		return flags & OP_END ? wake_acknowledges(syndrome) : ENDS_SEND | ENDS_BEFORE;
	if (!(flags & OP_END))
		return 0;
	if (flags & OP_REQUEST)
		return !((flags & OP_SEND) || ((flags & OP_WRITE) && (flags & OP_IMM))) ? 0 :
		       bth_flags & BTH_SE ? ENDS_RECEIVE | RECEIVE_URGENT :
					    ENDS_RECEIVE;
	return 0;
}

/*
 * Removes ENDS_SEND from ends if no visible send completes. The engine publishes in xroce_expect
 * the first PSN whose acknowledgement completes one.
 */
static __always_inline __u32 wake_visible_ends(__u32 ends, __u32 qpn, __u32 psn)
{
	const __u32 slot = XROCE_QP_SLOT(qpn);
	const struct xroce_expect *expect;
	__u32 first;

	if (!(ends & ENDS_SEND) || ends & SEND_URGENT)
		return ends;
	expect = bpf_map_lookup_elem(&xroce_expect, &slot);
	/* pairs with the release in expect_publish() (user/engine/requester.c) */
	first = expect ? READ_ONCE(expect->psn) : 0;
	if (ends & ENDS_BEFORE)
		psn--;
	/* PSNs are compared modulo 2^24, as in psn_diff() */
	if (!(first & XROCE_EXPECTED) || (psn - first) & ((ROCE_PSN_MASK >> 1) + 1))
		ends &= ~ENDS_SEND;
	return ends;
}

/* A super-packet that is searched for completions. */
struct look_through {
	struct xdp_md *ctx;
	__u32 at, size; /* offset of the first BTH, distance of BTHs */
	__u32 qpn;
	__u32 ends;
};

static long wake_look_at(__u64 i, struct look_through *l)
{
	struct {
		struct bth bth;
		__u8 syndrome; /* of an AETH, if there is one */
		__u8 rest[ROCE_ICRC_BYTES - 1];
	} head;
	__u32 flags;

	if (bpf_xdp_load_bytes(l->ctx, l->at + (__u32)i * l->size, &head, sizeof(head)))
		return 1;
	flags = opcode_flags[head.bth.opcode];
	if ((load_be32(&head.bth.ecn_qpn) & ROCE_QPN_MASK) == l->qpn)
		l->ends |= wake_visible_ends(
			wake_ends(flags, head.bth.flags, flags & OP_AETH ? head.syndrome : 0),
			l->qpn, load_be32(&head.bth.ack_psn));
	return 0;
}

/* The sender's largest super-packet; later completions wait for the engine's thread. */
#define SEGMENTS_LOOKED_AT 64

/* Returns the work that the packets of a super-packet for the first one's QP complete. */
static __attribute__((noinline)) __u32 wake_ends_of_all(struct xdp_md *ctx, const struct packet *p)
{
	struct look_through l = {
		.ctx = ctx, .at = p->l4 + sizeof(struct udphdr), .size = p->ip_id, .qpn = p->qpn
	};

	bpf_loop(p->segments < SEGMENTS_LOOKED_AT ? p->segments : SEGMENTS_LOOKED_AT, wake_look_at,
		 &l, 0);
	return l.ends;
}

static __always_inline bool wake_is_armed(__u32 key)
{
	const struct xroce_cq *cq = bpf_map_lookup_elem(&xroce_cq, &key);

	return cq && READ_ONCE(cq->armed);
}

/*
 * Wakes the sleepers for a packet. Not inlined: its spills would overwrite spilled pointers, which
 * needs CAP_PERFMON. A super-packet is searched only if a CQ of the QP is armed.
 */
static __attribute__((noinline)) void wake_sleepers(struct xdp_md *ctx, struct xroce_qp *qp,
						    const struct packet *p, __u32 queue)
{
	__u32 send_cq = qp->send_cq, recv_cq = qp->recv_cq, ends;
	struct xroce_vector *vector;

	if (p->segments == 1) {
		ends = wake_ends(p->flags, p->bth_flags, p->syndrome);
		if (ends & ENDS_SEND && wake_is_armed(send_cq))
			ends = wake_visible_ends(ends, p->qpn, p->psn);
	} else {
		ends = wake_is_armed(recv_cq) || wake_is_armed(send_cq) ? wake_ends_of_all(ctx, p) :
									  0;
	}
	vector = bpf_map_lookup_elem(&xroce_vector, &queue);
	if (ends & ENDS_RECEIVE)
		wake_cq(qp, recv_cq, p->qpn, ends & RECEIVE_URGENT, vector);
	if (ends & ENDS_SEND)
		wake_cq(qp, send_cq, p->qpn, ends & SEND_URGENT, vector);
	wake_engine(vector, p->qpn);
}

/*
 * As wake_sleepers(), for a packet to a multicast group. Its CQs are unknown here: the thread that
 * runs the engine raises their events.
 */
static __always_inline void wake_sleepers_of_group(const struct packet *p, __u32 queue)
{
	wake_engine(bpf_map_lookup_elem(&xroce_vector, &queue), p->qpn);
}

static __always_inline bool wake_is_watched(__u32 queue)
{
	const struct xroce_vector *vector = bpf_map_lookup_elem(&xroce_vector, &queue);

	return vector && READ_ONCE(vector->watched);
}

/*
 * Counts an unannounced packet on its way to a watched socket. Returns true if the socket is still
 * watched after that: then the last watcher sees the count.
 */
static __always_inline bool wake_count_unannounced(__u32 queue)
{
	struct xroce_vector *vector = bpf_map_lookup_elem(&xroce_vector, &queue);
	__u64 before;

	if (!vector)
		return false;
	/*
	 * The result is used, as only then the operation is a full barrier. Pairs with the fence in
	 * worker_sleeper_leave() (user/run/worker.c)
	 */
	before = __sync_fetch_and_add(&vector->unannounced, 1);
	barrier_var(before);
	return READ_ONCE(vector->watched);
}

#endif
