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

/* list_json.c: adds an object for dev to the open array. */
void list_json_device(struct json *j, const struct netdev *dev);

#endif
