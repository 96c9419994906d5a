/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The collector: reads all interfaces and their ports, and keeps state between scrapes. The totals
 * of an interface include ports that have ended, for the time that the collector saw them. They
 * never fall while the interface exists.
 */
#ifndef EXPORT_COLLECT_H
#define EXPORT_COLLECT_H

#include "../counters.h"
#include "shares.h"
#include "watched.h"

enum collect_error {
	COLLECT_INTERFACES, /* the interfaces could not be read */
	COLLECT_BROKER,	    /* a broker did not answer */
	COLLECT_MAPS,	    /* maps of a port could not be opened */
	COLLECT_MEMORY,
	COLLECT_ERRORS,
};

#define COLLECT_NAMES 64 /* at least the entries of counters_names[] */

struct device {
	u32 ifindex, mtu;
	char name[IF_NAMESIZE];
	bool is_listed, is_up;
	bool is_whole;	  /* all of its ports were listed */
	bool is_hidden;	  /* some ports may be hidden from this user */
	bool is_shown;	  /* in use now or earlier, or named by --dev */
	bool is_shared, is_silent; /* the broker answers; it does not, and a process is there */
	u64 silent_until_ns; /* its broker is not asked earlier */
	bool is_lost;	  /* its broker was killed, and no process has used it since */
	u32 ports;	  /* without the broker */
	struct counts total;
	u64 names[COLLECT_NAMES]; /* counters_names values, kept monotonic */
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
	struct tomb *tombs; /* recently ended ports, which may return */
	u32 num_tombs;
	struct shares processes; /* nth: index in ports. Words: struct counts */
	struct shares qps;	 /* nth: index in qp_rows. Words: qp_fields */
	struct qp_row {
		u32 port, nth; /* port: index in ports; nth: index in its qps */
	} *qp_rows;
	u32 num_qp_rows, room_qp_rows;
	bool is_up;
	u64 collects, errors[COLLECT_ERRORS];
	u64 took_ns, at_ns;
};

/* A counter of a queue pair: a u64 in struct qp_view. */
struct qp_field {
	const char *name, *unit;
	const char *text; /* NULL: as of the counter at sum */
	u32 offset;	  /* in struct qp_view */
	u32 sum;	  /* in struct sums, of the sum over all QPs */
};
extern const struct qp_field qp_fields[];
extern const u32 qp_num_fields;

void collector_begin(struct collector *c, const char *dev, u32 most_processes, u32 most_qps);
void collector_end(struct collector *c);
void collector_collect(struct collector *c);

struct device *collector_device(const struct collector *c, u32 ifindex);

#endif
