/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The key of a flow: the fields of a frame that ibv_create_flow(3) can match, in one struct. XDP
 * and the library fill it in with the same code, so they agree on each frame: XDP checks if any
 * flow takes it, the library finds all that do.
 *
 * Define before including this file:
 *
 *	FLOW_FRAME				a pointer to a frame, of any type
 *	bool flow_load(FLOW_FRAME frame, __u32 at, void *to, __u32 bytes)
 *						from offset at; false: the frame is too short
 *	FLOW_INLINE				static inline, as BPF or user space needs
 */
#ifndef XROCE_FLOW_H
#define XROCE_FLOW_H

#include <xroce/abi.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FLOW_BE16(x) ((__be16)((((x)&0xff) << 8) | (((x) >> 8) & 0xff)))
#define FLOW_BE32(x) ((__be32)__builtin_bswap32(x))
#else
#define FLOW_BE16(x) ((__be16)(x))
#define FLOW_BE32(x) ((__be32)(x))
#endif

#define FLOW_ETHERNET_BYTES 14u
#define FLOW_UDP_BYTES	    8u
#define FLOW_TAGS_MAX	    2
#define FLOW_TYPE_VLAN	    FLOW_BE16(0x8100)
#define FLOW_TYPE_QINQ	    FLOW_BE16(0x88a8)
#define FLOW_TYPE_IPV4	    FLOW_BE16(0x0800)
#define FLOW_TYPE_IPV6	    FLOW_BE16(0x86dd)
#define FLOW_TYPE_MPLS	    FLOW_BE16(0x8847)
#define FLOW_TYPE_MPLS_MC   FLOW_BE16(0x8848)
#define FLOW_PROTO_TCP	    6
#define FLOW_PROTO_UDP	    17
#define FLOW_PROTO_GRE	    47
#define FLOW_PROTO_ESP	    50
#define FLOW_PORT_VXLAN	    FLOW_BE16(4789)
#define FLOW_VXLAN_VNI	    FLOW_BE32(0x08000000u) /* flag: the VNI is valid */
#define FLOW_TYPE_BRIDGED   FLOW_BE16(0x6558)	     /* GRE: carries an Ethernet frame */
#define FLOW_GRE_CHECKSUM   FLOW_BE16(0x8000)
#define FLOW_GRE_KEY	    FLOW_BE16(0x2000)
#define FLOW_GRE_SEQUENCE   FLOW_BE16(0x1000)
#define FLOW_GRE_OTHER	    FLOW_BE16(0x4007) /* routing, version: different layout */
#define FLOW_LABEL_MASK	    FLOW_BE32(0xfffffu)

struct flow_tag {
	__be16 tci;
	__be16 type;
};

struct flow_ipv4 {
	__u8 version_ihl;
	__u8 tos;
	__be16 length, id, fragment;
	__u8 ttl;
	__u8 proto;
	__be16 check;
	__u32 src, dst;
};

struct flow_vxlan {
	__be32 flags;
	__be32 vni; /* and 8 reserved bits */
};

struct flow_ipv6 {
	__be32 version_class_label;
	__be16 length;
	__u8 next;
	__u8 hop_limit;
	__u32 src[4], dst[4];
};

/* Parses the ports of UDP and TCP, or the SPI and sequence number of ESP. */
FLOW_INLINE void flow_parse_ports(FLOW_FRAME frame, __u32 at, struct xroce_flow_key *key)
{
	_Static_assert(offsetof(struct xroce_flow_key, dport) ==
			       offsetof(struct xroce_flow_key, sport) + sizeof(key->sport),
		       "both are loaded at once");
	_Static_assert(offsetof(struct xroce_flow_key, seq) ==
			       offsetof(struct xroce_flow_key, spi) + sizeof(key->spi),
		       "both are loaded at once");

	if (key->proto == FLOW_PROTO_ESP) {
		if (flow_load(frame, at, &key->spi, 2 * sizeof(key->spi)))
			key->kinds |= XROCE_FLOW_ESP;
		return;
	}
	if (key->proto != FLOW_PROTO_UDP && key->proto != FLOW_PROTO_TCP)
		return;
	if (!flow_load(frame, at, &key->sport, 2 * sizeof(key->sport)))
		return;
	key->kinds |= key->proto == FLOW_PROTO_UDP ? XROCE_FLOW_UDP : XROCE_FLOW_TCP;
}

/*
 * Returns the offset after the header, like flow_parse_ipv6(); 0 if this is not IPv4, or a fragment
 * other than the first, which has no ports or further headers.
 */
FLOW_INLINE __u32 flow_parse_ipv4(FLOW_FRAME frame, __u32 at, struct xroce_flow_key *key)
{
	struct flow_ipv4 ip;
	__u32 header;

	if (!flow_load(frame, at, &ip, sizeof(ip)) || ip.version_ihl >> 4 != 4)
		return 0;
	header = (ip.version_ihl & 0xf) * 4u;
	if (header < sizeof(ip))
		return 0;
	key->kinds |= XROCE_FLOW_IPV4;
	key->src[0] = ip.src;
	key->dst[0] = ip.dst;
	key->proto = ip.proto;
	key->tos = ip.tos;
	key->ttl = ip.ttl;
	key->ip_flags = (ip.fragment & FLOW_BE16(0x4000) ? XROCE_FLOW_DONT_FRAGMENT : 0) |
			(ip.fragment & FLOW_BE16(0x2000) ? XROCE_FLOW_MORE_FRAGMENTS : 0);
	return ip.fragment & FLOW_BE16(0x1fff) ? 0 : at + header;
}

/* Skips no extension headers: the key's protocol is the first header's next-header number. */
FLOW_INLINE __u32 flow_parse_ipv6(FLOW_FRAME frame, __u32 at, struct xroce_flow_key *key)
{
	struct flow_ipv6 ip;

	if (!flow_load(frame, at, &ip, sizeof(ip)) ||
	    (ip.version_class_label & FLOW_BE32(0xf0000000u)) != FLOW_BE32(0x60000000u))
		return 0;
	key->kinds |= XROCE_FLOW_IPV6;
	for (int i = 0; i < 4; i++) {
		key->src[i] = ip.src[i];
		key->dst[i] = ip.dst[i];
	}
	key->proto = ip.next;
	key->tos = (__u8)(FLOW_BE32(ip.version_class_label) >> 20);
	key->ttl = ip.hop_limit;
	key->flow_label = ip.version_class_label & FLOW_LABEL_MASK;
	return at + (__u32)sizeof(ip);
}

/* Loads the first entry of the label stack only: MPLS does not give the payload's type. */
FLOW_INLINE void flow_parse_mpls(FLOW_FRAME frame, __u32 at, struct xroce_flow_key *key)
{
	if (flow_load(frame, at, &key->flow_label, sizeof(key->flow_label)))
		key->kinds |= XROCE_FLOW_MPLS;
}

/*
 * Parses by EtherType. Returns the offset after the IP header, or 0: no further header is visible.
 */
FLOW_INLINE __u32 flow_parse_ip(FLOW_FRAME frame, __u32 at, struct xroce_flow_key *key)
{
	if (key->ether_type == FLOW_TYPE_MPLS || key->ether_type == FLOW_TYPE_MPLS_MC) {
		flow_parse_mpls(frame, at, key);
		return 0;
	}
	if (key->ether_type == FLOW_TYPE_IPV4)
		at = flow_parse_ipv4(frame, at, key);
	else
		at = key->ether_type == FLOW_TYPE_IPV6 ? flow_parse_ipv6(frame, at, key) : 0;
	if (at)
		flow_parse_ports(frame, at, key);
	return at;
}

/*
 * Takes the tag of the first VLAN header and the EtherType after the last (ibv_create_flow(3)).
 * Returns the offset after these headers; 0: not an Ethernet frame.
 */
FLOW_INLINE __u32 flow_parse_ethernet(FLOW_FRAME frame, __u32 at, struct xroce_flow_key *key)
{
	struct flow_tag tag;

	_Static_assert(offsetof(struct xroce_flow_key, ether_type) + sizeof(key->ether_type) ==
			       FLOW_ETHERNET_BYTES,
		       "a key begins as a frame does");
	if (!flow_load(frame, at, key, FLOW_ETHERNET_BYTES))
		return 0;
	at += FLOW_ETHERNET_BYTES;
	if (key->dst_mac[0] & 1)
		key->kinds |= XROCE_FLOW_MULTICAST;
	for (int i = 0; i < FLOW_TAGS_MAX; i++) {
		if (key->ether_type != FLOW_TYPE_VLAN && key->ether_type != FLOW_TYPE_QINQ)
			break;
		if (!flow_load(frame, at, &tag, sizeof(tag)))
			break;
		if (!i) {
			key->vlan_tci = tag.tci;
			key->kinds |= XROCE_FLOW_VLAN;
		}
		key->ether_type = tag.type;
		at += (__u32)sizeof(tag);
	}
	return at;
}

/* Returns the offset of the inner Ethernet frame; 0: not a VXLAN header with a VNI. */
FLOW_INLINE __u32 flow_parse_vxlan(FLOW_FRAME frame, __u32 at, struct xroce_flow_key *key,
				   struct xroce_flow_tunnel *tunnel)
{
	struct flow_vxlan vxlan;

	at += FLOW_UDP_BYTES;
	if (!flow_load(frame, at, &vxlan, sizeof(vxlan)) || !(vxlan.flags & FLOW_VXLAN_VNI))
		return 0;
	key->kinds |= XROCE_FLOW_VXLAN | XROCE_FLOW_TUNNEL;
	tunnel->id = FLOW_BE32(FLOW_BE32(vxlan.vni) >> 8);
	return at + (__u32)sizeof(vxlan);
}

/* Returns the offset of the inner packet; 0: not visible. */
FLOW_INLINE __u32 flow_parse_gre(FLOW_FRAME frame, __u32 at, struct xroce_flow_key *key,
				 struct xroce_flow_tunnel *tunnel)
{
	_Static_assert(offsetof(struct xroce_flow_tunnel, gre_protocol) ==
			       offsetof(struct xroce_flow_tunnel, gre_flags) + 2,
		       "both are loaded at once");

	if (!flow_load(frame, at, &tunnel->gre_flags, 4))
		return 0;
	key->kinds |= XROCE_FLOW_GRE | XROCE_FLOW_TUNNEL;
	if (tunnel->gre_flags & FLOW_GRE_OTHER)
		return 0;
	at += tunnel->gre_flags & FLOW_GRE_CHECKSUM ? 8 : 4;
	if (tunnel->gre_flags & FLOW_GRE_KEY) {
		if (!flow_load(frame, at, &tunnel->id, sizeof(tunnel->id)))
			return 0;
		at += (__u32)sizeof(tunnel->id);
	}
	return at + (tunnel->gre_flags & FLOW_GRE_SEQUENCE ? 4 : 0);
}

/* Parses a tunnel's header and its inner headers; at: offset after the outer IP header. */
FLOW_INLINE void flow_parse_tunnel(FLOW_FRAME frame, __u32 at, struct xroce_flow_key *key,
				   struct xroce_flow_tunnel *tunnel)
{
	struct xroce_flow_key *inner = &tunnel->inner;

	if (key->proto == FLOW_PROTO_GRE) {
		at = flow_parse_gre(frame, at, key, tunnel);
		inner->ether_type = tunnel->gre_protocol;
	} else if (key->proto == FLOW_PROTO_UDP && key->dport == FLOW_PORT_VXLAN) {
		at = flow_parse_vxlan(frame, at, key, tunnel);
		inner->ether_type = FLOW_TYPE_BRIDGED;
	} else {
		return;
	}
	if (at && inner->ether_type == FLOW_TYPE_BRIDGED) {
		at = flow_parse_ethernet(frame, at, inner);
		inner->kinds |= at ? XROCE_FLOW_ETHERNET : 0;
	}
	if (at)
		flow_parse_ip(frame, at, inner);
}

/* Returns false if the frame is not an Ethernet frame. */
FLOW_INLINE _Bool flow_parse(FLOW_FRAME frame, struct xroce_flow_key *key,
			     struct xroce_flow_tunnel *tunnel)
{
	__u32 at;

	__builtin_memset(key, 0, sizeof(*key));
	__builtin_memset(tunnel, 0, sizeof(*tunnel));
	at = flow_parse_ethernet(frame, 0, key);
	if (!at)
		return 0;
	at = flow_parse_ip(frame, at, key);
	if (at)
		flow_parse_tunnel(frame, at, key, tunnel);
	return 1;
}

typedef __u64 __attribute__((may_alias)) flow_word;

/* True if key equals value in all bits of mask; value has no bits outside mask. */
FLOW_INLINE _Bool flow_words_match(const void *key, const void *value, const void *mask,
				   __u32 bytes)
{
	const flow_word *k = key, *v = value, *m = mask;
	__u64 other = 0;

	for (__u32 i = 0; i < bytes / sizeof(*k); i++)
		other |= (k[i] & m[i]) ^ v[i];
	return !other;
}

FLOW_INLINE _Bool flow_matches(const struct xroce_flow_key *key, const struct xroce_flow_key *value,
			       const struct xroce_flow_key *mask)
{
	return flow_words_match(key, value, mask, sizeof(*key));
}

/* Used if the mask is of kind XROCE_FLOW_TUNNEL. */
FLOW_INLINE _Bool flow_tunnel_matches(const struct xroce_flow_tunnel *tunnel,
				      const struct xroce_flow_tunnel *value,
				      const struct xroce_flow_tunnel *mask)
{
	return flow_words_match(tunnel, value, mask, sizeof(*tunnel));
}

#endif
