/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The multicast groups of a shared interface: which clients have members of which. What the
 * broker's programs are told of a group is made here. Pure: no system call.
 */
#ifndef BROKER_GROUPS_H
#define BROKER_GROUPS_H

#include <xroce/abi.h>

#include "../engine/types.h"

#define GROUPS_BUCKETS 256u
#define GROUPS_OF_USER 1024 /* of all its clients together: a quarter of what there are */

struct groups {
	struct groups_entry *bucket[GROUPS_BUCKETS];
	u32 num;
};

/*
 * A client has members. Returns 0; -EEXIST: it has some already; -ENOSPC: as many clients have as
 * can, or there are as many groups; -ENOMEM.
 */
int groups_enter(struct groups *all, const struct gid *address, u32 client);
/* It has none any more: 0, or -ENOENT: it had none. */
int groups_leave(struct groups *all, const struct gid *address, u32 client);
/* A group that the client has members of, into *address. False: there is none. */
bool groups_next(const struct groups *all, u32 client, struct gid *address);
/* Those of a group, and last among them the one called last. Returns false if there is none. */
bool groups_members(const struct groups *all, const struct gid *address, u32 last,
		    struct xroce_members *out);
void groups_free(struct groups *all);

#endif
