/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoints: an id with its address, route and QP in one call. */
#include <rdma/rdma_verbs.h>
#include <stdlib.h>

#include "conn.h"

#define RESOLVE_MS 2000

static void ep_forget_qp_attr(struct rdmacm_id *id)
{
	free(id->qp_init_attr);
	id->qp_init_attr = NULL;
}

/* Sets up a listener: rdma_get_request() creates the QPs of its requests. */
static int ep_listener(struct rdmacm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		       const struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->pub, res->ai_src_addr))
		return -errno;
	id->pub.pd = pd ? pd : id->pub.pd;
	if (!attr)
		return 0;
	id->qp_init_attr = malloc(sizeof(*attr));
	if (!id->qp_init_attr)
		return -ENOMEM;
	*id->qp_init_attr = *attr;
	id->qp_init_attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return 0;
}

static int ep_set_data(struct rdmacm_id *id, const struct rdma_addrinfo *res)
{
	if (!res->ai_connect_len)
		return 0;
	id->connect = malloc(res->ai_connect_len);
	if (!id->connect)
		return -ENOMEM;
	memcpy(id->connect, res->ai_connect, res->ai_connect_len);
	id->connect_len = res->ai_connect_len;
	return 0;
}

static int ep_active(struct rdmacm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		     struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(&id->pub, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS))
		return -errno;
	if (res->ai_route_len ?
		    rdma_set_option(&id->pub, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route,
				    res->ai_route_len) :
		    rdma_resolve_route(&id->pub, RESOLVE_MS))
		return -errno;
	if (attr) {
		attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
		if (rdma_create_qp(&id->pub, pd, attr))
			return -errno;
	}
	return ep_set_data(id, res);
}

EXPORT int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *attr)
{
	CANCEL_HELD;
	struct rdma_cm_id *id;
	int err = id_make(NULL, &id, NULL, (enum rdma_port_space)res->ai_port_space,
			  (enum ibv_qp_type)res->ai_qp_type);

	if (err)
		return rdmacm_report(err);
	if (res->ai_flags & RAI_PASSIVE)
		err = ep_listener(to_id(id), res, pd, attr);
	else
		err = ep_active(to_id(id), res, pd, attr);
	if (err) {
		rdma_destroy_ep(id);
		return rdmacm_report(err);
	}
	*out = id;
	return 0;
}

EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	CANCEL_HELD;
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	ep_forget_qp_attr(to_id(id));
	rdma_destroy_id(id);
}

/* The listener keeps an event that is not a request, or whose QP fails. */
static int ep_take_request(struct rdmacm_id *listener, struct rdma_cm_event *ev)
{
	struct ibv_qp_init_attr attr;

	if (ev->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	if (ev->status)
		return ev->status < 0 ? ev->status : -ev->status;
	if (ev->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return -EINVAL;
	if (!listener->qp_init_attr)
		return 0;
	attr = *listener->qp_init_attr;
	return rdma_create_qp(ev->id, listener->pub.pd, &attr) ? -errno : 0;
}

EXPORT int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	CANCEL_HELD;
	struct rdmacm_id *listener = to_id(listen);
	struct rdma_cm_event *ev;
	int err = id_check(listener);

	if (!err && !listener->sync)
		err = -EINVAL;
	if (err)
		return rdmacm_report(err);
	if (listen->event) {
		rdma_ack_cm_event(listen->event);
		listen->event = NULL;
	}
	cancel_point();
	err = channel_get(listen->channel, &ev);
	if (!err) {
		err = ep_take_request(listener, ev);
		*(err ? &listen->event : &ev->id->event) = ev;
	}
	if (!err)
		*id = ev->id;
	return rdmacm_report(err);
}
