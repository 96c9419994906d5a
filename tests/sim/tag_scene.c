/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tag matching of one SRQ; see tag_scene.h. */
#define _GNU_SOURCE
#include "tag_scene.h"

#include <errno.h>
#include <setjmp.h>
#include <cmocka.h>

#define APP_CTX 0xc0ffee00u

struct pair_options tag_options(void)
{
	struct pair_options o = pair_defaults();

	o.pmtu = PMTU;
	o.max_inline = 0;
	return o;
}

void tag_connect(struct tag_scene *s, struct pair_options *o)
{
	o->srq[1] = s->srq;
	s->p = pair_connect(s->w, o);
	s->a = &s->p.side[0];
	s->b = &s->p.side[1];
	/* for FINs */
	for (u64 i = 0; i < 8; i++)
		post_recv_buffer(s->a, 900 + i, s->local, (u32)(s->local->len - 64 * (i + 1)), 64);
}

void tag_open_with(struct tag_scene *s, const char *name, struct pair_options *o)
{
	*s = (struct tag_scene){ .w = world_create(2, 23) };
	world_label(s->w, "%s %s", program_invocation_short_name, name);
	s->cq = world_cq(&s->w->node[1], 256);
	s->srq = world_tag_srq(&s->w->node[1], 32, MAX_TAGS, MAX_OPS, s->cq);
	s->local = world_buffer(&s->w->node[0], 64 * 1024, PAIR_ACCESS_ALL);
	s->remote = world_buffer(&s->w->node[1], 128 * 1024, PAIR_ACCESS_ALL);
	tag_connect(s, o);
}

void tag_open(struct tag_scene *s, const char *name)
{
	struct pair_options o = tag_options();

	tag_open_with(s, name, &o);
}

void tag_close(struct tag_scene *s)
{
	pair_destroy(&s->p);
	check_eq(s->w, s->srq->users.engines, 0);
	world_tag_srq_destroy(s->srq);
	world_destroy(s->w);
}

int tag_op_post(struct tag_scene *s, struct tag_op *o)
{
	int err = tag_post(s->w->node[1].engine, s->srq, o, s->w->now_ns);

	world_settle(s->w);
	return err;
}

u32 tag_add(struct tag_scene *s, u64 recv_wr_id, u64 tag, u64 mask, u32 offset, u32 n, u32 count)
{
	struct sge sge = buffer_sge(s->remote, offset, n);
	struct tag_op o = { .opcode = TAG_ADD,
			    .flags = TAG_OP_SYNC,
			    .unexpected_cnt = count,
			    .recv_wr_id = recv_wr_id,
			    .tag = tag,
			    .mask = mask,
			    .sge = &sge,
			    .num_sge = 1 };

	check_eq(s->w, tag_op_post(s, &o), 0);
	return o.handle;
}

void post_receives(struct tag_scene *s, u64 first, u64 end)
{
	for (u64 i = first; i < end; i++) {
		struct sge sge = buffer_sge(s->remote, RECEIVES + (u32)i * RECEIVE, RECEIVE);

		post_srq_recv(s->srq, i, &sge, 1);
	}
}

struct send tag_message(struct tag_scene *s, u32 at, u8 opcode, u64 tag, u32 len)
{
	struct tmh h = { .opcode = opcode,
			 .app_ctx = htobe32(APP_CTX + (u32)tag),
			 .tag = htobe64(tag) };

	memcpy(s->local->bytes + at, &h, sizeof(h));
	buffer_fill(s->local->bytes + at + sizeof(h), len, (u32)tag);
	return (struct send){ .wr_id = at, .opcode = WR_SEND, .flags = WR_SIGNALED, .num_sge = 1,
			      .sge = { buffer_sge(s->local, at, (u32)sizeof(h) + len) } };
}

void send_eager(struct tag_scene *s, u64 tag, u32 len)
{
	struct send send = tag_message(s, 0, TMH_EAGER, tag, len);

	post_send(s->a, &send);
	world_run(s->w);
}

struct send tag_rendezvous(struct tag_scene *s, u32 at, u64 tag, u32 data, u32 len, u32 extra)
{
	struct send send = tag_message(s, at, TMH_RNDV, tag, (u32)sizeof(struct rvh) + extra);
	struct rvh v = { .va = htobe64(buffer_va(s->local) + data),
			 .rkey = htobe32(s->local->mr->key),
			 .len = htobe32(len) };

	memcpy(s->local->bytes + at + sizeof(struct tmh), &v, sizeof(v));
	buffer_fill(s->local->bytes + data, len, (u32)tag);
	return send;
}

void expect_match(struct tag_scene *s, u32 n, u64 wr_id, u64 tag, u16 flags, u32 byte_len)
{
	expect(s->w, s->cq, n, .wr_id = wr_id, .opcode = CQE_TM_RECV, .byte_len = byte_len,
	       .flags = flags, .qpn = s->b->qp->qpn, .src_qpn = s->a->qp->qpn);
	check_eq(s->w, s->cq->log[n].tm_tag, flags & CQE_TM_MATCH ? tag : 0);
	check_eq(s->w, s->cq->log[n].tm_priv, flags & CQE_TM_MATCH ? (u32)(APP_CTX + tag) : 0);
}

void expect_fin(struct tag_scene *s, u32 n, u64 tag, u32 data, u32 len)
{
	const struct tmh h = { .opcode = TMH_FIN,
			       .app_ctx = htobe32(APP_CTX + (u32)tag),
			       .tag = htobe64(tag) };
	const struct rvh v = { .va = htobe64(buffer_va(s->local) + data),
			       .rkey = htobe32(s->local->mr->key),
			       .len = htobe32(len) };
	const u8 *got = s->local->bytes + s->local->len - 64 * (n + 1);

	expect(s->w, s->a->recv, n, .wr_id = 900 + n, .opcode = CQE_RECV, .byte_len = 32,
	       .qpn = s->a->qp->qpn, .src_qpn = s->b->qp->qpn);
	check(s->w, memcmp(got, &h, sizeof(h)) == 0);
	check(s->w, memcmp(got + sizeof(h), &v, sizeof(v)) == 0);
}
