/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Resources and limits of each user of a broker. Clients that have proved CAP_NET_ADMIN have no
 * user limit, and are counted apart from other clients of the same user. The broker's limits apply
 * to all. Pure: no system call.
 */
#ifndef BROKER_QUOTA_H
#define BROKER_QUOTA_H

#include <xroce/abi.h>

#include "../engine/types.h"

enum quota_kind {
	QUOTA_CONNECTIONS, /* more than clients, so that a client too many gets an answer */
	QUOTA_CLIENTS,	   /* connections that have a port or wait for one */
	QUOTA_QPS,
	QUOTA_RINGS,
	QUOTA_SERVICES,
	QUOTA_GROUPS,	   /* sum over the user's clients */
	QUOTA_TRACES,	   /* pieces of observers' rings (CLIENT_TRACE_PIECE) */
	QUOTA_MEMORY,	   /* KiB of kernel memory: ports, rings, observers' rings */
	QUOTA_KINDS
};

/* Connections of a user in addition to its clients; in all, kept for root and CAP_NET_ADMIN. */
#define QUOTA_SPARE	  8
#define QUOTA_CONNECTIONS_MAX (XROCE_MAX_CLIENT + QUOTA_SPARE)

/* Users with a connection, and as many that have only memory in use (held.h). */
#define QUOTA_USERS_MAX (2 * QUOTA_CONNECTIONS_MAX)

/* The limits of each kind, for a user and for all users together. */
struct quota_limits {
	u32 user[QUOTA_KINDS];
	u32 all[QUOTA_KINDS];
};

struct quota_user {
	u32 uid;
	bool admin;
	u32 used[QUOTA_KINDS]; /* without a connection and memory the entry is free */
	u64 served;	       /* value of broker.served at its last answer by client_serve() */
	u32 unread;	       /* connections with an unread answer that has descriptors */
	u32 parked;	       /* such connections that have ended (unread.h) */
	u32 held;	       /* ended connections and observations with memory in use (held.h) */
};

struct quota {
	struct quota_limits limits;
	u32 used[QUOTA_KINDS];
	struct quota_user user[QUOTA_USERS_MAX];
};

void quota_init(struct quota *q, const struct quota_limits *limits);

/*
 * Returns the entry of a user, or NULL if none is free. The entry is the user's from its first
 * quota_take() of a connection to its last quota_give() of connections and memory.
 */
struct quota_user *quota_find(struct quota *q, u32 uid, bool admin);

/* Takes one. Returns 0, -EDQUOT (the user's limit is reached) or -ENOSPC (the broker's limit). */
int quota_take(struct quota *q, struct quota_user *user, enum quota_kind kind);
/* Takes n or none. Returns as above. */
int quota_take_some(struct quota *q, struct quota_user *user, enum quota_kind kind, u32 n);
/* Returns how many the user can take, at most. */
u32 quota_left(const struct quota *q, const struct quota_user *user, enum quota_kind kind);
void quota_give(struct quota *q, struct quota_user *user, enum quota_kind kind, u32 n);

#endif
