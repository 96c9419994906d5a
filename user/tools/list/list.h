/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of `xroce list` share: as lines for people, as JSON for programs. */
#ifndef LIST_H
#define LIST_H

#include "../cli.h"
#include "../json.h"

/* list_broker.c: prints the interface's broker and its clients. False: it has none. */
bool list_broker(const struct netdev *dev);

/*
 * list_listener.c: prints what the process of our program prog_id listens to by rdma_cm, if this
 * user may see it. pid 0: it has none here; what it says of itself is not believed.
 */
void list_listeners(u32 prog_id, u32 pid);
/* The same as an array of the object that is open; nothing if this user may not see it. */
void list_json_listeners(struct json *j, u32 prog_id);

/* list_json.c: an object, in the array that is open. */
void list_json_device(struct json *j, const struct netdev *dev);

#endif
