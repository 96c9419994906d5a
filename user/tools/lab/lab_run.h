/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A lab that runs: its hosts, cable, programs, and actions at their times. */
#ifndef LAB_RUN_H
#define LAB_RUN_H

#include <limits.h>
#include <sys/types.h>

#include "../../fault/endpoint.h"
#include "cable.h"
#include "lab_action.h"

enum {
	LAB_SETTINGS = 192,
	LAB_TIMEOUT = 124, /* exit status after the deadline */
	LAB_SIGNALS = 4,
};

/* The signals that end a lab. */
extern const int lab_signals[LAB_SIGNALS];

struct lab_program {
	char *shell; /* a command for sh -c, or */
	char **argv; /* the words of the command line; both NULL: no program */
	pid_t pid;   /* 0: not running */
	bool was_started;
};

/* In shared memory: the results of programs, for the report. */
struct lab_shown {
	bool began;
	bool has_acted[LAB_ACTIONS];
	int status[LAB_HOSTS]; /* exit status, or 128 + signal */
	bool was_ended[LAB_HOSTS];
	/* of a rule of an endpoint, by its place: the first hits */
	struct lab_endpoint_hits {
		u32 num;
		u8 host[LAB_RULE_SHOWN];
		char text[LAB_RULE_SHOWN][FAULT_SHOWN_TEXT];
	} endpoint[LAB_RULES];
};

/* An option of the command line, or of a case. */
struct lab_setting {
	int id;
	char *value; /* NULL: it has none */
};

struct cable_process {
	pid_t pid;
	int control_fd;
};

struct lab {
	u32 num_hosts, mtu;
	u64 seed;
	u64 delay_ns, bits_per_second, wait_ns, timeout_ns;
	bool is_shared, is_plain, may_miss;
	bool is_alone; /* one program: it has standard input */
	bool is_kept;  /* `xroce lab up`: */
	int listen_fd; /* its socket */
	const char *json, *record, *replay;
	const char *capture; /* a file; NULL: none */
	int capture_fd;
	const char *cases, *one_case, *junit; /* a file of cases, or its name; NULL: none */
	bool is_each;
	struct lab_setting settings[LAB_SETTINGS]; /* in their order */
	u32 num_settings;
	char *texts[LAB_RULES];
	u32 num_texts;
	char *recorded; /* the words of a record; kept until the process exits */
	struct lab_program programs[LAB_HOSTS];
	struct lab_action actions[LAB_ACTIONS];
	u32 num_actions;
	struct cable *cable;
	struct lab_shown *shown;
	char self[PATH_MAX]; /* this command */
	pid_t child;	     /* the next process, which gets signals */
	struct lab_host hosts[LAB_HOSTS];
	int fault_fd[LAB_HOSTS]; /* sockets for results of endpoints' rules; -1: none */
};

/* Finds this command's file. Returns EXIT_OK, or another exit status after a message. */
int lab_prepare(struct lab *lab);
/*
 * Runs the programs to their end, in the lab's namespaces. Returns the highest exit status, or
 * EXIT_FAILED after a message.
 */
int lab_run(struct lab *lab);
/* Sets the environment of a host's program. number: the host's, from 1. */
void lab_run_environment(const struct lab *lab, u32 number);
/*
 * Makes a mount namespace with /sys/class/net of the host. A container may refuse it: programs then
 * see the one outside.
 */
void lab_run_mount_sys(void);
/* Executes the program of programs[i]. Returns after a message if it cannot. */
void lab_run_program(const struct lab *lab, u32 i);
/* Returns the exit status for a wait status: the process's, or 128 and the signal's number. */
int lab_exit_status(int status);
/* Prints "xroce lab: cannot WHAT: REASON". Returns EXIT_FAILED. */
int lab_failed(const char *what, int err);

#endif
