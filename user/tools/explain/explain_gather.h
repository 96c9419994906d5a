/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One look at all processes that use interfaces of this network namespace, and for root at those of
 * others on this host, as any of them may be the other end of a connection.
 */
#ifndef EXPLAIN_GATHER_H
#define EXPLAIN_GATHER_H

#include "explain.h"
#include "../observe/observe_options.h"

struct gathered_port {
	struct explain_port port;
	u32 num_qps;
	struct explain_qp *qps; /* by their numbers */
};

struct gathered {
	u32 num, room;
	struct gathered_port *list;
	bool is_whole; /* nothing can be hidden from this user */
};

/* Memory that there is not ends the program. */
void gather(struct observe_options *l, struct gathered *g);
void gathered_end(struct gathered *g);

/* NULL: there is none. Programs' numbers are not used again. */
const struct gathered_port *gathered_find(const struct gathered *g, u32 prog_id);
const struct explain_qp *gathered_qp(const struct gathered_port *p, u32 qpn);
/* The other end of a connection and its port, if it is on this host. NULL: it is not to be seen. */
const struct explain_qp *gathered_peer(const struct gathered *g, const struct explain_qp *q,
				       const struct gathered_port **port);

#endif
