/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* ibv_create_flow(3), which is ibv_destroy_flow(3) as well; of ibv_create_qp(3) raw packets */
#include <arpa/inet.h>

#include "man.h"

struct rule {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_eth eth;
	struct ibv_flow_spec_ipv4 ipv4;
	struct ibv_flow_spec_tcp_udp udp;
	struct ibv_flow_spec_action_drop last;
};

static struct ibv_pd *pd;
static struct ibv_cq *cq;

static struct ibv_qp *qp_of(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .qp_type = type,
					 .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { QUEUE, QUEUE, 1, 1, 0 } };

	return ibv_create_qp(pd, &init);
}

static bool begin(struct ibv_qp **qp)
{
	MUST(pd = ibv_alloc_pd(ctx));
	MUST(cq = ibv_create_cq(ctx, 4 * QUEUE, NULL, NULL, 0));
	MUST(*qp = qp_of(IBV_QPT_RAW_PACKET));
	return true;
}

static bool end(struct ibv_qp *qp)
{
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/* The page's example, and a port. */
static struct rule example(void)
{
	return (struct rule){
		.attr = { .size = offsetof(struct rule, last), .num_of_specs = 3, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH,
			 .size = sizeof(struct ibv_flow_spec_eth),
			 .val = { .dst_mac = { 0x66, 0x11, 0x22, 0x33, 0x44, 0x55 } },
			 .mask = { .dst_mac = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } } },
		.ipv4 = { .type = IBV_FLOW_SPEC_IPV4,
			  .size = sizeof(struct ibv_flow_spec_ipv4),
			  .val = { .src_ip = htonl(0x0b86c806) },
			  .mask = { .src_ip = 0xffffffff } },
		.udp = { .type = IBV_FLOW_SPEC_UDP,
			 .size = sizeof(struct ibv_flow_spec_tcp_udp),
			 .val = { .dst_port = htons(77) },
			 .mask = { .dst_port = 0xffff } },
	};
}

/* "returns a pointer to the flow"; "returns 0 on success". A QP that has flows is in use. */
static bool makes_and_destroys(void)
{
	struct rule r = example();
	struct ibv_flow *flow, *same;
	struct ibv_qp *qp;

	MUST(begin(&qp));
	MUST(flow = ibv_create_flow(qp, &r.attr));
	MUST(flow->context == ctx);
	MUST(same = ibv_create_flow(qp, &r.attr));
	MUST_EQ(ibv_destroy_qp(qp), EBUSY);
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST_EQ(ibv_destroy_qp(qp), EBUSY);
	MUST_EQ(ibv_destroy_flow(same), 0);
	return end(qp);
}

/* "EINVAL: flow specification, QP or priority are invalid" */
static bool einval(void)
{
	struct rule r;
	struct ibv_qp *qp, *ud;

	MUST(begin(&qp));
	MUST(ud = qp_of(IBV_QPT_UD));
	r = example();
	/* docs/raw.md, "Rules" */
	MUST_FAIL(ibv_create_flow(ud, &r.attr), EINVAL);
	MUST_EQ(ibv_destroy_qp(ud), 0);
	MUST(ud = qp_of(IBV_QPT_RC));
	r = example();
	MUST_FAIL(ibv_create_flow(ud, &r.attr), EINVAL);
	/* the QP is looked at first */
	r.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	MUST_FAIL(ibv_create_flow(ud, &r.attr), EINVAL);
	MUST_EQ(ibv_destroy_qp(ud), 0);
#define WITH(field, value) (r = example(), r.field = (value), ibv_create_flow(qp, &r.attr))
	MUST_FAIL(WITH(attr.port, 0), EINVAL);
	MUST_FAIL(WITH(attr.port, 2), EINVAL);
	MUST_FAIL(WITH(attr.comp_mask, 1), EINVAL);
	MUST_FAIL(WITH(attr.flags, 1), EINVAL);
	MUST_FAIL(WITH(attr.flags, 8), EINVAL);
	MUST_FAIL(WITH(attr.type, (enum ibv_flow_attr_type)4), EINVAL);
	/* there is nothing after the last one */
	MUST_FAIL(WITH(attr.num_of_specs, 4), EINVAL);
	MUST_FAIL(WITH(eth.size, sizeof(r.eth) - 4), EINVAL);
	MUST_FAIL(WITH(eth.size, 0), EINVAL);
	MUST_FAIL(WITH(eth.type, (enum ibv_flow_spec_type)0x21), EINVAL);
	/* two of one layer */
	MUST_FAIL(WITH(udp.type, IBV_FLOW_SPEC_IPV4), EINVAL);
	/* "3. only NORMAL supports DONT_TRAP"; the default rules have no specs */
	r = (struct rule){ .attr = { .type = IBV_FLOW_ATTR_ALL_DEFAULT,
				     .flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP,
				     .size = sizeof(r.attr),
				     .port = 1 } };
	MUST_FAIL(ibv_create_flow(qp, &r.attr), EINVAL);
	MUST_FAIL(WITH(attr.type, IBV_FLOW_ATTR_MC_DEFAULT), EINVAL);
	MUST_FAIL(WITH(attr.type, IBV_FLOW_ATTR_SNIFFER), EINVAL);
	return end(qp);
}

/* What the page has and this device has not. */
static bool eopnotsupp(void)
{
	struct rule r;
	struct ibv_qp *qp;

	MUST(begin(&qp));
	MUST_FAIL(WITH(attr.flags, IBV_FLOW_ATTR_FLAGS_EGRESS), EOPNOTSUPP);
	/* a tunnel in a tunnel */
	MUST_FAIL(WITH(eth.type, IBV_FLOW_SPEC_GRE | IBV_FLOW_SPEC_INNER), EOPNOTSUPP);
	MUST_FAIL(WITH(eth.type, IBV_FLOW_SPEC_VXLAN_TUNNEL | IBV_FLOW_SPEC_INNER), EOPNOTSUPP);
	MUST_FAIL(WITH(udp.type, IBV_FLOW_SPEC_ACTION_HANDLE), EOPNOTSUPP);
	return end(qp);
}
#undef WITH

struct esp_rule {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_eth eth;
	struct ibv_flow_spec_esp esp, another;
};

static struct ibv_flow *make_esp(struct ibv_qp *qp, unsigned int specs, unsigned int inner,
				 unsigned int size)
{
	struct esp_rule r = {
		.attr = { .size = sizeof(r), .num_of_specs = (uint8_t)specs, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(r.eth) },
		.esp = { .type = (enum ibv_flow_spec_type)(IBV_FLOW_SPEC_ESP | inner),
			 .size = (uint16_t)size,
			 .val = { htonl(7), htonl(9) },
			 .mask = { ~0u, ~0u } },
	};

	r.another = r.esp;
	return ibv_create_flow(qp, &r.attr);
}

/* "IBV_FLOW_SPEC_ESP": one, outer or inner. */
static bool takes_esp(void)
{
	struct ibv_flow *flow;
	struct ibv_qp *qp;

	MUST(begin(&qp));
	MUST(flow = make_esp(qp, 2, 0, sizeof(struct ibv_flow_spec_esp)));
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST(flow = make_esp(qp, 2, IBV_FLOW_SPEC_INNER, sizeof(struct ibv_flow_spec_esp)));
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST_FAIL(make_esp(qp, 3, 0, sizeof(struct ibv_flow_spec_esp)), EINVAL);
	MUST_FAIL(make_esp(qp, 2, 0, sizeof(struct ibv_flow_spec_esp) - 4), EINVAL);
	return end(qp);
}

struct mpls_rule {
	struct ibv_flow_attr attr;
	uint8_t specs[128];
	size_t bytes;
};

static void mpls_add(struct mpls_rule *r, const void *spec, size_t size)
{
	memcpy(r->specs + r->bytes, spec, size);
	r->bytes += size;
	r->attr.num_of_specs++;
}

/* A rule of one or two specs. */
static struct ibv_flow *make_mpls(struct ibv_qp *qp, const void *first, size_t bytes,
				  const void *second, size_t second_bytes)
{
	struct mpls_rule r = { .attr = { .size = sizeof(r.attr), .port = 1 } };

	mpls_add(&r, first, bytes);
	if (second)
		mpls_add(&r, second, second_bytes);
	return ibv_create_flow(qp, &r.attr);
}

/* "place this spec according to its exact location": the first entry, and nothing within. */
static bool takes_mpls(void)
{
	struct ibv_flow_spec_mpls mpls = { IBV_FLOW_SPEC_MPLS, sizeof(mpls),
					   { htonl(0x12345000) }, { htonl(0xfffff000) } };
	struct ibv_flow_spec_ipv4 ipv4 = { .type = IBV_FLOW_SPEC_IPV4, .size = sizeof(ipv4) };
	struct ibv_flow_spec_eth eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(eth) };
	struct ibv_flow *flow;
	struct ibv_qp *qp;

	MUST(begin(&qp));
	MUST(flow = make_mpls(qp, &eth, sizeof(eth), &mpls, sizeof(mpls)));
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST(flow = make_mpls(qp, &mpls, sizeof(mpls), &eth, sizeof(eth)));
	MUST_EQ(ibv_destroy_flow(flow), 0);
	/* IP within it, it within IP, a second entry */
	MUST_FAIL(make_mpls(qp, &mpls, sizeof(mpls), &ipv4, sizeof(ipv4)), EOPNOTSUPP);
	MUST_FAIL(make_mpls(qp, &ipv4, sizeof(ipv4), &mpls, sizeof(mpls)), EOPNOTSUPP);
	MUST_FAIL(make_mpls(qp, &mpls, sizeof(mpls), &mpls, sizeof(mpls)), EOPNOTSUPP);
	mpls.type = (enum ibv_flow_spec_type)(IBV_FLOW_SPEC_MPLS | IBV_FLOW_SPEC_INNER);
	MUST(flow = make_mpls(qp, &mpls, sizeof(mpls), NULL, 0));
	MUST_EQ(ibv_destroy_flow(flow), 0);
	mpls.size--;
	MUST_FAIL(make_mpls(qp, &mpls, sizeof(mpls), NULL, 0), EINVAL);
	return end(qp);
}

struct tunnel_rule {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_tunnel vxlan;
	struct ibv_flow_spec_eth eth, inner;
	struct ibv_flow_spec_tcp_udp udp, inner_udp;
	struct ibv_flow_spec_gre gre;
};

static struct tunnel_rule tunnel_rule(unsigned int specs)
{
	return (struct tunnel_rule){
		.attr = { .size = sizeof(struct tunnel_rule),
			  .num_of_specs = (uint8_t)specs,
			  .port = 1 },
		.vxlan = { IBV_FLOW_SPEC_VXLAN_TUNNEL, sizeof(struct ibv_flow_spec_tunnel),
			   { htonl(7) }, { htonl(0xffffff) } },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(struct ibv_flow_spec_eth) },
		.inner = { .type = IBV_FLOW_SPEC_ETH | IBV_FLOW_SPEC_INNER,
			   .size = sizeof(struct ibv_flow_spec_eth) },
		.udp = { .type = IBV_FLOW_SPEC_UDP, .size = sizeof(struct ibv_flow_spec_tcp_udp) },
		.inner_udp = { .type = IBV_FLOW_SPEC_UDP | IBV_FLOW_SPEC_INNER,
			       .size = sizeof(struct ibv_flow_spec_tcp_udp) },
		.gre = { .type = IBV_FLOW_SPEC_GRE, .size = sizeof(struct ibv_flow_spec_gre) },
	};
}

/* "L2/L3/L4 specifications to be applied on the inner header": each layer once, inside too. */
static bool takes_tunnels(void)
{
	struct tunnel_rule r = tunnel_rule(5);
	struct ibv_flow *flow;
	struct ibv_qp *qp;

	MUST(begin(&qp));
	MUST(flow = ibv_create_flow(qp, &r.attr));
	MUST_EQ(ibv_destroy_flow(flow), 0);
	/* inner headers of any tunnel */
	r.vxlan.type = IBV_FLOW_SPEC_UDP;
	r.attr.num_of_specs = 3;
	MUST(flow = ibv_create_flow(qp, &r.attr));
	MUST_EQ(ibv_destroy_flow(flow), 0);
	/* two tunnels; two inner ones of a layer; a VNI of 25 bits */
	r = tunnel_rule(6);
	MUST_FAIL(ibv_create_flow(qp, &r.attr), EINVAL);
	r = tunnel_rule(5);
	r.eth.type = r.inner.type;
	MUST_FAIL(ibv_create_flow(qp, &r.attr), EINVAL);
	r = tunnel_rule(5);
	r.udp.type = IBV_FLOW_SPEC_TCP | IBV_FLOW_SPEC_INNER;
	MUST_FAIL(ibv_create_flow(qp, &r.attr), EINVAL);
	r = tunnel_rule(5);
	r.vxlan.mask.tunnel_id = htonl(0x1000000);
	MUST_FAIL(ibv_create_flow(qp, &r.attr), EINVAL);
	r = tunnel_rule(1);
	r.attr.type = IBV_FLOW_ATTR_ALL_DEFAULT;
	MUST_FAIL(ibv_create_flow(qp, &r.attr), EINVAL);
	return end(qp);
}

/* A rule of actions alone. */
struct actions {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_action_tag tag, another;
	struct ibv_flow_spec_action_drop drop, again;
};

static struct actions actions(void)
{
	return (struct actions){
		.attr = { .size = sizeof(struct actions), .port = 1 },
		.tag = { IBV_FLOW_SPEC_ACTION_TAG, sizeof(struct ibv_flow_spec_action_tag), 7 },
		.another = { IBV_FLOW_SPEC_ACTION_TAG, sizeof(struct ibv_flow_spec_action_tag), 7 },
		.drop = { IBV_FLOW_SPEC_ACTION_DROP, sizeof(struct ibv_flow_spec_action_drop) },
		.again = { IBV_FLOW_SPEC_ACTION_DROP, sizeof(struct ibv_flow_spec_action_drop) },
	};
}

/* Sniffers have actions alone; no copy of dropped frames. Both may be one QP's. */
static bool takes_copies(void)
{
	struct actions a = actions();
	struct rule r = example();
	struct ibv_flow *sniffer, *copies;
	struct ibv_qp *qp;

	MUST(begin(&qp));
	a.attr.type = IBV_FLOW_ATTR_SNIFFER;
	MUST(sniffer = ibv_create_flow(qp, &a.attr));
	r.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	MUST(copies = ibv_create_flow(qp, &r.attr));
	MUST_EQ(ibv_destroy_qp(qp), EBUSY);
	MUST_EQ(ibv_destroy_flow(sniffer), 0);
	MUST_EQ(ibv_destroy_flow(copies), 0);
	/* again, with a tag */
	a.attr.num_of_specs = 1;
	MUST(sniffer = ibv_create_flow(qp, &a.attr));
	MUST_EQ(ibv_destroy_flow(sniffer), 0);
	a.tag.type = IBV_FLOW_SPEC_ACTION_DROP;
	a.tag.size = sizeof(a.drop);
	MUST_FAIL(ibv_create_flow(qp, &a.attr), EINVAL);
	a = actions();
	a.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	a.attr.num_of_specs = 1;
	a.tag.type = IBV_FLOW_SPEC_ACTION_DROP;
	a.tag.size = sizeof(a.drop);
	MUST_FAIL(ibv_create_flow(qp, &a.attr), EINVAL);
	return end(qp);
}

/*
 * "the associated flow actions are executed": one of each kind, of its exact size, never an inner
 * one. Default rules have them too.
 */
static bool takes_actions(void)
{
	const enum ibv_flow_attr_type types[] = { IBV_FLOW_ATTR_NORMAL, IBV_FLOW_ATTR_ALL_DEFAULT,
						  IBV_FLOW_ATTR_MC_DEFAULT };
	struct actions a = actions();
	struct ibv_flow *flow;
	struct ibv_qp *qp;

	MUST(begin(&qp));
	a.attr.num_of_specs = 2;
	MUST_FAIL(ibv_create_flow(qp, &a.attr), EINVAL);
	a.attr.num_of_specs = 3;
	a.another.type = (enum ibv_flow_spec_type)0x20;
	MUST_FAIL(ibv_create_flow(qp, &a.attr), EINVAL);
	a = actions();
	a.attr.num_of_specs = 1;
	a.tag.size--;
	MUST_FAIL(ibv_create_flow(qp, &a.attr), EINVAL);
	a = actions();
	a.attr.num_of_specs = 1;
	a.tag.type = (enum ibv_flow_spec_type)(IBV_FLOW_SPEC_ACTION_TAG | IBV_FLOW_SPEC_INNER);
	MUST_FAIL(ibv_create_flow(qp, &a.attr), EINVAL);
	/* two drops in a row */
	a = actions();
	memcpy(&a.tag, &a.drop, sizeof(a.drop));
	memcpy((char *)&a.tag + sizeof(a.drop), &a.drop, sizeof(a.drop));
	a.attr.num_of_specs = 2;
	MUST_FAIL(ibv_create_flow(qp, &a.attr), EINVAL);
	a.attr.num_of_specs = 1;
	for (unsigned int i = 0; i < 3; i++) {
		a.attr.type = types[i];
		MUST(flow = ibv_create_flow(qp, &a.attr));
		MUST_EQ(ibv_destroy_flow(flow), 0);
	}
	a = actions();
	a.attr.num_of_specs = 1;
	MUST(flow = ibv_create_flow(qp, &a.attr));
	MUST_EQ(ibv_destroy_flow(flow), 0);
	return end(qp);
}

/* "ENOMEM": as many as there may be, and they come and go. */
static bool as_many_as_there_may_be(void)
{
	static struct ibv_flow *flow[1024];
	struct rule r = example();
	struct ibv_qp *qp;
	int n = 0;

	MUST(begin(&qp));
	while (n < 1024 && (flow[n] = ibv_create_flow(qp, &r.attr)))
		n++;
	MUST(n >= 64 && n < 1024);
	MUST_EQ(errno, ENOMEM);
	while (n)
		MUST_EQ(ibv_destroy_flow(flow[--n]), 0);
	MUST(flow[0] = ibv_create_flow(qp, &r.attr));
	MUST_EQ(ibv_destroy_flow(flow[0]), 0);
	return end(qp);
}

/* "available only for devices supporting IBV_DEVICE_MANAGED_FLOW_STEERING" */
static bool is_claimed(void)
{
	struct ibv_device_attr attr;

	MUST_EQ(ibv_query_device(ctx, &attr), 0);
	MUST(attr.device_cap_flags & (unsigned int)IBV_DEVICE_MANAGED_FLOW_STEERING);
	MUST(attr.max_raw_ethy_qp > 0);
	return true;
}

/* ibv_modify_qp(3), the table of IBV_QPT_RAW_PACKET */
static bool states(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp;

	MUST(begin(&qp));
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), EINVAL);
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_QKEY), EINVAL);
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT), 0);
	a.qp_state = IBV_QPS_RTR;
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_DEST_QPN), EINVAL);
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_RTS;
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), EINVAL);
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	MUST_EQ(qp_state_now(qp), IBV_QPS_RTS);
	return end(qp);
}

/* "va" of the device xroce_va. */
static bool own_mac(unsigned char mac[6])
{
	char path[128], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/class/net/%s/address",
		 strchr(ibv_get_device_name(ctx->device), '_') + 1);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 17) {
		/* /sys may be another namespace's */
		memcpy(mac, (unsigned char[]){ 2, 0, 0, 0x77, 0, 1 }, 6);
		return true;
	}
	close(fd);
	return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3],
		      &mac[4], &mac[5]) == 6;
}

/* A frame to the interface itself comes to its own flow; ibv_post_send(3): SEND alone. */
static bool to_ourselves(void)
{
	static unsigned char out[64], in[256];
	struct ibv_flow_attr all = { .type = IBV_FLOW_ATTR_ALL_DEFAULT,
				     .size = sizeof(all),
				     .port = 1 };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_sge sge;
	struct ibv_recv_wr recv = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = 8, .sg_list = &sge, .num_sge = 1,
				    .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_mr *to, *from;
	struct ibv_flow *flow;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	int n = 0;

	MUST(begin(&qp));
	MUST(to = ibv_reg_mr(pd, in, sizeof(in), IBV_ACCESS_LOCAL_WRITE));
	MUST(from = ibv_reg_mr(pd, out, sizeof(out), 0));
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT), 0);
	a.qp_state = IBV_QPS_RTR;
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_RTS;
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	sge = (struct ibv_sge){ (uintptr_t)in, sizeof(in), to->lkey };
	MUST_EQ(ibv_post_recv(qp, &recv, &bad_recv), 0);
	MUST(flow = ibv_create_flow(qp, &all));
	MUST(own_mac(out));
	memcpy(out + 6, out, 6);
	out[12] = 0x88;
	out[13] = 0xb5;
	for (unsigned int i = 14; i < sizeof(out); i++)
		out[i] = (unsigned char)i;
	sge = (struct ibv_sge){ (uintptr_t)out, sizeof(out), from->lkey };
	MUST_EQ(ibv_post_send(qp, &send, &bad_send), 0);
	while (n < WAIT_MS * 1000 && !ibv_poll_cq(cq, 1, &wc)) {
		usleep(1);
		n++;
	}
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ((int)wc.wr_id, 7);
	MUST_EQ((int)wc.byte_len, (int)sizeof(out));
	MUST(!memcmp(in, out, sizeof(out)));
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST_EQ(ibv_dereg_mr(to), 0);
	MUST_EQ(ibv_dereg_mr(from), 0);
	return end(qp);
}

const struct test_case man_cases[] = {
	CASE(makes_and_destroys),
	CASE(einval),
	CASE(eopnotsupp),
	CASE(takes_esp),
	CASE(takes_mpls),
	CASE(takes_tunnels),
	CASE(takes_copies),
	CASE(takes_actions),
	CASE(as_many_as_there_may_be),
	CASE(is_claimed),
	CASE(states),
	CASE(to_ourselves),
	{ 0 },
};
