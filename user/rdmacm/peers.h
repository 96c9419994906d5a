/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Address handles of those that MADs go to. A handle is made on another thread, as the kernel may
 * have to ask for the neighbour; a MAD waits for it meanwhile. What cannot be resolved is dropped:
 * its sender repeats it. One serves all connections with that peer, whatever flow labels these
 * have, and has none itself. A flood of requests from made-up addresses costs this table its
 * contents and no more.
 */
#ifndef RDMACM_PEERS_H
#define RDMACM_PEERS_H

#include "../cm/cm.h"
#include "rdmacm.h"

#define PEER_SETS 64u
#define PEER_WAYS 4u

struct rdmacm_device;
struct peers_waiting;

struct peer {
	struct cm_path path;
	struct ibv_ah *ah;
	u64 made_ns, used_ns;
	bool used, making;
};

struct peers {
	struct rdmacm_device *dev;
	struct ibv_pd *pd;
	struct peer peer[PEER_SETS][PEER_WAYS];
	struct peers_waiting *waiting, *ready, **ready_tail;
	u32 num_waiting;
	u32 making; /* on another thread */
	pthread_cond_t made;
};

void peers_init(struct peers *p, struct rdmacm_device *dev, struct ibv_pd *pd);
/* Without rdmacm_lock; waits for handles that are being made. */
void peers_free(struct peers *p);

/*
 * Under rdmacm_lock, which it lets go of meanwhile: what waits for a handle has gone, or 100 ms are
 * over. Not when many wait, as in a flood from made-up addresses.
 */
void peers_flush(struct peers *p);
/* Under rdmacm_lock. The handle; or NULL: the MAD waits for it, or is dropped. */
struct ibv_ah *peers_find(struct peers *p, const struct cm_send *send);
/* Under rdmacm_lock. A MAD that has waited long enough: true, with its handle. */
bool peers_next_waiting(struct peers *p, struct cm_send *send, struct ibv_ah **ah);

#endif
