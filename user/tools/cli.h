/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Declarations shared by the files of the xroce command: the subcommands, their command lines,
 * and the library's directory.
 */
#ifndef TOOLS_CLI_H
#define TOOLS_CLI_H

#include <xroce/abi.h>

#include "../os/netdev.h"
#include "output.h"

/* Exit codes of all subcommands; `run` also has the shell's 126 and 127. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct command {
	const char *name;
	const char *summary;		  /* a line in `xroce --help` */
	/* `xroce NAME --help`: help begins with the usage line; the other two may be NULL */
	const char *help;
	void (*print_options)(void);
	const char *help_end;
	int (*main)(int argc, char **argv); /* argv[0] is the subcommand; returns the exit code */
};

extern const struct command command_run, command_serve, command_stop, command_list, command_doctor,
	command_clients, command_stat, command_qp, command_cq, command_srq, command_mr,
	command_capture, command_trace, command_top, command_explain;
/* tools/bench, tools/export */
extern const struct command command_bench, command_ping, command_export;

/* Prints all of its help on standard output. */
void command_help(const struct command *command);

/* Prints "xroce NAME: why", the usage line and a hint on standard error. Returns EXIT_USAGE. */
int usage_error(const struct command *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Parses the command line of a subcommand that takes --json and at most one interface (NULL: none).
 * Returns EXIT_OK, or EXIT_USAGE after an error message.
 */
int iface_arguments(const struct command *command, int argc, char **argv, const char **iface,
		    bool *json);

/*
 * Finds the interface of that name, or prints one line on standard error. Returns EXIT_OK,
 * EXIT_USAGE (no such device) or EXIT_FAILED.
 */
int find_device(const struct command *command, const char *name, struct netdev *dev);

/*
 * run/run.c: finds the directory of our libibverbs.so.1, relative to this program. Returns 0,
 * -ENOENT (*dir is the directory tried) or -errno.
 */
int library_dir(char *dir, size_t n);

/*
 * serve/serve.c: sends state to systemd, in the protocol of sd_notify(3); does nothing without
 * $NOTIFY_SOCKET.
 */
void notify_systemd(const char *state);

#endif
