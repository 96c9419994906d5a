/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The collector: looks at all interfaces and their ports, and keeps what a scrape alone would lose.
 * The totals of an interface are what its ports have counted while the collector saw them, those
 * that have ended too: they never fall while the interface is there.
 */
#ifndef EXPORT_COLLECT_H
#define EXPORT_COLLECT_H

#include "../counter_names.h"
#include "shares.h"
#include "watched.h"

enum collect_error {
	COLLECT_INTERFACES, /* the interfaces could not be read */
	COLLECT_BROKER,	    /* a broker did not answer */
	COLLECT_MAPS,	    /* maps of a port could not be opened */
	COLLECT_MEMORY,
	COLLECT_ERRORS,
};

#define COLLECT_NAMES 64 /* of user/tools/counter_names.c, and room */

struct device {
	u32 ifindex, mtu;
	char name[IF_NAMESIZE];
	bool is_listed, is_up;
	bool is_whole;	  /* all of its ports could be listed */
	bool is_hidden;	  /* this user might not see all of them */
	bool is_shown;	  /* somebody uses it, or did, or it was asked for */
	bool is_shared, is_alone; /* it has a broker; a process has it alone */
	bool is_left;	  /* the socket of a process that was killed is there, unused */
	bool was_alone;	  /* a process had it alone when it was last seen in use */
	bool is_lost;	  /* its broker was killed, and no process has it since */
	u32 ports;	  /* but for the broker */
	struct counts total;
	u64 names[COLLECT_NAMES]; /* as counter_names, and none falls */
	struct objects_now objects;
};

struct tomb {
	struct watched_mark mark;
	u32 ifindex;
	u64 died_ns;
};

struct collector {
	const char *dev; /* NULL: all */
	struct device *devices;
	u32 num_devices;
	struct watched **ports;
	u32 num_ports, room_ports;
	struct tomb *tombs; /* those that died last; they may come back under another program */
	u32 num_tombs;
	struct shares processes; /* nth: of ports. Words: struct counts */
	struct shares qps;	 /* nth: of qp_rows. Words: qp_fields */
	struct qp_row {
		u32 port, nth; /* of its qps */
	} *qp_rows;
	u32 num_qp_rows, room_qp_rows;
	bool is_up;
	u64 collects, errors[COLLECT_ERRORS];
	u64 took_ns, at_ns;
};

/* A counter of a queue pair: of struct qp_view, a u64. */
struct qp_field {
	const char *name, *unit, *text;
	u32 offset;
};
extern const struct qp_field qp_fields[];
extern const u32 qp_num_fields;

void collector_begin(struct collector *c, const char *dev, u32 most_processes, u32 most_qps);
void collector_end(struct collector *c);
void collector_collect(struct collector *c);

const struct device *collector_device(const struct collector *c, u32 ifindex);

#endif
