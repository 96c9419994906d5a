/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends frames directly across a veth pair to another network namespace (bpf_redirect_peer()): they
 * skip the route, the next hop and the queue in between. Used only where nothing on either end
 * would miss them. The kernel's state is read for each frame, as it may change at any time; the
 * client has no influence on it.
 */
#ifndef BPF_PAIR_H
#define BPF_PAIR_H

#include <linux/pkt_cls.h>

#include "egress.h"
#include "single.h"

#define PAIR_UP	      1u	/* IFF_UP */
#define PAIR_NDO_XMIT (1u << 2) /* NETDEV_XDP_ACT_NDO_XMIT */
#define PAIR_TO_HOST  0		/* PACKET_HOST */
/* from the bit of a gso_type to the bit of the device feature */
#define PAIR_GSO_SHIFT 16	/* NETIF_F_GSO_SHIFT */

/*
 * The interface, if it is an end of such a pair; else empty. Only read: no frame is redirected
 * through it. No program of another type may use it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} xroce_pair SEC(".maps");

/* Kernel structs, as far as they are read here. */
struct Qdisc___xroce {
	void *enqueue;
} __attribute__((preserve_access_index));

struct netdev_queue___xroce {
	struct Qdisc___xroce *qdisc;
} __attribute__((preserve_access_index));

struct net_device___xroce {
	unsigned int flags, xdp_features;
	unsigned long long features;
	struct netdev_queue___xroce *_tx;
	struct Qdisc___xroce *qdisc;
	void *tcx_egress, *miniq_egress, *nf_hooks_egress;
} __attribute__((preserve_access_index));

struct bpf_dtab_netdev___xroce {
	struct net_device___xroce *dev;
} __attribute__((preserve_access_index));

struct bpf_dtab___xroce {
	void *netdev_map;
} __attribute__((preserve_access_index));

/* A struct that begins with a pointer, to read the first element of an array of pointers. */
struct hlist_head___xroce {
	void *first;
} __attribute__((preserve_access_index));

/* Returns the interface; reads of its fields return 0 if the map is empty. */
static __always_inline const struct net_device___xroce *pair_wire(void)
{
	const struct bpf_dtab___xroce *tab = (const void *)&xroce_pair;
	const struct hlist_head___xroce *slots = bpf_rdonly_cast(
		tab->netdev_map, bpf_core_type_id_kernel(struct hlist_head___xroce));
	const struct bpf_dtab_netdev___xroce *out = bpf_rdonly_cast(
		slots->first, bpf_core_type_id_kernel(struct bpf_dtab_netdev___xroce));

	return out->dev;
}

/* Returns whether a program or filter sees what the interface sends. */
static __always_inline bool pair_is_looked_at(const struct net_device___xroce *dev)
{
	return (bpf_core_field_exists(dev->tcx_egress) && dev->tcx_egress) ||
	       (bpf_core_field_exists(dev->miniq_egress) && dev->miniq_egress) ||
	       (bpf_core_field_exists(dev->nf_hooks_egress) && dev->nf_hooks_egress);
}

/* Returns whether the interface, and its first queue, send without a queueing discipline. */
static __always_inline bool pair_has_no_queue(const struct net_device___xroce *dev)
{
	const struct Qdisc___xroce *qdisc = dev->qdisc;

	return qdisc == dev->_tx->qdisc && !qdisc->enqueue;
}

/* Returns whether super-packets cross whole; otherwise (ethtool -K tx off) they are cut. */
static __always_inline bool pair_takes_supers(const struct net_device___xroce *dev)
{
	return dev->features & (unsigned long long)SKB_GSO_UDP_L4 << PAIR_GSO_SHIFT;
}

/*
 * Returns whether a direct frame bypasses nothing: no filter and no queue on the way out, no native
 * XDP program or GRO at the other end. With the latter the interface takes redirected frames, which
 * the kernel reports from 6.3 on.
 */
static __always_inline bool pair_is_plain(bool is_super)
{
	const struct net_device___xroce *dev = NULL;

	if (!bpf_rdonly_cast || !bpf_core_field_exists(dev->xdp_features))
		return false;
	dev = pair_wire();
	return dev->flags & PAIR_UP && !(dev->xdp_features & PAIR_NDO_XMIT) &&
	       (!is_super || pair_takes_supers(dev)) && !pair_is_looked_at(dev) &&
	       pair_has_no_queue(dev);
}

/* Returns whether the address is unset, as in the broker's own MADs (user/broker/mad_sender.c). */
static __always_inline bool pair_is_unset(const __u8 *mac)
{
	return !(mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5]);
}

/*
 * Prepares the client's Ethernet header, which arrives as it is: it must be from the interface's
 * MAC, where XROCE_ROUTED is cleared, to a unicast MAC. Returns false if the kernel must write the
 * header.
 */
static __always_inline bool pair_address(struct __sk_buff *skb, const struct xroce_wire *wire)
{
	struct ethhdr *eth = (void *)(long)skb->data;
	__u8 source[ETH_ALEN];

	if ((void *)(eth + 1) > (void *)(long)skb->data_end || eth->h_dest[0] & 1)
		return false;
	if (pair_is_unset(eth->h_dest))
		return false;
	__builtin_memcpy(source, eth->h_source, sizeof(source));
	source[0] &= (__u8)~XROCE_ROUTED;
	if (!single_is_mac(source, wire->mac))
		return false;
	eth->h_source[0] = source[0];
	return true;
}

/* Returns the verdict, or TC_ACT_UNSPEC if the frame cannot cross. */
static __always_inline int pair_cross(struct __sk_buff *skb, const struct xroce_wire *wire)
{
	if (!pair_is_plain(skb->gso_size) || !pair_address(skb, wire))
		return TC_ACT_UNSPEC;
	/* the client's device marked it as for another host */
	bpf_skb_change_type(skb, PAIR_TO_HOST);
	return bpf_redirect_peer(wire->ifindex, 0);
}

#endif
