/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>

#include "internal.h"
#include "raw.h"
#include "requester.h"
#include "responder.h"
#include "stat.h"

/* ---- parsing a frame, as XDP does ---- */

#define FLOW_FRAME  const struct rx_frame *
#define FLOW_INLINE static inline

/* All headers are in the first buffer, which is long enough for any of them. */
static bool flow_load(FLOW_FRAME frame, u32 at, void *to, u32 bytes)
{
	if (at > frame->len || bytes > frame->len - at)
		return false;
	memcpy(to, frame->data + at, bytes);
	return true;
}

#include <xroce/flow.h>

/* ---- flows ---- */

static struct raw_flow **raw_place(struct engine_tables *t, u32 order)
{
	struct raw_flow **p = &t->flows;

	while (*p && (*p)->order <= order)
		p = &(*p)->next;
	return p;
}

int raw_attach(struct engine *e, struct qp *qp, const struct raw_rule *rule, struct raw_flow **out)
{
	const u32 order = 3 * rule->order + (rule->copies ? 0 : rule->drops ? 1 : 2);
	struct engine_tables *t = e->tables;
	struct raw_flow *flow, **place;

	if (qp->transport != XROCE_RAW || qp->is_wq)
		return -EINVAL;
	flow = t->num_flows < XROCE_MAX_FLOW ? malloc(sizeof(*flow)) : NULL;
	if (!flow)
		return -ENOMEM;
	place = raw_place(t, order);
	*flow = (struct raw_flow){ .next = *place, .qp = qp, .rule = *rule, .order = order };
	*place = flow;
	t->num_flows++;
	t->num_copies += rule->copies;
	qp->num_flows++;
	*out = flow;
	return 0;
}

void raw_detach(struct engine *e, struct raw_flow *flow)
{
	struct engine_tables *t = e->tables;
	struct raw_flow **p = &t->flows;

	while (*p != flow)
		p = &(*p)->next;
	*p = flow->next;
	t->num_flows--;
	t->num_copies -= flow->rule.copies;
	flow->qp->num_flows--;
	free(flow);
}

const struct raw_flow *raw_flows(const struct engine *e)
{
	return e->tables->flows;
}

u32 raw_num_flows(const struct engine *e)
{
	return e->tables->num_flows;
}

bool raw_has_copies(const struct engine *e)
{
	return e->tables->num_copies;
}

/* The headers that flows compare. */
struct raw_headers {
	struct xroce_flow_key key;
	struct xroce_flow_tunnel tunnel;
};

static bool raw_matches(const struct raw_flow *flow, const struct raw_headers *in)
{
	const struct raw_rule *rule = &flow->rule;

	return flow_matches(&in->key, &rule->value, &rule->mask) &&
	       (!(rule->mask.kinds & XROCE_FLOW_TUNNEL) ||
		flow_tunnel_matches(&in->tunnel, &rule->tunnel_value, &rule->tunnel_mask));
}

/* Returns the first flow, from `flow` on, that the frame matches, or NULL. */
static const struct raw_flow *raw_find(const struct raw_flow *flow, const struct raw_headers *in)
{
	while (flow && !raw_matches(flow, in))
		flow = flow->next;
	return flow;
}

/* The same from the first flow on; NULL also if the frame cannot be parsed. */
static const struct raw_flow *raw_first(const struct engine *e, const struct rx_frame *frame,
					struct raw_headers *in)
{
	const struct raw_flow *flow = e->tables->flows;

	return flow && flow_parse(frame, &in->key, &in->tunnel) ? raw_find(flow, in) : NULL;
}

bool raw_takes_frame(const struct engine *e, const struct rx_frame *frame)
{
	struct raw_headers in;

	return raw_first(e, frame, &in);
}

bool raw_any(const struct engine *e)
{
	return e->tables->num_raw;
}

/* ---- frames in ---- */

/*
 * Returns the QP whose receives a frame takes: qp itself or a work queue. The state of a QP with a
 * table matters only in ERR, when its frames are dropped, as nothing is posted to it.
 */
static struct qp *raw_receiver(struct qp *qp, const struct xroce_flow_key *key)
{
	return qp->rss && qp_state(qp) != QPS_ERR ? rss_pick(qp->rss, key) : qp;
}

/* Delivers a copy to one QP. Returns its drop reason. */
static enum xroce_drop raw_deliver(struct engine *e, struct qp *qp, u32 tag, const struct packet *p,
				   u64 rx_time_ns, u64 now_ns)
{
	const enum qp_state state = qp_state(qp);
	struct cqe cqe = { .opcode = CQE_RECV, .byte_len = p->payload_len };
	enum xroce_drop drop = XROCE_DROP_qp_state;
	/* the tag is set here: XDP knows only the first flow's */
	struct xroce_rx_cqe tagged = { .rx_time_ns = rx_time_ns, .flow_tag = tag };

	stat_input(qp, p->payload_len);
	if (state >= QPS_RTR && state != QPS_ERR)
		drop = datagram_receive(e, qp, p, &tagged, NULL, &cqe, now_ns);
	if (drop != XROCE_DROP_none)
		stat_drop_of(qp, drop);
	return drop;
}

/* Returns the next flow of the same order that takes the frame, or NULL. */
static const struct raw_flow *raw_next(const struct raw_flow *flow,
				       const struct raw_headers *in)
{
	const u32 order = flow->order;

	do
		flow = flow->next;
	while (flow && flow->order == order && !raw_matches(flow, in));
	return flow && flow->order == order ? flow : NULL;
}

/* Returns whether an earlier flow of the same order and QP took the frame. */
static bool raw_is_repeated(const struct raw_flow *first, const struct raw_flow *flow,
			    const struct raw_headers *in)
{
	for (; first != flow; first = raw_next(first, in))
		if (first->qp == flow->qp)
			return true;
	return false;
}

/* Returns the first flow of a larger order that the frame matches, or NULL. */
static const struct raw_flow *raw_behind(const struct raw_flow *first, const struct raw_headers *in)
{
	const struct raw_flow *flow = first;

	while (flow && flow->order == first->order)
		flow = flow->next;
	return raw_find(flow, in);
}

/* A frame being delivered. */
struct raw_input {
	struct raw_headers in;
	struct packet p;
	u64 rx_time_ns;
	bool count; /* XDP has not counted it */
	struct copies copies;
};

static void raw_deliver_to_all(struct engine *e, const struct raw_flow *first, struct raw_input *r,
			       u64 now_ns)
{
	for (const struct raw_flow *f = first; f; f = raw_next(f, &r->in))
		if (!raw_is_repeated(first, f, &r->in))
			copies_count(e, &r->copies,
				     raw_deliver(e, raw_receiver(f->qp, &r->in.key), f->rule.tag,
						 &r->p, r->rx_time_ns, now_ns));
}

/* Counts the frame for each matching flow of the first one's order, unless XDP has. */
static void raw_count(const struct raw_flow *first, const struct raw_input *r)
{
	for (const struct raw_flow *f = first; r->count && f; f = raw_next(f, &r->in)) {
		if (!f->rule.counter)
			continue;
		f->rule.counter->own.packets++;
		f->rule.counter->own.bytes += r->p.payload_len;
	}
}

/* Returns the whole frame as the payload of a packet without headers. */
static struct packet raw_as_packet(const struct rx_frame *frame, const struct raw_headers *in)
{
	return (struct packet){
		.payload_len = frame->len + frame->frag_len,
		.tos = in->key.tos,
		.has_vlan = in->key.kinds & XROCE_FLOW_VLAN,
		.vlan_tci = be16toh(in->key.vlan_tci),
		.payload = frame->data,
		.end = frame->data + frame->len,
		.frag = frame->frag,
	};
}

enum xroce_drop raw_input(struct engine *e, const struct xroce_rx_cqe *hint,
			  const struct rx_frame *frame, u64 now_ns)
{
	const struct raw_flow *flow;
	struct raw_input r;

	if (e->number)
		return XROCE_DROP_not_handed;
	flow = raw_first(e, frame, &r.in);
	if (!flow)
		return XROCE_DROP_flow;
	r.p = raw_as_packet(frame, &r.in);
	r.rx_time_ns = hint ? hint->rx_time_ns : 0;
	r.count = !hint;
	r.copies = (struct copies){ .refused = XROCE_DROP_none };
	/* flows with copies first, then the flow that takes the frame */
	for (; flow && flow->rule.copies; flow = raw_behind(flow, &r.in)) {
		raw_count(flow, &r);
		raw_deliver_to_all(e, flow, &r, now_ns);
	}
	if (flow)
		raw_count(flow, &r);
	if (flow && flow->rule.drops) {
		copies_count(e, &r.copies, XROCE_DROP_flow_drop);
		return copies_end(e, &r.copies);
	}
	if (flow)
		raw_deliver_to_all(e, flow, &r, now_ns);
	return copies_end(e, &r.copies);
}

/* Returns whether the flow has a copy of such a frame. Sets *last if no later one has. */
static bool raw_has_copy(const struct raw_flow *flow, enum raw_copy kind, bool *last)
{
	if (kind == RAW_COPY_SENT)
		*last = !flow->rule.sniffs;
	else
		*last = kind == RAW_COPY_OTHER && !flow->rule.copies;
	return flow->rule.copies && !*last;
}

void raw_copy(struct engine *e, enum raw_copy kind, u64 rx_time_ns, const struct rx_frame *frame,
	      u64 now_ns)
{
	const struct raw_flow *flow;
	enum xroce_drop drop;
	struct raw_input r;
	bool last = false;

	if (e->number || kind < RAW_COPY_OTHER || kind > RAW_COPY_SENT)
		return;
	e->now_ns = now_ns;
	flow = raw_first(e, frame, &r.in);
	if (!flow)
		return;
	r.copies = (struct copies){ .refused = XROCE_DROP_none };
	r.p = raw_as_packet(frame, &r.in);
	r.rx_time_ns = rx_time_ns;
	r.count = kind == RAW_COPY_LOOPED || kind == RAW_COPY_SENT;
	for (; flow && !last; flow = raw_behind(flow, &r.in)) {
		if (!raw_has_copy(flow, kind, &last))
			continue;
		raw_count(flow, &r);
		raw_deliver_to_all(e, flow, &r, now_ns);
	}
	drop = copies_end(e, &r.copies);
	if (drop != XROCE_DROP_none)
		engine_drop(e, drop);
	engine_take_arms(e);
}

/* ---- frames out ---- */

/* Checks the length: the link's MTU plus an Ethernet header, and a VLAN tag. */
static bool raw_fits(const struct qp *qp, const u8 *frame, u32 len)
{
	__be16 type;

	memcpy(&type, frame + RAW_FRAME_MIN - sizeof(type), sizeof(type));
	return len <= qp->path_mtu + (type == FLOW_TYPE_VLAN || type == FLOW_TYPE_QINQ ?
					      RAW_HEADER_BYTES :
					      RAW_FRAME_MIN);
}

static bool raw_gather(struct engine *e, const struct qp *qp, const struct send_wqe *wqe, u8 *frame)
{
	if (!(wqe->flags & WR_INLINE))
		return sge_gather(e->mrs, qp->pd, wqe->sge, wqe->num_sge, 0, frame, wqe->length);
	memcpy(frame, wqe->data, wqe->length);
	return true;
}

u32 raw_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns)
{
	struct requester *req = &qp->req;
	const struct send_wqe *wqe;
	u32 len;

	if (qp_state(qp) != QPS_RTS || req->tx == sq_prod(&qp->sq))
		return 0;
	wqe = sq_at(&qp->sq, req->tx);
	len = wqe->length;
	if (wqe->opcode == WR_REFUSED) {
		qp_send_error(e, qp, (enum cqe_status)wqe->refused_as, VERR_REQUEST, now_ns);
		return 0;
	}
	if (len < RAW_FRAME_MIN) {
		qp_send_error(e, qp, CQE_LOC_LEN_ERR, VERR_REQUEST, now_ns);
		return 0;
	}
	/* the limit with a tag; the frame is checked for one below */
	if (len > RAW_HEADER_BYTES + qp->path_mtu) {
		qp_send_error(e, qp, CQE_LOC_LEN_ERR, VERR_TOO_LONG, now_ns);
		return 0;
	}
	if (!raw_gather(e, qp, wqe, frame)) {
		qp_send_error(e, qp, CQE_LOC_PROT_ERR,
			      list_error(e, qp->pd, wqe->sge, wqe->num_sge, 0), now_ns);
		return 0;
	}
	if (!raw_fits(qp, frame, len)) {
		qp_send_error(e, qp, CQE_LOC_LEN_ERR, VERR_TOO_LONG, now_ns);
		return 0;
	}
	req->tx = ++req->assigned;
	sq_complete(e, qp, CQE_SUCCESS, VERR_NONE, now_ns);
	return len;
}

/*
 * The Toeplitz hash is linear: each set bit of the input XORs in the 32 key bits at its position.
 * So for each half byte of the input, a table has the contribution of its 16 values.
 */

#define RSS_INPUT_BYTES 36u /* two IPv6 addresses, two ports */
_Static_assert(RSS_INPUT_BYTES + sizeof(u32) == RSS_KEY_BYTES, "the last bit's 32 bits of key");

struct rss {
	u32 fields;
	u32 mask;	/* mask for an index of wq */
	u32 half_byte[2 * RSS_INPUT_BYTES][16];
	struct qp *wq[];
};

/* ---- the hash ---- */

/* Returns 32 bits of the key, from bit at, at < 8 * RSS_INPUT_BYTES. */
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

/* Appends src and dst as two bits of `selected` say. Returns the bytes added. */
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

/* ---- states of a WQ, from its QP's states ---- */

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
