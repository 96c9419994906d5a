/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * UD: one packet a message, 40 bytes of GRH in front, Q_Keys, and datagrams that no QP can take.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

static struct scene scene_make(const char *name, bool is_ipv6)
{
	struct world *w = world_create(3, 17);
	struct pair_options o = pair_defaults();

	world_label(w, "test_ud %s, ipv%u", name, is_ipv6 ? 6 : 4);
	o.transport = XROCE_UD;
	o.is_ipv6 = is_ipv6;
	return scene_in(w, &o, 8192);
}

static void end_in_silence(struct scene *s)
{
	check_eq(s->w, s->b->node->stats.tx_packets, 0);
	scene_end(s);
}

static struct send datagram(struct scene *s, u64 wr_id, u32 len)
{
	return (struct send){ .wr_id = wr_id,
			      .opcode = WR_SEND,
			      .flags = WR_SIGNALED,
			      .num_sge = 1,
			      .sge = { buffer_sge(s->local, 0, len) },
			      .path = &s->path,
			      .remote_qpn = s->b->qp->qpn,
			      .remote_qkey = PAIR_QKEY };
}

static void sizes(bool is_ipv6, bool imm)
{
	static const u32 sizes[] = { 0, 1, 2, 3, 4, 100, 1023, 3800, 4095, 4096 };
	struct scene s = scene_make("sizes", is_ipv6);

	for (u32 i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct send send = datagram(&s, i, sizes[i]);
		const struct sent_frame *f;

		send.opcode = imm ? WR_SEND_WITH_IMM : WR_SEND;
		send.imm = htobe32(0xdead0000 + i);
		memset(s.remote->bytes, 0xee, 8192);
		post_recv_buffer(s.b, 100 + i, s.remote, 8, 40 + sizes[i]); /* it just fits */
		post_send(s.a, &send);
		world_run(s.w);
		expect(s.w, s.a->send, i, .wr_id = i, .opcode = CQE_SEND, .byte_len = sizes[i],
		       .qpn = s.a->qp->qpn);
		expect(s.w, s.b->recv, i, .wr_id = 100 + i, .opcode = CQE_RECV,
		       .byte_len = 40 + sizes[i], .qpn = s.b->qp->qpn, .src_qpn = s.a->qp->qpn,
		       .flags = CQE_GRH | (imm ? CQE_WITH_IMM : 0), .imm = htobe32(0xdead0000 + i));
		check_eq(s.w, s.b->recv->n, i + 1);
		check_eq(s.w, s.b->recv->log[i].sl, is_ipv6 ? CQE_SL_IPV6 : CQE_SL_IPV4);
		check(s.w, bytes_are(s.remote->bytes + 48, sizes[i], 0));
		check(s.w, s.remote->bytes[7] == 0xee && s.remote->bytes[48 + sizes[i]] == 0xee);
		/*
		 * The GRH is the packet's own IP header: IPv6 as a whole, IPv4 in the second half.
		 */
		f = world_sent(s.w, 0, imm ? OP5_SEND_ONLY_IMM : OP5_SEND_ONLY, i);
		check(s.w, f && f->packet.src_qpn == s.a->qp->qpn && f->packet.qkey == PAIR_QKEY &&
				   !f->packet.ackreq);
		check_eq(s.w, f->packet.psn, 0x1000 + i);
		if (is_ipv6)
			check(s.w, memcmp(s.remote->bytes + 8, f->packet.ip, 40) == 0);
		else
			check(s.w, memcmp(s.remote->bytes + 28, f->packet.ip, 20) == 0);
	}
	check_eq(s.w, s.a->send->n, ARRAY_SIZE(sizes));
	end_in_silence(&s);
}

static void send__every_size(void **state)
{
	sizes(false, false);
	sizes(true, false);
}

static void send_imm__every_size(void **state)
{
	sizes(false, true);
	sizes(true, true);
}

static void grh__may_be_split_over_sges(void **state)
{
	struct scene s = scene_make("split GRH", false);
	struct send send = datagram(&s, 1, 100);
	struct sge sge[3] = { buffer_sge(s.remote, 0, 25), buffer_sge(s.remote, 1000, 20),
			      buffer_sge(s.remote, 2000, 200) };

	post_recv(s.b, 1, sge, 3);
	post_send(s.a, &send);
	world_run(s.w);
	expect(s.w, s.b->recv, 0, .wr_id = 1, .opcode = CQE_RECV, .byte_len = 140,
	       .qpn = s.b->qp->qpn, .src_qpn = s.a->qp->qpn, .flags = CQE_GRH);
	check(s.w, memcmp(s.remote->bytes + 20, s.w->sent[0].packet.ip, 5) == 0);
	check(s.w, memcmp(s.remote->bytes + 1000, s.w->sent[0].packet.ip + 5, 15) == 0);
	check(s.w, memcmp(s.remote->bytes + 1015, s.local->bytes, 5) == 0);
	check(s.w, memcmp(s.remote->bytes + 2000, s.local->bytes + 5, 95) == 0);
	end_in_silence(&s);
}

static void qkey__must_match(void **state)
{
	struct scene s = scene_make("qkey", false);
	struct send send = datagram(&s, 1, 10);

	post_recv_buffer(s.b, 5, s.remote, 0, 200);
	send.remote_qkey = PAIR_QKEY + 1;
	post_send(s.a, &send);
	world_run(s.w);
	check_eq(s.w, s.b->recv->n, 0);
	check_eq(s.w, s.b->node->drops.qkey, 1);
	/* It was sent; its delivery is unknown. */
	expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_SEND, .byte_len = 10,
	       .qpn = s.a->qp->qpn);
	/* The top bit asks for the QP's own. */
	send.wr_id = 2;
	send.remote_qkey = 0x80000001;
	post_send(s.a, &send);
	world_run(s.w);
	check_eq(s.w, world_sent(s.w, 0, OP5_SEND_ONLY, 1)->packet.qkey, PAIR_QKEY);
	expect(s.w, s.b->recv, 0, .wr_id = 5, .opcode = CQE_RECV, .byte_len = 50,
	       .qpn = s.b->qp->qpn, .src_qpn = s.a->qp->qpn, .flags = CQE_GRH);
	end_in_silence(&s);
}

/* A datagram without a receive is dropped without a report, and the next is taken. */
static void receive__missing_is_counted(void **state)
{
	struct scene s = scene_make("no receive", false);
	struct send send = datagram(&s, 1, 60);

	post_send(s.a, &send);
	world_run(s.w);
	check_eq(s.w, s.b->node->drops.no_receive, 1);
	check_eq(s.w, s.b->recv->n, 0);
	check_eq(s.w, qp_state(s.b->qp), QPS_RTS);
	post_recv_buffer(s.b, 5, s.remote, 0, 100);
	post_send(s.a, &send);
	world_run(s.w);
	check_eq(s.w, s.b->recv->n, 1);
	expect(s.w, s.b->recv, 0, .wr_id = 5, .opcode = CQE_RECV, .byte_len = 100,
	       .qpn = s.b->qp->qpn, .src_qpn = s.a->qp->qpn, .flags = CQE_GRH);
	end_in_silence(&s);
}

/*
 * A receive that is too short for the datagram and its GRH ends in error, as on adapters, and the
 * others are flushed.
 */
/* A mark is counted; the sender of a datagram has no rate that a CNP would cut. */
static void mark__is_counted(void **state)
{
	for (u32 is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		struct scene s = scene_make("mark", is_ipv6);
		struct send send = datagram(&s, 1, 100);

		for (u32 i = 0; i < 3; i++) {
			/* ECN-capable, marked, not ECN-capable */
			s.path.tos = (u8)((s.path.tos & ~3u) | (i == 0 ? 2 : i == 1 ? 3 : 0));
			post_recv_buffer(s.b, i, s.remote, 0, 140);
			post_send(s.a, &send);
			world_run(s.w);
			check_eq(s.w, s.b->recv->n, i + 1);
			check_eq(s.w, s.b->node->stats.rx_ce, i >= 1);
			check_eq(s.w, s.b->qp->stat->rx_ce, i >= 1);
		}
		end_in_silence(&s);
	}
}

static void receive__too_short_is_an_error(void **state)
{
	struct scene s = scene_make("short receive", false);
	struct send send = datagram(&s, 1, 61);

	memset(s.remote->bytes, 0xee, 8192);
	post_recv_buffer(s.b, 5, s.remote, 0, 100); /* 40 + 61 do not fit */
	post_recv_buffer(s.b, 6, s.remote, 0, 100);
	post_send(s.a, &send);
	world_run(s.w);
	check_eq(s.w, s.b->node->drops.receive_short, 1);
	check_eq(s.w, s.remote->bytes[0], 0xee);
	check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
	check_eq(s.w, s.b->recv->n, 2);
	expect(s.w, s.b->recv, 0, .wr_id = 5, .status = CQE_LOC_LEN_ERR, .opcode = CQE_RECV,
	       .vendor_err = VERR_RECV_TOO_SHORT, .qpn = s.b->qp->qpn);
	expect(s.w, s.b->recv, 1, .wr_id = 6, .status = CQE_WR_FLUSH_ERR, .opcode = CQE_RECV,
	       .vendor_err = VERR_FLUSHED, .qpn = s.b->qp->qpn);
	/* and the sender knows nothing of it */
	expect(s.w, s.a->send, 0, .wr_id = 1, .opcode = CQE_SEND, .byte_len = 61,
	       .qpn = s.a->qp->qpn);
	check_eq(s.w, qp_state(s.a->qp), QPS_RTS);
	end_in_silence(&s);
}

static void send__longer_than_the_mtu(void **state)
{
	struct scene s = scene_make("too long", false);
	struct send send = datagram(&s, 1, 4097);

	post_send(s.a, &send);
	world_run(s.w);
	check_eq(s.w, s.w->num_sent, 0);
	check_eq(s.w, s.a->send->n, 1);
	expect(s.w, s.a->send, 0, .wr_id = 1, .status = CQE_LOC_LEN_ERR,
	       .vendor_err = VERR_TOO_LONG, .qpn = s.a->qp->qpn);
	check_eq(s.w, qp_state(s.a->qp), QPS_SQE);
	check_eq(s.w, world_events(s.a->node, EVENT_QP_STATE, s.a->qp), 1);
	check_eq(s.w, side_state(s.a, QPS_RTS), 0);
	send = datagram(&s, 2, 10);
	post_recv_buffer(s.b, 5, s.remote, 0, 200);
	post_send(s.a, &send);
	world_run(s.w);
	expect(s.w, s.a->send, 1, .wr_id = 2, .opcode = CQE_SEND, .byte_len = 10,
	       .qpn = s.a->qp->qpn);
	check_eq(s.w, s.b->recv->n, 1);
	end_in_silence(&s);
}

/* One QP, many peers: each datagram goes where its own path says. */
static void send__each_its_own_path(void **state)
{
	struct scene s = scene_make("own path", false);
	struct pair_options o = pair_defaults();
	struct side c;
	struct buffer *there = world_buffer(&s.w->node[2], 4096, PAIR_ACCESS_ALL);

	o.transport = XROCE_UD;
	c = side_create(&s.w->node[2], &o, NULL);
	side_init(&c, &o);
	side_rtr(&c, &o, 0, 0, 0);
	for (u32 i = 0; i < 10; i++) {
		struct send send = datagram(&s, i, 10 + i);
		struct path path = world_path(s.w, 0, 1 + i % 2, i % 3 == 0);

		send.path = &path;
		send.remote_qpn = i % 2 ? c.qp->qpn : s.b->qp->qpn;
		if (i % 2)
			post_recv_buffer(&c, i, there, 0, 100);
		else
			post_recv_buffer(s.b, i, s.remote, 0, 100);
		post_send(s.a, &send);
	}
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 10);
	check_eq(s.w, s.b->recv->n, 5);
	check_eq(s.w, c.recv->n, 5);
	for (u32 i = 0; i < 10; i++) {
		struct side *to = i % 2 ? &c : s.b;

		expect(s.w, to->recv, i / 2, .wr_id = i, .opcode = CQE_RECV, .byte_len = 50 + i,
		       .qpn = to->qp->qpn, .src_qpn = s.a->qp->qpn, .flags = CQE_GRH);
	}
	side_destroy(&c);
	end_in_silence(&s);
}

/* Lost, repeated and late datagrams: each one that arrives is whole, in a separate receive. */
static void faults__are_the_applications(void **state)
{
	struct scene s = scene_make("faults", true);
	u64 dropped = 0;

	s.a->node->to[1] =
		(struct faults){ .drop = 0x11, .duplicate = 0x22, .hold = 0x44, .corrupt = 0x88 };
	for (u32 i = 0; i < 20; i++)
		post_recv_buffer(s.b, i, s.remote, i * 200, 200);
	for (u32 i = 0; i < 8; i++) {
		struct send send = datagram(&s, i, 10 + i);

		send.opcode = WR_SEND_WITH_IMM;
		send.imm = htobe32(i);
		post_send(s.a, &send);
	}
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 8);
	check_eq(s.w, s.b->recv->n, 2 * 2 + 2);
	/* whatever byte was damaged */
	for (u32 i = 0; i < sizeof(s.b->node->drops) / sizeof(u64); i++)
		dropped += ((const u64 *)&s.b->node->drops)[i];
	check_eq(s.w, dropped, 2);
	check(s.w, s.b->node->drops.icrc > 0);
	for (u32 i = 0; i < s.b->recv->n; i++) {
		const struct cqe *e = &s.b->recv->log[i];

		check_eq(s.w, e->wr_id, i);
		check_eq(s.w, e->byte_len, 50 + be32toh(e->imm));
		check(s.w, bytes_are(s.remote->bytes + i * 200 + 40, e->byte_len - 40, 0));
	}
	end_in_silence(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__every_size),
		cmocka_unit_test(send_imm__every_size),
		cmocka_unit_test(grh__may_be_split_over_sges),
		cmocka_unit_test(qkey__must_match),
		cmocka_unit_test(receive__missing_is_counted),
		cmocka_unit_test(mark__is_counted),
		cmocka_unit_test(receive__too_short_is_an_error),
		cmocka_unit_test(send__longer_than_the_mtu),
		cmocka_unit_test(send__each_its_own_path),
		cmocka_unit_test(faults__are_the_applications),
	};

	return cmocka_run_group_tests_name("ud", tests, NULL, NULL);
}
