/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of connections and listeners. Under rdmacm_lock. */
#ifndef RDMACM_CONN_H
#define RDMACM_CONN_H

#include "../verbs/xroce_cm.h"
#include "id.h"

/* As in the kernel's cma: response timeout 4.096 us x 2^n, and retries of a MAD. */
#define CONN_RESPONSE_TIMEOUT 20
#define CONN_MAX_RETRIES      15
#define CONN_BACKLOG_MAX      1024
/* REQs to a peer without a listener: over 254 ms, by cm_ask_again(). */
#define CONN_ASKS	      7
/* Time for the program's answer, reported in an MRA to a peer that repeats its message: 68 s. */
#define CONN_SERVICE_TIMEOUT  24

/* A device on which an id listens. */
struct id_listener {
	struct id_listener *next;
	struct rdmacm_device *device; /* a reference */
	struct cm_listener *cm;
	struct xroce_cm_service shown;
};

/* listen.c */
/* Stops listening at dev; NULL: at all devices. */
void listen_leave(struct rdmacm_id *id, const struct rdmacm_device *dev);
/* conn_event.c: releases the core's connection and notifies the peer as needed. */
void conn_close(struct rdmacm_id *id);
/* Returns the service that an id listens to, or connects to at its destination's port. */
u64 conn_service_id(const struct rdmacm_id *id, const struct sockaddr_storage *address);
/* Returns a random 24-bit PSN. */
u32 conn_new_psn(void);

/* ---- connect.c, in the program's thread, without the lock; int: 0 or -errno ---- */
struct conn_data {
	u32 len;
	u8 bytes[2 * UINT8_MAX];
};
int conn_check_param(const struct rdmacm_id *id, const struct rdma_conn_param *param);
/* Joins the data of rdma_create_ep() and the program's data, after room for a header. */
int conn_private_data(struct rdmacm_id *id, const struct rdma_conn_param *param, u32 header,
		      struct conn_data *out);
/* Sets the parameters of the id's QP, or without a QP the program's. */
void conn_set_own(struct rdmacm_id *id, const struct rdma_conn_param *param);
/* Handles a REP: moves the QP and sends the RTU. */
int conn_complete(struct rdmacm_id *id);
u8 conn_ack_timeout(u8 delay, u8 life);

/* qp.c: sets up ECE for a new QP. Returns 0 or -errno. */
int ece_begin(struct rdmacm_id *id, struct ibv_qp *qp);

/* qp.c, in the program's thread without the lock. Return 0 or -errno; without a QP, do nothing. */
int qp_ready(struct rdmacm_id *id, u8 responder_resources, u8 initiator_depth);
void qp_fail(struct rdmacm_id *id);

#endif
