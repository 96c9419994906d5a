/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=1 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: any frame of a broker's client into the check of sent frames (bpf/egress.h) as
 * a function of the host. Looks for reads after the linear part. An accepted frame is parsed, and a
 * super-packet is cut, as a receiver does: the client must be allowed to send each packet that the
 * receiver accepts.
 *
 * scripts/fuzz.sh BUILD egress SECONDS runs it. An input is struct shape, then the frame.
 */
#include "bpf_host.h"
#include <bpf/bpf_core_read.h>

#undef BPF_CORE_READ_BITFIELD
#undef bpf_core_type_id_kernel
#undef __ksym
#define BPF_CORE_READ_BITFIELD(s, field) ((s)->field)
#define bpf_core_type_id_kernel(type)	 0
#define __ksym
#define preserve_access_index

#define bpf_xdp_load_bytes   host_load_bytes
#define bpf_xdp_get_buff_len host_frame_len
#define bpf_skb_load_bytes   host_load_bytes
#define bpf_skb_pull_data    host_pull
#define bpf_csum_level	     host_csum_level
#define bpf_loop	     host_loop
#define bpf_cast_to_kern_ctx host_kernel_skb
#define bpf_rdonly_cast	     host_kernel_shared
#define bpf_map_lookup_elem  host_lookup
#define bpf_map_update_elem(map, key, value, flags) ((void)(key), (void)(value))
#define bpf_map_delete_elem(map, key)		    ((void)(key))

static long host_pull(struct __sk_buff *skb, u32 len)
{
	if (len > host_frame.len)
		return -ENOMEM;
	if (len > host_frame.linear)
		host_show(len);
	skb->data_end = skb->data + host_frame.linear;
	return 0;
}

static void *host_lookup(const void *map, const void *key);

static long host_csum_level(struct __sk_buff *skb, u64 level)
{
	return 0;
}

static long host_loop(u32 times, long (*body)(u32 i, void *arg), void *arg, u64 flags)
{
	u32 i = 0;

	while (i < times && !body(i, arg))
		i++;
	return i;
}

#define packet	     bpf_packet
#define opcode_flags bpf_opcode_flags
#include "../../bpf/egress.h"
#undef opcode_flags
#undef packet

#include "../../user/cm/internal.h"
#include "../../user/engine/gso.h"
#include "golden.h"

#define CLIENT 1u
#define PLACE  XROCE_CM_PLACE_OF(CLIENT)

enum {
	IS_PRIVILEGED = 1 << 0,
	IS_PARTIAL = 1 << 1,	 /* the kernel is to write a checksum, */
	IS_UDP_PARTIAL = 1 << 2, /* into the UDP header */
	IS_GSO = 1 << 3,	 /* the kernel is to cut, */
	IS_GSO_BY_ID = 1 << 4,	 /* where a receiver does */
	IS_UDP_GSO = 1 << 5,
	IS_TAGGED = 1 << 6,
};

struct shape {
	u8 fixes, flags;
	u16 linear, gso_size;
};

/* ---- the state of the kernel for the frame ---- */

static struct sk_buff___xroce kernel_skb;
static struct skb_shared_info___xroce kernel_shared;

void *host_kernel_skb(void *skb)
{
	return &kernel_skb;
}

void *host_kernel_shared(const void *at, u32 type)
{
	return &kernel_shared;
}

static struct __sk_buff take(const struct shape *s, const u8 *frame, u32 len)
{
	static unsigned char head[256];
	const u32 headroom = 64;

	host_take(frame, len, min_u32(s->linear, len));
	kernel_skb = (struct sk_buff___xroce){
		.head = head,
		.data = head + headroom,
		.end = sizeof(head),
		.ip_summed = s->flags & IS_PARTIAL ? CHECKSUM_PARTIAL : 0,
		.csum_start = (u16)(headroom + (s->flags & IS_UDP_PARTIAL ? 34 : 14)),
		.csum_offset = UDP_CHECKSUM_AT,
	};
	kernel_shared.gso_type = SKB_GSO_DODGY | (s->flags & IS_UDP_GSO ? SKB_GSO_UDP_L4 : 1);
	return (struct __sk_buff){
		.len = len,
		.data = host_data(),
		.data_end = host_data() + host_frame.linear,
		.vlan_present = !!(s->flags & IS_TAGGED),
		.gso_size = !(s->flags & IS_GSO)			   ? 0 :
			    s->flags & IS_GSO_BY_ID && len > 14 + 20 ? get16(frame + 14 + 4) :
								     s->gso_size,
	};
}

/* ---- the maps: functions of their keys ---- */

static bool is_own_qpn(u32 qpn)
{
	return qpn != XROCE_CM_QPN && !(qpn & 6);
}

static bool is_others_qpn(u32 qpn)
{
	return !is_own_qpn(qpn) && qpn & 8;
}

static bool is_own_address(const u8 gid[16])
{
	return gid[15] % 4;
}

static bool is_pkey(u32 pkey)
{
	return pkey & 1;
}

static bool is_place(u32 place)
{
	return place == XROCE_CM_PLACE_NONE || place == PLACE || place % 3 == 1;
}

/* A peer has sent the client all MADs of such ids. */
static bool is_asked(u32 id)
{
	return id & 1;
}

static void *host_lookup(const void *map, const void *key)
{
	static struct xroce_cm_client place = { .client = CLIENT };
	static struct xroce_asked asked = { .place = PLACE };
	static struct xroce_owner own = { .client = CLIENT }, other = { .client = CLIENT + 1 };
	static u64 present[4];
	u32 number;

	if (map == &xroce_gid)
		return is_own_address(key) ? present : NULL;
	memcpy(&number, key, sizeof(number));
	if (map == &xroce_owner)
		return is_own_qpn(number) ? &own : is_others_qpn(number) ? &other : NULL;
	if (map == &xroce_pkey)
		return is_pkey(number) ? present : NULL;
	if (map == &xroce_cm_client)
		return is_place(number) ? &place : NULL;
	if (map == &xroce_asked)
		return is_asked(((const struct xroce_asked_key *)key)->id) ? &asked : NULL;
	return NULL;
}

/* ---- the receiver ---- */

/*
 * Requires an id of the client in a MAD from QP 1, or an answer for an id without an owner; and
 * that an answer whose receiver looks at its own id alone is to a MAD that the client got. A REQ
 * and REP must not offer another client's QP.
 */
static void check_mad(const struct packet *p)
{
	const u8 *mad = p->payload;
	struct cm_mad m;
	u32 place;

	REQUIRE(p->payload_len == CM_MAD_BYTES && p->qkey == XROCE_CM_QKEY);
	if (cm_mad_decode(&m, mad, CM_MAD_BYTES) != CM_DROP_none)
		return;
	if (m.kind == CM_SIDR_REP) {
		REQUIRE(is_asked(m.local_id));
		return;
	}
	if (m.kind == CM_REQ || m.kind == CM_REP) {
		const u32 qpn = m.kind == CM_REQ ? m.req.qpn : m.rep.qpn;

		REQUIRE(!is_others_qpn(qpn));
	}
	place = XROCE_CM_PLACE(m.local_id);
	if (m.kind == CM_REP || m.kind == CM_MRA ||
	    (m.kind == CM_REJ && (m.remote_id || place != PLACE)))
		REQUIRE(is_asked(m.remote_id));
	REQUIRE(place == PLACE || m.kind == CM_REJ || m.kind == CM_DREP || m.kind == CM_APR);
	REQUIRE(place == PLACE || place == XROCE_CM_PLACE_NONE || !is_place(place));
}

static bool is_multicast(const struct gid *gid)
{
	return gid_is_ipv4(gid) ? gid->raw[12] >= IPV4_MULTICAST : gid->raw[0] == IPV6_MULTICAST;
}

static void check_packet(const struct packet *p, bool is_single, bool is_privileged)
{
	REQUIRE(is_own_address(p->src.raw));
	REQUIRE(is_own_address(p->dst.raw) || is_multicast(&p->dst) ||
		(!cm_is_loopback(&p->src) && !cm_is_loopback(&p->dst)));
	REQUIRE(p->pkey == ROCE_DEFAULT_PKEY || is_pkey(p->pkey));
	if (is_single && p->opcode == OPCODE(XROCE_UD, OP5_SEND_ONLY) && p->dest_qpn == 1 &&
	    p->src_qpn == 1) {
		check_mad(p);
		return;
	}
	REQUIRE(p->dest_qpn != XROCE_CM_QPN || is_privileged);
	if (p->flags & OP_DETH) {
		REQUIRE(!(p->qkey & QKEY_PRIVILEGED) || is_privileged);
		REQUIRE(is_own_qpn(p->src_qpn));
	}
}

static void check_super(u32 segments, bool is_privileged)
{
	static struct segments s;
	struct rx_frame frame;
	struct packet p, first = { .opcode = 0 };
	u32 num = 0;

	s.part[0] = (struct segment_part){ .data = (u8 *)(uintptr_t)host_frame.bytes,
					   .len = host_frame.len };
	s.parts = 1;
	REQUIRE(segments_begin(&s, sizeof(struct ethhdr)));
	REQUIRE(segments_left(&s) == segments);
	for (; segments_next(&s, &frame); num++) {
		if (packet_parse(&p, &frame) != XROCE_DROP_none)
			continue;
		check_packet(&p, false, is_privileged);
		/* a receiver looks at the QP of the first */
		REQUIRE(!num || !first.flags || first.dest_qpn == p.dest_qpn);
		if (!num)
			first = p;
	}
	REQUIRE(num == segments);
}

static void check_sent(const struct __sk_buff *skb, const struct bpf_packet *sent,
		       bool is_privileged)
{
	const struct rx_frame frame = { .data = host_frame.bytes, .len = host_frame.len };
	struct xdp_md ctx = { 0 };
	struct bpf_packet x = { 0 };
	enum xroce_drop drop = XROCE_DROP_none;
	struct packet p;

	REQUIRE(!skb->vlan_present);
	REQUIRE((kernel_skb.ip_summed == CHECKSUM_PARTIAL) == !!skb->gso_size);
	REQUIRE(!skb->gso_size || skb->gso_size == sent->ip_id);
	host_show(host_frame.len);
	ctx.data = host_data();
	ctx.data_end = ctx.data + host_frame.len;
	REQUIRE(parse_ip(&ctx, &x, &drop));
	if (drop == XROCE_DROP_none)
		drop = parse_roce(&ctx, &x);
	REQUIRE(x.segments == sent->segments && x.ip_end == host_frame.len);
	if (x.segments > 1)
		check_super(x.segments, is_privileged);
	else if (packet_parse(&p, &frame) == XROCE_DROP_none)
		check_packet(&p, true, is_privileged);
}

/* ---- seeds ---- */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct shape shape = { .gso_size = 100 };
	const u32 at = sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr);
	static u8 super[HOST_FRAME_MAX];
	struct golden golden;

	if (!fuzz_seed_dir()) {
		host_open();
		return 0;
	}
	if (golden_load(&golden))
		exit(1);
	for (size_t i = 0; i < golden.count; i++) {
		const struct golden_packet *p = &golden.packets[i];
		const u32 size = p->len - at;

		shape.linear = (u16)(i % 100);
		shape.flags = i % 4 ? 0 : IS_PRIVILEGED;
		shape.fixes = HOST_FIX_LENGTHS;
		fuzz_seed("golden", i, &shape, sizeof(shape), p->frame, p->len);
		if (i % 4 || golden_is_ipv6(p))
			continue;
		shape.fixes |= HOST_FIX_SUM;
		shape.flags |= IS_GSO | IS_GSO_BY_ID | IS_UDP_GSO | IS_PARTIAL | IS_UDP_PARTIAL;
		memcpy(super, p->frame, at);
		put16(super + sizeof(struct ethhdr) + 4, size);
		for (u32 n = 0; n < 20; n++)
			memcpy(super + at + n * size, p->frame + at, size);
		fuzz_seed("super", i, &shape, sizeof(shape), super, at + (u32)(i % 20 + 1) * size);
	}
	golden_free(&golden);
	exit(0);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct xroce_tap tap = { .client = CLIENT, .place = PLACE };
	struct bpf_packet sent;
	struct __sk_buff skb;
	struct shape shape;
	u8 *frame;
	u32 len;

	frame = fuzz_frame(data, size, &shape, sizeof(shape), HOST_FRAME_MAX, &len);
	if (!frame)
		return 0;
	host_fix(frame, len, shape.fixes);
	tap.privileged = shape.flags & IS_PRIVILEGED;
	skb = take(&shape, frame, len);
	/* fields that are not set have either value */
	memset(&sent, shape.fixes & 0x80 ? 0xff : 0, sizeof(sent));
	if (egress_check(&skb, &sent, &tap) == XROCE_EGRESS_none)
		check_sent(&skb, &sent, tap.privileged);
	free(frame);
	return 0;
}
