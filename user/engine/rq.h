/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receive queues: a QP's own and shared ones (SRQ), the same ring. The application posts (one
 * producer at a time: its lock or its promise). The engine takes under its owner's lock; from an
 * SRQ on which several engines have QPs, under the SRQ's lock as well.
 *
 *   application                                   engine
 *   rq_slot: load cons (acquire) for room         rq_take: load prod (acquire), copy the WQE out,
 *   rq_publish: store prod (release)  --------->           store cons (release)
 */
#ifndef ENGINE_RQ_H
#define ENGINE_RQ_H

#include <xroce/stat.h>

#include "mr.h"
#include "owner.h"
#include "types.h"

#define RQ_MAX_SGE 32

struct recv_wqe {
	u64 wr_id;
	u32 num_sge;
	u32 pad;
	struct sge sge[]; /* max_sge of the queue */
};

/* A WQE that the engine took: a copy, so the slot is free again at once. */
struct recv_work {
	u64 wr_id;
	u64 length;	/* sum of the sges */
	u32 num_sge;
	/* PD for the L_Keys: an SRQ's may differ from the QP's */
	u32 pd;
	struct sge sge[RQ_MAX_SGE];
};

/* In one cache line, as struct sq. */
struct rq {
	_Atomic u32 prod;
	_Atomic u32 cons;
	u8 *ring;
	u16 mask;
	u16 stride;	/* bytes per slot */
	u16 max_wr;	/* entries the application may post */
	u8 max_sge;
	bool lent;	/* the caller owns the ring's memory: rq_free() does not free it */
};

/* Returns the bytes of a ring's memory, whole cache lines. */
size_t rq_bytes(u32 max_wr, u32 max_sge);
/*
 * Initialises a queue: max_wr 0 .. 32768 (0: nothing can be posted), max_sge 0 .. RQ_MAX_SGE.
 * Returns 0, -ENOMEM or -EINVAL. rq_init_in() puts the ring in the caller's memory of rq_bytes(),
 * on a cache line, with any contents; NULL: allocates it.
 */
int rq_init(struct rq *rq, u32 max_wr, u32 max_sge);
int rq_init_in(struct rq *rq, u32 max_wr, u32 max_sge, void *lent);
void rq_free(struct rq *rq);

/*
 * Producer: returns slot n (0 = next) of the unpublished ones, or NULL if the queue has no room for
 * it.
 */
struct recv_wqe *rq_slot(struct rq *rq, u32 n);
/* Producer: hands n filled slots to the engine. */
void rq_publish(struct rq *rq, u32 n);

/*
 * Engine: takes the oldest WQE; false when none is posted. Every field is copied and bounded
 * (num_sge <= max_sge).
 */
bool rq_take(struct rq *rq, struct recv_work *out);
/* Engine: returns the slot of the WQE that rq_take() would take, if there is one. */
static inline const void *rq_next(const struct rq *rq)
{
	return rq->ring +
	       (size_t)(atomic_load_explicit(&((struct rq *)rq)->cons, memory_order_relaxed) &
			rq->mask) *
		       rq->stride;
}
/* Either side: returns the number of posted WQEs not yet taken. */
u32 rq_posted(const struct rq *rq);
/* Engine and producer both held: removes all WQEs. */
void rq_reset(struct rq *rq);
/*
 * Engine and producer both held: moves the posted WQEs to a queue of max_wr. Returns 0, -EINVAL if
 * they do not fit, or -ENOMEM. On entry *lent is memory for the new queue, as for rq_init_in(). On
 * return the caller owns *lent: the old queue's memory, or, on failure, the new one's. NULL is for
 * queues that never used the caller's memory.
 */
int rq_resize(struct rq *rq, u32 max_wr, void **lent);

/* A shared receive queue. */
struct srq {
	struct rq rq;
	u32 pd;
	u32 number;	   /* srq_num; given by engine_srq_add() */
	u32 xrcd;	   /* XRC domain, 0 = not an XRC SRQ */
	struct cq *cq;	   /* XRC and tag matching: where its receives complete */
	struct tag_list *tags; /* tag matching, else NULL */
	/* 0 = not armed; SRQ_LIMIT_REACHED fires once when fewer than this many are left */
	u32 limit;
	struct users users; /* QPs that use it */
	struct spin lock;  /* with shared: guards the fields that change while engines run */
	bool shared;	   /* QPs of several engines are on it: changes with all of them held */
	bool failed;	   /* its own CQ overran, and SRQ_ERR was reported */
	struct xroce_srq_stat *stat; /* counters, in the caller's memory, or NULL */
	struct srq_part {
		struct srq *event_next;
		u32 events;   /* EVENT_* to report */
		bool event_queued;
	} part[ENGINE_MAX]; /* events of each engine: only that engine uses its part */
	void *owner;
};

#endif
