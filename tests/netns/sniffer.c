/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sniffers, and flows that do not trap, with a UD queue pair that echoes: the number of copies that
 * each QP gets of each frame.
 *
 *	sniffer [-r N] [-s N] [-t PORT] [-f PORT] [-d PORT] [-e] DEVICE
 *
 *	-r N	QPs named after it have a table of N work queues, a power of 2 up to 4, and a hash
 *		of addresses and ports
 *	-s N	N sniffers, each with its own QP and counter
 *	-t PORT	one more QP, with a flow for UDP to that port that does not trap
 *	-f PORT	one more, with a flow that takes UDP to that port
 *	-d PORT	one more, with a flow that drops UDP to that port
 *	-e	sleep for events instead of polling
 *
 * It prints "ready QPN" of the UD queue pair. A frame to UDP port 9999, taken by a flow of QP 0,
 * ends it. Then it prints "WHO roce N sent N udp N arp N tcp N" of each QP, "WHO all N in N" with
 * the number of work queues that had any, and "ud N".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"

#define QPS   8
#define WQS   4
#define SLOTS 1024
#define SLOT  2048
#define LAST  9999
#define QKEY  0x11111111
#define GRH   40

struct sniffed {
	char who;
	struct ibv_qp *qp;
	struct ibv_rwq_ind_table *table; /* of the first wqs work queues */
	struct ibv_wq *wq[WQS];
	unsigned int wqs;
	struct ibv_flow *flow;
	struct ibv_counters *counters;
	unsigned int roce, sent, udp, arp, tcp, all, in_wq[WQS];
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_comp_channel *channel;
static struct ibv_mr *mr, *ud_mr;
static struct sniffed sniffed[QPS];
static unsigned int num, ud_num, wqs;
static struct ibv_qp *ud;
static struct ibv_ah *ah;
static unsigned char slots[QPS][SLOTS][SLOT], ud_slots[SLOTS][SLOT];

static void post(unsigned int q, unsigned int slot)
{
	struct ibv_sge sge = { (uintptr_t)slots[q][slot], SLOT, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = q * SLOTS + slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!(sniffed[q].wqs ? ibv_post_wq_recv(sniffed[q].wq[slot % sniffed[q].wqs], &wr, &bad) :
				ibv_post_recv(sniffed[q].qp, &wr, &bad)),
	     "posting a receive");
}

static void post_ud(unsigned int slot)
{
	struct ibv_sge sge = { (uintptr_t)ud_slots[slot], SLOT, ud_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = QPS * SLOTS + slot, .sg_list = &sge, .num_sge = 1 },
			   *bad;

	must(!ibv_post_recv(ud, &wr, &bad), "ibv_post_recv");
}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .qp_type = type,
					 .cap = { SLOTS, SLOTS, 1, 1, 0 },
					 .send_cq = cq,
					 .recv_cq = cq };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	const bool is_ud = type == IBV_QPT_UD;

	must(qp, "ibv_create_qp: %s", strerror(errno));
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT |
			    (is_ud ? IBV_QP_PKEY_INDEX | IBV_QP_QKEY : 0)), "INIT");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE), "RTR");
	a.qp_state = IBV_QPS_RTS;
	must(!is_ud || !ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
	return qp;
}

static struct ibv_wq *make_wq(unsigned int depth)
{
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ,
					 .max_wr = depth,
					 .max_sge = 1,
					 .pd = pd,
					 .cq = cq };
	struct ibv_wq_attr a = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_wq *wq = ibv_create_wq(ctx, &init);

	must(wq && !ibv_modify_wq(wq, &a), "a work queue: %s", strerror(errno));
	return wq;
}

/* A QP of a table, whose receives are its work queues'. */
static void make_spread(struct sniffed *s)
{
	static uint8_t key[40];
	struct ibv_rwq_ind_table_init_attr of = { .ind_tbl = s->wq };
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH |
			     IBV_QP_INIT_ATTR_IND_TABLE,
		.pd = pd,
		.rx_hash_conf = { .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				  .rx_hash_key_len = sizeof(key),
				  .rx_hash_key = key,
				  .rx_hash_fields_mask = 0xff },
	};

	for (unsigned int i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 151 + 89);
	s->wqs = wqs;
	for (unsigned int i = 0; i < wqs; i++)
		s->wq[i] = make_wq(SLOTS / wqs);
	while (1u << of.log_ind_tbl_size < wqs)
		of.log_ind_tbl_size++;
	s->table = ibv_create_rwq_ind_table(ctx, &of);
	must(s->table, "ibv_create_rwq_ind_table: %s", strerror(errno));
	init.rwq_ind_tbl = s->table;
	s->qp = ibv_create_qp_ex(ctx, &init);
	must(s->qp, "ibv_create_qp_ex: %s", strerror(errno));
}

static struct ibv_counters *make_counters(void)
{
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counter_attach_attr packets = { IBV_COUNTER_PACKETS, 0, 0 };
	struct ibv_counters *c = ibv_create_counters(ctx, &init);

	must(c && !ibv_attach_counters_point_flow(c, &packets, NULL), "counters");
	return c;
}

/* Specs lie one after the other, each as long as its type. */
static void append(struct ibv_flow_attr *attr, const void *spec, size_t size)
{
	memcpy((char *)attr + attr->size, spec, size);
	attr->size = (uint16_t)(attr->size + size);
	attr->num_of_specs++;
}

static struct ibv_flow *add_flow(unsigned int q, char who, unsigned int port)
{
	static _Alignas(8) char room[256];
	struct ibv_flow_attr *attr = (void *)room;
	struct ibv_flow_spec_tcp_udp udp = { .type = IBV_FLOW_SPEC_UDP,
					     .size = sizeof(udp),
					     .val.dst_port = htons((uint16_t)port),
					     .mask.dst_port = 0xffff };
	struct ibv_flow_spec_counter_action count = { IBV_FLOW_SPEC_ACTION_COUNT, sizeof(count),
						      NULL };
	struct ibv_flow_spec_action_drop drop = { IBV_FLOW_SPEC_ACTION_DROP, sizeof(drop) };
	struct ibv_flow *flow;

	*attr = (struct ibv_flow_attr){ .size = sizeof(*attr), .port = 1 };
	if (who == 's') {
		attr->type = IBV_FLOW_ATTR_SNIFFER;
		count.counters = sniffed[q].counters = make_counters();
		append(attr, &count, sizeof(count));
	} else {
		append(attr, &udp, sizeof(udp));
	}
	if (who == 't')
		attr->flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	if (who == 'd')
		append(attr, &drop, sizeof(drop));
	flow = ibv_create_flow(sniffed[q].qp, attr);
	must(flow, "ibv_create_flow %c: %s", who, strerror(errno));
	return flow;
}

static void add(char who, unsigned int port)
{
	struct sniffed *s = &sniffed[num];

	must(num < QPS, "too many");
	s->who = who;
	if (wqs)
		make_spread(s);
	else
		s->qp = make_qp(IBV_QPT_RAW_PACKET);
	for (unsigned int slot = 0; slot < SLOTS; slot++)
		post(num, slot);
	s->flow = add_flow(num, who, port);
	num++;
}

/* The address for echoes of the UD queue pair. */
static void echo(const struct ibv_wc *wc)
{
	const unsigned int slot = (unsigned int)wc->wr_id % SLOTS;
	struct ibv_sge sge = { (uintptr_t)ud_slots[slot] + GRH, wc->byte_len - GRH, ud_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wc->wr_id, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (!ah)
		ah = ibv_create_ah_from_wc(pd, (struct ibv_wc *)wc, (void *)ud_slots[slot], 1);
	must(ah, "ibv_create_ah_from_wc: %s", strerror(errno));
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = wc->src_qp;
	wr.wr.ud.remote_qkey = QKEY;
	must(!ibv_post_send(ud, &wr, &bad), "ibv_post_send");
}

/* True: it is the last. Frames have no tags here, and IPv4 no options. */
static bool take_frame(struct sniffed *s, const unsigned char *f, unsigned int len)
{
	static unsigned char own[6];
	const unsigned int type = f[12] << 8 | f[13], port = f[36] << 8 | f[37];

	/* the frame that the flow of QP 0 takes is to our own MAC */
	if (type == 0x0800 && f[23] == 17 && port == LAST && s == sniffed)
		return true;
	s->arp += type == 0x0806;
	s->tcp += type == 0x0800 && f[23] == 6;
	if (type != 0x0800 || f[23] != 17)
		return false;
	if (port != 4791) {
		s->udp += port >= 5000 && port < 6000;
		return false;
	}
	if (!own[0] && !own[5])
		memcpy(own, f, 6); /* the first one comes before one is sent */
	if (memcmp(own, f, 6))
		s->sent++;
	else
		s->roce++;
	must(len > 58, "a short packet");
	return false;
}

static bool take(const struct ibv_wc *wc)
{
	const unsigned int q = (unsigned int)wc->wr_id / SLOTS;
	bool last;

	must(wc->status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc->status));
	if (q == QPS && wc->opcode == IBV_WC_SEND) {
		post_ud((unsigned int)wc->wr_id % SLOTS);
		return false;
	}
	if (q == QPS) {
		ud_num++;
		echo(wc);
		return false;
	}
	sniffed[q].all++;
	if (sniffed[q].wqs)
		sniffed[q].in_wq[wc->wr_id % sniffed[q].wqs]++;
	last = take_frame(&sniffed[q], slots[q][wc->wr_id % SLOTS], wc->byte_len);
	post(q, (unsigned int)wc->wr_id % SLOTS);
	return last;
}

static void receive(void)
{
	struct ibv_wc wc[16];
	struct ibv_cq *of;
	void *context;
	bool last = false;
	int n;

	while (!last) {
		n = ibv_poll_cq(cq, 16, wc);
		if (!n && channel) {
			must(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
			n = ibv_poll_cq(cq, 16, wc);
			if (!n) {
				must(!ibv_get_cq_event(channel, &of, &context), "no event");
				ibv_ack_cq_events(cq, 1);
			}
		}
		for (int i = 0; i < n; i++)
			last |= take(&wc[i]);
	}
}

static void report(void)
{
	uint64_t counted;

	for (unsigned int q = 0; q < num; q++) {
		const struct sniffed *s = &sniffed[q];
		unsigned int in = 0;

		printf("%c roce %u sent %u udp %u arp %u tcp %u\n", s->who, s->roce, s->sent,
		       s->udp, s->arp, s->tcp);
		for (unsigned int i = 0; i < s->wqs; i++)
			in += s->in_wq[i] > 0;
		printf("%c all %u in %u\n", s->who, s->all, in);
		if (!s->counters)
			continue;
		must(!ibv_read_counters(s->counters, &counted, 1, 0), "ibv_read_counters");
		must(counted >= s->roce + s->sent + s->udp, "counted %lu",
		     (unsigned long)counted);
	}
	printf("ud %u\n", ud_num);
}

static void end(struct sniffed *s)
{
	must(!ibv_destroy_flow(s->flow), "ibv_destroy_flow");
	must(!ibv_destroy_qp(s->qp), "ibv_destroy_qp");
	must(!s->counters || !ibv_destroy_counters(s->counters), "ibv_destroy_counters");
	must(!s->table || !ibv_destroy_rwq_ind_table(s->table), "ibv_destroy_rwq_ind_table");
	for (unsigned int i = 0; i < s->wqs; i++)
		must(!ibv_destroy_wq(s->wq[i]), "ibv_destroy_wq");
}

int main(int argc, char **argv)
{
	int c;

	must(argc >= 2, "sniffer [OPTION...] DEVICE");
	ctx = open_device(argv[argc - 1]);
	must((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd");
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "-e"))
			must((channel = ibv_create_comp_channel(ctx)), "a channel");
	must((cq = ibv_create_cq(ctx, (QPS + 2) * SLOTS, NULL, channel, 0)), "ibv_create_cq");
	must((mr = ibv_reg_mr(pd, slots, sizeof(slots), IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr");
	must((ud_mr = ibv_reg_mr(pd, ud_slots, sizeof(ud_slots), IBV_ACCESS_LOCAL_WRITE)),
	     "ibv_reg_mr");
	ud = make_qp(IBV_QPT_UD);
	for (unsigned int slot = 0; slot < SLOTS; slot++)
		post_ud(slot);
	add('l', LAST);
	while ((c = getopt(argc, argv, "r:s:t:f:d:e")) != -1) {
		must(c != '?', "no such option");
		if (c == 'r') {
			wqs = (unsigned int)atoi(optarg);
			must(wqs <= WQS && !(wqs & (wqs - 1)), "-r %s", optarg);
		}
		for (int i = 0; c == 's' && i < atoi(optarg); i++)
			add('s', 0);
		if (c == 't' || c == 'f' || c == 'd')
			add((char)c, (unsigned int)atoi(optarg));
	}
	printf("ready %u\n", ud->qp_num);
	fflush(stdout);
	receive();
	report();
	while (num)
		end(&sniffed[--num]);
	return 0;
}
