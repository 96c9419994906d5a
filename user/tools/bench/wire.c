/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a peer sends, and the only place that checks it: messages of bench's control connection, of
 * one packed layout with bounds, and the datagrams of ping. Pure.
 */
#include "bench.h"
#include "ping.h"

/* ---- messages of bench ---- */

#define BENCH_MAGIC   0x5852424eu /* XRBN */
#define BENCH_VERSION 1

struct bench_wire {
	__be32 magic;
	__be16 version;
	u8 type, way, measure, events;
	__be16 port;
	__be32 size, depth, path_mtu, status, qpn, psn, rkey;
	__be64 duration_ns, va, token, messages, bytes, elapsed_ns;
	u8 gid[16];
	u8 zero[56];
} __attribute__((packed));
_Static_assert(sizeof(struct bench_wire) == BENCH_WIRE_BYTES, "as on the wire");

void bench_encode(u8 wire[BENCH_WIRE_BYTES], const struct bench_message *m)
{
	struct bench_wire w = {
		.magic = htobe32(BENCH_MAGIC),
		.version = htobe16(BENCH_VERSION),
		.type = (u8)m->type,
		.way = (u8)m->test.way,
		.measure = (u8)m->test.measure,
		.events = m->test.events,
		.port = htobe16(m->port),
		.size = htobe32(m->test.size),
		.depth = htobe32(m->test.depth),
		.path_mtu = htobe32(m->type == BENCH_SETUP ? m->test.path_mtu : m->path_mtu),
		.status = htobe32(m->status),
		.qpn = htobe32(m->qpn),
		.psn = htobe32(m->psn),
		.rkey = htobe32(m->rkey),
		.duration_ns = htobe64(m->test.duration_ns),
		.va = htobe64(m->va),
		.token = htobe64(m->token),
		.messages = htobe64(m->messages),
		.bytes = htobe64(m->bytes),
		.elapsed_ns = htobe64(m->elapsed_ns),
	};

	memcpy(w.gid, m->gid.raw, sizeof(w.gid));
	memcpy(wire, &w, sizeof(w));
}

static bool is_path_mtu(u32 mtu)
{
	return mtu >= 256 && mtu <= 4096 && !(mtu & (mtu - 1));
}

/* Checks a requested test, which bounds its memory and time. */
static const char *bench_check_test(const struct bench_test *t)
{
	if (t->size < BENCH_LEAST_SIZE || t->size > BENCH_MOST_SIZE)
		return "a size out of bounds";
	if (!t->depth || t->depth > bench_depth(t->size))
		return "a depth out of bounds";
	if (!t->duration_ns || t->duration_ns > BENCH_MOST_NS)
		return "a duration out of bounds";
	if (!is_path_mtu(t->path_mtu))
		return "an invalid path MTU";
	if (t->size > bench_way_most(t->way, t->path_mtu))
		return "a message too large for its transport";
	return NULL;
}

const char *bench_decode(struct bench_message *m, const u8 wire[BENCH_WIRE_BYTES])
{
	struct bench_wire w;

	memcpy(&w, wire, sizeof(w));
	if (be32toh(w.magic) != BENCH_MAGIC)
		return "data that is not from xroce bench";
	if (be16toh(w.version) != BENCH_VERSION)
		return "data from another version of xroce bench";
	if (w.type >= BENCH_TYPE_END || w.way >= BENCH_WAY_END || w.measure >= BENCH_MEASURE_END ||
	    w.events > 1)
		return "an unknown field";
	*m = (struct bench_message){
		.type = w.type,
		.test = { .way = w.way,
			  .measure = w.measure,
			  .events = w.events,
			  .size = be32toh(w.size),
			  .depth = be32toh(w.depth),
			  .path_mtu = be32toh(w.path_mtu),
			  .duration_ns = be64toh(w.duration_ns) },
		.path_mtu = be32toh(w.path_mtu),
		.status = be32toh(w.status),
		.qpn = be32toh(w.qpn),
		.psn = be32toh(w.psn),
		.rkey = be32toh(w.rkey),
		.va = be64toh(w.va),
		.port = be16toh(w.port),
		.token = be64toh(w.token),
		.messages = be64toh(w.messages),
		.bytes = be64toh(w.bytes),
		.elapsed_ns = be64toh(w.elapsed_ns),
	};
	memcpy(m->gid.raw, w.gid, sizeof(w.gid));
	if (m->qpn > 0xffffff || m->psn > 0xffffff)
		return "a number of more than 24 bits";
	if (m->type == BENCH_FAILED && (!m->status || m->status > 4095))
		return "no errno";
	/* 0 in a client's HELLO */
	if (m->type == BENCH_HELLO && m->path_mtu && !is_path_mtu(m->path_mtu))
		return "an invalid path MTU";
	return m->type == BENCH_SETUP ? bench_check_test(&m->test) : NULL;
}

u32 bench_way_most(enum bench_way way, u32 path_mtu)
{
	/* limit of a datagram over IPv4; over IPv6 it is a few bytes larger */
	return way == BENCH_UD ? path_mtu : way == BENCH_UDP ? 65507 : BENCH_MOST_SIZE;
}

#define MOST_MEMORY (4u << 20)

u32 bench_depth(u32 size)
{
	const u32 fit = MOST_MEMORY / size;

	return fit < 2 ? 2 : min_u32(fit, BENCH_MOST_DEPTH);
}

/* ---- datagrams of ping ---- */

void ping_fill(u8 *data, u32 len, enum ping_kind kind, u64 session, u64 seq)
{
	const struct ping_header h = {
		.magic = htobe32(PING_MAGIC),
		.kind = (u8)kind,
		.session = htobe64(session),
		.seq = htobe64(seq),
	};

	memcpy(data, &h, sizeof(h));
	for (u32 i = sizeof(h); i < len; i++)
		data[i] = (u8)(seq + i);
}

bool ping_check(const u8 *data, u32 len, enum ping_kind kind, u64 *session, u64 *seq)
{
	struct ping_header h;

	if (len < sizeof(h))
		return false;
	memcpy(&h, data, sizeof(h));
	if (be32toh(h.magic) != PING_MAGIC || h.kind != kind || h.zero[0] || h.zero[1] || h.zero[2])
		return false;
	*session = be64toh(h.session);
	*seq = be64toh(h.seq);
	for (u32 i = sizeof(h); i < len; i++)
		if (data[i] != (u8)(*seq + i))
			return false;
	return true;
}
