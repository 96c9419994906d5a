/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A plan of transfers, computed on both sides from one seed: each message's operation, length,
 * immediate, scattering of its buffers, and every byte. So each side can compute the expected data.
 * No verbs, no I/O.
 */
#ifndef NETNS_PLAN_H
#define NETNS_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define PLAN_MESSAGES 16	/* most messages of a side in a round */
#define PLAN_LEN_MAX  70000
#define PLAN_SGE_MAX  4
#define PLAN_INLINE   64	/* most bytes that are sent inline */
#define PLAN_GRH      40
/* a message's buffer: the longest one, its gaps, a GRH and some room */
#define SLOT_BYTES    73728
#define POISON	      0xa5	/* what a buffer holds where nothing may be written */

enum plan_transport { PLAN_RC, PLAN_UC, PLAN_UD };
enum plan_op { PLAN_SEND, PLAN_SEND_IMM, PLAN_WRITE, PLAN_WRITE_IMM, PLAN_READ, PLAN_OPS };

struct span {
	uint32_t offset;	/* in the slot */
	uint32_t len;
};

struct message {
	enum plan_op op;
	uint32_t len;
	uint32_t imm;		/* in network order: compared, never interpreted */
	bool is_inline;
	bool is_signaled;
	bool is_solicited;
	unsigned int num_local;	/* the requester's scatter list */
	struct span local[PLAN_SGE_MAX];
	/* the receive that it consumes, if it does; longer than the message at times */
	unsigned int num_recv;
	struct span recv[PLAN_SGE_MAX];
	uint32_t remote_offset;	/* WRITE, READ: where in the other side's slot */
	uint64_t key;		/* of the content */
};

struct plan {
	enum plan_transport transport;
	uint64_t seed;
	uint32_t max_len;	/* 256 .. PLAN_LEN_MAX; UD: at most the path MTU */
	uint32_t path_mtu;
	/*
	 * of a round and side: what a transport without retransmission may have on its way; 0 = any
	 * number
	 */
	uint32_t max_packets;
};

/* The messages that side (0 or 1) requests in a round; returns how many. */
unsigned int plan_round(const struct plan *plan, uint32_t round, unsigned int side,
			struct message m[PLAN_MESSAGES]);
/*
 * True if in this round the receives are posted late, so that the requester meets a receiver that
 * is not ready (RC).
 */
bool plan_is_late(const struct plan *plan, uint32_t round);

static inline bool op_takes_receive(enum plan_op op)
{
	return op == PLAN_SEND || op == PLAN_SEND_IMM || op == PLAN_WRITE_IMM;
}

static inline bool op_has_imm(enum plan_op op)
{
	return op == PLAN_SEND_IMM || op == PLAN_WRITE_IMM;
}

extern const char *const op_names[PLAN_OPS];

/*
 * Write the message's content over the spans of a slot, from position skip of the spans' bytes on.
 */
void slot_fill(uint8_t *slot, const struct span *spans, unsigned int n, uint32_t skip,
	       const struct message *m);
/* Poison again what the spans hold. */
void slot_wipe(uint8_t *slot, const struct span *spans, unsigned int n);
/*
 * True if the slot holds exactly the message's content in the spans from position skip on and
 * poison everywhere else (the first skip bytes may be anything). Else *where is the first wrong
 * offset.
 */
bool slot_is_right(const uint8_t *slot, const struct span *spans, unsigned int n, uint32_t skip,
		   const struct message *m, uint32_t *where);

#endif
