/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What `xroce top` knows: of each queue pair, process, CQ and interface what it was last, what it
 * did per second, and that of the last rounds. A round is given all samples at once, with the time.
 * Pure: no clock, no map, no terminal. Counters are what other processes write: they may do
 * anything, also fall.
 */
#ifndef TOP_MODEL_H
#define TOP_MODEL_H

#include "screen.h"

enum top_view { TOP_QPS, TOP_PROCESSES, TOP_CQS, TOP_INTERFACES, TOP_VIEWS };

enum top_counter {
	TOP_RX_BYTES,
	TOP_TX_BYTES,
	TOP_RX_PACKETS,
	TOP_TX_PACKETS,
	TOP_RETRANSMITTED,
	TOP_RNR,
	TOP_DROPPED,
	TOP_LOST,
	TOP_COMPLETIONS,
	TOP_EVENTS,
	TOP_OVERRUNS,
	TOP_COUNTERS
};

enum top_gauge {
	TOP_OUTSTANDING,
	TOP_RTT_NS,
	TOP_WAITING,
	TOP_MOST_WAITING,
	TOP_ENTRIES,
	TOP_NUM_QPS,	   /* of processes and interfaces; counted here */
	TOP_NUM_PROCESSES, /* of interfaces; counted here */
	TOP_GAUGES
};

#define TOP_HISTORY 64 /* rounds */

struct top_sample {
	enum top_view view;
	/* what it is: samples of the same key are one, and added up */
	u32 ifindex;
	u64 owner;   /* of a process, and its QPs and CQs; of an interface 0 */
	u32 number;  /* QPN, CQ; else 0 */
	u64 made_ns; /* another one: it is another QP of the same number. 0: not told */

	u32 pid;     /* 0: cannot be told */
	char dev[16], command[32], peer[46];
	const char *type, *state; /* words that stay; "" or NULL: none */
	bool is_bad;
	bool is_kept;		    /* of an earlier round: it could not be looked at in this one */
	u64 counters[TOP_COUNTERS]; /* of an interface: by this file, of its processes */
	u64 gauges[TOP_GAUGES];
};

struct top_entry {
	struct top_sample now;
	/* per second; SPARK_NONE: not known yet, or it was kept in this round or the one before */
	double rates[TOP_COUNTERS];
	/* the last num_history rounds, the oldest at `oldest` */
	float load[TOP_HISTORY], trouble[TOP_HISTORY];
	u32 num_history, oldest;
};

struct top_list {
	struct top_entry *entries; /* in the order of their keys */
	u32 num;
};

struct top_model {
	struct top_list lists[TOP_VIEWS];
	struct top_sample *samples; /* of the round that is coming */
	u32 num_samples, room;
	u64 rounds, time_ns, previous_ns;
	double seconds; /* since the round before; 0: there was none */
	u32 refused;	/* samples of the round that is coming, as there were too many, */
	u32 left_out;	/* and of the last one */
};

/* A model is zeroed at first. */
void top_model_end(struct top_model *m);

/* A sample of the round that is coming, to be filled in; NULL: there are too many. */
struct top_sample *top_model_add(struct top_model *m, enum top_view view);
/*
 * What that interface had in the last round, and is not added in the one that is coming, stays as
 * it was then.
 */
void top_model_keep(struct top_model *m, u32 ifindex);
/* The round is complete: what was not added is gone. Returns 0, or -ENOMEM and nothing changed. */
int top_model_round(struct top_model *m, u64 now_ns);

/* Bits per second both ways; of CQs completions. SPARK_NONE: not known. */
double top_entry_load(const struct top_entry *e);
/* Retransmissions per second; of CQs overruns. */
double top_entry_trouble(const struct top_entry *e);
/* The newest n values of a history, SPARK_NONE where there is none yet. */
void top_entry_history(const struct top_entry *e, const float *ring, u32 n, float *values);

#endif
