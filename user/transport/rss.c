/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Toeplitz hash is linear in its input: each bit that is set adds the 32 bits of the key that
 * begin at its place. So a table for each half byte of the input has what its 16 values add.
 */
#include "rss.h"

#include <stdlib.h>

#include "internal.h"

#define RSS_INPUT_BYTES 36u /* two IPv6 addresses, two ports */
_Static_assert(RSS_INPUT_BYTES + sizeof(u32) == RSS_KEY_BYTES, "the last bit's 32 bits of key");

struct rss {
	u32 fields;
	u32 mask;	/* of an index in wq */
	u32 half_byte[2 * RSS_INPUT_BYTES][16];
	struct qp *wq[];
};

/* ---- the hash ---- */

/* 32 bits of the key, from bit at on, at < 8 * RSS_INPUT_BYTES. */
static u32 rss_window(const u8 *key, u32 at)
{
	u64 bits = 0;

	for (u32 i = 0; i <= sizeof(u32); i++)
		bits = bits << 8 | key[at / 8 + i];
	return (u32)(bits >> (8 - at % 8));
}

static void rss_set_key(struct rss *rss, const u8 *key)
{
	for (u32 at = 0; at < ARRAY_SIZE(rss->half_byte); at++)
		for (u32 value = 0; value < 16; value++)
			for (u32 bit = 0; bit < 4; bit++)
				if (value & 8u >> bit)
					rss->half_byte[at][value] ^= rss_window(key, 4 * at + bit);
}

/* Two bits of fields select of two that follow each other. Returns what was added. */
static u32 rss_select(u8 *to, u32 selected, const void *src, const void *dst, u32 bytes)
{
	u32 len = 0;

	if (selected & 1) {
		memcpy(to, src, bytes);
		len = bytes;
	}
	if (selected & 2) {
		memcpy(to + len, dst, bytes);
		len += bytes;
	}
	return len;
}

static u32 rss_gather(u32 fields, const struct xroce_flow_key *key, u8 *to)
{
	const u32 ipv4 = fields, ipv6 = fields >> 2, tcp = fields >> 4, udp = fields >> 6;
	u32 len = 0;

	_Static_assert(RSS_DST_IPV4 == 2 && RSS_SRC_IPV6 == 1 << 2 && RSS_SRC_TCP == 1 << 4 &&
			       RSS_SRC_UDP == 1 << 6 && RSS_DST_UDP == 2 << 6,
		       "pairs");
	if (key->kinds & XROCE_FLOW_IPV4)
		len = rss_select(to, ipv4, key->src, key->dst, sizeof(key->src[0]));
	else if (key->kinds & XROCE_FLOW_IPV6)
		len = rss_select(to, ipv6, key->src, key->dst, sizeof(key->src));
	if (key->ip_flags & XROCE_FLOW_MORE_FRAGMENTS)
		return len;
	if (key->kinds & XROCE_FLOW_TCP)
		len += rss_select(to + len, tcp, &key->sport, &key->dport, sizeof(key->sport));
	else if (key->kinds & XROCE_FLOW_UDP)
		len += rss_select(to + len, udp, &key->sport, &key->dport, sizeof(key->sport));
	return len;
}

u32 rss_hash(const struct rss *rss, const struct xroce_flow_key *key)
{
	u8 input[RSS_INPUT_BYTES];
	const u32 len = rss_gather(rss->fields, key, input);
	u32 hash = 0;

	for (u32 i = 0; i < len; i++)
		hash ^= rss->half_byte[2 * i][input[i] >> 4] ^
			rss->half_byte[2 * i + 1][input[i] & 15];
	return hash;
}

/* ---- the table ---- */

int rss_create(const u8 key[RSS_KEY_BYTES], u32 fields, struct qp *const *wq, u32 num,
	       struct rss **out)
{
	struct rss *rss;

	if (!num || num > RSS_TABLE_MAX || num & (num - 1) || fields & ~(u32)RSS_FIELDS)
		return -EINVAL;
	for (u32 i = 0; i < num; i++)
		if (!wq[i]->is_wq)
			return -EINVAL;
	rss = calloc(1, sizeof(*rss) + num * sizeof(rss->wq[0]));
	if (!rss)
		return -ENOMEM;
	rss->fields = fields;
	rss->mask = num - 1;
	rss_set_key(rss, key);
	memcpy(rss->wq, wq, num * sizeof(*wq));
	*out = rss;
	return 0;
}

void rss_free(struct rss *rss)
{
	free(rss);
}

struct qp *rss_pick(const struct rss *rss, const struct xroce_flow_key *key)
{
	return rss->wq[rss_hash(rss, key) & rss->mask];
}

const struct cq *rss_cq(const struct rss *rss)
{
	for (u32 i = 1; i <= rss->mask; i++)
		if (rss->wq[i]->recv_cq != rss->wq[0]->recv_cq)
			return NULL;
	return rss->wq[0]->recv_cq;
}

bool rss_with_time(const struct rss *rss)
{
	for (u32 i = 0; i <= rss->mask; i++)
		if (rss->wq[i]->recv_cq->with_time)
			return true;
	return false;
}

bool rss_with_flow_tag(const struct rss *rss)
{
	for (u32 i = 0; i <= rss->mask; i++)
		if (rss->wq[i]->recv_cq->with_flow_tag)
			return true;
	return false;
}

/* ---- states of a WQ: those of its QP that matter ---- */

enum wq_state wq_state(const struct qp *wq)
{
	switch (qp_state(wq)) {
	case QPS_RESET:
		return WQS_RESET;
	case QPS_ERR:
		return WQS_ERR;
	default:
		return WQS_RDY;
	}
}

static int wq_start(struct engine *e, struct qp *wq, u64 now_ns)
{
	struct qp_attr attr = { .state = QPS_INIT, .port = 1 };
	int err = qp_modify(e, wq, &attr, QP_ATTR_STATE | QP_ATTR_PORT, now_ns);

	attr.state = QPS_RTR;
	return err ? err : qp_modify(e, wq, &attr, QP_ATTR_STATE, now_ns);
}

int wq_modify(struct engine *e, struct qp *wq, enum wq_state to, u64 now_ns)
{
	static const bool allowed[WQS_ERR + 1][WQS_ERR + 1] = {
		[WQS_RESET] = { [WQS_RESET] = true, [WQS_RDY] = true },
		[WQS_RDY] = { [WQS_RESET] = true, [WQS_RDY] = true, [WQS_ERR] = true },
		[WQS_ERR] = { [WQS_RESET] = true, [WQS_ERR] = true },
	};
	const enum wq_state from = wq_state(wq);
	const struct qp_attr attr = { .state = to == WQS_ERR ? QPS_ERR : QPS_RESET };

	if (!wq->is_wq || (u32)to > WQS_ERR || !allowed[from][to])
		return -EINVAL;
	if (to == from)
		return 0;
	return to == WQS_RDY ? wq_start(e, wq, now_ns) :
			       qp_modify(e, wq, &attr, QP_ATTR_STATE, now_ns);
}
