/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by bind.c, resolve.c, path.c, option.c, multicast.c, listen.c; id.h has the other calls.
 */
#ifndef RDMACM_ADDR_H
#define RDMACM_ADDR_H

#include "../verbs/xroce_cm.h"
#include "id.h"
#include "ports.h"

/* A service that this process has bound through libibverbs at one device. */
struct addr_claim {
	struct addr_claim *next;
	struct rdmacm_device *device; /* a reference */
	struct xroce_cm_service service;
};

/* The port of an id. */
struct addr_binding {
	struct port_use use;
	struct addr_claim *claims; /* under the lock */
	u32 round;		   /* listen.c's */
};

/* ---- bind.c ---- */

/*
 * Binds an idle id, in its program's thread without the lock. remote: the later destination, or
 * NULL. claim: also claims the port from other processes; otherwise rdma_listen() does. Returns 0
 * or -errno without changes.
 */
int addr_bind(struct rdmacm_id *id, const struct sockaddr *sa, const struct address *remote,
	      bool claim);

/* Returns the local address of a bound id. */
static inline const struct address *addr_local(const struct rdmacm_id *id)
{
	return &id->binding->use.local;
}

/* Copies a program's sockaddr of any family. */
static inline void addr_copy(struct sockaddr_storage *out, const struct sockaddr *sa)
{
	memset(out, 0, sizeof(*out));
	memcpy(out, sa, address_bytes(sa));
}

/* ---- bind.c: ports among processes; without the lock ---- */

/*
 * Claims a port at device dev, or at all devices if dev is NULL. Earlier claims remain. Returns 0
 * or -errno: -EADDRINUSE if another process has it at a device, and then nothing is claimed; or the
 * first error if no device claims it.
 */
int claim_all(struct addr_binding *b, struct rdmacm_device *dev);
/* Claims at one device. Returns 0 or -errno: -EEXIST if already claimed there. */
int claim_at(struct addr_binding *b, struct rdmacm_device *dev);
void claim_drop(struct addr_claim *claims);
/* True if claimed at that device. Caller holds the lock. */
bool claim_is_at(const struct addr_binding *b, const struct rdmacm_device *dev);

/* resolve.c: makes the CM thread follow neighbours. Returns 0 or -errno. Caller holds the lock. */
int neighbours_open(void);
/* resolve.c: ends a resolution, as the id ends or resolves again. Caller holds the lock. */
void resolve_forget(struct rdmacm_id *id);
/* multicast.c: leaves the groups of an id that ends. Caller holds the lock. */
void multicast_forget(struct rdmacm_id *id);

/*
 * ---- listen.c, under the lock: pins keep an id while a library thread uses it without the lock
 * ----
 */

void addr_pin(struct rdmacm_id *id);
void addr_unpin(struct rdmacm_id *id);
void addr_wait_unpinned(struct rdmacm_id *id);

#endif
