/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../attach/ask.h"
#include "../../os/process.h"
#include "../cli.h"

/*
 * Asks at the sharing socket, whose server accepts connections. Connections to the holder's socket
 * stay in its listen queue, which would fill up (os/netdev_holder.c).
 */
int iface_holder(u32 ifindex, pid_t *pid, char *comm, size_t n)
{
	struct asker asker;
	int err;

	ask_init(&asker);
	err = ask_connect(&asker, netdev_netns(), ifindex);
	*pid = err ? 0 : ask_server(&asker);
	ask_close(&asker);
	if (*pid <= 0)
		return netdev_holder(ifindex, pid, comm, n);
	process_name(*pid, comm, n);
	return 0;
}
