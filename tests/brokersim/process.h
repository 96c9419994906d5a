/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A client's process: process.c and process_sole.c. */
#ifndef BROKERSIM_PROCESS_H
#define BROKERSIM_PROCESS_H

#include "sim.h"

#include "../../user/engine/qp.h"
#include "../../user/port/port_object.h"

struct link_watch {
	link_watch_fn *fn;
	void *arg;
};

/* The process's memory. */
struct process {
	u32 index;
	struct port port;
	struct shard shard;
	struct xroce_engine engine_word;
	struct xroce_engine_stats stats;
	struct xroce_drops drops;
	struct cq cq;
	struct qp *qp[2 * QPS];
	u32 num_qps;
	u32 posted;	/* requests and receives that have not completed */
	bool has_port;	/* the broker has confirmed the port, and its end was not noticed */
	bool rests;	/* no question is outstanding: its resources are complete */
	bool draws;	/* a number for a QP that is being made */
	u32 generation; /* of the broker whose client it is */
	struct link_watch watch;
	bool watches;
	u32 num_fds; /* of its port */
	/* process_sole.c */
	bool has_sockets;  /* its port */
	u32 meetings;	   /* TAP devices that it got */
	bool meets;	   /* it has read its eventfd, and asks */
	bool met_nobody;   /* the broker could not give it a TAP device */
	int tap_fd;	   /* to other processes; -1: none */
	u32 tap;	   /* its ifindex; 0: none */
	struct qp *raw_qp; /* NULL: none */
};

/* Returns whether the process's broker is running, and not ending. */
bool process_is_served(const struct process *p);
/* Like the thread that waits for the hang-up: the port is lost, once, with all posted work. */
void process_look(struct process *p);

/* Returns 0 or -errno. */
int process_open(struct process *p);
/* Releases everything that the process has. */
void process_close(struct process *p);
int process_make_qp(struct process *p);
void process_destroy_qp(struct process *p);

/* ---- process_hoard.c: MODE_HOARDS ---- */

/* Leaves answers with descriptors unread on connections that are shut down. */
void process_hoard(const struct process *p);

/* ---- process_sole.c: runs with sole clients ---- */

/* The whole life of the process. */
void process_sole_main(struct process *p);
/* Destroys its raw packet QP, without a word to the broker, if it has one. */
void process_sole_forget(struct process *p);
/* Says that it leaves, and waits until the broker has taken everything back. */
void process_sole_leave(struct process *p);
/* Checks its view against the broker's. c: the process at the broker. */
void process_sole_check(const struct process *p, const struct broker *b, const struct client *c);

#endif
