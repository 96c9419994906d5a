/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A completion queue: a ring that the engine fills and the application empties.
 *
 *   engine (under its owner's lock, and under
 *   this CQ's where several engines fill it)    application (one consumer at a time: its lock or
 *                                               its promise)
 *   cq_push: write entry, then                  cq_peek: load prod (acquire), read entry,
 *            store prod (release)  --------->   cq_pop:  store cons (release)
 *            load cons (acquire)   <---------
 *
 * Arming: the application stores the arm word, then polls once more. The engine pushes, then calls
 * cq_pushed_all(), then takes the arm word, once per call for all pushes of that call. Both orders
 * are sequentially consistent, so one of the two sees the other: no completion is missed.
 */
#ifndef ENGINE_CQ_H
#define ENGINE_CQ_H

#include <xroce/stat.h>

#include "owner.h"
#include "types.h"

/* Completion status, with the values of enum ibv_wc_status. */
enum cqe_status {
	CQE_SUCCESS = 0,
	CQE_LOC_LEN_ERR = 1,
	CQE_LOC_QP_OP_ERR = 2,
	CQE_LOC_PROT_ERR = 4,
	CQE_WR_FLUSH_ERR = 5,
	CQE_MW_BIND_ERR = 6,
	CQE_BAD_RESP_ERR = 7,
	CQE_LOC_ACCESS_ERR = 8,
	CQE_REM_INV_REQ_ERR = 9,
	CQE_REM_ACCESS_ERR = 10,
	CQE_REM_OP_ERR = 11,
	CQE_RETRY_EXC_ERR = 12,
	CQE_RNR_RETRY_EXC_ERR = 13,
	CQE_TM_ERR = 22,
	CQE_TM_RNDV_INCOMPLETE = 23,
};

/*
 * Why a work request failed, for struct ibv_wc's vendor_err, where the status alone is ambiguous.
 * Programs and logs use the numbers; none is ever reused.
 */
#define VENDOR_ERRORS(X)                                                                           \
	X(FLUSHED, 1, "flushed: the QP entered the error state before this request ran")           \
	X(LKEY, 2, "L_Key: unknown, of another PD, out of bounds, or without the access right")    \
	X(TIMEOUT, 3, "retry_cnt time-outs without an answer")                                     \
	X(SEQUENCE_RETRY, 4, "retry_cnt sequence NAKs without progress")                           \
	X(RNR, 5, "rnr_retry RNR NAKs")                                                            \
	X(NAK_INVALID_REQUEST, 6, "NAK: remote invalid request")                                   \
	X(NAK_REMOTE_ACCESS, 7, "NAK: remote access error")                                        \
	X(NAK_REMOTE_OPERATION, 8, "NAK: remote operational error")                                \
	X(BAD_RESPONSE, 9, "a response that contradicts its request")                              \
	X(RECV_TOO_SHORT, 10, "the receive is shorter than the message")                           \
	X(TOO_LONG, 11, "message longer than the transport or the path MTU allows")                \
	X(REMOTE_ACCESS_HERE, 12, "a peer's request was refused: its receive is consumed")         \
	X(CQ_OVERRUN, 13, "the CQ overran")                                                        \
	X(INVALIDATE, 14, "the R_Key to invalidate does not belong to this QP")                    \
	X(TAG_CONSUMED, 15, "the tag to delete is no longer in the list")                          \
	X(RENDEZVOUS, 16, "the application must fetch this message into the tag's buffer")         \
	X(MEMORY, 17, "the key is valid, but its memory is not accessible")                        \
	X(REQUEST, 18, "the transport service does not have this request or length")               \
	X(FAULT_RULE, 19, "a rule of XROCE_FAULT asked for this error")

enum vendor_err {
	VERR_NONE = 0,
#define X(name, number, text) VERR_##name = number,
	VENDOR_ERRORS(X)
#undef X
};

/* Returns the text, or NULL for an unknown number. Duplicate numbers do not compile. */
static inline const char *vendor_err_text(unsigned int number)
{
	switch (number) {
#define X(name, number, text) \
	case VERR_##name:     \
		return text;
		VENDOR_ERRORS(X)
#undef X
	}
	return NULL;
}

/* Completion opcode, with the values of enum ibv_wc_opcode. */
enum cqe_opcode {
	CQE_SEND = 0,
	CQE_WRITE = 1,
	CQE_READ = 2,
	CQE_COMP_SWAP = 3,
	CQE_FETCH_ADD = 4,
	CQE_BIND_MW = 5,
	CQE_LOCAL_INV = 6,
	CQE_FLUSH = 8,
	CQE_ATOMIC_WRITE = 9,
	CQE_RECV = 1 << 7,
	CQE_RECV_WITH_IMM = (1 << 7) + 1,
	CQE_TM_ADD = (1 << 7) + 2,
	CQE_TM_DEL = (1 << 7) + 3,
	CQE_TM_SYNC = (1 << 7) + 4,
	CQE_TM_RECV = (1 << 7) + 5,
	CQE_TM_NO_TAG = (1 << 7) + 6,
};

/* Flags, with the values of enum ibv_wc_flags. */
enum {
	CQE_GRH = 1 << 0,
	CQE_WITH_IMM = 1 << 1,
	CQE_WITH_INV = 1 << 3,
	CQE_TM_SYNC_REQ = 1 << 4,
	CQE_TM_MATCH = 1 << 5,
	CQE_TM_DATA_VALID = 1 << 6,
};

struct cqe {
	u64 wr_id;
	u16 status;	 /* enum cqe_status */
	u16 opcode;	 /* enum cqe_opcode */
	u32 vendor_err;	 /* enum vendor_err */
	u32 byte_len;
	/* immediate data in wire order, or (host order) the invalidated R_Key, by flags */
	__be32 imm;
	u32 qpn;	 /* the local QP's */
	u32 src_qpn;
	u16 flags;	 /* CQE_GRH ... */
	u16 vlan_tci;
	/* of the message that matched a tag, with CQE_TM_MATCH; else 0, as is tm_tag */
	u32 tm_priv;
	/* arrival of the packet (CLOCK_MONOTONIC); for send completions the engine's time */
	u64 time_ns;
	u32 flow_tag;
	/*
	 * UD: CQE_SL_*. Else the VLAN's priority, or without a VLAN the upper bits of the traffic
	 * class
	 */
	u8 sl;
	u8 tos;
	u8 valid;	 /* 0: purged by cq_mark_purged(), skipped by the consumer */
	u8 has_vlan;
	u64 tm_tag;
};
_Static_assert(sizeof(struct cqe) == 64, "one cache line a completion");

/*
 * The IP version of a datagram, which adapters report in place of a service level: programs read it
 * to find the addresses in the GRH. 0 would be RoCE v1.
 */
enum { CQE_SL_IPV6 = 1, CQE_SL_IPV4 = 2 };

enum { CQ_DISARMED = 0, CQ_ARMED_ANY = 1, CQ_ARMED_SOLICITED = 2 };

/* State of a CQ that only one engine uses. */
struct cq_part {
	struct cq *pushed_next, *event_next;
	u32 events;	   /* EVENT_* to report */
	bool event_queued; /* on the engine's list of CQs with an event to report */
	bool pushed;	   /* on the engine's list of CQs whose arm word is to be checked */
	bool pushed_solicited; /* pushed solicited completions or errors as well */
};

struct cq {
	/* written by the engine; with `shared` by each engine, under the lock */
	_Atomic u32 prod cache_aligned;
	struct spin lock;
	_Atomic bool overrun; /* the ring was full once: CQ_ERR, no further pushes */
	bool failed;	   /* the overrun was reported */
	bool shared;	   /* QPs of several engines complete here: changes with all of them held */
	bool due_queued;   /* on an engine's list of CQs with a moderated event */
	u32 withheld;	   /* completions since the last event, whose events are withheld */
	u64 event_due_ns;  /* latest time of the withheld event */
	struct cq *due_next;
	struct cq_part part[ENGINE_MAX];
	u64 newest_ns;	   /* with_time: the largest time_ns pushed */
	/*
	 * written by the consumer; with ignore_overrun also by the engine, which then drops the
	 * oldest entry
	 */
	_Atomic u32 cons cache_aligned;
	/* `held` is the entry that cq_peek() returned; the ring no longer has it */
	bool holds;
	_Atomic u32 idle_polls; /* empty polls since the CQ was armed; see cq_is_awaited() */
	/* shared: stored by the application, taken by the engine */
	_Atomic u32 armed cache_aligned;
	_Atomic u32 armed_at; /* prod when the application last stored `armed` */
	/* set by ibv_modify_cq(3) with the engine's lock held */
	_Atomic u32 moderate_count; /* completions per event; 0: no moderation */
	u64 moderate_ns;
	/* constant */
	struct cqe *ring cache_aligned;
	u32 mask;
	u32 capacity;	   /* entries that the application may rely on: <= mask + 1 */
	bool ignore_overrun; /* a full ring loses its oldest entry instead of failing */
	/* the consumer asks for arrival times and flow tags, which XDP then provides */
	bool with_time;
	bool with_flow_tag;
	bool with_channel; /* XDP may wake the consumer */
	bool lent;	   /* the caller owns the ring's memory: cq_free() does not free it */
	/* counters, in the owner's memory, or NULL. With several engines under the lock */
	struct xroce_cq_stat *stat;
	void *owner;	   /* the verbs layer's object */
	u32 index;	   /* key in the arm-word map; kept for the owner */
	/* QPs that complete here; a QP counts twice if both its sends and receives do */
	struct users users;
	struct cqe aside cache_aligned; /* the engine's: see cq_push_begin() */
	/* the consumer's */
	struct cqe held cache_aligned;
};
_Static_assert(offsetof(struct cq, part[1]) <= CACHE_LINE, "one line for a device's only engine");

/*
 * Returns the engines whose QPs complete here, one bit per engine number: a poll must run these.
 * Any thread, as a hint.
 */
static inline u32 cq_engines(const struct cq *cq)
{
	return users_engines(&cq->users);
}

static inline bool cq_has_overrun(const struct cq *cq)
{
	return atomic_load_explicit(&((struct cq *)cq)->overrun, memory_order_relaxed);
}

/* Returns the bytes of a ring's memory, whole cache lines. */
size_t cq_bytes(u32 capacity);
/*
 * Initialises a CQ, capacity 1 .. 2^22. Returns 0, -ENOMEM or -EINVAL. cq_init_in() puts the ring
 * in the caller's memory of cq_bytes(), on a cache line, with any contents; NULL: allocates it.
 */
int cq_init(struct cq *cq, u32 capacity);
int cq_init_in(struct cq *cq, u32 capacity, void *lent);
void cq_free(struct cq *cq);

/*
 * Engine side, in two steps: cq_push_begin() returns the entry to be filled, never NULL;
 * cq_push_end() publishes it. Returns true if pushed, false when full: the CQ is then overrun. With
 * ignore_overrun the oldest entry makes room instead. With with_time, time_ns never decreases from
 * entry to entry.
 */
struct cqe *cq_push_begin(struct cq *cq);
bool cq_push_end(struct cq *cq, struct cqe *e);
/* Both steps in one. */
bool cq_push(struct cq *cq, const struct cqe *e);

/*
 * Engine side: called between all pushes of a call and the first check of an arm word. A full fence
 * costs more than a completion, so it is not part of either.
 */
static inline void cq_pushed_all(void)
{
	/* pairs with the fence in cq_notify_arm(): arm, then load prod once more */
	atomic_thread_fence(memory_order_seq_cst);
}

/* Engine side: takes the arm word if a completion with these properties must raise an event. */
bool cq_take_event(struct cq *cq, bool solicited_or_error);
/* Returns whether cq_take_event() would take the arm word now. */
bool cq_would_take_event(struct cq *cq, bool solicited_or_error);

/*
 * Sets moderation: one event per count completions, or after period_ns. A count below 2 or a period
 * of 0 turns moderation off. All engines held.
 */
void cq_moderate(struct cq *cq, u32 count, u64 period_ns);

/*
 * Consumer side: cq_peek() returns the oldest completion or NULL; cq_pop() removes it. The pointer
 * is valid until cq_pop().
 */
const struct cqe *cq_peek(struct cq *cq);
void cq_pop(struct cq *cq);

/*
 * Consumer side: copies the entry that cq_peek() returned out of the ring. The copy is valid until
 * cq_pop(), whatever happens to the ring.
 */
const struct cqe *cq_hold(struct cq *cq);

/* Any thread, as hints: whether the CQ is empty, and whether the application waits for an event. */
static inline bool cq_empty(const struct cq *cq)
{
	return atomic_load_explicit(&((struct cq *)cq)->prod, memory_order_relaxed) ==
	       atomic_load_explicit(&((struct cq *)cq)->cons, memory_order_relaxed);
}
static inline bool cq_is_armed(const struct cq *cq)
{
	return atomic_load_explicit(&((struct cq *)cq)->armed, memory_order_relaxed) != CQ_DISARMED;
}

/*
 * The application arms a CQ, polls it once more, and sleeps. An application that keeps polling does
 * not sleep: it armed the CQ for a thread that seldom runs, as UCX does for each UD QP. This many
 * empty polls tell the two apart.
 */
#define CQ_IDLE_POLLS 32u

/* Any thread: counts an empty poll. The count is a hint, so its writers need no order. */
static inline void cq_count_idle_poll(struct cq *cq)
{
	const u32 polls = atomic_load_explicit(&cq->idle_polls, memory_order_relaxed);

	if (polls < CQ_IDLE_POLLS)
		atomic_store_explicit(&cq->idle_polls, polls + 1, memory_order_relaxed);
}
static inline void cq_forget_idle_polls(struct cq *cq)
{
	atomic_store_explicit(&cq->idle_polls, 0, memory_order_relaxed);
}
/* Returns whether the CQ is armed and not being polled. */
static inline bool cq_is_awaited(const struct cq *cq)
{
	return cq_is_armed(cq) && atomic_load_explicit(&((struct cq *)cq)->idle_polls,
						       memory_order_relaxed) < CQ_IDLE_POLLS;
}

/* Engine side: index of the next completion; whether the consumer is past an index. */
static inline u32 cq_next_index(const struct cq *cq)
{
	return atomic_load_explicit(&((struct cq *)cq)->prod, memory_order_relaxed);
}
static inline bool cq_is_past(const struct cq *cq, u32 index)
{
	return (s32)(atomic_load_explicit(&((struct cq *)cq)->cons, memory_order_relaxed) - index) >
	       0;
}

/*
 * Engine side, consumer held: counts the completions of qpn in the ring with this opcode, status
 * success, and none of these flags.
 */
u32 cq_count(const struct cq *cq, u32 qpn, enum cqe_opcode opcode, u32 without_flags);

/*
 * Removes all completions of qpn and frees their room, for RESET and destroy. All engines and the
 * consumer are held; the consumer may have only an entry of cq_hold() in use.
 */
void cq_purge(struct cq *cq, u32 qpn);
/*
 * The same without holding the consumer: it skips the entries, which take room until then. A
 * running consumer may still have taken one.
 */
void cq_mark_purged(struct cq *cq, u32 qpn);

/* Removes all entries and the consumer's held one. No other user of the CQ may be left. */
void cq_abandon(struct cq *cq);

/*
 * Moves all entries to a ring of at least capacity; locks as for cq_purge(). Returns 0, -EINVAL if
 * they do not fit, or -ENOMEM. On entry *lent is memory for the new ring, as for cq_init_in(). On
 * return the caller owns *lent: the old ring's memory, or, on failure, the new one's. NULL is for
 * CQs that never used the caller's memory.
 */
int cq_resize(struct cq *cq, u32 capacity, void **lent);

#endif
