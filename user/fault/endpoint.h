/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules of an endpoint: faults that the libraries make themselves. A process has one table. It
 * is pure: its owner reads the rules' text, and provides the memory of the results.
 *
 * A decision depends on the seed, the rule, and the call's number in the process or the packet's
 * or completion's identity. Threads that make the same call share its numbers.
 */
#ifndef FAULT_ENDPOINT_H
#define FAULT_ENDPOINT_H

#include "../engine/engine.h"
#include "lab_rule.h"

enum { FAULT_RULES = 64, FAULT_SHOWN_TEXT = 80 };

/* What a rule did, in memory that `xroce lab` reads when the process has ended. */
struct fault_result {
	u32 matched; /* calls, packets or completions that the selectors but nth leave */
	u32 hits;
	u32 num_shown;
	char shown[LAB_RULE_SHOWN][FAULT_SHOWN_TEXT];
};

/*
 * The abstract address (unix(7)) at which `xroce lab` takes a memfd with the results of a process;
 * XROCE_FAULT_REPORT has it.
 */
#define FAULT_SOCKET "xroce-lab/results"

#define FAULT_RESULTS_MAGIC 0x746c6166u /* "falt" */
struct fault_results {
	u32 magic;
	u32 num;
	char rule[FAULT_RULES][LAB_RULE_TEXT];
	struct fault_result result[FAULT_RULES];
};

struct fault_table {
	struct spin lock; /* guards the rules' counters, the results, and all below but engine */
	u64 seed;
	u32 num;
	u32 places; /* a bit for each enum lab_place that rules have */
	struct lab_rule rule[FAULT_RULES];
	struct fault_results *results; /* the owner's, zeroed */
	/* by the slot of a QPN: the QP's place in the order of creation, from 1 */
	u32 num_qps;
	u32 order[XROCE_MAX_QP];
	/* the PSN of the last request that was asked about, and how often; round 0: none */
	struct {
		u32 psn, round;
	} asked[XROCE_MAX_QP];
	u32 sent[XROCE_MAX_QP]; /* successful send completions */
	/* completions of sends, of receives: these two queues depend on each other's timing */
	u32 completed[2][XROCE_MAX_QP];
	char unseen[FAULT_SHOWN_TEXT]; /* text that is not shown */
	struct engine_faults engine;
};

/*
 * Initialises a table by rules, separated by semicolons or newlines. Returns false with *error set,
 * and the wrong rule copied to `wrong`, cut after LAB_RULE_TEXT - 1 bytes.
 */
bool fault_parse(struct fault_table *t, const char *text, u64 seed, struct fault_results *results,
		 struct lab_error *error, char wrong[LAB_RULE_TEXT]);

/* Returns the engine's part of the table, or NULL if no rule concerns the engine. */
const struct engine_faults *fault_engine(struct fault_table *t);

/* Counts a QP that the program created. */
void fault_know_qp(struct fault_table *t, u32 qpn);

/*
 * Counts a call. Returns the errno by which a rule fails it, or 0. *event: the event that a rule
 * raises, or LAB_NUM_EVENTS.
 */
int fault_call(struct fault_table *t, enum lab_call call, enum lab_event *event);

/* Counts a request for a connection. Returns the reason with which a rule rejects it, or 0. */
u16 fault_reject(struct fault_table *t);

#endif
