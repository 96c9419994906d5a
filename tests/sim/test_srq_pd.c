/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * An SRQ of another protection domain than the QPs on it: the L_Keys of its receives must be of the
 * SRQ's domain, the R_Keys of what a peer asks for of the QP's.
 */
#include "tag_scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define SRQ_PD 9

struct two_pds {
	struct world *w;
	struct srq *srq;
	struct pair p;
	struct side *a, *b;
	struct path path;
	struct buffer *local, *of_srq, *of_qp;
};

static void two_pds_open(struct two_pds *s, enum xroce_transport transport)
{
	struct pair_options o = pair_defaults();

	*s = (struct two_pds){ .w = world_create(2, 31) };
	world_label(s->w, "test_srq_pd transport %u", transport);
	s->srq = world_srq(&s->w->node[1], 8);
	s->srq->pd = SRQ_PD;
	o.transport = transport;
	o.pmtu = PMTU;
	o.srq[1] = s->srq;
	s->p = pair_connect(s->w, &o);
	s->a = &s->p.side[0];
	s->b = &s->p.side[1];
	s->path = world_path(s->w, 0, 1, false);
	s->local = world_buffer(&s->w->node[0], 4096, PAIR_ACCESS_ALL);
	s->of_srq = world_buffer_pd(&s->w->node[1], 4096, PAIR_ACCESS_ALL, SRQ_PD);
	s->of_qp = world_buffer(&s->w->node[1], 4096, PAIR_ACCESS_ALL);
}

static void two_pds_close(struct two_pds *s)
{
	pair_destroy(&s->p);
	world_srq_destroy(s->srq);
	world_destroy(s->w);
}

static void receive_into(struct two_pds *s, const struct buffer *to)
{
	struct sge sge = buffer_sge(to, 0, 2048);

	post_srq_recv(s->srq, 70, &sge, 1);
}

static void request(struct two_pds *s, enum wr_opcode opcode, const struct buffer *remote, u32 len)
{
	post_send(s->a, &(struct send){ .wr_id = 7,
					.opcode = opcode,
					.flags = WR_SIGNALED,
					.num_sge = 1,
					.sge = { buffer_sge(s->local, 0, len) },
					.remote_addr = buffer_va(remote),
					.rkey = remote->mr->key,
					.path = &s->path,
					.remote_qpn = s->b->qp->qpn,
					.remote_qkey = PAIR_QKEY });
	world_run(s->w);
}

static void receive__has_keys_of_the_srqs_domain(void **state)
{
	static const enum xroce_transport transports[] = { XROCE_RC, XROCE_UC, XROCE_UD };

	for (u32 i = 0; i < ARRAY_SIZE(transports); i++) {
		const u32 grh = transports[i] == XROCE_UD ? 40 : 0, len = grh ? 200 : 2 * PMTU + 9;
		struct two_pds s;

		two_pds_open(&s, transports[i]);
		receive_into(&s, s.of_srq);
		request(&s, WR_SEND, s.of_qp, len);
		expect(s.w, s.b->recv, 0, .wr_id = 70, .opcode = CQE_RECV, .byte_len = grh + len,
		       .flags = grh ? CQE_GRH : 0, .qpn = s.b->qp->qpn, .src_qpn = s.a->qp->qpn);
		check_eq(s.w, s.a->send->log[0].status, CQE_SUCCESS);
		check(s.w, bytes_are(s.of_srq->bytes + grh, len, 0));

		receive_into(&s, s.of_qp);
		request(&s, WR_SEND, s.of_qp, len);
		if (transports[i] != XROCE_UC) { /* there the message is lost */
			check_eq(s.w, s.b->recv->n, 2);
			check_eq(s.w, s.b->recv->log[1].status, CQE_LOC_PROT_ERR);
			check_eq(s.w, s.b->recv->log[1].wr_id, 70);
		}
		check(s.w, bytes_are(s.of_qp->bytes, 4096, 1));
		two_pds_close(&s);
	}
}

static void remote_access__has_keys_of_the_qps_domain(void **state)
{
	struct two_pds s;

	two_pds_open(&s, XROCE_RC);
	receive_into(&s, s.of_srq);
	request(&s, WR_WRITE_WITH_IMM, s.of_qp, 600);
	check_eq(s.w, s.a->send->log[0].status, CQE_SUCCESS);
	check_eq(s.w, s.b->recv->log[0].status, CQE_SUCCESS);
	check(s.w, bytes_are(s.of_qp->bytes, 600, 0));
	request(&s, WR_WRITE, s.of_srq, 600);
	check_eq(s.w, s.a->send->log[1].status, CQE_REM_ACCESS_ERR);
	check(s.w, bytes_are(s.of_srq->bytes, 4096, 1));
	two_pds_close(&s);
}

/* The buffer of a tag is one of the SRQ's, and so is what a rendezvous is fetched into. */
static void tags__have_keys_of_the_srqs_domain(void **state)
{
	struct tag_scene s;
	struct buffer *qps;
	struct send send;

	tag_open(&s, "srq pd");
	qps = s.remote;
	s.srq->pd = SRQ_PD;
	s.remote = world_buffer_pd(&s.w->node[1], 128 * 1024, PAIR_ACCESS_ALL, SRQ_PD);
	post_receives(&s, 0, 1);
	tag_add(&s, 70, 5, UINT64_MAX, 100, 1000, 0);
	tag_add(&s, 71, 6, UINT64_MAX, 2000, 1000, 0);
	tag_add(&s, 72, 7, UINT64_MAX, 4000, 8, 0);
	send_eager(&s, 5, 600);
	expect_match(&s, 0, 70, 5, CQE_TM_MATCH, 0);
	expect_match(&s, 1, 70, 5, CQE_TM_DATA_VALID, 600);
	send = tag_rendezvous(&s, 0, 6, 1024, 900, 0);
	post_send(s.a, &send);
	world_run(s.w);
	check_eq(s.w, s.cq->n, 4);
	expect_match(&s, 2, 71, 6, CQE_TM_MATCH, 900);
	expect_match(&s, 3, 71, 6, CQE_TM_DATA_VALID, 900);
	check(s.w, bytes_are(s.remote->bytes + 2000, 900, 6));
	/* left to the application: only its headers come */
	send = tag_rendezvous(&s, 0, 7, 1024, 900, 0);
	post_send(s.a, &send);
	world_run(s.w);
	check_eq(s.w, s.cq->n, 5);
	check_eq(s.w, s.cq->log[4].status, CQE_TM_RNDV_INCOMPLETE);
	/* the receive, as the message matches nothing */
	send_eager(&s, 9, 500);
	check_eq(s.w, s.cq->n, 6);
	check_eq(s.w, s.cq->log[5].status, CQE_SUCCESS);
	check(s.w, bytes_are(qps->bytes, 128 * 1024, 1));
	tag_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receive__has_keys_of_the_srqs_domain),
		cmocka_unit_test(remote_access__has_keys_of_the_qps_domain),
		cmocka_unit_test(tags__have_keys_of_the_srqs_domain),
	};

	return cmocka_run_group_tests_name("srq_pd", tests, NULL, NULL);
}
