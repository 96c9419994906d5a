/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See raw_frame.h. */
#include "raw_frame.h"

#include <string.h>

#define MAGIC	 0x4a554447u
#define COUNT(a) (uint32_t)(sizeof(a) / sizeof((a)[0]))

uint64_t frame_seed = 1;

/* the test's interfaces (netns.sh), others, multicast, broadcast */
static const uint8_t dst_macs[][6] = {
	{ 2, 0, 0, 0x77, 0, 1 },    { 2, 0, 0, 0x99, 0, 1 },
	{ 1, 0, 0x5e, 0, 0, 5 },    { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	{ 0x33, 0x33, 0, 0, 0, 1 },
};
static const uint8_t src_macs[][6] = { { 2, 0, 0, 0x77, 0, 2 }, { 2, 0xaa, 0xbb, 0, 0, 9 } };
static const uint16_t tags[] = { 0x0005, 0x6007, 0 };
static const uint32_t addrs4[] = { 0x0a4d0002, 0x0a4d0001, 0xe0000005, 0xc0a80909 };
static const uint8_t addrs6[][16] = {
	{ 0xfd, 0x77, [15] = 1 },
	{ 0xfd, 0x77, [15] = 2 },
	{ 0x20, 1, 0xd, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 },
};
static const uint8_t protos4[] = { 6, 17, 6, 17, 1, 47, 50, 50 };
static const uint8_t protos6[] = { 6, 17, 6, 17, 58, 0, 44, 60, 50 };
static const uint32_t few[] = { 7, 0x12345140, 0xfedcba98 };
static const uint16_t ports[] = { 1000, 2000, 443, 4790, 0xffff };

uint32_t draw(uint32_t below)
{
	frame_seed ^= frame_seed >> 12;
	frame_seed ^= frame_seed << 25;
	frame_seed ^= frame_seed >> 27;
	return (uint32_t)((frame_seed * 0x2545f4914f6cdd1dull) >> 32) % below;
}

static uint16_t draw_port(bool any)
{
	/* 4791 is RoCEv2's */
	uint16_t port = any ? (uint16_t)draw(0x10000) : ports[draw(COUNT(ports))];

	return port == 4791 ? 4790 : port;
}

static void draw_addr6(uint8_t *addr, bool any)
{
	memcpy(addr, addrs6[draw(COUNT(addrs6))], 16);
	for (int i = 0; any && i < 16; i++)
		addr[i] = (uint8_t)draw(256);
}

void draw_fields(struct frame_fields *f, bool any)
{
	memset(f, 0, sizeof(*f));
	memcpy(f->dst_mac, dst_macs[draw(COUNT(dst_macs))], 6);
	memcpy(f->src_mac, src_macs[draw(COUNT(src_macs))], 6);
	f->vlan_tag = tags[draw(COUNT(tags))];
	f->src4 = any ? draw(UINT32_MAX) : addrs4[draw(COUNT(addrs4))];
	f->dst4 = any ? draw(UINT32_MAX) : addrs4[draw(COUNT(addrs4))];
	draw_addr6(f->src6, any);
	draw_addr6(f->dst6, any);
	f->flow_label = draw(2) ? 0xabcde : 0;
	f->tos = draw(2) ? 0xb9 : 0;
	f->ttl = draw(2) ? 64 : 1;
	f->sport = draw_port(any);
	f->dport = draw_port(any);
	f->spi = few[draw(COUNT(few))];
	f->seq = few[draw(COUNT(few))];
	f->mpls = few[draw(COUNT(few))];
}

static void put8(struct frame *frame, uint32_t v)
{
	frame->bytes[frame->len++] = (uint8_t)v;
}

static void put16(struct frame *frame, uint32_t v)
{
	put8(frame, v >> 8);
	put8(frame, v);
}

static void put32(struct frame *frame, uint32_t v)
{
	put16(frame, v >> 16);
	put16(frame, v);
}

static void put_bytes(struct frame *frame, const void *from, uint32_t len)
{
	memcpy(frame->bytes + frame->len, from, len);
	frame->len += len;
}

static void put_tags(struct frame *frame, uint32_t count)
{
	struct frame_fields *f = &frame->f;

	f->is_tagged = count > 0;
	if (!count)
		f->vlan_tag = 0;
	for (uint32_t i = 0; i < count; i++) {
		put16(frame, count == 2 && !i && draw(2) ? 0x88a8 : 0x8100);
		put16(frame, i ? tags[draw(COUNT(tags))] : f->vlan_tag);
	}
}

static bool has_ports(uint8_t proto)
{
	return proto == 6 || proto == 17;
}

static void put_ipv4(struct frame *frame, uint32_t payload)
{
	struct frame_fields *f = &frame->f;
	uint32_t words = draw(4) ? 5 : 5 + draw(11), offset = 0;

	f->is_ipv4 = true;
	f->proto = protos4[draw(COUNT(protos4))];
	switch (draw(6)) {
	case 0:
		f->ip_flags = 2;
		break;
	case 1:
		f->ip_flags = 4;
		break;
	case 2:
		offset = 1 + draw(1000);
		f->ip_flags = draw(2) ? 4 : 0;
		break;
	}
	f->is_fragment = offset || f->ip_flags & 4;
	f->has_ports = has_ports(f->proto) && !offset;
	f->is_esp = f->proto == 50 && !offset;
	put8(frame, 0x40 | words);
	put8(frame, f->tos);
	put16(frame, words * 4 + payload);
	put16(frame, draw(0x10000));
	put16(frame, (f->ip_flags & 2 ? 0x4000 : 0) | (f->ip_flags & 4 ? 0x2000 : 0) | offset);
	put8(frame, f->ttl);
	put8(frame, f->proto);
	put16(frame, draw(0x10000));
	put32(frame, f->src4);
	put32(frame, f->dst4);
	for (uint32_t i = 5; i < words; i++)
		put32(frame, draw(UINT32_MAX));
}

static void put_ipv6(struct frame *frame, uint32_t payload)
{
	struct frame_fields *f = &frame->f;

	f->is_ipv6 = true;
	f->proto = protos6[draw(COUNT(protos6))];
	f->has_ports = has_ports(f->proto);
	f->is_esp = f->proto == 50;
	put32(frame, 6u << 28 | (uint32_t)f->tos << 20 | f->flow_label);
	put16(frame, payload);
	put8(frame, f->proto);
	put8(frame, f->ttl);
	put_bytes(frame, f->src6, 16);
	put_bytes(frame, f->dst6, 16);
}

void frame_put_number(struct frame *frame, uint32_t number)
{
	put32(frame, MAGIC);
	put32(frame, number);
}

void frame_make(struct frame *frame, uint32_t number, bool any_fields)
{
	static const uint16_t types[] = { 0x0800, 0x0800, 0x0800, 0x0800, 0x86dd,
					  0x86dd, 0x0806, 0x88b5, 0x8847, 0x8848 };
	uint32_t rest = 16 + draw(64);

	frame->len = 0;
	draw_fields(&frame->f, any_fields);
	frame->f.ether_type = types[draw(COUNT(types))];
	put_bytes(frame, frame->f.dst_mac, 6);
	put_bytes(frame, frame->f.src_mac, 6);
	put_tags(frame, draw(10) < 6 ? 0 : 1 + draw(2));
	put16(frame, frame->f.ether_type);
	if (frame->f.ether_type == 0x0800)
		put_ipv4(frame, 4 + rest + 8);
	else if (frame->f.ether_type == 0x86dd)
		put_ipv6(frame, 4 + rest + 8);
	frame->f.is_mpls = frame->f.ether_type >> 4 == 0x884;
	if (frame->f.is_mpls)
		put32(frame, frame->f.mpls);
	/* ports, or what others have there */
	if (frame->f.is_esp) {
		put32(frame, frame->f.spi);
		put32(frame, frame->f.seq);
		rest -= 4;
	} else {
		put16(frame, frame->f.sport);
		put16(frame, frame->f.dport);
	}
	while (rest--)
		put8(frame, draw(256));
	frame_put_number(frame, number);
}

void frame_make_last(struct frame *frame, uint16_t type, uint32_t number)
{
	memset(frame, 0, sizeof(*frame));
	memcpy(frame->f.dst_mac, dst_macs[0], 6);
	memcpy(frame->f.src_mac, src_macs[0], 6);
	frame->f.ether_type = type;
	put_bytes(frame, frame->f.dst_mac, 6);
	put_bytes(frame, frame->f.src_mac, 6);
	put16(frame, type);
	frame_put_number(frame, number);
}

bool frame_number(const uint8_t *bytes, uint32_t len, uint32_t *number)
{
	struct frame end = { .len = 0 };

	if (len < 22)
		return false;
	bytes += len - 8;
	*number = (uint32_t)bytes[4] << 24 | (uint32_t)bytes[5] << 16 | (uint32_t)bytes[6] << 8 |
		  bytes[7];
	frame_put_number(&end, *number);
	return !memcmp(end.bytes, bytes, 8);
}
