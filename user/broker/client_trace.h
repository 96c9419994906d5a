/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who looks at whose packets: ASK_TRACE, ASK_UNTRACE. Root needs no broker for that. */
#ifndef BROKER_CLIENT_TRACE_H
#define BROKER_CLIENT_TRACE_H

#include "broker_object.h"

/* Rings are counted in pieces of so many bytes, which is the shortest one. */
#define CLIENT_TRACE_PIECE 262144u
#define CLIENT_TRACE_KIB   (CLIENT_TRACE_PIECE >> 10)
#define CLIENT_TRACE_OF_USER 256u /* pieces */
#define CLIENT_TRACE_OF_ALL  4096u

/*
 * c looks at other from here on. The descriptors are the caller's; the answer is 0 or -errno, as
 * os/ask.h says.
 */
int client_trace_begin(struct client *c, struct client *other, const struct ask_trace *want,
		       struct ask_traced *traced, int fd[ASK_TRACE_FDS]);
/* c looks at the client of that program no longer, which may have ended. As above. */
int client_trace_end(struct client *c, u32 prog_id, struct ask_traced *traced);
/* c ends: it looks at nobody, and nobody at it. */
void client_trace_dismiss(struct client *c);
/*
 * A ring that nobody writes to any more goes, which takes some 10 ms, as the two above. False:
 * there is none.
 */
bool client_trace_bury(struct broker *b);

/* Renews the leases, when it is time. */
void client_trace_renew(struct broker *b, u64 now_ns);
/* When that is; NSEC_NEVER. */
u64 client_trace_next_ns(const struct broker *b);

#endif
