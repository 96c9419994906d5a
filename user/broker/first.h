/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The client that had the interface alone before, and has started the broker (attach/first.h): it
 * keeps its sockets and its link, and others come in when it says so. When the broker ends before
 * it, it has the interface alone again: its packets go to it until it has put its own program back.
 */
#ifndef BROKER_FIRST_H
#define BROKER_FIRST_H

#include "broker_object.h"

/*
 * The broker begins with what it inherits: the interface's name and link. Nothing has to be undone
 * by the caller after an error but what broker_end() undoes.
 */
int first_begin(struct broker *b);
/* After the mux and the books: the socket, and the connection of that process. */
int first_welcome(struct broker *b);

/* What it asks. */
int first_answer_join(struct client *c, bool native, struct ask_port *port, int fd[ASK_JOIN_FDS]);
int first_answer_open(struct client *c);

/* Its connection has hung up: has it said before that it goes on without the broker? */
bool first_has_left(int fd);
/* Its connection has ended; its place has been taken back. */
void first_gone(struct broker *b);

#endif
