/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_create_flow(3): specifications of headers become one masked comparison each, which XDP and
 * the transport make of every frame that is no RoCEv2 packet for this device; actions say what they
 * do with what matches. What they cannot compare or do (tunnels, sniffers, rules that do not trap)
 * is EOPNOTSUPP.
 */
#include <stdlib.h>

#include <xroce/abi.h>

#include "objects.h"

/* Rules with a type of the default ones come behind all others. */
#define ORDER_DEFAULT (1u << 16)

/* What a spec of that type is as long as; 0: there is none such. */
static size_t spec_size(u32 type)
{
	switch (type) {
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
	case IBV_FLOW_SPEC_ACTION_TAG:
		return sizeof(struct ibv_flow_spec_action_tag);
	case IBV_FLOW_SPEC_ACTION_DROP:
		return sizeof(struct ibv_flow_spec_action_drop);
	case IBV_FLOW_SPEC_ACTION_COUNT:
		return sizeof(struct ibv_flow_spec_counter_action);
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

/* A rule as it is read. */
struct rule {
	struct raw_rule raw;
	bool has_match, has_eth, has_tag, has_counters;
	struct ibv_counters *counters;
};

/* The frame must be of that kind: twice the same, or two that exclude each other, is no rule. */
static bool rule_is_of(struct raw_rule *rule, u32 kind, u32 excluded)
{
	if (rule->mask.kinds & (kind | excluded))
		return false;
	rule->value.kinds |= kind;
	rule->mask.kinds |= kind;
	return true;
}

/* All fields are as on the wire. A filter that names a tag is for tagged frames. */
static void rule_add_eth(struct raw_rule *rule, const struct ibv_flow_spec_eth *spec)
{
	_Static_assert(offsetof(struct xroce_flow_key, vlan_tci) ==
			       offsetof(struct ibv_flow_eth_filter, vlan_tag),
		       "a key begins as the filter does");
	memcpy(&rule->value, &spec->val, sizeof(spec->val));
	memcpy(&rule->mask, &spec->mask, sizeof(spec->mask));
	if (!spec->mask.vlan_tag)
		return;
	rule->value.kinds |= XROCE_FLOW_VLAN;
	rule->mask.kinds |= XROCE_FLOW_VLAN;
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

/* Returns 0 or a positive errno, as those below. spec is as long as its type is. */
static int rule_add_match(struct rule *read, const struct ibv_flow_spec *spec)
{
	struct raw_rule *rule = &read->raw;
	const u32 ip = XROCE_FLOW_IPV4 | XROCE_FLOW_IPV6, l4 = XROCE_FLOW_UDP | XROCE_FLOW_TCP;
	struct ibv_flow_ipv4_ext_filter val, mask;
	u32 kind;

	read->has_match = true;
	switch ((u32)spec->hdr.type) {
	case IBV_FLOW_SPEC_ETH:
		if (read->has_eth)
			return EINVAL;
		read->has_eth = true;
		rule_add_eth(rule, &spec->eth);
		return 0;
	case IBV_FLOW_SPEC_IPV4:
		if (!rule_is_of(rule, XROCE_FLOW_IPV4, ip))
			return EINVAL;
		val = (struct ibv_flow_ipv4_ext_filter){ .src_ip = spec->ipv4.val.src_ip,
							 .dst_ip = spec->ipv4.val.dst_ip };
		mask = (struct ibv_flow_ipv4_ext_filter){ .src_ip = spec->ipv4.mask.src_ip,
							  .dst_ip = spec->ipv4.mask.dst_ip };
		key_set_ipv4(&rule->value, &val);
		key_set_ipv4(&rule->mask, &mask);
		return 0;
	case IBV_FLOW_SPEC_IPV4_EXT:
		if (!rule_is_of(rule, XROCE_FLOW_IPV4, ip))
			return EINVAL;
		key_set_ipv4(&rule->value, &spec->ipv4_ext.val);
		key_set_ipv4(&rule->mask, &spec->ipv4_ext.mask);
		return 0;
	case IBV_FLOW_SPEC_IPV6:
		if (!rule_is_of(rule, XROCE_FLOW_IPV6, ip))
			return EINVAL;
		key_set_ipv6(&rule->value, &spec->ipv6.val);
		key_set_ipv6(&rule->mask, &spec->ipv6.mask);
		return 0;
	default: /* TCP, UDP */
		kind = spec->hdr.type == IBV_FLOW_SPEC_UDP ? XROCE_FLOW_UDP : XROCE_FLOW_TCP;
		if (!rule_is_of(rule, kind, l4))
			return EINVAL;
		key_set_ports(&rule->value, &spec->tcp_udp.val);
		key_set_ports(&rule->mask, &spec->tcp_udp.mask);
		return 0;
	}
}

/* One of each. A rule that drops may have a tag, which nobody sees. */
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
 * The specs behind the attributes, each of its own size. attr->size is not looked at, as by
 * rdma-core, and programs leave it wrong (pyverbs). Returns 0 or a positive errno.
 */
static int rule_read_specs(struct rule *rule, const struct ibv_flow_attr *attr)
{
	const u8 *at = (const u8 *)(attr + 1);
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

static void rule_mask_value(struct raw_rule *rule)
{
	u8 *value = (u8 *)&rule->value;
	const u8 *mask = (const u8 *)&rule->mask;

	for (size_t i = 0; i < sizeof(rule->value); i++)
		value[i] &= mask[i];
}

/* What does not depend on the specs. Returns 0 or a positive errno. */
static int attr_check(const struct ibv_flow_attr *attr)
{
	const u32 known = IBV_FLOW_ATTR_FLAGS_DONT_TRAP | IBV_FLOW_ATTR_FLAGS_EGRESS;

	if (attr->comp_mask || attr->port != VERBS_PORT || attr->flags & ~known ||
	    (u32)attr->type > IBV_FLOW_ATTR_SNIFFER)
		return EINVAL;
	/* only normal rules may leave a frame to others: ibv_create_flow(3) */
	if (attr->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP && attr->type != IBV_FLOW_ATTR_NORMAL)
		return EINVAL;
	return attr->flags || attr->type == IBV_FLOW_ATTR_SNIFFER ? EOPNOTSUPP : 0;
}

static int rule_read(struct rule *rule, const struct ibv_flow_attr *attr)
{
	int err = attr_check(attr);

	*rule = (struct rule){ .raw.order = attr->priority };
	if (!err)
		err = rule_read_specs(rule, attr);
	if (err)
		return err;
	rule_mask_value(&rule->raw);
	if (attr->type == IBV_FLOW_ATTR_NORMAL)
		return 0;
	rule->raw.order |= ORDER_DEFAULT;
	if (attr->type == IBV_FLOW_ATTR_MC_DEFAULT)
		rule->raw.value.kinds = rule->raw.mask.kinds = XROCE_FLOW_MULTICAST;
	/* they have actions alone: they are for all, or for all multicast */
	return rule->has_match ? EINVAL : 0;
}

/* Returns 0 or a positive errno. */
static int flow_make(struct vflow *vflow, const struct rule *rule, enum ibv_flow_attr_type type)
{
	struct flow_rule made = { .raw = rule->raw,
				  .macs = type == IBV_FLOW_ATTR_NORMAL     ? NETDEV_ONE_MAC :
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

struct ibv_flow *create_flow_op(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct vqp *vqp = to_vqp(qp);
	struct rule rule;
	struct vflow *vflow;
	int err;

	if (!object_is_known(vqp))
		return verb_fail(ENOENT);
	err = qp->qp_type == IBV_QPT_RAW_PACKET ? rule_read(&rule, attr) : EINVAL;
	if (!err && context_gone(qp->context))
		err = EIO;
	if (err)
		return verb_fail(err);
	vflow = calloc(1, sizeof(*vflow));
	if (!vflow)
		return verb_fail(ENOMEM);
	vflow->vqp = vqp;
	err = flow_make(vflow, &rule, attr->type);
	if (err) {
		free(vflow);
		return verb_fail(err);
	}
	vflow->ibv.context = qp->context;
	vflow->ibv.handle = new_handle();
	object_know(vflow);
	return &vflow->ibv;
}

int destroy_flow_op(struct ibv_flow *flow)
{
	struct vflow *vflow = container_of(flow, struct vflow, ibv);

	if (!object_is_known(vflow))
		return verb_report(EINVAL);
	port_destroy_flow(vflow->vqp->port, vflow->flow);
	counters_unbind(vflow->counters);
	free(vflow);
	return 0;
}
