/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Our responder against the kernel's rdma_rxe: the requests of each golden capture go into an
 * engine that stands where the capture's server stood, and what it answers is compared field by
 * field with what rxe answered.
 *
 * Translated on the way in, since both sides choose them at random: the server's QPN and R_Keys.
 * Known differences, and why:
 *   MigReq       1 where rxe has 0: adapters send 1, both accept both (protocol sheet, "RoCEv2
 *                encapsulation")
 *   credits      ours says how many receives are posted, rxe always 31 (not used); the replay turns
 *                ours off
 *   early packets ours are kept until their turn, rxe's are dropped and asked for again; the replay
 *                turns that off
 *   IP id, UDP source port, MAC addresses: any; they come from the path, not from the transport
 *   lost answers a capture with -ackloss lacks answers that were lost before it: ours may have more
 *                there
 *   UC, UD       nothing is answered: the number and length of what arrives is compared with the
 *                requests
 */
#include "pair.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#include "golden.h"

#define MEM_BYTES (1 << 20)
#define PAGE	  4096

struct replay {
	const char *file;
	const struct golden_packet *packets; /* of this file, in order */
	u32 count;
	struct packet p[64];		     /* decoded; pointers into the capture */
	struct world *w;
	struct side s;
	u8 *mem;
	struct mr *mr;
	u64 base;			     /* iova of mem */
	u32 pmtu;
	bool is_ipv6, lossy;
	u8 frame[PACKET_FRAME_MAX];
};

static bool from_client(const struct packet *p)
{
	return p->src.raw[15] == 1;
}

static void parse_all(struct replay *r)
{
	for (u32 i = 0; i < r->count; i++) {
		struct rx_frame f = { .data = r->packets[i].frame, .len = r->packets[i].len };

		assert_int_equal(packet_parse(&r->p[i], &f), 0);
	}
}

/* Nth captured answer that comes after packet i, or NULL. */
static const struct packet *answer_after(const struct replay *r, u32 i)
{
	while (++i < r->count)
		if (!from_client(&r->p[i]))
			return &r->p[i];
	return NULL;
}

/* Memory as the server's was: what its READ and atomic responses show of it. */
static void fill_memory(struct replay *r)
{
	u64 low = UINT64_MAX;

	for (u32 i = 0; i < r->count; i++)
		if (r->p[i].flags & (OP_RETH | OP_ATOMIC_ETH) && r->p[i].va < low)
			low = r->p[i].va;
	r->base = low == UINT64_MAX ? 0 : low & ~(u64)(PAGE - 1);
	r->mem = aligned_alloc(PAGE, MEM_BYTES);
	assert_non_null(r->mem);
	memset(r->mem, 0, MEM_BYTES);
	for (u32 i = 0; i < r->count; i++) {
		const struct packet *q = &r->p[i];

		if (!from_client(q) || !(q->flags & (OP_READ | OP_ATOMIC)))
			continue;
		for (u32 k = r->count - 1; k > i; k--) {
			const struct packet *a = &r->p[k];
			u64 at = q->va - r->base + (u64)(a->psn - q->psn) * r->pmtu;

			if (from_client(a) || a->psn < q->psn)
				continue;
			if (a->flags & OP_READ && q->flags & OP_READ &&
			    at < q->va - r->base + q->dma_len)
				packet_copy_payload(a, 0, r->mem + at, a->payload_len);
		}
	}
	/* The first atomic's result is what was there before all of them. */
	for (u32 i = r->count; i-- > 0;)
		if (r->p[i].flags & OP_ATOMIC && from_client(&r->p[i]) && answer_after(r, i))
			memcpy(r->mem + (r->p[i].va - r->base), &answer_after(r, i)->original, 8);
}

static u8 rnr_code(const struct replay *r)
{
	for (u32 i = 0; i < r->count; i++)
		if (r->p[i].flags & OP_ACK && (r->p[i].syndrome & AETH_CLASS_MASK) == AETH_RNR_NAK)
			return r->p[i].syndrome & AETH_VALUE_MASK;
	return 0;
}

/*
 * The server's first expected PSN: the lowest that the client used, since the very first packet may
 * be one that was lost.
 */
static u32 first_psn(const struct replay *r, u32 psn)
{
	for (u32 i = 0; i < r->count; i++)
		if (from_client(&r->p[i]) && psn_diff(r->p[i].psn, psn) < 0)
			psn = r->p[i].psn;
	return psn;
}

static void set_up(struct replay *r)
{
	struct pair_options o = pair_defaults();
	const struct packet *first = NULL, *answer = NULL;

	for (u32 i = r->count; i-- > 0;)
		if (from_client(&r->p[i]))
			first = &r->p[i];
		else
			answer = &r->p[i];
	assert_non_null(first);
	o.transport = (enum xroce_transport)OPCODE_TRANSPORT(first->opcode);
	o.is_ipv6 = r->is_ipv6;
	o.pmtu = r->pmtu;
	o.min_rnr_timer = rnr_code(r);
	o.max_dest_rd_atomic = 16;
	r->w = world_create_with(
		2, 41,
		&(struct world_options){ .disable = { 0, ENGINE_NO_CREDITS | ENGINE_NO_REORDER } });
	world_label(r->w, "test_golden_replay %s", r->file);
	r->w->node[1].to[0].dead = true;
	r->s = side_create(&r->w->node[1], &o, NULL);
	if (o.transport == XROCE_UD) {
		struct qp_attr attr;
		u32 mask = side_attr(&o, QPS_INIT, &attr);

		attr.qkey = first->qkey;
		assert_int_equal(qp_modify(r->s.node->engine, r->s.qp, &attr, mask, 0), 0);
	} else {
		side_init(&r->s, &o);
	}
	side_rtr(&r->s, &o, 0, answer ? answer->dest_qpn : 1, first_psn(r, first->psn));
	side_rts(&r->s, &o, 0);
	fill_memory(r);
	assert_int_equal(mr_add(engine_mr_table(r->s.node->engine), PAIR_PD, r->mem, MEM_BYTES,
				r->base, PAIR_ACCESS_ALL, &r->mr),
			 0);
}

static void tear_down(struct replay *r)
{
	mr_remove(engine_mr_table(r->s.node->engine), r->mr);
	side_destroy(&r->s);
	world_destroy(r->w);
	free(r->mem);
}

static void deliver_request(struct replay *r, const struct packet *captured)
{
	struct path path = world_path(r->w, 0, 1, r->is_ipv6);
	struct packet p = *captured;
	u8 *payload;

	p.dest_qpn = r->s.qp->qpn;
	if (p.flags & (OP_RETH | OP_ATOMIC_ETH) && !strstr(r->file, "badkey"))
		p.rkey = r->mr->key;
	payload = packet_put_headers(r->frame, &path, &p);
	packet_copy_payload(captured, 0, payload, p.payload_len);
	world_deliver(r->w, 1, r->frame, packet_seal(r->frame, payload, p.payload_len));
	world_settle(r->w);
}

static bool same_answer(const struct packet *ours, const struct packet *rxe)
{
	u8 a[ROCE_PMTU_MAX], b[ROCE_PMTU_MAX];

	if (ours->opcode != rxe->opcode || ours->psn != rxe->psn ||
	    ours->dest_qpn != rxe->dest_qpn || ours->pkey != rxe->pkey || ours->pad != rxe->pad ||
	    ours->tver != rxe->tver || ours->solicited != rxe->solicited ||
	    ours->ackreq != rxe->ackreq || ours->fecn != rxe->fecn || ours->becn != rxe->becn ||
	    ours->syndrome != rxe->syndrome || ours->msn != rxe->msn ||
	    ours->original != rxe->original || ours->payload_len != rxe->payload_len)
		return false;
	if (ours->tos != rxe->tos || ours->hop_limit != rxe->hop_limit ||
	    !gid_equal(&ours->src, &rxe->src) || !gid_equal(&ours->dst, &rxe->dst))
		return false;
	packet_copy_payload(ours, 0, a, ours->payload_len);
	packet_copy_payload(rxe, 0, b, rxe->payload_len);
	return memcmp(a, b, ours->payload_len) == 0;
}

static void show(const char *who, const struct packet *p)
{
	print_error("%-5s %s psn %06x syndrome %02x msn %u payload %u original %llx\n", who,
		    opcode_name(p->opcode), p->psn, p->syndrome, p->msn, p->payload_len,
		    (unsigned long long)p->original);
}

/* Ours must contain rxe's in order, and nothing else, but for answers that the capture lost. */
static void compare_answers(struct replay *r)
{
	u32 n = 0;

	for (u32 i = 0; i < r->count; i++) {
		if (from_client(&r->p[i]))
			continue;
		while (r->lossy && n < r->w->num_sent &&
		       !same_answer(&r->w->sent[n].packet, &r->p[i]))
			n++;
		if (n == r->w->num_sent || !same_answer(&r->w->sent[n].packet, &r->p[i])) {
			show("rxe", &r->p[i]);
			if (n < r->w->num_sent)
				show("ours", &r->w->sent[n].packet);
			world_check(r->w, false, "the same answer as rxe's", __FILE__, __LINE__);
		}
		n++;
	}
	check(r->w, r->lossy || n == r->w->num_sent);
}

/* Does this request, if it is executed, take a receive? */
static bool takes_receive(const struct packet *p)
{
	return (p->flags & OP_SEND && p->flags & OP_START) ||
	       (p->flags & OP_WRITE && p->flags & OP_IMM);
}

static void replay(struct replay *r)
{
	const u32 room = 65536;
	u8 *buffer = malloc(room);
	struct mr *mr;
	u32 messages = 0;

	assert_non_null(buffer);
	parse_all(r);
	set_up(r);
	assert_int_equal(mr_add(engine_mr_table(r->s.node->engine), PAIR_PD, buffer, room,
				(u64)(uintptr_t)buffer, PAIR_ACCESS_ALL, &mr),
			 0);
	for (u32 i = 0; i < r->count; i++) {
		const struct packet *p = &r->p[i], *answer = answer_after(r, i);
		bool not_ready = answer && answer->flags & OP_ACK &&
				 (answer->syndrome & AETH_CLASS_MASK) == AETH_RNR_NAK;

		if (!from_client(p))
			continue;
		/* The server was ready when rxe's answer says so. */
		if (takes_receive(p) && !not_ready && rq_posted(&r->s.qp->rq) == 0) {
			struct sge sge = { .addr = (u64)(uintptr_t)buffer,
					   .length = room,
					   .lkey = mr->key };

			post_recv(&r->s, i, &sge, 1);
		}
		deliver_request(r, p);
		messages += p->flags & OP_END && p->flags & OP_SEND;
	}
	if (r->s.qp->transport != XROCE_RC) {
		check_eq(r->w, r->w->num_sent, 0);
		if (messages)
			check_eq(r->w, r->s.recv->n, messages);
	}
	compare_answers(r);
	mr_remove(engine_mr_table(r->s.node->engine), mr);
	tear_down(r);
	free(buffer);
}

/* One-way captures of vtool and perftest; in the others both sides send requests. */
static bool is_one_way(const char *file)
{
	return !strstr(file, "-cm-") && !strstr(file, "pingpong") && !strstr(file, "-inv");
}

static void replay_all(bool is_ipv6)
{
	struct golden g;
	u32 files = 0;

	assert_int_equal(golden_load(&g), 0);
	for (size_t i = 0; i < g.count;) {
		struct replay *r = calloc(1, sizeof(*r));
		size_t end = i;

		assert_non_null(r);
		while (end < g.count && strcmp(g.packets[end].file, g.packets[i].file) == 0)
			end++;
		r->file = g.packets[i].file;
		r->packets = &g.packets[i];
		r->count = (u32)(end - i);
		r->is_ipv6 = golden_is_ipv6(r->packets);
		r->lossy = strstr(r->file, "ackloss") != NULL;
		r->pmtu = strstr(r->file, "pmtu4096") ? 4096 :
			  strstr(r->file, "pmtu256")  ? 256 :
							1024;
		i = end;
		if (is_one_way(r->file) && r->is_ipv6 == is_ipv6) {
			assert_true(r->count <= ARRAY_SIZE(r->p));
			replay(r);
			files++;
		}
		free(r);
	}
	assert_true(files >= 15); /* the captures are there at all */
	golden_free(&g);
}

static void replay__ipv4(void **state)
{
	replay_all(false);
}

static void replay__ipv6(void **state)
{
	replay_all(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replay__ipv4),
		cmocka_unit_test(replay__ipv6),
	};

	return cmocka_run_group_tests_name("golden_replay", tests, NULL, NULL);
}
