/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One CM, with the test as its peer: handmade MADs in, and each output is checked.
 */
#ifndef CM_BENCH_H
#define CM_BENCH_H

#include "../../user/cm/cm.h"
#include "../sim/rng.h"

#include "../unit/unit.h"

#define BENCH_SERVICE	0x0200000000000001ull /* of no IP port space: without a header */
#define BENCH_ID_FIRST	0x00100000u
#define BENCH_ID_COUNT	0x00010000u
#define BENCH_QPN	0x55u /* ours */
#define BENCH_PEER_QPN	0x66u
#define BENCH_RESPONSE	18 /* exponents of time-outs */
#define BENCH_ACK	17
#define BENCH_RETRIES	3

struct bench {
	struct cm *cm;
	struct rng rng;
	u64 now_ns;
	struct cm_path path; /* to the peer */
	struct cm_listener *listener;
	u64 tid; /* of the next REQ of the peer's */
};

u64 bench_draw(void *rng);
void bench_make(struct bench *b, u32 capacity, u32 half_open);
/* With cm_options.reject. */
void bench_make_rejecting(struct bench *b, u16 (*reject)(void *arg), void *arg);
/* This connection, the last that is open. */
void bench_close(struct bench *b, struct cm_conn *c);
/* Closes nothing: remaining connections are left on purpose. */
void bench_unmake(struct bench *b);
void bench_listen(struct bench *b, u32 backlog);

/* A REQ of the peer with this id and a QPN from the id's lower bits. */
struct cm_mad bench_req(struct bench *b, u32 id);
/* A MAD of the peer's connection peer_id to ours. */
struct cm_mad bench_mad(enum cm_kind kind, u64 tid, u32 peer_id, u32 id);
enum cm_drop bench_input(struct bench *b, const struct cm_mad *m);
enum cm_drop bench_input_over(struct bench *b, const struct cm_path *path,
			      const struct cm_mad *m);

/* Checks that `times` MADs were dropped for this reason. */
void bench_dropped(const struct bench *b, enum cm_drop drop, u64 times);

/* The next MAD that it sends, which is of this kind. */
struct cm_mad bench_sent(struct bench *b, enum cm_kind kind);
void bench_sent_nothing(struct bench *b);
/* The next event, which is of this kind. */
struct cm_event bench_event(struct bench *b, enum cm_event_kind kind);
void bench_no_event(struct bench *b);
/* Advances to its deadline, which must be `ns` ahead. */
void bench_wait(struct bench *b, u64 ns);
u64 bench_interval_ns(void);

/* Connections in a state, with all that came up taken. tid: NULL or the REQ's. */
struct cm_conn *bench_connect(struct bench *b, u64 *tid);
struct cm_conn *bench_requested(struct bench *b, u32 peer_id);
struct cm_conn *bench_accepted(struct bench *b, u32 peer_id);
struct cm_conn *bench_established(struct bench *b, u32 peer_id);
struct cm_conn *bench_replied(struct bench *b, u32 peer_id, u64 *tid);

#endif
