/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules of explain.h, in the order of likelihood. A rule returns whether it applies to a case;
 * if so, it has written a text, advice and the numbers as evidence.
 */
#ifndef EXPLAIN_RULE_H
#define EXPLAIN_RULE_H

#include "explain.h"

/*
 * X(name, id, severity, kind): explain_NAME() is the rule. Kinds: PORT, of a process on an
 * interface; CAUSE and SYMPTOM, of a QP. A symptom is a separate finding only without a cause. A
 * rule may lower its severity.
 */
#define EXPLAIN_RULES(X)                                          \
	X(link_down, "link-down", BROKEN, PORT)                   \
	X(stopped, "process-stopped", BROKEN, PORT)               \
	X(starved, "process-starved", SLOW, PORT)                 \
	X(ring_full, "ring-overflow", SLOW, PORT)                 \
	X(not_taken, "frames-not-taken", SLOW, PORT)              \
	X(no_buffer, "no-buffer", SLOW, PORT)                     \
	X(egress, "refused-by-broker", BROKEN, PORT)              \
	X(tx_lost, "not-sent", SLOW, PORT)                        \
	X(port_dropped, "dropped-by-xdp", SLOW, PORT)             \
	X(mtu_here, "mtu-of-interface", BROKEN, CAUSE)            \
	X(pkey, "pkey-mismatch", BROKEN, CAUSE)                   \
	X(peer_gone, "peer-gone", BROKEN, CAUSE)                  \
	X(peer_link, "peer-link-down", BROKEN, CAUSE)             \
	X(peer_stopped, "peer-stopped", BROKEN, CAUSE)            \
	X(peer_error, "peer-in-error", BROKEN, CAUSE)             \
	X(peer_starved, "peer-starved", SLOW, CAUSE)              \
	X(peer_ring, "peer-ring-overflow", SLOW, CAUSE)           \
	X(mtu_path, "mtu-of-path", BROKEN, CAUSE)                 \
	X(error, "error", BROKEN, CAUSE)                          \
	X(cq_overrun, "cq-overrun", BROKEN, CAUSE)                \
	X(rnr, "rnr", BROKEN, CAUSE)                              \
	X(rnr_here, "rnr-here", BROKEN, CAUSE)                    \
	X(foreign, "foreign-packets", SLOW, CAUSE)                \
	X(corrupted, "icrc-errors", SLOW, CAUSE)                  \
	X(refused, "packets-refused", SLOW, CAUSE)                \
	X(congested, "congestion", SLOW, CAUSE)                   \
	X(marked, "congestion-marks", SLOW, CAUSE)                \
	X(cq_full, "cq-not-polled", SLOW, CAUSE)                  \
	X(rate_limit, "rate-limit", NOTE, CAUSE)                  \
	X(silent, "peer-silent", BROKEN, SYMPTOM)                 \
	X(unacknowledged, "not-acknowledged", BROKEN, SYMPTOM)    \
	X(loss, "loss", SLOW, SYMPTOM)                            \
	X(late, "late-answers", SLOW, SYMPTOM)                    \
	X(loss_in, "loss-inbound", SLOW, SYMPTOM)                 \
	X(credits, "waits-for-credits", NOTE, SYMPTOM)            \
	X(not_connected, "not-connected", NOTE, CAUSE)            \
	X(idle, "idle", NOTE, CAUSE)                              \
	X(before, "trouble-before", NOTE, CAUSE)

typedef bool explain_fn(const struct explain_case *c, struct finding *f);
#define X(name, id, severity, kind) explain_fn explain_##name;
EXPLAIN_RULES(X)
#undef X

/* ---- helpers of the rules ---- */

void finding_say(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void finding_guess(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void finding_advise(struct finding *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Adds a number at the second reading; numbers beyond EXPLAIN_NUMBERS are left out. */
void finding_number(struct finding *f, const char *name, u64 value);

void finding_count(const struct explain_case *c, struct finding *f, const char *name, u64 before,
		   u64 now);
/* Marks the last number as the peer's. */
static inline void finding_is_peers(struct finding *f)
{
	f->number[f->num_numbers - 1].is_peers = true;
}

/* Counters of an end's QP (QP) and of its port (SUM): value, growth, number of a finding. */
#define QP(end, field)	      ((end).qp[1]->stat.field)
#define QP_GROWN(end, field)  grown((end).qp[0]->stat.field, (end).qp[1]->stat.field)
#define QP_COUNT(c, f, end, field)                                                           \
	finding_count(c, f, #field, (end).qp[0]->stat.field, (end).qp[1]->stat.field)
#define SUM(end, field)	      ((end).port[1]->sums.field)
#define SUM_GROWN(end, field) grown((end).port[0]->sums.field, (end).port[1]->sums.field)
#define SUM_COUNT(c, f, end, name, field)                                                    \
	finding_count(c, f, name, (end).port[0]->sums.field, (end).port[1]->sums.field)

/* explain_rules.c: for either end. */
bool port_is_stopped(const struct explain_port *p);
/* Runnable for most of the time, and hardly running. */
bool port_is_starved(const struct explain_end *e, double seconds);
/* Returns the frames that XDP redirected and the process has not received. */
u64 port_backlog(const struct explain_port *p);
bool port_ring_overflows(const struct explain_end *e);
/* Returns the drop reason of XDP that grew most among reasons that concern a QP; 0 if none did. */
enum xroce_drop port_drop_grown(const struct explain_end *e, u64 *num);

/* explain_qp.c */
bool qp_sends(const struct explain_qp *q); /* may send */
bool qp_is_connected(const struct explain_qp *q);
/* Requests are outstanding, and none was acknowledged between the readings. */
bool qp_is_stuck(const struct explain_end *e);
/* Time-outs expire and nothing is acknowledged, but packets of the peer arrive. */
bool qp_is_unacknowledged(const struct explain_end *e);
/* The peer did not answer: the retries are exhausted or in progress. */
bool qp_gets_no_answer(const struct explain_end *e);

/* explain_peer.c */
/* Share of packets below which loss is not reported. */
#define LOSS_SHARE 0.002
static inline double share(u64 part, u64 all)
{
	return all ? (double)part / (double)all : 0;
}
u64 qp_timeouts(const struct explain_end *e);
/* The packets resent between the readings are at least LOSS_LEAST and LOSS_SHARE. */
bool qp_repairs(const struct explain_end *e);

#endif
