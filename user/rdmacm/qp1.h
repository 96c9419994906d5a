/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * QP 1 of a device: passes MADs between the QP and the device's struct cm. It keeps address handles
 * of peers (below); a MAD waits until its peer's handle is ready.
 */
#ifndef RDMACM_QP1_H
#define RDMACM_QP1_H

#include "../cm/cm.h"
#include "cm_thread.h"
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

/* ---- peers.c ---- */

/*
 * Address handles of the peers of QP 1. Another thread looks a peer up: it asks the kernel and
 * never waits for a neighbour. MADs to a new peer and MADs from it wait for the look-up: the CM
 * sees no request before the way back to its sender is known. MADs beyond a bound are dropped, and
 * received ones are counted: their senders repeat them.
 *
 * The kernel resolves a neighbour that it does not know, within three seconds; the peer is pending
 * until resolve.c reports the answer. A flood from silent addresses occupies no thread, and
 * replaces at most one known peer in each set.
 *
 * One handle serves all connections with a peer, with any flow label. All fields are guarded by
 * rdmacm_lock.
 */

#define PEER_SETS 64u
#define PEER_WAYS 4u

struct peers_waiting;

struct peer {
	struct cm_path path;
	struct ibv_ah *ah;
	u8 mac[6];    /* of the next hop, with ah */
	u64 made_ns, used_ns;
	u64 asked_ns; /* time of the question to the kernel; 0: none */
	u32 waiting;  /* MADs */
	bool used, making;
	bool changed; /* some neighbour has answered since making began */
};

struct peers {
	struct rdmacm_device *dev;
	struct ibv_pd *pd;
	struct peer peer[PEER_SETS][PEER_WAYS];
	struct peers_waiting *waiting, **waiting_tail, *ready, **ready_tail;
	u32 num_waiting, num_sends; /* MADs; of these in waiting: to be sent */
	u32 making;	   /* on another thread */
	u32 asks;	   /* of the kernel, since asks_since_ns */
	u64 asks_since_ns;
	struct cm_timer expiry; /* of pending peers */
	pthread_cond_t made;
};

void peers_init(struct peers *p, struct rdmacm_device *dev, struct ibv_pd *pd);
/* Stops the timer. Under rdmacm_lock. */
void peers_stop(struct peers *p);
/* Without rdmacm_lock, after peers_stop(); waits for handles that are being created. */
void peers_free(struct peers *p);

/*
 * Waits until no MAD to be sent waits for a look-up, at most 100 ms, and never for a pending peer.
 * Under rdmacm_lock, which it releases during the wait.
 */
void peers_flush(struct peers *p);
/* Returns whether peers_find() needs no new entry, so destroys no handle. Under rdmacm_lock. */
bool peers_knows(struct peers *p, const struct cm_path *path);
/*
 * Returns the handle, or NULL: the MAD then waits for it, or is dropped. A new peer may replace
 * another peer, whose handle is destroyed. Under rdmacm_lock.
 */
struct ibv_ah *peers_find(struct peers *p, const struct cm_send *send);
/*
 * Under rdmacm_lock. Returns whether the way back to a received MAD's sender is known. If not, the
 * MAD waits and is passed to qp1_input() later, or is dropped and counted.
 */
bool peers_admit(struct peers *p, const struct cm_path *path, const u8 mad[CM_MAD_BYTES]);
/* Returns the MAC of the next hop to a peer, if known. Under rdmacm_lock. */
void peers_mac(struct peers *p, const struct cm_path *path, u8 mac[6]);
/* Handles the kernel's message that some neighbour has answered. Under rdmacm_lock. */
void peers_hear(struct peers *p);
/* Returns true with a MAD whose handle is now ready. Under rdmacm_lock. */
bool peers_next_waiting(struct peers *p, struct cm_send *send, struct ibv_ah **ah);

#endif
