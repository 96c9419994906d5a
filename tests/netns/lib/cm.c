/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cm.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "ctl.h"

struct sockaddr *cm_address(const char *text, uint16_t port)
{
	static __thread struct sockaddr_storage ss;
	struct sockaddr_in *sin = (struct sockaddr_in *)&ss;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&ss;

	memset(&ss, 0, sizeof(ss));
	if (inet_pton(AF_INET, text, &sin->sin_addr) == 1) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
	} else {
		must(inet_pton(AF_INET6, text, &sin6->sin6_addr) == 1, "no address: %s", text);
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(port);
	}
	return (struct sockaddr *)&ss;
}

struct rdma_cm_event *cm_expect_status(struct rdma_event_channel *ch, enum rdma_cm_event_type type,
				       int status)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };
	struct rdma_cm_event *ev;

	must(poll(&p, 1, WAIT_MS) == 1, "no event, instead of %s", rdma_event_str(type));
	must(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event: %s", strerror(errno));
	must(ev->event == type && ev->status == status, "%s with %d, instead of %s with %d",
	     rdma_event_str(ev->event), ev->status, rdma_event_str(type), status);
	return ev;
}

struct rdma_cm_id *cm_pass(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev = cm_expect_status(ch, type, 0);
	struct rdma_cm_id *id = ev->id;

	must(!rdma_ack_cm_event(ev), "rdma_ack_cm_event");
	return id;
}

struct rdma_event_channel *cm_channel(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();

	must(ch, "rdma_create_event_channel: %s", strerror(errno));
	return ch;
}

struct rdma_cm_id *cm_listener(struct rdma_event_channel *ch, const char *text, uint16_t port,
			       enum rdma_port_space ps, int backlog)
{
	struct rdma_cm_id *id;

	must(!rdma_create_id(ch, &id, NULL, ps), "rdma_create_id: %s", strerror(errno));
	must(!rdma_bind_addr(id, cm_address(text, port)), "rdma_bind_addr: %s", strerror(errno));
	must(!rdma_listen(id, backlog), "rdma_listen: %s", strerror(errno));
	return id;
}

struct rdma_cm_id *cm_resolved(struct rdma_event_channel *ch, const char *text, uint16_t port,
			       enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	must(!rdma_create_id(ch, &id, NULL, ps), "rdma_create_id: %s", strerror(errno));
	must(!rdma_resolve_addr(id, NULL, cm_address(text, port), WAIT_MS), "rdma_resolve_addr: %s",
	     strerror(errno));
	cm_pass(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	must(!rdma_resolve_route(id, WAIT_MS), "rdma_resolve_route: %s", strerror(errno));
	cm_pass(ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

void cm_make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = id->qp_type,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};

	must(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp: %s", strerror(errno));
}

void cm_destroy_id(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	must(!rdma_destroy_id(id), "rdma_destroy_id: %s", strerror(errno));
}
