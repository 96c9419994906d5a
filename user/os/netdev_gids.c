/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "kernel.h"
#include "netdev.h"

int netdev_publish_gids(int map_fd, const struct netdev *before, const struct netdev *now)
{
	int err = 0;

	/* old ones first, as the map may be full */
	for (u32 i = 0; i < before->num_gids; i++)
		if (!netdev_has_gid(now, &before->gid[i].gid))
			kernel_map_remove(map_fd, &before->gid[i].gid);
	for (u32 i = 0; i < now->num_gids; i++) {
		const int ret = kernel_map_put(map_fd, &now->gid[i].gid, &i);

		if (ret && !err)
			err = ret;
	}
	return err;
}
