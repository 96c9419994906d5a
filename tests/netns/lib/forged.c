/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See forged.h. */
#include "forged.h"

#include <linux/if_ether.h>
#include <string.h>

#include "checksum.h"

#define GSO_UDP_L4 5 /* VIRTIO_NET_HDR_GSO_UDP_L4 of newer headers */
#define RC_ONLY	   0x04
#define UD_ONLY	   0x64

struct frame f;
u8 own4[4], sink4[4], own6[16], sink6[16];
u32 own_qpn, foreign[16], num_foreign;

void put16(u8 *at, u32 v)
{
	at[0] = (u8)(v >> 8);
	at[1] = (u8)v;
}

void put24(u8 *at, u32 v)
{
	at[0] = (u8)(v >> 16);
	put16(at + 1, v & 0xffff);
}

u32 forged_digest(const u8 *at, u32 n)
{
	u32 h = 2166136261u;

	while (n--)
		h = (h ^ *at++) * 16777619u;
	return h;
}

void forged_set_ip(void)
{
	u8 *ip = f.b + f.ip;
	const u32 bytes = f.len - f.ip;

	if (f.v6) {
		put16(ip + 4, bytes - 40);
	} else {
		put16(ip + 2, bytes);
		put16(ip + 10, 0);
		put16(ip + 10, ~sum16(ip, 20, 0) & 0xffff);
	}
	put16(f.b + f.udp + 4, bytes - (f.v6 ? 40 : 20));
}

/* The UDP checksum of a packet that asks for one: of the pseudo-header alone. */
static void bare_sum(void)
{
	u32 sum = 17 + f.len - f.udp;

	sum = sum16(f.b + f.ip + 12, 8, sum);
	put16(f.b + f.udp + 6, sum);
}

/* As the library makes them: a super-packet says in its identification where it is to be cut. */
void forged_make(bool v6, bool ud, u32 packets, u32 each)
{
	u8 *ip;

	memset(&f, 0, sizeof(f));
	f.v6 = v6;
	f.ud = ud;
	f.packets = packets;
	f.each = each;
	f.ip = ETH;
	f.udp = f.ip + (v6 ? 40 : 20);
	f.bth = f.udp + 8;
	f.len = f.bth + packets * each;
	ip = f.b + f.ip;
	memcpy(f.b, "\2\0\0\x77\0\2\2\0\0\x77\0\1", 12);
	put16(f.b + 12, v6 ? ETH_P_IPV6 : ETH_P_IP);
	if (v6) {
		ip[0] = 0x60;
		ip[6] = 17;
		ip[7] = 64;
		memcpy(ip + 8, own6, 16);
		memcpy(ip + 24, sink6, 16);
	} else {
		ip[0] = 0x45;
		put16(ip + 6, 0x4000);
		ip[8] = 64;
		ip[9] = 17;
		memcpy(ip + 12, own4, 4);
		memcpy(ip + 16, sink4, 4);
	}
	put16(f.b + f.udp, 0xc123);
	put16(f.b + f.udp + 2, UDP_PORT);
	for (u32 i = 0; i < packets; i++) {
		u8 *bth = f.b + f.bth + i * each;

		bth[0] = ud ? UD_ONLY : RC_ONLY;
		put16(bth + 2, 0xffff);
		put24(bth + 5, 0x777777);
		put24(bth + 9, i);
		if (ud) {
			put16(bth + 12 + 2, 0x1111);
			put24(bth + 12 + 5, own_qpn);
		}
	}
	if (packets > 1) {
		put16(f.b + f.ip + 4, each);
		bare_sum();
	}
	forged_set_ip();
	if (packets > 1)
		f.vnet = (struct virtio_net_hdr){ .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
						  .gso_type = GSO_UDP_L4,
						  .gso_size = (u16)each,
						  .csum_start = (u16)f.udp,
						  .csum_offset = 6,
						  .hdr_len = (u16)f.bth };
}

static u8 *bth_of(u32 packet)
{
	return f.b + f.bth + packet * f.each;
}

void forged_seal(u32 kind)
{
	for (u32 i = 0; i < f.packets; i++) {
		u8 *bth = bth_of(i), *mark = bth + BTH_BYTES + (f.ud ? 8 : 0);
		u32 sum;

		memcpy(mark, MARK, MARK_LEN);
		mark[MARK_LEN] = (u8)kind;
		mark[MARK_LEN + 1] = f.ud;
		put16(mark + MARK_LEN + 2, f.each);
		sum = forged_digest(bth, f.each - 4);
		memcpy(bth + f.each - 4, &sum, 4);
	}
}

/* ---- faults of a frame; before or after it is sealed ---- */

static void source_other(void)
{
	f.b[f.ip + (f.v6 ? 23 : 15)] ^= 0x40;
	forged_set_ip();
}
static void source_sink(void)
{
	memcpy(f.b + f.ip + (f.v6 ? 8 : 12), f.v6 ? sink6 : sink4, f.v6 ? 16 : 4);
	forged_set_ip();
}
static void source_loopback(void)
{
	memcpy(f.b + f.ip + 12, "\x7f\0\0\1", 4);
	forged_set_ip();
}
static void source_zero(void)
{
	memset(f.b + f.ip + (f.v6 ? 8 : 12), 0, f.v6 ? 16 : 4);
	forged_set_ip();
}
static void source_mapped(void) /* our own IPv4 address in an IPv6 packet: its GID */
{
	memset(f.b + f.ip + 8, 0, 10);
	memset(f.b + f.ip + 18, 0xff, 2);
	memcpy(f.b + f.ip + 20, own4, 4);
}
static void to_multicast(void)
{
	memcpy(f.b + f.ip + 16, "\xe0\0\0\1", 4);
	forged_set_ip();
}
static void to_multicast6(void)
{
	memcpy(f.b + f.ip + 24, "\xff\2\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
}
static void to_broadcast(void)
{
	memset(f.b + f.ip + 16, 0xff, 4);
	forged_set_ip();
}
static void to_subnet_broadcast(void)
{
	f.b[f.ip + 19] = 0xff;
	forged_set_ip();
}
static void to_loopback(void)
{
	memcpy(f.b + f.ip + 16, "\x7f\0\0\1", 4);
	forged_set_ip();
}
static void ether(u32 type)
{
	put16(f.b + 12, type);
}
static void ether_arp(void)
{
	ether(ETH_P_ARP);
}
static void ether_lldp(void)
{
	ether(ETH_P_LLDP);
}
static void ether_roce1(void)
{
	ether(0x8915);
}
static void ether_pppoe(void)
{
	ether(ETH_P_PPP_SES);
}
static void ether_length(void)
{
	ether(100);
}
static void ether_other_family(void)
{
	ether(f.v6 ? ETH_P_IP : ETH_P_IPV6);
}
static void tag(u32 type)
{
	memmove(f.b + 16, f.b + 12, f.len - 12);
	put16(f.b + 12, type);
	put16(f.b + 14, 5);
	f.len += 4;
}
static void vlan(void)
{
	tag(ETH_P_8021Q);
}
static void vlan_ad(void)
{
	tag(ETH_P_8021AD);
}
static void mpls(void)
{
	tag(ETH_P_MPLS_UC);
}
static void protocol(u8 p)
{
	f.b[f.ip + (f.v6 ? 6 : 9)] = p;
	if (!f.v6)
		forged_set_ip();
}
static void proto_icmp(void)
{
	protocol(f.v6 ? 58 : 1);
}
static void proto_tcp(void)
{
	protocol(6);
}
static void proto_udplite(void)
{
	protocol(136);
}
static void proto_ipip(void)
{
	protocol(4);
}
static void proto_esp(void)
{
	protocol(50);
}
static void proto_hop(void)
{
	protocol(0);
}
static void proto_fragment6(void)
{
	protocol(44);
}
static void udp_port(void)
{
	put16(f.b + f.udp + 2, 53);
}
static void udp_port_zero(void)
{
	put16(f.b + f.udp + 2, 0);
}
static void udp_port_swapped(void)
{
	put16(f.b + f.udp + 2, 0xb712);
}
static void udp_long(void)
{
	put16(f.b + f.udp + 4, f.len);
}
static void udp_short(void)
{
	put16(f.b + f.udp + 4, 20);
}
static void udp_zero(void)
{
	put16(f.b + f.udp + 4, 0);
}
static void ip_version(void)
{
	f.b[f.ip] ^= 0x10;
}
static void ip_checksum(void)
{
	f.b[f.ip + 10] ^= 1;
}
static void ip_options(void)
{
	memmove(f.b + f.udp + 4, f.b + f.udp, f.len - f.udp);
	memset(f.b + f.udp, 1, 4);
	f.b[f.ip] = 0x46;
	f.len += 4;
	put16(f.b + f.ip + 2, f.len - f.ip);
	put16(f.b + f.ip + 10, 0);
	put16(f.b + f.ip + 10, ~sum16(f.b + f.ip, 24, 0) & 0xffff);
}
static void ip_header_short(void)
{
	f.b[f.ip] = 0x44;
}
static void ip_fragment(u32 v)
{
	put16(f.b + f.ip + 6, v);
	put16(f.b + f.ip + 10, 0);
	put16(f.b + f.ip + 10, ~sum16(f.b + f.ip, 20, 0) & 0xffff);
}
static void ip_more(void)
{
	ip_fragment(0x2000);
}
static void ip_offset(void)
{
	ip_fragment(8);
}
static void ip_total(u32 v)
{
	put16(f.b + f.ip + (f.v6 ? 4 : 2), v);
	if (!f.v6) {
		put16(f.b + f.ip + 10, 0);
		put16(f.b + f.ip + 10, ~sum16(f.b + f.ip, 20, 0) & 0xffff);
	}
}
static void ip_long(void)
{
	ip_total(4000);
}
static void ip_short(void)
{
	ip_total(44);
}
static void ip_zero(void)
{
	ip_total(0);
}
static void trailer(void)
{
	f.len += 64;
}
static void cut(void)
{
	f.len = f.bth + 40;
}
static void qp1(void)
{
	put24(bth_of(0) + 5, 1);
}
static void qp1_last(void)
{
	put24(bth_of(f.packets - 1) + 5, 1);
}
static void qp1_each(void)
{
	for (u32 i = 0; i < f.packets; i++)
		put24(bth_of(i) + 5, 1);
}
/* The broker has no other than the default one; QP 1's messages are no exception. */
static void pkey_each(u32 pkey)
{
	for (u32 i = 0; i < f.packets; i++)
		put16(bth_of(i) + 2, pkey);
}
static void pkey_other(void)
{
	pkey_each(0x8001);
}
static void pkey_limited(void)
{
	pkey_each(0x7fff);
}
static void pkey_zero(void)
{
	pkey_each(0);
}
static void pkey_last(void)
{
	put16(bth_of(f.packets - 1) + 2, 0x8001);
}
static void qkey_top(void)
{
	bth_of(f.packets - 1)[12] = 0x80;
}
static void qkey_gsi(void)
{
	memcpy(bth_of(0) + 12, "\x80\1\0\0", 4);
}
static void source_qpn_none(void)
{
	put24(bth_of(f.packets - 1) + 12 + 5, 0x654321);
}
static void source_qpn_one(void)
{
	put24(bth_of(0) + 12 + 5, 1);
}
static void source_qpn_zero(void)
{
	put24(bth_of(0) + 12 + 5, 0);
}
static void source_qpn_foreign(void)
{
	put24(bth_of(f.packets - 1) + 12 + 5, foreign[0]);
}
static void source_qpn_foreign_rd(void) /* RD, of which no QP has it either */
{
	bth_of(0)[0] = 0x44;
	put24(bth_of(0) + 12 + 5, foreign[0]);
}
static void ud_immediate_foreign(void)
{
	bth_of(0)[0] = 0x65;
	source_qpn_foreign();
}
static void last_is_ud(void) /* after a first RC packet: a DETH that is not expected */
{
	u8 *bth = bth_of(f.packets - 1);

	bth[0] = UD_ONLY;
	memcpy(bth + 12, "\x80\1\0\0\0\0\0\1", 8);
}
/* One packet, by its virtio header; to its receiver several. */
static void looks_super(void)
{
	qp1_last();
	memset(&f.vnet, 0, sizeof(f.vnet));
}
/* Several, but cut at other places by the receiver than by the kernel. */
static void split_by_kernel(void)
{
	put24(bth_of(1) + 5, 1);
	put16(f.b + f.ip + 4, 2 * f.each);
	forged_set_ip();
}
static void split_by_receiver(void)
{
	put24(bth_of(1) + 5, 1);
	f.vnet.gso_size = (u16)(2 * f.each);
}
static void bth_version(void)
{
	bth_of(0)[1] |= 0x0f;
}
static void opcode_reserved(void)
{
	bth_of(0)[0] = 0x3f;
}
static void opcode_manufacturer(void)
{
	bth_of(0)[0] = 0xc4;
}
static void over_mtu(void)
{
}
static void mac_source(void)
{
	memcpy(f.b + 6, "\2\0\0\0\x66\x66", 6);
}
static void mac_group(void)
{
	f.b[6] |= 1;
}
static void mac_to_broadcast(void)
{
	memset(f.b, 0xff, 6);
}

/* In order of their numbers: of a mark. */
const struct kind kinds[] = {
	{ "legal", true, 0, 0, 1, 80, NULL, NULL },
	{ "legal_v6", true, 1, 0, 1, 80, NULL, NULL },
	{ "legal_ud", true, 0, 1, 1, 80, NULL, NULL },
	{ "legal_long", true, 0, 0, 1, 4112, NULL, NULL },
	{ "legal_super", true, 0, 0, 8, 80, NULL, NULL },
	{ "legal_super_long", true, 0, 0, 15, 4112, NULL, NULL },
	{ "lying", true, 0, 0, 1, 240, NULL, NULL },
	{ "lying_ud", true, 0, 1, 1, 240, NULL, NULL },
	{ "lying_super", true, 0, 0, 6, 240, NULL, NULL },
	{ "lying_super_ud", true, 0, 1, 6, 240, NULL, NULL },
	{ "mac_source", true, 0, 0, 1, 80, NULL, mac_source },
	{ "mac_group", true, 0, 0, 1, 80, NULL, mac_group },
	{ "mac_to_broadcast", true, 0, 0, 1, 80, NULL, mac_to_broadcast },
/* clang-format off */
#define V4(name, after) { #name, false, 0, 0, 1, 80, NULL, after }
#define V6(name, after) { #name, false, 1, 0, 1, 80, NULL, after }
	V4(source_other, source_other),
	V6(source_other_v6, source_other),
	V4(source_sink, source_sink),
	V6(source_sink_v6, source_sink),
	V4(source_loopback, source_loopback),
	V4(source_zero, source_zero),
	V6(source_zero_v6, source_zero),
	V6(source_mapped, source_mapped),
	V4(to_multicast, to_multicast),
	V6(to_multicast_v6, to_multicast6),
	V4(to_broadcast, to_broadcast),
	V4(to_loopback, to_loopback),
	V4(ether_arp, ether_arp),
	V4(ether_lldp, ether_lldp),
	V4(ether_roce1, ether_roce1),
	V4(ether_pppoe, ether_pppoe),
	V4(ether_length, ether_length),
	V4(ether_other_family, ether_other_family),
	V6(ether_other_family_v6, ether_other_family),
	V4(vlan, vlan),
	V6(vlan_v6, vlan),
	V4(vlan_ad, vlan_ad),
	V4(mpls, mpls),
	V4(icmp, proto_icmp),
	V6(icmp_v6, proto_icmp),
	V4(tcp, proto_tcp),
	V6(tcp_v6, proto_tcp),
	V4(udplite, proto_udplite),
	V4(ipip, proto_ipip),
	V4(esp, proto_esp),
	V6(hop_by_hop, proto_hop),
	V6(fragment_v6, proto_fragment6),
	V4(udp_port, udp_port),
	V6(udp_port_v6, udp_port),
	V4(udp_port_zero, udp_port_zero),
	V4(udp_port_swapped, udp_port_swapped),
	V4(udp_long, udp_long),
	V4(udp_short, udp_short),
	V4(udp_zero, udp_zero),
	V6(udp_zero_v6, udp_zero),
	V4(ip_version, ip_version),
	V6(ip_version_v6, ip_version),
	V4(ip_options, ip_options),
	V4(ip_header_short, ip_header_short),
	V4(ip_more, ip_more),
	V4(ip_offset, ip_offset),
	V4(ip_long, ip_long),
	V4(ip_short, ip_short),
	V4(ip_zero, ip_zero),
	V6(ip_long_v6, ip_long),
	V6(ip_short_v6, ip_short),
	V6(ip_zero_v6, ip_zero),
	V4(cut, cut),
	{ "qp1", false, 0, 0, 1, 80, qp1, NULL },
	{ "qp1_v6", false, 1, 1, 1, 80, qp1, NULL },
	{ "qp1_ud", false, 0, 1, 1, 280, qp1, NULL },
	{ "qp1_super_last", false, 0, 1, 6, 80, qp1_last, NULL },
	{ "qp1_super_last_rc", false, 0, 0, 6, 80, qp1_last, NULL },
	{ "qp1_super", false, 0, 1, 6, 80, qp1_each, NULL },
	{ "qkey", false, 0, 1, 1, 80, qkey_top, NULL },
	{ "qkey_v6", false, 1, 1, 1, 80, qkey_top, NULL },
	{ "qkey_gsi", false, 0, 1, 1, 80, qkey_gsi, NULL },
	{ "qkey_super", false, 0, 1, 6, 80, qkey_top, NULL },
	{ "pkey", false, 0, 0, 1, 80, pkey_other, NULL },
	{ "pkey_v6", false, 1, 0, 1, 80, pkey_other, NULL },
	{ "pkey_ud", false, 0, 1, 1, 80, pkey_other, NULL },
	{ "pkey_limited", false, 0, 0, 1, 80, pkey_limited, NULL },
	{ "pkey_zero", false, 0, 0, 1, 80, pkey_zero, NULL },
	{ "pkey_super", false, 0, 0, 6, 80, pkey_other, NULL },
	{ "pkey_super_ud", false, 0, 1, 6, 80, pkey_other, NULL },
	{ "pkey_super_last", false, 0, 0, 6, 80, pkey_last, NULL },
	{ "source_qpn_none", false, 0, 1, 1, 80, source_qpn_none, NULL },
	{ "source_qpn_none_super", false, 0, 1, 6, 80, source_qpn_none, NULL },
	{ "source_qpn_one", false, 0, 1, 1, 80, source_qpn_one, NULL },
	{ "source_qpn_zero", false, 0, 1, 1, 80, source_qpn_zero, NULL },
	{ "source_qpn_foreign", false, 0, 1, 1, 80, source_qpn_foreign, NULL },
	{ "source_qpn_foreign_v6", false, 1, 1, 1, 80, source_qpn_foreign, NULL },
	{ "source_qpn_foreign_super", false, 0, 1, 6, 80, source_qpn_foreign, NULL },
	{ "source_qpn_foreign_rd", false, 0, 1, 1, 80, source_qpn_foreign_rd, NULL },
	{ "ud_immediate_foreign", false, 0, 1, 1, 80, ud_immediate_foreign, NULL },
	{ "super_last_is_ud", false, 0, 0, 6, 80, last_is_ud, NULL },
	{ "looks_super", false, 0, 1, 6, 80, looks_super, NULL },
	{ "looks_super_rc", false, 0, 0, 6, 80, looks_super, NULL },
	{ "split_by_kernel", false, 0, 1, 6, 80, split_by_kernel, NULL },
	{ "split_by_receiver", false, 0, 1, 6, 80, split_by_receiver, NULL },
	{ "split_by_kernel_rc", false, 0, 0, 6, 80, split_by_kernel, NULL },
	{ "split_by_receiver_rc", false, 0, 0, 6, 80, split_by_receiver, NULL },
	{ "bth_version", true, 0, 0, 1, 80, bth_version, NULL },
	{ "opcode_reserved", false, 0, 0, 1, 80, opcode_reserved, NULL },
	{ "opcode_manufacturer", false, 0, 0, 1, 80, opcode_manufacturer, NULL },
	{ "over_mtu", false, 0, 0, 1, 9000, over_mtu, NULL },
	{ "over_mtu_super", false, 0, 0, 4, 9000, over_mtu, NULL },
	{ "to_subnet_broadcast", true, 0, 0, 1, 80, NULL, to_subnet_broadcast },
	{ "trailer", true, 0, 0, 1, 80, NULL, trailer },
	{ "ip_checksum", true, 0, 0, 1, 80, NULL, ip_checksum },
};
/* clang-format on */
const u32 num_kinds = sizeof(kinds) / sizeof(kinds[0]);

void forged_kind(u32 k)
{
	forged_make(kinds[k].v6, kinds[k].ud, kinds[k].packets, kinds[k].each);
	if (kinds[k].before)
		kinds[k].before();
	forged_seal(k);
	if (kinds[k].after)
		kinds[k].after();
}
