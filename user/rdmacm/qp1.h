/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * QP 1 of a device: MADs between it and the device's struct cm. Handles of the addresses that MADs
 * go to and come from are kept (peers.h); a MAD waits until that of its peer is there.
 */
#ifndef RDMACM_QP1_H
#define RDMACM_QP1_H

#include "../cm/cm.h"
#include "rdmacm.h"

struct rdmacm_device;
struct qp1;

/* On dev->own. 0 or -errno. Without rdmacm_lock, as qp1_free(). */
int qp1_make(struct rdmacm_device *dev, struct qp1 **out);
/* After qp1_stop(), or without a start. */
void qp1_free(struct qp1 *q);
/* Under rdmacm_lock: the CM thread takes MADs in from here on. 0 or -errno. */
int qp1_start(struct qp1 *q);
void qp1_stop(struct qp1 *q);
/* Under rdmacm_lock: a MAD of a peer to which the way is known, with what it leads to. */
void qp1_input(struct qp1 *q, const struct cm_path *path, const u8 *mad, u32 len);
/* Under rdmacm_lock: the MAC of the next hop to a peer, if it is known. */
void qp1_mac(struct qp1 *q, const struct cm_path *path, u8 mac[6]);
/* Under rdmacm_lock: the kernel says that some neighbour has answered. */
void qp1_hear(struct qp1 *q);
/* Under rdmacm_lock: sends what the struct cm has to say. */
void qp1_send(struct qp1 *q);
/*
 * Under rdmacm_lock, not in the CM thread: what was said has left, if that takes no longer than a
 * look at a neighbour.
 */
void qp1_flush_sends(struct qp1 *q);

#endif
