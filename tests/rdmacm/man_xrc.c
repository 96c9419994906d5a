/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * XRC by end points, as rdma_xclient(1) and rdma_xserver(1) do it, and AF_IB without IB ports.
 * Soft-RoCE has no XRC: where the device has none, creating an end point fails.
 */
#include <infiniband/ib.h>

#include "man.h"

static bool has_xrc(void)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	struct ibv_device_attr a;
	bool has = list && list[0] && !ibv_query_device(list[0], &a) &&
		   (a.device_cap_flags & IBV_DEVICE_XRC);

	rdma_free_devices(list);
	return has;
}

static struct rdma_addrinfo *info(int flags, int type, uint16_t port)
{
	return own_info(AF_INET, port, flags, RDMA_PS_IB, type);
}

/* The types of both halves. */
static bool info_types(void)
{
	static const int type[] = { IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV };

	for (int i = 0; i < 2; i++) {
		struct rdma_addrinfo *res = info(i ? RAI_PASSIVE : 0, type[i], 7471);

		MUST(res);
		MUST_EQ(res->ai_qp_type, type[i]);
		MUST_EQ(res->ai_port_space, RDMA_PS_IB);
		rdma_freeaddrinfo(res);
	}
	return true;
}

struct sender {
	pthread_t thread;
	uint16_t port;
	uint32_t srqn;
	bool good;
};

/* The sender learns the SRQ's number from the reply's private data. */
static bool send_one(struct sender *s)
{
	struct ibv_qp_init_attr a = { .qp_type = IBV_QPT_XRC_SEND,
				      .sq_sig_all = 1,
				      .cap = { 4, 0, 1, 0, 0 } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct rdma_addrinfo *ai = info(0, IBV_QPT_XRC_SEND, s->port);
	static char buf[16] = "extended";
	struct rdma_cm_id *id;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	MUST(ai);
	MUST_EQ(rdma_create_ep(&id, ai, NULL, &a), 0);
	rdma_freeaddrinfo(ai);
	MUST_EQ(id->qp_type, IBV_QPT_XRC_SEND);
	MUST(id->qp && id->send_cq && !id->recv_cq);
	MUST(mr = rdma_reg_msgs(id, buf, 16));
	MUST_EQ(rdma_connect(id, NULL), 0);
	MUST_EQ(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	memcpy(&s->srqn, id->event->param.conn.private_data, 4);
	sge = (struct ibv_sge){ (uintptr_t)buf, 16, mr->lkey };
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.qp_type.xrc.remote_srqn = s->srqn;
	MUST_EQ(ibv_post_send(id->qp, &wr, &bad), 0);
	MUST_EQ(rdma_get_send_comp(id, &wc), 1);
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(rdma_disconnect(id), 0);
	MUST_EQ(rdma_dereg_mr(mr), 0);
	rdma_destroy_ep(id);
	return true;
}

static void *sender_thread(void *arg)
{
	struct sender *s = arg;

	s->good = send_one(s);
	return NULL;
}

static bool one_message(void)
{
	struct ibv_qp_init_attr a = { .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_srq_init_attr_ex srq = { .attr = { .max_wr = 8, .max_sge = 1 },
					    .comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
					    .srq_type = IBV_SRQT_XRC };
	struct rdma_cm_id *listen, *owner, *id;
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct sender s = { .good = false };
	struct rdma_addrinfo *ai;
	static char buf[16];
	struct ibv_mr *mr;
	struct ibv_wc wc;
	uint32_t srqn;

	MUST(ai = info(RAI_PASSIVE, IBV_QPT_XRC_RECV, 0));
	if (!has_xrc()) {
		MUST(rdma_create_ep(&listen, ai, NULL, &a) ||
		     !rdma_create_ep(&owner, ai, NULL, NULL));
		return true;
	}
	/* The SRQ is an id's that is bound to the device. */
	MUST_EQ(rdma_create_ep(&owner, ai, NULL, NULL), 0);
	MUST_EQ(rdma_create_srq_ex(owner, &srq), 0);
	MUST(owner->srq && owner->recv_cq && owner->recv_cq_channel);
	MUST_EQ(ibv_get_srq_num(owner->srq, &srqn), 0);
	MUST(mr = rdma_reg_msgs(owner, buf, 16));
	MUST_EQ(rdma_post_recv(owner, buf, buf, 16, mr), 0);
	MUST_EQ(rdma_create_ep(&listen, ai, NULL, &a), 0);
	rdma_freeaddrinfo(ai);
	MUST_EQ(rdma_listen(listen, 1), 0);
	s.port = ntohs(rdma_get_src_port(listen));
	MUST_EQ(pthread_create(&s.thread, NULL, sender_thread, &s), 0);
	MUST_EQ(rdma_get_request(listen, &id), 0);
	MUST(id->qp && id->qp->qp_type == IBV_QPT_XRC_RECV);
	param.private_data = &srqn;
	param.private_data_len = 4;
	MUST_EQ(rdma_accept(id, &param), 0);
	MUST_EQ(rdma_get_recv_comp(owner, &wc), 1);
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST(wc.wr_id == (uintptr_t)buf);
	MUST(!strcmp(buf, "extended"));
	MUST_EQ(rdma_disconnect(id), 0);
	MUST_EQ(pthread_join(s.thread, NULL), 0);
	MUST(s.good);
	MUST_EQ(rdma_dereg_mr(mr), 0);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listen);
	rdma_destroy_ep(owner);
	return true;
}

/* A target has no PD; a given one must still be of the id's device. */
static bool foreign_pd(void)
{
	struct ibv_qp_init_attr a = { .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_context *context;
	struct rdma_addrinfo *ai;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;

	if (!has_xrc())
		return true;
	MUST(ai = info(RAI_PASSIVE, IBV_QPT_XRC_RECV, 0));
	MUST_EQ(rdma_create_ep(&id, ai, NULL, NULL), 0);
	rdma_freeaddrinfo(ai);
	MUST((context = ibv_open_device(id->verbs->device)) && (pd = ibv_alloc_pd(context)));
	MUST_ERR(rdma_create_qp(id, pd, &a), EINVAL);
	MUST(!id->qp);
	MUST_EQ(rdma_create_qp(id, NULL, &a), 0);
	MUST(id->qp && id->qp->qp_type == IBV_QPT_XRC_RECV);
	rdma_destroy_ep(id);
	MUST(!ibv_dealloc_pd(pd) && !ibv_close_device(context));
	return true;
}

/* ---- AF_IB: RoCE has no such addresses ---- */

static bool ib_address(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_ib ib = { .sib_family = AF_IB };
	struct rdma_cm_id *id;
	int err;

	MUST(ch);
	ib.sib_addr.sib_raw[0] = 0xfe;
	ib.sib_addr.sib_raw[1] = 0x80;
	ib.sib_addr.sib_raw[15] = 1;
	ib.sib_sid = htobe64(RDMA_IB_IP_PS_TCP | 7471);
	ib.sib_sid_mask = htobe64(~0ull);
	MUST_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	errno = 0;
	MUST_EQ(rdma_bind_addr(id, (struct sockaddr *)&ib), -1);
	err = errno;
	printf("# bind: errno %d\n", err);
	errno = 0;
	MUST_EQ(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ib, 1000), -1);
	printf("# resolve: errno %d\n", errno);
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return true;
}

const struct test_case man_cases[] = {
	CASE(info_types), CASE(one_message), CASE(foreign_pd), CASE(ib_address), { 0 },
};
