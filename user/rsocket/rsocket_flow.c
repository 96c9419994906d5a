/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "rsocket_flow.h"

#include <string.h>

#define HOST_IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

void flow_init(struct flow *flow, const struct flow_config *config)
{
	*flow = (struct flow){
		.half = config->receive_bytes / 2,
		.open = config->receive_bytes / 2,
		.spent = config->receive_bytes / 2,
		.publish_at = config->receive_bytes / 2,
		.credits = (u16)config->receives,
		.buffer = config->buffer,
		.buffer_key = config->buffer_key,
		.slots = config->slots,
		.requests = config->requests,
		.controls = FLOW_CONTROLS,
		.ring_bytes = config->send_bytes,
		.ring_free = config->send_bytes,
	};
}

void flow_connect(struct flow *flow, const struct wire_conn *peer)
{
	flow->list = peer->list;
	/* the connection's private data already contained the first entry */
	flow->list_at = 1 % peer->list.length;
	flow->swap = peer->big_endian != HOST_IS_BIG_ENDIAN;
	flow->target = peer->buffer;
	flow->slot = 1;
	flow->limit = peer->credits;
}

/* ---- receiving ---- */

enum flow_verdict flow_receive(struct flow *flow, u32 message)
{
	u32 n = wire_number(message);

	switch (wire_op(message)) {
	case WIRE_DATA:
		if (n > flow->open)
			return FLOW_VIOLATION;
		flow->open -= n;
		flow->unread += n;
		flow->received++;
		return n ? FLOW_DATA : FLOW_NOTHING;
	case WIRE_SGL:
		flow->limit = (u16)n;
		return FLOW_CREDIT;
	case WIRE_IOMAP:
		flow->received++;
		return FLOW_IOMAP;
	case WIRE_CTRL:
		if (n == WIRE_DISCONNECT)
			return FLOW_DISCONNECT;
		return n == WIRE_SHUTDOWN ? FLOW_SHUTDOWN : FLOW_NOTHING;
	}
	return FLOW_VIOLATION;
}

u32 flow_unread(const struct flow *flow, u32 skip, u32 *offset)
{
	u32 size = 2 * flow->half;

	if (skip >= flow->unread)
		return 0;
	*offset = (u32)(((u64)flow->read_at + skip) % size);
	return min_u32(flow->unread - skip, size - *offset);
}

void flow_read(struct flow *flow, u32 n)
{
	flow->unread -= n;
	flow->spent += n;
	flow->read_at = (u32)(((u64)flow->read_at + n) % (2 * flow->half));
}

bool flow_control(struct flow *flow)
{
	if (!flow->controls)
		return false;
	flow->controls--;
	return true;
}

void flow_control_done(struct flow *flow)
{
	flow->controls++;
}

bool flow_update(struct flow *flow, struct flow_update *update)
{
	bool half = flow->spent >= flow->half;
	u16 untold = (u16)(flow->received - flow->told);

	if (!half && untold < (flow->credits + 1u) / 2)
		return false;
	if (!flow_control(flow))
		return false;
	flow->told = flow->received;
	update->message = wire_message(WIRE_SGL, (u16)(flow->received + flow->credits));
	update->with_sge = half;
	if (!half)
		return true;
	update->sge = (struct wire_sge){
		.address = flow->buffer + flow->publish_at,
		.key = flow->buffer_key,
		.length = flow->half,
	};
	if (flow->swap)
		update->sge = wire_swap_sge(update->sge);
	update->address = flow->list.address + (u64)flow->list_at * sizeof(struct wire_sge);
	update->key = flow->list.key;
	flow->list_at = (flow->list_at + 1) % flow->list.length;
	flow->publish_at = flow->half - flow->publish_at;
	flow->spent -= flow->half;
	flow->open += flow->half;
	return true;
}

/* ---- sending ---- */

/*
 * Takes the next entry of our list, once target is used up. The peer writes the entry at any time
 * before its message. Non-zero words are the peer's: an entry is set to 0 when taken, and not
 * written again before its half was used up.
 */
static void flow_next_target(struct flow *flow)
{
	struct flow_slot *slot = &flow->slots[flow->slot];
	u64 address, rest;

	/* acquire: the entry is in memory before its message; the words need no mutual order */
	address = atomic_load_explicit(&slot->address, memory_order_acquire);
	rest = atomic_load_explicit(&slot->key_and_length, memory_order_acquire);
	if (!address || !rest)
		return;
	flow->target.address = address;
	memcpy(&flow->target.key, (u8 *)&rest, 4);
	memcpy(&flow->target.length, (u8 *)&rest + 4, 4);
	if (!flow->target.length)
		return;
	atomic_store_explicit(&slot->address, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->key_and_length, 0, memory_order_relaxed);
	flow->slot = (flow->slot + 1) % WIRE_SLOTS;
}

u32 flow_room(struct flow *flow, u32 inlined)
{
	if (!flow->requests || flow->sent == flow->limit)
		return 0;
	if (!flow->target.length)
		flow_next_target(flow);
	return min_u32(min_u32(flow->target.length, WIRE_NUMBER_MAX),
		       flow->ring_free > inlined ? flow->ring_free : inlined);
}

void flow_count(struct flow *flow)
{
	flow->sent++;
}

void flow_place(struct flow *flow, u32 n, u32 inlined, struct flow_write *write)
{
	u32 first;

	flow->requests--;
	memset(write->pieces, 0, sizeof(write->pieces));
	write->ring_bytes = n <= inlined ? 0 : n;
	if (!write->ring_bytes)
		return;
	first = min_u32(n, flow->ring_bytes - flow->ring_at);
	write->pieces[0] = (struct flow_piece){ .offset = flow->ring_at, .bytes = first };
	write->pieces[1] = (struct flow_piece){ .offset = 0, .bytes = n - first };
	flow->ring_free -= n;
	flow->ring_at = (u32)(((u64)flow->ring_at + n) % flow->ring_bytes);
}

void flow_write(struct flow *flow, u32 n, u32 inlined, struct flow_write *write)
{
	flow_place(flow, n, inlined, write);
	flow_count(flow);
	write->message = wire_message(WIRE_DATA, n);
	write->address = flow->target.address;
	write->key = flow->target.key;
	flow->target.address += n;
	flow->target.length -= n;
}

void flow_done(struct flow *flow, u32 ring_bytes)
{
	flow->requests++;
	flow->ring_free += ring_bytes;
}
