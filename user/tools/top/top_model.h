/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The model of `xroce top`: the last sample of each queue pair, process, CQ and interface, its
 * rates, and a history of rounds. A round receives all samples at once, with their time. Pure: no
 * clock, no map, no terminal. Other processes write the counters, so a counter may also fall.
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
	TOP_NUM_QPS,	   /* of processes and interfaces; computed here */
	TOP_NUM_PROCESSES, /* of interfaces; computed here */
	TOP_GAUGES
};

#define TOP_HISTORY 64 /* rounds */

struct top_sample {
	enum top_view view;
	/* key: samples with the same key are merged */
	u32 ifindex;
	u64 owner;   /* of a process, and of its QPs and CQs; 0 for an interface */
	u32 number;  /* QPN or CQ number, else 0 */
	u64 made_ns; /* differs for a new QP with a reused number; 0: unknown */

	u32 pid;     /* 0: unknown */
	char dev[16], command[32], peer[46];
	const char *type, *state; /* static strings; "" or NULL: none */
	bool is_bad;
	bool is_kept;		    /* copied from an earlier round, not readable now */
	u64 counters[TOP_COUNTERS]; /* of an interface: sums over its processes, computed here */
	u64 gauges[TOP_GAUGES];
};

struct top_entry {
	struct top_sample now;
	/* per second; SPARK_NONE: not known yet, or kept in this round or the previous one */
	double rates[TOP_COUNTERS];
	/* the last num_history rounds, the oldest at index oldest */
	float load[TOP_HISTORY], trouble[TOP_HISTORY];
	u32 num_history, oldest;
};

struct top_list {
	struct top_entry *entries; /* sorted by key */
	u32 num;
};

struct top_model {
	struct top_list lists[TOP_VIEWS];
	struct top_sample *samples; /* of the next round */
	u32 num_samples, room;
	u64 rounds, time_ns, previous_ns;
	double seconds; /* since the previous round; 0 in the first */
	u32 refused;	/* samples over the limit in the next round */
	u32 left_out;	/* and in the last round */
};

/* Frees the model; a zeroed model is valid. */
void top_model_end(struct top_model *m);

/* Returns a sample of the next round to fill in, or NULL over the limit. */
struct top_sample *top_model_add(struct top_model *m, enum top_view view);
/*
 * Copies the last round's samples of an interface into the next round; new samples of the same key
 * replace them.
 */
void top_model_keep(struct top_model *m, u32 ifindex);
/* Ends the round; removes entries without samples. Returns 0, or -ENOMEM (lists unchanged). */
int top_model_round(struct top_model *m, u64 now_ns);

/* Bits per second in both directions; for CQs, completions. SPARK_NONE: unknown. */
double top_entry_load(const struct top_entry *e);
/* Retransmissions per second; for CQs, overruns. */
double top_entry_trouble(const struct top_entry *e);
/* Copies the newest n values of a history; SPARK_NONE where there is none. */
void top_entry_history(const struct top_entry *e, const float *ring, u32 n, float *values);

#endif
