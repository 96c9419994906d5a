/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options shared by the subcommands that inspect processes: which ports to show (observe.h) and how
 * to print them.
 */
#ifndef OBSERVE_OPTIONS_H
#define OBSERVE_OPTIONS_H

#include "../cli.h"
#include "observe.h"
#include "../table.h"

struct observe_options {
	const struct command *command;
	const char *dev;   /* NULL: all */
	bool has_pid, has_qpn, has_peer, has_state;
	u32 pid, qpn, state; /* state: enum xroce_qp_state */
	struct gid peer;
	bool json;
	u32 interval_ms;   /* of -w, 0: once; or of -i, 0: not given */
	u32 count;	   /* repetitions; 0: no limit */
	const char *sort;  /* a column; NULL: unsorted */
	const char *view;  /* of `xroce top`; NULL: the first */
	bool is_batch;	   /* print tables even on a terminal */
	bool is_hidden;	   /* this user may not see some processes */
	bool is_partial;   /* a broker does not list other users' processes */
	int err;	   /* why the maps of some process cannot be read, or 0 */
	char silent[IF_NAMESIZE]; /* interface whose broker did not answer in time; "": none */
	u64 time_ns;		  /* CLOCK_MONOTONIC after listing the ports */
	struct observer observer;
};

/*
 * Parses the options and begins to observe. Advances argc and argv past the options. Returns
 * EXIT_OK, then observe_options_end() is due; or EXIT_USAGE or EXIT_FAILED after a line on standard
 * error.
 */
int observe_options_begin(struct observe_options *l, const struct command *command, int *argc,
			  char ***argv);
void observe_options_end(struct observe_options *l);

/*
 * Raises the limit of descriptors: each map of each observed process takes one. Returns EXIT_OK, or
 * EXIT_FAILED after a message if the limit is too low for a single process.
 */
int observe_options_raise_limit(const struct command *command);

/*
 * Lists the ports of the current interfaces, including new ones. A silent broker delays this call,
 * so later readings belong to l->time_ns. Returns 0 or -errno.
 */
int observe_options_list(struct observe_options *l);
/* Calls fn, with a reading of the given parts, for each listed port that --dev and --pid select. */
void observe_options_ports(struct observe_options *l, u32 parts, observe_fn *fn, void *arg);
/* Lists the ports of the known interfaces, then calls fn as observe_options_ports() does. */
void observe_options_each(struct observe_options *l, u32 parts, observe_fn *fn, void *arg);
/* Returns whether --qpn, --peer and --state select the QP. */
bool observe_options_has_qp(const struct observe_options *l, const struct qp_view *v);
/*
 * Returns the exit code for found objects. EXIT_FAILED, with the reason on standard error: a broker
 * did not answer, or none was found although the options select some or some are hidden.
 */
int observe_options_ends(const struct observe_options *l, u32 found, const char *what);
/*
 * Warns on standard error that the port may have more objects if all num elements of a map are in
 * use. used: elements in use; what: the objects' name in the plural.
 */
void observe_options_note_full(const struct observe_options *l, const struct observed *p, u32 used,
			       u32 num, const char *what);
/* Prints the table, or the JSON document {name: [...]}. */
void observe_options_print(const struct observe_options *l, const struct table *t,
			   const char *name);

/* Returns the index of the column that --sort names, or -1 after an error message. */
int observe_options_column(const struct observe_options *l, const struct column *columns, u32 num);

/* Return names for tables; "?" for an unknown number. */
const char *observe_options_state(u32 state);
const char *observe_options_transport(u32 transport);
/* Formats a GID: IPv4-mapped as IPv4, zeros as "-". */
const char *observe_options_gid(const u8 gid[16], char text[46]);

#endif
