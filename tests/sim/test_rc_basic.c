/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * RC on a link that loses nothing: every operation, at every size where a packet begins or ends,
 * for every path MTU.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define BIG 65536

static const u32 pmtus[] = { 256, 512, 1024, 2048, 4096 };

static u32 sizes(u32 pmtu, u32 *size)
{
	const u32 list[] = { 0, 1, 2, 3, 4, pmtu - 1, pmtu, pmtu + 1, 3 * pmtu + 5, BIG };

	memcpy(size, list, sizeof(list));
	return ARRAY_SIZE(list);
}

static struct scene scene_make(const struct pair_options *o, const char *name)
{
	struct world *w = world_create(2, 1);

	world_label(w, "test_rc_basic %s, pmtu %u, ipv%u", name, o->pmtu, o->is_ipv6 ? 6 : 4);
	return scene_in(w, o, BIG);
}

static u32 packets(u32 len, u32 pmtu)
{
	return len ? (len + pmtu - 1) / pmtu : 1;
}

/* Both ends are drained and in RTS, and nothing was sent twice. */
static void check_quiet(struct scene *s)
{
	check_eq(s->w, qp_state(s->a->qp), QPS_RTS);
	check_eq(s->w, qp_state(s->b->qp), QPS_RTS);
	check_eq(s->w, s->a->node->stats.tx_retransmitted, 0);
	check_eq(s->w, s->a->node->stats.timeouts, 0);
	check_eq(s->w, s->b->recv->n + s->a->send->n > 0, 1);
}

static void send_sizes(bool imm, bool is_ipv6)
{
	for (u32 m = 0; m < ARRAY_SIZE(pmtus); m++) {
		struct pair_options o = pair_defaults();
		struct scene s;
		u32 size[16], n = sizes(pmtus[m], size);

		o.pmtu = pmtus[m];
		o.is_ipv6 = is_ipv6;
		s = scene_make(&o, imm ? "send_imm" : "send");
		for (u32 i = 0; i < n; i++) {
			memset(s.remote->bytes, 0xee, BIG);
			world_forget_sent(s.w);
			post_recv_buffer(s.b, 100 + i, s.remote, 0, BIG);
			post_send(s.a, &(struct send){ .wr_id = 200 + i,
						       .opcode = imm ? WR_SEND_WITH_IMM : WR_SEND,
						       .flags = WR_SIGNALED,
						       .imm = htobe32(0x01020304 + i),
						       .sge = { buffer_sge(s.local, 0, size[i]) },
						       .num_sge = 1 });
			world_run(s.w);
			check_eq(s.w, s.a->send->n, i + 1);
			check_eq(s.w, s.b->recv->n, i + 1);
			expect(s.w, s.a->send, i, .wr_id = 200 + i, .opcode = CQE_SEND,
			       .byte_len = size[i], .qpn = s.a->qp->qpn);
			expect(s.w, s.b->recv, i, .wr_id = 100 + i, .opcode = CQE_RECV,
			       .byte_len = size[i], .qpn = s.b->qp->qpn,
			       .flags = imm ? CQE_WITH_IMM : 0, .imm = htobe32(0x01020304 + i),
			       .src_qpn = s.a->qp->qpn);
			check(s.w, bytes_are(s.remote->bytes, size[i], 0));
			check(s.w, size[i] == BIG || s.remote->bytes[size[i]] == 0xee);
			check_eq(s.w,
				 world_count_sent(s.w, 0, OP5_SEND_FIRST) +
					 world_count_sent(s.w, 0, OP5_SEND_MIDDLE) +
					 world_count_sent(s.w, 0, OP5_SEND_LAST) +
					 world_count_sent(s.w, 0, OP5_SEND_LAST_IMM) +
					 world_count_sent(s.w, 0, OP5_SEND_ONLY) +
					 world_count_sent(s.w, 0, OP5_SEND_ONLY_IMM),
				 packets(size[i], pmtus[m]));
		}
		check_eq(s.w, s.a->recv->n, 0);
		check_eq(s.w, s.b->send->n, 0);
		check_quiet(&s);
		scene_end(&s);
	}
}

static void send__every_size_and_pmtu(void **state)
{
	send_sizes(false, false);
	send_sizes(false, true);
}

static void send_imm__every_size_and_pmtu(void **state)
{
	send_sizes(true, false);
}

static void write_sizes(bool imm)
{
	for (u32 m = 0; m < ARRAY_SIZE(pmtus); m++) {
		struct pair_options o = pair_defaults();
		struct scene s;
		u32 size[16], n = sizes(pmtus[m], size);

		o.pmtu = pmtus[m];
		s = scene_make(&o, imm ? "write_imm" : "write");
		for (u32 i = 0; i < n; i++) {
			u32 at = size[i] == BIG ? 0 : 7; /* an odd address */

			memset(s.remote->bytes, 0xee, BIG);
			if (imm)
				post_recv(s.b, 100 + i, NULL, 0);
			post_send(s.a, &(struct send){ .wr_id = 200 + i,
						       .opcode = imm ? WR_WRITE_WITH_IMM : WR_WRITE,
						       .flags = WR_SIGNALED,
						       .imm = htobe32(0xa0b0c0d0 + i),
						       .sge = { buffer_sge(s.local, 0, size[i]) },
						       .num_sge = 1,
						       .remote_addr = buffer_va(s.remote) + at,
						       .rkey = s.remote->mr->key });
			world_run(s.w);
			check_eq(s.w, s.a->send->n, i + 1);
			check_eq(s.w, s.b->recv->n, imm ? i + 1 : 0);
			expect(s.w, s.a->send, i, .wr_id = 200 + i, .opcode = CQE_WRITE,
			       .byte_len = size[i], .qpn = s.a->qp->qpn);
			if (imm)
				expect(s.w, s.b->recv, i, .wr_id = 100 + i,
				       .opcode = CQE_RECV_WITH_IMM, .byte_len = size[i],
				       .qpn = s.b->qp->qpn, .flags = CQE_WITH_IMM,
				       .imm = htobe32(0xa0b0c0d0 + i), .src_qpn = s.a->qp->qpn);
			check(s.w, bytes_are(s.remote->bytes + at, size[i], 0));
			check(s.w, at == 0 || (s.remote->bytes[at - 1] == 0xee &&
					       s.remote->bytes[at + size[i]] == 0xee));
		}
		check_quiet(&s);
		scene_end(&s);
	}
}

static void write__every_size_and_pmtu(void **state)
{
	write_sizes(false);
}

static void write_imm__every_size_and_pmtu(void **state)
{
	write_sizes(true);
}

/* A long READ may go out as several requests; together they ask for every byte once. */
static u32 read_bytes_asked(const struct world *w)
{
	const struct sent_frame *f;
	u32 bytes = 0;

	for (u32 i = 0; (f = world_sent(w, 0, OP5_READ_REQUEST, i)); i++)
		bytes += f->packet.dma_len;
	return bytes;
}

static void read__every_size_and_pmtu(void **state)
{
	for (u32 m = 0; m < ARRAY_SIZE(pmtus); m++) {
		struct pair_options o = pair_defaults();
		struct scene s;
		u32 size[16], n = sizes(pmtus[m], size);

		o.pmtu = pmtus[m];
		s = scene_make(&o, "read");
		for (u32 i = 0; i < n; i++) {
			memset(s.local->bytes, 0xee, BIG);
			world_forget_sent(s.w);
			scene_post(&s, 200 + i, WR_READ, size[i]);
			world_run(s.w);
			check_eq(s.w, s.a->send->n, i + 1);
			expect(s.w, s.a->send, i, .wr_id = 200 + i, .opcode = CQE_READ,
			       .byte_len = size[i], .qpn = s.a->qp->qpn);
			check(s.w, bytes_are(s.local->bytes, size[i], 1));
			check(s.w, size[i] == BIG || s.local->bytes[size[i]] == 0xee);
			check_eq(s.w, s.b->recv->n, 0);
			check_eq(s.w, read_bytes_asked(s.w), size[i]);
			check_eq(s.w,
				 world_count_sent(s.w, 1, OP5_READ_RESPONSE_FIRST) +
					 world_count_sent(s.w, 1, OP5_READ_RESPONSE_MIDDLE) +
					 world_count_sent(s.w, 1, OP5_READ_RESPONSE_LAST) +
					 world_count_sent(s.w, 1, OP5_READ_RESPONSE_ONLY),
				 packets(size[i], pmtus[m]));
		}
		check_quiet(&s);
		scene_end(&s);
	}
}

static void atomics__results_and_memory(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "atomics");
	u64 start = 0x1122334455667788, value, old;

	memcpy(s.remote->bytes + 8, &start, 8);
	post_send(s.a, &(struct send){ .wr_id = 1,
				       .opcode = WR_FETCH_ADD,
				       .flags = WR_SIGNALED,
				       .sge = { buffer_sge(s.local, 0, 8) },
				       .num_sge = 1,
				       .remote_addr = buffer_va(s.remote) + 8,
				       .rkey = s.remote->mr->key,
				       .compare_add = 0xffffffff00000001 });
	world_run(s.w);
	expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_FETCH_ADD, .byte_len = 8,
	       .qpn = s.a->qp->qpn);
	memcpy(&old, s.local->bytes, 8);
	memcpy(&value, s.remote->bytes + 8, 8);
	check_eq(s.w, old, start);
	check_eq(s.w, value, start + 0xffffffff00000001);

	start = value;
	post_send(s.a, &(struct send){ .wr_id = 2,
				       .opcode = WR_CMP_SWAP,
				       .flags = WR_SIGNALED,
				       .sge = { buffer_sge(s.local, 0, 8) },
				       .num_sge = 1,
				       .remote_addr = buffer_va(s.remote) + 8,
				       .rkey = s.remote->mr->key,
				       .compare_add = start,
				       .swap = 0x0102030405060708 });
	/* The second compares with the old value. */
	post_send(s.a, &(struct send){ .wr_id = 3,
				       .opcode = WR_CMP_SWAP,
				       .flags = WR_SIGNALED,
				       .sge = { buffer_sge(s.local, 8, 8) },
				       .num_sge = 1,
				       .remote_addr = buffer_va(s.remote) + 8,
				       .rkey = s.remote->mr->key,
				       .compare_add = start,
				       .swap = 99 });
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 3);
	expect(s.w, s.a->send, 1, .wr_id = 2, .opcode = CQE_COMP_SWAP, .byte_len = 8,
	       .qpn = s.a->qp->qpn);
	expect(s.w, s.a->send, 2, .wr_id = 3, .opcode = CQE_COMP_SWAP, .byte_len = 8,
	       .qpn = s.a->qp->qpn);
	memcpy(&old, s.local->bytes, 8);
	check_eq(s.w, old, start);
	memcpy(&old, s.local->bytes + 8, 8);
	check_eq(s.w, old, 0x0102030405060708);
	memcpy(&value, s.remote->bytes + 8, 8);
	check_eq(s.w, value, 0x0102030405060708);
	check_quiet(&s);
	scene_end(&s);
}

static void sge__lists_on_both_sides(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;
	struct sge gather[3], scatter[4];
	u32 cut;

	o.pmtu = 256;
	s = scene_make(&o, "sge lists");
	/*
	 * 1500 bytes from three pieces, one of them empty, into four; no cut falls on a packet's
	 * edge.
	 */
	gather[0] = buffer_sge(s.local, 0, 301);
	gather[1] = buffer_sge(s.local, 9000, 0);
	gather[2] = buffer_sge(s.local, 301, 1199);
	scatter[0] = buffer_sge(s.remote, 4096, 100);
	scatter[1] = buffer_sge(s.remote, 0, 0);
	scatter[2] = buffer_sge(s.remote, 1000, 700);
	scatter[3] = buffer_sge(s.remote, 8000, 5000);
	memset(s.remote->bytes, 0xee, BIG);
	post_recv(s.b, 7, scatter, 4);
	post_send(s.a, &(struct send){ .wr_id = 8,
				       .opcode = WR_SEND,
				       .flags = WR_SIGNALED,
				       .num_sge = 3,
				       .sge = { gather[0], gather[1], gather[2] } });
	world_run(s.w);
	expect(s.w, s.b->recv, 0, .wr_id = 7, .opcode = CQE_RECV, .byte_len = 1500,
	       .qpn = s.b->qp->qpn);
	check(s.w, memcmp(s.remote->bytes + 4096, s.local->bytes, 100) == 0);
	check(s.w, memcmp(s.remote->bytes + 1000, s.local->bytes + 100, 700) == 0);
	check(s.w, memcmp(s.remote->bytes + 8000, s.local->bytes + 800, 700) == 0);
	check(s.w, s.remote->bytes[0] == 0xee && s.remote->bytes[4196] == 0xee &&
			   s.remote->bytes[1700] == 0xee && s.remote->bytes[8700] == 0xee);

	/* A READ scatters as well. */
	buffer_fill(s.remote->bytes, BIG, 1);
	cut = 777;
	post_send(s.a, &(struct send){ .wr_id = 9,
				       .opcode = WR_READ,
				       .flags = WR_SIGNALED,
				       .num_sge = 2,
				       .sge = { buffer_sge(s.local, 0, cut),
						buffer_sge(s.local, 20000, 1500 - cut) },
				       .remote_addr = buffer_va(s.remote) + 3,
				       .rkey = s.remote->mr->key });
	world_run(s.w);
	expect(s.w, s.a->send, 1, .wr_id = 9, .opcode = CQE_READ, .byte_len = 1500,
	       .qpn = s.a->qp->qpn);
	check(s.w, memcmp(s.local->bytes, s.remote->bytes + 3, cut) == 0);
	check(s.w, memcmp(s.local->bytes + 20000, s.remote->bytes + 3 + cut, 1500 - cut) == 0);
	check_quiet(&s);
	scene_end(&s);
}

static void inline__needs_no_key(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;
	u8 data[200];

	o.pmtu = 256;
	s = scene_make(&o, "inline");
	buffer_fill(data, sizeof(data), 5);
	post_recv_buffer(s.b, 1, s.remote, 0, 1000);
	post_send(s.a, &(struct send){ .wr_id = 2,
				       .opcode = WR_SEND,
				       .flags = WR_SIGNALED | WR_INLINE,
				       .inline_data = data,
				       .inline_len = sizeof(data) });
	post_send(s.a, &(struct send){ .wr_id = 3,
				       .opcode = WR_WRITE,
				       .flags = WR_SIGNALED | WR_INLINE,
				       .inline_data = data,
				       .inline_len = 13,
				       .remote_addr = buffer_va(s.remote) + 2000,
				       .rkey = s.remote->mr->key });
	memset(data, 0, sizeof(data)); /* the caller's again at once */
	world_run(s.w);
	expect(s.w, s.b->recv, 0, .wr_id = 1, .opcode = CQE_RECV, .byte_len = 200,
	       .qpn = s.b->qp->qpn);
	expect(s.w, s.a->send, 1, .wr_id = 3, .opcode = CQE_WRITE, .byte_len = 13,
	       .qpn = s.a->qp->qpn);
	check(s.w, bytes_are(s.remote->bytes, 200, 5));
	check(s.w, bytes_are(s.remote->bytes + 2000, 13, 5));
	scene_end(&s);
}

static void unsignaled__completes_silently(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "unsignaled");

	/* three times round the queue: silent ones free their slots */
	for (u32 i = 0; i < 200; i++) {
		post_recv_buffer(s.b, i, s.remote, 0, 64);
		post_send(s.a, &(struct send){ .wr_id = i,
					       .opcode = WR_SEND,
					       .flags = i % 5 == 4 ? WR_SIGNALED : 0,
					       .sge = { buffer_sge(s.local, i, 64) },
					       .num_sge = 1 });
		world_run(s.w);
	}
	check_eq(s.w, s.a->send->n, 40);
	check_eq(s.w, s.b->recv->n, 200);
	for (u32 i = 0; i < 40; i++)
		expect(s.w, s.a->send, i, .wr_id = i * 5 + 4, .opcode = CQE_SEND, .byte_len = 64,
		       .qpn = s.a->qp->qpn);
	scene_end(&s);
}

static void sq_sig_all__completes_all(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.sq_sig_all = true;
	s = scene_make(&o, "sq_sig_all");
	for (u32 i = 0; i < 10; i++)
		post_send(s.a, &(struct send){ .wr_id = i,
					       .opcode = WR_WRITE,
					       .sge = { buffer_sge(s.local, 0, 64) },
					       .num_sge = 1,
					       .remote_addr = buffer_va(s.remote),
					       .rkey = s.remote->mr->key });
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 10);
	for (u32 i = 0; i < 10; i++)
		expect(s.w, s.a->send, i, .wr_id = i, .opcode = CQE_WRITE, .byte_len = 64,
		       .qpn = s.a->qp->qpn);
	scene_end(&s);
}

static void psn__wraps(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.pmtu = 256;
	o.psn[0] = 0xfffffd;
	o.psn[1] = 0xffffff;
	s = scene_make(&o, "psn wrap");
	for (u32 i = 0; i < 3; i++) {
		memset(s.remote->bytes, 0, 2000);
		post_recv_buffer(s.b, i, s.remote, 0, 2000);
		scene_post(&s, 10 + i, WR_SEND, 700);
		post_send(s.a, &(struct send){ .wr_id = 20 + i,
					       .opcode = WR_READ,
					       .flags = WR_SIGNALED,
					       .sge = { buffer_sge(s.local, 5000, 1000) },
					       .num_sge = 1,
					       .remote_addr = buffer_va(s.remote) + 5000,
					       .rkey = s.remote->mr->key });
		world_run(s.w);
		check(s.w, bytes_are(s.remote->bytes, 700, 0));
		check(s.w, memcmp(s.local->bytes + 5000, s.remote->bytes + 5000, 1000) == 0);
		expect(s.w, s.a->send, 2 * i, .wr_id = 10 + i, .opcode = CQE_SEND, .byte_len = 700,
		       .qpn = s.a->qp->qpn);
		expect(s.w, s.a->send, 2 * i + 1, .wr_id = 20 + i, .opcode = CQE_READ,
		       .byte_len = 1000, .qpn = s.a->qp->qpn);
	}
	/* 3 SEND packets and a READ of 4 responses a round: 7 PSNs each. */
	check_eq(s.w, world_sent(s.w, 0, OP5_SEND_FIRST, 0)->packet.psn, 0xfffffd);
	check_eq(s.w, world_sent(s.w, 0, OP5_SEND_LAST, 0)->packet.psn, 0xffffff);
	check_eq(s.w, world_sent(s.w, 0, OP5_READ_REQUEST, 0)->packet.psn, 0);
	check_eq(s.w, world_sent(s.w, 0, OP5_SEND_FIRST, 1)->packet.psn, 4);
	check_quiet(&s);
	scene_end(&s);
}

static void order__many_in_flight_both_ways(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.one_cq = true;
	s = scene_make(&o, "both ways");
	for (u32 i = 0; i < 40; i++) {
		post_recv_buffer(s.a, 100 + i, s.local, 30000 + i * 300, 300);
		post_recv_buffer(s.b, 100 + i, s.remote, 30000 + i * 300, 300);
	}
	for (u32 i = 0; i < 40; i++) {
		post_send(s.a, &(struct send){ .wr_id = i,
					       .opcode = WR_SEND,
					       .flags = WR_SIGNALED,
					       .sge = { buffer_sge(s.local, i * 300, 1 + i * 7) },
					       .num_sge = 1 });
		post_send(s.b, &(struct send){ .wr_id = i,
					       .opcode = WR_SEND,
					       .flags = WR_SIGNALED,
					       .sge = { buffer_sge(s.remote, i * 300, 1 + i * 5) },
					       .num_sge = 1 });
	}
	world_run(s.w);
	for (u32 side = 0; side < 2; side++) {
		struct side *me = side ? s.b : s.a;
		u32 sent = 0, received = 0;

		check_eq(s.w, me->send->n, 80);
		for (u32 i = 0; i < 80; i++) {
			const struct cqe *e = &me->send->log[i];

			if (e->opcode == CQE_SEND) {
				expect(s.w, me->send, i, .wr_id = sent, .opcode = CQE_SEND,
				       .byte_len = 1 + sent * (side ? 5 : 7), .qpn = me->qp->qpn);
				sent++;
			} else {
				expect(s.w, me->send, i, .wr_id = 100 + received,
				       .opcode = CQE_RECV,
				       .byte_len = 1 + received * (side ? 7 : 5),
				       .qpn = me->qp->qpn);
				received++;
			}
		}
		check_eq(s.w, sent, 40);
		check_eq(s.w, received, 40);
	}
	for (u32 i = 0; i < 40; i++)
		check(s.w, memcmp(s.remote->bytes + 30000 + i * 300, s.local->bytes + i * 300,
				  1 + i * 7) == 0);
	scene_end(&s);
}

static void fence__waits_for_reads(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "fence");
	u32 order = 0;

	scene_post(&s, 1, WR_READ, 5000);
	post_send(s.a, &(struct send){ .wr_id = 2,
				       .opcode = WR_WRITE,
				       .flags = WR_SIGNALED | WR_FENCE,
				       .sge = { buffer_sge(s.local, 0, 5000) },
				       .num_sge = 1,
				       .remote_addr = buffer_va(s.remote) + 10000,
				       .rkey = s.remote->mr->key });
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 2);
	/*
	 * It wrote the bytes that had been read, and sent none before the last response came.
	 */
	check(s.w, bytes_are(s.remote->bytes + 10000, 5000, 1));
	for (u32 i = 0; i < s.w->num_sent; i++) {
		const struct sent_frame *f = &s.w->sent[i];

		if (f->packet.opcode == OPCODE(XROCE_RC, OP5_READ_RESPONSE_LAST))
			order = i;
		if (f->packet.opcode == OPCODE(XROCE_RC, OP5_WRITE_FIRST))
			check(s.w, order && s.w->sent[i].time_ns >=
						    s.w->sent[order].time_ns + s.w->latency_ns);
	}
	scene_end(&s);
}

static void max_rd_atomic__is_kept(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;
	s32 outstanding = 0, most = 0;

	o.max_rd_atomic = 3;
	o.max_dest_rd_atomic = 3;
	s = scene_make(&o, "max_rd_atomic");
	for (u32 i = 0; i < 20; i++)
		post_send(s.a, &(struct send){ .wr_id = i,
					       .opcode = WR_READ,
					       .flags = WR_SIGNALED,
					       .num_sge = 1,
					       .sge = { buffer_sge(s.local, i * 100, 100) },
					       .remote_addr = buffer_va(s.remote) + i * 100,
					       .rkey = s.remote->mr->key });
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 20);
	for (u32 i = 0; i < 20; i++)
		expect(s.w, s.a->send, i, .wr_id = i, .opcode = CQE_READ, .byte_len = 100,
		       .qpn = s.a->qp->qpn);
	check(s.w, bytes_are(s.local->bytes, 2000, 1));
	for (u32 i = 0; i < s.w->num_sent; i++) {
		u8 low = s.w->sent[i].packet.opcode & 0x1f;

		outstanding += low == OP5_READ_REQUEST ? 1 : low == OP5_READ_RESPONSE_ONLY ? -1 : 0;
		most = outstanding > most ? outstanding : most;
	}
	check(s.w, most <= 3 && most > 1);
	scene_end(&s);
}

/*
 * A READ's remote address needs no alignment to packets, and zero-based and chosen addresses count
 * from the region's own base.
 */
static void iova__is_the_callers(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "iova");
	struct mr *zero_based, *far;

	assert_int_equal(mr_add(engine_mr_table(s.b->node->engine), PAIR_PD, s.remote->bytes + 100,
				1000, 0, PAIR_ACCESS_ALL, &zero_based),
			 0);
	assert_int_equal(mr_add(engine_mr_table(s.b->node->engine), PAIR_PD, s.remote->bytes + 2000,
				1000, 0xffff000000000000, PAIR_ACCESS_ALL, &far),
			 0);
	post_send(s.a, &(struct send){ .wr_id = 1,
				       .opcode = WR_WRITE,
				       .flags = WR_SIGNALED,
				       .sge = { buffer_sge(s.local, 0, 1000) },
				       .num_sge = 1,
				       .remote_addr = 0,
				       .rkey = zero_based->key });
	post_send(s.a, &(struct send){ .wr_id = 2,
				       .opcode = WR_WRITE,
				       .flags = WR_SIGNALED,
				       .sge = { buffer_sge(s.local, 0, 990) },
				       .num_sge = 1,
				       .remote_addr = 0xffff00000000000a,
				       .rkey = far->key });
	world_run(s.w);
	expect(s.w, s.a->send, 1, .wr_id = 2, .opcode = CQE_WRITE, .byte_len = 990,
	       .qpn = s.a->qp->qpn);
	check(s.w, bytes_are(s.remote->bytes + 100, 1000, 0));
	check(s.w, bytes_are(s.remote->bytes + 2010, 990, 0));
	mr_remove(engine_mr_table(s.b->node->engine), zero_based);
	mr_remove(engine_mr_table(s.b->node->engine), far);
	scene_end(&s);
}

/*
 * A region of ibv_reg_mr(3) cannot be invalidated from afar: it is refused, and the key still
 * works.
 */
static void send_inv__refused_for_a_region(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make(&o, "send_inv");

	post_recv_buffer(s.b, 1, s.remote, 200, 100);
	post_send(s.a, &(struct send){ .wr_id = 2,
				       .opcode = WR_SEND_WITH_INV,
				       .flags = WR_SIGNALED,
				       .inv_rkey = s.remote->mr->key,
				       .sge = { buffer_sge(s.local, 0, 50) },
				       .num_sge = 1 });
	world_run(s.w);
	check_eq(s.w, world_sent(s.w, 0, OP5_SEND_ONLY_INV, 0)->packet.inv_rkey, s.remote->mr->key);
	check_eq(s.w, s.a->send->n, 1);
	expect(s.w, s.a->send, 0, .wr_id = 2, .status = CQE_REM_ACCESS_ERR, .qpn = s.a->qp->qpn);
	check(s.w, s.b->recv->n == 1 && s.b->recv->log[0].status != CQE_SUCCESS);
	check(s.w, mr_find(engine_mr_table(s.b->node->engine), s.remote->mr->key) == s.remote->mr);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__every_size_and_pmtu),
		cmocka_unit_test(send_imm__every_size_and_pmtu),
		cmocka_unit_test(write__every_size_and_pmtu),
		cmocka_unit_test(write_imm__every_size_and_pmtu),
		cmocka_unit_test(read__every_size_and_pmtu),
		cmocka_unit_test(atomics__results_and_memory),
		cmocka_unit_test(sge__lists_on_both_sides),
		cmocka_unit_test(inline__needs_no_key),
		cmocka_unit_test(unsignaled__completes_silently),
		cmocka_unit_test(sq_sig_all__completes_all),
		cmocka_unit_test(psn__wraps),
		cmocka_unit_test(order__many_in_flight_both_ways),
		cmocka_unit_test(fence__waits_for_reads),
		cmocka_unit_test(max_rd_atomic__is_kept),
		cmocka_unit_test(iova__is_the_callers),
		cmocka_unit_test(send_inv__refused_for_a_region),
	};

	return cmocka_run_group_tests_name("rc_basic", tests, NULL, NULL);
}
