/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by bind.c, resolve.c, route.c, multicast.c, listen.c: addresses, ports and routes of ids;
 * id.h has the other calls.
 */
#ifndef RDMACM_ADDR_H
#define RDMACM_ADDR_H

#include "../verbs/xroce_cm.h"
#include "address.h"
#include "id.h"

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

/* Claims at one device. Returns 0 or -errno: -EEXIST if already claimed there. */
int claim_at(struct addr_binding *b, struct rdmacm_device *dev);
void claim_drop(struct addr_claim *claims);

/* resolve.c: makes the CM thread follow neighbours. Returns 0 or -errno. Caller holds the lock. */
int neighbours_open(void);
void neighbours_after_fork(void);
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

/* ---- route.c: the path of an id, computed or given by the program ---- */

/*
 * The public copies of an id's addresses and path. The program's thread writes them without the
 * lock, in an event's deliver function or a call of the program.
 */

/* Sets pub.route.addr from src, dst and path. */
void route_show(struct rdmacm_id *id);
/* Sets pub.route.path_rec and num_paths from path and path_mtu. Returns 0 or -ENOMEM. */
int route_show_path(struct rdmacm_id *id);
/* Makes a path's address vector, under rdmacm_lock. 0, or -EADDRNOTAVAIL: its GID is gone. */
int route_ah_attr(const struct rdmacm_id *id, struct ibv_ah_attr *attr);
/* Makes a socket address from a GID; a link-local one gets the device's scope. */
void route_sockaddr(struct sockaddr_storage *out, const struct gid *gid, u16 port, u32 ifindex);
void route_gid(struct gid *gid, const struct sockaddr_storage *address);
u16 route_port(const struct sockaddr_storage *address);

#endif
