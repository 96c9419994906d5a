/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The packet codec. It owns the layout of a RoCEv2 frame from Ethernet to ICRC, in both directions,
 * and never decides what a packet means: QPNs, PSNs, keys and the lengths that a path MTU allows
 * are the engine's.
 *
 * Received frames are untrusted. Each header is pulled from a cursor that ends with the linear part
 * of the IP packet, and all lengths are checked against one another before payload is accessed. A
 * frame that fails before its UDP port is known is not_roce: XDP passes such frames. Later drop
 * reasons are the same as XDP's, in the same order: IP options, fragments, IP length, UDP length,
 * BTH, version, opcode, extension headers, pad, payload. The IPv4 header checksum is written but,
 * as in XDP, not verified: the ICRC covers the lengths and addresses.
 */
#include "guard.h"
#include "icrc.h"
#include "packet.h"

#define ETH_ALEN          6
#define ETH_P_IPV4        0x0800
#define ETH_P_IPV6        0x86dd
#define ETH_P_8021Q       0x8100
#define ETH_P_8021AD      0x88a8
#define IP_PROTO_UDP      17
#define IP_PROTO_FRAGMENT 44
#define IPV4_VERSION_IHL  0x45
#define IPV4_DF           0x4000
#define IPV4_MF           0x2000
#define IPV4_OFFSET       0x1fff
#define IPV6_OFFSET       0xfff8
#define CNP_BYTES         16
#define FLOW_LABEL_MAX    0xfffffu

struct eth {
	u8 dmac[ETH_ALEN];
	u8 smac[ETH_ALEN];
	__be16 type;
} __attribute__((packed));

struct vlan {
	__be16 tci;
	__be16 type;
} __attribute__((packed));

struct ipv4 {
	u8 version_ihl;
	u8 tos;
	__be16 total_len;
	__be16 id;
	__be16 frag;
	u8 ttl;
	u8 protocol;
	__be16 checksum;
	u8 src[4];
	u8 dst[4];
} __attribute__((packed));

struct ipv6 {
	__be32 version_tc_flow;
	__be16 payload_len;
	u8 next_header;
	u8 hop_limit;
	u8 src[16];
	u8 dst[16];
} __attribute__((packed));

struct ipv6_fragment {
	u8 next_header;
	u8 reserved;
	__be16 offset;
	__be32 id;
} __attribute__((packed));

struct udp {
	__be16 sport;
	__be16 dport;
	__be16 len;
	__be16 checksum;
} __attribute__((packed));

_Static_assert(sizeof(struct eth) == 14 && sizeof(struct vlan) == 4, "Ethernet");
_Static_assert(sizeof(struct ipv4) == 20 && sizeof(struct ipv6) == 40 && sizeof(struct udp) == 8,
	       "IP and UDP");
_Static_assert(sizeof(struct eth) + 2 * sizeof(struct vlan) + sizeof(struct ipv6) +
			       sizeof(struct udp) + sizeof(struct bth) + sizeof(struct xrc_eth) +
			       sizeof(struct atomic_eth) <=
		       PACKET_HEADER_MAX,
	       "the longest headers fit");

/* ---- parsing ---- */

/* The rest of the linear part. */
struct cursor {
	const u8 *pos;
	const u8 *end;
};

/* Returns the next n bytes, or NULL if fewer are left. */
static inline const void *packet_pull(struct cursor *c, size_t n)
{
	const u8 *p = c->pos;

	if (unlikely((size_t)(c->end - p) < n))
		return NULL;
	c->pos = p + n;
	return p;
}

static inline bool packet_is_vlan(u16 type)
{
	return type == ETH_P_8021Q || type == ETH_P_8021AD;
}

static inline void packet_gid_from_ipv4(struct gid *g, const u8 addr[4])
{
	memset(g->raw, 0, 10);
	memset(g->raw + 10, 0xff, 2);
	memcpy(g->raw + 12, addr, 4);
}

/* Reads the opcode's extension headers, in wire order; ext has roce_ext_bytes(flags) bytes. */
static inline void packet_get_aeth(const u8 *ext, struct packet *p)
{
	u32 word = be32toh(((const struct aeth *)ext)->syndrome_msn);

	p->syndrome = word >> 24;
	p->msn = word & MSN_MASK;
}

static void packet_get_extensions(const u8 *ext, struct packet *p, u32 flags)
{
	if (flags & OP_DETH) {
		const struct deth *h = (const struct deth *)ext;

		p->qkey = be32toh(h->qkey);
		p->src_qpn = be32toh(h->src_qpn) & ROCE_QPN_MASK;
		ext += sizeof(*h);
	}
	if (flags & OP_XRC_ETH) {
		const struct xrc_eth *h = (const struct xrc_eth *)ext;

		p->xrc_srqn = be32toh(h->srqn) & ROCE_QPN_MASK;
		ext += sizeof(*h);
	}
	if (flags & OP_FETH) {
		const struct feth *h = (const struct feth *)ext;

		p->flush = be32toh(h->flush);
		ext += sizeof(*h);
	}
	if (flags & OP_RETH) {
		const struct reth *h = (const struct reth *)ext;

		p->va = be64toh(h->va);
		p->rkey = be32toh(h->rkey);
		p->dma_len = be32toh(h->dma_len);
		ext += sizeof(*h);
	}
	if (flags & OP_ATOMIC_ETH) {
		const struct atomic_eth *h = (const struct atomic_eth *)ext;

		p->va = be64toh(h->va);
		p->rkey = be32toh(h->rkey);
		p->swap_add = be64toh(h->swap_add);
		p->compare = be64toh(h->compare);
		ext += sizeof(*h);
	}
	if (flags & OP_AETH) {
		packet_get_aeth(ext, p);
		ext += sizeof(struct aeth);
	}
	if (flags & OP_ATOMIC_ACK_ETH) {
		const struct atomic_ack_eth *h = (const struct atomic_ack_eth *)ext;

		p->original = be64toh(h->original);
		ext += sizeof(*h);
	}
	if (flags & OP_CREDIT) {
		const struct credit_eth *h = (const struct credit_eth *)ext;

		p->credit_cookie = be32toh(h->cookie);
		p->credit_allowance = be32toh(h->allowance);
	}
	/* The last header of its opcode. A CNP's 16 reserved bytes are ignored. */
	if (flags & OP_IMM)
		p->imm = ((const struct imm_dt *)ext)->imm;
	if (flags & OP_IETH)
		p->inv_rkey = be32toh(((const struct ieth *)ext)->rkey);
}

/* Lengths from the IP header, and whether it makes a RoCEv2 packet invalid. */
struct layer3 {
	size_t ip_len;	  /* header and payload */
	size_t udp_space; /* payload: what the UDP length must be */
	bool options;
	bool fragment;
};

/*
 * Pulls the Ethernet header and up to two VLAN tags, and sets *type to the type after them. False
 * if the frame is too short. A third tag is an unknown type. p gets the customer's tag: the inner
 * one of 802.1Q inside a provider's 802.1ad, else the outer.
 */
static inline bool packet_parse_ethernet(struct cursor *c, struct packet *p, u16 *type)
{
	const struct eth *eth = packet_pull(c, sizeof(*eth));
	const struct vlan *tag;
	u16 inner;

	if (unlikely(!eth))
		return false;
	*type = be16toh(eth->type);
	p->has_vlan = false;
	p->vlan_tci = 0;
	if (likely(!packet_is_vlan(*type)))
		return true;

	tag = packet_pull(c, sizeof(*tag));
	if (!tag)
		return false;
	inner = be16toh(tag->type);
	p->has_vlan = true;
	p->vlan_tci = be16toh(tag->tci);
	if (!packet_is_vlan(inner)) {
		*type = inner;
		return true;
	}

	tag = packet_pull(c, sizeof(*tag));
	if (!tag)
		return false;
	if (*type != ETH_P_8021Q && inner == ETH_P_8021Q)
		p->vlan_tci = be16toh(tag->tci);
	*type = be16toh(tag->type);
	return true;
}

/* Returns false if this is not UDP over IPv4, or is a later fragment, which has no port. */
static inline bool packet_parse_ipv4(struct cursor *c, struct packet *p, struct layer3 *l3)
{
	const struct ipv4 *ip = packet_pull(c, sizeof(*ip));
	size_t header_bytes;

	if (unlikely(!ip || ip->version_ihl >> 4 != 4 || ip->protocol != IP_PROTO_UDP ||
		     (be16toh(ip->frag) & IPV4_OFFSET)))
		return false;
	header_bytes = (ip->version_ihl & 0x0f) * 4u;
	if (unlikely(header_bytes < sizeof(*ip) || !packet_pull(c, header_bytes - sizeof(*ip))))
		return false;
	l3->options = header_bytes != sizeof(*ip);
	l3->fragment = be16toh(ip->frag) & IPV4_MF;
	l3->ip_len = be16toh(ip->total_len);
	/* wraps with a bad total_len, which is refused before this is used */
	l3->udp_space = l3->ip_len - header_bytes;
	p->is_ipv6 = false;
	p->tos = ip->tos;
	p->hop_limit = ip->ttl;
	p->ip_id = be16toh(ip->id);
	packet_gid_from_ipv4(&p->src, ip->src);
	packet_gid_from_ipv4(&p->dst, ip->dst);
	return true;
}

/*
 * Returns false if this is not UDP over IPv6, directly or in a first fragment. RoCEv2 has no other
 * IPv6 extension headers.
 */
static inline bool packet_parse_ipv6(struct cursor *c, struct packet *p, struct layer3 *l3)
{
	const struct ipv6 *ip = packet_pull(c, sizeof(*ip));
	u8 next_header;

	if (unlikely(!ip || be32toh(ip->version_tc_flow) >> 28 != 6))
		return false;
	next_header = ip->next_header;
	l3->options = false;
	l3->fragment = next_header == IP_PROTO_FRAGMENT;
	if (unlikely(l3->fragment)) {
		const struct ipv6_fragment *fragment = packet_pull(c, sizeof(*fragment));

		if (!fragment || (be16toh(fragment->offset) & IPV6_OFFSET))
			return false;
		next_header = fragment->next_header;
	}
	if (unlikely(next_header != IP_PROTO_UDP))
		return false;
	l3->udp_space = be16toh(ip->payload_len);
	l3->ip_len = sizeof(*ip) + l3->udp_space;
	p->is_ipv6 = true;
	p->tos = (u8)(be32toh(ip->version_tc_flow) >> 20);
	p->hop_limit = ip->hop_limit;
	p->ip_id = 0;
	memcpy(p->src.raw, ip->src, sizeof(p->src.raw));
	memcpy(p->dst.raw, ip->dst, sizeof(p->dst.raw));
	return true;
}

static inline void packet_get_bth(const struct bth *bth, struct packet *p)
{
	u32 word = be32toh(bth->ecn_qpn);

	p->opcode = bth->opcode;
	p->tver = bth->flags & BTH_TVER_MASK;
	p->solicited = bth->flags & BTH_SE;
	p->migreq = bth->flags & BTH_MIGREQ;
	p->pad = (bth->flags & BTH_PAD_MASK) >> BTH_PAD_SHIFT;
	p->pkey = be16toh(bth->pkey);
	p->fecn = word & BTH_FECN;
	p->becn = word & BTH_BECN;
	p->dest_qpn = word & ROCE_QPN_MASK;
	word = be32toh(bth->ack_psn);
	p->ackreq = word & BTH_ACKREQ;
	p->psn = word & ROCE_PSN_MASK;
}

/*
 * The extension headers' fields are one block in the struct. Clearing all of it would double the
 * cost of parsing.
 */
static inline void packet_clear_extensions(struct packet *p)
{
	memset((u8 *)p + offsetof(struct packet, va), 0,
	       offsetof(struct packet, payload_len) - offsetof(struct packet, va));
}

const u8 *packet_get_transport(const struct bth *bth, struct packet *p)
{
	const u8 *ext = (const u8 *)(bth + 1);

	packet_get_bth(bth, p);
	p->flags = opcode_flags(p->opcode);
	packet_clear_extensions(p);
	if (!(p->flags & OP_EXTENSIONS))
		return ext;
	if ((p->flags & OP_EXTENSIONS) == OP_AETH) {
		packet_get_aeth(ext, p);
		return ext + sizeof(struct aeth);
	}
	packet_get_extensions(ext, p, p->flags);
	return ext + roce_ext_bytes(p->flags);
}

enum xroce_drop packet_parse(struct packet *p, const struct rx_frame *f)
{
	struct cursor c = { f->data, f->data + f->len };
	const struct udp *udp;
	const struct bth *bth;
	struct layer3 l3;
	u32 udp_len, rest;
	size_t linear;
	u16 type;

	if (!packet_parse_ethernet(&c, p, &type))
		return XROCE_DROP_not_roce;
	p->ip = c.pos;
	linear = (size_t)(c.end - c.pos);
	if (!(type == ETH_P_IPV4 ? packet_parse_ipv4(&c, p, &l3) :
				   type == ETH_P_IPV6 && packet_parse_ipv6(&c, p, &l3)))
		return XROCE_DROP_not_roce;
	udp = packet_pull(&c, sizeof(*udp));
	if (unlikely(!udp || udp->dport != htobe16(ROCE_UDP_PORT)))
		return XROCE_DROP_not_roce;
	if (unlikely(l3.options))
		return XROCE_DROP_ip_options;
	if (unlikely(l3.fragment))
		return XROCE_DROP_ip_fragment;

	/* The IP packet ends inside the frame; the rest is Ethernet padding. */
	if (unlikely(l3.ip_len < (size_t)(c.pos - p->ip) || l3.ip_len > linear + f->frag_len))
		return XROCE_DROP_ip_length;
	p->frag = NULL;
	p->frag_len = 0;
	if (l3.ip_len <= linear) {
		c.end = p->ip + l3.ip_len;
	} else {
		p->frag = f->frag;
		p->frag_len = (u32)(l3.ip_len - linear);
	}
	p->end = c.end;
	udp_len = be16toh(udp->len);
	if (unlikely(udp_len != l3.udp_space))
		return XROCE_DROP_udp_length;
	p->udp_sport = be16toh(udp->sport);

	/* From here on the lengths agree: if a pull fails, the second buffer has the bytes. */
	if (unlikely(udp_len < sizeof(*udp) + sizeof(*bth) + ROCE_ICRC_BYTES))
		return XROCE_DROP_bth_short;
	rest = udp_len - (u32)(sizeof(*udp) + sizeof(*bth) + ROCE_ICRC_BYTES);
	bth = packet_pull(&c, sizeof(*bth));
	if (unlikely(!bth))
		return XROCE_DROP_multibuffer;
	packet_get_bth(bth, p);
	if (unlikely(p->tver != 0))
		return XROCE_DROP_bth_version;
	p->flags = opcode_flags(p->opcode);
	if (unlikely(!p->flags))
		return XROCE_DROP_opcode;

	packet_clear_extensions(p);
	if (p->flags & OP_EXTENSIONS) {
		u32 ext_bytes = roce_ext_bytes(p->flags);
		const u8 *ext;

		if (unlikely(rest < ext_bytes))
			return XROCE_DROP_ext_short;
		rest -= ext_bytes;
		ext = packet_pull(&c, ext_bytes);
		if (unlikely(!ext))
			return XROCE_DROP_multibuffer;
		packet_get_extensions(ext, p, p->flags);
	}

	/* Pad fills up to a multiple of 4: other lengths are invalid. */
	if (unlikely(rest < p->pad || rest % 4 || (rest && !(p->flags & OP_PAYLOAD))))
		return XROCE_DROP_pad;
	p->payload_len = rest - p->pad;
	if (unlikely(p->payload_len > ROCE_PMTU_MAX))
		return XROCE_DROP_payload_long;
	p->payload = c.pos;
	return XROCE_DROP_none;
}

u32 packet_icrc_difference(const struct packet *p)
{
	size_t linear = (size_t)(p->end - p->ip);
	u8 stored[ROCE_ICRC_BYTES];
	icrc_t crc;
	u32 before;

	if (likely(!p->frag_len))
		return icrc_difference(icrc_packet(p->ip, p->is_ipv6, linear - ROCE_ICRC_BYTES),
				       p->end - ROCE_ICRC_BYTES);

	if (p->frag_len >= ROCE_ICRC_BYTES) {
		crc = icrc_packet(p->ip, p->is_ipv6, linear);
		crc = icrc_update(crc, p->frag, p->frag_len - ROCE_ICRC_BYTES);
		return icrc_difference(crc, p->frag + p->frag_len - ROCE_ICRC_BYTES);
	}

	/* The boundary is inside the stored ICRC: 1..3 bytes of it are in the first buffer. */
	before = ROCE_ICRC_BYTES - p->frag_len;
	memcpy(stored, p->end - before, before);
	memcpy(stored + before, p->frag, p->frag_len);
	return icrc_difference(icrc_packet(p->ip, p->is_ipv6, linear - before), stored);
}

void packet_copy_payload(const struct packet *p, u32 offset, void *dst, u32 len)
{
	size_t linear = (size_t)(p->end - p->payload);
	size_t first;

	if (likely(!p->frag_len)) {
		memcpy(dst, p->payload + offset, len);
		return;
	}
	first = offset < linear ? min_u64(len, linear - offset) : 0;
	memcpy(dst, p->payload + offset, first);
	if (first < len)
		memcpy((u8 *)dst + first, p->frag + (offset + first - linear), len - first);
}

bool packet_place_payload(const struct packet *p, void *dst)
{
	const struct guard_bytes payload = packet_payload(p);

	return guard_write_from(dst, &payload, 0, p->payload_len);
}

/* ---- building ---- */

/* Room for n bytes at the cursor. */
static inline void *packet_put(u8 **pos, size_t n)
{
	u8 *p = *pos;

	*pos = p + n;
	return p;
}

/* Two words stored at once: see packet_put_extensions(). */
typedef u64 u64_pair __attribute__((vector_size(16)));

u8 *packet_put_extensions(u8 *pos, const struct packet *p, u32 flags)
{
	if (flags & OP_DETH)
		*(struct deth *)packet_put(&pos, sizeof(struct deth)) = (struct deth){
			.qkey = htobe32(p->qkey),
			.src_qpn = htobe32(p->src_qpn & ROCE_QPN_MASK),
		};
	if (flags & OP_XRC_ETH)
		*(struct xrc_eth *)packet_put(&pos, sizeof(struct xrc_eth)) = (struct xrc_eth){
			.srqn = htobe32(p->xrc_srqn & ROCE_QPN_MASK),
		};
	if (flags & OP_FETH)
		*(struct feth *)packet_put(&pos, sizeof(struct feth)) =
			(struct feth){ .flush = htobe32(p->flush) };
	if (flags & OP_RETH) {
		const u64_pair reth = { htobe64(p->va), htobe64((u64)p->rkey << 32 | p->dma_len) };

		memcpy(packet_put(&pos, sizeof(struct reth)), &reth, sizeof(reth));
	}
	if (flags & OP_ATOMIC_ETH)
		*(struct atomic_eth *)packet_put(&pos, sizeof(struct atomic_eth)) =
			(struct atomic_eth){
				.va = htobe64(p->va),
				.rkey = htobe32(p->rkey),
				.swap_add = htobe64(p->swap_add),
				.compare = htobe64(p->compare),
			};
	if (flags & OP_AETH)
		*(struct aeth *)packet_put(&pos, sizeof(struct aeth)) = (struct aeth){
			.syndrome_msn = packet_aeth(p->syndrome, p->msn),
		};
	if (flags & OP_ATOMIC_ACK_ETH)
		*(struct atomic_ack_eth *)packet_put(&pos, sizeof(struct atomic_ack_eth)) =
			(struct atomic_ack_eth){
				.original = htobe64(p->original),
			};
	if (flags & OP_IMM)
		*(struct imm_dt *)packet_put(&pos, sizeof(struct imm_dt)) =
			(struct imm_dt){ .imm = p->imm };
	if (flags & OP_IETH)
		*(struct ieth *)packet_put(&pos, sizeof(struct ieth)) =
			(struct ieth){ .rkey = htobe32(p->inv_rkey) };
	if (flags & OP_CREDIT)
		*(struct credit_eth *)packet_put(&pos, sizeof(struct credit_eth)) =
			(struct credit_eth){
				.cookie = htobe32(p->credit_cookie),
				.allowance = htobe32(p->credit_allowance),
			};
	if (flags & OP_CNP)
		memset(packet_put(&pos, CNP_BYTES), 0, CNP_BYTES);
	return pos;
}

/*
 * RFC 1071, from the fields in host order rather than from the header just written: a load across
 * several narrower stores stalls for longer than all else in packet_put_headers() takes.
 */
static inline u16 ipv4_checksum(const struct path *path, u32 total_len, u16 id)
{
	u32 src, dst, sum;

	memcpy(&src, path->local.raw + 12, sizeof(src));
	memcpy(&dst, path->peer.raw + 12, sizeof(dst));
	src = be32toh(src);
	dst = be32toh(dst);
	sum = (IPV4_VERSION_IHL << 8 | path->tos) + total_len + id + IPV4_DF +
	      ((u32)path->hop_limit << 8 | IP_PROTO_UDP) + (src >> 16) + (src & 0xffff) +
	      (dst >> 16) + (dst & 0xffff);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (u16)~sum;
}

static inline u32 pad_bytes(u32 payload_len)
{
	return -payload_len & 3;
}

static inline u32 l2_bytes(const struct path *path)
{
	return sizeof(struct eth) + (path->has_vlan ? sizeof(struct vlan) : 0);
}

u32 packet_header_bytes(const struct path *path, u8 opcode)
{
	return l2_bytes(path) + icrc_start_bytes(path->is_ipv6) +
	       roce_ext_bytes(opcode_flags(opcode));
}

u8 *packet_put_headers(u8 *frame, const struct path *path, const struct packet *p)
{
	u32 flags = opcode_flags(p->opcode);
	u32 pad = pad_bytes(p->payload_len);
	u8 *l3 = frame + l2_bytes(path);
	u8 *l4 = l3 + (path->is_ipv6 ? sizeof(struct ipv6) : sizeof(struct ipv4));
	u8 *l5 = l4 + sizeof(struct udp);
	u8 *payload = l5 + sizeof(struct bth);
	u16 ethertype = path->is_ipv6 ? ETH_P_IPV6 : ETH_P_IPV4;
	struct eth *eth = (struct eth *)frame;
	u32 udp_len;

	if (flags & OP_EXTENSIONS)
		payload = packet_put_extensions(payload, p, flags);
	udp_len = (u32)(payload - l4) + p->payload_len + pad + ROCE_ICRC_BYTES;

	memcpy(eth->dmac, path->dmac, ETH_ALEN);
	memcpy(eth->smac, path->smac, ETH_ALEN);
	if (unlikely(path->has_vlan)) {
		eth->type = htobe16(ETH_P_8021Q);
		*(struct vlan *)(eth + 1) =
			(struct vlan){ htobe16(path->vlan_tci), htobe16(ethertype) };
	} else {
		eth->type = htobe16(ethertype);
	}

	if (!path->is_ipv6) {
		struct ipv4 *ip = (struct ipv4 *)l3;
		u32 total_len = sizeof(*ip) + udp_len;

		ip->version_ihl = IPV4_VERSION_IHL;
		ip->tos = path->tos;
		ip->total_len = htobe16((u16)total_len);
		ip->id = htobe16(p->ip_id);
		ip->frag = htobe16(IPV4_DF);
		ip->ttl = path->hop_limit;
		ip->protocol = IP_PROTO_UDP;
		ip->checksum = htobe16(ipv4_checksum(path, total_len, p->ip_id));
		memcpy(ip->src, path->local.raw + 12, sizeof(ip->src));
		memcpy(ip->dst, path->peer.raw + 12, sizeof(ip->dst));
	} else {
		struct ipv6 *ip = (struct ipv6 *)l3;

		ip->version_tc_flow = htobe32(6u << 28 | (u32)path->tos << 20 |
					      (path->flow_label & FLOW_LABEL_MAX));
		ip->payload_len = htobe16((u16)udp_len);
		ip->next_header = IP_PROTO_UDP;
		ip->hop_limit = path->hop_limit;
		memcpy(ip->src, path->local.raw, sizeof(ip->src));
		memcpy(ip->dst, path->peer.raw, sizeof(ip->dst));
	}

	/*
	 * Checksum 0, over IPv6 too: the ICRC protects more (protocol sheet; Soft-RoCE does the
	 * same in every capture).
	 */
	*(struct udp *)l4 = (struct udp){
		.sport = htobe16(path->udp_sport),
		.dport = htobe16(ROCE_UDP_PORT),
		.len = htobe16((u16)udp_len),
	};

	*(struct bth *)l5 = (struct bth){
		.opcode = p->opcode,
		.flags = (u8)((p->solicited ? BTH_SE : 0) | (p->migreq ? BTH_MIGREQ : 0) |
			      pad << BTH_PAD_SHIFT),
		.pkey = htobe16(p->pkey),
		.ecn_qpn = htobe32((p->fecn ? BTH_FECN : 0) | (p->becn ? BTH_BECN : 0) |
				   (p->dest_qpn & ROCE_QPN_MASK)),
		.ack_psn = htobe32((p->ackreq ? BTH_ACKREQ : 0) | (p->psn & ROCE_PSN_MASK)),
	};
	return payload;
}

u32 packet_seal(u8 *frame, u8 *payload, u32 payload_len)
{
	const struct eth *eth = (const struct eth *)frame;
	bool has_vlan = eth->type == htobe16(ETH_P_8021Q);
	__be16 ethertype = has_vlan ? ((const struct vlan *)(eth + 1))->type : eth->type;
	bool is_ipv6 = ethertype == htobe16(ETH_P_IPV6);
	const u8 *ip = frame + sizeof(*eth) + (has_vlan ? sizeof(struct vlan) : 0);
	u32 pad = pad_bytes(payload_len);
	u8 *end = payload + payload_len;

	memset(end, 0, pad);
	end += pad;
	icrc_store(icrc_packet(ip, is_ipv6, (size_t)(end - ip)), end);
	return (u32)(end + ROCE_ICRC_BYTES - frame);
}

u16 path_udp_sport(u32 flow_label, u32 local_qpn, u32 remote_qpn)
{
	u32 fl = flow_label & FLOW_LABEL_MAX;

	if (!fl) {
		u64 v = (u64)local_qpn * remote_qpn;

		v ^= v >> 20;
		v ^= v >> 40;
		fl = v & FLOW_LABEL_MAX;
	}
	return (u16)(((fl & 0x3fff) ^ (fl >> 14)) | ROCE_UDP_SPORT_MIN);
}

/*
 * The opcode table of wire.h for user space: flags for the codec and the engine, names for
 * messages.
 */

static const u32 flags_of[256] = { ROCE_OPCODE_FLAGS };

/* The same rows again for the names; only the transport's prefix differs. */
#define NAME_RC(name, low, flags) [OPCODE(XROCE_RC, low)] = "RC " #name,
#define NAME_UC(name, low, flags) [OPCODE(XROCE_UC, low)] = "UC " #name,
#define NAME_UD(name, low, flags) [OPCODE(XROCE_UD, low)] = "UD " #name,
#define NAME_XRC(name, low, flags) [OPCODE(XROCE_XRC, low)] = "XRC " #name,

static const char *const name_of[256] = {
	ROCE_SENDS_AND_WRITES(NAME_RC) ROCE_RELIABLE_REQUESTS(NAME_RC) ROCE_RESPONSES(NAME_RC)
		ROCE_SENDS_AND_WRITES(NAME_UC) ROCE_UD_SENDS(NAME_UD)
			ROCE_SENDS_AND_WRITES(NAME_XRC) ROCE_RELIABLE_REQUESTS(NAME_XRC)
				ROCE_RESPONSES(NAME_XRC)[OPCODE_CNP] = "CNP",
	[OPCODE_CREDIT_PROBE] = "FLOW_PROBE",
	[OPCODE_CREDIT_ANSWER] = "FLOW_ANSWER",
};

u32 opcode_flags(u8 opcode)
{
	return flags_of[opcode];
}

const char *opcode_name(u8 opcode)
{
	return name_of[opcode] ? name_of[opcode] : "unknown";
}
