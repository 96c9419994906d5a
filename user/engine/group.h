/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast groups of a device: the UD QPs attached to each address. A packet to such an address
 * and to QP number 0xffffff is for each attached QP: IBTA 10.5, ibv_attach_mcast(3).
 *
 * Engine number 0 owns all members of all groups, as a packet arrives once for all of them.
 */
#ifndef ENGINE_GROUP_H
#define ENGINE_GROUP_H

#include "qp.h"

#define GROUP_MAX	  XROCE_MAX_GROUP
#define GROUP_MEMBERS_MAX 64 /* per group */

struct engine;

/* A multicast address: one of IPv6, or of IPv4 as ::ffff:a.b.c.d. */
static inline bool group_is_address(const struct gid *gid)
{
	return gid->raw[0] == 0xff || (gid_is_ipv4(gid) && (gid->raw[12] & 0xf0) == 0xe0);
}

/*
 * [all] Returns 0, also if the QP is already attached; -EINVAL: not a UD QP, or not a multicast
 * address; -ENOMEM: no memory, or the limit is reached. Engine number 0 then owns the QP.
 */
int group_attach(struct engine *e, struct qp *qp, const struct gid *address, u64 now_ns);
/* [all] Returns 0, or -EINVAL if the QP is not attached there. */
int group_detach(struct engine *e, struct qp *qp, const struct gid *address);
/* [all] Detaches the QP from all groups. */
void group_detach_all(struct engine *e, struct qp *qp);

/* Returns the QPs attached to an address. Here and below: under any engine's lock. */
u32 group_members(const struct engine *e, const struct gid *address);
/* Returns whether any QP is attached to any address. */
bool group_any(const struct engine *e);
/* Returns whether a frame is a packet for attached QPs. */
bool group_takes_frame(const struct engine *e, const struct rx_frame *frame);

#endif
