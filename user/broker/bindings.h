/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Services of the connection manager and who is bound to them: at one address, or at all addresses
 * of a family. Two clients are never bound to what one request may be for; one client may be, as it
 * arbitrates inside itself. Pure but for the memory that bindings_make() gets.
 *
 * What a request is looked up by is a key (struct xroce_service_key): a service, and its address or
 * the address that stands for all of a family. A binding has one, or one for each family.
 */
#ifndef BROKER_BINDINGS_H
#define BROKER_BINDINGS_H

#include <xroce/abi.h>

#include "../os/ask.h"

#define BINDINGS_NONE (~0u)
struct binding {
	struct ask_service service;
	u32 client;
	u32 next;	   /* in its bucket, or among the free ones */
	u32 before, after; /* of the client's */
};

struct bindings {
	u32 capacity;
	u32 buckets; /* a power of two */
	u64 seed;    /* odd: so that a client cannot choose services that share a bucket */
	u32 free;
	u32 *bucket;
	struct binding *binding;
};

/* Keys that a binding has begun, or a removal has ended: one for each family, or none. */
struct binding_keys {
	u32 num;
	struct xroce_service_key key[2];
};

/* Returns 0 or -ENOMEM. */
int bindings_make(struct bindings *b, u32 capacity, u64 seed);
void bindings_unmake(struct bindings *b);

/*
 * The port that takes privileges to have, if it is below the first one that does not; of services
 * that are no port, none does.
 */
bool binding_is_privileged(const struct ask_service *s, u32 first_port);

/*
 * *list is the client's: BINDINGS_NONE at first, changed by these alone. Returns 0 (keys has those
 * that the client did not have before), -EINVAL (no service), -EADDRINUSE (another's overlaps it),
 * -EEXIST (its own) or -ENOSPC.
 */
int bindings_add(struct bindings *b, const struct ask_service *s, u32 client, u32 *list,
		 struct binding_keys *keys);
/* Returns 0 (keys has those that the client has no more) or -ENOENT (not this client's). */
int bindings_remove(struct bindings *b, const struct ask_service *s, u32 client, u32 *list,
		    struct binding_keys *keys);
/* Takes any of the client's out. False: it has none. */
bool bindings_pop(struct bindings *b, u32 *list, struct binding_keys *keys);

#endif
