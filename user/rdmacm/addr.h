/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of addresses share among themselves; what others call of them is in id.h. */
#ifndef RDMACM_ADDR_H
#define RDMACM_ADDR_H

#include "../verbs/xroce_cm.h"
#include "id.h"
#include "ports.h"

/* A service that this process has from libibverbs at one device. */
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
 * Binds an id that is idle, in its program's thread without the lock. remote is what it is going to
 * connect to, or NULL. claim: other processes are asked as well; rdma_listen() does if this was
 * not. Returns 0 or -errno; then nothing has changed.
 */
int addr_bind(struct rdmacm_id *id, const struct sockaddr *sa, const struct address *remote,
	      bool claim);

/* The local address of an id that is bound. */
static inline const struct address *addr_local(const struct rdmacm_id *id)
{
	return &id->binding->use.local;
}

/* The sockaddr of a program's, whose family may be any, as bytes. */
static inline void addr_copy(struct sockaddr_storage *out, const struct sockaddr *sa)
{
	memset(out, 0, sizeof(*out));
	memcpy(out, sa, address_bytes(sa));
}

/* ---- bind.c: ports among processes; without the lock ---- */

/*
 * Claims a port at its device, or at all devices if it has none. What it has already stays. Returns
 * 0 or -errno: -EADDRINUSE, another process has it at one of them, and none is claimed; or the
 * first error if there is no device at which it is.
 */
int claim_all(struct addr_binding *b, struct rdmacm_device *dev);
/* At one device. 0, or -errno: -EEXIST, it is claimed there. */
int claim_at(struct addr_binding *b, struct rdmacm_device *dev);
void claim_drop(struct addr_claim *claims);
/* Is it claimed at that device? Under the lock. */
bool claim_is_at(const struct addr_binding *b, const struct rdmacm_device *dev);

/* resolve.c: the CM thread hears of neighbours from here on. Under the lock. 0 or -errno. */
int neighbours_open(void);
/* resolve.c: an id ends, or resolves anew; under the lock. */
void resolve_forget(struct rdmacm_id *id);
/* multicast.c: an id ends; under the lock. */
void multicast_forget(struct rdmacm_id *id);

/*
 * ---- listen.c: an id that a thread of ours looks at without the lock does not end meanwhile. All
 * under the lock. ----
 */

void addr_pin(struct rdmacm_id *id);
void addr_unpin(struct rdmacm_id *id);
void addr_wait_unpinned(struct rdmacm_id *id);

#endif
