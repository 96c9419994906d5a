/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce list: the devices as a verbs program would find them. Reads only; opens no device. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "cli.h"

static void print_link(const struct netdev *dev)
{
	printf("  link      %s", dev->is_up ? "up" : "down");
	if (dev->speed_mbps)
		printf(", %u Mb/s", dev->speed_mbps);
	printf(", MTU %u, %u receive queue%s\n", dev->mtu, dev->rx_queues, dev->rx_queues == 1 ? "" : "s");
}

static void print_path_mtu(const struct netdev *dev)
{
	u32 pmtu = netdev_path_mtu(dev->mtu, netdev_kernel_multibuffer());

	if (pmtu)
		printf("  path MTU  %u\n", pmtu);
	else
		printf("  path MTU  none: the link MTU must be at least %u\n", netdev_link_mtu_for(256));
}

static void print_xdp(const struct netdev *dev)
{
	struct xdp_driver driver;
	struct xdp_hook hook;
	int ret = xdp_hook_query(dev->ifindex, &hook);

	if (ret) {
		printf("  XDP       cannot be read: %s\n", strerror(-ret));
		return;
	}
	if (hook.prog_id) {
		printf("  XDP       %s, program %u%s%s\n", hook.native ? "native" : "generic", hook.prog_id, *hook.prog_name ? " " : "",
		       hook.prog_name);
		return;
	}
	xdp_driver_query(dev, &driver);
	printf("  XDP       nothing attached; %s when a program opens it\n", driver.native ? "native" : "generic");
}

static void print_holder(const struct netdev *dev)
{
	char comm[32];
	pid_t pid;

	if (netdev_holder(dev->ifindex, &pid, comm, sizeof(comm)))
		return;
	if (pid)
		printf("  in use    by %s (pid %d)\n", comm, (int)pid);
	else
		printf("  in use    by a process that cannot be seen from here\n");
}

static void print_gids(const struct netdev *dev)
{
	char text[INET6_ADDRSTRLEN];

	if (!dev->num_gids)
		printf("  GID       none: the interface has no address\n");
	for (u32 i = 0; i < dev->num_gids; i++)
		printf("  GID %-4u  %s  RoCE v2\n", i, inet_ntop(AF_INET6, dev->gid[i].gid.raw, text, sizeof(text)));
}

static void print_device(const struct netdev *dev)
{
	printf("xroce_%s\n", dev->name);
	printf("  interface %s, index %u, MAC %02x:%02x:%02x:%02x:%02x:%02x\n", dev->name, dev->ifindex, dev->mac[0], dev->mac[1],
	       dev->mac[2], dev->mac[3], dev->mac[4], dev->mac[5]);
	print_link(dev);
	print_path_mtu(dev);
	print_xdp(dev);
	print_holder(dev);
	print_gids(dev);
}

static int list_main(int argc, char **argv)
{
	struct netdev one, *list;
	int n, ret;

	if (argc > 1 && argv[1][0] == '-')
		return usage_error(&command_list, "unknown option '%s'", argv[1]);
	if (argc > 2)
		return usage_error(&command_list, "more than one interface");
	if (argc == 2) {
		ret = find_device(&command_list, argv[1], &one);
		if (ret)
			return ret;
		print_device(&one);
		return EXIT_OK;
	}

	n = netdev_list(&list);
	if (n < 0) {
		fprintf(stderr, "xroce list: cannot read the network interfaces: %s\n", strerror(-n));
		return EXIT_FAILED;
	}
	for (int i = 0; i < n; i++)
		print_device(&list[i]);
	free(list);
	return n ? EXIT_OK : EXIT_FAILED;
}

const struct command command_list = {
	.name = "list",
	.summary = "show the devices, their GIDs, MTU and link",
	.main = list_main,
	.help =
		"usage: xroce list [IFACE]\n"
		"\n"
		"Shows the RDMA devices that a program has under 'xroce run', in the order in which it finds them: every Ethernet interface of this\n"
		"network namespace, those that are up and have addresses first, and lo last. With IFACE, that one. It opens and attaches\n"
		"nothing.\n"
		"\n"
		"  link      state, speed if the driver tells, MTU, receive queues in use\n"
		"  path MTU  the largest payload of a packet (active_mtu of ibv_query_port(3)); the link MTU bounds it\n"
		"  XDP       the program on the interface's hook and its mode; or the mode that the driver will take: native, in the driver, or\n"
		"            generic, which any interface has and which is slower\n"
		"  in use    the process that has opened the interface, if one has; a second one gets EBUSY\n"
		"  GID n     entry n of the GID table: IPv4 addresses first, then global IPv6, then link-local\n"
		"\n"
		"Environment:\n"
		"  " NETDEV_ENV "  limits the list to that interface\n"
		"\n"
		"Exit status: 0; 1 if there is no device; 2 for wrong usage or no such interface.\n",
};
