/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frame builder. The payload is a pattern that differs from byte to byte, so that a shifted
 * copy is seen.
 */
#include "frame.h"

#include <string.h>

void frame_put16(uint8_t *p, uint16_t v)
{
	p[0] = v >> 8;
	p[1] = v;
}

void frame_put32(uint8_t *p, uint32_t v)
{
	frame_put16(p, v >> 16);
	frame_put16(p + 2, v);
}

uint16_t frame_get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

uint32_t frame_get32(const uint8_t *p)
{
	return (uint32_t)frame_get16(p) << 16 | frame_get16(p + 2);
}

static bool is_ipv6(const struct frame *f)
{
	return f->bytes[f->l3] >> 4 == 6;
}

void frame_fix_lengths(struct frame *f)
{
	uint8_t *ip = f->bytes + f->l3;
	uint32_t sum = 0;

	frame_put16(f->bytes + f->l4 + 4, f->len - f->l4);
	if (is_ipv6(f)) {
		frame_put16(ip + 4, f->len - f->l3 - 40);
		return;
	}
	frame_put16(ip + 2, f->len - f->l3);
	frame_put16(ip + 10, 0);
	for (uint32_t i = 0; i < f->l4 - f->l3; i += 2)
		sum += frame_get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	frame_put16(ip + 10, ~sum);
}

static uint8_t *put_ethernet(uint8_t *at, const struct frame_spec *s)
{
	static const uint8_t macs[12] = { 0x02, 0, 0, 0, 0, 0x01, 0x02, 0, 0, 0, 0, 0x02 };

	memcpy(at, macs, sizeof(macs));
	at += sizeof(macs);
	for (unsigned int i = 0; i < s->tags; i++, at += 4) {
		frame_put16(at, s->tag_proto[i]);
		frame_put16(at + 2, s->tag_tci[i]);
	}
	frame_put16(at, s->ipv6 ? 0x86dd : 0x0800);
	return at + 2;
}

static uint8_t *put_ip(uint8_t *ip, const struct frame_spec *s)
{
	uint8_t protocol = s->protocol ? s->protocol : 17;

	if (s->ipv6) {
		frame_put32(ip, 6u << 28 | (uint32_t)s->tos << 20);
		ip[6] = protocol;
		ip[7] = 64;
		memcpy(ip + 8, s->src, 16);
		memcpy(ip + 24, s->dst, 16);
		return ip + 40;
	}
	ip[0] = 0x45 + s->option_bytes / 4;
	ip[1] = s->tos;
	frame_put16(ip + 4, 0x1234);
	frame_put16(ip + 6, 0x4000);
	ip[8] = 64;
	ip[9] = protocol;
	memcpy(ip + 12, s->src + 12, 4);
	memcpy(ip + 16, s->dst + 12, 4);
	memset(ip + 20, 1, s->option_bytes); /* no-operation */
	return ip + 20 + s->option_bytes;
}

void frame_build(struct frame *f, const struct frame_spec *s)
{
	uint32_t pad = -s->payload_len & 3;
	uint8_t *at;

	memset(f, 0, sizeof(*f));
	at = put_ethernet(f->bytes, s);
	f->l3 = at - f->bytes;
	at = put_ip(at, s);
	f->l4 = at - f->bytes;
	frame_put16(at, s->sport);
	frame_put16(at + 2, s->dport ? s->dport : 4791);
	at += 8;
	f->bth = at - f->bytes;
	at[0] = s->opcode;
	at[1] = s->bth_flags | pad << 4;
	frame_put16(at + 2, s->pkey);
	frame_put32(at + 4, s->ecn_qpn);
	frame_put32(at + 8, s->ack_psn);
	at += 12;
	f->ext = at - f->bytes;
	memcpy(at, s->ext, s->ext_len);
	at += s->ext_len;
	f->payload = at - f->bytes;
	for (uint32_t i = 0; i < s->payload_len; i++)
		*at++ = i * 7 + (i >> 8);
	at += pad;
	frame_put32(at, 0x1c1c1c1c);
	f->len = at + 4 - f->bytes;
	frame_fix_lengths(f);
}
