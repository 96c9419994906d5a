/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Multicast groups: each attached QP gets its own copy, the sender's too, and no other QP gets one;
 * a packet that one member cannot take reaches the others.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define SENDER 0
#define QPS    6 /* 0 sends; 1 and 2 are on its node, 3 and 4 on the next, 5 on the third */

struct groups {
	struct world *w;
	struct pair_options o;
	struct side side[QPS];
	struct buffer *local, *memory[QPS];
	struct path path;
	struct gid address;
};

static u32 node_of(u32 i)
{
	return i < 3 ? 0 : i < 5 ? 1 : 2;
}

static struct gid group_address(bool is_ipv6, u8 last)
{
	struct gid g = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [15] = last } };

	if (is_ipv6)
		g = (struct gid){ .raw = { 0xff, 0x0e, [15] = last } };
	return g;
}

static void path_to(struct groups *s, const struct gid *address)
{
	s->path = world_path(s->w, 0, 1, s->o.is_ipv6);
	s->path.peer = *address;
	memset(s->path.dmac, 0, sizeof(s->path.dmac));
	s->path.dmac[0] = 0x33;
}

static struct groups groups_make(const char *name, bool is_ipv6)
{
	struct groups s = { .w = world_create(3, 23),
			    .o = pair_defaults(),
			    .address = group_address(is_ipv6, 1) };

	world_label(s.w, "test_group %s, ipv%u", name, is_ipv6 ? 6 : 4);
	s.o.transport = XROCE_UD;
	s.o.is_ipv6 = is_ipv6;
	for (u32 i = 0; i < QPS; i++) {
		struct node *n = &s.w->node[node_of(i)];

		s.side[i] = side_create(n, &s.o, NULL);
		side_init(&s.side[i], &s.o);
		side_rtr(&s.side[i], &s.o, 0, 0, 0);
		side_rts(&s.side[i], &s.o, 0x1000);
		s.memory[i] = world_buffer(n, 8192, PAIR_ACCESS_ALL);
	}
	s.local = world_buffer(&s.w->node[0], 8192, PAIR_ACCESS_ALL);
	path_to(&s, &s.address);
	return s;
}

static void groups_end(struct groups *s)
{
	for (u32 i = 0; i < QPS; i++)
		side_destroy(&s->side[i]);
	world_destroy(s->w);
}

static int attach(struct groups *s, u32 i, const struct gid *address)
{
	return group_attach(s->side[i].node->engine, s->side[i].qp, address, s->w->now_ns);
}

static int detach(struct groups *s, u32 i, const struct gid *address)
{
	return group_detach(s->side[i].node->engine, s->side[i].qp, address);
}

static struct send datagram(struct groups *s, u64 wr_id, u32 len)
{
	return (struct send){ .wr_id = wr_id,
			      .opcode = WR_SEND_WITH_IMM,
			      .imm = htobe32(0x5eed),
			      .flags = WR_SIGNALED,
			      .num_sge = 1,
			      .sge = { buffer_sge(s->local, 0, len) },
			      .path = &s->path,
			      .remote_qpn = ROCE_MULTICAST_QPN,
			      .remote_qkey = PAIR_QKEY };
}

static void send_to_group(struct groups *s, u64 wr_id, u32 len)
{
	struct send send = datagram(s, wr_id, len);

	post_send(&s->side[SENDER], &send);
	world_run(s->w);
}

static void post_receives(struct groups *s, u32 len)
{
	for (u32 i = 0; i < QPS; i++) {
		memset(s->memory[i]->bytes, 0xee, 8192);
		post_recv_buffer(&s->side[i], 100 + i, s->memory[i], 0, len);
	}
}

/* The nth completion of a member's receives is this message, whole. */
static void expect_copy(struct groups *s, u32 i, u32 n, u32 len)
{
	expect(s->w, s->side[i].recv, n, .wr_id = 100 + i, .opcode = CQE_RECV,
	       .byte_len = ROCE_GRH_BYTES + len, .qpn = s->side[i].qp->qpn,
	       .src_qpn = s->side[SENDER].qp->qpn, .flags = CQE_GRH | CQE_WITH_IMM,
	       .imm = htobe32(0x5eed));
	check_eq(s->w, s->side[i].recv->n, n + 1);
	check(s->w, bytes_are(s->memory[i]->bytes + ROCE_GRH_BYTES, len, 0));
	/* the GRH says to which group it came */
	check(s->w, !memcmp(s->memory[i]->bytes + 36, s->address.raw + 12, 4));
}

static void each_member_has_a_copy(bool is_ipv6)
{
	struct groups s = groups_make("copies", is_ipv6);

	check_eq(s.w, attach(&s, 0, &s.address), 0);
	check_eq(s.w, attach(&s, 1, &s.address), 0);
	check_eq(s.w, attach(&s, 3, &s.address), 0);
	check_eq(s.w, attach(&s, 4, &s.address), 0);
	check_eq(s.w, group_members(s.w->node[0].engine, &s.address), 2);
	for (u32 len = 0; len <= 4096; len += 1024) {
		post_receives(&s, 4096 + ROCE_GRH_BYTES);
		send_to_group(&s, 7, len);
		expect(s.w, s.side[SENDER].send, len / 1024, .wr_id = 7, .opcode = CQE_SEND,
		       .byte_len = len, .qpn = s.side[SENDER].qp->qpn);
		/* one packet for all of them */
		check_eq(s.w, s.w->num_sent, len / 1024 + 1);
		check_eq(s.w, s.w->sent[len / 1024].packet.dest_qpn, ROCE_MULTICAST_QPN);
		expect_copy(&s, 0, len / 1024, len);
		expect_copy(&s, 1, len / 1024, len);
		expect_copy(&s, 3, len / 1024, len);
		expect_copy(&s, 4, len / 1024, len);
		check_eq(s.w, s.side[2].recv->n, 0);
		check_eq(s.w, s.side[5].recv->n, 0);
	}
	/* a node without members drops it, once each */
	check_eq(s.w, s.w->node[2].drops.qp_unknown, 5);
	groups_end(&s);
}

static void copies__one_a_member(void **state)
{
	each_member_has_a_copy(false);
	each_member_has_a_copy(true);
}

/* ibv_attach_mcast(3): attached several times, a QP has a single copy all the same. */
static void attach__twice_is_once(void **state)
{
	struct groups s = groups_make("twice", false);

	check_eq(s.w, attach(&s, 3, &s.address), 0);
	check_eq(s.w, attach(&s, 3, &s.address), 0);
	post_receives(&s, 200);
	post_receives(&s, 200);
	send_to_group(&s, 1, 64);
	expect_copy(&s, 3, 0, 64);
	check_eq(s.w, detach(&s, 3, &s.address), 0);
	check_eq(s.w, detach(&s, 3, &s.address), -EINVAL);
	send_to_group(&s, 2, 64);
	check_eq(s.w, s.side[3].recv->n, 1);
	groups_end(&s);
}

static void attach__only_ud_to_groups(void **state)
{
	struct groups s = groups_make("refused", false);
	struct gid broadcast = group_address(false, 0), other;
	struct pair_options o = pair_defaults();
	struct side rc = side_create(&s.w->node[1], &o, NULL);

	check_eq(s.w, group_attach(s.w->node[1].engine, rc.qp, &s.address, 0), -EINVAL);
	side_destroy(&rc);
	memset(broadcast.raw + 12, 0xff, 4);
	check_eq(s.w, attach(&s, 3, &broadcast), -EINVAL);
	/* the first and the last of class D, and their neighbours */
	for (u32 i = 0; i < 256; i++) {
		other = s.address;
		other.raw[12] = (u8)i;
		check_eq(s.w, attach(&s, 3, &other), i >= 224 && i < 240 ? 0 : -EINVAL);
	}
	other = (struct gid){ .raw = { 0xfe, 0x80, [12] = 239 } };
	check_eq(s.w, attach(&s, 3, &other), -EINVAL);
	check_eq(s.w, s.side[3].qp->groups, 16);
	check_eq(s.w, detach(&s, 3, &other), -EINVAL);
	/* a QP that goes leaves them all */
	groups_end(&s);
}

static void attach__limits(void **state)
{
	struct groups s = groups_make("limits", true);
	struct gid address = s.address;
	struct side member[GROUP_MEMBERS_MAX];

	for (u32 i = 0; i < GROUP_MAX; i++) {
		address.raw[14] = (u8)(i >> 4);
		address.raw[15] = (u8)(i & 15);
		check_eq(s.w, attach(&s, 3, &address), 0);
	}
	address.raw[13] = 1;
	check_eq(s.w, attach(&s, 3, &address), -ENOMEM);
	check_eq(s.w, group_members(s.w->node[1].engine, &address), 0);
	/* an existing group takes more members */
	for (u32 i = 0; i < GROUP_MEMBERS_MAX; i++) {
		member[i] = side_create(&s.w->node[1], &s.o, NULL);
		check_eq(s.w,
			 group_attach(s.w->node[1].engine, member[i].qp, &s.address, 0),
			 i < GROUP_MEMBERS_MAX - 1 ? 0 : -ENOMEM);
	}
	for (u32 i = 0; i < GROUP_MEMBERS_MAX; i++)
		side_destroy(&member[i]);
	check_eq(s.w, group_members(s.w->node[1].engine, &s.address), 1);
	group_detach_all(s.w->node[1].engine, s.side[3].qp);
	check_eq(s.w, s.side[3].qp->groups, 0);
	check(s.w, !group_any(s.w->node[1].engine));
	check_eq(s.w, attach(&s, 3, &address), 0);
	groups_end(&s);
}

static void groups__are_apart(void **state)
{
	struct groups s = groups_make("two groups", false);
	struct gid other = group_address(false, 2), mapped = group_address(true, 1);

	check_eq(s.w, attach(&s, 3, &s.address), 0);
	check_eq(s.w, attach(&s, 3, &other), 0);
	check_eq(s.w, attach(&s, 4, &other), 0);
	/* the addresses' last bytes are alike */
	check_eq(s.w, attach(&s, 5, &mapped), 0);
	post_receives(&s, 200);
	send_to_group(&s, 1, 50);
	expect_copy(&s, 3, 0, 50);
	check_eq(s.w, s.side[4].recv->n, 0);
	check_eq(s.w, s.side[5].recv->n, 0);
	check_eq(s.w, detach(&s, 3, &other), 0);
	path_to(&s, &other);
	s.address = other;
	send_to_group(&s, 2, 60);
	expect_copy(&s, 4, 0, 60);
	check_eq(s.w, s.side[3].recv->n, 1);
	groups_end(&s);
}

/* Each member's Q_Key, state and receive queue decide for its own copy. */
static void member__may_refuse_its_copy(void **state)
{
	struct groups s = groups_make("one refuses", false);
	struct pair_options o = s.o;
	struct side waiting = side_create(&s.w->node[1], &o, NULL);
	struct qp_attr attr = { .qkey = PAIR_QKEY + 1 };
	struct send send;

	check_eq(s.w, attach(&s, 3, &s.address), 0);
	check_eq(s.w, attach(&s, 4, &s.address), 0);
	check_eq(s.w, group_attach(s.w->node[1].engine, waiting.qp, &s.address, 0), 0);
	post_recv_buffer(&s.side[4], 104, s.memory[4], 0, 200);
	/* no receive; success; not ready: two packets' drop reasons, and one taken */
	send_to_group(&s, 1, 64);
	expect_copy(&s, 4, 0, 64);
	check_eq(s.w, s.side[3].recv->n, 0);
	check_eq(s.w, s.w->node[1].drops.no_receive, 1);
	check_eq(s.w, s.w->node[1].drops.qp_state, 1);
	check_eq(s.w, s.w->node[1].stats.rx_packets, 1);
	/* all refuse: each for its reason */
	check_eq(s.w, qp_modify(s.w->node[1].engine, s.side[4].qp, &attr, QP_ATTR_QKEY, 0), 0);
	send_to_group(&s, 2, 64);
	check_eq(s.w, s.w->node[1].drops.no_receive, 2);
	check_eq(s.w, s.w->node[1].drops.qp_state, 2);
	check_eq(s.w, s.w->node[1].drops.qkey, 1);
	side_destroy(&waiting);
	/* a receive that is too short ends its QP, and no other */
	attr.qkey = PAIR_QKEY;
	check_eq(s.w, qp_modify(s.w->node[1].engine, s.side[4].qp, &attr, QP_ATTR_QKEY, 0), 0);
	post_recv_buffer(&s.side[3], 103, s.memory[3], 0, 50);
	post_recv_buffer(&s.side[4], 104, s.memory[4], 0, 200);
	send_to_group(&s, 3, 64);
	expect_copy(&s, 4, 1, 64);
	check_eq(s.w, qp_state(s.side[3].qp), QPS_ERR);
	check_eq(s.w, s.w->node[1].drops.receive_short, 1);
	/* to the group's address, but a QP's own number: that one's alone */
	send = datagram(&s, 4, 64);
	send.remote_qpn = s.side[4].qp->qpn;
	post_recv_buffer(&s.side[4], 104, s.memory[4], 0, 200);
	post_send(&s.side[SENDER], &send);
	world_run_for(s.w, 100 * NSEC_PER_MSEC);
	expect_copy(&s, 4, 2, 64);
	groups_end(&s);
}

/* A packet that is not whole, or is no datagram, belongs to no member. */
static void packet__is_checked_once(void **state)
{
	struct groups s = groups_make("damaged", false);
	struct node *n = &s.w->node[1];
	struct packet p = { .opcode = OPCODE(XROCE_UC, OP5_SEND_ONLY),
			    .migreq = true,
			    .pkey = 0xffff,
			    .dest_qpn = ROCE_MULTICAST_QPN };
	u8 frame[PACKET_FRAME_MAX];
	u32 len;

	check_eq(s.w, attach(&s, 3, &s.address), 0);
	check_eq(s.w, attach(&s, 4, &s.address), 0);
	post_receives(&s, 200);
	len = packet_seal(frame, packet_put_headers(frame, &s.path, &p), 0);
	check_eq(s.w, world_deliver(s.w, 1, frame, len), XROCE_DROP_qp_transport);
	p.opcode = OPCODE_CNP;
	len = packet_seal(frame, packet_put_headers(frame, &s.path, &p), 0);
	check_eq(s.w, world_deliver(s.w, 1, frame, len), XROCE_DROP_qp_transport);
	p.opcode = OPCODE_CREDIT_PROBE;
	len = packet_seal(frame, packet_put_headers(frame, &s.path, &p), 0);
	check_eq(s.w, world_deliver(s.w, 1, frame, len), XROCE_DROP_qp_transport);
	p.opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY);
	p.qkey = PAIR_QKEY;
	len = packet_seal(frame, packet_put_headers(frame, &s.path, &p), 0);
	frame[len - 1] ^= 1;
	check_eq(s.w, world_deliver(s.w, 1, frame, len), XROCE_DROP_icrc);
	check_eq(s.w, n->drops.icrc, 1);
	world_settle(s.w);
	check_eq(s.w, s.side[3].recv->n + s.side[4].recv->n, 0);
	frame[len - 1] ^= 1;
	check_eq(s.w, world_deliver(s.w, 1, frame, len), XROCE_DROP_none);
	world_settle(s.w);
	check_eq(s.w, s.side[3].recv->n, 1);
	check_eq(s.w, s.side[4].recv->n, 1);
	groups_end(&s);
}

/* Members are engine number 0's, which every other leaves packets to; later they may move again. */
static void engines__the_first_has_all_members(void **state)
{
	struct world_options options = { .num_engines = 3 };
	struct world *w = world_create_with(2, 29, &options);
	struct pair_options o = pair_defaults();
	struct gid address = group_address(false, 1);
	struct side side[3];
	struct buffer *b;

	world_label(w, "test_group engines");
	o.transport = XROCE_UD;
	b = world_buffer(&w->node[1], 8192, PAIR_ACCESS_ALL);
	for (u32 i = 0; i < 3; i++) {
		side[i] = side_create(&w->node[1], &o, NULL);
		side_init(&side[i], &o);
		side_rtr(&side[i], &o, 0, 0, 0);
		check_eq(w, engine_number(qp_engine(side[i].qp)), i);
		check_eq(w, group_attach(w->node[1].engine, side[i].qp, &address, 0), 0);
		check_eq(w, engine_number(qp_engine(side[i].qp)), 0);
		check(w, !engine_may_move(side[i].qp));
		post_recv_buffer(&side[i], i, b, i * 100, 100);
	}
	for (u32 i = 0; i < 8; i++) {
		struct packet p = { .opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY), .migreq = true,
				    .pkey = 0xffff, .qkey = PAIR_QKEY,
				    .dest_qpn = ROCE_MULTICAST_QPN };
		struct path path = world_path(w, 0, 1, false);
		u8 frame[PACKET_FRAME_MAX];
		struct engine_frame f = { .frame.data = frame };
		u64 away = 0;

		path.peer = address;
		f.frame.len = packet_seal(frame, packet_put_headers(frame, &path, &p), 0);
		check_eq(w, engine_input_batch(w->node[1].engines[1 + i % 2], &f, 1, 0, &away), 0);
		check_eq(w, away, 1);
		if (!i)
			check_eq(w, world_deliver(w, 1, frame, f.frame.len), XROCE_DROP_none);
	}
	world_settle(w);
	for (u32 i = 0; i < 3; i++)
		check_eq(w, side[i].recv->n, 1);
	check_eq(w, group_detach(w->node[1].engine, side[1].qp, &address), 0);
	check(w, engine_may_move(side[1].qp));
	check(w, !engine_may_move(side[2].qp));
	for (u32 i = 0; i < 3; i++)
		side_destroy(&side[i]);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies__one_a_member),
		cmocka_unit_test(attach__twice_is_once),
		cmocka_unit_test(attach__only_ud_to_groups),
		cmocka_unit_test(attach__limits),
		cmocka_unit_test(groups__are_apart),
		cmocka_unit_test(member__may_refuse_its_copy),
		cmocka_unit_test(packet__is_checked_once),
		cmocka_unit_test(engines__the_first_has_all_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
