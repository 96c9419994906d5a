/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The path of an id, computed or given by the program. */
#ifndef RDMACM_PATH_H
#define RDMACM_PATH_H

#include "id.h"

/*
 * RDMA_OPTION_IB_PATH: value is an array of struct ibv_path_data. Its first entry that is primary,
 * bidirectional and for management datagrams becomes the id's path. Resolves the route. Returns 0,
 * -EINVAL or -errno.
 */
int path_set(struct rdmacm_id *id, const void *value, size_t len);

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
