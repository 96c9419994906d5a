/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Two ends of a stream, without a network: a posted WRITE is copied into the other's memory and its
 * message delivered, now or later. A byte arrives once, at its place; neither end sends more than
 * its credits; a peer's false claims are detected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../user/rsocket/rsocket_protocol.h"

enum { RECEIVE = 4096, SEND = 3000, RECEIVES = 32, REQUESTS = 24, INLINED = 64, WIRE = 64 };

/* What one end has posted and the other not received. */
struct posted {
	u32 message, n;
	u64 address;
	u8 bytes[RECEIVE];
	struct credit_piece pieces[2]; /* of the ring, read when it is delivered */
	u32 ring_bytes;
	bool control;
};

struct end {
	struct stream_credit credit;
	struct credit_slot slots[WIRE_SLOTS];
	u8 receive[RECEIVE], send[SEND];
	struct posted wire[WIRE];
	u32 first, count; /* of wire */
	u32 under_way;	  /* messages that used a credit, as the peer must have it */
	u32 sent, got;	  /* bytes of the stream: byte n is pattern(n) */
};

struct pair {
	struct end a, b;
	u32 random;
};

static u8 pattern(u32 n)
{
	return (u8)(n * 7 + (n >> 8));
}

static u32 pair_random(struct pair *p)
{
	p->random = p->random * 1664525 + 1013904223;
	return p->random >> 8;
}

static void end_tell(const struct end *e, struct wire_conn *conn)
{
	*conn = (struct wire_conn){
		.big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
		.credits = RECEIVES,
		.list = { (uintptr_t)e->slots, 2, WIRE_SLOTS },
		.buffer = { (uintptr_t)e->receive, 1, RECEIVE / 2 },
	};
}

static void end_init(struct end *e)
{
	stream_credit_init(&e->credit, &(struct credit_config){
		.receive_bytes = RECEIVE,
		.buffer = (uintptr_t)e->receive,
		.buffer_key = 1,
		.send_bytes = SEND,
		.receives = RECEIVES,
		.requests = REQUESTS,
		.slots = e->slots,
	});
}

static int pair_setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	struct wire_conn conn;

	*state = p;
	if (!p)
		return -1;
	end_init(&p->a);
	end_init(&p->b);
	end_tell(&p->a, &conn);
	stream_credit_connect(&p->b.credit, &conn);
	end_tell(&p->b, &conn);
	stream_credit_connect(&p->a.credit, &conn);
	return 0;
}

static int pair_teardown(void **state)
{
	free(*state);
	return 0;
}

static struct posted *end_post(struct end *e, u32 message)
{
	struct posted *posted = &e->wire[(e->first + e->count) % WIRE];

	assert_true(e->count < WIRE);
	e->count++;
	memset(posted, 0, sizeof(*posted));
	posted->message = message;
	return posted;
}

static u32 end_send(struct end *e, u32 most)
{
	u32 n = min_u32(stream_credit_room(&e->credit, INLINED), most), at = 0;
	struct credit_write w;
	struct posted *posted;

	if (!n)
		return 0;
	stream_credit_write(&e->credit, n, INLINED, &w);
	posted = end_post(e, w.message);
	for (u32 i = 0; i < n; i++)
		posted->bytes[i] = pattern(e->sent + i);
	/* Through the ring, if it is to go there: it must not be used by others yet. */
	for (u32 i = 0; i < 2 && w.ring_bytes; i++) {
		assert_true(w.pieces[i].offset + w.pieces[i].bytes <= SEND);
		memcpy(e->send + w.pieces[i].offset, posted->bytes + at, w.pieces[i].bytes);
		at += w.pieces[i].bytes;
	}
	assert_int_equal(at, n <= INLINED ? 0 : n);
	posted->n = n;
	posted->address = w.address;
	posted->ring_bytes = w.ring_bytes;
	memcpy(posted->pieces, w.pieces, sizeof(w.pieces));
	e->sent += n;
	e->under_way++;
	assert_true(e->under_way <= RECEIVES);
	return n;
}

static bool end_update(struct end *e)
{
	struct credit_update update;
	struct posted *posted;

	if (!stream_credit_update(&e->credit, &update))
		return false;
	posted = end_post(e, update.message);
	posted->control = true;
	if (update.with_sge) {
		posted->n = sizeof(update.sge);
		posted->address = update.address;
		memcpy(posted->bytes, &update.sge, sizeof(update.sge));
	}
	return true;
}

/* The first of what `from` has posted reaches `to`. */
static void end_deliver(struct end *from, struct end *to)
{
	struct posted *posted = &from->wire[from->first];

	from->first = (from->first + 1) % WIRE;
	from->count--;
	if (posted->n && !posted->control)
		assert_true(posted->address >= (uintptr_t)to->receive &&
			    posted->address + posted->n <= (uintptr_t)to->receive + RECEIVE);
	if (posted->ring_bytes) {
		u32 first = posted->pieces[0].bytes;

		memcpy(posted->bytes, from->send + posted->pieces[0].offset, first);
		memcpy(posted->bytes + first, from->send + posted->pieces[1].offset,
		       posted->pieces[1].bytes);
	}
	if (posted->n)
		memcpy((void *)(uintptr_t)posted->address, posted->bytes, posted->n);
	assert_int_not_equal(stream_credit_receive(&to->credit, posted->message),
			     MESSAGE_VIOLATION);
	if (posted->control) {
		stream_credit_control_done(&from->credit);
	} else {
		stream_credit_done(&from->credit, posted->ring_bytes);
		from->under_way--;
	}
}

static void end_read(struct end *e, u32 most)
{
	u32 offset, n = min_u32(stream_credit_unread(&e->credit, 0, &offset), most);

	for (u32 i = 0; i < n; i++)
		assert_int_equal(e->receive[offset + i], pattern(e->got + i));
	e->got += n;
	stream_credit_read(&e->credit, n);
}

/* A step of one end, drawn: it sends, its first message arrives, it reads, it gives credits. */
static void pair_step(struct pair *p)
{
	struct end *e = pair_random(p) & 1 ? &p->a : &p->b;
	struct end *peer = e == &p->a ? &p->b : &p->a;

	switch (pair_random(p) % 4) {
	case 0:
		if (e->count < WIRE - STREAM_CONTROLS)
			end_send(e, 1 + pair_random(p) % (RECEIVE / 2));
		break;
	case 1:
		if (e->count)
			end_deliver(e, peer);
		break;
	case 2:
		end_read(e, pair_random(p) % RECEIVE);
		break;
	case 3:
		end_update(e);
		break;
	}
}

static void stream_credit__random_exchange(void **state)
{
	enum { SEEDS = 40, BYTES = 100000, STEPS = 1000000 };
	struct pair *p;

	for (u32 seed = 1; seed <= SEEDS; seed++) {
		u32 steps = 0;

		pair_teardown(state);
		assert_int_equal(pair_setup(state), 0);
		p = *state;
		p->random = seed;
		while ((p->a.got < BYTES || p->b.got < BYTES) && steps++ < STEPS)
			pair_step(p);
		if (steps >= STEPS)
			fail_msg("seed %u: stands still at %u and %u bytes", seed, p->a.got,
				 p->b.got);
	}
}

static void stream_credit_room__ends_with_the_half(void **state)
{
	struct pair *p = *state;

	assert_int_equal(stream_credit_room(&p->a.credit, INLINED), RECEIVE / 2);
	assert_int_equal(end_send(&p->a, RECEIVE), RECEIVE / 2);
	assert_int_equal(stream_credit_room(&p->a.credit, INLINED), 0);
	/* the other half was never announced */
	assert_true(end_update(&p->b));
	end_deliver(&p->b, &p->a);
	assert_int_equal(stream_credit_room(&p->a.credit, INLINED), SEND - RECEIVE / 2);
	assert_false(end_update(&p->b));
}

static void stream_credit_room__takes_no_half_written_entry(void **state)
{
	struct pair *p = *state;

	end_send(&p->a, RECEIVE);
	atomic_store(&p->a.slots[1].key_and_length, 77ull << 32 | 5);
	assert_int_equal(stream_credit_room(&p->a.credit, INLINED), 0);
	atomic_store(&p->a.slots[1].address, (uintptr_t)p->b.receive);
	assert_int_equal(stream_credit_room(&p->a.credit, INLINED), 77);
	assert_int_equal(p->a.credit.target.key, 5);
	assert_int_equal(atomic_load(&p->a.slots[1].address), 0);
}

static void stream_credit_room__is_bounded_by_credits(void **state)
{
	struct pair *p = *state;

	p->a.credit.limit = 3;
	for (u32 i = 0; i < 3; i++)
		assert_int_equal(end_send(&p->a, 1), 1);
	assert_int_equal(end_send(&p->a, 1), 0);
	assert_int_equal(stream_credit_receive(&p->a.credit, wire_message(WIRE_SGL, 4)),
			 MESSAGE_CREDIT);
	assert_int_equal(end_send(&p->a, 1), 1);
	assert_int_equal(end_send(&p->a, 1), 0);
}

static void stream_credit_room__of_a_full_ring(void **state)
{
	struct pair *p = *state;

	p->a.credit.target.length = RECEIVE;
	assert_int_equal(end_send(&p->a, SEND - 10), SEND - 10);
	assert_int_equal(stream_credit_room(&p->a.credit, INLINED), INLINED);
	assert_int_equal(stream_credit_room(&p->a.credit, 0), 10);
}

static void stream_credit_receive__more_than_was_open(void **state)
{
	struct pair *p = *state;

	assert_int_equal(
		stream_credit_receive(&p->a.credit, wire_message(WIRE_DATA, RECEIVE / 2 + 1)),
		MESSAGE_VIOLATION);
	assert_int_equal(stream_credit_receive(&p->a.credit, wire_message(WIRE_DATA, RECEIVE / 2)),
			 MESSAGE_DATA);
	assert_int_equal(stream_credit_receive(&p->a.credit, wire_message(WIRE_DATA, 1)),
			 MESSAGE_VIOLATION);
	assert_int_equal(
		stream_credit_receive(&p->a.credit, wire_message(WIRE_DATA, WIRE_NUMBER_MAX)),
		MESSAGE_VIOLATION);
	assert_int_equal(stream_credit_receive(&p->a.credit, wire_message(WIRE_DATA, 0)),
			 MESSAGE_NOTHING);
	assert_int_equal(p->a.credit.unread, RECEIVE / 2);
}

static void stream_credit_receive__what_it_is(void **state)
{
	struct pair *p = *state;
	static const struct {
		u32 message;
		enum message_verdict verdict;
	} cases[] = {
		{ 0xe0000000, MESSAGE_DISCONNECT }, { 0xe0000001, MESSAGE_NOTHING },
		{ 0xe0000002, MESSAGE_SHUTDOWN },   { 0xe0000003, MESSAGE_NOTHING },
		{ 0xc0000007, MESSAGE_IOMAP },	    { 0x80000001, MESSAGE_CREDIT },
		{ 0x20000001, MESSAGE_VIOLATION },  { 0x40000001, MESSAGE_VIOLATION },
		{ 0x60000001, MESSAGE_VIOLATION },  { 0xa0000001, MESSAGE_VIOLATION },
	};

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(stream_credit_receive(&p->a.credit, cases[i].message),
				 cases[i].verdict);
}

static void stream_credit_update__counts_mapped_buffers_too(void **state)
{
	struct pair *p = *state;
	struct credit_update update;

	/* a credit for each, as the peer counts them */
	assert_true(stream_credit_update(&p->a.credit, &update));
	for (u32 i = 0; i < RECEIVES / 2; i++) {
		assert_false(stream_credit_update(&p->a.credit, &update));
		stream_credit_receive(&p->a.credit, wire_message(WIRE_IOMAP, 0));
	}
	assert_true(stream_credit_update(&p->a.credit, &update));
	assert_int_equal(update.message, wire_message(WIRE_SGL, RECEIVES + RECEIVES / 2));
	assert_false(update.with_sge);
	assert_false(stream_credit_update(&p->a.credit, &update));
}

static void stream_credit_update__not_of_less_than_a_half(void **state)
{
	struct pair *p = *state;
	struct credit_update update;

	assert_true(stream_credit_update(&p->a.credit, &update));
	stream_credit_receive(&p->a.credit, wire_message(WIRE_DATA, RECEIVE / 2));
	stream_credit_read(&p->a.credit, RECEIVE / 2 - 1);
	assert_false(stream_credit_update(&p->a.credit, &update));
	stream_credit_read(&p->a.credit, 1);
	assert_true(stream_credit_update(&p->a.credit, &update));
	assert_true(update.with_sge && update.sge.address == (uintptr_t)p->a.receive);
}

static void stream_credit_update__needs_a_place(void **state)
{
	struct pair *p = *state;
	struct credit_update update;

	for (u32 i = 0; i < STREAM_CONTROLS; i++)
		assert_true(stream_credit_control(&p->a.credit));
	assert_false(stream_credit_update(&p->a.credit, &update));
	stream_credit_control_done(&p->a.credit);
	assert_true(stream_credit_update(&p->a.credit, &update));
	assert_true(update.with_sge);
	assert_int_equal(update.sge.length, RECEIVE / 2);
	assert_true(update.sge.address == (uintptr_t)p->a.receive + RECEIVE / 2);
	assert_true(update.address == (uintptr_t)p->b.slots + sizeof(struct wire_sge));
}

static void stream_credit_update__in_the_byte_order_of_the_peer(void **state)
{
	struct pair *p = *state;
	struct credit_update update;

	p->a.credit.swap = true;
	assert_true(stream_credit_update(&p->a.credit, &update));
	assert_int_equal(update.sge.length, __builtin_bswap32(RECEIVE / 2));
	assert_int_equal(update.sge.key, __builtin_bswap32(1));
}

static void stream_credit_update__credits_wrap(void **state)
{
	struct pair *p = *state;
	struct credit_update update;

	p->a.credit.received = 0xffff;
	assert_true(stream_credit_update(&p->a.credit, &update));
	assert_int_equal(update.message, wire_message(WIRE_SGL, RECEIVES - 1));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(stream_credit__random_exchange),
		CASE(stream_credit_room__ends_with_the_half),
		CASE(stream_credit_room__takes_no_half_written_entry),
		CASE(stream_credit_room__is_bounded_by_credits),
		CASE(stream_credit_room__of_a_full_ring),
		CASE(stream_credit_receive__more_than_was_open),
		CASE(stream_credit_receive__what_it_is),
		CASE(stream_credit_update__counts_mapped_buffers_too),
		CASE(stream_credit_update__not_of_less_than_a_half),
		CASE(stream_credit_update__needs_a_place),
		CASE(stream_credit_update__in_the_byte_order_of_the_peer),
		CASE(stream_credit_update__credits_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
