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

/* An option of a subcommand. */
struct cli_option {
	int id;		      /* its letter, or a number from CLI_LONG on; 0: the end */
	const char *name;     /* long name; NULL: it has a letter alone */
	const char *argument; /* its name; NULL: none; "[=NAME]": may be left out */
	const char *text;     /* help, lines separated by '\n'; NULL: not in the help */
	const char *wants;    /* accepted values, for an error message; or NULL */
};

#define CLI_LONG 256
#define CLI_OPTIONS 47 /* most options of a subcommand */

struct command {
	const char *name;
	const char *summary;		  /* a line in `xroce --help` */
	/*
	 * `xroce NAME --help`: help begins with the usage line and ends before the options;
	 * help_end may be NULL. All subcommands have the option --help.
	 */
	const char *help;
	const char *letters;		  /* ids of the common options that it has, or NULL */
	const struct cli_option *options; /* its own options, or NULL */
	void (*make_options)(void);	  /* fills in options before use, or NULL */
	const char *help_end;
	bool is_wrapper;		  /* the first argument ends the options */
	int (*main)(int argc, char **argv); /* argv[0] is the subcommand; returns the exit code */
};

extern const struct command command_run, command_serve, command_stop, command_list, command_doctor,
	command_clients, command_stat, command_qp, command_cq, command_srq, command_mr,
	command_capture, command_trace, command_top, command_explain;
/* tools/bench, tools/export, tools/lab */
extern const struct command command_bench, command_ping, command_export, command_lab;

/* Prints all of its help on standard output. */
void command_help(const struct command *command);

/* Prints "xroce NAME: why", the usage line and a hint on standard error. Returns EXIT_USAGE. */
int usage_error(const struct command *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Parses the options, and advances argc and argv to the other arguments. Calls set() for each
 * option; value is NULL if it has none. set() returns EXIT_OK; CLI_REFUSED, for a message with the
 * option, the value and the accepted values; or another exit code, which ends the parsing.
 * --help prints the help and exits. Returns EXIT_OK, or EXIT_USAGE after a message.
 */
#define CLI_REFUSED (-1)
int cli_parse(const struct command *command, int *argc, char ***argv,
	      int (*set)(void *arg, int id, char *value), void *arg);

/*
 * Parse a value; they return false, with *out undefined, if it is malformed or out of bounds.
 * Numbers are decimal, or hexadecimal after 0x; seconds may have a fraction. An IPv4 address
 * becomes ::ffff:a.b.c.d.
 */
bool cli_number(const char *text, u64 least, u64 most, u64 *out);
bool cli_number32(const char *text, u32 least, u32 most, u32 *out);
bool cli_seconds(const char *text, u64 least_ns, u64 most_ns, u64 *out_ns);
bool cli_address(const char *text, struct gid *gid);

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
/* Returns the text for an error of library_dir(). */
const char *library_why(int err);

/* run/rdma.c: this command by the name RDMA_NAME. Returns the exit code. */
#define RDMA_NAME "rdma"
int rdma_main(int argc, char **argv);

/*
 * serve/serve.c: sends state to systemd, in the protocol of sd_notify(3); does nothing without
 * $NOTIFY_SOCKET.
 */
void notify_systemd(const char *state);

#endif
