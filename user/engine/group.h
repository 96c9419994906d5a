/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast groups of a device: which UD QPs are attached to which address. A packet to an address
 * and to QP number 0xffffff is for each QP that is attached there: IBTA 10.5, ibv_attach_mcast(3).
 *
 * All members of all groups are engine number 0's, as a packet comes once for all of them.
 */
#ifndef ENGINE_GROUP_H
#define ENGINE_GROUP_H

#include "qp.h"

#define GROUP_MAX	  XROCE_MAX_GROUP
#define GROUP_MEMBERS_MAX 64 /* of one group */

struct engine;

/* A multicast address: one of IPv6, or of IPv4 as ::ffff:a.b.c.d. */
static inline bool group_is_address(const struct gid *gid)
{
	return gid->raw[0] == 0xff || (gid_is_ipv4(gid) && (gid->raw[12] & 0xf0) == 0xe0);
}

/*
 * [all] Returns 0, also where the QP is attached already; -EINVAL: it is no UD QP, or the address
 * is no group's; -ENOMEM: no memory, or one too many. The QP's owner is engine number 0 from here
 * on.
 */
int group_attach(struct engine *e, struct qp *qp, const struct gid *address, u64 now_ns);
/* [all] Returns 0 or -EINVAL: it is not attached there. */
int group_detach(struct engine *e, struct qp *qp, const struct gid *address);
/* [all] From all. */
void group_detach_all(struct engine *e, struct qp *qp);

/* QPs that are attached to an address. Under the lock of any engine, as the next two. */
u32 group_members(const struct engine *e, const struct gid *address);
/* Is any QP attached to any? */
bool group_any(const struct engine *e);
/* Is it a packet for attached QPs? */
bool group_takes_frame(const struct engine *e, const struct rx_frame *frame);

#endif
