/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traces all xroce programs on some interfaces, including programs that start later, and merges
 * their records by time.
 */
#ifndef TRACE_TRACERS_H
#define TRACE_TRACERS_H

#include <net/if.h>

#include "../observe/observe.h"
#include "records.h"
#include "tracer.h"

/* A process's port on an interface, or the broker's program. */
struct traced {
	struct tracer tracer;
	u32 prog_id;
	u32 ifindex;
	char iface[IF_NAMESIZE];
	u32 pid;	/* 0: unknown */
	char command[32];
	bool is_broker;	/* the broker's program drops packets that belong to no process */
	bool seen;	/* found in the last search for ports */
	bool has_ended;	/* stopped; its last records may still be unread or held */
	u64 last_ns;	/* time of the last record read */
	u64 read_ns;	/* records before this time are read; NSEC_NEVER: all */
	u64 read_bytes;	/* in the current round */
	/* packets received and sent before the trace joined */
	u64 received, sent;
	bool told_before; /* received and sent were printed */
	struct traced *next;
	struct tracers *all;
};

struct tracers {
	struct tracer_want want;
	const char *dev;  /* an interface; NULL: all */
	u32 pid;	  /* only this process; 0: all */
	bool asks;	  /* through brokers, without CAP_SYS_ADMIN */
	struct observer observer;
	struct traced *first;
	u64 look_ns;	  /* time of the next search for ports */
	u64 lost_before;  /* lost records of stopped tracers */
	u64 interrupted;  /* expired leases; records lost then are not counted */
	/* why a process was not traced in the last search; -ETIMEDOUT: a silent broker */
	int err;
	int told;	/* err that tracers_complain() has printed */
	bool no_memory; /* for a record */
	struct records records;
	u64 round_bytes;  /* limit of a port in a round */
	u64 late;	  /* records delivered out of order, set by tracers_end() */
};

/* Initializes t without opening a tracer. */
void tracers_begin(struct tracers *t, const struct tracer_want *want, const char *dev, u32 pid);
/*
 * Runs a round: searches for ports if due, renews the leases, reads the rings, and calls fn for
 * each record that is due (records.h). Returns their number, -ENOMEM or -errno.
 */
int tracers_round(struct tracers *t, traced_fn *fn, void *arg);
/* Returns the number of traced ports. */
u32 tracers_num(const struct tracers *t);
/* Returns the records lost for lack of room, over all ports so far. */
u64 tracers_lost(const struct tracers *t);
/* Stops all tracers. Further rounds deliver the remaining records, */
void tracers_stop(struct tracers *t);
/* until this returns true. */
bool tracers_are_read(const struct tracers *t);
void tracers_end(struct tracers *t);

/* Prints t->err on standard error, once for each reason. */
void tracers_complain(struct tracers *t, const char *command);
/* Prints the number of late records and of interruptions, if any. */
void tracers_say_end(const struct tracers *t, const char *command);
/* Returns CLOCK_REALTIME minus CLOCK_MONOTONIC, to convert the times of records. */
s64 tracers_real_ns(void);
/* Parse a number from 1 to max; "in" or "out" as XROCE_TRACE_*. Return false if invalid. */
bool tracers_number(const char *text, u64 max, u64 *out);
bool tracers_direction(const char *text, u32 *what);

#endif
