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

#endif
