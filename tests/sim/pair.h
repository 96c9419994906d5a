/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs of the simulator: made, connected, filled with work and judged. It plays the
 * application and the connection manager, and uses nothing but the calls that the verbs layer has.
 */
#ifndef SIM_PAIR_H
#define SIM_PAIR_H

#include "world.h"

#define PAIR_QKEY 0x11111111
#define PAIR_PD	  1
#define PAIR_ACCESS_ALL (MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC)

/*
 * One end: a QP and its CQs. XRC: the initiator has no recv, the target no CQ at all.
 */
struct side {
	struct node *node;
	struct qp *qp;
	struct watched_cq *send, *recv;
	bool borrows_cqs;
};

struct pair {
	struct world *w;
	struct side side[2];
};

/* How both ends are made. Start from pair_defaults(). */
struct pair_options {
	enum xroce_transport transport;
	bool is_ipv6;
	u32 pmtu;
	u8 timeout, retry_cnt, rnr_retry, min_rnr_timer;
	u32 psn[2];		/* of the first packet that each side sends */
	u8 max_rd_atomic, max_dest_rd_atomic;
	u32 max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
	bool sq_sig_all;
	bool one_cq;		/* sends and receives of a side complete in one CQ */
	u32 cq_capacity;
	u32 access;		/* of remote requests, both sides */
	u16 pkey_index[2];	/* of each side */
	u32 pd;
	u32 xrcd;		/* XRC: the target's domain */
	bool xrc_target;	/* XRC: this end is one; pair_connect() makes side 1 the target */
	struct srq *srq[2];
	/* of each node, instead of new ones; owned by the test */
	struct watched_cq *cq[2];
};

struct pair_options pair_defaults(void);

/* Node 0 and node 1 of w, connected and in RTS. */
struct pair pair_connect(struct world *w, const struct pair_options *o);
void pair_destroy(struct pair *p);

/* Its steps, for tests that stop between them. */
struct side side_create(struct node *n, const struct pair_options *o, struct srq *srq);
/* The QP, then its CQs. */
void side_destroy(struct side *s);
void side_init(struct side *s, const struct pair_options *o);
void side_rtr(struct side *s, const struct pair_options *o, u32 peer_node, u32 peer_qpn,
	      u32 rq_psn);
void side_rts(struct side *s, const struct pair_options *o, u32 sq_psn);
/* The attributes and mask of a step from one state to the next, complete for the transport. */
u32 side_attr(const struct pair_options *o, enum qp_state to, struct qp_attr *attr);
int side_state(struct side *s, enum qp_state to);

/* ---- work ---- */

/* A send request, as ibv_post_send(3) would give it. */
struct send {
	u64 wr_id;
	enum wr_opcode opcode;
	u8 flags;
	__be32 imm;
	u32 inv_rkey;
	struct sge sge[4];
	u32 num_sge;
	const void *inline_data;	/* with WR_INLINE, in place of sge */
	u32 inline_len;
	u64 remote_addr;
	u32 rkey;
	u64 compare_add, swap;
	u32 length;			/* FLUSH: the range; ATOMIC WRITE: 8 */
	u32 xrc_srqn;			/* XRC */
	struct {
		u32 mw_key, new_key, lkey, access;
		u64 addr, length;
	} bind;				/* BIND_MW, in place of all that is remote */
	const struct path *path;	/* UD */
	u32 remote_qpn, remote_qkey;
};

/* A signaled request for len bytes, from the start of local to the start of remote or back. */
struct send request_between(const struct buffer *local, const struct buffer *remote, u64 wr_id,
			    enum wr_opcode opcode, u32 len);

/*
 * Post n requests and ring once. Ends the test if send_wqe_check() refuses one or the queue is
 * full.
 */
void post_sends(struct side *s, const struct send *list, u32 n);
void post_send(struct side *s, const struct send *send);
/*
 * Like post_send(), but returns the result of send_wqe_check() and posts only on 0; -1 if the queue
 * is full.
 */
int try_post_send(struct side *s, const struct send *send);
void post_recv(struct side *s, u64 wr_id, const struct sge *sge, u32 num_sge);
void post_recv_buffer(struct side *s, u64 wr_id, const struct buffer *b, u32 offset, u32 len);
void post_srq_recv(struct srq *srq, u64 wr_id, const struct sge *sge, u32 num_sge);

struct srq *world_srq(struct node *n, u32 max_wr);
void world_srq_destroy(struct srq *srq);
/* An XRC SRQ of a domain, known to the engine; its receives complete in c. */
struct srq *world_xrc_srq(struct node *n, u32 max_wr, u32 xrcd, u32 pd, struct watched_cq *c);
void world_xrc_srq_destroy(struct node *n, struct srq *srq);
/* Creates a tag-matching SRQ; completions of its QPs go to c. */
struct srq *world_tag_srq(struct node *n, u32 max_wr, u32 max_tags, u32 max_ops,
			  struct watched_cq *c);
void world_tag_srq_destroy(struct srq *srq);

/* ---- judgement ---- */

/*
 * The nth completion of c is e: wr_id, status, qpn; where it succeeded opcode, byte_len, flags, and
 * imm and src_qpn if they count.
 */
void expect_cqe(struct world *w, const struct watched_cq *c, u32 n, const struct cqe *e,
		const char *file, int line);
#define expect(w, c, n, ...)                                                                       \
	expect_cqe((w), (c), (n), &(struct cqe){ __VA_ARGS__ }, __FILE__, __LINE__)

/* Returns true if the bytes equal buffer_fill(seed)'s. */
bool bytes_are(const u8 *bytes, u32 len, u32 seed);

#endif
