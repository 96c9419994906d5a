/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of the xroce command share: the subcommands, the place of the library, the state
 * of an interface's XDP hook.
 */
#ifndef TOOLS_CLI_H
#define TOOLS_CLI_H

#include <xroce/abi.h>

#include "../os/netdev.h"

/* Exit codes that all subcommands share; `run` adds the shells' 126 and 127. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct command {
	const char *name;
	const char *summary;		  /* a line in `xroce --help` */
	/* `xroce NAME --help`: help, whose first line is the usage; the last two may be NULL */
	const char *help;
	void (*print_options)(void);
	const char *help_end;
	int (*main)(int argc, char **argv); /* argv[0] is the subcommand; returns the exit code */
};

extern const struct command command_run, command_serve, command_stop, command_list, command_doctor,
	command_clients, command_stat, command_qp, command_cq, command_srq, command_mr,
	command_capture, command_trace, command_top, command_explain;
/* user/bench, user/export */
extern const struct command command_bench, command_ping, command_export;

/* All of its help, on standard output. */
void command_help(const struct command *command);

/* "xroce NAME: why", a line of usage and a hint on standard error. Returns EXIT_USAGE. */
int usage_error(const struct command *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- output.c ---- */

/* Before any descriptor is opened: those of standard input and output are taken. */
void output_begin(void);
/* Returns status, or EXIT_FAILED after a line that says that not all could be written. */
int output_end(int status);

/* Waits ms milliseconds, or until a signal. Returns true if a reader of standard output has gone.
 */
bool output_wait(u32 ms);

/* What is no printable ASCII becomes '?': names and arguments may have what a terminal obeys. */
void output_clean(char *text);

#define OUTPUT_NAME 32
/* A name of an interface, in which the kernel allows what a terminal obeys, as it is printed. */
const char *output_name(const char *name, char text[OUTPUT_NAME]);

/*
 * observe/iface_owner.c: the process that has an interface, a broker or alone, as netdev_holder()
 * says it.
 */
int iface_holder(u32 ifindex, pid_t *pid, char *comm, size_t n);

/*
 * The command line of a subcommand that takes --json and an interface at most: NULL if there is
 * none. Returns EXIT_OK or EXIT_USAGE, then the reason is printed.
 */
int iface_arguments(const struct command *command, int argc, char **argv, const char **iface,
		    bool *json);

/*
 * The interface of that name, or one clear line on standard error. Returns EXIT_OK, EXIT_USAGE (no
 * such device) or EXIT_FAILED.
 */
int find_device(const struct command *command, const char *name, struct netdev *dev);

/*
 * run/library.c: the directory that holds our libibverbs.so.1, found from where this program lies.
 * Returns 0, -ENOENT (*dir is where it was looked for) or -errno.
 */
int library_dir(char *dir, size_t n);

/* ---- observe/xdp_hook.c: the XDP hook of an interface ---- */

struct xdp_hook {
	u32 prog_id;	    /* 0: nothing attached */
	bool native;	    /* attached in the driver, else generic */
	char prog_name[16]; /* "" without the privilege to ask */
	/* the bpf_link that attached it, 0 if none (or without the privilege to ask) */
	u32 link_id;
	bool is_dispatcher; /* libxdp's, which calls programs of several owners */
	u32 ours_id;	    /* our program, on the hook or in the dispatcher; 0 if there is none */
	bool is_broker;	    /* it is a broker's, in front of its clients' */
	char others[128];   /* the names of what else the dispatcher calls: "a, b", or "" */
};

/* Returns 0 or -errno. */
int xdp_hook_query(u32 ifindex, struct xdp_hook *hook);

/*
 * Adds up all elements, of all CPUs, of the map of that name of our program prog_id: its values
 * begin with so many counters. Returns 0, -ENOENT (it is no program of ours), -EPERM (needs
 * CAP_SYS_ADMIN) or -errno.
 */
int xdp_counters(u32 prog_id, const char *map, u64 *sum, size_t counters);

struct xdp_driver {
	char name[32]; /* "" if it says none */
	bool native;
	bool zero_copy;
	bool multibuffer;
	bool told; /* by the kernel (6.3 on), else by what is known of the driver's name */
};

/* What the driver of dev will take. */
void xdp_driver_query(const struct netdev *dev, struct xdp_driver *driver);

#endif
