/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traces one xroce program (struct tracer): a leased slot among its tracers, and a ring buffer that
 * the program writes to (xroce/trace.h). Root takes a slot and makes a ring itself. Other users
 * receive both from the broker, for their own processes. If this process is killed, the program
 * runs on as without a tracer.
 *
 * Traces all xroce programs on some interfaces (struct tracers), including programs that start
 * later, and merges their records by time.
 */
#ifndef TRACE_TRACER_H
#define TRACE_TRACER_H

#include <net/if.h>

#include "../../client/ask.h"
#include "../../broker/trace_slot.h"
#include "../observe/observe.h"
#include "records.h"

struct ring_reader;

struct tracer_want {
	u32 what;	/* XROCE_TRACE_* */
	u32 qpn;	/* 0: all */
	u32 bytes;	/* limit for each packet */
	bool has_peer;
	struct gid peer;
	u32 ring_bytes;	/* a power of two, whole pages */
};

/*
 * Called for each record: r has size bytes, more than a struct xroce_record, valid until the
 * return. A negative value ends tracer_read(); the record counts as read.
 */
typedef int tracer_fn(void *arg, const struct xroce_record *r, u32 size);

struct tracer {
	struct tracer_want want;
	struct trace_slot slot; /* slot taken by root */
	struct asker *asker;	/* NULL: root's tracer, or a stopped one */
	struct asker *broker;	/* of root's tracer, which passes on reports; NULL: none */
	u32 prog_id;
	int page_fd;		/* with a broker: map of struct xroce_trace */
	u32 number;		/* slot in the page */
	u64 lost, lost_before;	/* the slot's counter at the last and the first reading */
	u64 lost_elsewhere;	/* lost records in slots held earlier */
	int ring_fd;
	struct ring_reader *ring;
	u8 *copy; /* of a record that its writer could change; NULL: XDP wrote it */
	bool is_out; /* another tracer has the slot that was lost with the lease */
	tracer_fn *fn;
	void *arg;
};

/*
 * Begins as root. Returns 0; -ENOENT: no xroce program of this version has the ID; -EBUSY: all
 * slots are taken; -EPERM (needs CAP_SYS_ADMIN); -errno.
 */
int tracer_open(struct tracer *t, u32 prog_id, const struct tracer_want *want, tracer_fn *fn,
		void *arg);
/*
 * Begins through the broker for its client number. The caller keeps asker, which must stay
 * connected while the tracer is open. Returns as tracer_open(); -EDQUOT: the user has reached its
 * limit of rings; or as ask_trace().
 */
int tracer_ask(struct tracer *t, struct asker *asker, u32 number, u32 prog_id,
	       const struct tracer_want *want, tracer_fn *fn, void *arg);
/*
 * Renews the lease; due several times per XROCE_TRACE_LEASE. Takes an expired lease again as soon
 * as a slot is free. Returns true if it expired since the last call: losses then were not counted.
 */
bool tracer_renew(struct tracer *t);
/* Reads all records until fn returns a negative value. Returns false then, as more may be left. */
bool tracer_read(struct tracer *t);
/* Returns the packets and events lost for lack of room, at the last read or stop. */
u64 tracer_lost(const struct tracer *t);
/*
 * Stops the program's records and frees the slot. Records in the ring can still be read, and
 * tracer_lost() then has the final count.
 */
void tracer_stop(struct tracer *t);
void tracer_close(struct tracer *t);

/* ---- all programs ---- */

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
	u64 silent_ns;	  /* since then a broker has not answered; 0: all answer */
	u64 lost_before;  /* lost records of stopped tracers */
	u64 interrupted;  /* expired leases; records lost then are not counted */
	/* why a process was not traced in the last search; -ETIMEDOUT: a silent broker */
	int err;
	int told;	/* err that tracers_complain() has printed */
	bool told_waits; /* it has printed that no process is traced yet */
	bool is_partial; /* processes of other users are hidden from this one */
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

/* Prints t->err on standard error, once for each reason; and that no process is traced yet. */
void tracers_complain(struct tracers *t, const char *command);
/* Prints a broker's silence at the end, and the number of late records and of interruptions. */
void tracers_say_end(struct tracers *t, const char *command);
/* Returns CLOCK_REALTIME minus CLOCK_MONOTONIC, to convert the times of records. */
s64 tracers_real_ns(void);
/*
 * Takes a common option of capture and trace: -q, -p, -Q or -D; -D sets *until_ns
 * (CLOCK_MONOTONIC). Returns false if the value is invalid.
 */
bool tracers_option(struct tracer_want *want, u32 *pid, u64 *until_ns, int id, const char *value);

#endif
