/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/*
 * Synchronous operation (rdma_create_id(3) without a channel), rdma_create_ep(3),
 * rdma_get_request(3), rdma_destroy_ep(3), and the inline verbs of <rdma/rdma_verbs.h>.
 */
#include "man.h"

#define BYTES 4096

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){ .qp_type = IBV_QPT_RC,
					  .sq_sig_all = 1,
					  .cap = { QUEUE, QUEUE, 2, 2, 32 } };
}

/* The client: in a thread, as its calls block. */
struct client {
	pthread_t thread;
	int family;
	uint16_t port;
	bool (*run)(struct client *c);
	bool good;
	uint64_t addr;
	uint32_t rkey;
};

static void *client_thread(void *arg)
{
	struct client *c = arg;

	c->good = c->run(c);
	return NULL;
}

static bool client_begins(struct client *c)
{
	return !pthread_create(&c->thread, NULL, client_thread, c);
}

static bool client_ends(struct client *c)
{
	return !pthread_join(c->thread, NULL) && c->good;
}

/* ---- ids without a channel ---- */

/* "The event will be returned to the user through the rdma_cm_id structure" */
static bool plain_client(struct client *c)
{
	union address to = own(c->family, c->port);
	struct rdma_conn_param param = some_param("hello", 6);
	struct rdma_cm_id *id;

	MUST_EQ(rdma_create_id(NULL, &id, c, RDMA_PS_TCP), 0);
	MUST(id->channel && id->context == c && !id->event);
	MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
	MUST(id->event && id->event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
	MUST(id->verbs);
	MUST_EQ(rdma_resolve_route(id, WAIT_MS), 0);
	MUST_EQ(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	MUST_EQ(create_qp(id), 0);
	MUST_EQ(rdma_connect(id, &param), 0);
	MUST_EQ(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	MUST(!strcmp(id->event->param.conn.private_data, "welcome"));
	MUST_EQ(rdma_disconnect(id), 0);
	MUST_EQ(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	MUST_EQ(rdma_destroy_id(id), 0);
	return true;
}

static bool plain(int family)
{
	struct rdma_conn_param param = some_param("welcome", 8);
	union address at = own(family, 0);
	struct rdma_cm_id *listen, *id;
	struct client c = { .family = family, .run = plain_client };

	MUST_EQ(rdma_create_id(NULL, &listen, NULL, RDMA_PS_TCP), 0);
	MUST_EQ(rdma_bind_addr(listen, &at.sa), 0);
	MUST_EQ(rdma_listen(listen, 2), 0);
	c.port = ntohs(rdma_get_src_port(listen));
	MUST(client_begins(&c));
	MUST_EQ(rdma_get_request(listen, &id), 0);
	MUST(id != listen && id->verbs && id->channel && id->channel != listen->channel);
	MUST(id->event && id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	MUST(!strcmp(id->event->param.conn.private_data, "hello"));
	MUST_EQ(id->event->param.conn.retry_count, 6);
	MUST(!id->qp); /* no attributes were given */
	MUST_EQ(create_qp(id), 0);
	MUST_EQ(rdma_accept(id, &param), 0);
	MUST(id->event && id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	MUST_EQ(rdma_disconnect(id), 0); /* waits for the peer's, or is the first */
	MUST(client_ends(&c));
	rdma_destroy_qp(id);
	MUST_EQ(rdma_destroy_id(id), 0);
	MUST_EQ(rdma_destroy_id(listen), 0);
	return true;
}
BOTH(plain)

/* Failed calls set errno. */
static bool failures(int family)
{
	union address to = other(family, ABSENT, 7471);
	struct rdma_cm_id *id, *listen, *none;
	struct rdma_event_channel *ch;

	MUST_EQ(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	MUST_ERR(rdma_resolve_addr(id, NULL, &to.sa, 300), ETIMEDOUT);
	MUST_EQ(id->event->event, RDMA_CM_EVENT_ADDR_ERROR);
	/* no listener */
	MUST(listen = listener(ch = rdma_create_event_channel(), RDMA_PS_TCP, own(family, 0), 1));
	to = own(family, ntohs(rdma_get_src_port(listen)));
	/* "may only be used on listening rdma_cm_id's operating synchronously" */
	MUST_ERR(rdma_get_request(listen, &none), EINVAL);
	MUST_EQ(rdma_destroy_id(listen), 0);
	rdma_destroy_event_channel(ch);
	MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
	MUST_EQ(rdma_resolve_route(id, WAIT_MS), 0);
	MUST_EQ(create_qp(id), 0);
	MUST_ERR(rdma_connect(id, NULL), ECONNREFUSED);
	MUST_EQ(id->event->event, RDMA_CM_EVENT_REJECTED);
	MUST_EQ(id->event->status, 8);
	rdma_destroy_qp(id);
	MUST_EQ(rdma_destroy_id(id), 0);
	return true;
}
BOTH(failures)

/* ---- end points ---- */

/* A route as ibacm gives it: rdma_create_ep() uses it, and leaves no event of it. */
static bool give_route(struct rdma_addrinfo *ai)
{
	const struct sockaddr_in *to = (const struct sockaddr_in *)ai->ai_dst_addr;
	struct ibv_path_data *data = calloc(1, sizeof(*data));
	struct ibv_path_record *path;

	MUST(data);
	path = &data->path;
	data->flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	path->dgid.raw[10] = path->dgid.raw[11] = 0xff;
	memcpy(path->dgid.raw + 12, &to->sin_addr, 4);
	path->sgid = path->dgid;
	path->reversible_numpath = 0x81;
	path->pkey = 0xffff;
	path->mtu = 0x80 | IBV_MTU_1024;
	path->rate = 0x83;
	path->packetlifetime = 0x80 | 16;
	path->flowlabel_hoplimit = htonl(64);
	ai->ai_route = data;
	ai->ai_route_len = sizeof(*data);
	return true;
}

static bool ep_client(struct client *c)
{
	struct ibv_qp_init_attr a = qp_attr();
	static char buf[BYTES];
	struct rdma_addrinfo *ai;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	MUST(ai = own_info(c->family, c->port, 0, RDMA_PS_TCP, 0));
	if (c->family == AF_INET)
		MUST(give_route(ai));
	MUST_EQ(rdma_create_ep(&id, ai, NULL, &a), 0);
	rdma_freeaddrinfo(ai);
	MUST(id->qp && id->verbs && id->pd && id->send_cq && id->recv_cq_channel);
	MUST_EQ(qp_state_now(id->qp), IBV_QPS_INIT);
	MUST_EQ(id->qp_type, IBV_QPT_RC);
	MUST_EQ(id->ps, RDMA_PS_TCP);
	MUST_EQ(ntohs(rdma_get_dst_port(id)), c->port);
	MUST(mr = rdma_reg_write(id, buf, BYTES));
	MUST_EQ(rdma_post_recv(id, buf, buf, 100, mr), 0);
	MUST_EQ(rdma_connect(id, NULL), 0);
	/* a message out of the work request itself, without a memory region */
	strcpy(buf + 200, "inline");
	MUST_EQ(rdma_post_send(id, (void *)7, buf + 200, 20, NULL, IBV_SEND_INLINE), 0);
	MUST_EQ(rdma_get_send_comp(id, &wc), 1);
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, 7);
	/* the server's region, as it tells */
	MUST_EQ(rdma_get_recv_comp(id, &wc), 1);
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.byte_len, 12);
	memcpy(&c->addr, buf, 8);
	memcpy(&c->rkey, buf + 8, 4);
	strcpy(buf + 300, "written");
	MUST_EQ(rdma_post_write(id, (void *)8, buf + 300, 20, mr, 0, c->addr, c->rkey), 0);
	MUST_EQ(rdma_get_send_comp(id, &wc), 1);
	MUST_EQ(wc.opcode, IBV_WC_RDMA_WRITE);
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(rdma_post_read(id, (void *)9, buf + 400, 20, mr, 0, c->addr, c->rkey), 0);
	MUST_EQ(rdma_get_send_comp(id, &wc), 1);
	MUST_EQ(wc.opcode, IBV_WC_RDMA_READ);
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST(!strcmp(buf + 400, "written"));
	{
		struct ibv_sge sge[2] = { { (uintptr_t)buf + 300, 10, mr->lkey },
					  { (uintptr_t)buf + 400, 6, mr->lkey } };

		MUST_EQ(rdma_post_sendv(id, (void *)10, sge, 2, IBV_SEND_SIGNALED), 0);
		MUST_EQ(rdma_get_send_comp(id, &wc), 1);
		MUST_EQ(wc.wr_id, 10);
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		sge[0].length = sge[1].length = 4;
		MUST_EQ(rdma_post_writev(id, NULL, sge, 2, 0, c->addr + 100, c->rkey), 0);
		MUST_EQ(rdma_get_send_comp(id, &wc), 1);
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(rdma_post_readv(id, NULL, sge, 2, 0, c->addr + 100, c->rkey), 0);
		MUST_EQ(rdma_get_send_comp(id, &wc), 1);
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
	}
	MUST(!memcmp(buf + 300, "writ", 4) && !memcmp(buf + 400, "writ", 4));
	MUST_EQ(rdma_disconnect(id), 0);
	MUST_EQ(rdma_dereg_mr(mr), 0);
	rdma_destroy_ep(id);
	return true;
}

static bool end_points(int family)
{
	struct ibv_qp_init_attr a = qp_attr();
	struct client c = { .family = family, .run = ep_client };
	struct rdma_cm_id *listen, *id;
	struct rdma_addrinfo *ai;
	static char buf[BYTES];
	struct ibv_sge sge[2];
	struct ibv_mr *mr, *msgs;
	struct ibv_wc wc;

	MUST(ai = own_info(family, 0, RAI_PASSIVE, RDMA_PS_TCP, 0));
	MUST_EQ(rdma_create_ep(&listen, ai, NULL, &a), 0);
	rdma_freeaddrinfo(ai);
	MUST(!listen->qp);
	c.port = ntohs(rdma_get_src_port(listen));
	MUST(c.port);
	MUST_EQ(rdma_listen(listen, 0), 0);
	MUST(client_begins(&c));
	MUST_EQ(rdma_get_request(listen, &id), 0);
	/* "the returned rdma_cm_id will also reference an allocated QP" */
	MUST(id->qp && id->send_cq && id->recv_cq);
	MUST_EQ(qp_state_now(id->qp), IBV_QPS_INIT);
	MUST(msgs = rdma_reg_msgs(id, buf, 1024));
	MUST(mr = ibv_reg_mr(id->pd, buf + 1024, 1024,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				     IBV_ACCESS_REMOTE_WRITE));
	MUST_EQ(rdma_post_recv(id, (void *)1, buf, 50, msgs), 0);
	sge[0] = (struct ibv_sge){ (uintptr_t)buf + 100, 8, msgs->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)buf + 200, 50, msgs->lkey };
	MUST_EQ(rdma_post_recvv(id, (void *)2, sge, 2), 0);
	MUST_EQ(rdma_accept(id, NULL), 0);
	MUST_EQ(rdma_get_recv_comp(id, &wc), 1);
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, 1);
	MUST_EQ(wc.byte_len, 20);
	MUST(!strcmp(buf, "inline"));
	memcpy(buf, &(uint64_t){ (uintptr_t)buf + 1024 }, 8);
	memcpy(buf + 8, &mr->rkey, 4);
	MUST_EQ(rdma_post_send(id, NULL, buf, 12, msgs, 0), 0);
	MUST_EQ(rdma_get_send_comp(id, &wc), 1);
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(rdma_get_recv_comp(id, &wc), 1);
	MUST_EQ(wc.wr_id, 2);
	MUST_EQ(wc.byte_len, 16);
	MUST(!memcmp(buf + 100, "written", 8) && !memcmp(buf + 202, "writte", 6));
	/*
	 * The client ends it: that event follows its last READ. A QP that is disconnected before
	 * answers nothing any more.
	 */
	MUST(readable(id->channel->fd, WAIT_MS));
	MUST_EQ(rdma_disconnect(id), 0);
	MUST_EQ(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
	MUST(client_ends(&c));
	MUST_EQ(rdma_dereg_mr(mr), 0);
	MUST_EQ(rdma_dereg_mr(msgs), 0);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listen);
	return true;
}
BOTH(end_points)

/* Without QP attributes there is no QP; one can be made. A PD that is given is the QP's. */
static bool without_qp(int family)
{
	struct ibv_qp_init_attr a = qp_attr();
	struct rdma_addrinfo *ai;
	struct rdma_cm_id *id, *with;
	struct ibv_pd *pd;

	MUST(ai = own_info(family, 7471, 0, RDMA_PS_TCP, 0));
	MUST_EQ(rdma_create_ep(&id, ai, NULL, NULL), 0);
	MUST(!id->qp && id->verbs);
	MUST_EQ(create_qp(id), 0);
	MUST(pd = ibv_alloc_pd(id->verbs));
	MUST_EQ(rdma_create_ep(&with, ai, pd, &a), 0);
	MUST(with->qp->pd == pd && with->pd == pd);
	rdma_freeaddrinfo(ai);
	rdma_destroy_ep(with);
	rdma_destroy_ep(id);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}
BOTH(without_qp)

/* An end point becomes asynchronous by rdma_migrate_id(). */
static bool migrated(int family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct ibv_qp_init_attr a = qp_attr();
	struct rdma_addrinfo *ai;
	struct rdma_cm_id *listen, *id;
	struct rdma_cm_event *e;

	MUST(ch && (ai = own_info(family, 0, RAI_PASSIVE, RDMA_PS_TCP, 0)));
	MUST_EQ(rdma_create_ep(&listen, ai, NULL, NULL), 0);
	rdma_freeaddrinfo(ai);
	MUST_EQ(rdma_migrate_id(listen, ch), 0);
	MUST_EQ(rdma_listen(listen, 1), 0);
	MUST(ai = own_info(family, ntohs(rdma_get_src_port(listen)), 0, RDMA_PS_TCP, 0));
	MUST_EQ(rdma_create_ep(&id, ai, NULL, &a), 0);
	rdma_freeaddrinfo(ai);
	MUST_EQ(rdma_migrate_id(id, ch), 0);
	MUST_EQ(rdma_connect(id, NULL), 0);
	MUST((e = next_event(ch)) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	MUST(e->listen_id == listen);
	{
		struct rdma_cm_id *passive = e->id;

		MUST_EQ(rdma_ack_cm_event(e), 0);
		MUST_EQ(rdma_reject(passive, "no", 2), 0);
		rdma_destroy_ep(passive);
	}
	MUST(take_status(ch, id, RDMA_CM_EVENT_REJECTED, 28));
	rdma_destroy_ep(id);
	rdma_destroy_ep(listen);
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(migrated)

/* What an end point is to say before the program's data, more than a REQ has room for. */
static bool too_much_to_say(int family)
{
	static const size_t bytes[] = { 57, 255, 256, 511, 4096, 1 << 20 };
	struct rdma_addrinfo *ai;
	struct rdma_cm_id *id;

	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		struct ibv_qp_init_attr a = qp_attr();

		MUST(ai = own_info(family, 7999, 0, RDMA_PS_TCP, 0));
		MUST(ai->ai_connect = calloc(1, bytes[i]));
		ai->ai_connect_len = bytes[i];
		MUST_EQ(rdma_create_ep(&id, ai, NULL, &a), 0);
		rdma_freeaddrinfo(ai);
		errno = 0;
		MUST_EQ(rdma_connect(id, NULL), -1);
		MUST_EQ(errno, EINVAL);
		rdma_destroy_ep(id);
	}
	return true;
}
BOTH(too_much_to_say)

const struct test_case man_cases[] = {
	CASE(plain_v4),
	CASE(plain_v6),
	CASE(failures_v4),
	CASE(failures_v6),
	CASE(end_points_v4),
	CASE(end_points_v6),
	CASE(without_qp_v4),
	CASE(without_qp_v6),
	CASE(migrated_v4),
	CASE(migrated_v6),
	CASE(too_much_to_say_v4),
	CASE(too_much_to_say_v6),
	{ 0 },
};
