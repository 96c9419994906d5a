/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening a device by its name. */
#include "device.h"

#include <errno.h>
#include <string.h>

#include "ctl.h"

struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	must(list, "ibv_get_device_list: %s", strerror(errno));
	for (int i = 0; list[i] && !ctx; i++) {
		if (name && strcmp(ibv_get_device_name(list[i]), name) != 0)
			continue;
		ctx = ibv_open_device(list[i]);
		must(ctx, "ibv_open_device(%s): %s", ibv_get_device_name(list[i]), strerror(errno));
	}
	ibv_free_device_list(list);
	must(ctx, "no device %s", name ? name : "at all");
	return ctx;
}
