/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Services of the connection manager and the clients bound to them, at one address or at all
 * addresses of a family. Bindings of two clients never match the same request; two bindings of one
 * client may, as its CM chooses. Pure, except for the memory that bindings_make() allocates.
 *
 * A request is looked up by a key (struct xroce_service_key): a service, and its address or the
 * address that stands for all of a family. A binding has one key, or one for each family.
 */
#ifndef BROKER_BINDINGS_H
#define BROKER_BINDINGS_H

#include <xroce/abi.h>

#include "../os/ask.h"

#define BINDINGS_NONE (~0u)
struct binding {
	struct ask_service service;
	u32 client;
	u32 next;	   /* in its bucket or the free list */
	u32 before, after; /* in the client's list */
};

struct bindings {
	u32 capacity;
	u32 buckets; /* a power of two */
	u64 seed;    /* odd and random: no client can choose services that share a bucket */
	u32 free;
	u32 *bucket;
	struct binding *binding;
};

/* Keys to add for a new binding, or to remove: at most one for each family. */
struct binding_keys {
	u32 num;
	struct xroce_service_key key[2];
};

/* Returns 0 or -ENOMEM. */
int bindings_make(struct bindings *b, u32 capacity, u64 seed);
void bindings_unmake(struct bindings *b);

/*
 * Returns whether a service needs CAP_NET_BIND_SERVICE: a port below first_port. Services that are
 * not ports never do.
 */
bool binding_is_privileged(const struct ask_service *s, u32 first_port);

/*
 * Binds a client. *list is the client's list, BINDINGS_NONE at first; only these functions change
 * it. Returns 0 (keys: the client's new ones), -EINVAL (not a service), -EADDRINUSE (overlaps
 * another client's), -EEXIST (this client has it) or -ENOSPC.
 */
int bindings_add(struct bindings *b, const struct ask_service *s, u32 client, u32 *list,
		 struct binding_keys *keys);
/* Removes a binding. Returns 0 (keys: the client's lost ones) or -ENOENT (not this client's). */
int bindings_remove(struct bindings *b, const struct ask_service *s, u32 client, u32 *list,
		    struct binding_keys *keys);
/* Removes any binding of the client, as above. Returns false if it has none. */
bool bindings_pop(struct bindings *b, u32 *list, struct binding_keys *keys);

#endif
