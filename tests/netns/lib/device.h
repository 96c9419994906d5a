/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef NETNS_DEVICE_H
#define NETNS_DEVICE_H

#include <infiniband/verbs.h>

/* The device of that name, or the first if name is NULL; dies if there is none. */
struct ibv_context *open_device(const char *name);

#endif
