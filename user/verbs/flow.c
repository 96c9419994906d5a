/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_create_flow(3): the header specifications of a rule become one masked comparison. XDP and the
 * transport apply it to every frame that is not a RoCEv2 packet for this device; actions define the
 * treatment of matching frames. Matches and actions that they do not support (MPLS after IP, nested
 * tunnels, egress) are EOPNOTSUPP.
 */
#include <stdlib.h>

#include <xroce/abi.h>

#include "objects.h"

/* Order of rules: sniffers first, then normal rules by priority, then default rules. */
#define ORDER_SNIFFER	0u
#define ORDER_NORMAL(n) (1u + (n))
#define ORDER_DEFAULT	ORDER_NORMAL(1u << 16)

/* ---- counters ---- */

/*
 * ibv_create_counters(3), ibv_attach_counters_point_flow(3), ibv_read_counters(3). A counters
 * object counts packets and bytes of all its flows, in XDP and in the engine. Its points map the
 * two counts to indices for reading. Points are attached before the flows are created; attaching to
 * an existing flow is ENOTSUP.
 */

/* A count read at an index, starting when the point was attached. */
struct counters_point {
	u32 index;
	enum ibv_counter_description what;
	u64 before;
};

struct vcounters {
	struct ibv_counters ibv;
	struct fork_entry forks;
	pthread_mutex_t lock; /* guards the fields below */
	struct counters_point *points;
	u32 num_points;
	u32 flows;		 /* flows that count here */
	struct raw_counter *raw; /* set by the first flow */
	struct port *port;	 /* the port of raw */
};

static struct vcounters *to_vcounters(struct ibv_counters *counters)
{
	return container_of(counters, struct vcounters, ibv);
}

static void counters_in_child(struct fork_entry *entry)
{
	pthread_mutex_init(&container_of(entry, struct vcounters, forks)->lock, NULL);
}

/* Gives the counter back; from then on the counts are 0. No flow uses it any more. */
static void counters_leave(struct vcounters *c)
{
	pthread_mutex_lock(&c->lock);
	if (c->raw)
		port_destroy_counter(c->port, c->raw);
	c->raw = NULL;
	pthread_mutex_unlock(&c->lock);
}

static void counters_at_close(struct fork_entry *entry)
{
	counters_leave(container_of(entry, struct vcounters, forks));
}

struct ibv_counters *create_counters_op(struct ibv_context *context,
					struct ibv_counters_init_attr *attr)
{
	struct vcounters *c;

	if (verb_fails(context, CALL_ibv_create_counters))
		return verb_fail(errno);
	if (attr->comp_mask)
		return verb_fail(EOPNOTSUPP);
	if (context_gone(context))
		return verb_fail(EIO);
	c = calloc(1, sizeof(*c));
	if (!c)
		return verb_fail(ENOMEM);
	c->ibv.context = context;
	pthread_mutex_init(&c->lock, NULL);
	fork_add_to(to_vcontext(context), &c->forks, counters_in_child, counters_at_close);
	context_get(to_vcontext(context));
	return &c->ibv;
}

int destroy_counters_op(struct ibv_counters *counters)
{
	struct vcounters *c = to_vcounters(counters);
	u32 flows;

	if (verb_fails(counters->context, CALL_ibv_destroy_counters))
		return verb_report(errno);
	pthread_mutex_lock(&c->lock);
	flows = c->flows;
	pthread_mutex_unlock(&c->lock);
	if (flows)
		return verb_report(EBUSY);
	fork_remove(&c->forks);
	counters_leave(c);
	pthread_mutex_destroy(&c->lock);
	context_put(to_vcontext(c->ibv.context));
	free(c->points);
	free(c);
	return 0;
}

/* Caller holds the lock. Counts are 0 before the first flow. Returns 0 or a positive errno. */
static int counters_sum(const struct vcounters *c, struct xroce_flow_count *sum)
{
	*sum = (struct xroce_flow_count){ 0 };
	return c->raw ? -port_read_counter(c->port, c->raw, sum) : 0;
}

static u64 count_of(const struct xroce_flow_count *sum, enum ibv_counter_description what)
{
	return what == IBV_COUNTER_PACKETS ? sum->packets : sum->bytes;
}

/* Caller holds the lock. Returns 0 or a positive errno. */
static int counters_add_point(struct vcounters *c, u32 index, enum ibv_counter_description what)
{
	struct xroce_flow_count sum;
	struct counters_point *points;
	int err = counters_sum(c, &sum);

	if (err)
		return err;
	points = reallocarray(c->points, c->num_points + 1, sizeof(*points));
	if (!points)
		return ENOMEM;
	points[c->num_points++] = (struct counters_point){ index, what, count_of(&sum, what) };
	c->points = points;
	return 0;
}

int attach_counters_point_flow_op(struct ibv_counters *counters,
				  struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	struct vcounters *c = to_vcounters(counters);
	int err;

	if (verb_fails(counters->context, CALL_ibv_attach_counters_point_flow))
		return verb_report(errno);
	if (attr->comp_mask)
		return verb_report(EINVAL);
	if (flow || (u32)attr->counter_desc > IBV_COUNTER_BYTES)
		return verb_report(ENOTSUP);
	pthread_mutex_lock(&c->lock);
	err = c->flows ? EBUSY : counters_add_point(c, attr->index, attr->counter_desc);
	pthread_mutex_unlock(&c->lock);
	return verb_report(err);
}

/* An index without a point reads as 0, one with several points as their sum. */
static void counters_fill(const struct vcounters *c, const struct xroce_flow_count *sum,
			  uint64_t *values, u32 num)
{
	memset(values, 0, num * sizeof(*values));
	for (u32 i = 0; i < c->num_points; i++) {
		const struct counters_point *p = &c->points[i];

		if (p->index < num)
			values[p->index] += count_of(sum, p->what) - p->before;
	}
}

/* Nothing is cached: PREFER_CACHED has no effect. */
int read_counters_op(struct ibv_counters *counters, uint64_t *values, uint32_t num, uint32_t flags)
{
	struct vcounters *c = to_vcounters(counters);
	struct xroce_flow_count sum;
	int err;

	if (verb_fails(counters->context, CALL_ibv_read_counters))
		return verb_report(errno);
	if (flags & ~(u32)IBV_READ_COUNTERS_ATTR_PREFER_CACHED)
		return verb_report(EINVAL);
	pthread_mutex_lock(&c->lock);
	err = counters_sum(c, &sum);
	if (!err)
		counters_fill(c, &sum, values, num);
	pthread_mutex_unlock(&c->lock);
	return verb_report(err);
}

/*
 * Adds a flow of the QP to the counters, which get *raw. Returns 0 or a positive errno: EINVAL if
 * the counters belong to another context, or have no points.
 */
static int counters_bind(struct ibv_counters *counters, struct vqp *vqp, struct vcounters **out,
			 struct raw_counter **raw)
{
	struct vcounters *c = to_vcounters(counters);
	int err = 0;

	if (!counters || counters->context != vqp->ibv.context)
		return EINVAL;
	pthread_mutex_lock(&c->lock);
	if (!c->num_points) {
		err = EINVAL;
	} else if (!c->raw) {
		c->port = vqp->port;
		err = limit_errno(port_create_counter(c->port, &c->raw));
	}
	c->flows += !err;
	*raw = c->raw;
	pthread_mutex_unlock(&c->lock);
	*out = err ? NULL : c;
	return err;
}

/* Removes a flow that was destroyed or could not be created. */
static void counters_unbind(struct vcounters *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->flows--;
	pthread_mutex_unlock(&c->lock);
}

/* ---- rules ---- */

/* Returns the size of a spec of that type; 0: no such type. */
static size_t spec_size(u32 type)
{
	switch (type) {
	case IBV_FLOW_SPEC_VXLAN_TUNNEL:
		return sizeof(struct ibv_flow_spec_tunnel);
	case IBV_FLOW_SPEC_GRE:
		return sizeof(struct ibv_flow_spec_gre);
	case IBV_FLOW_SPEC_ACTION_TAG:
		return sizeof(struct ibv_flow_spec_action_tag);
	case IBV_FLOW_SPEC_ACTION_DROP:
		return sizeof(struct ibv_flow_spec_action_drop);
	case IBV_FLOW_SPEC_ACTION_COUNT:
		return sizeof(struct ibv_flow_spec_counter_action);
	}
	switch (type & ~(u32)IBV_FLOW_SPEC_INNER) {
	case IBV_FLOW_SPEC_ETH:
		return sizeof(struct ibv_flow_spec_eth);
	case IBV_FLOW_SPEC_IPV4:
		return sizeof(struct ibv_flow_spec_ipv4);
	case IBV_FLOW_SPEC_IPV4_EXT:
		return sizeof(struct ibv_flow_spec_ipv4_ext);
	case IBV_FLOW_SPEC_IPV6:
		return sizeof(struct ibv_flow_spec_ipv6);
	case IBV_FLOW_SPEC_TCP:
	case IBV_FLOW_SPEC_UDP:
		return sizeof(struct ibv_flow_spec_tcp_udp);
	case IBV_FLOW_SPEC_ESP:
		return sizeof(struct ibv_flow_spec_esp);
	case IBV_FLOW_SPEC_MPLS:
		return sizeof(struct ibv_flow_spec_mpls);
	default:
		return 0;
	}
}

static bool spec_is_known(u32 type)
{
	switch (type & ~(u32)IBV_FLOW_SPEC_INNER) {
	case IBV_FLOW_SPEC_ETH:
	case IBV_FLOW_SPEC_IPV4:
	case IBV_FLOW_SPEC_IPV4_EXT:
	case IBV_FLOW_SPEC_IPV6:
	case IBV_FLOW_SPEC_TCP:
	case IBV_FLOW_SPEC_UDP:
	case IBV_FLOW_SPEC_ESP:
	case IBV_FLOW_SPEC_VXLAN_TUNNEL:
	case IBV_FLOW_SPEC_GRE:
	case IBV_FLOW_SPEC_MPLS:
		return true;
	case IBV_FLOW_SPEC_ACTION_TAG:
	case IBV_FLOW_SPEC_ACTION_DROP:
	case IBV_FLOW_SPEC_ACTION_HANDLE:
	case IBV_FLOW_SPEC_ACTION_COUNT:
		return !(type & IBV_FLOW_SPEC_INNER);
	default:
		return false;
	}
}

/* A rule while its specs are read. */
struct rule {
	struct raw_rule raw;
	bool has_match, has_eth, has_inner_eth, has_tag, has_counters;
	struct ibv_counters *counters;
};

/* Required headers of a rule, outer or inner. */
struct wanted {
	struct xroce_flow_key *value, *mask;
};

static void wanted_add_kind(const struct wanted *w, u32 kind)
{
	w->value->kinds |= kind;
	w->mask->kinds |= kind;
}

#define KINDS_L3     (XROCE_FLOW_IPV4 | XROCE_FLOW_IPV6)
#define KINDS_L4     (XROCE_FLOW_UDP | XROCE_FLOW_TCP | XROCE_FLOW_ESP)
#define KINDS_BEHIND (KINDS_L3 | KINDS_L4)

/*
 * Requires frames of that kind. Returns false if the rule has the same kind twice, or kinds that
 * exclude each other.
 */
static bool wanted_is_of(const struct wanted *w, u32 kind, u32 excluded)
{
	if (w->mask->kinds & (kind | excluded))
		return false;
	wanted_add_kind(w, kind);
	return true;
}

/* All fields are in wire order. A filter with a VLAN tag matches only tagged frames. */
static void wanted_add_eth(const struct wanted *w, const struct ibv_flow_spec_eth *spec)
{
	_Static_assert(offsetof(struct xroce_flow_key, vlan_tci) ==
			       offsetof(struct ibv_flow_eth_filter, vlan_tag),
		       "a key begins as the filter does");
	memcpy(w->value, &spec->val, sizeof(spec->val));
	memcpy(w->mask, &spec->mask, sizeof(spec->mask));
	if (spec->mask.vlan_tag)
		wanted_add_kind(w, XROCE_FLOW_VLAN);
}

static void key_set_ipv4(struct xroce_flow_key *key, const struct ibv_flow_ipv4_ext_filter *filter)
{
	key->src[0] = filter->src_ip;
	key->dst[0] = filter->dst_ip;
	key->proto = filter->proto;
	key->tos = filter->tos;
	key->ttl = filter->ttl;
	key->ip_flags = filter->flags;
}

static void key_set_ipv6(struct xroce_flow_key *key, const struct ibv_flow_ipv6_filter *filter)
{
	memcpy(key->src, filter->src_ip, sizeof(key->src));
	memcpy(key->dst, filter->dst_ip, sizeof(key->dst));
	key->flow_label = filter->flow_label;
	key->proto = filter->next_hdr;
	key->tos = filter->traffic_class;
	key->ttl = filter->hop_limit;
}

static void key_set_ports(struct xroce_flow_key *key, const struct ibv_flow_tcp_udp_filter *filter)
{
	key->sport = filter->src_port;
	key->dport = filter->dst_port;
}

static void key_set_esp(struct xroce_flow_key *key, const struct ibv_flow_esp_filter *filter)
{
	key->spi = filter->spi;
	key->seq = filter->seq;
}

/*
 * Only the first label entry is compared, and nothing after it. Several entries, inner headers, and
 * MPLS in IP or UDP (which the man page expresses by position) are not supported.
 */
static int wanted_add_mpls(const struct wanted *w, const struct ibv_flow_mpls_filter *val,
			   const struct ibv_flow_mpls_filter *mask)
{
	if (!wanted_is_of(w, XROCE_FLOW_MPLS, KINDS_BEHIND))
		return EOPNOTSUPP;
	w->value->flow_label = val->label;
	w->mask->flow_label = mask->label;
	return 0;
}

/* Returns 0 or a positive errno, like the functions below. spec is as long as its type requires. */
static int wanted_add(const struct wanted *w, const struct ibv_flow_spec *spec)
{
	const u32 ip = KINDS_L3, l4 = KINDS_L4;
	const u32 type = (u32)spec->hdr.type & ~(u32)IBV_FLOW_SPEC_INNER;
	struct ibv_flow_ipv4_ext_filter val, mask;

	/* inside MPLS */
	if (w->mask->kinds & XROCE_FLOW_MPLS && type != IBV_FLOW_SPEC_ETH)
		return EOPNOTSUPP;
	switch (type) {
	case IBV_FLOW_SPEC_ETH:
		wanted_add_eth(w, &spec->eth);
		return 0;
	case IBV_FLOW_SPEC_IPV4:
		if (!wanted_is_of(w, XROCE_FLOW_IPV4, ip))
			return EINVAL;
		val = (struct ibv_flow_ipv4_ext_filter){ .src_ip = spec->ipv4.val.src_ip,
							 .dst_ip = spec->ipv4.val.dst_ip };
		mask = (struct ibv_flow_ipv4_ext_filter){ .src_ip = spec->ipv4.mask.src_ip,
							  .dst_ip = spec->ipv4.mask.dst_ip };
		key_set_ipv4(w->value, &val);
		key_set_ipv4(w->mask, &mask);
		return 0;
	case IBV_FLOW_SPEC_IPV4_EXT:
		if (!wanted_is_of(w, XROCE_FLOW_IPV4, ip))
			return EINVAL;
		key_set_ipv4(w->value, &spec->ipv4_ext.val);
		key_set_ipv4(w->mask, &spec->ipv4_ext.mask);
		return 0;
	case IBV_FLOW_SPEC_IPV6:
		if (!wanted_is_of(w, XROCE_FLOW_IPV6, ip))
			return EINVAL;
		key_set_ipv6(w->value, &spec->ipv6.val);
		key_set_ipv6(w->mask, &spec->ipv6.mask);
		return 0;
	case IBV_FLOW_SPEC_ESP:
		if (!wanted_is_of(w, XROCE_FLOW_ESP, l4))
			return EINVAL;
		key_set_esp(w->value, &spec->esp.val);
		key_set_esp(w->mask, &spec->esp.mask);
		return 0;
	case IBV_FLOW_SPEC_MPLS:
		return wanted_add_mpls(w, &spec->mpls.val, &spec->mpls.mask);
	default: /* TCP, UDP */
		if (!wanted_is_of(w, type == IBV_FLOW_SPEC_UDP ? XROCE_FLOW_UDP : XROCE_FLOW_TCP,
				  l4))
			return EINVAL;
		key_set_ports(w->value, &spec->tcp_udp.val);
		key_set_ports(w->mask, &spec->tcp_udp.mask);
		return 0;
	}
}

/* Adds one tunnel: VXLAN or GRE. A VNI has 24 bits. */
static int rule_add_tunnel(struct rule *rule, const struct ibv_flow_spec *spec)
{
	const struct wanted outer = { &rule->raw.value, &rule->raw.mask };
	struct xroce_flow_tunnel *value = &rule->raw.tunnel_value, *mask = &rule->raw.tunnel_mask;
	const u32 tunnels = XROCE_FLOW_VXLAN | XROCE_FLOW_GRE;

	if (spec->hdr.type == IBV_FLOW_SPEC_VXLAN_TUNNEL) {
		value->id = spec->tunnel.val.tunnel_id;
		mask->id = spec->tunnel.mask.tunnel_id;
		return !(be32toh(mask->id) >> 24) &&
				       wanted_is_of(&outer, XROCE_FLOW_VXLAN, tunnels) ?
			       0 :
			       EINVAL;
	}
	value->id = spec->gre.val.key;
	mask->id = spec->gre.mask.key;
	value->gre_flags = spec->gre.val.c_ks_res0_ver;
	mask->gre_flags = spec->gre.mask.c_ks_res0_ver;
	value->gre_protocol = spec->gre.val.protocol;
	mask->gre_protocol = spec->gre.mask.protocol;
	return wanted_is_of(&outer, XROCE_FLOW_GRE, tunnels) ? 0 : EINVAL;
}

static int rule_add_match(struct rule *rule, const struct ibv_flow_spec *spec)
{
	const u32 type = (u32)spec->hdr.type;
	const bool is_inner = type & IBV_FLOW_SPEC_INNER;
	const struct wanted outer = { &rule->raw.value, &rule->raw.mask },
			    inner = { &rule->raw.tunnel_value.inner, &rule->raw.tunnel_mask.inner };
	bool *has_eth = is_inner ? &rule->has_inner_eth : &rule->has_eth;

	rule->has_match = true;
	if (type == IBV_FLOW_SPEC_VXLAN_TUNNEL || type == IBV_FLOW_SPEC_GRE || is_inner)
		wanted_add_kind(&outer, XROCE_FLOW_TUNNEL);
	if (type == IBV_FLOW_SPEC_VXLAN_TUNNEL || type == IBV_FLOW_SPEC_GRE)
		return rule_add_tunnel(rule, spec);
	if ((type & ~(u32)IBV_FLOW_SPEC_INNER) == IBV_FLOW_SPEC_ETH) {
		if (*has_eth)
			return EINVAL;
		*has_eth = true;
		if (is_inner)
			wanted_add_kind(&inner, XROCE_FLOW_ETHERNET);
	}
	return wanted_add(is_inner ? &inner : &outer, spec);
}

/* Accepts one action of each kind. A rule that drops may have a tag, which has no effect. */
static int rule_add(struct rule *rule, const struct ibv_flow_spec *spec)
{
	switch ((u32)spec->hdr.type) {
	case IBV_FLOW_SPEC_ACTION_TAG:
		if (rule->has_tag)
			return EINVAL;
		rule->has_tag = true;
		rule->raw.tag = spec->flow_tag.tag_id;
		return 0;
	case IBV_FLOW_SPEC_ACTION_DROP:
		if (rule->raw.drops)
			return EINVAL;
		rule->raw.drops = true;
		return 0;
	case IBV_FLOW_SPEC_ACTION_COUNT:
		if (rule->has_counters)
			return EINVAL;
		rule->has_counters = true;
		rule->counters = spec->flow_count.counters;
		return 0;
	default:
		return rule_add_match(rule, spec);
	}
}

/*
 * Reads the specs after the attributes, each with its own size. Ignores attr->size, as rdma-core
 * does: programs leave it wrong (pyverbs). Returns 0 or a positive errno.
 */
static int rule_read_specs(struct rule *rule, const struct ibv_flow_attr *attr, const u8 *at)
{
	int err = 0;

	for (u32 i = 0; !err && i < attr->num_of_specs; i++) {
		struct ibv_flow_spec spec = { 0 };
		size_t size;

		memcpy(&spec.hdr, at, sizeof(spec.hdr));
		if (!spec_is_known((u32)spec.hdr.type))
			return EINVAL;
		size = spec_size((u32)spec.hdr.type);
		if (!size)
			return EOPNOTSUPP;
		if (spec.hdr.size != size)
			return EINVAL;
		memcpy(&spec, at, size);
		err = rule_add(rule, &spec);
		at += size;
	}
	return err;
}

static void mask_bytes(void *value, const void *mask, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((u8 *)value)[i] &= ((const u8 *)mask)[i];
}

static void rule_mask_value(struct raw_rule *rule)
{
	mask_bytes(&rule->value, &rule->mask, sizeof(rule->value));
	mask_bytes(&rule->tunnel_value, &rule->tunnel_mask, sizeof(rule->tunnel_value));
}

/* Checks everything but the specs. Returns 0 or a positive errno. */
static int attr_check(const struct ibv_flow_attr *attr)
{
	const u32 known = IBV_FLOW_ATTR_FLAGS_DONT_TRAP | IBV_FLOW_ATTR_FLAGS_EGRESS;

	if (attr->comp_mask || attr->port != VERBS_PORT || attr->flags & ~known ||
	    (u32)attr->type > IBV_FLOW_ATTR_SNIFFER)
		return EINVAL;
	/* only normal rules may pass a frame on to others: ibv_create_flow(3) */
	if (attr->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP && attr->type != IBV_FLOW_ATTR_NORMAL)
		return EINVAL;
	return attr->flags & IBV_FLOW_ATTR_FLAGS_EGRESS ? EOPNOTSUPP : 0;
}

static int rule_read(struct rule *rule, const struct ibv_flow_attr *attr, const u8 *specs)
{
	int err = attr_check(attr);

	*rule = (struct rule){
		.raw.order = ORDER_NORMAL(attr->priority),
		.raw.sniffs = attr->type == IBV_FLOW_ATTR_SNIFFER,
		.raw.copies = attr->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP ||
			      attr->type == IBV_FLOW_ATTR_SNIFFER,
	};
	if (!err)
		err = rule_read_specs(rule, attr, specs);
	if (err)
		return err;
	/* a dropped frame could not continue */
	if (rule->raw.copies && rule->raw.drops)
		return EINVAL;
	rule_mask_value(&rule->raw);
	if (attr->type == IBV_FLOW_ATTR_NORMAL)
		return 0;
	rule->raw.order = ORDER_DEFAULT;
	if (rule->raw.sniffs)
		rule->raw.order = ORDER_SNIFFER;
	if (attr->type == IBV_FLOW_ATTR_MC_DEFAULT)
		rule->raw.value.kinds = rule->raw.mask.kinds = XROCE_FLOW_MULTICAST;
	/* default and sniffer rules have actions only: they match all frames, or all multicast */
	return rule->has_match ? EINVAL : 0;
}

/* Returns 0 or a positive errno. */
static int flow_make(struct vflow *vflow, const struct rule *rule, enum ibv_flow_attr_type type)
{
	struct flow_rule made = { .raw = rule->raw,
				  .macs = type == IBV_FLOW_ATTR_NORMAL     ? NETDEV_ONE_MAC :
					  type == IBV_FLOW_ATTR_SNIFFER	   ? NETDEV_OWN_MAC :
					  type == IBV_FLOW_ATTR_MC_DEFAULT ? NETDEV_ALL_MULTICAST :
									     NETDEV_ALL_MACS };
	struct vqp *vqp = vflow->vqp;
	int err = 0;

	if (rule->has_counters)
		err = counters_bind(rule->counters, vqp, &vflow->counters, &made.raw.counter);
	if (err)
		return err;
	err = limit_errno(port_create_flow(vqp->port, vqp->qp, &made, &vflow->flow));
	if (err)
		counters_unbind(vflow->counters);
	return err;
}

/* Removes the flow from the port, unless that was done, and from its counters. */
static void flow_leave(struct vflow *vflow)
{
	if (!vflow->flow)
		return;
	port_destroy_flow(vflow->vqp->port, vflow->flow);
	counters_unbind(vflow->counters);
	vflow->flow = NULL;
}

static void flow_at_close(struct fork_entry *entry)
{
	flow_leave(container_of(entry, struct vflow, forks));
}

struct ibv_flow *create_flow_op(struct ibv_qp *qp, struct ibv_flow_attr *user_attr)
{
	const u8 *specs = (const u8 *)user_attr + sizeof(*user_attr);
	struct vqp *vqp = to_vqp(qp);
	struct ibv_flow_attr attr;
	struct rule rule;
	struct vflow *vflow;
	int err;

	if (verb_fails(qp->context, CALL_ibv_create_flow))
		return verb_fail(errno);
	if (!object_is_known(vqp))
		return verb_fail(ENOENT);
	/* the man page's example is packed: it may start at any address */
	memcpy(&attr, (const void *)user_attr, sizeof(attr));
	err = qp->qp_type == IBV_QPT_RAW_PACKET ? rule_read(&rule, &attr, specs) : EINVAL;
	if (!err && context_gone(qp->context))
		err = EIO;
	if (err)
		return verb_fail(err);
	vflow = calloc(1, sizeof(*vflow));
	if (!vflow)
		return verb_fail(ENOMEM);
	vflow->vqp = vqp;
	err = flow_make(vflow, &rule, attr.type);
	if (err) {
		free(vflow);
		return verb_fail(err);
	}
	vflow->ibv.context = qp->context;
	vflow->ibv.handle = new_handle();
	object_know(vflow);
	fork_add_to(to_vcontext(qp->context), &vflow->forks, NULL, flow_at_close);
	return &vflow->ibv;
}

int destroy_flow_op(struct ibv_flow *flow)
{
	struct vflow *vflow = container_of(flow, struct vflow, ibv);

	if (verb_fails(flow->context, CALL_ibv_destroy_flow))
		return verb_report(errno);
	if (!object_is_known(vflow))
		return verb_report(EINVAL);
	fork_remove(&vflow->forks);
	flow_leave(vflow);
	free(vflow);
	return 0;
}
