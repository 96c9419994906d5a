/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checks what a client sends: RoCEv2 packets from the interface's addresses, from the client's QPs,
 * with P_Keys of the broker's table, and no privileged ones. All decisive data is read here from
 * kernel memory, after the client's last write to it. Reads packets and maps, and changes only
 * notes on connections (conn.h).
 *
 * A super-packet is cut by the kernel, or by a receiver that relies on its identification and
 * checksum (parse_segment()). Both must find the packets that are checked here.
 */
#ifndef BPF_EGRESS_H
#define BPF_EGRESS_H

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/virtio_net.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "conn.h"
#include "mad.h"
#include "maps_broker.h"
#include "parse.h"
#include "steer.h"

#define EGRESS_PULL	  (sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + sizeof(struct udphdr))
#define EGRESS_SMALL	  128u	 /* longest packet of a super-packet that is pulled as a whole */
#define EGRESS_PULL_SMALL 8256u	 /* 64 of these, and the headers */
#define EGRESS_LINEAR	  0x7fff /* a mask: the linear part of a frame is shorter */
#define EGRESS_AT_ONCE	  8u	 /* packets of a super-packet in one turn of the loop */
#define EGRESS_DF	  0x4000
#define QKEY_PRIVILEGED	  0x80000000u
#define CHECKSUM_PARTIAL  3
#define UDP_CHECKSUM_AT	  6
#define FAMILY_IPV4	  2  /* AF_INET */
#define FAMILY_IPV6	  10 /* AF_INET6 */
#define IPV6_MULTICAST	  0xff
#define IPV4_LOOPBACK	  127
#define IPV4_MULTICAST	  0xe0 /* and above: classes D and E, and the broadcast address */

/* ---- offloads that the client has requested for the frame ---- */

/* Kernel structs, as far as they are read here. */
struct sk_buff___xroce {
	unsigned char *head, *data;
	__u32 end;
	__u16 csum_start, csum_offset;
	__u8 ip_summed : 2;
} __attribute__((preserve_access_index));

struct skb_shared_info___xroce {
	unsigned int gso_type;
} __attribute__((preserve_access_index));

/* from an anonymous enum of the kernel; if their values change, super-packets are refused */
#define SKB_GSO_DODGY  (1u << 1) /* from user space */
#define SKB_GSO_UDP_L4 (1u << 17)

extern void *bpf_cast_to_kern_ctx(void *skb) __ksym __weak;
extern void *bpf_rdonly_cast(const void *at, __u32 type) __ksym __weak;

/* Returns NULL before 6.2, when no TAP device takes UDP super-packets. */
static __always_inline struct sk_buff___xroce *egress_skb(struct __sk_buff *skb)
{
	return bpf_cast_to_kern_ctx ? bpf_cast_to_kern_ctx(skb) : NULL;
}

/*
 * Returns whether the kernel will write a checksum into this frame. The client chooses the place,
 * which could overwrite checked data.
 */
static __always_inline bool egress_is_partial(struct __sk_buff *skb)
{
	struct sk_buff___xroce *k = egress_skb(skb);

	if (k)
		return BPF_CORE_READ_BITFIELD(k, ip_summed) == CHECKSUM_PARTIAL;
	/* sets a level, unless the checksum is partial */
	bpf_csum_level(skb, BPF_CSUM_LEVEL_INC);
	return bpf_csum_level(skb, BPF_CSUM_LEVEL_QUERY) < 0;
}

/* Returns whether the frame is only a UDP super-packet, with its checksum in the UDP header. */
static __always_inline bool egress_is_udp_gso(struct __sk_buff *skb, __u32 l4)
{
	struct sk_buff___xroce *k = egress_skb(skb);
	struct skb_shared_info___xroce *shared;

	if (!k || !bpf_rdonly_cast ||
	    BPF_CORE_READ_BITFIELD(k, ip_summed) != CHECKSUM_PARTIAL)
		return false;
	shared = bpf_rdonly_cast(k->head + k->end,
				 bpf_core_type_id_kernel(struct skb_shared_info___xroce));
	return (shared->gso_type & ~SKB_GSO_DODGY) == SKB_GSO_UDP_L4 &&
	       k->csum_start == k->data - k->head + l4 && k->csum_offset == UDP_CHECKSUM_AT;
}

/* ---- Ethernet, IP, UDP ---- */

static __always_inline bool egress_parse_ipv4(struct packet *p, const struct iphdr *ip,
					      const void *data_end)
{
	if ((void *)(ip + 1) > data_end || ip->version != 4 || ip->ihl * 4 != sizeof(*ip) ||
	    ip->protocol != IPPROTO_UDP || ip->frag_off & ~bpf_htons(EGRESS_DF))
		return false;
	p->l4 = p->l3 + sizeof(*ip);
	p->ip_end = p->l3 + bpf_ntohs(ip->tot_len);
	parse_ipv4_addresses(p, ip);
	return true;
}

static __always_inline bool egress_parse_ipv6(struct packet *p, const struct ipv6hdr *ip,
					      const void *data_end)
{
	if ((void *)(ip + 1) > data_end || ip->version != 6 || ip->nexthdr != IPPROTO_UDP)
		return false;
	p->l4 = p->l3 + sizeof(*ip);
	p->ip_end = p->l4 + bpf_ntohs(ip->payload_len);
	p->rx_flags = XROCE_RX_IPV6;
	parse_ipv6_addresses(p, ip);
	return true;
}

/*
 * Returns how much of the frame to pull into the linear part, which may be as short as the client
 * chose: the headers, or all of a super-packet of small packets. That is copied once, whereas
 * copying each packet's headers costs a helper call each.
 */
static __always_inline __u32 egress_linear(const struct __sk_buff *skb)
{
	const __u32 most =
		skb->gso_size && skb->gso_size <= EGRESS_SMALL ? EGRESS_PULL_SMALL : EGRESS_PULL;

	return skb->len < most ? skb->len : most;
}

/*
 * Parses the frame's addresses and lengths, and counts the packets that a receiver may find in it.
 * Stricter than parse_ip(), as our own sender makes these frames: no tag, no padding, no IPv4
 * option. Returns XROCE_EGRESS_none or the reason to refuse it.
 */
static __always_inline enum xroce_egress_reason egress_parse(struct __sk_buff *skb,
							     struct packet *p)
{
	const void *data, *data_end;
	const struct ethhdr *eth;
	struct udphdr udp;
	struct bth bth;

	/* The kernel reads the addresses in place when it looks for the next hop. */
	if (skb->vlan_present || bpf_skb_pull_data(skb, egress_linear(skb)))
		return XROCE_EGRESS_not_roce;
	data = (void *)(long)skb->data;
	data_end = (void *)(long)skb->data_end;
	eth = data;
	if ((void *)(eth + 1) > data_end)
		return XROCE_EGRESS_not_roce;
	p->l3 = sizeof(*eth);
	p->rx_flags = 0;
	if (!(eth->h_proto == bpf_htons(ETH_P_IP) ?
		      egress_parse_ipv4(p, (void *)(eth + 1), data_end) :
	      eth->h_proto == bpf_htons(ETH_P_IPV6) ?
		      egress_parse_ipv6(p, (void *)(eth + 1), data_end) :
		      false))
		return XROCE_EGRESS_not_roce;
	if (p->ip_end != skb->len || bpf_skb_load_bytes(skb, p->l4, &udp, sizeof(udp)) ||
	    udp.dest != bpf_htons(ROCE_UDP_PORT) || bpf_ntohs(udp.len) != p->ip_end - p->l4 ||
	    bpf_ntohs(udp.len) < sizeof(udp) + sizeof(bth) + ROCE_ICRC_BYTES ||
	    bpf_skb_load_bytes(skb, p->l4 + sizeof(udp), &bth, sizeof(bth)))
		return XROCE_EGRESS_not_roce;
	p->segments = 1;
	/* as the receiver finds them: its code for the length counts, too */
	parse_set_segments(p, udp.check ? parse_segment(p, udp.check, udp.len, bth.ecn_qpn) : 0,
			   bpf_ntohs(udp.len) - sizeof(udp));
	return XROCE_EGRESS_none;
}

static __always_inline bool egress_is_multicast(const struct packet *p)
{
	return p->rx_flags & XROCE_RX_IPV6 ? p->dst.gid[0] == IPV6_MULTICAST :
					     p->dst.gid[12] >= IPV4_MULTICAST;
}

static __always_inline bool egress_is_ipv6_loopback(const union address *a)
{
	return !a->half[0] && !a->word[2] && a->word[3] == bpf_htonl(1);
}

/* In IPv6, ::/64 except ::1: the GIDs of IPv4 addresses are there too. */
static __always_inline bool egress_is_ipv6_nowhere(const union address *a)
{
	return !a->half[0] && !egress_is_ipv6_loopback(a);
}

/* Returns whether an address belongs to no interface; in IPv4 "this network". */
static __always_inline bool egress_is_nowhere(const struct packet *p)
{
	return p->rx_flags & XROCE_RX_IPV6 ?
		       egress_is_ipv6_nowhere(&p->src) || egress_is_ipv6_nowhere(&p->dst) :
		       !p->dst.gid[12];
}

/* Returns whether an address is a loopback address: on no wire, but possibly one of lo's. */
static __always_inline bool egress_is_loopback(const struct packet *p)
{
	return p->rx_flags & XROCE_RX_IPV6 ?
		       egress_is_ipv6_loopback(&p->src) || egress_is_ipv6_loopback(&p->dst) :
		       p->src.gid[12] == IPV4_LOOPBACK || p->dst.gid[12] == IPV4_LOOPBACK;
}

/* Returns whether routing would refuse an address; xroce_single does not ask it. */
static __always_inline bool egress_is_of_no_wire(const struct packet *p)
{
	return egress_is_nowhere(p) || egress_is_loopback(p);
}

/* Returns whether no packet from here can have the destination; loopback ones turn round on lo. */
static __always_inline bool egress_is_to_nobody(const struct packet *p)
{
	return egress_is_nowhere(p) || (egress_is_loopback(p) && !egress_is_multicast(p) &&
					!bpf_map_lookup_elem(&xroce_gid, &p->dst));
}

/* ---- the transport headers of each packet in the frame ---- */

struct egress {
	struct __sk_buff *skb;
	__u32 client, privileged;
	__u32 at, size;		/* offset of the first BTH, distance of BTHs */
	__u32 segments;
	__u32 src_qpn;		/* last source QPN found to be the client's */
	struct bth first;
	enum xroce_egress_reason reason;
};

/* Checks the Q_Key and source QPN of a datagram. */
static __always_inline enum xroce_egress_reason egress_check_deth(struct egress *e, __u32 at)
{
	const struct xroce_owner *owner;
	struct deth deth;
	__u32 src_qpn;

	if (bpf_skb_load_bytes(e->skb, at, &deth, sizeof(deth)))
		return XROCE_EGRESS_not_roce;
	if (load_be32(&deth.qkey) & QKEY_PRIVILEGED && !e->privileged)
		return XROCE_EGRESS_qkey;
	src_qpn = load_be32(&deth.src_qpn) & ROCE_QPN_MASK;
	if (src_qpn == e->src_qpn)
		return XROCE_EGRESS_none;
	owner = bpf_map_lookup_elem(&xroce_owner, &src_qpn);
	if (!owner || owner->client != e->client)
		return XROCE_EGRESS_src_qpn;
	e->src_qpn = src_qpn;
	return XROCE_EGRESS_none;
}

/* The default P_Key is in every table. */
static __always_inline bool egress_has_pkey(__u32 pkey)
{
	return pkey == ROCE_DEFAULT_PKEY || bpf_map_lookup_elem(&xroce_pkey, &pkey);
}

/* Checks a packet with its BTH at offset at of the frame. */
static __always_inline enum xroce_egress_reason egress_check_packet(struct egress *e,
								    const struct bth *bth, __u32 at)
{
	const __u32 flags = opcode_flags[bth->opcode];

	if (!(flags & OP_VALID))
		return XROCE_EGRESS_not_roce;
	if ((load_be32(&bth->ecn_qpn) & ROCE_QPN_MASK) == XROCE_CM_QPN && !e->privileged)
		return XROCE_EGRESS_qp1;
	return flags & OP_DETH ? egress_check_deth(e, at + sizeof(*bth)) : XROCE_EGRESS_none;
}

/* As gso_is_for_same_qp() (user/engine/gso.c): the first segment's QP takes all segments. */
static __always_inline bool egress_is_alike(const struct bth *a, const struct bth *b)
{
	return OPCODE_TRANSPORT(a->opcode) == OPCODE_TRANSPORT(b->opcode) && a->pkey == b->pkey &&
	       !((a->ecn_qpn ^ b->ecn_qpn) & bpf_htonl(ROCE_QPN_MASK));
}

/*
 * Returns the BTH at an offset of the frame: in place if that is in the linear part, else a copy;
 * NULL if it is not all in the frame.
 */
static __always_inline const struct bth *egress_bth(const struct egress *e, __u32 at,
						    struct bth *copy)
{
	const struct bth *bth = (void *)(long)e->skb->data + (at & EGRESS_LINEAR);

	if (at <= EGRESS_LINEAR && (void *)(bth + 1) <= (void *)(long)e->skb->data_end)
		return bth;
	return bpf_skb_load_bytes(e->skb, at, copy, sizeof(*copy)) ? NULL : copy;
}

/* Checks packet i of a super-packet. Returns false if it is refused. */
static __always_inline bool egress_check_next(struct egress *e, __u32 i)
{
	const __u32 at = e->at + i * e->size;
	struct bth copy;
	const struct bth *bth = egress_bth(e, at, &copy);

	if (at + sizeof(*bth) + ROCE_ICRC_BYTES > e->skb->len || !bth ||
	    !egress_is_alike(&e->first, bth))
		e->reason = XROCE_EGRESS_segments;
	else
		e->reason = egress_check_packet(e, bth, at);
	return e->reason == XROCE_EGRESS_none;
}

/*
 * Checks a few of the packets after the first, for bpf_loop(), so that the verifier does not follow
 * each of 127. Returns 1 at a refused packet or the end.
 */
static long egress_check_some(__u32 i, void *ctx)
{
	struct egress *e = ctx;

	for (__u32 n = 1; n <= EGRESS_AT_ONCE; n++) {
		if (i * EGRESS_AT_ONCE + n >= e->segments)
			return 1; /* no more packets */
		if (!egress_check_next(e, i * EGRESS_AT_ONCE + n))
			return 1;
	}
	return 0;
}

/* ---- from QP 1 to QP 1: permitted to every client ---- */

static __always_inline bool egress_is_of_broker(const struct xroce_tap *tap)
{
	return tap->client == XROCE_MAX_CLIENT;
}

/* Returns whether the sender answers for ids without owner: one client, or the broker for it. */
static __always_inline bool egress_is_refuser(const struct xroce_tap *tap)
{
	const __u32 none = XROCE_CM_PLACE_NONE;
	const struct xroce_cm_client *refuser = bpf_map_lookup_elem(&xroce_cm_client, &none);

	return egress_is_of_broker(tap) || (refuser && refuser->client == tap->client);
}

/*
 * Returns whether a MAD may have a sender's id that is not the sender's. A SIDR_REP has none. A
 * refusal has the id that the peer sent (cm_refuse() in user/cm/disconnect.c): none for a REQ, else
 * the id of a client that has ended.
 */
static __always_inline bool egress_may_have_id(const struct mad *m, const struct xroce_tap *tap)
{
	const __u32 kind = mad_kind(m), place = XROCE_CM_PLACE(bpf_ntohl(m->local_id));

	if (kind == MAD_SIDR_REP || (kind == MAD_REJ && !m->local_id))
		return true;
	return (kind == MAD_REJ || kind == MAD_DREP || kind == MAD_APR) &&
	       (place == XROCE_CM_PLACE_NONE || !bpf_map_lookup_elem(&xroce_cm_client, &place)) &&
	       egress_is_refuser(tap);
}

/* Returns the peer's MAD that this one answers, by the peer's id, or NULL if it is unknown. */
static __always_inline struct xroce_asked *
egress_asked(const struct packet *p, const struct mad *m, const struct xroce_tap *tap)
{
	const __u32 kind = mad_kind(m);
	struct xroce_asked *asked = NULL;

	if (kind == MAD_SIDR_REP)
		return conn_asked(&p->dst, m->local_id, MAD_SIDR_REQ, tap->client);
	if (kind == MAD_REP || kind == MAD_MRA || kind == MAD_REJ)
		asked = conn_asked(&p->dst, m->remote_id, MAD_REQ, tap->client);
	if (!asked && (kind == MAD_RTU || kind == MAD_MRA || kind == MAD_REJ))
		asked = conn_asked(&p->dst, m->remote_id, MAD_REP, tap->client);
	return asked;
}

/*
 * Returns whether the receiver finds its connection by its own id alone. Then only the client that
 * it asked may send the MAD. For other MADs a receiver compares both ids, and the sender's is the
 * client's. A REJ that cancels a request has the sender's id alone.
 */
static __always_inline bool egress_is_answer(const struct mad *m, __u32 own_place)
{
	const __u32 kind = mad_kind(m);

	if (kind == MAD_REJ)
		return m->remote_id || XROCE_CM_PLACE(bpf_ntohl(m->local_id)) != own_place;
	return kind == MAD_REP || kind == MAD_MRA || kind == MAD_SIDR_REP;
}

/*
 * Returns whether a REQ or REP at an offset of the frame offers another client's QP. A peer would
 * end a connection with that QP, as the clients share one address. A QPN without owner is
 * permitted.
 */
static __always_inline bool egress_offers_anothers(struct __sk_buff *skb, const struct mad *m,
						   __u32 at, const struct xroce_tap *tap)
{
	const bool is_req = mad_kind(m) == MAD_REQ;
	const struct xroce_owner *owner;
	__be32 word = 0;
	__u32 qpn;

	if (!is_req && mad_kind(m) != MAD_REP)
		return false;
	if (is_req && bpf_skb_load_bytes(skb, at + MAD_REQ_QPN, &word, sizeof(word)))
		return true;
	qpn = is_req ? bpf_ntohl(word) >> 8 : mad_rep_qpn(m);
	owner = bpf_map_lookup_elem(&xroce_owner, &qpn);
	return owner && owner->client != tap->client;
}

/* Checks a datagram from QP 1 to QP 1, whose BTH is at offset at and which must end the frame. */
static __attribute__((noinline)) enum xroce_egress_reason
egress_check_mad(struct __sk_buff *skb, const struct packet *p, __u32 at,
		 const struct xroce_tap *tap)
{
	const __u32 own_place = tap->place;
	struct xroce_asked *asked;
	struct {
		struct bth bth;
		struct deth deth;
	} head;
	struct mad m;
	__u32 place;

	if (skb->len != at + sizeof(head) + MAD_BYTES + ROCE_ICRC_BYTES ||
	    bpf_skb_load_bytes(skb, at, &head, sizeof(head)) ||
	    bpf_skb_load_bytes(skb, at + sizeof(head), &m, sizeof(m)) ||
	    head.bth.flags & BTH_PAD_MASK || load_be32(&head.deth.qkey) != XROCE_CM_QKEY ||
	    !mad_is_cm(&m))
		return XROCE_EGRESS_mad;
	place = XROCE_CM_PLACE(bpf_ntohl(m.local_id));
	if (place != own_place && !egress_may_have_id(&m, tap))
		return XROCE_EGRESS_mad_id;
	asked = egress_asked(p, &m, tap);
	if (!asked && egress_is_answer(&m, own_place) && !egress_is_of_broker(tap))
		return XROCE_EGRESS_mad_answer;
	if (egress_offers_anothers(skb, &m, at + sizeof(head), tap))
		return XROCE_EGRESS_src_qpn;
	if (place == own_place || mad_kind(&m) == MAD_REJ)
		conn_said(p, &m, own_place, asked);
	return XROCE_EGRESS_none;
}

static __always_inline bool egress_is_from_cm(const struct egress *e)
{
	struct deth deth;

	return e->first.opcode == OPCODE(XROCE_UD, OP5_SEND_ONLY) &&
	       (load_be32(&e->first.ecn_qpn) & ROCE_QPN_MASK) == XROCE_CM_QPN &&
	       !bpf_skb_load_bytes(e->skb, e->at + sizeof(e->first), &deth, sizeof(deth)) &&
	       (load_be32(&deth.src_qpn) & ROCE_QPN_MASK) == XROCE_CM_QPN;
}

static __always_inline enum xroce_egress_reason
egress_check_packets(struct __sk_buff *skb, const struct packet *p, const struct xroce_tap *tap)
{
	struct egress e = {
		.skb = skb,
		.client = tap->client,
		.privileged = tap->privileged,
		.at = p->l4 + sizeof(struct udphdr),
		.size = p->ip_id,
		.segments = p->segments,
		.src_qpn = ~0u,
	};

	if (bpf_skb_load_bytes(skb, e.at, &e.first, sizeof(e.first)))
		return XROCE_EGRESS_not_roce;
	/* in a super-packet all have the same */
	if (!egress_has_pkey(bpf_ntohs(e.first.pkey)))
		return XROCE_EGRESS_pkey;
	if (p->segments == 1 && egress_is_from_cm(&e))
		return egress_check_mad(skb, p, e.at, tap);
	e.reason = egress_check_packet(&e, &e.first, e.at);
	if (e.reason == XROCE_EGRESS_none && p->segments > 1)
		bpf_loop(XROCE_SEGMENTS_MAX / EGRESS_AT_ONCE, egress_check_some, &e, 0);
	/* senders of xroce set them by UDP sockets alone, which do not pass here */
	if (e.reason == XROCE_EGRESS_none && e.first.ecn_qpn & bpf_htonl(BTH_RESERVED) &&
	    !e.privileged)
		return XROCE_EGRESS_segments;
	return e.reason;
}

/* ---- the whole check ---- */

/* Returns XROCE_EGRESS_none or the reason to refuse the frame. */
static __always_inline enum xroce_egress_reason
egress_check(struct __sk_buff *skb, struct packet *p, const struct xroce_tap *tap)
{
	enum xroce_egress_reason reason = egress_parse(skb, p);

	if (reason != XROCE_EGRESS_none)
		return reason;
	if (egress_is_to_nobody(p))
		return XROCE_EGRESS_not_roce;
	if (!bpf_map_lookup_elem(&xroce_gid, &p->src))
		return XROCE_EGRESS_source;
	if (skb->gso_size ? !egress_is_udp_gso(skb, p->l4) : egress_is_partial(skb))
		return XROCE_EGRESS_offload;
	/* kernel and receiver must cut alike: the packets that the receiver finds are checked */
	if (skb->gso_size && (p->segments == 1 || skb->gso_size != p->ip_id))
		return XROCE_EGRESS_segments;
	return egress_check_packets(skb, p, tap);
}

#endif
