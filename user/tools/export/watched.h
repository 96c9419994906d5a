/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port (tools/observe/observe.h) that the exporter watches: what it has counted, what
 * it has. Its maps stay open from one look to the next, so that what a process counted last is read
 * when it has ended, however it did.
 *
 * All that maps say is the process's own writing: nothing of it is believed but within bounds.
 */
#ifndef EXPORT_WATCHED_H
#define EXPORT_WATCHED_H

#include <xroce/stat.h>

#include "../observe/observe.h"
#include "../observe/qp_view.h"
#include "../observe/sums.h"

/* Counters: words of u64 alone. */
struct counts {
	struct sums sums;
	u64 cq_completions, cq_events, cq_overruns;
	u64 srq_taken, srq_limit_events;
	u64 broker_refused;
};
#define COUNT_WORDS (sizeof(struct counts) / sizeof(u64))

#define QP_STATES 8 /* of enum xroce_qp_state, and what is none */

/* What a port has at the moment. */
struct objects_now {
	u64 qps[QP_STATES];
	u64 cqs, cq_entries, cq_waiting;
	double cq_fullest; /* waiting / entries of the fullest */
	u64 srqs, srq_entries, srq_waiting;
	u64 mrs, mr_bytes, mws;
};

void objects_now_add(struct objects_now *to, const struct objects_now *o);

/* The maps that struct sums is of, each with its number. */
#define WATCHED_PARTS 5

/* What is remembered of one, to go on where it was. */
struct watched_mark {
	u32 ids[WATCHED_PARTS]; /* 0: it has none; a number is never used again */
	struct counts seen;	/* the most that each counter was */
};

struct watched_slot {
	u32 number;   /* of the object that was there */
	u64 last[3];
};

struct watched {
	struct observed port;	/* without its iface */
	u32 ifindex;
	char command[64];	/* as a label has it */
	bool is_listed;		/* this time */
	bool is_back;		/* its objects were counted before: not at its next look */
	struct watched_mark mark;
	struct counts now;	/* as its maps have it */
	struct objects_now objects;
	struct qp_view *qps;	/* of the last look */
	u32 num_qps;
	struct watched_slot cqs[XROCE_CQ_STATS], srqs[XROCE_SRQ_STATS];
};

/*
 * Takes the maps of p, which is open, and leaves it closed. Those that w had are closed, and what
 * is of other maps than these begins anew. Returns 0, or -errno: w has none, p is closed.
 */
int watched_take(struct watched *w, struct observed *p);
/* What p, which is listed, says of itself. */
void watched_describe(struct watched *w, const struct observed *p);
/* It was there before: its counters go on where they were. */
void watched_come_back(struct watched *w, const struct watched_mark *m);
/* Its number for as long as it lives, whatever becomes of its program; 0: it has none. */
u32 watched_id(const struct watched *w);
/* The same of an open port. */
u32 watched_id_of(const struct observed *p);

/* Reads all of it, and adds to total what its counters have grown by. */
void watched_read(struct watched *w, struct counts *total);
void watched_close(struct watched *w);

#endif
