/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A lab that stays: its keeper, and the messages of the commands that use it.
 *
 * The keeper listens at an abstract address of the network namespace where it was started, so that
 * nothing is left of a lab whose keeper is killed. Each side checks the other's user.
 */
#ifndef LAB_KEEP_H
#define LAB_KEEP_H

#include <sys/un.h>

#include "lab_run.h"

enum { LAB_NAME = 32, LAB_PIECE = 2048 };

/* Namespaces that a program enters, in this order. */
enum lab_ns { LAB_NS_USER, LAB_NS_NET, LAB_NS_MOUNT, LAB_NS_PID, LAB_NS_COUNT };

enum lab_op {
	LAB_OP_ENTER, /* answered with LAB_NS_COUNT descriptors */
	LAB_OP_ADD,
	LAB_OP_LIST,
	LAB_OP_CLEAR,
	LAB_OP_DOWN
};

/* SOCK_SEQPACKET; one request a connection. */
struct lab_request {
	u32 op;
	u32 host;		  /* of LAB_OP_ENTER, from 1 */
	char text[LAB_RULE_TEXT]; /* of LAB_OP_ADD and LAB_OP_CLEAR; "": all */
};

/* Answers of some pieces of text; the last one has none. */
struct lab_answer {
	s32 status; /* an exit code */
	u32 num_hosts;
	u8 is_shared, is_plain;
	char text[LAB_PIECE];
};

/* Returns whether a lab may have the name: letters, digits, - and _. */
bool lab_name_is_good(const char *name);
/* Writes the address of this user's lab of that name. Returns its length. */
socklen_t lab_address(const char *name, struct sockaddr_un *address);

/*
 * Runs a lab in a process of its own until it is ended. Prints its messages until it is ready.
 * Returns EXIT_OK, or another exit code after a message.
 */
int lab_keep_start(struct lab *lab, const char *name);
/* Serves requests until one, or a signal, ends the lab. Returns the exit status. */
int lab_keep(struct lab *lab, const struct cable_process *cable, int signal_fd);

/* lab_live.c: the commands. word: up, exec, fault, down or list. Returns the exit status. */
bool lab_live_is_command(const char *word);
int lab_live(int argc, char **argv);

#endif
