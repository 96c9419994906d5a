/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "rsocket_protocol.h"

#define HOST_IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* ---- bytes ---- */

enum { CONN_VERSION = 1, CONN_BIG_ENDIAN = 1, CONN_IOMAP = 2 };

#define UDP_TAG 0x55555555u

static void wire_put(u8 *at, u64 value, u32 bytes)
{
	while (bytes--) {
		at[bytes] = (u8)value;
		value >>= 8;
	}
}

static u64 wire_get(const u8 *at, u32 bytes)
{
	u64 value = 0;

	while (bytes--)
		value = value << 8 | *at++;
	return value;
}

static void wire_put_sge(u8 *at, const struct wire_sge *sge)
{
	wire_put(at, sge->address, 8);
	wire_put(at + 8, sge->key, 4);
	wire_put(at + 12, sge->length, 4);
}

static struct wire_sge wire_get_sge(const u8 *at)
{
	return (struct wire_sge){
		.address = wire_get(at, 8),
		.key = (u32)wire_get(at + 8, 4),
		.length = (u32)wire_get(at + 12, 4),
	};
}

struct wire_sge wire_swap_sge(struct wire_sge sge)
{
	return (struct wire_sge){
		.address = __builtin_bswap64(sge.address),
		.key = __builtin_bswap32(sge.key),
		.length = __builtin_bswap32(sge.length),
	};
}

/*
 * Encodes a table's size in 8 bits: as it is up to 128, else in units of 256 with the top bit set.
 */
static u8 wire_scale(u32 n)
{
	if (n <= 128)
		return (u8)n;
	return (u8)(0x80 | ((n < 0x7fff ? n : 0x7fff) >> 8));
}

static u32 wire_unscale(u8 scaled)
{
	return scaled <= 128 ? scaled : (scaled & 0x7fu) << 8;
}

u32 wire_iomap_size(u32 n)
{
	return wire_unscale(wire_scale(n));
}

void wire_put_conn(u8 bytes[WIRE_CONN_BYTES], const struct wire_conn *conn)
{
	memset(bytes, 0, WIRE_CONN_BYTES);
	bytes[0] = CONN_VERSION;
	bytes[1] = (conn->big_endian ? CONN_BIG_ENDIAN : 0) | (conn->iomap ? CONN_IOMAP : 0);
	wire_put(bytes + 2, conn->credits, 2);
	bytes[7] = wire_scale(conn->iomap_size);
	wire_put_sge(bytes + 8, &conn->list);
	wire_put_sge(bytes + 24, &conn->buffer);
}

bool wire_get_conn(struct wire_conn *conn, const void *data, size_t n)
{
	const u8 *bytes = data;

	if (n < WIRE_CONN_BYTES || bytes[0] != CONN_VERSION)
		return false;
	conn->big_endian = bytes[1] & CONN_BIG_ENDIAN;
	conn->iomap = bytes[1] & CONN_IOMAP;
	conn->credits = (u16)wire_get(bytes + 2, 2);
	conn->iomap_size = conn->iomap ? wire_unscale(bytes[7]) : 0;
	conn->list = wire_get_sge(bytes + 8);
	conn->buffer = wire_get_sge(bytes + 24);
	return conn->list.length != 0;
}

u32 wire_put_dgram(u8 bytes[WIRE_DGRAM_MAX_BYTES], const struct wire_address *from)
{
	u32 n = from->version == 4 ? 8 : 24;

	bytes[0] = from->version;
	bytes[1] = (u8)n;
	wire_put(bytes + 2, from->port, 2);
	if (from->version == 4) {
		memcpy(bytes + 4, from->bytes, 4);
	} else {
		wire_put(bytes + 4, from->flowinfo, 4);
		memcpy(bytes + 8, from->bytes, 16);
	}
	return n;
}

u32 wire_get_dgram(struct wire_address *from, const void *data, size_t n)
{
	const u8 *bytes = data;
	u32 want;

	memset(from, 0, sizeof(*from));
	if (n < 8)
		return 0;
	want = bytes[0] == 4 ? 8 : bytes[0] == 6 ? 24 : 0;
	if (!want || bytes[1] != want || n < want)
		return 0;
	from->version = bytes[0];
	from->port = (u16)wire_get(bytes + 2, 2);
	if (from->version == 4) {
		memcpy(from->bytes, bytes + 4, 4);
	} else {
		from->flowinfo = (u32)wire_get(bytes + 4, 4);
		memcpy(from->bytes, bytes + 8, 16);
	}
	return want;
}

u32 wire_put_udp(u8 bytes[WIRE_UDP_MAX_BYTES], const struct wire_udp *udp)
{
	u32 address = udp->address.version == 4 ? 4 : 16;

	wire_put(bytes, UDP_TAG, 4);
	bytes[4] = udp->address.version;
	bytes[5] = udp->op;
	bytes[6] = (u8)(12 + address);
	bytes[7] = 0;
	wire_put(bytes + 8, udp->qpn & 0xffffff, 4);
	memcpy(bytes + 12, udp->address.bytes, address);
	return 12 + address;
}

u32 wire_get_udp(struct wire_udp *udp, const void *data, size_t n)
{
	const u8 *bytes = data;
	u32 want;

	memset(udp, 0, sizeof(*udp));
	if (n < 16 || wire_get(bytes, 4) != UDP_TAG)
		return 0;
	want = bytes[4] == 4 ? 16 : bytes[4] == 6 ? 28 : 0;
	if (!want || bytes[6] != want || n < want)
		return 0;
	if (bytes[5] != WIRE_DATA && bytes[5] != WIRE_CTRL)
		return 0;
	udp->address.version = bytes[4];
	udp->op = bytes[5];
	udp->qpn = (u32)wire_get(bytes + 8, 4) & 0xffffff;
	memcpy(udp->address.bytes, bytes + 12, want - 12);
	return want;
}

/* ---- a stream ---- */

void stream_credit_init(struct stream_credit *credit, const struct credit_config *config)
{
	*credit = (struct stream_credit){
		.half = config->receive_bytes / 2,
		.open = config->receive_bytes / 2,
		.spent = config->receive_bytes / 2,
		.publish_at = config->receive_bytes / 2,
		.credits = (u16)config->receives,
		.buffer = config->buffer,
		.buffer_key = config->buffer_key,
		.slots = config->slots,
		.requests = config->requests,
		.controls = STREAM_CONTROLS,
		.ring_bytes = config->send_bytes,
		.ring_free = config->send_bytes,
	};
}

void stream_credit_connect(struct stream_credit *credit, const struct wire_conn *peer)
{
	credit->list = peer->list;
	/* the connection's private data already contained the first entry */
	credit->list_at = 1 % peer->list.length;
	credit->swap = peer->big_endian != HOST_IS_BIG_ENDIAN;
	credit->target = peer->buffer;
	credit->slot = 1;
	credit->limit = peer->credits;
}

/* ---- a stream: receiving ---- */

enum message_verdict stream_credit_receive(struct stream_credit *credit, u32 message)
{
	u32 n = wire_number(message);

	switch (wire_op(message)) {
	case WIRE_DATA:
		if (n > credit->open)
			return MESSAGE_VIOLATION;
		credit->open -= n;
		credit->unread += n;
		credit->received++;
		return n ? MESSAGE_DATA : MESSAGE_NOTHING;
	case WIRE_SGL:
		credit->limit = (u16)n;
		return MESSAGE_CREDIT;
	case WIRE_IOMAP:
		credit->received++;
		return MESSAGE_IOMAP;
	case WIRE_CTRL:
		if (n == WIRE_DISCONNECT)
			return MESSAGE_DISCONNECT;
		return n == WIRE_SHUTDOWN ? MESSAGE_SHUTDOWN : MESSAGE_NOTHING;
	}
	return MESSAGE_VIOLATION;
}

u32 stream_credit_unread(const struct stream_credit *credit, u32 skip, u32 *offset)
{
	u32 size = 2 * credit->half;

	if (skip >= credit->unread)
		return 0;
	*offset = (u32)(((u64)credit->read_at + skip) % size);
	return min_u32(credit->unread - skip, size - *offset);
}

void stream_credit_read(struct stream_credit *credit, u32 n)
{
	credit->unread -= n;
	credit->spent += n;
	credit->read_at = (u32)(((u64)credit->read_at + n) % (2 * credit->half));
}

bool stream_credit_control(struct stream_credit *credit)
{
	if (!credit->controls)
		return false;
	credit->controls--;
	return true;
}

void stream_credit_control_done(struct stream_credit *credit)
{
	credit->controls++;
}

bool stream_credit_update(struct stream_credit *credit, struct credit_update *update)
{
	bool half = credit->spent >= credit->half;
	u16 untold = (u16)(credit->received - credit->told);

	if (!half && untold < (credit->credits + 1u) / 2)
		return false;
	if (!stream_credit_control(credit))
		return false;
	credit->told = credit->received;
	update->message = wire_message(WIRE_SGL, (u16)(credit->received + credit->credits));
	update->with_sge = half;
	if (!half)
		return true;
	update->sge = (struct wire_sge){
		.address = credit->buffer + credit->publish_at,
		.key = credit->buffer_key,
		.length = credit->half,
	};
	if (credit->swap)
		update->sge = wire_swap_sge(update->sge);
	update->address = credit->list.address + (u64)credit->list_at * sizeof(struct wire_sge);
	update->key = credit->list.key;
	credit->list_at = (credit->list_at + 1) % credit->list.length;
	credit->publish_at = credit->half - credit->publish_at;
	credit->spent -= credit->half;
	credit->open += credit->half;
	return true;
}

/* ---- a stream: sending ---- */

/*
 * Takes the next entry of our list, once target is used up. The peer writes the entry at any time
 * before its message. Non-zero words are the peer's: an entry is set to 0 when taken, and not
 * written again before its half was used up.
 */
static void stream_credit_next_target(struct stream_credit *credit)
{
	struct credit_slot *slot = &credit->slots[credit->slot];
	u64 address, rest;

	/* acquire: the entry is in memory before its message; the words need no mutual order */
	address = atomic_load_explicit(&slot->address, memory_order_acquire);
	rest = atomic_load_explicit(&slot->key_and_length, memory_order_acquire);
	if (!address || !rest)
		return;
	credit->target.address = address;
	memcpy(&credit->target.key, (u8 *)&rest, 4);
	memcpy(&credit->target.length, (u8 *)&rest + 4, 4);
	if (!credit->target.length)
		return;
	atomic_store_explicit(&slot->address, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->key_and_length, 0, memory_order_relaxed);
	credit->slot = (credit->slot + 1) % WIRE_SLOTS;
}

u32 stream_credit_room(struct stream_credit *credit, u32 inlined)
{
	if (!credit->requests || credit->sent == credit->limit)
		return 0;
	if (!credit->target.length)
		stream_credit_next_target(credit);
	return min_u32(min_u32(credit->target.length, WIRE_NUMBER_MAX),
		       credit->ring_free > inlined ? credit->ring_free : inlined);
}

void stream_credit_count(struct stream_credit *credit)
{
	credit->sent++;
}

void stream_credit_place(struct stream_credit *credit, u32 n, u32 inlined,
			 struct credit_write *write)
{
	u32 first;

	credit->requests--;
	memset(write->pieces, 0, sizeof(write->pieces));
	write->ring_bytes = n <= inlined ? 0 : n;
	if (!write->ring_bytes)
		return;
	first = min_u32(n, credit->ring_bytes - credit->ring_at);
	write->pieces[0] = (struct credit_piece){ .offset = credit->ring_at, .bytes = first };
	write->pieces[1] = (struct credit_piece){ .offset = 0, .bytes = n - first };
	credit->ring_free -= n;
	credit->ring_at = (u32)(((u64)credit->ring_at + n) % credit->ring_bytes);
}

void stream_credit_write(struct stream_credit *credit, u32 n, u32 inlined,
			 struct credit_write *write)
{
	stream_credit_place(credit, n, inlined, write);
	stream_credit_count(credit);
	write->message = wire_message(WIRE_DATA, n);
	write->address = credit->target.address;
	write->key = credit->target.key;
	credit->target.address += n;
	credit->target.length -= n;
}

void stream_credit_done(struct stream_credit *credit, u32 ring_bytes)
{
	credit->requests++;
	credit->ring_free += ring_bytes;
}
