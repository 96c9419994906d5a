/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Declarations shared by the files of `xroce list`: lines of text, and JSON. */
#ifndef LIST_H
#define LIST_H

#include "../cli.h"
#include "../json.h"
#include "../observe/observe.h"

/* The parts of a reading of a process's program. */
#define LIST_PARTS (SNAPSHOT_COUNTERS | SNAPSHOT_ENGINE)

/* list.c: adds the rdma_cm listeners as an array to the open object; nothing if engine is NULL. */
void list_json_listeners(struct json *j, const struct xroce_engine *engine);

/*
 * list.c: returns whether ports of the interface use UDP sockets: as its broker does, or, without
 * one, as the broker that this process would start.
 */
bool list_uses_udp(const struct netdev *dev, bool *has_broker);
/* list.c: returns the largest path MTU, 0 if there is none, and sets *active to active_mtu. */
u32 list_path_mtu(const struct netdev *dev, bool by_udp, u32 *active);

/* list_json.c: adds an object for dev to the open array. */
void list_json_device(struct json *j, const struct netdev *dev);

#endif
