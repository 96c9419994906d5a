/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a queue pair is in error, slow or silent: what two looks at it and at its process, some time
 * apart, say together. The rules are pure: they read what is here and nothing else, so that tests
 * make it up (tests/unit/test_explain.c). explain_gather.c fills it in from the maps.
 *
 * All numbers may come from maps that another process writes: rules compare them and print them,
 * and index nothing by them.
 */
#ifndef EXPLAIN_H
#define EXPLAIN_H

#include <net/if.h>
#include <xroce/stat.h>

#include "../observe/sums.h"

/* ---- what is looked at ---- */

struct explain_qp {
	bool has_stat, has_steer, has_send_cq, has_recv_cq, has_srq;
	u32 qpn;
	u32 link_mtu; /* that frames of its path MTU need; 0: not connected */
	struct xroce_qp_stat stat;
	struct xroce_qp steer; /* what XDP has */
	struct xroce_cq_stat send_cq, recv_cq;
	struct xroce_srq_stat srq;
};

struct explain_process {
	bool is_known;	     /* its /proc could be read */
	u32 threads, stopped; /* stopped: by a signal or a debugger */
	u32 ready;	      /* running, or ready to run */
	/* of all threads: on a CPU; ready to run, before they were given one */
	u64 ran_ns, waited_ns;
};

struct explain_port {
	u64 time_ns;
	u32 prog_id, pid;
	char command[32];
	char dev[IF_NAMESIZE];
	bool has_iface; /* false: in another network namespace, so nothing is known of it */
	bool is_enabled, is_up; /* administratively; that, and carrier */
	u32 mtu;
	u32 queues;	/* receive queues with a socket that has received */
	u64 refused;	/* frames that its broker's program did not let out */
	u64 unreachable; /* ICMP "unreachable" that this network namespace has received */
	u64 wakeups, unannounced; /* of all vectors: by XDP; packets for threads that watch */
	struct sums sums;
	struct explain_process process;
};

/* The first and the second look. */
struct explain_end {
	const struct explain_port *port[2];
	const struct explain_qp *qp[2]; /* NULL: the rules are about the port */
};

struct explain_case {
	struct explain_end own;
	bool has_peer;		/* the other end is on this host, and may be looked at: */
	struct explain_end peer;
	/* its address is of this host, all processes may be looked at, and none has that QP */
	bool is_peer_gone;
	double seconds;		/* between both looks */
};

/* How much a counter has grown. One that a process writes may do anything, also fall. */
static inline u64 grown(u64 before, u64 now)
{
	return now > before ? now - before : 0;
}

/* ---- what is found ---- */

enum explain_severity {
	EXPLAIN_NOTE,	/* good to know; nothing is wrong */
	EXPLAIN_SLOW,	/* it works at a loss */
	EXPLAIN_BROKEN, /* it does not work */
};

struct explain_number {
	const char *name; /* of the counter, as `xroce qp --json` or `xroce stat` has it */
	bool is_peers;
	bool has_rate;
	u64 value;
	double rate; /* per second, between both looks */
};

#define EXPLAIN_NUMBERS 6

struct finding {
	const char *id; /* of the rule: stable, for scripts */
	enum explain_severity severity;
	/* a symptom that another finding of the same QP, before it, accounts for */
	bool is_consequence;
	u32 rank;
	u32 qpn;	/* 0: of the port */
	u32 more;	/* further QPs of the process with the same finding */
	char text[640];
	char guess[512]; /* of a symptom: what may be behind it. "" : nothing to guess */
	char advice[512];
	u32 num_numbers;
	struct explain_number number[EXPLAIN_NUMBERS];
};

struct findings {
	u32 num, room;
	struct finding *list;
};

/* Memory that there is not ends the program. */
void findings_begin(struct findings *f);
void findings_end(struct findings *f);

/* Adds what the rules find in a case: those of a QP, or if it has none those of a port. */
void explain_look(const struct explain_case *c, struct findings *f);
/*
 * When all QPs have been looked at: the gravest first, then the likeliest cause first; symptoms
 * that a cause accounts for are marked; what several QPs have in common is said once.
 */
void explain_sort(struct findings *f);
/* The gravest. EXPLAIN_NOTE if there are none. */
enum explain_severity explain_worst(const struct findings *f);

#endif
