/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What flows do with the frames that they take: whose they are, with which tags, and what counters
 * say, exactly.
 *
 *	flows DEVICE FLOW...
 *
 * A FLOW is a list, parted by commas, of
 *
 *	port=PORT	UDP to that port, from the sender's MAC (raw.c); without it all is meant
 *	qp=N		the QP, 0 without it
 *	vni=N, key=N	in a VXLAN or a GRE tunnel: the port is the inner one, from any MAC
 *	prio=N
 *	tag=N
 *	drop
 *	count=N		counters object N
 *
 * Prints "ready" when it can receive. A frame to port LAST, which QP 0 gets by a separate flow,
 * ends it: all earlier frames have arrived. Then it prints
 *
 *	qp N frames N bytes N tag N		of each QP and tag
 *	counters N packets N bytes N
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl.h"
#include "lib/device.h"

#define QPS	 4
#define OBJECTS	 4
#define FLOWS	 16
#define SLOTS	 512
#define SLOT	 2048
#define LAST	 9999
#define TAGS	 16
#define LAST_TAG 0x1a57

struct spec {
	unsigned int port, vni, key, qp, priority, tag, counters;
	bool has_port, has_vni, has_key, has_tag, drop, has_counters;
};

static const unsigned char sender[6] = { 2, 0, 0, 0x77, 0, 9 };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq_ex *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp[QPS];
static struct ibv_counters *counters[OBJECTS];
static struct ibv_flow *flow[FLOWS];
static unsigned char slots[QPS][SLOTS][SLOT];
static struct {
	unsigned int qp, tag, frames;
	unsigned long bytes;
} seen[TAGS];
static unsigned int num_seen;

static void post_recv(unsigned int q, unsigned int slot)
{
	struct ibv_sge sge = { (uintptr_t)slots[q][slot], SLOT, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = q * SLOTS + slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(qp[q], &wr, &bad), "ibv_post_recv");
}

static void make_qp(unsigned int q)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET,
					 .cap = { 1, SLOTS, 1, 1, 0 },
					 .send_cq = ibv_cq_ex_to_cq(cq),
					 .recv_cq = ibv_cq_ex_to_cq(cq) };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	must((qp[q] = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
	must(!ibv_modify_qp(qp[q], &a, IBV_QP_STATE | IBV_QP_PORT), "INIT");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp[q], &a, IBV_QP_STATE), "RTR");
	for (unsigned int slot = 0; slot < SLOTS; slot++)
		post_recv(q, slot);
}

/* Packets are read at index 1, bytes at index 0. */
static void make_counters(unsigned int n)
{
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counter_attach_attr packets = { IBV_COUNTER_PACKETS, 1, 0 },
				       bytes = { IBV_COUNTER_BYTES, 0, 0 };

	must((counters[n] = ibv_create_counters(ctx, &init)), "ibv_create_counters");
	must(!ibv_attach_counters_point_flow(counters[n], &packets, NULL), "packets");
	must(!ibv_attach_counters_point_flow(counters[n], &bytes, NULL), "bytes");
}

static void open_all(const char *device)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = QPS * SLOTS,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_QP_NUM |
			    IBV_WC_EX_WITH_FLOW_TAG,
	};

	ctx = open_device(device);
	must((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd");
	must((cq = ibv_create_cq_ex(ctx, &init)), "ibv_create_cq_ex");
	must((mr = ibv_reg_mr(pd, slots, sizeof(slots), IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr");
}

static struct spec read_spec(char *text)
{
	struct spec s = { 0 };

	for (char *at = strtok(text, ","); at; at = strtok(NULL, ",")) {
		if (sscanf(at, "port=%u", &s.port) == 1)
			s.has_port = true;
		else if (sscanf(at, "vni=%u", &s.vni) == 1)
			s.has_vni = true;
		else if (sscanf(at, "key=%u", &s.key) == 1)
			s.has_key = true;
		else if (sscanf(at, "tag=%u", &s.tag) == 1)
			s.has_tag = true;
		else if (sscanf(at, "count=%u", &s.counters) == 1)
			s.has_counters = true;
		else if (!strcmp(at, "drop"))
			s.drop = true;
		else
			must(sscanf(at, "qp=%u", &s.qp) == 1 ||
				     sscanf(at, "prio=%u", &s.priority) == 1,
			     "no such word: %s", at);
	}
	must(s.qp < QPS && s.counters < OBJECTS, "a number is too large");
	return s;
}

/* Appends a spec: at a multiple of 4, so a spec with a pointer is copied there. */
static void *append(struct ibv_flow_attr *attr, unsigned int type, size_t size)
{
	struct ibv_flow_spec_action_drop *spec = (void *)((char *)attr + attr->size);

	memset(spec, 0, size);
	spec->type = (enum ibv_flow_spec_type)type;
	spec->size = (uint16_t)size;
	attr->size = (uint16_t)(attr->size + size);
	attr->num_of_specs++;
	return spec;
}

static void append_match(struct ibv_flow_attr *attr, unsigned int port)
{
	struct ibv_flow_spec_eth *eth = append(attr, IBV_FLOW_SPEC_ETH, sizeof(*eth));
	struct ibv_flow_spec_tcp_udp *udp;

	memcpy(eth->val.src_mac, sender, 6);
	memset(eth->mask.src_mac, 0xff, 6);
	udp = append(attr, IBV_FLOW_SPEC_UDP, sizeof(*udp));
	udp->val.dst_port = htons((uint16_t)port);
	udp->mask.dst_port = 0xffff;
}

/* The kernel sends GRE with a key as the only field. */
static void append_tunnel(struct ibv_flow_attr *attr, const struct spec *s)
{
	struct ibv_flow_spec_tcp_udp *udp;

	if (s->has_vni) {
		struct ibv_flow_spec_tunnel *vxlan =
			append(attr, IBV_FLOW_SPEC_VXLAN_TUNNEL, sizeof(*vxlan));

		vxlan->val.tunnel_id = htonl(s->vni);
		vxlan->mask.tunnel_id = htonl(0xffffff);
	} else {
		struct ibv_flow_spec_gre *gre = append(attr, IBV_FLOW_SPEC_GRE, sizeof(*gre));

		gre->val = (struct ibv_flow_gre_filter){ htons(0x2000), htons(0x0800),
							 htonl(s->key) };
		memset(&gre->mask, 0xff, sizeof(gre->mask));
	}
	udp = append(attr, IBV_FLOW_SPEC_UDP | IBV_FLOW_SPEC_INNER, sizeof(*udp));
	udp->val.dst_port = htons((uint16_t)s->port);
	udp->mask.dst_port = 0xffff;
}

static struct ibv_flow *add_flow(const struct spec *s)
{
	static _Alignas(8) char room[512];
	struct ibv_flow_attr *attr = (void *)room;
	struct ibv_flow *made;

	*attr = (struct ibv_flow_attr){ .size = sizeof(*attr),
					.port = 1,
					.priority = (uint16_t)s->priority };
	if (s->has_vni || s->has_key)
		append_tunnel(attr, s);
	else if (s->has_port)
		append_match(attr, s->port);
	else
		attr->type = IBV_FLOW_ATTR_ALL_DEFAULT;
	if (s->has_tag) {
		struct ibv_flow_spec_action_tag *tag =
			append(attr, IBV_FLOW_SPEC_ACTION_TAG, sizeof(*tag));

		tag->tag_id = s->tag;
	}
	if (s->drop)
		append(attr, IBV_FLOW_SPEC_ACTION_DROP, sizeof(struct ibv_flow_spec_action_drop));
	if (s->has_counters) {
		struct ibv_flow_spec_counter_action count = { .type = IBV_FLOW_SPEC_ACTION_COUNT,
							      .size = sizeof(count) };

		if (!counters[s->counters])
			make_counters(s->counters);
		count.counters = counters[s->counters];
		memcpy(append(attr, count.type, sizeof(count)), &count, sizeof(count));
	}
	if (!qp[s->qp])
		make_qp(s->qp);
	made = ibv_create_flow(qp[s->qp], attr);
	must(made, "ibv_create_flow: %s", strerror(errno));
	return made;
}

/* True: it was the last frame. */
static bool take(void)
{
	const unsigned int q = (unsigned int)cq->wr_id / SLOTS, len = ibv_wc_read_byte_len(cq),
			   tag = ibv_wc_read_flow_tag(cq);
	unsigned int i = 0;

	must(cq->status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(cq->status));
	must(ibv_wc_read_qp_num(cq) == qp[q]->qp_num, "another QP's");
	post_recv(q, (unsigned int)cq->wr_id % SLOTS);
	if (tag == LAST_TAG)
		return true;
	while (i < num_seen && (seen[i].qp != q || seen[i].tag != tag))
		i++;
	must(i < TAGS, "too many tags");
	num_seen += i == num_seen;
	seen[i].qp = q;
	seen[i].tag = tag;
	seen[i].frames++;
	seen[i].bytes += len;
	return false;
}

static void receive(void)
{
	struct ibv_poll_cq_attr attr = { 0 };
	bool last = false;

	while (!last) {
		int err = ibv_start_poll(cq, &attr);

		if (err == ENOENT)
			continue;
		must(!err, "ibv_start_poll: %s", strerror(err));
		do {
			last |= take();
			err = ibv_next_poll(cq);
		} while (!err);
		must(err == ENOENT, "ibv_next_poll: %s", strerror(err));
		ibv_end_poll(cq);
	}
}

static void report(void)
{
	for (unsigned int i = 0; i < num_seen; i++)
		printf("qp %u frames %u bytes %lu tag %u\n", seen[i].qp, seen[i].frames,
		       seen[i].bytes, seen[i].tag);
	for (unsigned int n = 0; n < OBJECTS; n++) {
		uint64_t values[3] = { 7, 7, 7 };

		if (!counters[n])
			continue;
		must(!ibv_read_counters(counters[n], values, 3, 0), "ibv_read_counters");
		must(!values[2], "an index without a point");
		printf("counters %u packets %lu bytes %lu\n", n, (unsigned long)values[1],
		       (unsigned long)values[0]);
	}
}

/* A freed counter is cleared before its next use. */
static void check_cleared(void)
{
	const struct spec s = { .port = LAST + 1, .has_port = true, .has_counters = true };
	struct ibv_flow *made;
	uint64_t values[2];

	counters[0] = NULL;
	made = add_flow(&s);
	must(!ibv_read_counters(counters[0], values, 2, 0), "ibv_read_counters");
	must(!values[0] && !values[1], "%lu packets are there before any has come",
	     (unsigned long)values[1]);
	must(!ibv_destroy_flow(made), "ibv_destroy_flow");
	must(!ibv_destroy_counters(counters[0]), "ibv_destroy_counters");
}

static void close_all(unsigned int flows)
{
	for (unsigned int i = 0; i < flows; i++)
		must(!ibv_destroy_flow(flow[i]), "ibv_destroy_flow");
	for (unsigned int n = 0; n < OBJECTS; n++)
		must(!counters[n] || !ibv_destroy_counters(counters[n]), "ibv_destroy_counters");
	check_cleared();
	for (unsigned int q = 0; q < QPS; q++)
		must(!qp[q] || !ibv_destroy_qp(qp[q]), "ibv_destroy_qp");
}

int main(int argc, char **argv)
{
	struct spec last = { .port = LAST, .has_port = true, .tag = LAST_TAG, .has_tag = true };
	unsigned int flows = 0;

	must(argc >= 2 && argc - 2 < FLOWS, "flows DEVICE FLOW...");
	open_all(argv[1]);
	flow[flows++] = add_flow(&last);
	for (int i = 2; i < argc; i++) {
		const struct spec s = read_spec(argv[i]);

		flow[flows++] = add_flow(&s);
	}
	printf("ready\n");
	fflush(stdout);
	receive();
	report();
	close_all(flows);
	return 0;
}
