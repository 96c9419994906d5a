/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first client, which had the interface alone and started the broker (attach/first.h). It keeps
 * its sockets and its link, and admits other processes by ASK_OPEN. If the broker ends before it,
 * it owns the interface alone again; until it puts its program back, the mux passes its packets.
 */
#ifndef BROKER_FIRST_H
#define BROKER_FIRST_H

#include "broker_object.h"

/*
 * Takes over the inherited interface name, link and hairpin, and makes the mux. Returns 0, or
 * -errno after a line on standard error. broker_end() undoes it, also after an error.
 */
int first_begin(struct broker *b);
/* Takes over the socket and the first client's connection, after all else. Returns as above. */
int first_welcome(struct broker *b);

/* Return the answers to ASK_JOIN and ASK_OPEN: 0 or -errno. */
int first_answer_join(struct client *c, bool native, struct ask_port *port, int fd[ASK_JOIN_FDS]);
int first_answer_open(struct client *c);

/* Returns whether ASK_LEAVE is among the unread questions of its closed connection. */
bool first_has_left(int fd);
/* Handles the end of its connection, after its slot was freed. */
void first_gone(struct broker *b);

#endif
