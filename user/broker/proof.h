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

/*
 * Reads the rights that the client's socket for a challenge proves (os/ask.h). port comes from the
 * client. Returns 0, also if there is no such socket, or -errno.
 */
int proof_read(const struct ask_challenge *challenge, u32 port, struct rights *rights);

/* Returns 0 if this kernel describes such sockets, -EOPNOTSUPP (CONFIG_INET_UDP_DIAG) or -errno. */
int proof_possible(void);

#endif
