/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs named by man pages (man_*.c) share. Each walks its page's text: a case quotes
 * or names the sentences that it holds the library to. Sentences that promise nothing have none.
 */
#ifndef TESTS_VERBS_MAN_H
#define TESTS_VERBS_MAN_H

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "contract.h"

/* Each program has one list. */
extern const struct test_case man_cases[];

long long clock_ns(clockid_t id);

/* An event of this CQ, within bounded time, acknowledged. */
bool take_cq_event(struct ibv_comp_channel *ch, struct ibv_cq *want);
/* The next asynchronous event, within bounded time; not acknowledged. False if none comes. */
bool next_async(struct ibv_async_event *event);
/* Takes and acknowledges an event, which must be this one of this object. */
bool take_async(enum ibv_event_type type, const void *object);

int qp_state_now(struct ibv_qp *qp);
int qp_to_state(struct ibv_qp *qp, enum ibv_qp_state state);
/* Connects both ends again through RESET, and drops the content of their CQs. */
bool pair_reconnect(struct pair *p);

/* A QP with these CQs, connected to itself over the device's GID. */
struct ibv_qp *qp_to_itself(struct ibv_pd *pd, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
			    struct ibv_srq *srq);
/* An empty SEND from that QP to itself, with its receive. */
bool ping(struct ibv_qp *qp, uint64_t wr_id, unsigned int flags);

/* Several CQs, each with a QP connected to itself that receives there. */
#define MAX_LOOPS 8
struct loops {
	struct ibv_pd *pd;
	struct ibv_cq *sends;		/* of all QPs: they are unsignaled */
	struct ibv_cq *cq[MAX_LOOPS];
	struct ibv_qp *qp[MAX_LOOPS];
	int n;
};

bool loops_open(struct loops *l);
/* The next one, its CQ with this context, channel and vector. */
bool loops_add(struct loops *l, void *context, struct ibv_comp_channel *ch, int vector);
/*
 * The CQ is armed and its QP pinged: one completion, which is taken, and its event, which is left.
 */
bool loops_event(struct loops *l, int i);
bool loops_drop(struct loops *l, int i);
/* All that were not dropped. */
bool loops_close(struct loops *l);

/* Runs body(arg) in a forked child, which must exit in CHILD_S seconds and return true. */
#define CHILD_S 20
bool in_a_child(bool (*body)(void *arg), void *arg);

/* Returns the count when it has reached n or WAIT_MS are over. */
int counted_to(atomic_int *count, int n);

/*
 * A SEND with invalidate of a memory window's R_Key, 7 bytes into the receive 33: its completion is
 * in cq[1], and nothing else.
 */
bool send_invalidating(struct pair *p, uint32_t *rkey);

/* SRQs of QUEUE receives with 2 elements: an XRC one of that domain, a tag-matching one. */
struct ibv_srq *xrc_srq(struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq);
struct ibv_srq *tag_srq(struct ibv_pd *pd, struct ibv_cq *cq);

#endif
