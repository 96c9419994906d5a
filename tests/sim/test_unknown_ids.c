/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Packets from UDP sockets, whose IPv4 identification is unknown: which errors the ICRC detects
 * before and after a connected QP knows that its peer uses low identifications, and that peers with
 * others go on.
 */
#include "../../user/engine/icrc.h"
#include "../../user/engine/internal.h"
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU  1024
#define BYTES (4 * PMTU)
#define ETH   14u
/* bytes of an IPv4 packet after the identification */
#define TAIL(len) ((len) - ETH - ICRC_BEFORE_TAIL - ROCE_ICRC_BYTES)
#define KNOWN	  ICRC_PEER_ZEROES

static struct scene scene_of(enum xroce_transport transport)
{
	struct world *w = world_create_with(2, 31, &(struct world_options){ .unknown_ids = true });
	struct pair_options o = pair_defaults();

	o.transport = transport;
	o.pmtu = PMTU;
	o.psn[0] = 0xfffffe; /* the sequence passes 0 */
	world_label(w, "test_unknown_ids, transport %d", transport);
	return scene_in(w, &o, BYTES);
}

/* Makes a frame for `to` as from its peer's host, with identification 0; returns its length. */
static u32 make_frame(struct scene *s, const struct side *to, struct packet p, u32 len, u8 *frame)
{
	struct path path = world_path(s->w, !to->node->index, to->node->index, false);
	u8 *at;

	p.dest_qpn = to->qp->qpn;
	p.pkey = ROCE_DEFAULT_PKEY;
	p.payload_len = len;
	p.migreq = true;
	at = packet_put_headers(frame, &path, &p);
	buffer_fill(at, len, 7);
	return packet_seal(frame, at, len);
}

/* Gives the frame the ICRC of another identification, which a socket does not show. */
static void identify(u8 *frame, u32 len, u16 id)
{
	icrc_flip(frame + len - ROCE_ICRC_BYTES, icrc_id_change_once(TAIL(len), id));
}

/* Makes a WRITE of len bytes with the PSN that b expects. */
static u32 make_write(struct scene *s, u32 len, u8 *frame)
{
	struct packet p = { .opcode = OPCODE(s->o.transport, OP5_WRITE_ONLY),
			    .psn = s->b->qp->resp.seq.expected_psn };

	p.va = buffer_va(s->remote);
	p.rkey = s->remote->mr->key;
	p.dma_len = len;
	return make_frame(s, s->b, p, len, frame);
}

/* Delivers a WRITE to b with this identification; returns whether it was executed. */
static bool write_as(struct scene *s, u16 id)
{
	const u32 psn = s->b->qp->resp.seq.expected_psn;
	u8 frame[PACKET_FRAME_MAX];
	u32 len = make_write(s, 64, frame);

	identify(frame, len, id);
	world_deliver(s->w, 1, frame, len);
	world_settle(s->w);
	return s->b->qp->resp.seq.expected_psn != psn;
}

static void make_known(struct scene *s)
{
	for (u32 i = 0; i < KNOWN; i++)
		check(s->w, write_as(s, 0));
}

static bool is_masked(u32 byte)
{
	return byte == 1 || byte == 8 || byte == 10 || byte == 11 || byte == 26 || byte == 27 ||
	       byte == 32;
}

/* The fields that the receiver of a socket writes itself. */
static bool is_unseen(u32 byte)
{
	return byte >= 4 && byte < 8;
}

/* Delivers a WRITE with each bit wrong in turn; returns how many of them are accepted. */
static u32 accepted_errors(struct scene *s)
{
	u8 frame[PACKET_FRAME_MAX];
	u32 n = 0;
	u32 len = make_write(s, 1000, frame);

	for (u32 bit = 0; bit < (len - ETH) * 8; bit++) {
		const u32 psn = s->b->qp->resp.seq.expected_psn;

		if (is_masked(bit / 8) || is_unseen(bit / 8))
			continue;
		frame[ETH + bit / 8] ^= (u8)(1u << bit % 8);
		n += world_deliver(s->w, 1, frame, len) == XROCE_DROP_none;
		frame[ETH + bit / 8] ^= (u8)(1u << bit % 8);
		if (s->b->qp->resp.seq.expected_psn != psn)
			len = make_write(s, 1000, frame);
	}
	world_settle(s->w);
	return n;
}

static void known__refuses_each_single_bit(void **state)
{
	static const enum xroce_transport transports[] = { XROCE_RC, XROCE_UC };

	for (u32 i = 0; i < ARRAY_SIZE(transports); i++) {
		struct scene s = scene_of(transports[i]);

		check_eq(s.w, accepted_errors(&s), 1); /* bit 3 of byte 201 */
		make_known(&s);
		check_eq(s.w, accepted_errors(&s), 0);
		for (u16 id = 0; id < ICRC_LOW_IDS; id++)
			check(s.w, write_as(&s, id));
		check(s.w, !write_as(&s, ICRC_LOW_IDS));
		check(s.w, write_as(&s, 0));
		scene_end(&s);
	}
}

/*
 * A super-packet is cut as if the sender's identifications were the length of a segment and up:
 * those of a socket's are 0 and up, and the kernel may have joined several.
 */
static void known__takes_super_packets(void **state)
{
	struct scene s = scene_of(XROCE_UC);

	make_known(&s);
	for (u32 code = 1; code < ARRAY_SIZE(roce_segment_of_code); code++)
		for (u32 i = 0; i < 64; i++) {
			const u32 bytes = roce_segment_of_code[code], cut = bytes + i;

			check(s.w, write_as(&s, (u16)(cut ^ i)));
			check(s.w, write_as(&s, (u16)(cut ^ (63 - i))));
			check(s.w, write_as(&s, (u16)(cut ^ (bytes + 63 - i))));
		}
	scene_end(&s);
}

/* ACKs are a kind of their own: the peer's requests say nothing of its responses. */
static void known__refuses_each_single_bit_of_an_ack(void **state)
{
	struct scene s = scene_of(XROCE_RC);
	struct packet p = { .opcode = OPCODE(XROCE_RC, OP5_ACKNOWLEDGE),
			    .syndrome = AETH_ACK | AETH_CREDIT_NONE };
	u8 frame[PACKET_FRAME_MAX];
	u32 len;

	for (u32 i = 0; i < KNOWN + 1; i++) {
		scene_post(&s, i, WR_WRITE, 64);
		world_run(s.w);
	}
	s.w->node[1].to[0].dead = true;
	scene_post(&s, KNOWN + 1, WR_WRITE, 64);
	world_settle(s.w);
	p.psn = s.a->qp->req.unacked_psn;
	len = make_frame(&s, s.a, p, 0, frame);
	for (u32 bit = 0; bit < (len - ETH) * 8; bit++) {
		if (is_masked(bit / 8) || is_unseen(bit / 8))
			continue;
		frame[ETH + bit / 8] ^= (u8)(1u << bit % 8);
		check(s.w, world_deliver(s.w, 0, frame, len) != XROCE_DROP_none);
		frame[ETH + bit / 8] ^= (u8)(1u << bit % 8);
	}
	identify(frame, len, ICRC_LOW_IDS);
	check_eq(s.w, world_deliver(s.w, 0, frame, len), XROCE_DROP_icrc);
	identify(frame, len, ICRC_LOW_IDS);
	check_eq(s.w, s.a->qp->req.unacked_psn, p.psn);
	check_eq(s.w, world_deliver(s.w, 0, frame, len), XROCE_DROP_none);
	check_eq(s.w, s.a->qp->req.unacked_psn, psn_add(p.psn, 1));
	scene_end(&s);
}

/* As of rdma_rxe: random ones, and a counter that passes all low ones. */
static void others__go_on(void **state)
{
	struct scene s = scene_of(XROCE_RC);

	for (u32 i = 0; i < 4000; i++)
		check(s.w, write_as(&s, (u16)rng_next(&s.w->rng)));
	for (u32 i = 0; i < 3 * 65536; i++)
		check(s.w, write_as(&s, (u16)(i + 1)));
	scene_end(&s);
}

/* Packets that are not the peer's next ones, with identification 0, do not make it known. */
static void others__are_not_made_known_by_strangers(void **state)
{
	struct scene s = scene_of(XROCE_RC);
	u8 old[PACKET_FRAME_MAX];
	u32 len = make_write(&s, 64, old);

	for (u32 i = 0; i < 100; i++) {
		check(s.w, write_as(&s, (u16)(10000 + i)));
		for (u32 k = 0; k < 10; k++)
			world_deliver(s.w, 1, old, len);
	}
	scene_end(&s);
}

/* A known peer that uses high identifications after all loses a few packets, once. */
static void others__that_began_low_go_on(void **state)
{
	struct scene s = scene_of(XROCE_RC);

	make_known(&s);
	for (u32 i = 1; i < ICRC_PEER_REFUSALS; i++)
		check(s.w, !write_as(&s, (u16)(10000 + i)));
	for (u32 i = 0; i < 20; i++)
		check(s.w, write_as(&s, (u16)(20000 + i)));
	make_known(&s);
	check(s.w, write_as(&s, 30000));
	scene_end(&s);
}

/* The same error again and again is no other identification. */
static void known__refuses_a_repeated_error(void **state)
{
	struct scene s = scene_of(XROCE_RC);

	make_known(&s);
	for (u32 i = 0; i < 20; i++)
		check(s.w, !write_as(&s, 10000));
	check(s.w, write_as(&s, 0));
	for (u32 i = 0; i < 20; i++) {
		check(s.w, !write_as(&s, (u16)(10000 + i)));
		check(s.w, write_as(&s, 0));
	}
	scene_end(&s);
}

static void known__until_the_next_connection(void **state)
{
	struct scene s = scene_of(XROCE_RC);

	make_known(&s);
	check(s.w, !write_as(&s, 10000));
	check_eq(s.w, side_state(s.b, QPS_RESET), 0);
	side_init(s.b, &s.o);
	side_rtr(s.b, &s.o, 0, s.a->qp->qpn, 5);
	check(s.w, write_as(&s, 10000));
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known__refuses_each_single_bit),
		cmocka_unit_test(known__takes_super_packets),
		cmocka_unit_test(known__refuses_each_single_bit_of_an_ack),
		cmocka_unit_test(known__refuses_a_repeated_error),
		cmocka_unit_test(known__until_the_next_connection),
		cmocka_unit_test(others__go_on),
		cmocka_unit_test(others__are_not_made_known_by_strangers),
		cmocka_unit_test(others__that_began_low_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
