/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses a frame from its first byte to the RoCEv2 payload. Reads packet bytes only: uses no map,
 * counts nothing, decides nothing.
 *
 * There are two steps. parse_ip() finds out whether this is RoCEv2 by its UDP port, in as few
 * instructions as possible, as every packet of the machine passes it. parse_roce() then checks
 * everything else. An error they find is a fault, a drop reason. The caller decides whether a
 * faulty packet is dropped, since it may not be for this device.
 *
 * Only the linear part is read. A multi-buffer frame whose headers are not all in it is a fault.
 *
 * Packet pointers move by constants only: the verifier allows adding a register only with
 * CAP_PERFMON, which opening a device must not need. Data at a variable offset (an immediate, the
 * port after IPv4 options) is copied by a helper.
 */
#ifndef BPF_PARSE_H
#define BPF_PARSE_H

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <xroce/abi.h>

#define IPV4_MORE_FRAGMENTS  0x2000
#define IPV4_FRAGMENT_OFFSET 0x1fff
#define IPV6_FRAGMENT_OFFSET 0xfff8
#define ECN_MASK	     3
#define ECN_CE		     3

struct vlan_tag {
	__be16 tci;
	__be16 proto;
};

struct ipv6_fragment {
	__u8 nexthdr;
	__u8 reserved;
	__be16 offset;
	__be32 id;
};

/* A GID or an IP address mapped to one, in words that can be loaded and compared at once. */
union address {
	__u8 gid[16];
	__u32 word[4];
	__u64 half[2];
};

/* Results of parsing. Offsets are from the start of the frame; numbers in host order except imm. */
struct packet {
	/* set once parse_ip() returned true */
	union address src, dst;
	__u32 l3;	    /* IP header */
	__u32 l4;	    /* UDP header */
	/* the same as a pointer, with the whole header in the linear part; unset with a fault */
	struct udphdr *udp;
	/* end of the IP packet, from the IP header; Ethernet padding may follow */
	__u32 ip_end;
	__u16 vlan_tci;	    /* of the customer's tag, see parse_ip(); 0 without one */
	__u8 tos;
	__u8 rx_flags;	    /* XROCE_RX_* */
	/* IPv4 identification, 0 over IPv6; of a super-packet: length of a packet from the BTH */
	__u16 ip_id;
	/* the BTH's fields were read, possibly from a packet with a fault after its BTH */
	__u8 has_bth;
	/* set if has_bth */
	__u8 opcode;
	__u8 bth_flags;
	__u16 sport;
	__u16 pkey;
	__u32 qpn;
	__u32 psn;
	/* set once parse_roce() found no fault; 0 if the packet has no such header */
	__u32 flags;	    /* OP_* of the opcode */
	__u32 frame_len;    /* in all buffers */
	__u32 src_qpn;
	__u32 qkey;
	__be32 imm;	    /* immediate or R_Key to invalidate */
	/* payload without pad; in a super-packet, as if all packets had the first one's headers */
	__u32 byte_len;
	/* number of packets, more than 1 in a super-packet; all else is the first one's */
	__u32 segments;
	__u8 syndrome;	    /* in an AETH */
};

static const __u32 opcode_flags[256] = { ROCE_OPCODE_FLAGS };

/* These load a whole field; for the packed structs of wire.h clang would load byte by byte. */
static __always_inline __u32 load_be32(const void *field)
{
	return bpf_ntohl(*(const __be32 *)field);
}

static __always_inline __u16 load_be16(const void *field)
{
	return bpf_ntohs(*(const __be16 *)field);
}

static __always_inline bool parse_is_vlan(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

/* Returns the UDP destination port at offset l4, or 0 if the UDP header is not in the frame. */
static __always_inline __be16 parse_udp_port(struct xdp_md *ctx, __u32 l4)
{
	struct udphdr udp;

	return bpf_xdp_load_bytes(ctx, l4, &udp, sizeof(udp)) ? 0 : udp.dest;
}

/* Sets the addresses and the identification of an IPv4 packet. */
static __always_inline void parse_ipv4_addresses(struct packet *p, const struct iphdr *ip)
{
	p->ip_id = bpf_ntohs(ip->id);
	p->src.half[0] = p->dst.half[0] = 0;
	p->src.word[2] = p->dst.word[2] = bpf_htonl(0xffff);
	p->src.word[3] = ip->saddr;
	p->dst.word[3] = ip->daddr;
}

/* The same of an IPv6 packet, which has no identification. */
static __always_inline void parse_ipv6_addresses(struct packet *p, const struct ipv6hdr *ip)
{
	p->ip_id = 0;
	__builtin_memcpy(&p->src, &ip->saddr, sizeof(p->src));
	__builtin_memcpy(&p->dst, &ip->daddr, sizeof(p->dst));
}

/* Parses IPv4 at ip, which is p->l3. Returns as parse_ip(). */
static __always_inline bool parse_ipv4(struct xdp_md *ctx, struct packet *p, struct iphdr *ip,
				       void *data_end, enum xroce_drop *fault)
{
	struct udphdr *udp = (void *)(ip + 1);
	__u32 header;
	__be16 port;

	if ((void *)(ip + 1) > data_end || ip->protocol != IPPROTO_UDP || ip->version != 4)
		return false;
	/*
	 * A later fragment has no port and cannot be told from others: it goes to the kernel, which
	 * never completes the packet.
	 */
	header = ip->ihl * 4;
	if (header < sizeof(*ip) || (ip->frag_off & bpf_htons(IPV4_FRAGMENT_OFFSET)))
		return false;
	p->l4 = p->l3 + header;
	if (ip->frag_off & bpf_htons(IPV4_MORE_FRAGMENTS))
		*fault = XROCE_DROP_ip_fragment;
	/* options take precedence, as in packet_parse() (user/engine/packet.c) */
	if (header == sizeof(*ip)) {
		if ((void *)(udp + 1) > data_end)
			return false;
		p->udp = udp;
		port = udp->dest;
	} else {
		port = parse_udp_port(ctx, p->l4);
		*fault = XROCE_DROP_ip_options;
	}
	if (port != bpf_htons(ROCE_UDP_PORT))
		return false;
	p->ip_end = p->l3 + bpf_ntohs(ip->tot_len);
	p->tos = ip->tos;
	parse_ipv4_addresses(p, ip);
	return true;
}

/*
 * Parses IPv6 at ip, as parse_ipv4(). RoCEv2 has no extension headers: UDP follows directly, or in
 * a first fragment, which is refused.
 */
static __always_inline bool parse_ipv6(struct packet *p, struct ipv6hdr *ip, void *data_end,
				       enum xroce_drop *fault)
{
	struct ipv6_fragment *fragment = (void *)(ip + 1);
	struct udphdr *udp = (void *)(ip + 1);

	if ((void *)(ip + 1) > data_end || ip->version != 6)
		return false;
	p->l4 = p->l3 + sizeof(*ip);
	if (ip->nexthdr == IPPROTO_FRAGMENT) {
		if ((void *)(fragment + 1) > data_end || fragment->nexthdr != IPPROTO_UDP ||
		    (fragment->offset & bpf_htons(IPV6_FRAGMENT_OFFSET)))
			return false;
		udp = (void *)(fragment + 1);
		*fault = XROCE_DROP_ip_fragment;
	} else if (ip->nexthdr != IPPROTO_UDP) {
		return false;
	}
	if ((void *)(udp + 1) > data_end || udp->dest != bpf_htons(ROCE_UDP_PORT))
		return false;
	p->udp = udp;
	p->ip_end = p->l4 + bpf_ntohs(ip->payload_len);
	p->tos = load_be16(ip) >> 4;
	p->rx_flags |= XROCE_RX_IPV6;
	parse_ipv6_addresses(p, ip);
	return true;
}

/*
 * Parses up to UDP. Returns false if the frame is not UDP to the RoCEv2 port as far as it shows:
 * then it is not for this device. Otherwise the addresses are set, and *fault has a fault of the IP
 * header, if any.
 */
static __always_inline bool parse_ip(struct xdp_md *ctx, struct packet *p, enum xroce_drop *fault)
{
	void *data = (void *)(long)ctx->data;
	void *data_end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct vlan_tag *tag = (void *)(eth + 1);
	void *ip = eth + 1;
	__be16 proto;

	if ((void *)(eth + 1) > data_end)
		return false;
	proto = eth->h_proto;
	p->l3 = sizeof(*eth);
	p->vlan_tci = 0;
	p->rx_flags = 0;
	p->segments = 1;
	p->has_bth = false;
	if (parse_is_vlan(proto)) {
		if ((void *)(tag + 1) > data_end)
			return false;
		p->vlan_tci = bpf_ntohs(tag->tci);
		p->rx_flags = XROCE_RX_VLAN;
		p->l3 += sizeof(*tag);
		proto = tag->proto;
		ip = tag + 1;
		if (parse_is_vlan(proto)) {
			tag++;
			if ((void *)(tag + 1) > data_end)
				return false;
			/* 802.1Q within 802.1ad: the provider's tag, then the customer's */
			if (eth->h_proto == bpf_htons(ETH_P_8021AD) &&
			    proto == bpf_htons(ETH_P_8021Q))
				p->vlan_tci = bpf_ntohs(tag->tci);
			p->l3 += sizeof(*tag);
			proto = tag->proto;
			ip = tag + 1;
		}
		barrier_var(ip); /* else clang adds p->l3 to data */
	}
	if (proto == bpf_htons(ETH_P_IP))
		return parse_ipv4(ctx, p, ip, data_end, fault);
	if (proto == bpf_htons(ETH_P_IPV6))
		return parse_ipv6(p, ip, data_end, fault);
	return false;
}

/*
 * Returns the length of a packet, from the BTH on, in a UDP datagram with this checksum and length;
 * 0 if that is one packet. A super-packet of UDP segmentation offload may arrive before anything
 * has cut it into datagrams (veth in generic mode). Then its checksum is the bare sum of the
 * pseudo-header, as the sender left it, where RoCEv2 has none (0); and its identification is the
 * length (user/engine/gso.c), or 0 with a code for the length in the BTH, of which ecn_qpn is
 * given. A datagram that user space could not cut counts as one packet here, too.
 */
static __attribute__((noinline)) __u32 parse_segment(const struct packet *p, __be16 check,
						     __be16 udp_len, __be32 ecn_qpn)
{
	__u32 sum, size = p->ip_id, len = bpf_ntohs(udp_len) - sizeof(struct udphdr);

	if (!size)
		size = roce_segment_of_code[(bpf_ntohl(ecn_qpn) & BTH_RESERVED) >> 24];
	/* parse_roce() refuses one longer than XROCE_SEGMENT_MAX as payload_long */
	if (size < XROCE_SEGMENT_MIN || size >= len || len > XROCE_SEGMENTS_MAX * size)
		return 0;
	sum = (p->src.word[3] & 0xffff) + (p->src.word[3] >> 16) + (p->dst.word[3] & 0xffff) +
	      (p->dst.word[3] >> 16) + udp_len + bpf_htons(IPPROTO_UDP);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == check ? size : 0;
}

/* Sets the number of packets in a datagram of len bytes of payload, and their length. */
static __always_inline void parse_set_segments(struct packet *p, __u32 segment, __u32 len)
{
	if (!segment)
		return;
	p->ip_id = segment;
	p->segments = (len + segment - 1) / segment;
}

/*
 * Checks the rest of a packet in which parse_ip() found no fault: lengths from the outside in, then
 * the BTH, then its extension headers. In a super-packet the first packet is checked. Returns
 * XROCE_DROP_none or the drop reason.
 */
static __always_inline enum xroce_drop parse_roce(struct xdp_md *ctx, struct packet *p)
{
	void *data_end = (void *)(long)ctx->data_end;
	struct udphdr *udp = p->udp;
	struct bth *bth = (void *)(udp + 1);
	void *ext = bth + 1;
	__u32 len, ext_len, pad, others = 0;

	p->frame_len = bpf_xdp_get_buff_len(ctx);
	if (p->ip_end > p->frame_len || p->ip_end < p->l4 + sizeof(*udp))
		return XROCE_DROP_ip_length;
	len = p->ip_end - p->l4;
	if (bpf_ntohs(udp->len) != len)
		return XROCE_DROP_udp_length;
	len -= sizeof(*udp);
	if (len < sizeof(*bth) + ROCE_ICRC_BYTES)
		return XROCE_DROP_bth_short;
	if (ext > data_end)
		return XROCE_DROP_multibuffer;
	if (udp->check)
		parse_set_segments(p, parse_segment(p, udp->check, udp->len, bth->ecn_qpn), len);
	len -= sizeof(*bth) + ROCE_ICRC_BYTES;
	p->sport = bpf_ntohs(udp->source);
	p->opcode = bth->opcode;
	p->bth_flags = bth->flags;
	p->pkey = load_be16(&bth->pkey);
	p->qpn = load_be32(&bth->ecn_qpn) & ROCE_QPN_MASK;
	p->psn = load_be32(&bth->ack_psn) & ROCE_PSN_MASK;
	p->has_bth = true;
	if (p->bth_flags & BTH_TVER_MASK)
		return XROCE_DROP_bth_version;
	p->src_qpn = p->qkey = p->imm = p->syndrome = 0;
	p->flags = opcode_flags[p->opcode];
	if (!p->flags)
		return XROCE_DROP_opcode;
	if (p->segments > 1) {
		p->rx_flags |= XROCE_RX_GSO;
		/* bytes after the first packet */
		others = len + sizeof(*bth) + ROCE_ICRC_BYTES - p->ip_id;
		len = p->ip_id - sizeof(*bth) - ROCE_ICRC_BYTES;
	}

	ext_len = roce_ext_bytes(p->flags);
	if (len < ext_len)
		return XROCE_DROP_ext_short;
	len -= ext_len;
	/* The headers read here: a DETH or AETH comes first, an immediate or R_Key last. */
	if (p->flags & OP_DETH) {
		struct deth *deth = ext;

		if ((void *)(deth + 1) > data_end)
			return XROCE_DROP_multibuffer;
		p->qkey = load_be32(&deth->qkey);
		p->src_qpn = load_be32(&deth->src_qpn) & ROCE_QPN_MASK;
	}
	if (p->flags & OP_AETH) {
		struct aeth *aeth = ext;

		if ((void *)(aeth + 1) > data_end)
			return XROCE_DROP_multibuffer;
		p->syndrome = load_be32(aeth) >> 24;
	}
	if (p->flags & (OP_IMM | OP_IETH)) {
		__u32 offset = p->l4 + sizeof(*udp) + sizeof(*bth) + ext_len - sizeof(p->imm);

		if (bpf_xdp_load_bytes(ctx, offset, &p->imm, sizeof(p->imm)))
			return XROCE_DROP_multibuffer;
	}

	/* Pad fills up to a multiple of 4, which aligns the ICRC: another length is wrong. */
	pad = (p->bth_flags & BTH_PAD_MASK) >> BTH_PAD_SHIFT;
	if (pad > len || len % 4 || (len && !(p->flags & OP_PAYLOAD)))
		return XROCE_DROP_pad;
	p->byte_len = len - pad;
	if (p->byte_len > ROCE_PMTU_MAX)
		return XROCE_DROP_payload_long;
	if (p->segments > 1) {
		ext_len = (p->segments - 1) * (sizeof(*bth) + ext_len + ROCE_ICRC_BYTES);
		p->byte_len += others > ext_len ? others - ext_len : 0;
	}

	if (p->flags & OP_IMM)
		p->rx_flags |= XROCE_RX_IMM;
	if (p->flags & OP_IETH)
		p->rx_flags |= XROCE_RX_INV;
	if (p->bth_flags & BTH_SE)
		p->rx_flags |= XROCE_RX_SOLICITED;
	if ((p->tos & ECN_MASK) == ECN_CE)
		p->rx_flags |= XROCE_RX_CE;
	return XROCE_DROP_none;
}

#endif
