/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections that cm_trials.c makes, a row each: what either end does, what mad_cable.c loses, and
 * the events that each end must have. The port of a row is TRIALS_PORT and its index.
 */
#ifndef NETNS_CM_TRIALS_H
#define NETNS_CM_TRIALS_H

#include <stdint.h>

#include "mad_kinds.h"

#define TRIALS_PORT 7600
#define LATE_MS	    6000 /* an answer that is late: the peer has repeated its MAD */
#define ALL	    1000 /* of lost: each one */

enum active {
	TALKS,	   /* sends a message when it is established, disconnects when it has the reply */
	IS_LEFT,   /* the same, but waits to be disconnected */
	DESTROYS,  /* destroys its id when it has the reply */
	HESITATES, /* its id has no QP; establishes late, and disconnects half a second later */
	LEAVES,	   /* destroys its id half a second after its request */
	LOOKS_UP,  /* a datagram service */
};

enum passive {
	ACCEPTS, /* replies to a message once it is established */
	ACCEPTS_LATE,
	ACCEPTS_EARLY, /* replies at once */
	REJECTS,
	REJECTS_LATE,
	DROPS,	      /* destroys the id of the request */
	DISCONNECTS,  /* replies, and disconnects when the reply is complete */
	IS_DESTROYED, /* the same, but destroys its id */
	ABSENT,	      /* without a listener */
};

/*
 * Expected events: names, status in parentheses if not 0, state of the QP; alternatives after '|'.
 * An end that has destroyed its id has no more events.
 */
#define EST	       "ESTABLISHED RTS"
#define ENDED	       ", DISCONNECTED ERR, TIMEWAIT_EXIT"
#define LOST_END       ", DISCONNECTED(-110) ERR, TIMEWAIT_EXIT"
#define RESPONSE_ENDED "CONNECT_RESPONSE, DISCONNECTED, TIMEWAIT_EXIT"
/* Disconnected perhaps before the RTU has arrived. */
#define SOON_ENDED EST ENDED "|DISCONNECTED ERR, TIMEWAIT_EXIT"
#define SILENCE	   "UNREACHABLE(-110)"

/* set: c core, l long. name, active, passive, lost, times, seconds at most, events of each end. */
#define TRIALS(X)                                                                                  \
	X('c', plain, TALKS, ACCEPTS, NONE, 0, 4, EST ENDED, EST ENDED)                            \
	X('c', plain_left, IS_LEFT, DISCONNECTS, NONE, 0, 4, EST ENDED, EST ENDED)                 \
	X('c', plain_destroys, DESTROYS, ACCEPTS, NONE, 0, 4, EST, EST ENDED)                      \
	X('c', plain_destroyed, IS_LEFT, IS_DESTROYED, NONE, 0, 4, EST ENDED, EST)                 \
	X('c', plain_rejects, TALKS, REJECTS, NONE, 0, 4, "REJECTED(28) ERR", "")                  \
	X('c', plain_drops, TALKS, DROPS, NONE, 0, 4, "REJECTED(28) ERR", "")                      \
	X('c', plain_absent, TALKS, ABSENT, NONE, 0, 4, "REJECTED(8) ERR", "")                     \
	X('c', plain_looks_up, LOOKS_UP, ACCEPTS, NONE, 0, 4, EST, "")                             \
	X('c', plain_no_service, LOOKS_UP, ABSENT, NONE, 0, 4, "UNREACHABLE(1)", "")               \
	X('c', plain_refused, LOOKS_UP, REJECTS, NONE, 0, 4, "UNREACHABLE(2)", "")                 \
	X('c', late, TALKS, ACCEPTS_LATE, NONE, 0, 12, EST ENDED, EST ENDED)                       \
	X('c', leaves, LEAVES, ACCEPTS_LATE, NONE, 0, 12, "", "|REJECTED(6) ERR")                  \
	X('c', req, TALKS, ACCEPTS, REQ, 1, 10, EST ENDED, EST ENDED)                              \
	X('c', rep, TALKS, ACCEPTS, REP, 1, 10, EST ENDED, EST ENDED)                              \
	X('c', rtu, TALKS, ACCEPTS, RTU, 1, 10, EST ENDED, EST ENDED)                              \
	X('c', rtu_early, TALKS, ACCEPTS_EARLY, RTU, 1, 10, EST ENDED,                             \
	  "DISCONNECTED ERR, TIMEWAIT_EXIT|" EST ENDED)                                            \
	X('c', dreq, TALKS, ACCEPTS, DREQ, 1, 10, EST ENDED, EST ENDED)                            \
	X('c', drep, TALKS, ACCEPTS, DREP, 1, 10, EST ENDED, EST ENDED)                            \
	X('c', dreq_left, IS_LEFT, DISCONNECTS, DREQ, 1, 10, EST ENDED, EST ENDED)                 \
	X('c', drep_left, IS_LEFT, DISCONNECTS, DREP, 1, 10, EST ENDED, EST ENDED)                 \
	X('c', dreq_destroyed, IS_LEFT, IS_DESTROYED, DREQ, 1, 10, EST ENDED, EST)                 \
	X('c', rej, TALKS, REJECTS, REJ, 1, 10, "REJECTED(28) ERR", "")                            \
	X('c', rej_drops, TALKS, DROPS, REJ, 1, 10, "REJECTED(28) ERR", "")                        \
	X('c', rej_absent, TALKS, ABSENT, REJ, 1, 10, "REJECTED(8) ERR", "")                       \
	X('c', rej_leaves, LEAVES, ACCEPTS_LATE, REJ, 1, 16, "", "REJECTED(6) ERR|")               \
	X('c', sidr_req, LOOKS_UP, ACCEPTS, SIDR_REQ, 1, 10, EST, "")                              \
	X('c', sidr_rep, LOOKS_UP, ACCEPTS, SIDR_REP, 1, 10, EST, "")                              \
	X('c', mra, TALKS, ACCEPTS_LATE, MRA, 1, 14, EST ENDED, EST ENDED)                         \
	X('c', mra_req, TALKS, ACCEPTS_LATE, REQ, 1, 16, EST ENDED, EST ENDED)                     \
	X('c', mra_rep, TALKS, ACCEPTS_LATE, REP, 1, 16, EST ENDED, EST ENDED)                     \
	X('c', mra_rtu, TALKS, ACCEPTS_LATE, RTU, 1, 16, EST ENDED, EST ENDED)                     \
	X('l', mra_rej, TALKS, REJECTS_LATE, REJ, 1, 60, "REJECTED(28) ERR", "")                   \
	X('c', mra_of_rep, HESITATES, ACCEPTS, MRA, 1, 16, RESPONSE_ENDED, SOON_ENDED)             \
	X('c', hesitates_rep, HESITATES, ACCEPTS, REP, 1, 18, RESPONSE_ENDED, SOON_ENDED)          \
	X('c', hesitates_rtu, HESITATES, ACCEPTS, RTU, 1, 18, RESPONSE_ENDED, SOON_ENDED)          \
	X('l', req_3, TALKS, ACCEPTS, REQ, 3, 25, EST ENDED, EST ENDED)                            \
	X('l', rep_3, TALKS, ACCEPTS, REP, 3, 25, EST ENDED, EST ENDED)                            \
	X('l', rtu_3, TALKS, ACCEPTS, RTU, 3, 25, EST ENDED, EST ENDED)                            \
	X('l', dreq_3, TALKS, ACCEPTS, DREQ, 3, 25, EST ENDED, EST ENDED)                          \
	X('l', drep_3, TALKS, ACCEPTS, DREP, 3, 25, EST ENDED, EST ENDED)                          \
	X('l', rej_3, TALKS, REJECTS, REJ, 3, 25, "REJECTED(28) ERR", "")                          \
	X('l', req_14, TALKS, ACCEPTS, REQ, 14, 90, EST ENDED, EST ENDED)                          \
	X('l', rep_14, TALKS, ACCEPTS, REP, 14, 90, EST ENDED, EST ENDED)                          \
	X('l', dreq_14, TALKS, ACCEPTS, DREQ, 14, 90, EST ENDED, EST ENDED)                        \
	X('l', req_all, TALKS, ACCEPTS, REQ, ALL, 120, SILENCE, "")                                \
	X('l', rep_all, TALKS, ACCEPTS, REP, ALL, 120, SILENCE "|REJECTED(4) ERR",                 \
	  "REJECTED(4) ERR|" SILENCE)                                                              \
	X('l', rtu_all, TALKS, ACCEPTS, RTU, ALL, 120,                                             \
	  EST ", REJECTED(4) ERR|" EST ", DISCONNECTED ERR|" EST                                   \
	      ", REJECTED(4) ERR, TIMEWAIT_EXIT|" EST ENDED,                                       \
	  SILENCE)                                                                                 \
	X('l', rej_all, TALKS, REJECTS, REJ, ALL, 120, SILENCE, "")                                \
	X('l', mra_all, TALKS, ACCEPTS_LATE, MRA, ALL, 30, EST ENDED, EST ENDED)                   \
	X('l', dreq_all, TALKS, ACCEPTS, DREQ, ALL, 120, EST LOST_END, EST)                        \
	X('l', drep_all, TALKS, ACCEPTS, DREP, ALL, 120, EST LOST_END, EST ENDED)                  \
	X('l', sidr_req_all, LOOKS_UP, ACCEPTS, SIDR_REQ, ALL, 120, SILENCE, "")                   \
	X('l', sidr_rep_all, LOOKS_UP, ACCEPTS, SIDR_REP, ALL, 120, SILENCE, "")

#define TRIAL_ROW(set, name, active, passive, lost, ...)                                           \
	{ set, #name, active, passive, MAD_##lost, __VA_ARGS__ },

static const struct row {
	char set;
	const char *name;
	enum active active;
	enum passive passive;
	enum mad lost;
	uint32_t times; /* of these, from the first on, that are lost */
	uint32_t seconds;
	const char *active_events, *passive_events;
} rows[] = { TRIALS(TRIAL_ROW) };
#define NUM_ROWS (sizeof(rows) / sizeof(rows[0]))

#endif
