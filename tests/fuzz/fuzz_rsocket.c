/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=1 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: a stream of rsockets whose peer sends any message and writes anything into the
 * list, between calls of the application and completions. Compares the credits with a plain
 * account: each byte of the receive buffer is open, unread or spent; only spent bytes are
 * announced; no message is sent without a credit or a place; no byte of the send ring has two
 * owners; a message that violates the protocol changes nothing.
 *
 * scripts/fuzz.sh BUILD rsocket SECONDS runs it. An input is struct setup, the peer's private data
 * (WIRE_CONN_BYTES), then a row of struct move.
 */
#include "../../user/rsocket/rsocket_protocol.h"
#include "fuzz.h"

#define BUFFER	  0x7f0000001000ull
#define KEY	  0x1234u
#define RING_MAX  (256u * 16u)
#define UNDER_WAY 256u

struct setup {
	u8 receive_64, send_16; /* bytes of the buffers, in these units, at least one */
	u8 receives, requests;	/* at least one */
	u8 inlined;
};

enum { MESSAGE, DATA, CREDIT, SLOT, READ, UPDATE, CONTROL, CONTROL_DONE, SEND, ENTRY, DONE, MOVES };

struct move {
	u8 what, which;
	u16 n;
	u32 value;
};

struct posted {
	u32 ring_bytes;
	struct credit_piece pieces[2];
};

/* Bytes and messages are counted from the connection's beginning. */
struct account {
	struct stream_credit credit;
	struct credit_slot slots[WIRE_SLOTS];
	u32 size, receives, requests, inlined, ring;
	u64 announced, written, read;
	u64 received, told;
	u32 credits; /* messages that may still be sent */
	u32 controls;
	struct posted posted[UNDER_WAY]; /* oldest first */
	u32 num_posted;
	bool is_owned[RING_MAX]; /* bytes of the send ring */
	bool failed;
};

/* ---- invariants ---- */

static void check(const struct account *a)
{
	const struct stream_credit *f = &a->credit;
	u32 owned = 0;

	REQUIRE(a->read <= a->written && a->written <= a->announced);
	REQUIRE(a->announced - a->read <= a->size);
	REQUIRE(f->open == a->announced - a->written && f->unread == a->written - a->read);
	REQUIRE(f->open + f->unread + f->spent == a->size);
	REQUIRE(f->read_at == a->read % a->size);
	REQUIRE(f->list_at < f->list.length && f->slot < WIRE_SLOTS);
	REQUIRE(f->controls + a->controls == STREAM_CONTROLS);
	REQUIRE(f->requests + a->num_posted == a->requests);
	REQUIRE((u16)(f->limit - f->sent) == a->credits);
	for (u32 i = 0; i < a->num_posted; i++)
		owned += a->posted[i].ring_bytes;
	REQUIRE(f->ring_free + owned == a->ring && f->ring_at < a->ring);
}

/* Requires that unread bytes are at most two pieces of the buffer, in the order of the stream. */
static void check_unread(const struct account *a)
{
	u32 skip = 0, pieces = 0, offset, n;

	while ((n = stream_credit_unread(&a->credit, skip, &offset))) {
		REQUIRE(offset == (a->read + skip) % a->size && offset + n <= a->size);
		REQUIRE(++pieces <= 2);
		skip += n;
	}
	REQUIRE(skip == a->credit.unread);
}

/* ---- the peer ---- */

static void receive(struct account *a, u32 message)
{
	const u32 n = wire_number(message), op = message >> WIRE_NUMBER_BITS;
	const struct stream_credit before = a->credit;
	const enum message_verdict verdict = stream_credit_receive(&a->credit, message);

	if (op == WIRE_DATA && n <= a->announced - a->written) {
		REQUIRE(verdict == (n ? MESSAGE_DATA : MESSAGE_NOTHING));
		a->written += n;
		a->received++;
	} else if (op == WIRE_SGL) {
		REQUIRE(verdict == MESSAGE_CREDIT);
		a->credits = (u16)(n - a->credit.sent);
	} else if (op == WIRE_IOMAP) {
		REQUIRE(verdict == MESSAGE_IOMAP);
		a->received++;
	} else if (op == WIRE_CTRL) {
		REQUIRE(verdict == (n == WIRE_DISCONNECT ? MESSAGE_DISCONNECT :
				    n == WIRE_SHUTDOWN	 ? MESSAGE_SHUTDOWN :
							   MESSAGE_NOTHING));
	} else {
		REQUIRE(verdict == MESSAGE_VIOLATION);
		REQUIRE(!memcmp(&before, &a->credit, sizeof(before)));
		a->failed = true;
	}
}

static void write_slot(struct account *a, const struct move *m)
{
	struct credit_slot *slot = &a->slots[m->which % WIRE_SLOTS];

	if (m->which & 2)
		slot->address = (u64)m->value << 32 | m->n;
	if (m->which & 4)
		slot->key_and_length = (u64)m->n << 32 | m->value;
	if (m->which & 8)
		slot->key_and_length = (u64)m->value << 32 | m->n;
}

/* ---- the application and completions ---- */

static void update(struct account *a)
{
	const bool half = a->size - (a->announced - a->read) >= a->size / 2;
	const bool due = half || (u16)(a->received - a->told) >= (a->receives + 1) / 2;
	const struct stream_credit before = a->credit;
	struct credit_update u = { 0 };

	REQUIRE(stream_credit_update(&a->credit, &u) == (due && a->controls < STREAM_CONTROLS));
	if (!due || a->controls == STREAM_CONTROLS)
		return;
	a->controls++;
	a->told = a->received;
	REQUIRE(u.message == wire_message(WIRE_SGL, (u16)(a->received + a->receives)));
	REQUIRE(u.with_sge == half);
	if (!half)
		return;
	if (before.swap)
		u.sge = wire_swap_sge(u.sge);
	REQUIRE(u.sge.address == BUFFER + a->announced % a->size);
	REQUIRE(u.sge.key == KEY && u.sge.length == a->size / 2);
	REQUIRE(u.key == before.list.key);
	REQUIRE((u.address - before.list.address) / sizeof(struct wire_sge) == before.list_at);
	a->announced += a->size / 2;
}

static void post(struct account *a, const struct credit_write *w, u32 n)
{
	struct posted *p = &a->posted[a->num_posted++];

	REQUIRE(w->ring_bytes == (n <= a->inlined ? 0 : n));
	REQUIRE(w->pieces[0].bytes + w->pieces[1].bytes == w->ring_bytes);
	*p = (struct posted){ w->ring_bytes, { w->pieces[0], w->pieces[1] } };
	for (u32 i = 0; i < 2; i++)
		for (u32 at = 0; at < p->pieces[i].bytes; at++) {
			bool *owned = &a->is_owned[p->pieces[i].offset + at];

			REQUIRE(p->pieces[i].offset + at < a->ring && !*owned);
			*owned = true;
		}
}

/* Returns the most bytes of the next message; 0 without a credit or a place. */
static u32 room(struct account *a)
{
	const u32 n = stream_credit_room(&a->credit, a->inlined);

	REQUIRE(!n || (a->credits && a->credit.requests));
	REQUIRE(n <= a->credit.target.length || !n);
	REQUIRE(n <= a->credit.ring_free || n <= a->inlined);
	REQUIRE(n <= WIRE_NUMBER_MAX);
	return n;
}

static void send_data(struct account *a, u32 wanted)
{
	const u32 most = room(a), n = most ? 1 + wanted % most : 0;
	const struct wire_sge target = a->credit.target;
	struct credit_write w;

	if (!n)
		return;
	stream_credit_write(&a->credit, n, a->inlined, &w);
	REQUIRE(w.message == wire_message(WIRE_DATA, n));
	REQUIRE(w.address == target.address && w.key == target.key);
	REQUIRE(a->credit.target.length == target.length - n);
	a->credits--;
	post(a, &w, n);
}

/* An entry of the table of mapped buffers, as iomap_send() posts one. */
static void send_entry(struct account *a)
{
	const u32 n = sizeof(struct wire_iomap);
	struct credit_write w;

	if (!room(a) || (a->inlined < n && a->credit.ring_free < n))
		return;
	stream_credit_place(&a->credit, n, a->inlined, &w);
	stream_credit_count(&a->credit);
	a->credits--;
	post(a, &w, n);
}

static void done(struct account *a)
{
	const struct posted p = a->posted[0];

	if (!a->num_posted)
		return;
	for (u32 i = 0; i < 2; i++)
		memset(a->is_owned + p.pieces[i].offset, 0, p.pieces[i].bytes);
	a->num_posted--;
	memmove(a->posted, a->posted + 1, a->num_posted * sizeof(a->posted[0]));
	stream_credit_done(&a->credit, p.ring_bytes);
}

static void move(struct account *a, const struct move *m)
{
	u32 n;

	switch (m->what % MOVES) {
	case MESSAGE:
		receive(a, m->value);
		break;
	case DATA: /* mostly as much as is open */
		receive(a, wire_message(WIRE_DATA, m->n % (a->credit.open + 1)));
		break;
	case CREDIT:
		receive(a, wire_message(WIRE_SGL, (u16)(a->credit.sent + m->n % 512)));
		break;
	case SLOT:
		write_slot(a, m);
		break;
	case READ:
		n = m->n % (a->credit.unread + 1);
		stream_credit_read(&a->credit, n);
		a->read += n;
		break;
	case UPDATE:
		update(a);
		break;
	case CONTROL:
		REQUIRE(stream_credit_control(&a->credit) == (a->controls < STREAM_CONTROLS));
		a->controls += a->controls < STREAM_CONTROLS;
		break;
	case CONTROL_DONE:
		if (a->controls) {
			a->controls--;
			stream_credit_control_done(&a->credit);
		}
		break;
	case SEND:
		send_data(a, m->value);
		break;
	case ENTRY:
		send_entry(a);
		break;
	case DONE:
		done(a);
		break;
	}
}

/* ---- a run ---- */

static void begin(struct account *a, const struct setup *s, const struct wire_conn *peer)
{
	memset(a, 0, sizeof(*a));
	a->size = (s->receive_64 + 1u) * 64;
	a->ring = (s->send_16 + 1u) * 16;
	a->receives = s->receives + 1u;
	a->requests = s->requests % UNDER_WAY + 1u;
	a->inlined = s->inlined;
	a->announced = a->size / 2;
	a->credits = peer->credits;
	stream_credit_init(&a->credit, &(struct credit_config){
		.receive_bytes = a->size,
		.buffer = BUFFER,
		.buffer_key = KEY,
		.send_bytes = a->ring,
		.receives = a->receives,
		.requests = a->requests,
		.slots = a->slots,
	});
	stream_credit_connect(&a->credit, peer);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct setup setups[] = { { 0, 0, 3, 3, 0 },
					       { 3, 7, 31, 15, 24 },
					       { 15, 255, 255, 255, 64 } };
	struct {
		u8 conn[WIRE_CONN_BYTES];
		struct move moves[40 * MOVES];
	} input;

	if (!fuzz_seed_dir())
		return 0;
	wire_put_conn(input.conn, &(struct wire_conn){ .credits = 16,
						       .big_endian = true,
						       .list = { 0x10000, 7, WIRE_SLOTS },
						       .buffer = { 0x20000, 8, 1024 } });
	for (u32 i = 0; i < ARRAY_SIZE(input.moves); i++)
		input.moves[i] = (struct move){ .what = (u8)(i * 7 % MOVES),
						.which = (u8)(6 + i / MOVES % 2),
						.n = (u16)(i * 37),
						.value = i * 64 };
	for (u32 i = 0; i < ARRAY_SIZE(setups); i++)
		fuzz_seed("rsocket", i, &setups[i], sizeof(setups[i]), &input, sizeof(input));
	exit(0);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct account account;
	struct wire_conn peer;
	struct setup setup;
	struct move m;

	if (size < sizeof(setup) + WIRE_CONN_BYTES)
		return 0;
	memcpy(&setup, data, sizeof(setup));
	if (!wire_get_conn(&peer, data + sizeof(setup), WIRE_CONN_BYTES))
		return 0;
	data += sizeof(setup) + WIRE_CONN_BYTES;
	size -= sizeof(setup) + WIRE_CONN_BYTES;
	begin(&account, &setup, &peer);
	check(&account);
	for (; size >= sizeof(m) && !account.failed; data += sizeof(m), size -= sizeof(m)) {
		memcpy(&m, data, sizeof(m));
		move(&account, &m);
		check(&account);
		check_unread(&account);
	}
	return 0;
}
