/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One reading of all processes that use interfaces of this network namespace. Root also reads
 * processes of other namespaces on this host, as any may be the peer of a connection.
 */
#ifndef EXPLAIN_GATHER_H
#define EXPLAIN_GATHER_H

#include "explain.h"
#include "../observe/observe_options.h"

struct gathered_port {
	struct explain_port port;
	u32 num_qps;
	struct explain_qp *qps; /* sorted by QPN */
};

struct gathered {
	u32 num, room;
	struct gathered_port *list;
	bool is_whole; /* no process can be hidden from this user */
};

/* The program exits if memory runs out. */
void gather(struct observe_options *l, struct gathered *g);
void gathered_end(struct gathered *g);

/* Return NULL if there is none. Program IDs are not reused. */
const struct gathered_port *gathered_find(const struct gathered *g, u32 prog_id);
const struct explain_qp *gathered_qp(const struct gathered_port *p, u32 qpn);
/* Returns the other end of a connection and sets *port; NULL if it is not visible here. */
const struct explain_qp *gathered_peer(const struct gathered *g, const struct explain_qp *q,
				       const struct gathered_port **port);

#endif
