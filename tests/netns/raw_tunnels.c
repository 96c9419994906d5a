/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flows that match tunnels and their inner headers, against a model of ibv_create_flow(3) and
 * docs/raw.md: rules drawn at random from frames, and VXLAN and GRE frames drawn at random. The
 * flow tag of each frame identifies the rule that took it.
 *
 *	raw_tunnels DEVICE NETNS PEER ROUNDS SEED
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl.h"
#include "lib/raw_side.h"

#define RULES	 4
#define FRAMES	 48
#define QP	 (&raw_queues[0])
#define LAST	 (&raw_queues[1])
#define TAG_NONE 99u /* of no rule, but of the flow after them */
#define INNER	 IBV_FLOW_SPEC_INNER

#define VXLAN_PORT  4789
#define GRE_HAS_SUM 0x8000
#define GRE_ROUTING 0x4000
#define GRE_HAS_KEY 0x2000
#define GRE_HAS_SEQ 0x1000

/* Filters as ibv_create_flow(3) lays them out, of a frame or of the frame within it. */
struct layers {
	bool eth, tagged, v4, v6, ports; /* of a rule: a spec of it */
	bool v4_ext;			 /* of a rule */
	uint8_t proto;			 /* of `ports` */
	struct ibv_flow_eth_filter mac;
	struct ibv_flow_ipv4_ext_filter ip4; /* begins as the filter without the extension */
	struct ibv_flow_ipv6_filter ip6;
	struct ibv_flow_tcp_udp_filter port;
};

struct fields {
	struct layers outer, inner;
	bool vxlan, gre;
	struct ibv_flow_tunnel_filter vni;
	struct ibv_flow_gre_filter key;
	bool cut; /* it ends within its headers: which rule takes it is not said */
};

struct rule {
	struct ibv_flow *flow;
	struct fields value, mask;
};

static struct fields seen[FRAMES];
static struct rule rules[RULES + 1]; /* the last one matches our MAC only */

static const uint8_t our_mac[6] = { 2, 0xaa, 0xbb, 0, 0, 9 };

/* ---- frames, written from their end ---- */

struct writer {
	uint8_t bytes[FRAME_BYTES];
	uint32_t at;
};

static uint32_t length(const struct writer *w)
{
	return FRAME_BYTES - w->at;
}

static void before(struct writer *w, const void *from, uint32_t len)
{
	must(len <= w->at, "a long frame");
	w->at -= len;
	memcpy(w->bytes + w->at, from, len);
}

static void before8(struct writer *w, uint32_t v)
{
	before(w, &(uint8_t){ (uint8_t)v }, 1);
}

static void before16(struct writer *w, uint32_t v)
{
	before(w, &(uint16_t){ htons((uint16_t)v) }, 2);
}

static void before32(struct writer *w, uint32_t v)
{
	before(w, &(uint32_t){ htonl(v) }, 4);
}

static void before_zeros(struct writer *w, uint32_t n)
{
	while (n--)
		before8(w, 0);
}

static void before_ports(struct writer *w, struct layers *l, uint8_t proto, uint16_t dport)
{
	uint16_t sport = draw(2) ? 1000 : 4789;

	if (proto == 17) {
		before16(w, 0);
		before16(w, length(w) + 6);
	} else {
		before_zeros(w, 16);
	}
	before16(w, dport);
	before16(w, sport);
	l->port = (struct ibv_flow_tcp_udp_filter){ .dst_port = htons(dport),
						    .src_port = htons(sport) };
	l->ports = true;
	l->proto = proto;
}

/* Returns whether what follows can be seen: it is no later fragment. */
static bool before_ipv4(struct writer *w, struct layers *l, uint8_t proto)
{
	uint32_t words = draw(4) ? 5 : 5 + draw(5), how = draw(12), flags = 0, offset = 0;

	if (how < 3)
		flags = how < 2 ? 2 : 4;
	if (how == 3) {
		offset = 1 + draw(500);
		flags = draw(2) ? 4 : 0;
	}
	l->v4 = true;
	l->ip4 = (struct ibv_flow_ipv4_ext_filter){ .src_ip = htonl(0x0a000001 + draw(3)),
						    .dst_ip = htonl(0xc0a80001 + draw(3)),
						    .proto = proto,
						    .tos = draw(2) ? 0xb8 : 0,
						    .ttl = draw(2) ? 64 : 1,
						    .flags = (uint8_t)flags };
	before_zeros(w, (words - 5) * 4);
	before(w, &l->ip4.dst_ip, 4);
	before(w, &l->ip4.src_ip, 4);
	before16(w, 0);
	before8(w, proto);
	before8(w, l->ip4.ttl);
	before16(w, (flags & 2 ? 0x4000 : 0) | (flags & 4 ? 0x2000 : 0) | offset);
	before16(w, 7);
	before16(w, length(w) + 4);
	before8(w, l->ip4.tos);
	before8(w, 0x40 | words);
	return !offset;
}

static bool before_ipv6(struct writer *w, struct layers *l, uint8_t proto)
{
	uint32_t payload = length(w), label = draw(2) ? 0xabcde : 0;

	l->v6 = true;
	l->ip6 = (struct ibv_flow_ipv6_filter){ .flow_label = htonl(label),
						.next_hdr = proto,
						.traffic_class = draw(2) ? 0xb8 : 0,
						.hop_limit = draw(2) ? 64 : 1 };
	l->ip6.src_ip[0] = l->ip6.dst_ip[0] = 0xfd;
	l->ip6.src_ip[15] = (uint8_t)draw(3);
	l->ip6.dst_ip[15] = (uint8_t)draw(3);
	before(w, l->ip6.dst_ip, 16);
	before(w, l->ip6.src_ip, 16);
	before8(w, l->ip6.hop_limit);
	before8(w, proto);
	before16(w, payload);
	before32(w, 6u << 28 | (uint32_t)l->ip6.traffic_class << 20 | label);
	return true;
}

/* Any IP packet; a later fragment shows no ports. */
static void before_ip(struct writer *w, struct layers *l, bool v6)
{
	uint8_t proto = draw(4) ? draw(2) ? 6 : 17 : v6 ? 58 : 1;

	if (proto == 6 || proto == 17)
		before_ports(w, l, proto, draw(2) ? 2000 : VXLAN_PORT);
	l->ports &= v6 ? before_ipv6(w, l, proto) : before_ipv4(w, l, proto);
}

static void before_eth(struct writer *w, struct layers *l, uint16_t type, const uint8_t *src)
{
	l->eth = true;
	l->mac = (struct ibv_flow_eth_filter){ .dst_mac = { 2, 0, 0, draw(2) ? 0x77 : 0x99, 0, 1 },
					       .ether_type = htons(type) };
	memcpy(l->mac.src_mac, src, 6);
	before16(w, type);
	l->tagged = !draw(4);
	if (l->tagged) {
		l->mac.vlan_tag = htons(draw(2) ? 0x6007 : 5);
		before(w, &l->mac.vlan_tag, 2);
		before16(w, 0x8100);
	}
	before(w, src, 6);
	before(w, l->mac.dst_mac, 6);
}

static uint16_t inner_type(void)
{
	static const uint16_t types[] = { 0x0800, 0x0800, 0x86dd, 0x86dd, 0x0806 };

	return types[draw(5)];
}

static void inner_frame(struct writer *w, struct layers *l)
{
	uint16_t type = inner_type();

	if (type != 0x0806)
		before_ip(w, l, type == 0x86dd);
	before_eth(w, l, type, (uint8_t[]){ 2, 0, 0, 1, 1, (uint8_t)draw(3) });
}

/* Its header has the VNI flag, or it is not VXLAN; reserved bits do not matter. */
static void before_vxlan(struct writer *w, struct fields *f)
{
	static const uint32_t vnis[] = { 1, 7, 0x100001, 0xffffff };
	uint32_t vni = vnis[draw(4)];

	inner_frame(w, &f->inner);
	f->vxlan = draw(6);
	f->vni.tunnel_id = htonl(vni);
	before8(w, draw(2) ? 0xff : 0);
	before8(w, vni);
	before16(w, vni >> 8);
	before_zeros(w, 3);
	before8(w, (draw(4) ? 0 : 0xf7) | (f->vxlan ? 8 : 0));
	before_ports(w, &f->outer, 17, VXLAN_PORT);
	if (!f->vxlan)
		memset(&f->inner, 0, sizeof(f->inner));
}

static void before_gre(struct writer *w, struct fields *f)
{
	static const uint16_t types[] = { 0x0800, 0x86dd, 0x6558, 0x6558, 0x88be };
	uint16_t type = types[draw(5)], flags = 0;
	uint32_t key = 1 + draw(3);

	if (type == 0x6558)
		inner_frame(w, &f->inner);
	else if (type != 0x88be)
		before_ip(w, &f->inner, type == 0x86dd);
	flags |= draw(4) ? 0 : GRE_HAS_SUM;
	flags |= draw(2) ? 0 : GRE_HAS_KEY;
	flags |= draw(4) ? 0 : GRE_HAS_SEQ;
	if (flags & GRE_HAS_SEQ)
		before32(w, draw(1000));
	if (flags & GRE_HAS_KEY)
		before32(w, key);
	if (flags & GRE_HAS_SUM)
		before32(w, draw(UINT32_MAX));
	flags |= draw(12) ? 0 : draw(2) ? GRE_ROUTING : 1;
	f->gre = true;
	f->key = (struct ibv_flow_gre_filter){ .c_ks_res0_ver = htons(flags),
					       .protocol = htons(type),
					       .key = flags & GRE_HAS_KEY ? htonl(key) : 0 };
	if (flags & (GRE_ROUTING | 1)) {
		memset(&f->inner, 0, sizeof(f->inner));
		f->key.key = 0;
	}
	before16(w, type);
	before16(w, flags);
}

static void frame_draw(struct frame *frame, uint32_t i, uint32_t number)
{
	struct writer w = { .at = FRAME_BYTES };
	struct fields *f = &seen[i];
	bool v6 = !draw(3), whole;
	uint32_t how = draw(10), len;
	uint8_t proto = 17;

	memset(f, 0, sizeof(*f));
	before_zeros(&w, 8 + draw(40));
	if (how < 4) {
		before_vxlan(&w, f);
	} else if (how < 9) {
		proto = 47;
		before_gre(&w, f);
	} else {
		before_ports(&w, &f->outer, 17, 2000);
	}
	whole = v6 ? before_ipv6(&w, &f->outer, proto) : before_ipv4(&w, &f->outer, proto);
	if (!whole) {
		f->outer.ports = f->vxlan = f->gre = false;
		memset(&f->inner, 0, sizeof(f->inner));
	}
	before_eth(&w, &f->outer, v6 ? 0x86dd : 0x0800, our_mac);
	len = length(&w) - 8;
	if (!draw(16)) {
		f->cut = true;
		len = 14 + draw(len - 14);
	}
	frame->len = len;
	memcpy(frame->bytes, w.bytes + w.at, len);
	frame_put_number(frame, number);
}

/* ---- the model ---- */

static bool differs(const void *key, const void *value, const void *mask, uint32_t len)
{
	const uint8_t *k = key, *v = value, *m = mask;

	for (uint32_t i = 0; i < len; i++)
		if ((k[i] ^ v[i]) & m[i])
			return true;
	return false;
}

/* v selects the specs, f the headers. */
static bool layers_match(const struct layers *f, const struct layers *v, const struct layers *m)
{
	if (v->eth && (!f->eth || (m->mac.vlan_tag && !f->tagged) ||
		       differs(&f->mac, &v->mac, &m->mac, 16)))
		return false;
	if (v->v4 && (!f->v4 || differs(&f->ip4, &v->ip4, &m->ip4, v->v4_ext ? 12 : 8)))
		return false;
	if (v->v6 && (!f->v6 || differs(&f->ip6, &v->ip6, &m->ip6, 39)))
		return false;
	return !v->ports || (f->ports && f->proto == v->proto &&
			     !differs(&f->port, &v->port, &m->port, 4));
}

static bool rule_takes(const struct rule *r, const struct fields *f)
{
	const struct fields *v = &r->value, *m = &r->mask;

	if (v->vxlan && (!f->vxlan || differs(&f->vni, &v->vni, &m->vni, 4)))
		return false;
	if (v->gre && (!f->gre || differs(&f->key, &v->key, &m->key, 8)))
		return false;
	return layers_match(&f->outer, &v->outer, &m->outer) &&
	       layers_match(&f->inner, &v->inner, &m->inner);
}

/* ---- rules: some specs of a frame's headers, under any masks ---- */

static void mask_draw(void *mask, uint32_t len)
{
	uint32_t how = draw(10);
	uint8_t *m = mask;

	for (uint32_t i = 0; i < len; i++)
		m[i] = how < 4 ? 0xff : how < 7 ? (uint8_t)(draw(256) & draw(256)) : 0;
}

static void layers_draw(struct layers *v, struct layers *m)
{
	v->eth &= draw(2);
	v->v4 &= draw(2);
	v->v6 &= draw(2);
	v->ports &= draw(2);
	v->v4_ext = draw(2);
	mask_draw(m->mac.dst_mac, 6);
	mask_draw(m->mac.src_mac, 6);
	mask_draw(&m->mac.ether_type, 2);
	if (v->tagged || !draw(8))
		mask_draw(&m->mac.vlan_tag, 2);
	mask_draw(&m->ip4.src_ip, 4);
	mask_draw(&m->ip4.dst_ip, 4);
	mask_draw(&m->ip4.proto, 1);
	mask_draw(&m->ip4.tos, 1);
	mask_draw(&m->ip4.ttl, 1);
	m->ip4.flags = (uint8_t)(2 * draw(4));
	mask_draw(&m->ip6, 39);
	m->ip6.flow_label &= htonl(0xfffff);
	mask_draw(&m->port, 4);
	/* sometimes a rule that few frames match */
	if (!draw(6))
		v->mac.dst_mac[5] ^= 1;
	if (!draw(6))
		v->ip4.dst_ip ^= htonl(4);
	if (!draw(6))
		v->ip6.dst_ip[15] ^= 4;
}

static void rule_draw(struct rule *r)
{
	struct fields *v = &r->value, *m = &r->mask;

	memset(r, 0, sizeof(*r));
	do
		*v = seen[draw(FRAMES)];
	while (v->cut);
	layers_draw(&v->outer, &m->outer);
	layers_draw(&v->inner, &m->inner);
	v->vxlan &= draw(2);
	v->gre &= draw(2);
	mask_draw(&m->vni, 4);
	m->vni.tunnel_id &= htonl(0xffffff);
	mask_draw(&m->key.c_ks_res0_ver, 2);
	mask_draw(&m->key.protocol, 2);
	/* a key of frames that have one */
	if (v->key.key && draw(2)) {
		m->key.c_ks_res0_ver |= htons(GRE_HAS_KEY);
		mask_draw(&m->key.key, 4);
	}
}

static void spec_add(struct ibv_flow_attr *attr, const void *spec, uint32_t len)
{
	memcpy((uint8_t *)attr + attr->size, spec, len);
	attr->size = (uint16_t)(attr->size + len);
	attr->num_of_specs++;
}

static void specs_of_layers(struct ibv_flow_attr *attr, const struct layers *v,
			    const struct layers *m, uint32_t inner)
{
	struct ibv_flow_spec_eth eth = { inner | IBV_FLOW_SPEC_ETH, sizeof(eth), v->mac, m->mac };
	struct ibv_flow_spec_ipv4 ipv4 = { .type = inner | IBV_FLOW_SPEC_IPV4,
					   .size = sizeof(ipv4) };
	struct ibv_flow_spec_ipv4_ext ext = { inner | IBV_FLOW_SPEC_IPV4_EXT, sizeof(ext), v->ip4,
					      m->ip4 };
	struct ibv_flow_spec_ipv6 ipv6 = { inner | IBV_FLOW_SPEC_IPV6, sizeof(ipv6), v->ip6,
					   m->ip6 };
	struct ibv_flow_spec_tcp_udp ports = {
		inner | (v->proto == 6 ? IBV_FLOW_SPEC_TCP : IBV_FLOW_SPEC_UDP), sizeof(ports),
		v->port, m->port
	};

	memcpy(&ipv4.val, &v->ip4, 8);
	memcpy(&ipv4.mask, &m->ip4, 8);
	if (v->ports)
		spec_add(attr, &ports, sizeof(ports));
	if (v->v4 && v->v4_ext)
		spec_add(attr, &ext, sizeof(ext));
	else if (v->v4)
		spec_add(attr, &ipv4, sizeof(ipv4));
	if (v->v6)
		spec_add(attr, &ipv6, sizeof(ipv6));
	if (v->eth)
		spec_add(attr, &eth, sizeof(eth));
}

/* The page's example is packed, so a rule may begin at any address. */
static struct ibv_flow *flow_make(const struct ibv_flow_attr *attr)
{
	uint8_t room[512 + 8], *at = room + draw(8);
	struct ibv_flow *flow;

	memcpy(at, attr, attr->size);
	flow = ibv_create_flow(QP->qp, (struct ibv_flow_attr *)(void *)at);
	must(flow, "ibv_create_flow: %s", strerror(errno));
	return flow;
}

static void rule_make(struct rule *r, uint32_t i)
{
	union {
		struct ibv_flow_attr attr;
		uint8_t room[512];
	} u = { .attr = { .priority = (uint16_t)i, .port = 1 } };
	struct ibv_flow_spec_tunnel vni = { IBV_FLOW_SPEC_VXLAN_TUNNEL, sizeof(vni),
					    r->value.vni, r->mask.vni };
	struct ibv_flow_spec_gre gre = { IBV_FLOW_SPEC_GRE, sizeof(gre), r->value.key,
					 r->mask.key };
	struct ibv_flow_spec_action_tag tag = { IBV_FLOW_SPEC_ACTION_TAG, sizeof(tag), i + 1 };
	struct ibv_flow_spec_eth ours = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(ours) };
	bool first = draw(2);

	u.attr.size = sizeof(u.attr);
	if (i == RULES) { /* all of ours that no rule has taken */
		memcpy(ours.val.src_mac, our_mac, 6);
		memset(ours.mask.src_mac, 0xff, 6);
		spec_add(&u.attr, &ours, sizeof(ours));
		tag.tag_id = TAG_NONE;
		spec_add(&u.attr, &tag, sizeof(tag));
		r->flow = flow_make(&u.attr);
		return;
	}
	if (first)
		spec_add(&u.attr, &tag, sizeof(tag));
	specs_of_layers(&u.attr, &r->value.inner, &r->mask.inner, INNER);
	if (r->value.vxlan)
		spec_add(&u.attr, &vni, sizeof(vni));
	if (r->value.gre)
		spec_add(&u.attr, &gre, sizeof(gre));
	specs_of_layers(&u.attr, &r->value.outer, &r->mask.outer, 0);
	if (!first)
		spec_add(&u.attr, &tag, sizeof(tag));
	r->flow = flow_make(&u.attr);
}

static void layers_print(const char *what, const struct layers *l)
{
	printf("# %s: eth %d tagged %d v4 %d (flags %x) v6 %d ports %d of %d\n", what, l->eth,
	       l->tagged, l->v4, l->ip4.flags, l->v6, l->ports, l->proto);
}

static void fields_print(const char *what, const struct fields *f)
{
	printf("# %s: vxlan %d %x, gre %d %x %x %x\n", what, f->vxlan, ntohl(f->vni.tunnel_id),
	       f->gre, ntohs(f->key.c_ks_res0_ver), ntohs(f->key.protocol), ntohl(f->key.key));
	layers_print("outer", &f->outer);
	layers_print("inner", &f->inner);
}

static uint32_t frame_check(uint32_t i)
{
	const struct raw_frame *f = &raw_frames[i];
	uint32_t want = 0;

	while (want < RULES && !(rules[want].flow && rule_takes(&rules[want], &seen[i])))
		want++;
	want = want < RULES ? want + 1 : TAG_NONE;
	must(f->copies[0] == 1 && !f->copies[RAW_KERNEL], "%u copies, and %u of the kernel",
	     f->copies[0], f->copies[RAW_KERNEL]);
	if (seen[i].cut || f->tags[0] == want)
		return want;
	fields_print("frame", &seen[i]);
	for (uint32_t k = 0; k < RULES; k++)
		if (rules[k].flow && (k + 1 == want || k + 1 == f->tags[0])) {
			fields_print("rule", &rules[k].value);
			fields_print("its mask", &rules[k].mask);
		}
	for (uint32_t k = 0; k < f->frame.len; k++)
		printf("%s%02x", k % 32 ? "" : "\n# ", f->frame.bytes[k]);
	printf("\n");
	fflush(stdout);
	die("a frame has tag %u, not %u", f->tags[0], want);
}

int main(int argc, char **argv)
{
	uint32_t rounds, taken = 0;
	struct ibv_flow *last;

	must(argc == 6, "usage: raw_tunnels DEVICE NETNS PEER ROUNDS SEED");
	rounds = (uint32_t)atoi(argv[4]);
	frame_seed = strtoull(argv[5], NULL, 0);
	raw_open(argv[1], argv[2], argv[3]);
	raw_add_qp(QP);
	raw_add_qp(LAST);
	last = raw_flow_type(LAST->qp, FRAME_TYPE_LAST);
	rule_make(&rules[RULES], RULES);
	for (uint32_t round = 0; round < rounds; round++) {
		raw_round_of(FRAMES, frame_draw, LAST);
		for (uint32_t i = 0; i < FRAMES; i++)
			taken += frame_check(i) != TAG_NONE;
		for (uint32_t i = draw(RULES); i < RULES; i++) {
			must(!rules[i].flow || !ibv_destroy_flow(rules[i].flow),
			     "ibv_destroy_flow");
			rule_draw(&rules[i]);
			rule_make(&rules[i], i);
		}
	}
	for (uint32_t i = 0; i <= RULES; i++)
		must(!rules[i].flow || !ibv_destroy_flow(rules[i].flow), "ibv_destroy_flow");
	must(!ibv_destroy_flow(last), "ibv_destroy_flow");
	printf("tunnels: %u frames, %u taken\n", rounds * FRAMES, taken);
	return 0;
}
