/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce list: the devices in the order that a verbs program sees. Reads only; opens no device. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "../../attach/dispatcher.h"
#include "../../os/options.h"
#include "../../io/tx_probe.h"
#include "../../os/xdp_mode.h"
#include "list.h"

static void print_link(const struct netdev *dev)
{
	printf("  link      %s", dev->is_up ? "up" : "down");
	if (dev->speed_mbps)
		printf(", %u Mb/s", dev->speed_mbps);
	printf(", MTU %u, %u receive queue%s\n", dev->mtu, dev->rx_queues,
	       dev->rx_queues == 1 ? "" : "s");
}

static void print_path_mtu(const struct netdev *dev)
{
	u32 pmtu = netdev_path_mtu(dev->mtu, netdev_kernel_multibuffer());
	u32 active = tx_preferred_path_mtu(dev, pmtu);

	if (active < pmtu)
		printf("  path MTU  %u; active %u, as longer frames cannot be redirected\n", pmtu,
		       active);
	else if (pmtu)
		printf("  path MTU  %u\n", pmtu);
	else
		printf("  path MTU  none: the link MTU must be at least %u\n",
		       netdev_link_mtu_for(256));
}

/* Prints the frames that our program redirected to the sockets, and the frames that they lost. */
static void print_received(u32 prog_id)
{
	struct xroce_rx_stats rx;
	struct xroce_sock sock;
	u64 lost;

	if (xdp_counters(prog_id, XROCE_MAP_RX, (u64 *)&rx, sizeof(rx) / sizeof(u64)) ||
	    xdp_counters(prog_id, XROCE_MAP_SOCK, (u64 *)&sock, sizeof(sock) / sizeof(u64)))
		return;
	lost = sock.rx_ring_full + sock.rx_dropped;
	printf("  received  %llu frames, %llu refused by a check, lost %llu",
	       (unsigned long long)rx.redirected, (unsigned long long)rx.dropped,
	       (unsigned long long)lost);
	if (lost)
		printf(" (receive ring full %llu, no buffer to receive into %llu)",
		       (unsigned long long)sock.rx_ring_full, (unsigned long long)sock.rx_dropped);
	putchar('\n');
}

/* Prints how frames were sent since the program was attached. */
static void print_sent(u32 prog_id)
{
	struct xroce_engine_stats stats;

	if (xdp_counters(prog_id, XROCE_MAP_ENGINE_STAT, (u64 *)&stats,
			 sizeof(stats) / sizeof(u64)))
		return;
	printf("  sent by   TAP device %llu, live frames %llu, super-packets %llu (in %llu), "
	       "AF_XDP %llu",
	       (unsigned long long)stats.tx_tap, (unsigned long long)stats.tx_live,
	       (unsigned long long)stats.tx_gso, (unsigned long long)stats.tx_gso_sends,
	       (unsigned long long)stats.tx_xsk);
	if (stats.tx_slowed)
		printf("; losses slowed it %llu times", (unsigned long long)stats.tx_slowed);
	if (stats.tx_lost)
		printf("; %llu refused", (unsigned long long)stats.tx_lost);
	if (stats.tx_gave_up)
		printf("; super-packets given up %llu times", (unsigned long long)stats.tx_gave_up);
	putchar('\n');
}

/* Prints how frames will be sent once a program opens the interface. */
static void print_way_out(const struct netdev *dev, const struct xdp_driver *driver)
{
	char text[OUTPUT_NAME];
	const char *name = output_name(*driver->name ? driver->name : dev->name, text);
	const char *sockets = tx_may_gso(dev) ? "UDP super-packets and AF_XDP" : "AF_XDP";

	switch (tx_probe(dev->ifindex)) {
	case TX_PROBE_REDIRECT:
		printf("  sends by  XDP redirection: TAP device and live frames; %s for long "
		       "frames\n",
		       sockets);
		return;
	case TX_PROBE_NOT_NOW:
		printf("  sends by  %s; XDP redirection while %s takes redirected frames%s\n",
		       sockets, name,
		       strcmp(name, "veth") ?
			       "" :
			       ", that is, while its other end has native XDP or GRO");
		return;
	case TX_PROBE_ZERO_COPY:
		printf("  sends by  AF_XDP, zero-copy\n");
		return;
	case TX_PROBE_FORCED_XSK:
		printf("  sends by  AF_XDP, as XROCE_TX says\n");
		return;
	case TX_PROBE_FORCED_GSO:
		printf("  sends by  UDP super-packets, as XROCE_TX says\n");
		return;
	case TX_PROBE_NO_NATIVE:
		printf("  sends by  %s: %s takes no redirected frames\n", sockets, name);
		return;
	case TX_PROBE_UNTOLD:
		printf("  sends by  %s: the kernel does not tell whether %s takes redirected "
		       "frames; 6.3 does\n",
		       sockets, name);
		return;
	case TX_PROBE_NO_TUN:
		printf("  sends by  %s: redirection needs " TX_TUN_DEVICE ": %s\n", sockets,
		       strerror(errno));
		return;
	}
}

/* Prints the program on the hook, and whether other programs can be added. */
static void print_hook(const struct xdp_hook *hook)
{
	printf("  XDP       %s, ", hook->native ? "native" : "generic");
	if (hook->ours_id && hook->is_dispatcher)
		printf("program %u " DISPATCHER_OURS " in dispatcher %u", hook->ours_id,
		       hook->prog_id);
	else if (hook->is_dispatcher)
		printf("dispatcher %u, which takes one of ours too", hook->prog_id);
	else
		printf("program %u%s%s%s", hook->prog_id, *hook->prog_name ? " " : "",
		       hook->prog_name,
		       hook->is_broker ? ", of a broker" :
		       hook->ours_id   ? ", exclusive" :
					 "");
	printf("%s%s\n", *hook->others ? ", with " : "", hook->others);
}

/* Returns the ID of our program on the interface, 0 if there is none. */
static u32 print_xdp(const struct netdev *dev)
{
	struct xdp_driver driver;
	struct xdp_hook hook;
	int ret = xdp_hook_query(dev->ifindex, &hook);

	if (ret) {
		printf("  XDP       cannot be read: %s\n", strerror(-ret));
		return 0;
	}
	if (hook.prog_id) {
		print_hook(&hook);
		if (hook.ours_id) {
			print_received(hook.ours_id);
			print_sent(hook.ours_id);
		}
		return hook.ours_id;
	}
	xdp_driver_query(dev, &driver);
	printf("  XDP       nothing attached; %s when a program opens it, %s\n",
	       driver.native && xdp_mode(dev) != XDP_MODE_GENERIC ? "native" : "generic",
	       options_attach() == ATTACH_DISPATCHER ? "in a dispatcher" : "exclusive");
	print_way_out(dev, &driver);
	return 0;
}

/* Returns the holder's PID, 0 if there is none in this namespace. */
static pid_t print_holder(const struct netdev *dev)
{
	char comm[32];
	pid_t pid = 0;

	if (iface_holder(dev->ifindex, &pid, comm, sizeof(comm)))
		return 0;
	if (pid)
		printf("  in use    by %s (pid %d)\n", comm, (int)pid);
	else
		printf("  in use    by a process that cannot be seen from here\n");
	return pid;
}

static void print_gids(const struct netdev *dev)
{
	char text[INET6_ADDRSTRLEN];

	if (!dev->num_gids)
		printf("  GID       none: the interface has no address\n");
	for (u32 i = 0; i < dev->num_gids; i++)
		printf("  GID %-4u  %s  RoCE v2\n", i,
		       inet_ntop(AF_INET6, dev->gid[i].gid.raw, text, sizeof(text)));
}

static void print_device(const struct netdev *dev)
{
	char name[OUTPUT_NAME];
	u32 ours_id;
	pid_t pid;

	output_name(dev->name, name);
	printf("xroce_%s\n", name);
	printf("  interface %s, index %u, MAC %02x:%02x:%02x:%02x:%02x:%02x\n", name,
	       dev->ifindex, dev->mac[0], dev->mac[1], dev->mac[2], dev->mac[3], dev->mac[4],
	       dev->mac[5]);
	print_link(dev);
	print_path_mtu(dev);
	ours_id = print_xdp(dev);
	if (!list_broker(dev)) {
		pid = print_holder(dev);
		if (ours_id)
			list_listeners(ours_id, (u32)pid);
	}
	print_gids(dev);
}

static void list_json(const struct netdev *list, int n)
{
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_array(&j, "devices");
	for (int i = 0; i < n; i++)
		list_json_device(&j, &list[i]);
	json_close(&j);
	json_close(&j);
	json_end(&j);
}

static int list_main(int argc, char **argv)
{
	struct netdev one, *list = &one;
	const char *name;
	bool is_json;
	int n = 1, ret = iface_arguments(&command_list, argc, argv, &name, &is_json);

	if (!ret && name)
		ret = find_device(&command_list, name, &one);
	if (ret)
		return ret;
	if (!name)
		n = netdev_list(&list);
	if (n < 0) {
		fprintf(stderr, "xroce list: cannot read the network interfaces: %s\n",
			strerror(-n));
		return EXIT_FAILED;
	}
	if (is_json)
		list_json(list, n);
	for (int i = 0; !is_json && i < n; i++)
		print_device(&list[i]);
	if (list != &one)
		free(list);
	return n ? EXIT_OK : EXIT_FAILED;
}

const struct command command_list = {
	.name = "list",
	.summary = "show the devices, their GIDs, MTU and link",
	.main = list_main,
	.help = "usage: xroce list [OPTION] [IFACE]\n"
		"\n"
		"Shows the RDMA devices that a program has under 'xroce run', in the order in "
		"which it finds them: every Ethernet interface of this\n"
		"network namespace, those that are up and have addresses first; lo is one only "
		"where XROCE_DEV or --dev asks for it. With IFACE,\n"
		"that one. It opens and attaches nothing.\n"
		"\n"
		"  -j, --json  JSON, for programs: the same by name\n"
		"  -h, --help  this text\n"
		"\n"
		"  link      state, speed if the driver tells, MTU, receive queues in use\n"
		"  path MTU  the largest payload of a packet, which the link MTU bounds; and the "
		"one that programs are told (active_mtu of\n"
		"            ibv_query_port(3)) if that is another, because shorter frames leave "
		"faster: a program may still ask for the larger\n"
		"  XDP       the program on the interface's hook and its mode; or the mode that it "
		"will have: native, in the driver, or generic,\n"
		"            which any interface has; it is slower but on veth, where it takes "
		"what native mode has the other end cut up;\n"
		"            exclusive, in a dispatcher of libxdp's, with the other programs "
		"that it calls, or a broker's (root sees them)\n"
		"  sends by  the way that frames will leave, and why not a faster one: XDP "
		"redirection (small batches through a TAP device, large\n"
		"            ones as XDP live frames); else UDP super-packets of up to 64 frames "
		"through a packet socket, and AF_XDP, which always\n"
		"            works, for frames that are alone\n"
		"  received  of an interface in use, the frames that XDP handed to AF_XDP sockets, "
		"those that it dropped as not allowed\n"
		"            (bpftool map dump name xroce_drop tells why), and those that a socket "
		"lost as nobody took them in time; as it\n"
		"            was a tenth of a second ago at most, while the program runs (root "
		"sees it)\n"
		"  sent by   of an interface in use, the frames that left by each way, and in how "
		"many packets those of the packet socket (root\n"
		"            sees it)\n"
		"  broker    the process that shares the interface ('xroce serve'), and\n"
		"  client    each process that has it open by that: its number, process and user, "
		"QPs; frames received and sent, by which way, and\n"
		"            those that the broker's program did not let out (root sees all "
		"clients, and what they receive; others see their own)\n"
		"  sharing   the process that has opened the interface alone, and lets others "
		"in: it starts a broker for the first of them\n"
		"  in use    the process that has opened the interface, if one has it alone; "
		"without a line 'sharing' a second one gets EBUSY\n"
		"  listens   each address and port that a process listens to by rdma_cm, where the "
		"others connect (root sees them; the first 126 of a\n"
		"            process)\n"
		"  GID n     entry n of the GID table: IPv4 addresses first, then global IPv6, "
		"then link-local\n"
		"\n"
		"Environment:\n"
		"  " NETDEV_ENV "  limits the list to that interface\n"
		"  XROCE_ATTACH  auto, dispatcher or exclusive: whether other XDP programs can be "
		"on the interface\n"
		"  XROCE_TX   auto, xsk, tap, live or gso: takes the choice between the ways away "
		"from programs (xsk is AF_XDP alone)\n"
		"\n"
		"Exit status: 0; 1 if there is no device; 2 for wrong usage or no such "
		"interface.\n",
};
