/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets and paths at random, for the tests of what builds and parses them. */
#ifndef UNIT_PACKETS_H
#define UNIT_PACKETS_H

#include "unit.h"

#include "../../user/engine/packet.h"
#include "reference.h"

static inline u32 random_below(u64 *seed, u32 n)
{
	return (u32)(next_random(seed) % n);
}

static inline struct path random_path(u64 *seed, bool is_ipv6, bool has_vlan)
{
	struct path path;

	fill_random(seed, &path, sizeof(path));
	path.dmac[0] &= 0xfe; /* one host's */
	path.is_ipv6 = is_ipv6;
	path.has_vlan = has_vlan;
	path.flow_label &= 0xfffff;
	if (!is_ipv6) {
		memcpy(path.local.raw, ((u8[12]){ [10] = 0xff, 0xff }), 12);
		memcpy(path.peer.raw, ((u8[12]){ [10] = 0xff, 0xff }), 12);
	}
	return path;
}

/* A packet with every field that the opcode carries set at random, and the others 0. */
static inline struct packet random_packet(u64 *seed, u8 opcode)
{
	u32 flags = opcode_flags(opcode);
	struct packet p = {
		.opcode = opcode,
		.solicited = random_below(seed, 2),
		.migreq = random_below(seed, 2),
		.ackreq = random_below(seed, 2),
		.fecn = random_below(seed, 2),
		.becn = random_below(seed, 2),
		.pkey = (u16)next_random(seed),
		.dest_qpn = random_below(seed, 1 << 24),
		.psn = random_below(seed, 1 << 24),
		.ip_id = (u16)next_random(seed),
	};

	if (flags & (OP_RETH | OP_ATOMIC_ETH)) {
		p.va = next_random(seed);
		p.rkey = (u32)next_random(seed);
	}
	if (flags & OP_RETH)
		p.dma_len = (u32)next_random(seed);
	if (flags & OP_ATOMIC_ETH) {
		p.swap_add = next_random(seed);
		p.compare = next_random(seed);
	}
	if (flags & OP_ATOMIC_ACK_ETH)
		p.original = next_random(seed);
	if (flags & OP_AETH) {
		p.syndrome = (u8)next_random(seed);
		p.msn = random_below(seed, 1 << 24);
	}
	if (flags & OP_DETH) {
		p.qkey = (u32)next_random(seed);
		p.src_qpn = random_below(seed, 1 << 24);
	}
	if (flags & OP_IMM)
		p.imm = (u32)next_random(seed);
	if (flags & OP_IETH)
		p.inv_rkey = (u32)next_random(seed);
	if (flags & OP_XRC_ETH)
		p.xrc_srqn = random_below(seed, 1 << 24);
	if (flags & OP_FETH)
		p.flush = (u32)next_random(seed);
	if (flags & OP_CREDIT) {
		p.credit_cookie = (u32)next_random(seed);
		p.credit_allowance = (u32)next_random(seed);
	}
	if (flags & OP_PAYLOAD)
		p.payload_len = random_below(seed, 4) ? random_below(seed, 64) :
							random_below(seed, ROCE_PMTU_MAX + 1);
	return p;
}

static inline void assert_same_packet(const struct packet *a, const struct packet *b)
{
	assert_int_equal(a->opcode, b->opcode);
	assert_int_equal(a->solicited, b->solicited);
	assert_int_equal(a->migreq, b->migreq);
	assert_int_equal(a->ackreq, b->ackreq);
	assert_int_equal(a->fecn, b->fecn);
	assert_int_equal(a->becn, b->becn);
	assert_int_equal(a->pkey, b->pkey);
	assert_int_equal(a->dest_qpn, b->dest_qpn);
	assert_int_equal(a->psn, b->psn);
	assert_int_equal(a->va, b->va);
	assert_int_equal(a->rkey, b->rkey);
	assert_int_equal(a->dma_len, b->dma_len);
	assert_int_equal(a->swap_add, b->swap_add);
	assert_int_equal(a->compare, b->compare);
	assert_int_equal(a->original, b->original);
	assert_int_equal(a->syndrome, b->syndrome);
	assert_int_equal(a->msn, b->msn);
	assert_int_equal(a->qkey, b->qkey);
	assert_int_equal(a->src_qpn, b->src_qpn);
	assert_int_equal(a->imm, b->imm);
	assert_int_equal(a->inv_rkey, b->inv_rkey);
	assert_int_equal(a->xrc_srqn, b->xrc_srqn);
	assert_int_equal(a->flush, b->flush);
	assert_int_equal(a->credit_cookie, b->credit_cookie);
	assert_int_equal(a->credit_allowance, b->credit_allowance);
	assert_int_equal(a->payload_len, b->payload_len);
}

#endif
