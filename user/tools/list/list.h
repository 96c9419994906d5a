/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions shared by the files of `xroce list`: lines of text, and JSON. */
#ifndef LIST_H
#define LIST_H

#include "../cli.h"
#include "../json.h"

/* list_broker.c: prints the interface's broker and its clients. Returns false if it has none. */
bool list_broker(const struct netdev *dev);

/*
 * list_listener.c: prints the rdma_cm listeners of the process of our program prog_id, if this user
 * may see them. pid 0: the process has no PID here; the PID in its map is not trusted.
 */
void list_listeners(u32 prog_id, u32 pid);
/* Adds the listeners as an array to the open object; nothing if this user may not see them. */
void list_json_listeners(struct json *j, u32 prog_id);

/* list_json.c: adds an object for dev to the open array. */
void list_json_device(struct json *j, const struct netdev *dev);

#endif
