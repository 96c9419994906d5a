/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../attach/ask.h"
#include "../../os/process.h"
#include "../cli.h"

/*
 * At the socket where it lets others in, whose connections it takes: those to the other one stay in
 * its queue, which is full some day (os/netdev_holder.c).
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
