/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The path of an id, made up or given. */
#ifndef RDMACM_PATH_H
#define RDMACM_PATH_H

#include "id.h"

/*
 * RDMA_OPTION_IB_PATH: value is an array of struct ibv_path_data, of which the first that is
 * primary, both ways and for management datagrams is the id's path. The route is resolved then.
 * Returns 0, -EINVAL or -errno.
 */
int path_set(struct rdmacm_id *id, const void *value, size_t len);

/*
 * What a program sees of an id's addresses and path: written in its own thread, without the lock,
 * when it is told (an event's deliver function, or a call of its own).
 */

/* pub.route.addr, from src, dst and path. */
void route_show(struct rdmacm_id *id);
/* pub.route.path_rec and num_paths, from path and path_mtu. 0 or -ENOMEM. */
int route_show_path(struct rdmacm_id *id);
/* A path's address vector, under rdmacm_lock. 0 or -EADDRNOTAVAIL: its GID is no more. */
int route_ah_attr(const struct rdmacm_id *id, struct ibv_ah_attr *attr);
/* A socket address of the GID; of a link-local one with the device's scope. */
void route_sockaddr(struct sockaddr_storage *out, const struct gid *gid, u16 port, u32 ifindex);
void route_gid(struct gid *gid, const struct sockaddr_storage *address);
u16 route_port(const struct sockaddr_storage *address);

#endif
