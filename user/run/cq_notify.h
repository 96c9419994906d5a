/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a port's completions wake threads: the table of its CQs with the arm words that XDP takes
 * (cq_notify.c), and the ring buffers in which XDP's records reach completion channels
 * (channel_rings.c, port_channel.c). Nothing here runs an engine or sleeps.
 */
#ifndef RUN_CQ_NOTIFY_H
#define RUN_CQ_NOTIFY_H

#include <pthread.h>

#include "../os/xdp_maps.h"
#include "../engine/cq.h"
#include "port_channel_object.h"
#include "channel_rings.h"

struct cq_notify {
	const struct xdp_maps *maps;
	u32 num_vectors; /* receive queues of the interface */
	struct channel_rings rings;

	pthread_mutex_t lock cache_aligned; /* of what follows */
	struct cq *cq[XROCE_MAX_CQ];
	struct port_channel *channel_of[XROCE_MAX_CQ];
	u32 next;			  /* where to look for a free index */
};

/* ---- cq_notify.c: CQs and their arm words ---- */

/* No CQs, no rings. cq_notify_destroy() once all CQs have been removed. */
void cq_notify_init(struct cq_notify *w);
void cq_notify_destroy(struct cq_notify *w);
/*
 * A CQ with that channel (or NULL) and completion vector joins: cq->index is set, and XDP finds the
 * channel. Returns 0 or -ENOSPC: XROCE_MAX_CQ have joined.
 */
int cq_notify_add(struct cq_notify *w, struct cq *cq, struct port_channel *ch, u32 vector);
/* XDP leaves the events of the channel's CQs to the service threads. Channel locked. */
void cq_notify_leave_slot(struct cq_notify *w, struct port_channel *ch);
/* XDP takes its arm word no more. [any thread] */
void cq_notify_hide(struct cq_notify *w, const struct cq *cq);
/*
 * It leaves, hidden: no event of it is reported from here on. All engines held. Returns its
 * channel, NULL if it has none.
 */
struct port_channel *cq_notify_remove(struct cq_notify *w, const struct cq *cq);
/* First cq->armed, then the word that XDP takes. [any thread] */
void cq_notify_arm(struct cq_notify *w, struct cq *cq, bool solicited_only);
/*
 * The engine took cq->armed: XDP's word follows, unless the application has armed again. Under the
 * lock of a shard.
 */
void cq_notify_taken(struct cq_notify *w, struct cq *cq);
/*
 * XDP took the words of these CQs; of those that are armed still, set them again. True if any was.
 */
bool cq_notify_rearm(struct cq_notify *w, const u32 *record, u32 n);
/*
 * The CQ at that index if it is on that channel, else NULL. Under the lock of a shard, which keeps
 * it.
 */
struct cq *cq_notify_on_channel(struct cq_notify *w, const struct port_channel *ch, u32 index);

#endif
