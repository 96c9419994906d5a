/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Observers of clients' packets: ASK_TRACE, ASK_UNTRACE. Root needs no broker to observe. */
#ifndef BROKER_CLIENT_TRACE_H
#define BROKER_CLIENT_TRACE_H

#include "broker_object.h"

/* The unit in which rings are counted, and the shortest ring; bytes. */
#define CLIENT_TRACE_PIECE 262144u
#define CLIENT_TRACE_KIB   (CLIENT_TRACE_PIECE >> 10)
#define CLIENT_TRACE_OF_USER 256u /* pieces */
#define CLIENT_TRACE_OF_ALL  4096u

/*
 * Starts the tracing of `other` by c. The caller owns the descriptors. Returns 0 or -errno, as in
 * os/ask.h.
 */
int client_trace_begin(struct client *c, struct client *other, const struct ask_trace *want,
		       struct ask_traced *traced, int fd[ASK_TRACE_FDS]);
/* Stops the tracing of a client, which may have ended, by its program. Returns as above. */
int client_trace_end(struct client *c, u32 prog_id, struct ask_traced *traced);
/* Stops all traces by c and of c, as c ends. */
void client_trace_dismiss(struct client *c);
/*
 * Frees a ring of an ended observer. This takes some 10 ms, as do client_trace_begin() and
 * client_trace_end(). Returns false if there is none.
 */
bool client_trace_bury(struct broker *b);

/* Renews the leases if that is due. */
void client_trace_renew(struct broker *b, u64 now_ns);
/* Returns when that is due, or NSEC_NEVER. */
u64 client_trace_next_ns(const struct broker *b);

#endif
