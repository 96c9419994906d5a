/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ports of one process's ids, by the rules of the kernel's CM: sharing of ports, listening, and
 * drawn ports for ids without one. No I/O: the owner of a table serialises all calls on it, and
 * arbitrates with other processes itself.
 */
#ifndef RDMACM_PORTS_H
#define RDMACM_PORTS_H

#include "address.h"

/* Part of an id. The owner sets all fields but the table's before ports_bind(). */
struct port_use {
	enum cm_port_space space;
	struct address local;
	struct address remote; /* port 0, any address: not known */
	bool reuse;	       /* RDMA_OPTION_ID_REUSEADDR; ports_listen() clears it */
	bool family_only;      /* IPv6 only, not IPv4 too; always set for IPv4 */

	struct port_use *next; /* next use in the table's bucket, while bound */
	bool bound;
};

#define PORTS_BUCKETS 1024u

/* All 0: no port is in use. */
struct ports {
	struct port_use *bucket[PORTS_BUCKETS]; /* by port */
	u16 last_drawn;
};

struct ports_rules {
	u16 low, high;	 /* range to draw from: net.ipv4.ip_local_port_range */
	bool privileged; /* may use ports below 1024: CAP_NET_BIND_SERVICE */
	u32 random;
};

/*
 * Binds use->local.port, or draws a port if that is 0. Returns 0; -EPROTONOSUPPORT (no such port
 * space), -EACCES (a privileged port), -EADDRINUSE (the same address is bound to it),
 * -EADDRNOTAVAIL (a wildcard address is involved; or all ports are in use). On error, binds
 * nothing.
 */
int ports_bind(struct ports *ports, struct port_use *use, const struct ports_rules *rules);

/* Lets a bound use listen. No later bind can share a listener's port. Errors as above. */
int ports_listen(struct ports *ports, struct port_use *use);

/* Does nothing if use is not bound. */
void ports_release(struct ports *ports, struct port_use *use);

#endif
