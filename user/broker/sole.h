/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sole client: a privileged process that has the interface to itself. It receives by its own
 * AF_XDP sockets, and its program is on the interface's XDP hook, so that its packets pass nothing
 * of the broker. When another process asks for a port, the broker
 *
 *   1. tells the client by its eventfd. The client asks for a TAP device (ASK_OTHERS), and from
 *      then on sends frames to QPs of others by it. A client that does not ask in time, as it is
 *      stopped, delays others no longer; its frames to them are lost until it asks;
 *   2. puts the mux on the hook, which calls the client's program: with either program a packet
 *      from the wire reaches the same socket. Packets of other processes come to the client's ring;
 *   3. serves the others.
 *
 * A second after the last other process has ended, the client's program is put back on the hook,
 * and the client is notified. Nothing waits for the client.
 *
 * Only a broker that ends with its last client (while_used) has a sole client.
 */
#ifndef BROKER_SOLE_H
#define BROKER_SOLE_H

#include "instance.h"

struct broker;
struct client;

enum sole_state {
	SOLE_ALONE,  /* its program is on the hook */
	SOLE_TOLD,   /* the same; it knows that others come */
	SOLE_BESIDE, /* the mux is on the hook */
};

struct sole {
	struct client *client; /* NULL: none; then only `made` is used */
	struct instance made;  /* before the client asks, with its program on the hook; or none */
	enum sole_state state;
	bool refuses; /* it asked to be alone (XROCE_SHARE=never) */
	int prog_fd, others_fd;
	u64 hold_ns;   /* others wait until then for the client to ask for its TAP */
	u64 return_ns; /* when it will have been alone for long enough; NSEC_NEVER: not alone */
};

/*
 * Makes the sole client's program and attaches it, before there is a client. Returns 0, or -errno
 * after a line on standard error.
 */
int sole_begin(struct broker *b);
/* Returns whether a privileged process that asked for a port now would be the sole client. */
bool sole_is_free(const struct broker *b);
/* Returns whether the client, which waits for a port, can be the sole one. */
bool sole_fits(const struct client *c);
/* Gets the instance for the sole client, with its program attached. Returns as sole_begin(). */
int sole_take(struct broker *b, struct instance *i);
/* Puts back an instance that the client did not get. */
void sole_return(struct broker *b, const struct instance *i);
/* Makes c the sole client, which has got the instance. Returns 0 or -errno. */
int sole_enter(struct client *c, const struct instance *i);

/* Reverts sole_enter(), after which the client got no port. */
void sole_leave(struct client *c);

/* Returns whether other clients wait for the sole client's question. */
bool sole_holds_others(const struct broker *b, u64 now_ns);
/*
 * Puts the mux on the hook, for a client that is not the sole one. Returns 0; -EBUSY: the sole
 * client keeps others out, as it asked to be alone, has raw packet QPs, or is in a dispatcher; or
 * -errno after a line on standard error.
 */
int sole_make_way(struct broker *b);
/* Answers ASK_OTHERS. Returns a descriptor, which then belongs to the caller, or -errno. */
int sole_answer_others(struct client *c);

/* Tells the client of others, or puts its program back. Called each turn, before others' work. */
void sole_work(struct broker *b, u64 now_ns);
u64 sole_next_ns(const struct broker *b);
/* Handles the end of a client, after its resources were taken back. The broker may end with it. */
void sole_client_ends(struct client *c);
/* Closes an instance that no client got. */
void sole_drop(struct broker *b);

#endif
