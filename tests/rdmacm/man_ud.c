/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/*
 * Datagram services: rdma_connect(3), rdma_accept(3) and rdma_reject(3) of RDMA_PS_UDP (SIDR), the
 * UD data of rdma_get_cm_event(3), rdma_post_ud_send(3).
 */
#include "man.h"

#define REQ_BYTES 180
#define REP_BYTES 136

static uint8_t bytes[256];

static void bytes_fill(uint8_t seed)
{
	for (int i = 0; i < 256; i++)
		bytes[i] = (uint8_t)(seed + 11 * i);
}

static bool data_is(const struct rdma_ud_param *u, int size, int len)
{
	MUST_EQ(u->private_data_len, size);
	MUST(!memcmp(u->private_data, bytes, (size_t)len));
	for (int i = len; i < size; i++)
		MUST_EQ(((const uint8_t *)u->private_data)[i], 0);
	return true;
}

/* A lookup that is answered: address, QPN and Q_Key of the service; then a message there. */
static bool lookup_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(bytes, 30);
	struct ibv_qp_init_attr init;
	static char buf[2][128];
	struct rdma_cm_event *e;
	struct rdma_ud_param *u;
	struct ibv_mr *mr[2];
	struct ibv_qp_attr a;
	union ibv_gid gid;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	bytes_fill(1);
	MUST(link_open(l, family, RDMA_PS_UDP));
	MUST_EQ(l->id[0]->qp_type, IBV_QPT_UD);
	/* "If the QP is unconnected, it will be ready to post sends." */
	MUST_EQ(ibv_query_qp(l->id[0]->qp, &a, IBV_QP_STATE | IBV_QP_QKEY, &init), 0);
	MUST_EQ(a.qp_state, IBV_QPS_RTS);
	MUST_EQ(a.qkey, RDMA_UDP_QKEY);
	MUST(link_request(l, &param));
	MUST_EQ(l->request->status, 0);
	MUST(data_is(&l->request->param.ud, REQ_BYTES, 30));
	MUST_EQ(l->id[1]->qp_type, IBV_QPT_UD);
	MUST_EQ(l->id[1]->ps, RDMA_PS_UDP);
	MUST(l->id[1]->verbs == l->id[0]->verbs);
	MUST_EQ(rdma_get_src_port(l->id[1]), rdma_get_src_port(l->listen));
	MUST_EQ(rdma_get_dst_port(l->id[1]), rdma_get_src_port(l->id[0]));
	MUST_EQ(create_qp(l->id[1]), 0);
	l->own_qp = true;
	for (int i = 0; i < 2; i++)
		MUST(mr[i] = rdma_reg_msgs(l->id[i], buf[i], 128));
	MUST_EQ(rdma_post_recv(l->id[1], (void *)5, buf[1], 128, mr[1]), 0);
	bytes_fill(2);
	param = (struct rdma_conn_param){ .private_data = bytes, .private_data_len = 40 };
	MUST(link_accept(l, &param));
	MUST(e = next_event(l->ch[0]));
	MUST_EQ(e->event, RDMA_CM_EVENT_ESTABLISHED);
	MUST(e->id == l->id[0] && !e->status);
	u = &e->param.ud;
	MUST(data_is(u, REP_BYTES, 40));
	MUST_EQ(u->qp_num, l->id[1]->qp->qp_num);
	MUST_EQ(u->qkey, RDMA_UDP_QKEY);
	MUST_EQ(u->ah_attr.is_global, 1);
	MUST_EQ(u->ah_attr.port_num, 1);
	MUST_EQ(ibv_query_gid(l->id[0]->verbs, 1, u->ah_attr.grh.sgid_index, &gid), 0);
	MUST(!memcmp(&gid, &u->ah_attr.grh.dgid, 16)); /* it is our own address */
	MUST(ah = ibv_create_ah(l->id[0]->pd, &u->ah_attr));
	strcpy(buf[0], "datagram");
	MUST_EQ(rdma_post_ud_send(l->id[0], (void *)6, buf[0], 20, mr[0], IBV_SEND_SIGNALED, ah,
				  u->qp_num),
		0);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST_EQ(rdma_get_send_comp(l->id[0], &wc), 1);
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, 6);
	MUST_EQ(rdma_get_recv_comp(l->id[1], &wc), 1);
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, 5);
	MUST_EQ(wc.byte_len, 60);
	MUST_EQ(wc.src_qp, l->id[0]->qp->qp_num);
	MUST(wc.wc_flags & IBV_WC_GRH);
	MUST(!strcmp(buf[1] + 40, "datagram"));
	MUST_EQ(ibv_destroy_ah(ah), 0);
	for (int i = 0; i < 2; i++)
		MUST_EQ(rdma_dereg_mr(mr[i]), 0);
	/* "No actual connection is formed": the passive end hears no more. */
	MUST(no_event(l->ch[0]) && no_event(l->ch[1]));
	return true;
}
ON_LINK(lookup, lookup_body)

static bool full_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(bytes, REQ_BYTES);
	struct rdma_cm_event *e;

	bytes_fill(3);
	MUST(link_open(l, family, RDMA_PS_UDP) && link_request(l, &param));
	MUST(data_is(&l->request->param.ud, REQ_BYTES, REQ_BYTES));
	param.private_data_len = REP_BYTES;
	MUST(link_accept(l, &param));
	MUST((e = next_event(l->ch[0])) && e->event == RDMA_CM_EVENT_ESTABLISHED);
	MUST(data_is(&e->param.ud, REP_BYTES, REP_BYTES));
	MUST_EQ(rdma_ack_cm_event(e), 0);
	return true;
}
ON_LINK(private_data_of_full_length, full_body)

static bool long_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(bytes, REQ_BYTES + 1);

	MUST(link_open(l, family, RDMA_PS_UDP));
	MUST_ERR(rdma_connect(l->id[0], &param), EINVAL);
	param.private_data_len = REQ_BYTES;
	MUST(link_request(l, &param));
	param.private_data_len = REP_BYTES + 1;
	MUST_EQ(create_qp(l->id[1]), 0);
	MUST_ERR(rdma_accept(l->id[1], &param), EINVAL);
	return true;
}
ON_LINK(private_data_too_long, long_body)

/* No parameters: no data. */
static bool bare_body(struct link *l, int family)
{
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_event *e;

	memset(bytes, 0, sizeof(bytes));
	MUST(link_open(l, family, RDMA_PS_UDP) && link_request(l, NULL));
	MUST(data_is(&l->request->param.ud, REQ_BYTES, 0));
	MUST(link_accept(l, &param));
	MUST((e = next_event(l->ch[0])) && e->event == RDMA_CM_EVENT_ESTABLISHED);
	MUST(data_is(&e->param.ud, REP_BYTES, 0));
	MUST_EQ(rdma_ack_cm_event(e), 0);
	return true;
}
ON_LINK(no_data, bare_body)

/* "the status result carried in the IB CM SIDR REP message": 2 is "rejected" */
static bool reject_body(struct link *l, int family)
{
	struct rdma_cm_event *e;

	bytes_fill(4);
	MUST(link_open(l, family, RDMA_PS_UDP) && link_request(l, NULL));
	MUST_EQ(rdma_reject(l->id[1], bytes, 21), 0);
	MUST(e = next_event(l->ch[0]));
	MUST_EQ(e->event, RDMA_CM_EVENT_UNREACHABLE);
	MUST(e->id == l->id[0]);
	MUST_EQ(e->status, 2);
	MUST(data_is(&e->param.ud, REP_BYTES, 21));
	MUST_EQ(rdma_ack_cm_event(e), 0);
	return no_event(l->ch[0]);
}
ON_LINK(reject, reject_body)

/* The service does not exist: 1 is "not supported". */
static bool nobody_body(struct link *l, int family)
{
	MUST(link_open(l, family, RDMA_PS_UDP));
	MUST_EQ(rdma_destroy_id(l->listen), 0);
	l->listen = NULL;
	MUST_EQ(rdma_connect(l->id[0], NULL), 0);
	return take_status(l->ch[0], l->id[0], RDMA_CM_EVENT_UNREACHABLE, 1);
}
ON_LINK(nobody, nobody_body)

/* The passive id goes without an answer. */
static bool dropped_body(struct link *l, int family)
{
	MUST(link_open(l, family, RDMA_PS_UDP) && link_request(l, NULL));
	MUST_EQ(rdma_ack_cm_event(l->request), 0);
	l->request = NULL;
	MUST(link_drop(l, 1));
	return take_status(l->ch[0], l->id[0], RDMA_CM_EVENT_UNREACHABLE, 2);
}
ON_LINK(dropped, dropped_body)

/* The service's QP need not be the id's: its number is given. */
static bool external_body(struct link *l, int family)
{
	struct rdma_conn_param param = { .qp_num = 0x1234 };
	struct rdma_cm_event *e;

	l->no_qp = true;
	MUST(link_open(l, family, RDMA_PS_UDP) && link_request(l, NULL));
	MUST(link_accept(l, &param));
	MUST((e = next_event(l->ch[0])) && e->event == RDMA_CM_EVENT_ESTABLISHED);
	MUST_EQ(e->param.ud.qp_num, 0x1234);
	MUST_EQ(e->param.ud.qkey, RDMA_UDP_QKEY);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	return true;
}
ON_LINK(external, external_body)

/* Several lookups of one listener at a time, answered in the reverse order. */
static bool several(int family)
{
	enum { N = 10 };
	struct rdma_event_channel *ch[2] = { rdma_create_event_channel(),
					     rdma_create_event_channel() };
	struct rdma_cm_id *listen, *active[N], *passive[N];
	struct rdma_cm_event *e;
	uint16_t port;

	MUST(ch[0] && ch[1] && (listen = listener(ch[1], RDMA_PS_UDP, own(family, 0), N)));
	port = ntohs(rdma_get_src_port(listen));
	for (int i = 0; i < N; i++) {
		struct rdma_conn_param param = { .private_data = &i,
						 .private_data_len = sizeof(i) };

		MUST(active[i] = resolved(ch[0], RDMA_PS_UDP, own(family, port)));
		MUST_EQ(rdma_connect(active[i], &param), 0);
		MUST((e = next_event(ch[1])) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
		MUST(!memcmp(e->param.ud.private_data, &i, sizeof(i)));
		passive[i] = e->id;
		MUST_EQ(rdma_ack_cm_event(e), 0);
	}
	for (int i = N - 1; i >= 0; i--) {
		struct rdma_conn_param param = { .qp_num = 100 + (uint32_t)i };

		MUST_EQ(rdma_accept(passive[i], &param), 0);
		MUST((e = next_event(ch[0])) && e->event == RDMA_CM_EVENT_ESTABLISHED);
		MUST(e->id == active[i]);
		MUST_EQ(e->param.ud.qp_num, 100 + i);
		MUST_EQ(rdma_ack_cm_event(e), 0);
	}
	for (int i = 0; i < N; i++)
		MUST(!rdma_destroy_id(active[i]) && !rdma_destroy_id(passive[i]));
	MUST_EQ(rdma_destroy_id(listen), 0);
	for (int i = 0; i < 2; i++)
		rdma_destroy_event_channel(ch[i]);
	return true;
}
BOTH(several)

const struct test_case man_cases[] = {
	CASE(lookup_v4),
	CASE(lookup_v6),
	CASE(private_data_of_full_length_v4),
	CASE(private_data_of_full_length_v6),
	CASE(private_data_too_long_v4),
	CASE(private_data_too_long_v6),
	CASE(no_data_v4),
	CASE(no_data_v6),
	CASE(reject_v4),
	CASE(reject_v6),
	CASE(nobody_v4),
	CASE(nobody_v6),
	CASE(dropped_v4),
	CASE(dropped_v6),
	CASE(external_v4),
	CASE(external_v6),
	CASE(several_v4),
	CASE(several_v6),
	{ 0 },
};
