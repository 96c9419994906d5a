/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port (tools/observe/observe.h) watched by the exporter: its counters and objects. Its maps stay
 * open between readings, so that the last values are readable after the process has ended for any
 * reason.
 *
 * The process writes the maps, so their values are trusted only within bounds.
 */
#ifndef EXPORT_WATCHED_H
#define EXPORT_WATCHED_H

#include <xroce/stat.h>

#include "../observe/observe.h"
#include "../observe/observe_options.h"
#include "../counters.h"

/* Counters, all u64. */
struct counts {
	struct sums sums;
	u64 cq_completions, cq_events, cq_overruns;
	u64 srq_taken, srq_limit_events;
	u64 broker_refused;
};
#define COUNT_WORDS (sizeof(struct counts) / sizeof(u64))

#define QP_STATES 8 /* enum xroce_qp_state, and one for other values */

/* Current objects of a port. */
struct objects_now {
	u64 qps[QP_STATES];
	u64 cqs, cq_entries, cq_waiting;
	double cq_fullest; /* waiting / entries of the fullest CQ */
	u64 srqs, srq_entries, srq_waiting;
	u64 mrs, mr_bytes, mws;
};

void objects_now_add(struct objects_now *to, const struct objects_now *o);

/* State of a port that is kept after its end, to continue its counters. */
struct watched_mark {
	u32 ids[SNAPSHOT_SUMS]; /* of the maps of struct sums (snapshot_sum_id()) */
	struct counts seen;	/* the highest value of each counter */
};

struct watched_slot {
	u32 number;   /* of the object in the element */
	u64 last[3];
};

struct watched {
	struct observed port;	/* without its iface */
	u32 ifindex;
	char command[64];	/* cleaned for a label */
	bool is_listed;		/* found in this collection */
	bool is_back;		/* the next reading skips objects, which were counted before */
	struct watched_mark mark;
	struct counts now;	/* current values of its maps */
	struct objects_now objects;
	struct qp_view *qps;	/* of the last reading */
	u32 num_qps;
	struct watched_slot cqs[XROCE_CQ_STATS], srqs[XROCE_SRQ_STATS];
};

/*
 * Takes the maps of the open port p and closes w's earlier ones. Counters of maps with other IDs
 * start from 0. Leaves p closed. Returns 0, or -errno if w then has no maps.
 */
int watched_take(struct watched *w, struct observed *p);
/* Copies the description of the listed port p. */
void watched_describe(struct watched *w, const struct observed *p);
/* Continues the counters of a port that returned. */
void watched_come_back(struct watched *w, const struct watched_mark *m);
/* Returns an ID of the port that stays when its program changes; 0: none. */
u32 watched_mark_id(const struct watched_mark *m);
/* Returns the same ID for an open port. */
u32 watched_id_of(const struct observed *p);

/*
 * Reads the port and adds the growth of its counters to total. Returns 0, or -ENOMEM: some objects
 * are missing.
 */
int watched_read(struct watched *w, struct counts *total);
void watched_close(struct watched *w);

#endif
