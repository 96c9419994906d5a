/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The scene of the tag matching tests: node 0 sends messages with a tag, node 1 has an SRQ with a
 * list of tags. Lays messages out, posts operations and checks the completion of a match; the tests
 * check all else.
 */
#ifndef SIM_TAG_SCENE_H
#define SIM_TAG_SCENE_H

#include "pair.h"

#define PMTU	  256
#define MAX_TAGS  8
#define MAX_OPS	  6
/* bytes of a receive WQE: number n is at RECEIVES + n * RECEIVE of remote */
#define RECEIVE	  1024
#define RECEIVES  (64 * 1024)
#define BOTH	  (CQE_TM_MATCH | CQE_TM_DATA_VALID)

struct tag_scene {
	struct world *w;
	struct watched_cq *cq;	/* of the SRQ */
	struct srq *srq;	/* of node 1 */
	struct pair p;
	struct side *a, *b;
	struct buffer *local, *remote;
};

struct pair_options tag_options(void);
/* Labels the world with the program's name and `name`. */
void tag_open(struct tag_scene *s, const char *name);
void tag_open_with(struct tag_scene *s, const char *name, struct pair_options *o);
/*
 * Connects another pair on the SRQ, after pair_destroy() of the last; with receives for FINs at the
 * sender.
 */
void tag_connect(struct tag_scene *s, struct pair_options *o);
void tag_close(struct tag_scene *s);

/* Returns the result of tag_post(); the operation is done when this returns. */
int tag_op_post(struct tag_scene *s, struct tag_op *o);
/*
 * The buffer of n bytes at the remote's offset, for tag; unsignaled, as of count unexpected
 * messages. Returns its handle.
 */
u32 tag_add(struct tag_scene *s, u64 recv_wr_id, u64 tag, u64 mask, u32 offset, u32 n, u32 count);
/* Receive WQEs first .. end - 1. */
void post_receives(struct tag_scene *s, u64 first, u64 end);

/* Lay a message out at an offset of local: header and len bytes of payload. Its request. */
struct send tag_message(struct tag_scene *s, u32 at, u8 opcode, u64 tag, u32 len);
/*
 * A rendezvous at `at`, whose data are len bytes at `data`, with `extra` bytes after its headers.
 */
struct send tag_rendezvous(struct tag_scene *s, u32 at, u64 tag, u32 data, u32 len, u32 extra);
/* An eager message at 0, sent, and all that follows from it. */
void send_eager(struct tag_scene *s, u64 tag, u32 len);

/* Completion n of the SRQ's is a match, or the data, of this message. */
void expect_match(struct tag_scene *s, u32 n, u64 wr_id, u64 tag, u16 flags, u32 byte_len);
/* The nth message that the sender got is the FIN of this rendezvous. */
void expect_fin(struct tag_scene *s, u32 n, u64 tag, u32 data, u32 len);

#endif
