/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce list: the devices in the order that a verbs program sees, and for a shared interface the
 * broker's process, its clients and their rdma_cm listeners. Reads only; opens no device.
 */
#include <arpa/inet.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../client/ask.h"
#include "../../client/attach.h"
#include "../../io/tx.h"
#include "../../io/tx_policy.h"
#include "../../os/ask.h"
#include "../../os/gid_text.h"
#include "../../os/netdev.h"
#include "../../os/options.h"
#include "../../os/process.h"
#include "../observe/observe.h"
#include "list.h"

/* ---- rdma_cm listeners, from the map of a process's XDP program ---- */

/* RDMA_PS_*: bits 16 and up of the service ID of a port. */
static const struct port_space {
	u16 number;
	const char *name;
} port_spaces[] = { { 0x0002, "IPOIB" }, { 0x0106, "TCP" }, { 0x0111, "UDP" }, { 0x013f, "IB" } };

static void listener_service(u64 service, char *text, size_t n)
{
	for (u32 i = 0; i < sizeof(port_spaces) / sizeof(port_spaces[0]); i++)
		if (service >> 16 == port_spaces[i].number) {
			snprintf(text, n, "%s port %u", port_spaces[i].name,
				 (unsigned int)(service & 0xffff));
			return;
		}
	snprintf(text, n, "service 0x%016llx", (unsigned long long)service);
}

static void listener_address(const struct xroce_listener *l, char *said, size_t n)
{
	static const u8 any[16];
	char text[GID_TEXT];

	if (!memcmp(l->address, any, sizeof(any)))
		snprintf(said, n, "any%s address",
			 l->families == ASK_IPV4 ? " IPv4" :
			 l->families == ASK_IPV6 ? " IPv6" :
						   "");
	else
		snprintf(said, n, "%s", gid_text(l->address, text));
}

/*
 * Prints the rdma_cm listeners of a process, if this user may see them. pid 0: the process has no
 * PID here; the PID in its map is not trusted.
 */
static void list_listeners(const struct xroce_engine *engine, u32 pid)
{
	char who[64] = "a process that is not visible here", comm[32];
	char service[48], address[INET6_ADDRSTRLEN + 16];
	u32 shown = 0;

	if (!engine || !engine->listeners)
		return;
	if (pid) {
		process_name((pid_t)pid, comm, sizeof(comm));
		snprintf(who, sizeof(who), "pid %u (%s)", pid, comm);
	}
	for (u32 i = 0; i < XROCE_LISTENERS; i++) {
		const struct xroce_listener *l = &engine->listener[i];

		if (!l->families)
			continue;
		shown++;
		listener_service(l->service, service, sizeof(service));
		listener_address(l, address, sizeof(address));
		printf("  listens   %s: %s at %s\n", who, service, address);
	}
	if (engine->listeners > shown)
		printf("  listens   %s: %u more\n", who, engine->listeners - shown);
}

void list_json_listeners(struct json *j, const struct xroce_engine *engine)
{
	char service[48], address[INET6_ADDRSTRLEN + 16];

	if (!engine)
		return;
	json_open_array(j, "listeners");
	for (u32 i = 0; i < XROCE_LISTENERS; i++) {
		const struct xroce_listener *l = &engine->listener[i];

		if (!l->families)
			continue;
		listener_service(l->service, service, sizeof(service));
		listener_address(l, address, sizeof(address));
		json_open_object(j, NULL);
		json_text(j, "service", service);
		json_text(j, "address", address);
		json_close(j);
	}
	json_close(j);
}

/* ---- the broker and its clients ---- */

static void list_user(u32 uid, char *text, size_t n)
{
	const struct passwd *entry = getpwuid(uid);

	if (entry)
		snprintf(text, n, "%s", entry->pw_name);
	else
		snprintf(text, n, "%u", uid);
}

/* Prints the client program's redirected and lost frames; needs CAP_SYS_ADMIN. */
static void list_received(const struct ask_client *c, const struct snapshot *s)
{
	const u64 lost = s->sums.xdp.ring_full;

	if (!snapshot_has(s, SUM_RX) || !snapshot_has(s, SUM_XDP))
		return;
	printf("; received %llu frames by its %s", (unsigned long long)s->sums.rx.redirected,
	       c->sockets ? "AF_XDP sockets" : "ring");
	if (lost)
		printf(", lost %llu because it was full", (unsigned long long)lost);
}

/* Prints what the client sent; at a broker with UDP sockets it does not pass the broker. */
static void list_sent(const struct ask_client *c)
{
	if (c->sockets)
		printf("; sent %llu to processes here", (unsigned long long)c->hairpin);
	else
		printf("; sent by TAP device %llu, and %llu to processes here",
		       (unsigned long long)c->frames, (unsigned long long)c->hairpin);
	if (c->refused)
		printf(", %llu refused", (unsigned long long)c->refused);
}

static void list_client(struct asker *asker, const struct ask_client *c, bool udp)
{
	char user[64], command[sizeof(c->command)];
	struct snapshot s;

	snapshot_read_client(&s, asker, c, udp ? SNAPSHOT_ENGINE : LIST_PARTS);
	list_user(c->uid, user, sizeof(user));
	snprintf(command, sizeof(command), "%.*s", (int)sizeof(c->command) - 1, c->command);
	printf("  client    %u: pid %u (%s) of %s, %u QP%s", c->client, c->pid, command, user,
	       c->qps, c->qps == 1 ? "" : "s");
	if (c->services)
		printf(", bound to %u service%s", c->services, c->services == 1 ? "" : "s");
	list_received(c, &s);
	if (udp)
		printf("; sends by its own UDP sockets");
	else
		list_sent(c);
	if (c->memory)
		printf("; uses %.1f MiB of kernel memory", (double)c->memory / 1048576);
	putchar('\n');
	list_listeners(s.engine, c->pid);
	snapshot_end(&s);
}

/* Prints the P_Keys if the table has more than the default key. */
static void list_pkeys(const struct pkey_table *pkeys)
{
	if (pkeys->num == 1)
		return;
	printf("  P_Keys   ");
	for (u32 i = 0; i < pkeys->num; i++)
		printf(" 0x%04x", pkeys->key[i]);
	putchar('\n');
}

static bool list_withholds(struct asker *asker)
{
	struct ask_client none;

	/* the last answer of a listing has the mark */
	return ask_list(asker, XROCE_MAX_CLIENT, &none) == -ENOENT && asker->withholds;
}

/* Returns false if the broker is ending. */
static bool list_clients(struct asker *asker)
{
	struct ask_kind kind = { .pkeys = PKEY_TABLE_DEFAULT };
	const pid_t pid = ask_server(asker);
	struct ask_client client;
	char comm[32];
	int err = ask_list(asker, 0, &client);
	bool any = !err;

	process_name(pid, comm, sizeof(comm));
	if (err == -ETIMEDOUT) {
		printf("  broker    pid %d (%s), does not answer\n", (int)pid, comm);
		return true;
	}
	if (ask_is_over(err))
		return false;
	if (ask_is_over(ask_kind(asker, &kind)))
		return false;
	printf("  broker    pid %d (%s)%s%s\n", (int)pid, comm,
	       kind.udp ? ", receives by UDP sockets" : "",
	       list_withholds(asker) ? ", with these clients of this user:" : "");
	list_pkeys(&kind.pkeys);
	for (; !err; err = ask_list(asker, client.client + 1, &client))
		list_client(asker, &client, kind.udp);
	if (!any)
		printf("  client    none\n");
	return true;
}

/* Prints the interface's broker and its clients. Returns false if it has none. */
static bool list_broker(const struct netdev *dev)
{
	struct asker asker;
	bool found = false;
	int err;

	ask_init(&asker);
	asker.max_ns = OBSERVE_ASK_NS;
	err = ask_connect(&asker, netdev_netns(), dev->ifindex);
	if (err == -EACCES)
		printf("  broker    permission denied for this user\n");
	if (!err)
		found = list_clients(&asker);
	ask_close(&asker);
	return found || err == -EACCES;
}

/* ---- a device ---- */

static void print_link(const struct netdev *dev)
{
	printf("  link      %s", dev->is_up ? "up" : "down");
	if (dev->speed_mbps)
		printf(", %u Mb/s", dev->speed_mbps);
	printf(", MTU %u, %u receive queue%s\n", dev->mtu, dev->rx_queues,
	       dev->rx_queues == 1 ? "" : "s");
}

bool list_uses_udp(const struct netdev *dev, bool *has_broker)
{
	struct ask_kind kind = { 0 };

	*has_broker = ask_kind_of(netdev_netns(), dev->ifindex, &kind);
	return *has_broker ? kind.udp : attach_would_use_udp();
}

u32 list_path_mtu(const struct netdev *dev, bool by_udp, u32 *active)
{
	const u32 pmtu = netdev_path_mtu(dev->mtu, by_udp || netdev_kernel_multibuffer());

	*active = by_udp ? pmtu : tx_preferred_path_mtu(dev, pmtu);
	return pmtu;
}

static void print_path_mtu(const struct netdev *dev, bool by_udp)
{
	u32 active;
	const u32 pmtu = list_path_mtu(dev, by_udp, &active);

	if (active < pmtu)
		printf("  path MTU  %u; active %u, because longer frames cannot be "
		       "redirected\n", pmtu,
		       active);
	else if (pmtu)
		printf("  path MTU  %u\n", pmtu);
	else
		printf("  path MTU  none: the link MTU must be at least %u\n",
		       netdev_link_mtu_for(256));
}

/* Prints the frames that our program redirected to the sockets, and the frames that they lost. */
static void print_received(const struct snapshot *s)
{
	const struct xroce_rx_stats *rx = &s->sums.rx;
	const struct xroce_sock *sock = &s->sums.sock;
	const u64 lost = sock->rx_ring_full + sock->rx_dropped;

	if (!snapshot_has(s, SUM_RX) || !snapshot_has(s, SUM_SOCK))
		return;
	printf("  received  %llu frames, %llu refused by a check, lost %llu",
	       (unsigned long long)rx->redirected, (unsigned long long)rx->dropped,
	       (unsigned long long)lost);
	if (lost)
		printf(" (receive ring full %llu, no buffer to receive into %llu)",
		       (unsigned long long)sock->rx_ring_full,
		       (unsigned long long)sock->rx_dropped);
	putchar('\n');
}

/* Prints how frames were sent since the program was attached. */
static void print_sent(const struct snapshot *s)
{
	const struct xroce_engine_stats *stats = &s->sums.engine;

	if (!snapshot_has(s, SUM_ENGINE))
		return;
	printf("  sent by   TAP device %llu, live frames %llu, super-packets %llu (in %llu), "
	       "AF_XDP %llu",
	       (unsigned long long)stats->tx_tap, (unsigned long long)stats->tx_live,
	       (unsigned long long)stats->tx_gso, (unsigned long long)stats->tx_gso_sends,
	       (unsigned long long)stats->tx_xsk);
	if (stats->tx_slowed)
		printf("; slowed down %llu times after losses",
		       (unsigned long long)stats->tx_slowed);
	if (stats->tx_lost)
		printf("; %llu refused", (unsigned long long)stats->tx_lost);
	if (stats->tx_gave_up)
		printf("; super-packets given up %llu times",
		       (unsigned long long)stats->tx_gave_up);
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
		printf("  sends by  %s; XDP redirection while %s accepts redirected frames%s\n",
		       sockets, name,
		       strcmp(name, "veth") ?
			       "" :
			       ", that is, while its other end has native XDP or GRO");
		return;
	case TX_PROBE_ZERO_COPY:
		printf("  sends by  AF_XDP, zero-copy\n");
		return;
	case TX_PROBE_FORCED_XSK:
		printf("  sends by  AF_XDP, set by XROCE_TX\n");
		return;
	case TX_PROBE_FORCED_GSO:
		printf("  sends by  UDP super-packets, set by XROCE_TX\n");
		return;
	case TX_PROBE_NO_NATIVE:
		printf("  sends by  %s: %s does not accept redirected frames\n", sockets, name);
		return;
	case TX_PROBE_UNTOLD:
		printf("  sends by  %s: the kernel does not report whether %s accepts redirected "
		       "frames (Linux 6.3 does)\n",
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
		printf("program %u %s in dispatcher %u", hook->ours_id, hook->ours_name,
		       hook->prog_id);
	else if (hook->is_dispatcher)
		printf("dispatcher %u, which accepts an xroce program", hook->prog_id);
	else
		printf("program %u%s%s%s", hook->prog_id, *hook->prog_name ? " " : "",
		       hook->prog_name,
		       hook->is_broker ? ", of a broker" :
		       hook->ours_id   ? ", exclusive" :
					 "");
	printf("%s%s\n", *hook->others ? ", with " : "", hook->others);
}

/* Prints the hook, and reads our program on it into the empty *s. */
static void print_xdp(const struct netdev *dev, bool by_udp, bool has_broker, struct snapshot *s)
{
	struct xdp_driver driver;
	struct xdp_hook hook;
	int ret = observe_hook(dev->ifindex, &hook);

	if (ret) {
		printf("  XDP       unknown: %s\n", strerror(-ret));
		return;
	}
	if (hook.prog_id) {
		print_hook(&hook);
		if (hook.ours_id)
			snapshot_read_program(s, hook.ours_id, LIST_PARTS);
		print_received(s);
		print_sent(s);
		return;
	}
	if (by_udp) {
		printf("  XDP       nothing attached, as %s by UDP sockets\n",
		       has_broker ? "the broker receives" :
				    "this user's programs receive and send");
		return;
	}
	observe_driver(dev, &driver);
	printf("  XDP       nothing attached; %s when a program opens it, %s\n",
	       driver.native && xdp_mode(dev) != XDP_MODE_GENERIC ? "native" : "generic",
	       options_attach() == ATTACH_DISPATCHER ? "in a dispatcher" : "exclusive");
	print_way_out(dev, &driver);
}

/* Returns the holder's PID, 0 if there is none in this namespace. */
static pid_t print_holder(const struct netdev *dev)
{
	char comm[32];
	pid_t pid = 0;

	if (observe_holder(dev->ifindex, &pid, comm, sizeof(comm)))
		return 0;
	if (pid)
		printf("  in use    by %s (pid %d)\n", comm, (int)pid);
	else
		printf("  in use    by a process that is not visible here\n");
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
	struct snapshot s = { 0 };
	bool has_broker;
	const bool by_udp = list_uses_udp(dev, &has_broker);

	output_name(dev->name, name);
	printf("xroce_%s\n", name);
	printf("  interface %s, index %u, MAC %02x:%02x:%02x:%02x:%02x:%02x\n", name,
	       dev->ifindex, dev->mac[0], dev->mac[1], dev->mac[2], dev->mac[3], dev->mac[4],
	       dev->mac[5]);
	print_link(dev);
	print_path_mtu(dev, by_udp);
	print_xdp(dev, by_udp, has_broker, &s);
	if (!list_broker(dev))
		list_listeners(s.engine, (u32)print_holder(dev));
	snapshot_end(&s);
	print_gids(dev);
}

static void list_json(const struct netdev *list, int n)
{
	struct json j;

	json_begin(&j, stdout);
	json_open_object(&j, NULL);
	json_open_array(&j, "devices");
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
	.summary = "list the devices, their GIDs, MTU and link",
	.main = list_main,
	.help = "usage: xroce list [OPTION] [IFACE]\n"
		"\n"
		"Lists the RDMA devices that a program sees under 'xroce run', in the same order:\n"
		"every Ethernet interface of this network namespace, first those that are up and\n"
		"have addresses; lo only if XROCE_DEV or --dev names it. With IFACE, lists only\n"
		"that interface. Nothing is opened or attached.\n"
		"\n",
	.letters = "j",
	.help_end =
		"\n"
		"  link      state, speed if the driver reports it, MTU, receive queues in use\n"
		"  path MTU  largest payload of a packet, limited by the link MTU; and the\n"
		"            active_mtu of ibv_query_port(3) if it is smaller, because shorter\n"
		"            frames are sent faster: a program may still use the larger one\n"
		"  XDP       program on the hook of the interface and its mode, or the mode that\n"
		"            it will have: native (in the driver) or generic (any interface;\n"
		"            slower except on veth, where frames need not be split for the other\n"
		"            end); exclusive, in a dispatcher of libxdp with other programs, or\n"
		"            of a broker (shown to root)\n"
		"  sends by  how frames will be sent, and why not by a faster way: by XDP\n"
		"            redirection (small batches through a TAP device, large batches as\n"
		"            XDP live frames); otherwise as UDP super-packets of up to 64 frames\n"
		"            through a packet socket, and single frames through AF_XDP. Ports by\n"
		"            UDP sockets receive and send by these alone\n"
		"  received  frames that XDP redirected to AF_XDP sockets, frames that a check\n"
		"            refused (bpftool map dump name xroce_drop has the reasons), and\n"
		"            frames that a full socket lost; at most 0.1 s old (shown to root)\n"
		"  sent by   frames sent by each way, and the number of super-packets (shown to\n"
		"            root)\n"
		"  broker    process that has the interface ('xroce serve'); the first process\n"
		"            that uses the interface starts one\n"
		"  client    process that uses the interface: client number, PID, user, QPs;\n"
		"            frames received, sent by each way, and refused by the broker's\n"
		"            program (root sees all clients, other users their own)\n"
		"  in use    broker that does not listen, because it could not make its socket\n"
		"            in " ASK_DIR ": a second process gets EBUSY\n"
		"  listens   address and port on which a process listens by rdma_cm (shown to\n"
		"            root; the first 126 of a process)\n"
		"  GID n     entry n of the GID table: first IPv4 addresses, then global IPv6,\n"
		"            then link-local\n"
		"\n"
		"Environment:\n"
		"  " NETDEV_ENV "     list only this interface\n"
		"  XROCE_ATTACH  auto, dispatcher or exclusive: whether other XDP programs can\n"
		"                use the interface as well\n"
		"  XROCE_TX      auto, xsk, tap, live or gso: how programs send frames\n"
		"\n"
		"Exit status: 0; 1 if there is no device; 2 for wrong usage or no such "
		"interface.\n",
};
