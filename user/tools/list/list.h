/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions shared by the files of `xroce list`: lines of text, and JSON. */
#ifndef LIST_H
#define LIST_H

#include "../cli.h"
#include "../json.h"

/*
 * list.c: adds the rdma_cm listeners as an array to the open object; nothing if this user may not
 * see them.
 */
void list_json_listeners(struct json *j, u32 prog_id);

/* list_json.c: adds an object for dev to the open array. */
void list_json_device(struct json *j, const struct netdev *dev);

#endif
