/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of connections and listeners have for each other. Under rdmacm_lock. */
#ifndef RDMACM_CONN_H
#define RDMACM_CONN_H

#include "../verbs/xroce_cm.h"
#include "id.h"

/* As the kernel's cma has them: 4.096 us x 2^n, and how often a MAD is repeated. */
#define CONN_RESPONSE_TIMEOUT 20
#define CONN_MAX_RETRIES      15
#define CONN_BACKLOG_MAX      1024
/* A peer where nobody listens yet: 254 ms, by cm_ask_again(). */
#define CONN_ASKS	      7
/* What a program may take to answer, told to a peer that repeats what it asked: 68 s. */
#define CONN_SERVICE_TIMEOUT  24

/* One of a listener: a device that it listens at. */
struct id_listener {
	struct id_listener *next;
	struct rdmacm_device *device; /* a reference */
	struct cm_listener *cm;
	struct xroce_cm_service shown;
};

/* listen.c */
/* It does not listen at dev any more; NULL: at none. */
void listen_leave(struct rdmacm_id *id, const struct rdmacm_device *dev);
/* conn_event.c: the core's connection is let go of, with what that says to the peer. */
void conn_close(struct rdmacm_id *id);
/* The service that an id listens to, or connects to at its destination's port. */
u64 conn_service_id(const struct rdmacm_id *id, const struct sockaddr_storage *address);
/* 24 bits, for a PSN. */
u32 conn_new_psn(void);

/* ---- connect.c, in the program's thread, without the lock; int: 0 or -errno ---- */
struct conn_data {
	u32 len;
	u8 bytes[2 * UINT8_MAX];
};
int conn_check_param(const struct rdmacm_id *id, const struct rdma_conn_param *param);
/* The program's data behind that of rdma_create_ep() and a header that is put in later. */
int conn_private_data(struct rdmacm_id *id, const struct rdma_conn_param *param, u32 header,
		      struct conn_data *out);
/* The id's own QP in its parameters; of an id without one, what the program says. */
void conn_set_own(struct rdmacm_id *id, const struct rdma_conn_param *param);
/* A REP has come: moves the QP and sends the RTU. */
int conn_complete(struct rdmacm_id *id);
u8 conn_ack_timeout(u8 delay, u8 life);

/* qp.c: a QP was made. 0 or -errno. */
int ece_begin(struct rdmacm_id *id, struct ibv_qp *qp);

/* qp.c, in the program's thread without the lock: 0 or -errno. Nothing without a QP. */
int qp_ready(struct rdmacm_id *id, u8 responder_resources, u8 initiator_depth);
void qp_fail(struct rdmacm_id *id);

#endif
