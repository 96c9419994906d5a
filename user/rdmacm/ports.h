/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ports of one process's ids, by the rules of the kernel's CM: which may share a port, who may
 * listen, and ports drawn for those that name none. Pure: the owner of a table serialises all calls
 * on it, and arbitrates with other processes itself.
 */
#ifndef RDMACM_PORTS_H
#define RDMACM_PORTS_H

#include "address.h"

/* Part of an id. All but what is the table's is set before ports_bind(). */
struct port_use {
	enum cm_port_space space;
	struct address local;
	struct address remote; /* port 0, any address: not known */
	bool reuse;	       /* RDMA_OPTION_ID_REUSEADDR; ports_listen() clears it */
	bool family_only;      /* of an IPv6 address: not IPv4 too. Of IPv4 always. */

	struct port_use *next; /* the table's; in a table while bound */
	bool bound;
};

#define PORTS_BUCKETS 1024u

/* All 0: no port is in use. */
struct ports {
	struct port_use *bucket[PORTS_BUCKETS]; /* by port */
	u16 last_drawn;
};

struct ports_rules {
	u16 low, high;	 /* ports to be drawn: net.ipv4.ip_local_port_range */
	bool privileged; /* may use ports below 1024: CAP_NET_BIND_SERVICE */
	u32 random;
};

/*
 * Binds use->local.port, or draws one if that is 0. Returns 0; -EPROTONOSUPPORT (no such port
 * space), -EACCES (a port of the privileged), -EADDRINUSE (the same address is bound to it),
 * -EADDRNOTAVAIL (a wildcard address is involved; or all ports are in use): then use is not bound.
 */
int ports_bind(struct ports *ports, struct port_use *use, const struct ports_rules *rules);

/*
 * May use, which is bound, listen? A listener's port is not shared with any that binds later.
 * Errors as above.
 */
int ports_listen(struct ports *ports, struct port_use *use);

/* Does nothing to what is not bound. */
void ports_release(struct ports *ports, struct port_use *use);

#endif
