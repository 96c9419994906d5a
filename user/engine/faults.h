/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Faults on request (docs/lab.md): the engine asks a table of its caller at the points where a
 * fault may happen. Without a table each point costs the load of one pointer, none is on the path
 * of a packet of data without a completion.
 */
#ifndef ENGINE_FAULTS_H
#define ENGINE_FAULTS_H

#include "types.h"

struct cqe;
struct packet;
struct qp;

/* How a responder answers a request that it could execute. */
enum fault_answer {
	FAULT_EXECUTE,
	FAULT_RNR,	/* RNR NAK; value: its timer, or FAULT_OWN_TIMER: the QP's */
	FAULT_NAK,	/* NAK with the code `value`: the connection ends */
	FAULT_RECEIVE,	/* the receive completes with `status`, and the connection ends */
};
#define FAULT_OWN_TIMER 0xffu

struct fault_request {
	enum fault_answer answer;
	u8 value;
	u16 status;	/* enum cqe_status */
	bool sends_cnp;	/* answers a CNP as well */
	bool is_marked;	/* counts as marked "congestion experienced" */
};

/*
 * Called by a thread that holds an engine, of several engines at the same time. They must not call
 * the engine.
 */
struct engine_faults {
	void *arg;
	/*
	 * A request of a reliable QP that passed all checks. completes: it ends a message that
	 * consumes a receive.
	 */
	void (*request)(void *arg, const struct qp *qp, const struct packet *p, bool completes,
			struct fault_request *out);
	/* Returns the status (enum cqe_status) of a send WQE that has succeeded; 0: unchanged. */
	u32 (*sent)(void *arg, const struct qp *qp, u32 opcode);
	/* Returns the receives to promise in an AETH, or -1 for those that are posted. */
	int (*credits)(void *arg, const struct qp *qp);
	/* Returns how much later a completion appears; 0: at once; NSEC_NEVER: never. */
	u64 (*delay_ns)(void *arg, const struct cqe *cqe);
};

/* Most completions of an engine that are late at a time; beyond that none is. */
#define FAULTS_LATE_MAX 4096u

#endif
