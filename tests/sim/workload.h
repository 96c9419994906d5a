/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A random workload: its flows and inboxes, and the posted requests, each with its expected result.
 * test_random.c runs and judges it.
 */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "pair.h"
#include "runs.h"

#define MAX_OPS	   24 /* of one flow */
#define MAX_PAIRS  3
#define MAX_FLOWS  (2 * MAX_PAIRS)
#define MAX_INBOX  (MAX_FLOWS + 4)
#define MAX_SLOTS  (MAX_OPS * MAX_FLOWS)
#define MAX_LENGTH (8 * 1024)
#define SLOT	   (MAX_LENGTH + 8)
#define ACCESS	   (PAIR_ACCESS_ALL | MR_MW_BIND | MR_FLUSH_GLOBAL | MR_FLUSH_PERSISTENT)
#define NO_SLOT	   (~0u)

/* How a flow fails: the last request that is executed, or not even that. */
enum poison {
	SOUND,
	BAD_LKEY,
	BAD_READ_LKEY,
	BAD_RKEY,
	BAD_READ_RKEY,
	BAD_BIND,
	BAD_INV,
	BAD_REMOTE_INV,
	BAD_SRQ,
	SHORT_RECEIVE,
	BAD_RECEIVE,
	POISONS
};

/* How the request completes; the receive, if it does; whether the other end fails as well. */
struct poison_effect {
	enum cqe_status status, receive;
	bool remote;
};
extern const struct poison_effect poisons[POISONS];

/* Counts of posted requests in all runs. */
extern u32 seen_op[WR_OPCODES], seen_poison[POISONS];

/* Where receives are posted: a QP's own queue or a shared one. WQE n takes slot n of the memory. */
struct inbox {
	struct side *owner;	/* the owner of the queue */
	struct srq *srq;	/* or the shared one */
	struct watched_cq *cq;	/* XRC: where it completes */
	struct buffer *memory;
	u32 slots, posted, wanted;
	/* NO_SLOT, or the slot posted with bad_length or a wrong key */
	u32 bad_slot;
	u32 bad_length;
	bool used[MAX_SLOTS];
};

struct op {
	u64 wr_id;
	u8 opcode, flags;
	u32 len, cqe_opcode;
	u32 sink, from_seen;	/* READ and atomics: offset in the sink */
};

struct message {
	struct inbox *inbox;
	struct cqe cqe;
	u32 from;		/* of its bytes in the source */
	u32 bytes;		/* that are placed; WRITE: none */
	bool uncertain;		/* an error that may find no receive */
};

/* One QP's outgoing work, and its expected results. */
struct flow {
	struct side *a, *b;	/* from, to */
	struct inbox *inbox[2];
	u32 num_inboxes;
	struct buffer *source;	/* a: what SENDs and WRITEs carry */
	struct buffer *sink;	/* a: where READs and atomics end */
	struct buffer *quarry;	/* b: what READs fetch */
	struct buffer *target;	/* b: where WRITEs end */
	struct buffer *counter; /* b: one word for atomics */
	struct mr *mw;		/* a: bound and invalidated by requests */
	struct mr *far_mw;	/* b: onto the target, until it is invalidated from a */
	bool mw_bound, far_bound;
	u32 mw_key;		/* as it is when all that was posted is done */
	u8 *want_sink, *want_target;
	u64 want_counter;
	u32 num_ops, posted;
	struct op op[MAX_OPS];
	struct message message[MAX_OPS];
	u32 num_messages;
	enum poison poison;
	u32 poison_at;		/* op that is to fail; num_ops if none was posted yet */
	bool poisoned, exact;
};

struct workload {
	struct world *w;
	struct rng r;
	struct pair pair[MAX_PAIRS];
	struct flow flow[MAX_FLOWS];
	struct inbox inbox[MAX_INBOX];
	u32 num_pairs, num_flows, num_inboxes;
	bool calm;
};

/* Where receives are posted: the owner's queue, or a shared one. */
struct inbox *workload_inbox(struct workload *l, struct node *n, struct side *owner,
			     struct srq *srq, struct watched_cq *cq);
/* The messages of a to b, through one inbox or two. sound: none of them fails. */
void workload_flow(struct workload *l, struct side *a, struct side *b, struct inbox *first,
		   struct inbox *second, bool sound);
/* Posts one more request with its expected result. False if there is no room, or none is left. */
bool workload_post(struct flow *f, struct rng *r);
/* One more receive, if there is room. */
void workload_receive(struct inbox *i);

#endif
