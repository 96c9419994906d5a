/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=2 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: any frame into the parser and the matching of flows (bpf/flow.h, xroce/flow.h),
 * the copies for sniffers (bpf/sniff.h), and the same in user space (user/engine/raw.c). Looks for
 * reads after the frame and writes after a record. Compares:
 *
 *   - the fields of a RoCEv2 packet with those that the engine's parser finds;
 *   - the flow that takes the frame, the counters, the drop and the copy with a plain model of
 *     ibv_create_flow(3);
 *   - whether any flow takes the frame, with user space.
 *
 * scripts/fuzz.sh BUILD flow SECONDS runs it. An input is struct shape, then the frame.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <string.h>

#include "fuzz.h"

/* bpf/xroce.bpf.c calls these: external functions of the programs. */
#define packet	     bpf_packet
#define opcode_flags bpf_opcode_flags
int count_drop(__u32 reason);
#include "../../bpf/flow.h"
#undef opcode_flags
#undef packet

#include "../../user/engine/internal.h"
#include "../../user/engine/raw.h"
#include "golden.h"

#define FRAME_MAX 66000u
#define FLOWS	  6u
#define COUNTERS  8u
#define RAW_QPN	  0x20u
#define OTHER_QPN 0x21u /* no QP */

/* What a flow compares. */
enum what {
	NOTHING,
	ALL_FIELDS,
	ONE_FIELD, /* byte `at`, XORed with `value` */
	TUNNEL,	   /* all fields of the tunnel, but for byte `at` */
	WHATS,
};

enum {
	IS_OWN = 1 << 0,  /* a packet for this device, */
	IS_GSO = 1 << 1,  /* or several */
	NO_RING = 1 << 2, /* no ring for copies */
};

struct shape {
	u8 flags, num, segments, pad;
	u16 longest, l3;
	struct {
		u8 what, at, value, actions, counter, next_order;
	} flow[FLOWS];
};

/* ---- maps ---- */

static struct xroce_flow flows[2 * XROCE_MAX_FLOW];
static struct xroce_flows heads;
static struct xroce_flow_count counts[COUNTERS];
static struct xroce_qp raw_qp;
static struct xroce_rx_stats rx;
static struct xroce_drops drops;
static struct {
	struct xroce_rx_record *record; /* of exactly the reserved bytes */
	u32 ring, submitted, discarded;
} copies;

/* No tracer. */
static inline struct xroce_trace *host_trace_page(void)
{
	static struct xroce_trace none;

	return &none;
}

static inline void *host_lookup(const void *map, const void *key)
{
	u32 k;

	memcpy(&k, key, sizeof(k));
	if (map == &xroce_flow)
		return k < ARRAY_SIZE(flows) ? &flows[k] : NULL;
	if (map == &xroce_flows)
		return &heads;
	if (map == &xroce_flow_cnt)
		return k < COUNTERS ? &counts[k] : NULL;
	if (map == &xroce_qp)
		return k == XROCE_QP_SLOT(RAW_QPN) ? &raw_qp : NULL;
	if (map == &xroce_rx)
		return &rx;
	if (map == &xroce_drop)
		return &drops;
	if (map == &xroce_copies)
		return copies.ring ? &copies.ring : NULL;
	return NULL;
}

static inline long host_update(const void *map, const void *key, const void *value)
{
	return -1;
}

static inline long host_delete(const void *map, const void *key)
{
	return -1;
}

static inline void *bpf_ringbuf_reserve(void *ring, __u64 size, __u64 flags)
{
	REQUIRE(ring == &copies.ring && !copies.record);
	copies.record = malloc(size);
	REQUIRE(copies.record);
	return copies.record;
}

static inline void bpf_ringbuf_submit(void *record, __u64 flags)
{
	copies.submitted++;
}

static inline void bpf_ringbuf_discard(void *record, __u64 flags)
{
	copies.discarded++;
}

static inline long bpf_ringbuf_output(void *ring, const void *data, __u64 size, __u64 flags)
{
	return -1;
}

static inline __u64 bpf_ktime_get_ns(void)
{
	return 1;
}

/* ---- flows of an input ---- */

/* Sets flow i so that it may match. */
static void make_flow(struct xroce_flow *flow, const struct shape *s, u32 i,
		      const struct flow_headers *in)
{
	const u32 at = s->flow[i].at;

	memset(flow, 0, sizeof(*flow));
	switch ((enum what)(s->flow[i].what % WHATS)) {
	case ALL_FIELDS:
		memset(&flow->mask, 0xff, sizeof(flow->mask));
		/* else the fields of the tunnel, which are not set here, are compared too */
		flow->mask.kinds &= ~(u32)XROCE_FLOW_TUNNEL;
		flow->value = in->key;
		flow->value.kinds &= flow->mask.kinds;
		break;
	case ONE_FIELD:
		((u8 *)&flow->mask)[at % offsetof(struct xroce_flow_key, kinds)] = 0xff;
		((u8 *)&flow->value)[at % offsetof(struct xroce_flow_key, kinds)] =
			((const u8 *)&in->key)[at % offsetof(struct xroce_flow_key, kinds)] ^
			s->flow[i].value;
		break;
	case TUNNEL:
		flow->mask.kinds = flow->value.kinds = XROCE_FLOW_TUNNEL;
		memset(&flow->tunnel_mask, 0xff, sizeof(flow->tunnel_mask));
		flow->tunnel_value = in->tunnel;
		((u8 *)&flow->tunnel_value)[at % sizeof(flow->tunnel_value)] ^= s->flow[i].value;
		break;
	case NOTHING:
	case WHATS:
		break;
	}
	flow->counter = s->flow[i].counter % COUNTERS;
	flow->qpn = s->flow[i].value & 1 ? OTHER_QPN : RAW_QPN;
}

/* The flows of one order agree in what they do. Returns their number. */
static u32 make_flows(const struct shape *s, const struct flow_headers *in)
{
	const u32 num = s->num % (FLOWS + 1), half = s->pad & 1;
	struct xroce_flow *first = &flows[half * XROCE_MAX_FLOW];

	/* old flows, which match all frames: nobody looks at them */
	for (u32 i = 0; i < ARRAY_SIZE(flows); i++)
		flows[i] = (struct xroce_flow){ .counter = COUNTERS - 1,
						.order = s->num,
						.actions = XROCE_FLOW_DROP };
	for (u32 i = 0; i < num; i++) {
		const u8 actions = s->flow[i].actions;
		const bool is_next = i && s->flow[i].next_order & 1;

		make_flow(&first[i], s, i, in);
		first[i].order = i ? first[i - 1].order + is_next : 0;
		first[i].actions = i && !is_next ? first[i - 1].actions :
			   actions & XROCE_FLOW_COPY   ? (u32)XROCE_FLOW_COPY :
							 actions & XROCE_FLOW_DROP;
	}
	for (u32 i = num; i-- > 1;)
		if (first[i].order == first[i - 1].order &&
		    (first[i].counter || first[i].actions & XROCE_FLOW_MORE_COUNT))
			first[i - 1].actions |= XROCE_FLOW_MORE_COUNT;
	heads = (struct xroce_flows){ .generation = half, .longest = s->longest };
	heads.num[half] = num;
	heads.num[!half] = XROCE_MAX_FLOW;
	return num;
}

/* ---- the model ---- */

static bool model_matches(const struct xroce_flow *flow, const struct flow_headers *in)
{
	const u8 *key = (const u8 *)&in->key, *tunnel = (const u8 *)&in->tunnel;
	const u8 *value = (const u8 *)&flow->value, *mask = (const u8 *)&flow->mask;

	for (u32 i = 0; i < sizeof(in->key); i++)
		if ((key[i] & mask[i]) != value[i])
			return false;
	value = (const u8 *)&flow->tunnel_value;
	mask = (const u8 *)&flow->tunnel_mask;
	for (u32 i = 0; i < sizeof(in->tunnel); i++)
		if (flow->mask.kinds & XROCE_FLOW_TUNNEL && (tunnel[i] & mask[i]) != value[i])
			return false;
	return true;
}

struct model {
	const struct xroce_flow *taker; /* or NULL */
	bool is_copied, is_matched;
	struct xroce_flow_count counts[COUNTERS];
};

static void model_count(struct model *m, const struct xroce_flow *flow, u32 packets, u32 bytes)
{
	if (!flow->counter)
		return;
	m->counts[flow->counter].packets += packets;
	m->counts[flow->counter].bytes += bytes;
}

static void model_run(struct model *m, const struct flow_headers *in, u32 num, bool is_own,
		      u32 len, u32 packets, u32 bytes)
{
	const struct xroce_flow *first = &flows[XROCE_FLOW_HALF(heads.generation) * XROCE_MAX_FLOW];

	*m = (struct model){ .taker = NULL };
	for (u32 i = 0; i < num && !m->taker; i++) {
		const struct xroce_flow *f = &first[i];

		if (!model_matches(f, in))
			continue;
		m->is_matched = true;
		if (f->actions & XROCE_FLOW_COPY) {
			m->is_copied = true;
			model_count(m, f, packets, bytes);
		} else if (!is_own) {
			m->taker = f;
		}
	}
	if (m->taker && !(m->taker->actions & XROCE_FLOW_DROP) && len > heads.longest)
		m->taker = NULL;
	for (const struct xroce_flow *f = m->taker; f && f < first + num; f++)
		if (f->order == m->taker->order && model_matches(f, in))
			model_count(m, f, packets, bytes);
}

/* ---- comparison ---- */

static void check_packet(const struct rx_frame *frame, const struct flow_headers *in)
{
	const struct xroce_flow_key *key = &in->key;
	struct packet p;

	if (packet_parse(&p, frame) != XROCE_DROP_none)
		return;
	REQUIRE(key->kinds & XROCE_FLOW_UDP && key->dport == htobe16(ROCE_UDP_PORT));
	REQUIRE(be16toh(key->sport) == p.udp_sport && key->tos == p.tos && key->ttl == p.hop_limit);
	REQUIRE(!!(key->kinds & XROCE_FLOW_VLAN) == p.has_vlan);
	REQUIRE(!!(key->kinds & XROCE_FLOW_IPV6) == p.is_ipv6);
	REQUIRE(!!(key->kinds & XROCE_FLOW_IPV4) == !p.is_ipv6);
	REQUIRE(!memcmp(key->src, p.src.raw + (p.is_ipv6 ? 0 : 12), p.is_ipv6 ? 16 : 4));
	REQUIRE(!memcmp(key->dst, p.dst.raw + (p.is_ipv6 ? 0 : 12), p.is_ipv6 ? 16 : 4));
}

static u32 two_bytes(const u8 *at)
{
	return (u32)at[0] << 8 | at[1];
}

/* Returns the offset after the outer UDP header, if the frame has one. */
static u32 end_of_udp(const u8 *frame, const struct xroce_flow_key *key)
{
	u32 at = sizeof(struct ethhdr);

	for (u32 i = 0; i < FLOW_TAGS_MAX; i++)
		if (two_bytes(frame + at - 2) == ETH_P_8021Q ||
		    two_bytes(frame + at - 2) == ETH_P_8021AD)
			at += 4;
	return at + (key->kinds & XROCE_FLOW_IPV6 ? 40 : (frame[at] & 15) * 4u) +
	       (u32)sizeof(struct udphdr);
}

/* Requires that a frame in a VXLAN tunnel is parsed as it is alone. */
static void check_inner(const u8 *frame, u32 len, const struct flow_headers *in)
{
	const u32 tunnels = XROCE_FLOW_TUNNEL | XROCE_FLOW_VXLAN | XROCE_FLOW_GRE;
	struct flow_headers alone;
	struct xdp_md ctx;
	u32 at;

	if (!(in->key.kinds & XROCE_FLOW_VXLAN))
		return;
	at = end_of_udp(frame, &in->key) + 8;
	ctx = (struct xdp_md){ .data = (unsigned long)frame + at,
			       .data_end = (unsigned long)frame + len };
	REQUIRE(at <= len);
	REQUIRE(be32toh(in->tunnel.id) == ((u32)two_bytes(frame + at - 4) << 8 | frame[at - 2]));
	if (!flow_read(&ctx, &alone)) {
		REQUIRE(!(in->tunnel.inner.kinds & XROCE_FLOW_ETHERNET));
		return;
	}
	alone.key.kinds = (alone.key.kinds & ~tunnels) | XROCE_FLOW_ETHERNET;
	REQUIRE(!memcmp(&alone.key, &in->tunnel.inner, sizeof(alone.key)));
}

/* Requires the same answer of user space, whose flows never belong to no QP. */
static void check_user(const struct rx_frame *frame, const struct flow_headers *in, u32 num)
{
	const struct xroce_flow *first = &flows[XROCE_FLOW_HALF(heads.generation) * XROCE_MAX_FLOW];
	static struct engine_tables tables;
	static struct engine e = { .tables = &tables };
	static struct qp qp = { .transport = XROCE_RAW };
	bool is_matched = false;

	for (u32 i = 0; i < num; i++) {
		const struct raw_rule rule = { .value = first[i].value,
					       .mask = first[i].mask,
					       .order = first[i].order,
					       .tunnel_value = first[i].tunnel_value,
					       .tunnel_mask = first[i].tunnel_mask,
					       .copies = first[i].actions & XROCE_FLOW_COPY,
					       .drops = first[i].actions & XROCE_FLOW_DROP };
		struct raw_flow *flow;

		REQUIRE(!raw_attach(&e, &qp, &rule, &flow));
		is_matched |= model_matches(&first[i], in);
	}
	REQUIRE(raw_takes_frame(&e, frame) == is_matched);
	while (raw_flows(&e))
		raw_detach(&e, (struct raw_flow *)(uintptr_t)raw_flows(&e));
}

static void check_hash(const struct xroce_flow_key *key)
{
	static struct qp wq = { .transport = XROCE_RAW, .is_wq = true };
	static const u8 rss_key[RSS_KEY_BYTES] = { 1, 2, 3 };
	static struct rss *rss;
	struct qp *wqs[2] = { &wq, &wq };

	if (!rss)
		REQUIRE(!rss_create(rss_key, RSS_FIELDS, wqs, ARRAY_SIZE(wqs), &rss));
	REQUIRE(rss_pick(rss, key) == &wq);
}

static void check_copy(const struct shape *s, const u8 *frame, u32 len, bool is_copied)
{
	const bool fits = s->flags & IS_GSO && s->flags & IS_OWN ? true : len <= heads.longest;
	const bool has_room = copies.ring && len <= 65616;

	if (!is_copied) {
		REQUIRE(!copies.record && !rx.copied && !rx.copies_lost);
		return;
	}
	REQUIRE(rx.copied + rx.copies_lost == 1);
	REQUIRE(rx.copied == (fits && has_room) && rx.copied == copies.submitted);
	if (!rx.copied)
		return;
	REQUIRE(copies.record->len == len && !memcmp(copies.record->frame, frame, len));
	REQUIRE(copies.record->cqe.opcode ==
		(s->flags & IS_OWN ? XROCE_COPY_OWN : XROCE_COPY_OTHER));
}

static void check_verdict(const struct model *m, int verdict)
{
	const u64 *all = (const u64 *)&drops;

	if (!m->taker) {
		REQUIRE(verdict == XDP_PASS && !raw_qp.rx_dropped);
	} else if (m->taker->actions & XROCE_FLOW_DROP) {
		REQUIRE(verdict == XDP_DROP && !raw_qp.rx_dropped);
		REQUIRE(all[XROCE_DROP_INDEX(XROCE_DROP_flow_drop)] == 1);
	} else if (m->taker->qpn == OTHER_QPN) {
		REQUIRE(verdict == XDP_PASS && !raw_qp.rx_dropped);
	} else {
		/* there is no room for a CQE here, so the last check fails */
		REQUIRE(verdict == XDP_DROP && raw_qp.rx_dropped == 1);
		REQUIRE(all[XROCE_DROP_INDEX(XROCE_DROP_metadata)] == 1);
	}
}

/* ---- inputs ---- */

static void reset(const struct shape *s)
{
	memset(counts, 0, sizeof(counts));
	memset(&rx, 0, sizeof(rx));
	memset(&drops, 0, sizeof(drops));
	raw_qp = (struct xroce_qp){ .qpn = RAW_QPN, .transport = XROCE_RAW, .receiving = 1 };
	free(copies.record);
	memset(&copies, 0, sizeof(copies));
	copies.ring = !(s->flags & NO_RING);
}

static void run(const struct shape *s, const u8 *frame, u32 len)
{
	const u32 l3 = s->flags & IS_OWN ? s->l3 % 64 + 14 : 0;
	const bool is_gso = l3 && s->flags & IS_GSO;
	const u32 segments = s->segments % XROCE_SEGMENTS_MAX + 1, packets = is_gso ? segments : 1;
	const struct rx_frame whole = { .data = frame, .len = len };
	struct xdp_md ctx = { .data = (unsigned long)frame,
			      .data_end = (unsigned long)frame + len };
	struct flow_headers in;
	struct model m;
	u32 num = 0;
	int verdict;

	reset(s);
	memset(&m, 0, sizeof(m));
	if (flow_read(&ctx, &in)) {
		check_packet(&whole, &in);
		check_inner(frame, len, &in);
		check_hash(&in.key);
		num = make_flows(s, &in);
		model_run(&m, &in, num, l3, len, packets, len + (packets - 1) * (l3 + 28));
		check_user(&whole, &in, num);
	} else {
		memset(&in, 0, sizeof(in));
		num = make_flows(s, &in);
	}
	verdict = flow_steer(&ctx, is_gso ? XROCE_RX_GSO : 0, l3, segments);
	check_verdict(&m, verdict);
	check_copy(s, frame, len, m.is_copied);
	REQUIRE(!memcmp(counts, m.counts, sizeof(counts)));
}

/* The frame in a tunnel. */
static void seed_tunnel(const struct golden_packet *p, size_t number, struct shape s, bool is_gre)
{
	static const u8 ip[34] = { 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 8, 0, 0x45, [22] = 64,
				   [26] = 10, 0, 0, 1, 10, 0, 0, 2 };
	static const u8 gre[] = { 0x30, 0, 0x65, 0x58, 0, 0, 0, 9, 0, 0, 0, 1 };
	static const u8 vxlan[] = { 0x0f, 0xa0, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0 };
	static u8 frame[FRAME_MAX];
	u32 at = sizeof(ip);

	memcpy(frame, ip, sizeof(ip));
	frame[23] = is_gre ? FLOW_PROTO_GRE : FLOW_PROTO_UDP;
	memcpy(frame + at, is_gre ? gre : vxlan, is_gre ? sizeof(gre) : sizeof(vxlan));
	at += is_gre ? sizeof(gre) : sizeof(vxlan);
	memcpy(frame + at, p->frame, p->len);
	fuzz_seed(is_gre ? "gre" : "vxlan", number, &s, sizeof(s), frame, at + p->len);
}

/* The frame with two VLAN tags. */
static void seed_tagged(const struct golden_packet *p, size_t number, const struct shape *s)
{
	static const u8 tags[] = { 0x88, 0xa8, 0x20, 7, 0x81, 0, 0x60, 9 };
	static u8 frame[FRAME_MAX];

	memcpy(frame, p->frame, 12);
	memcpy(frame + 12, tags, sizeof(tags));
	memcpy(frame + 12 + sizeof(tags), p->frame + 12, p->len - 12);
	fuzz_seed("tagged", number, s, sizeof(*s), frame, p->len + sizeof(tags));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct shape s = { .num = FLOWS, .longest = 4000 };
	struct golden golden;

	if (!fuzz_seed_dir())
		return 0;
	if (golden_load(&golden))
		exit(1);
	for (size_t i = 0; i < golden.count; i++) {
		for (u32 k = 0; k < FLOWS; k++) {
			s.flow[k].what = (u8)(i + k);
			s.flow[k].at = (u8)(i * 7 + k);
			s.flow[k].value = (i + k) % 3 == 0;
			s.flow[k].actions = k < i % FLOWS ? XROCE_FLOW_COPY : (u8)(i >> 2 & 1);
			s.flow[k].counter = (u8)k;
			s.flow[k].next_order = (u8)(i >> k);
		}
		s.flags = i % 4 ? 0 : IS_OWN;
		fuzz_seed("golden", i, &s, sizeof(s), golden.packets[i].frame,
			  golden.packets[i].len);
		if (i % 8 < 2)
			seed_tunnel(&golden.packets[i], i, s, i % 8);
		if (i % 8 == 2)
			seed_tagged(&golden.packets[i], i, &s);
	}
	golden_free(&golden);
	exit(0);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct shape shape;
	u32 len;
	u8 *frame;

	frame = fuzz_frame(data, size, &shape, sizeof(shape), FRAME_MAX, &len);
	if (!frame)
		return 0;
	run(&shape, frame, len);
	free(frame);
	return 0;
}
