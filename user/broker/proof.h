/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Capabilities over the network namespace of this thread, as a client has proved them. */
#ifndef BROKER_PROOF_H
#define BROKER_PROOF_H

#include "../os/ask.h"

struct rights {
	bool here;	/* in the network namespace; otherwise the rest is false */
	bool admin;	/* CAP_NET_ADMIN */
	bool raw;	/* CAP_NET_RAW or CAP_NET_ADMIN */
	bool low_ports; /* CAP_NET_BIND_SERVICE, or there are no low ports */
};

/* How a broker finds the socket that proves a client's rights (os/ask.h). */
enum proof_way {
	PROOF_BY_DIAG, /* sock_diag(7) describes all of it */
	PROOF_BY_BIND, /* its address and port cannot be bound: proves here and low_ports only */
};

/*
 * Returns an enum proof_way: PROOF_BY_BIND on a kernel without CONFIG_INET_UDP_DIAG; or -errno.
 */
int proof_find_way(void);

/*
 * Returns the first free port for a challenge: first_port, or 0 if this process cannot look for
 * sockets below it. Then no client proves low_ports.
 */
u32 proof_first_port(enum proof_way way, u32 first_port);

/*
 * Reads the rights that the client's socket for a challenge proves (os/ask.h). port comes from the
 * client. Returns 0, also if there is no such socket, or -errno.
 */
int proof_read(enum proof_way way, const struct ask_challenge *challenge, u32 port,
	       struct rights *rights);

/*
 * Reads the rights of this thread, without low_ports. None if the broker's program was executed
 * with more privileges than the process had that started it (AT_SECURE). Returns 0 or -errno.
 */
int proof_of_starter(struct rights *rights);

#endif
