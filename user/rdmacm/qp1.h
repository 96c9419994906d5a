/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * QP 1 of a device: passes MADs between the QP and the device's struct cm. It keeps address handles
 * of peers (peers.h); a MAD waits until its peer's handle is ready.
 */
#ifndef RDMACM_QP1_H
#define RDMACM_QP1_H

#include "../cm/cm.h"
#include "rdmacm.h"

struct rdmacm_device;
struct qp1;

/* Creates QP 1 on dev->own. Returns 0 or -errno. Without rdmacm_lock, like qp1_free(). */
int qp1_make(struct rdmacm_device *dev, struct qp1 **out);
/* After qp1_stop(), or if never started. */
void qp1_free(struct qp1 *q);
/* Starts reception of MADs in the CM thread. Under rdmacm_lock. Returns 0 or -errno. */
int qp1_start(struct qp1 *q);
void qp1_stop(struct qp1 *q);
/* Passes in a MAD of a peer with a known way back, and processes the results. Under rdmacm_lock. */
void qp1_input(struct qp1 *q, const struct cm_path *path, const u8 *mad, u32 len);
/* Returns the MAC of the next hop to a peer, if known. Under rdmacm_lock. */
void qp1_mac(struct qp1 *q, const struct cm_path *path, u8 mac[6]);
/* Handles the kernel's message that some neighbour has answered. Under rdmacm_lock. */
void qp1_hear(struct qp1 *q);
/* Sends the MADs of the struct cm. Under rdmacm_lock. */
void qp1_send(struct qp1 *q);
/*
 * Waits until pending MADs have left, as long as that takes no longer than a neighbour look-up.
 * Under rdmacm_lock, not in the CM thread.
 */
void qp1_flush_sends(struct qp1 *q);

#endif
