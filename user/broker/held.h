/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernel memory that processes hold by descriptors of maps and rings. A process can keep these
 * after its connection has ended, or pass them on. So the memory counts for its user until the
 * kernel has freed the maps, which map_ids.h shows, or the files of a broker with UDP sockets
 * (file_ids.h). That is some 50 ms after the last descriptor was closed: a port for which the
 * user lacks memory waits for that, at most HELD_WAIT_NS.
 *
 * Clients with CAP_NET_ADMIN have no limit of memory, and their maps are not followed. Memory that
 * the kernel does not show no longer counts from the end of the connection.
 */
#ifndef BROKER_HELD_H
#define BROKER_HELD_H

#include "broker_object.h"

/*
 * How long a port waits for memory. A hundred processes that exit together close their TAP devices,
 * and then their maps, in turn.
 */
#define HELD_WAIT_NS (5 * NSEC_PER_SEC)

/* Makes room for n more numbers. Returns 0 or -ENOMEM. */
int held_reserve(struct held_ids *ids, u32 n);
/* Notes a map or file whose descriptor a client of user gets, after held_reserve(). */
void held_note(struct broker *b, const struct quota_user *user, struct held_ids *ids, int fd);
void held_forget(struct held_ids *ids);

/*
 * Returns the user's memory, kib and pieces of QUOTA_TRACES, to the quota when these maps no longer
 * exist, or at once if they are not followed. Empties ids.
 */
void held_begin(struct broker *b, struct quota_user *user, struct held_ids *ids, u32 kib,
		u32 pieces);
/* Returns whether the user lacks kib, and may get memory back. */
bool held_may_return(const struct broker *b, const struct quota_user *user, u32 kib);
/* Looks for maps that no longer exist now, and soon again. */
void held_hurry(struct broker *b);

/*
 * As quota_find(). If no entry is free, some users have memory and no connection: forgets the
 * memory of such users until an entry is free.
 */
struct quota_user *held_find_user(struct broker *b, u32 uid, bool admin);

/* Returns when held_work() is due, or NSEC_NEVER. */
u64 held_next_ns(const struct broker *b);
/* Looks for maps that no longer exist, if due. Returns whether it did: it takes a millisecond. */
bool held_work(struct broker *b, u64 now_ns);
void held_end(struct broker *b);

#endif
