/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Explains why a queue pair is in error, slow or silent, from two readings of the QP and its
 * process. The rules are pure functions of the structs below, so that tests can construct them
 * (tests/unit/test_explain.c). explain_gather.c fills the structs from the maps.
 *
 * All numbers may come from maps that another process writes. Rules compare and print them, and use
 * none as an index.
 */
#ifndef EXPLAIN_H
#define EXPLAIN_H

#include <net/if.h>
#include <xroce/stat.h>

#include "../counters.h"

/* ---- input ---- */

struct explain_qp {
	bool has_stat, has_steer, has_send_cq, has_recv_cq, has_srq;
	u32 qpn;
	u32 link_mtu; /* that frames of its path MTU need; 0: not connected */
	struct xroce_qp_stat stat;
	struct xroce_qp steer; /* XDP's entry */
	struct xroce_cq_stat send_cq, recv_cq;
	struct xroce_srq_stat srq;
};

struct explain_process {
	bool is_known;	     /* /proc/PID was readable */
	u32 threads, stopped; /* stopped: threads stopped by a signal or a debugger */
	u32 ready;	      /* threads running or runnable */
	/* sums over all threads: time on a CPU; time runnable without a CPU */
	u64 ran_ns, waited_ns;
};

struct explain_port {
	u64 time_ns;
	u32 prog_id, pid;
	char command[32];
	char dev[IF_NAMESIZE];
	bool by_sockets; /* receives by UDP sockets, without XDP */
	bool has_iface; /* false: in another network namespace, whose interface is not visible */
	bool is_enabled, is_up; /* is_enabled: administratively up; is_up: also carrier */
	u32 mtu;
	u32 queues;	/* receive queues whose socket has received frames */
	u64 refused;	/* frames refused by the broker's egress program */
	u64 unreachable; /* ICMP "unreachable" received by this network namespace */
	u64 wakeups, unannounced; /* of all vectors: XDP wake-ups; packets for pollers */
	struct sums sums;
	struct explain_process process;
};

/* The first and the second reading. */
struct explain_end {
	const struct explain_port *port[2];
	const struct explain_qp *qp[2]; /* NULL: a case of the port */
};

struct explain_case {
	struct explain_end own;
	bool has_peer;		/* the other end is on this host and readable */
	struct explain_end peer;
	/* the peer's address is local, all processes are readable, and none has the QP */
	bool is_peer_gone;
	double seconds;		/* between the two readings */
};

/* Returns the growth of a counter; 0 if it fell, as a process may write any value. */
static inline u64 grown(u64 before, u64 now)
{
	return now > before ? now - before : 0;
}

/* ---- findings ---- */

enum explain_severity {
	EXPLAIN_NOTE,	/* information; nothing is wrong */
	EXPLAIN_SLOW,	/* works with reduced performance */
	EXPLAIN_BROKEN, /* does not work */
};

struct explain_number {
	const char *name; /* of the counter, as in `xroce qp --json` or `xroce stat` */
	bool is_peers;
	bool has_rate;
	u64 value;
	double rate; /* per second, between the two readings */
};

#define EXPLAIN_NUMBERS 6

struct finding {
	const char *id; /* of the rule: stable, for scripts */
	enum explain_severity severity;
	/* a symptom explained by an earlier finding of the same QP or its port */
	bool is_consequence;
	u32 rank;
	u32 qpn;	/* 0: of the port */
	u32 more;	/* further QPs of the process with the same finding */
	char text[640];
	char guess[512]; /* possible cause of a symptom; "": none */
	char advice[512];
	u32 num_numbers;
	struct explain_number number[EXPLAIN_NUMBERS];
};

struct findings {
	u32 num, room;
	struct finding *list;
};

/* The program exits if memory runs out. */
void findings_begin(struct findings *f);
void findings_end(struct findings *f);

/* Adds the findings of a case: of its QP, or of the port if it has no QP. */
void explain_look(const struct explain_case *c, struct findings *f);
/*
 * Sorts the findings after all cases: most severe first, then the likeliest cause first. Marks
 * symptoms that a cause explains, and merges equal findings of several QPs.
 */
void explain_sort(struct findings *f);
/* Returns the highest severity, EXPLAIN_NOTE without findings. */
enum explain_severity explain_worst(const struct findings *f);

#endif
