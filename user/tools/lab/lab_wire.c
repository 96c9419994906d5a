/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "../../engine/gso.h"
#include "lab_wire.h"

/* ---- packets that were seen ---- */

/* Of each WINDOW PSNs the packet seen last is counted, apart from its acknowledgement. */
#define WINDOW (1u << 12)

struct lab_flow {
	u32 from, to, qpn, order;
	bool responses;
	u32 first_psn;
	struct {
		u32 key; /* PSN and kind of packet, plus 1; 0: none */
		u32 round;
	} seen[2 * WINDOW];
};

static u32 flow_slot(u32 from, u32 to, u32 qpn, bool responses)
{
	return (qpn * 2654435761u ^ from << 20 ^ to << 24 ^ (u32)responses << 28) >> 20;
}
_Static_assert((u32)LAB_FLOWS == 1u << 12, "the bits that flow_slot() keeps");

/* Returns the place of a flow in the table, or of its absence; NULL: the table is full. */
static struct lab_flow **flow_find(struct lab_wire *w, u32 from, u32 to, u32 qpn, bool responses)
{
	u32 slot = flow_slot(from, to, qpn, responses);

	for (u32 n = 0; n < LAB_FLOWS; n++, slot = (slot + 1) % LAB_FLOWS) {
		const struct lab_flow *f = w->flows[slot];

		if (!f ||
		    (f->from == from && f->to == to && f->qpn == qpn && f->responses == responses))
			return &w->flows[slot];
	}
	return NULL;
}

static struct lab_flow *flow_of(struct lab_wire *w, u32 from, u32 to, const struct packet *p)
{
	const bool responses = p->flags & OP_RESPONSE;
	struct lab_flow **at = flow_find(w, from, to, p->dest_qpn, responses), **other, *f;

	if (!at || *at)
		return at ? *at : NULL;
	/* one place stays free, at which the search for another QP ends */
	f = w->num_flows < LAB_FLOWS - 1 ? calloc(1, sizeof(*f)) : NULL;
	if (!f)
		return NULL;
	other = flow_find(w, from, to, p->dest_qpn, !responses);
	*f = (struct lab_flow){ .from = from,
				.to = to,
				.qpn = p->dest_qpn,
				.responses = responses,
				.first_psn = p->psn };
	f->order = other && *other ? (*other)->order : ++w->num_qps[from][to];
	w->num_flows++;
	*at = f;
	return f;
}

/* A MAD's retransmissions have new PSNs: its kind and its transaction ID stand for it. */
static u32 mad_number(const struct packet *p, u32 kind)
{
	u8 header[24];
	u32 number = kind;

	if (p->payload_len < sizeof(header))
		return 0;
	packet_copy_payload(p, 0, header, sizeof(header));
	for (u32 i = 8; i < 16; i++)
		number = number * 31 + header[i];
	return number & ROCE_PSN_MASK;
}

/* Returns which transmission of the packet this is, and counts it. */
static u32 flow_round(struct lab_flow *f, u32 number, u32 kind, bool is_ack)
{
	const u32 key = (number << 8 | (kind & 0xff)) + 1;
	const u32 slot = 2 * (number % WINDOW) + is_ack;

	if (f->seen[slot].key != key) {
		f->seen[slot].key = key;
		f->seen[slot].round = 0;
	}
	return ++f->seen[slot].round;
}

static void identify(struct lab_wire *w, u32 from, u32 to, const struct packet *p,
		     struct lab_identity *id)
{
	struct lab_flow *f = flow_of(w, from, to, p);

	*id = (struct lab_identity){
		.qpn = p->dest_qpn, .psn = p->psn, .kind = lab_kind_of(p), .round = 1
	};
	if (!f) {
		w->untold++;
		return;
	}
	id->order = f->order;
	id->step = (p->psn - f->first_psn) & ROCE_PSN_MASK;
	id->round = flow_round(f, lab_kind_is_mad(id->kind) ? mad_number(p, id->kind) : p->psn,
			       id->kind, p->flags & OP_ACK);
}

bool lab_wire_decide(struct lab_wire *w, u32 from, u32 to, const u8 *frame, u32 len,
		     struct lab_fate *fate)
{
	const struct rx_frame f = { .data = frame, .len = len };
	struct packet p;

	*fate = (struct lab_fate){ .copies = 1 };
	if (packet_parse(&p, &f) != XROCE_DROP_none)
		return false;
	w->packets++;
	identify(w, from, to, &p, &fate->id);
	for (u32 i = 0; i < w->num_rules; i++) {
		struct lab_rule *r = &w->rules[i];

		if (lab_rule_place(r) != LAB_AT_CABLE)
			continue;
		/* one without a text has been removed; its place stays, which shares depend on */
		if (!r->text[0] || !lab_rule_selects(r, i, w->seed, from, to, p.flags, &fate->id))
			continue;
		fate->rules |= 1ull << i;
		switch (r->verb) {
		case LAB_DROP:
			fate->drop = true;
			break;
		case LAB_DUPLICATE:
			fate->copies++;
			break;
		case LAB_DELAY:
			fate->delay_ns += r->delay_ns;
			break;
		case LAB_SWAP:
			fate->swap = true;
			break;
		case LAB_CORRUPT:
			fate->corrupt |= 1u << r->part;
			break;
		case LAB_MARK:
			fate->mark = true;
			break;
		default: /* of an endpoint */
			break;
		}
	}
	return true;
}

void lab_wire_free(struct lab_wire *w)
{
	for (u32 i = 0; i < LAB_FLOWS; i++)
		free(w->flows[i]);
	memset(w->flows, 0, sizeof(w->flows));
	w->num_flows = 0;
}

/* ---- changes ---- */

static u32 sum_bytes(const u8 *at, u32 len)
{
	return sum16(at, len & ~1u) + (len & 1 ? (u32)at[len - 1] << 8 : 0);
}

/* Marks an ECN-capable packet. ip: its IP header. */
static void mark_congestion(u8 *ip, bool is_ipv6)
{
	const u32 ecn = is_ipv6 ? ip[1] >> 4 & 3 : ip[1] & 3;

	if (!ecn)
		return;
	if (is_ipv6) {
		ip[1] |= 0x30;
		return;
	}
	ip[1] |= 3;
	put16(ip + 10, 0);
	put16(ip + 10, ~fold16(sum16(ip, sizeof(struct iphdr))));
}

/* Computes the checksum again, unless the sender left it out, as IPv4 permits. */
static void udp_checksum(u8 *ip, bool is_ipv6, u8 *udp, u32 len)
{
	const u8 *addresses = ip + (is_ipv6 ? 8 : 12);
	u32 sum;

	if (!udp[6] && !udp[7])
		return;
	put16(udp + 6, 0);
	sum = sum16(addresses, is_ipv6 ? 32 : 8) + IPPROTO_UDP + len + sum_bytes(udp, len);
	sum = ~fold16(sum) & 0xffff;
	put16(udp + 6, sum ? sum : 0xffff);
}

void lab_wire_change(u8 *frame, u32 len, const struct lab_fate *fate)
{
	const struct rx_frame f = { .data = frame, .len = len };
	struct packet p;
	u8 *ip, *udp, *bth, *end;

	if ((!fate->corrupt && !fate->mark) || packet_parse(&p, &f) != XROCE_DROP_none)
		return;
	ip = frame + (p.ip - frame);
	end = frame + (p.end - frame);
	udp = ip + (p.is_ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	bth = udp + sizeof(struct udphdr);
	if (fate->mark)
		mark_congestion(ip, p.is_ipv6);
	/* a packet without payload has its last header changed */
	if (fate->corrupt & 1u << LAB_PAYLOAD)
		end[-(long)ROCE_ICRC_BYTES - 1] ^= 1;
	if (fate->corrupt & 1u << LAB_ICRC)
		end[-1] ^= 1;
	if (fate->corrupt & 1u << LAB_OPCODE)
		bth[0] ^= 1;
	if (fate->corrupt & 1u << LAB_PKEY)
		bth[3] ^= 1;
	if (fate->corrupt & 1u << LAB_QPN)
		bth[7] ^= 1;
	if (fate->corrupt & 1u << LAB_PSN)
		bth[11] ^= 1;
	if (fate->corrupt)
		udp_checksum(ip, p.is_ipv6, udp, (u32)(end - udp));
}
