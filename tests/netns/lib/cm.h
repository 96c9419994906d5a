/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections by librdmacm, for programs of this directory: both ends in one process. */
#ifndef NETNS_CM_H
#define NETNS_CM_H

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>

struct sockaddr *cm_address(const char *text, uint16_t port);

/* The next event of a channel, which must be of that type and status; to be acknowledged. */
struct rdma_cm_event *cm_expect_status(struct rdma_event_channel *ch, enum rdma_cm_event_type type,
				       int status);
#define cm_expect(ch, type) cm_expect_status(ch, RDMA_CM_EVENT_##type, 0)
/* The same, acknowledged: the id that it was for. */
struct rdma_cm_id *cm_pass(struct rdma_event_channel *ch, enum rdma_cm_event_type type);

struct rdma_event_channel *cm_channel(void);
struct rdma_cm_id *cm_listener(struct rdma_event_channel *ch, const char *text, uint16_t port,
			       enum rdma_port_space ps, int backlog);
/* An id up to its route. */
struct rdma_cm_id *cm_resolved(struct rdma_event_channel *ch, const char *text, uint16_t port,
			       enum rdma_port_space ps);
void cm_make_qp(struct rdma_cm_id *id);
/* Destroys the id and its QP, if any. */
void cm_destroy_id(struct rdma_cm_id *id);

#endif
