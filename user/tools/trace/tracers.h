/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Looking at all programs of ours on some interfaces, also those of processes that come later:
 * records of all of them, in the order of their times.
 */
#ifndef TRACE_TRACERS_H
#define TRACE_TRACERS_H

#include <net/if.h>

#include "../observe/observe.h"
#include "records.h"
#include "tracer.h"

/* A process's port on an interface, or the broker's part of it. */
struct traced {
	struct tracer tracer;
	u32 prog_id;
	u32 ifindex;
	char iface[IF_NAMESIZE];
	u32 pid;	/* 0: unknown */
	char command[32];
	bool is_broker;	/* what was nobody's is dropped there */
	bool seen;	/* when was last looked for ports */
	bool has_ended;	/* no more are written; its last records may still be unread, or held */
	u64 last_ns;	/* time of the last record that was read */
	u64 read_ns;	/* all of earlier times have been read; NSEC_NEVER: all of it */
	u64 read_bytes;	/* in this round */
	/* packets that it had received and sent when it was first looked at: they are not there */
	u64 received, sent;
	bool told_before; /* the reader has said so */
	struct traced *next;
	struct tracers *all;
};

struct tracers {
	struct tracer_want want;
	const char *dev;  /* an interface; NULL: all */
	u32 pid;	  /* of this process alone; 0: of all */
	bool asks;	  /* brokers, for what only root may */
	struct observer observer;
	struct traced *first;
	u64 look_ns;	  /* when to look for ports again */
	u64 lost_before;  /* of those that have ended */
	u64 interrupted;  /* times that leases ran out: what came then is not counted */
	/* why a process could not be looked at, at the last look; -ETIMEDOUT: a broker is silent */
	int err;
	int told;	/* of err, by tracers_complain() */
	bool no_memory; /* for records */
	struct records records;
	u64 round_bytes;  /* that are read of each port in a round */
	u64 late;	  /* records that came too late for their order, once all has ended */
};

/* Nothing is looked at yet. */
void tracers_begin(struct tracers *t, const struct tracer_want *want, const char *dev, u32 pid);
/*
 * A round: looks for ports, if it is time, renews the leases, reads what there is, and calls fn for
 * each record whose turn has come (records.h). Returns how many there were; -ENOMEM, -errno.
 */
int tracers_round(struct tracers *t, traced_fn *fn, void *arg);
/* Ports that are looked at. */
u32 tracers_num(const struct tracers *t);
/* Records that found no room, of all ports that there have been. */
u64 tracers_lost(const struct tracers *t);
/* No more are written; those that there are come with the next rounds, */
void tracers_stop(struct tracers *t);
/* until this is true. */
bool tracers_are_read(const struct tracers *t);
void tracers_end(struct tracers *t);

/* A line on standard error of what it cannot look at, once for each reason. */
void tracers_complain(struct tracers *t, const char *command);
/* What is to be said at the end, if it is so: records that came late, interruptions. */
void tracers_say_end(const struct tracers *t, const char *command);
/* CLOCK_REALTIME less CLOCK_MONOTONIC, now: for the times of records. */
s64 tracers_real_ns(void);
/* Options: a number from 1 to max; "in" or "out" as XROCE_TRACE_*. False: it is none. */
bool tracers_number(const char *text, u64 max, u64 *out);
bool tracers_direction(const char *text, u32 *what);

#endif
