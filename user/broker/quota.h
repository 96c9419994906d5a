/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What each user has of a broker, and may have. Clients that have proved CAP_NET_ADMIN have no
 * limit of their own, and are counted apart from their user's others; what there is in all bounds
 * them too. Pure: no system call.
 */
#ifndef BROKER_QUOTA_H
#define BROKER_QUOTA_H

#include <xroce/abi.h>

#include "../engine/types.h"

enum quota_kind {
	QUOTA_CONNECTIONS, /* of any kind; more than clients, so that a refusal can be said */
	QUOTA_CLIENTS,	   /* those that have a port */
	QUOTA_QPS,
	QUOTA_RINGS,
	QUOTA_SERVICES,
	QUOTA_GROUPS,	   /* of each of its clients */
	QUOTA_TRACES,	   /* pieces of rings, of those that look at clients */
	QUOTA_MEMORY,	   /* KiB of the kernel's: ports, rings, rings of those that look */
	QUOTA_KINDS
};

/* Connections that a user may have beside its clients, and uid 0 beside all others'. */
#define QUOTA_SPARE	  8
#define QUOTA_CONNECTIONS_MAX (XROCE_MAX_CLIENT + QUOTA_SPARE)

/* Of each kind: what a user may have, and what there is. */
struct quota_limits {
	u32 user[QUOTA_KINDS];
	u32 all[QUOTA_KINDS];
};

struct quota_user {
	u32 uid;
	bool admin;
	u32 used[QUOTA_KINDS]; /* no connection: the place is free */
	u64 served;	       /* when it had its last, as of struct broker */
	u32 unread;	       /* connections with an unread answer that has descriptors */
};

struct quota {
	struct quota_limits limits;
	u32 used[QUOTA_KINDS];
	struct quota_user user[QUOTA_CONNECTIONS_MAX];
};

void quota_init(struct quota *q, const struct quota_limits *limits);

/*
 * The entry of a user, NULL if there is no room. It is the user's from its first connection taken
 * to its last one given back.
 */
struct quota_user *quota_find(struct quota *q, u32 uid, bool admin);

/* Returns 0, -EDQUOT (the user has all that it may) or -ENOSPC (there is no more). */
int quota_take(struct quota *q, struct quota_user *user, enum quota_kind kind);
/* The same with n of them, or none. */
int quota_take_some(struct quota *q, struct quota_user *user, enum quota_kind kind, u32 n);
/* How many it could take, at most. */
u32 quota_left(const struct quota *q, const struct quota_user *user, enum quota_kind kind);
void quota_give(struct quota *q, struct quota_user *user, enum quota_kind kind, u32 n);

#endif
