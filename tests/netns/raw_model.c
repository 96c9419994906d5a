/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flows against a model of ibv_create_flow(3). Rules of several QPs are created and destroyed at
 * random, with masks of any bits, priorities and actions, including sniffers and rules that do not
 * trap. For each frame the model gives the copies of each QP, their tag, whether the kernel has it,
 * and the counters.
 *
 *	raw_model DEVICE NETNS PEER ROUNDS SEED
 *
 * NETNS and PEER are the other end of the cable, where a packet socket sends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl.h"
#include "lib/raw_side.h"

#define QPS	5
#define LAST	(&raw_queues[QPS])
#define OBJECTS 3
#define FLOWS	24
#define FRAMES	48
#define FIXED	3 /* rules for the frames that end a round */
#define ROUND	(FRAMES + 2)
#define NONE	UINT32_MAX
/* in the order of frames: sniffers, normal rules of priority 0 and more, default rules */
#define PRIORITY_SNIFFER 0u
#define PRIORITY_FIRST	 1u
#define PRIORITY_MAX	 5u /* of the drawn frames */
#define PRIORITY_DEFAULT 0x10000u
#define ETH_BYTES	 16
#define IPV4_BYTES	 8
#define IPV4_EXT_BYTES	 12
#define IPV6_BYTES	 39
#define PORTS_BYTES	 4
#define ESP_BYTES	 8
#define MPLS_BYTES	 4

/* Filters as ibv_create_flow(3) lays them out, all of them of one frame or of one rule. */
struct filters {
	struct ibv_flow_eth_filter eth;
	struct ibv_flow_ipv4_ext_filter ipv4; /* begins as the filter without the extension */
	struct ibv_flow_ipv6_filter ipv6;
	struct ibv_flow_tcp_udp_filter ports;
	struct ibv_flow_esp_filter esp;
	struct ibv_flow_mpls_filter mpls;
};

struct rule {
	struct ibv_flow *flow;
	enum ibv_flow_attr_type type;
	uint32_t qp, priority;
	bool eth;
	uint32_t l3, l4; /* spec types, or 0; MPLS is one of l3 */
	struct filters value, mask;
	bool copies; /* a sniffer, or it does not trap: the frame goes on */
	bool drop;
	uint32_t tag;	  /* 0: none */
	uint32_t counter; /* or NONE */
};

static struct rule rules[FLOWS]; /* in the order they were made */
static uint32_t num_rules;
static struct ibv_counters *objects[OBJECTS];
static uint64_t packets[OBJECTS], bytes[OBJECTS];

static void filters_of(struct filters *k, const struct frame_fields *f)
{
	memset(k, 0, sizeof(*k));
	memcpy(k->eth.dst_mac, f->dst_mac, 6);
	memcpy(k->eth.src_mac, f->src_mac, 6);
	k->eth.ether_type = htons(f->ether_type);
	k->eth.vlan_tag = htons(f->vlan_tag);
	k->ipv4.src_ip = htonl(f->src4);
	k->ipv4.dst_ip = htonl(f->dst4);
	memcpy(k->ipv6.src_ip, f->src6, 16);
	memcpy(k->ipv6.dst_ip, f->dst6, 16);
	k->ipv6.flow_label = htonl(f->flow_label);
	k->ipv4.proto = k->ipv6.next_hdr = f->proto;
	k->ipv4.tos = k->ipv6.traffic_class = f->tos;
	k->ipv4.ttl = k->ipv6.hop_limit = f->ttl;
	k->ipv4.flags = f->ip_flags;
	k->ports.src_port = htons(f->sport);
	k->ports.dst_port = htons(f->dport);
	k->esp.spi = htonl(f->spi);
	k->esp.seq = htonl(f->seq);
	k->mpls.label = htonl(f->mpls);
}

static bool differs(const void *key, const void *value, const void *mask, uint32_t len)
{
	const uint8_t *k = key, *v = value, *m = mask;

	for (uint32_t i = 0; i < len; i++)
		if ((k[i] ^ v[i]) & m[i])
			return true;
	return false;
}

static bool rule_takes(const struct rule *r, const struct frame_fields *f)
{
	const bool is_ip[2] = { f->is_ipv4, f->is_ipv6 };
	const struct filters *v = &r->value, *m = &r->mask;
	struct filters k;

	if (r->type == IBV_FLOW_ATTR_MC_DEFAULT)
		return f->dst_mac[0] & 1;
	filters_of(&k, f);
	if (r->eth &&
	    (differs(&k.eth, &v->eth, &m->eth, ETH_BYTES) || (m->eth.vlan_tag && !f->is_tagged)))
		return false;
	if (r->l3 == IBV_FLOW_SPEC_MPLS)
		return f->is_mpls && !differs(&k.mpls, &v->mpls, &m->mpls, MPLS_BYTES);
	if (r->l3 && !is_ip[r->l3 == IBV_FLOW_SPEC_IPV6])
		return false;
	if ((r->l3 == IBV_FLOW_SPEC_IPV4 && differs(&k.ipv4, &v->ipv4, &m->ipv4, IPV4_BYTES)) ||
	    (r->l3 == IBV_FLOW_SPEC_IPV4_EXT &&
	     differs(&k.ipv4, &v->ipv4, &m->ipv4, IPV4_EXT_BYTES)) ||
	    (r->l3 == IBV_FLOW_SPEC_IPV6 && differs(&k.ipv6, &v->ipv6, &m->ipv6, IPV6_BYTES)))
		return false;
	if (r->l4 == IBV_FLOW_SPEC_ESP)
		return f->is_esp && !differs(&k.esp, &v->esp, &m->esp, ESP_BYTES);
	return !r->l4 || (f->has_ports && f->proto == (r->l4 == IBV_FLOW_SPEC_TCP ? 6 : 17) &&
			  !differs(&k.ports, &v->ports, &m->ports, PORTS_BYTES));
}

/* All bits, none or some; mostly none of fields of which few values would be left. */
static void mask_draw(void *mask, uint32_t len, bool seldom)
{
	uint32_t how = seldom && draw(2) ? 9 : draw(10);
	uint8_t *m = mask;

	for (uint32_t i = 0; i < len; i++)
		m[i] = how < 5 ? 0xff : how < 8 ? (uint8_t)(draw(256) & draw(256)) : 0;
}

static void masks_draw(struct filters *m)
{
	memset(m, 0, sizeof(*m));
	mask_draw(m->eth.dst_mac, 6, true);
	mask_draw(m->eth.src_mac, 6, true);
	mask_draw(&m->eth.ether_type, 2, false);
	mask_draw(&m->eth.vlan_tag, 2, true);
	mask_draw(&m->ipv4.src_ip, 4, true);
	mask_draw(&m->ipv4.dst_ip, 4, true);
	mask_draw(m->ipv6.src_ip, 16, true);
	mask_draw(m->ipv6.dst_ip, 16, true);
	mask_draw(&m->ipv6.flow_label, 4, true);
	m->ipv6.flow_label &= htonl(0xfffff);
	mask_draw(&m->ipv4.proto, 1, true);
	mask_draw(&m->ipv4.tos, 1, true);
	mask_draw(&m->ipv4.ttl, 1, true);
	m->ipv4.flags = draw(2) ? 0 : (uint8_t)(2 * draw(4));
	m->ipv6.next_hdr = m->ipv4.proto;
	m->ipv6.traffic_class = m->ipv4.tos;
	m->ipv6.hop_limit = m->ipv4.ttl;
	mask_draw(&m->ports, 2, false);
	mask_draw((uint8_t *)&m->ports + 2, 2, true);
	mask_draw(&m->esp.spi, 4, false);
	mask_draw(&m->esp.seq, 4, true);
	mask_draw(&m->mpls, 4, false);
}

static void rule_draw_match(struct rule *r)
{
	static const uint32_t l3[] = { 0, IBV_FLOW_SPEC_IPV4, IBV_FLOW_SPEC_IPV4_EXT,
				       IBV_FLOW_SPEC_IPV6, IBV_FLOW_SPEC_MPLS };
	static const uint32_t l4[] = { 0, IBV_FLOW_SPEC_TCP, IBV_FLOW_SPEC_UDP,
				       IBV_FLOW_SPEC_ESP };
	struct frame_fields f;

	r->eth = draw(3) > 0;
	r->l3 = l3[draw(5)];
	r->l4 = r->l3 == IBV_FLOW_SPEC_MPLS ? 0 : l4[draw(4)];
	draw_fields(&f, false);
	/* what the other specs say as well: another EtherType or protocol would be refused */
	f.ether_type = r->l3 == IBV_FLOW_SPEC_IPV6 || (!r->l3 && draw(2)) ? 0x86dd : 0x0800;
	if (r->l3 == IBV_FLOW_SPEC_MPLS)
		f.ether_type = 0x8847;
	f.proto = r->l4 == IBV_FLOW_SPEC_TCP ? 6 : r->l4 == IBV_FLOW_SPEC_ESP ? 50 : 17;
	f.ip_flags = (uint8_t)(2 * draw(4));
	filters_of(&r->value, &f);
	masks_draw(&r->mask);
}

static void rule_draw(struct rule *r)
{
	static const enum ibv_flow_attr_type types[] = {
		IBV_FLOW_ATTR_MC_DEFAULT, IBV_FLOW_ATTR_ALL_DEFAULT, IBV_FLOW_ATTR_SNIFFER
	};
	uint32_t how = draw(16);

	memset(r, 0, sizeof(*r));
	r->qp = draw(QPS);
	/* default rules and sniffers: any number, which means nothing */
	r->priority = PRIORITY_FIRST + 1 + draw(PRIORITY_MAX - PRIORITY_FIRST);
	if (how > 2)
		rule_draw_match(r);
	else
		r->type = types[how];
	/* "only normal rules": DONT_TRAP; "sniffer": all traffic, none of which it takes */
	r->copies = r->type == IBV_FLOW_ATTR_SNIFFER ||
		    (r->type == IBV_FLOW_ATTR_NORMAL && !draw(4));
	r->drop = !r->copies && !draw(8);
	r->tag = r->drop || draw(2) ? 0 : 1 + draw(UINT32_MAX);
	r->counter = draw(2) ? NONE : draw(OBJECTS);
}

static void spec_add(struct ibv_flow_attr *attr, const void *spec, uint16_t len)
{
	memcpy((uint8_t *)attr + attr->size, spec, len);
	attr->size += len;
	attr->num_of_specs++;
}

static void spec_eth(struct ibv_flow_attr *attr, const struct rule *r)
{
	struct ibv_flow_spec_eth spec = { IBV_FLOW_SPEC_ETH, sizeof(spec), r->value.eth,
					  r->mask.eth };

	if (r->eth)
		spec_add(attr, &spec, sizeof(spec));
}

static void spec_l3(struct ibv_flow_attr *attr, const struct rule *r)
{
	struct ibv_flow_spec_ipv4 ipv4 = { .type = r->l3, .size = sizeof(ipv4) };
	struct ibv_flow_spec_ipv4_ext ext = { r->l3, sizeof(ext), r->value.ipv4, r->mask.ipv4 };
	struct ibv_flow_spec_ipv6 ipv6 = { r->l3, sizeof(ipv6), r->value.ipv6, r->mask.ipv6 };
	struct ibv_flow_spec_mpls mpls = { r->l3, sizeof(mpls), r->value.mpls, r->mask.mpls };

	memcpy(&ipv4.val, &r->value.ipv4, IPV4_BYTES);
	memcpy(&ipv4.mask, &r->mask.ipv4, IPV4_BYTES);
	if (r->l3 == IBV_FLOW_SPEC_IPV4)
		spec_add(attr, &ipv4, sizeof(ipv4));
	if (r->l3 == IBV_FLOW_SPEC_IPV4_EXT)
		spec_add(attr, &ext, sizeof(ext));
	if (r->l3 == IBV_FLOW_SPEC_IPV6)
		spec_add(attr, &ipv6, sizeof(ipv6));
	if (r->l3 == IBV_FLOW_SPEC_MPLS)
		spec_add(attr, &mpls, sizeof(mpls));
}

static void spec_l4(struct ibv_flow_attr *attr, const struct rule *r)
{
	struct ibv_flow_spec_tcp_udp spec = { r->l4, sizeof(spec), r->value.ports, r->mask.ports };
	struct ibv_flow_spec_esp esp = { r->l4, sizeof(esp), r->value.esp, r->mask.esp };

	if (r->l4 == IBV_FLOW_SPEC_ESP)
		spec_add(attr, &esp, sizeof(esp));
	else if (r->l4)
		spec_add(attr, &spec, sizeof(spec));
}

static void spec_actions(struct ibv_flow_attr *attr, const struct rule *r)
{
	struct ibv_flow_spec_action_drop drop = { IBV_FLOW_SPEC_ACTION_DROP, sizeof(drop) };
	struct ibv_flow_spec_action_tag tag = { IBV_FLOW_SPEC_ACTION_TAG, sizeof(tag), r->tag };
	struct ibv_flow_spec_counter_action count = { IBV_FLOW_SPEC_ACTION_COUNT, sizeof(count),
						      NULL };

	if (r->drop)
		spec_add(attr, &drop, sizeof(drop));
	if (r->tag)
		spec_add(attr, &tag, sizeof(tag));
	if (r->counter != NONE) {
		count.counters = objects[r->counter];
		spec_add(attr, &count, sizeof(count));
	}
}

static void rule_make(struct rule *r)
{
	static void (*const add[])(struct ibv_flow_attr *, const struct rule *) = {
		spec_eth,
		spec_l3,
		spec_l4,
		spec_actions,
	};
	union {
		struct ibv_flow_attr attr;
		uint8_t room[512];
	} u = { .attr = { .type = r->type,
			  .priority = (uint16_t)(r->priority - PRIORITY_FIRST),
			  .port = 1 } };
	uint32_t first = draw(4);

	u.attr.size = sizeof(u.attr);
	if (r->copies && r->type == IBV_FLOW_ATTR_NORMAL)
		u.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	/* in any order: from any of them on, up or down */
	for (uint32_t i = 0, step = draw(2) ? 1 : 3; i < 4; i++)
		add[(first + i * step) % 4](&u.attr, r);
	r->flow = ibv_create_flow(raw_queues[r->qp].qp, &u.attr);
	must(r->flow, "ibv_create_flow: %s", strerror(errno));
	if (r->type == IBV_FLOW_ATTR_SNIFFER)
		r->priority = PRIORITY_SNIFFER;
	else if (r->type != IBV_FLOW_ATTR_NORMAL)
		r->priority = PRIORITY_DEFAULT;
}

static void rule_end(uint32_t i)
{
	must(!ibv_destroy_flow(rules[i].flow), "ibv_destroy_flow");
	memmove(&rules[i], &rules[i + 1], (--num_rules - i) * sizeof(rules[0]));
}

static void rules_change(void)
{
	if (num_rules > FIXED && (num_rules == FLOWS || draw(2))) {
		rule_end(FIXED + draw(num_rules - FIXED));
		return;
	}
	rule_draw(&rules[num_rules]);
	rule_make(&rules[num_rules]);
	num_rules++;
}

/* Before all but sniffers, and for LAST alone: see raw_ends_with_copy. */
static void rules_make_fixed(void)
{
	static const struct {
		uint16_t ether_type;
		bool copies, drop;
	} fixed[FIXED] = {
		{ FRAME_TYPE_LAST, false, false },
		{ FRAME_TYPE_LAST_COPY, true, false },
		{ FRAME_TYPE_LAST_COPY, false, true },
	};

	for (; num_rules < FIXED; num_rules++) {
		struct rule *r = &rules[num_rules];

		*r = (struct rule){ .qp = QPS,
				    .priority = PRIORITY_FIRST,
				    .eth = true,
				    .value.eth.ether_type = htons(fixed[num_rules].ether_type),
				    .mask.eth.ether_type = 0xffff,
				    .copies = fixed[num_rules].copies,
				    .drop = fixed[num_rules].drop,
				    .counter = NONE };
		rule_make(r);
	}
	raw_ends_with_copy = true;
}

/* The model's prediction for a frame: each QP's copies, and the last one's tag. */
struct verdict {
	uint32_t copies[RAW_QUEUES + 1];
	uint32_t tags[RAW_QUEUES];
};

/* Rules of one priority that copy, that trap, or that drop. */
static void verdict_add(struct verdict *v, const struct frame *frame, uint32_t priority,
			bool copies, bool drop)
{
	bool has[QPS + 1] = { false };

	for (uint32_t i = 0; i < num_rules; i++) {
		const struct rule *r = &rules[i];

		if (r->priority != priority || r->copies != copies || r->drop != drop ||
		    !rule_takes(r, &frame->f))
			continue;
		if (r->counter != NONE) {
			packets[r->counter]++;
			bytes[r->counter] += frame->len;
		}
		/* of several flows of a QP, the first one's */
		if (drop || has[r->qp])
			continue;
		has[r->qp] = true;
		v->copies[r->qp]++;
		v->tags[r->qp] = r->tag;
	}
}

static void verdict_find(struct verdict *v, const struct frame *frame)
{
	uint32_t best = NONE;
	bool drop = false;

	memset(v, 0, sizeof(*v));
	for (uint32_t i = 0; i < num_rules; i++)
		if (!rules[i].copies && rules[i].priority < best &&
		    rule_takes(&rules[i], &frame->f))
			best = rules[i].priority;
	/* drop rules come before the others, which do not count then */
	for (uint32_t i = 0; i < num_rules; i++)
		drop |= rules[i].drop && rules[i].priority == best &&
			rule_takes(&rules[i], &frame->f);
	/* and rules that do not trap before both: a copy for each priority up to that one */
	for (uint32_t p = PRIORITY_SNIFFER; p <= PRIORITY_MAX && p <= best; p++)
		verdict_add(v, frame, p, true, false);
	v->copies[RAW_KERNEL] = best == NONE;
	verdict_add(v, frame, best, false, drop);
}

static void rules_print(const struct frame_fields *f)
{
	for (uint32_t i = 0; i < num_rules; i++)
		printf("# %s rule of QP %u: type %d priority %x eth %d l3 %x l4 %x copies %d drop "
		       "%d tag %x counter %d\n",
		       rule_takes(&rules[i], f) ? "its" : "no", rules[i].qp, rules[i].type,
		       rules[i].priority, rules[i].eth, rules[i].l3, rules[i].l4, rules[i].copies,
		       rules[i].drop, rules[i].tag, (int)rules[i].counter);
	fflush(stdout);
}

static void frame_check(const struct raw_frame *f)
{
	const struct frame_fields *at = &f->frame.f;
	struct verdict v;

	verdict_find(&v, &f->frame);
	for (uint32_t i = 0; i <= RAW_QUEUES; i++) {
		if (f->copies[i] == v.copies[i] &&
		    (i == RAW_KERNEL || !v.copies[i] || f->tags[i] == v.tags[i]))
			continue;
		rules_print(at);
		die("%u copies at %u, not %d, of a frame with EtherType %x, tagged %d, protocol "
		    "%u, fragment %d",
		    f->copies[i], i, v.copies[i], at->ether_type, at->is_tagged, at->proto,
		    at->is_fragment);
	}
}

static void objects_make(void)
{
	for (int i = 0; i < OBJECTS; i++) {
		struct ibv_counters_init_attr init = { 0 };
		struct ibv_counter_attach_attr points[2] = {
			{ .counter_desc = IBV_COUNTER_PACKETS, .index = 0 },
			{ .counter_desc = IBV_COUNTER_BYTES, .index = 1 },
		};

		objects[i] = ibv_create_counters(raw_ctx, &init);
		must(objects[i], "ibv_create_counters: %s", strerror(errno));
		for (int k = 0; k < 2; k++)
			must(!ibv_attach_counters_point_flow(objects[i], &points[k], NULL),
			     "no point");
	}
}

/* No other process sends: the test ensures that. */
static void objects_check(void)
{
	for (int i = 0; i < OBJECTS; i++) {
		uint64_t value[2];

		must(!ibv_read_counters(objects[i], value, 2, 0), "ibv_read_counters");
		must(value[0] == packets[i] && value[1] == bytes[i],
		     "counters %d: %lu packets, not %lu, %lu bytes, not %lu", i,
		     (unsigned long)value[0], (unsigned long)packets[i], (unsigned long)value[1],
		     (unsigned long)bytes[i]);
	}
}

int main(int argc, char **argv)
{
	uint32_t rounds, by_kernel = 0, copies = 0;

	must(argc == 6, "usage: raw_model DEVICE NETNS PEER ROUNDS SEED");
	rounds = (uint32_t)atoi(argv[4]);
	frame_seed = strtoull(argv[5], NULL, 0);
	raw_open(argv[1], argv[2], argv[3]);
	for (int i = 0; i <= QPS; i++)
		raw_add_qp(&raw_queues[i]);
	rules_make_fixed();
	objects_make();
	for (uint32_t round = 0; round < rounds; round++) {
		for (uint32_t i = draw(4); i < 4; i++)
			rules_change();
		raw_round(FRAMES, false, LAST);
		for (uint32_t i = 0; i < ROUND; i++) {
			frame_check(&raw_frames[i]);
			by_kernel += raw_frames[i].copies[RAW_KERNEL];
			for (int q = 0; q < QPS; q++)
				copies += raw_frames[i].copies[q];
		}
		objects_check();
		/* few rules, that more than the default rules are seen */
		while (round % 32 == 31 && num_rules > FIXED)
			rule_end(num_rules - 1);
	}
	while (num_rules)
		rule_end(0);
	for (int i = 0; i < OBJECTS; i++)
		must(!ibv_destroy_counters(objects[i]), "ibv_destroy_counters");
	printf("model: %u frames, %u of the kernel, %u copies\n", rounds * FRAMES, by_kernel,
	       copies);
	return 0;
}
