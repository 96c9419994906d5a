/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the subcommands that look into processes share: their options, which say what is shown and
 * how, and the ports that are looked at (observe.h).
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
	u32 pid, qpn, state; /* enum xroce_qp_state */
	struct gid peer;
	bool json;
	u32 interval_ms;   /* of -w, 0: once; or of -i, 0: not said */
	u32 count;	   /* so often; 0: for ever */
	const char *sort;  /* a column; NULL: as they come */
	const char *view;  /* of `xroce top`; NULL: the first */
	bool is_batch;	   /* as if it were no terminal */
	bool is_hidden;	   /* there is something that this user may not see */
	char silent[IF_NAMESIZE]; /* an interface whose broker did not answer in time; "": none */
	u64 time_ns;		  /* CLOCK_MONOTONIC, when the ports had been listed */
	struct observer observer;
};

/*
 * Reads the options that the letters of allowed name (dpqPsjwnovbi), and begins to observe. argc
 * and argv are moved on to what is no option. Returns EXIT_OK, then observe_options_end(); or
 * EXIT_USAGE, EXIT_FAILED after a line on standard error.
 */
int observe_options_begin(struct observe_options *l, const struct command *command,
			  const char *allowed, int *argc, char ***argv);
void observe_options_end(struct observe_options *l);

/*
 * Raises the limit of descriptors, as each map of each process that is looked at takes one. Returns
 * EXIT_OK, or EXIT_FAILED after a line that says that the limit is too low for a single process.
 */
int observe_options_raise_limit(const struct command *command);

/*
 * Lists the ports of the interfaces that there are now, also of those that have come since. A
 * broker that is silent takes its time here, so what is read then is of l->time_ns. Returns 0 or
 * -errno.
 */
int observe_options_list(struct observe_options *l);
/* Calls fn for each listed port that --dev and --pid let through, while its maps are open. */
void observe_options_ports(struct observe_options *l,
			   void (*fn)(void *arg, const struct observed *p), void *arg);
/* Both, once. */
void observe_options_each(struct observe_options *l,
			  void (*fn)(void *arg, const struct observed *p), void *arg);
/*
 * The exit code when so many were found: EXIT_FAILED, and on standard error why, if there are none
 * though some were asked for, or this user may not see what there is.
 */
int observe_options_ends(const struct observe_options *l, u32 found, const char *what);
/*
 * Says on standard error, if all elements of the port's map of that name are in use, that it may
 * have more objects than are seen. used: elements in use; what: such objects.
 */
void observe_options_note_full(const struct observe_options *l, const struct observed *p,
			       const char *map, u32 used, const char *what);
/* Prints the table, or the JSON document {name: [...]}. */
void observe_options_print(const struct observe_options *l, const struct table *t,
			   const char *name);

/* The column that --sort names; -1 after a line that says that there is none. */
int observe_options_column(const struct observe_options *l, const struct column *columns, u32 num);

/* A line for each option of allowed, for help. */
void observe_options_print_options(const char *allowed);

/* Names, for tables: "?" of numbers that are none. */
const char *observe_options_state(u32 state);
const char *observe_options_transport(u32 transport);
/* An IPv4 address as such; "-" of zeros. */
const char *observe_options_gid(const u8 gid[16], char text[46]);

#endif
