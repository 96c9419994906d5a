/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The multicast groups of a shared interface, and the clients that have members of each; makes the
 * entries of xroce_members. Pure: no system call.
 */
#ifndef BROKER_GROUPS_H
#define BROKER_GROUPS_H

#include <xroce/abi.h>

#include "../engine/types.h"

#define GROUPS_BUCKETS 256u
#define GROUPS_OF_USER 1024 /* of all its clients together: a quarter of XROCE_MAX_MEMBERS */

struct groups {
	struct groups_entry *bucket[GROUPS_BUCKETS];
	u32 num;
};

/*
 * Adds a client with members. Returns 0, -EEXIST (it has some), -ENOSPC (XROCE_GROUP_CLIENTS
 * clients have members, or there are XROCE_MAX_MEMBERS groups) or -ENOMEM.
 */
int groups_enter(struct groups *all, const struct gid *address, u32 client);
/* Removes a client. Returns 0, or -ENOENT if it has no members. */
int groups_leave(struct groups *all, const struct gid *address, u32 client);
/* Finds any group in which the client has members. Returns false if there is none. */
bool groups_next(const struct groups *all, u32 client, struct gid *address);
/* Lists the clients with members, client `last` at the end. Returns false if there is none. */
bool groups_members(const struct groups *all, const struct gid *address, u32 last,
		    struct xroce_members *out);
void groups_free(struct groups *all);

#endif
