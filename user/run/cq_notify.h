/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How completions of a port wake threads: the table of its CQs with the arm words that XDP takes,
 * and the ring buffers by which XDP's records reach completion channels (port_channel.c). Nothing
 * here runs an engine or sleeps.
 */
#ifndef RUN_CQ_NOTIFY_H
#define RUN_CQ_NOTIFY_H

#include <pthread.h>
#include <xroce/abi.h>

#include "../engine/cq.h"
#include "../engine/types.h"
#include "../os/xdp_maps.h"
#include "port_channel_object.h"

/* ---- the ring buffers of a port's channels, and where XDP finds them. Any thread. ---- */

/* A ring buffer and its key in xroce_channel. */
struct ring_slot {
	int fd;
	u32 slot;
};

struct channel_rings {
	/* makes a ring in the map; 0 or -errno. NULL: no rings, in a forked child */
	int (*make)(void *arg, struct ring_slot *out);
	void *make_arg;
	pthread_mutex_t lock;	  /* guards the fields below */
	u32 num;		  /* rings made */
	struct ring_slot spare[XROCE_MAX_RING]; /* num_spare rings that no channel uses */
	u32 num_spare;
};

void channel_rings_init(struct channel_rings *r);
void channel_rings_close(struct channel_rings *r);
/*
 * Takes a spare ring, or makes one and puts it into the map. Returns 0, -ENOSPC if all
 * XROCE_MAX_RING are in use, or the -errno of making or inserting the ring.
 */
int channel_rings_take(struct channel_rings *r, struct ring_slot *out);
/* Releases a ring, which must be empty and unused by any CQ. */
void channel_rings_give(struct channel_rings *r, const struct ring_slot *ring);

/* ---- CQs and their arm words ---- */

struct cq_notify {
	const struct xdp_maps *maps;
	u32 num_vectors; /* receive queues of the interface */
	struct channel_rings rings;

	pthread_mutex_t lock cache_aligned; /* guards the fields below */
	struct cq *cq[XROCE_MAX_CQ];
	struct port_channel *channel_of[XROCE_MAX_CQ];
	u32 next;			  /* first index to try for a new CQ */
};

/* Starts without CQs and rings. Call cq_notify_destroy() after all CQs have been removed. */
void cq_notify_init(struct cq_notify *w);
void cq_notify_destroy(struct cq_notify *w);
/*
 * Adds a CQ with a channel (or NULL) and a completion vector: sets cq->index and publishes the
 * channel to XDP. Returns 0, or -ENOSPC if XROCE_MAX_CQ have joined.
 */
int cq_notify_add(struct cq_notify *w, struct cq *cq, struct port_channel *ch, u32 vector);
/* Moves the events of the channel's CQs from XDP to the workers. Channel locked. */
void cq_notify_leave_slot(struct cq_notify *w, struct port_channel *ch);
/* Makes XDP ignore the CQ's arm word. [any thread] */
void cq_notify_hide(struct cq_notify *w, const struct cq *cq);
/*
 * Removes a hidden CQ, which reports no more events. All shards locked. Returns its channel or
 * NULL.
 */
struct port_channel *cq_notify_remove(struct cq_notify *w, const struct cq *cq);
/* Arms cq->armed, then the word that XDP takes. [any thread] */
void cq_notify_arm(struct cq_notify *w, struct cq *cq, bool solicited_only);
/*
 * Clears XDP's word after the engine took cq->armed, unless the application has armed again. Under
 * the lock of a shard.
 */
void cq_notify_taken(struct cq_notify *w, struct cq *cq);
/* Sets XDP's words again for records of CQs that are still armed. Returns whether any is. */
bool cq_notify_rearm(struct cq_notify *w, const u32 *record, u32 n);
/* Returns the CQ at an index if it is on the channel, or NULL. A shard's lock keeps it alive. */
struct cq *cq_notify_on_channel(struct cq_notify *w, const struct port_channel *ch, u32 index);

#endif
