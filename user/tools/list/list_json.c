/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce list --json: one object per device, with the facts that xroce list prints. */
#include <arpa/inet.h>

#include "../../client/ask.h"
#include "../../os/process.h"
#include "../../os/netdev.h"
#include "../../io/tx.h"
#include "../../io/tx_policy.h"
#include "list.h"

/* Adds a number, or null for 0 (unknown). */
static void list_json_known(struct json *j, const char *name, u64 value)
{
	if (value)
		json_number(j, name, value);
	else
		json_null(j, name);
}

static void list_json_process(struct json *j, pid_t pid)
{
	char comm[32];

	list_json_known(j, "pid", pid > 0 ? (u64)pid : 0);
	process_name(pid, comm, sizeof(comm));
	json_text(j, "command", comm);
}

static void list_json_hook(struct json *j, const struct xdp_hook *hook)
{
	json_text(j, "mode", hook->native ? "native" : "generic");
	json_number(j, "program_id", hook->prog_id);
	json_text(j, "program", hook->prog_name);
	list_json_known(j, "xroce_program_id", hook->ours_id);
	json_boolean(j, "dispatcher", hook->is_dispatcher);
	json_boolean(j, "broker", hook->is_broker);
	json_text(j, "others", hook->others);
}

/* Adds the expected mode, null without XDP, and send method while nothing is attached. */
static void list_json_ahead(struct json *j, const struct netdev *dev, bool by_udp)
{
	static const char *const ways[] = {
		[TX_PROBE_REDIRECT] = "redirect",    [TX_PROBE_NOT_NOW] = "not_now",
		[TX_PROBE_FORCED_GSO] = "forced_gso", [TX_PROBE_FORCED_XSK] = "forced_xsk",
		[TX_PROBE_ZERO_COPY] = "zero_copy",  [TX_PROBE_NO_NATIVE] = "no_native",
		[TX_PROBE_UNTOLD] = "untold",	     [TX_PROBE_NO_TUN] = "no_tun",
	};
	struct xdp_driver driver;

	if (by_udp) {
		json_null(j, "mode");
		json_null(j, "program_id");
		json_text(j, "sends_by", "udp");
		return;
	}
	observe_driver(dev, &driver);
	json_text(j, "mode",
		  driver.native && xdp_mode(dev) != XDP_MODE_GENERIC ? "native" : "generic");
	json_null(j, "program_id");
	json_text(j, "sends_by", ways[tx_probe(dev->ifindex)]);
}

/* Adds the counters, if this user may read them (root). */
static void list_json_counters(struct json *j, const struct snapshot *s)
{
	const struct xroce_engine_stats *sent = &s->sums.engine;
	const struct xroce_rx_stats *rx = &s->sums.rx;
	const struct xroce_sock *sock = &s->sums.sock;

	if (snapshot_has(s, SUM_RX) && snapshot_has(s, SUM_SOCK)) {
		json_open_object(j, "received");
		json_number(j, "frames", rx->redirected);
		json_number(j, "refused", rx->dropped);
		json_number(j, "lost_ring_full", sock->rx_ring_full);
		json_number(j, "lost_no_buffer", sock->rx_dropped);
		json_close(j);
	}
	if (!snapshot_has(s, SUM_ENGINE))
		return;
	json_open_object(j, "sent_by");
	json_number(j, "tap", sent->tx_tap);
	json_number(j, "live", sent->tx_live);
	json_number(j, "gso", sent->tx_gso);
	json_number(j, "gso_packets", sent->tx_gso_sends);
	json_number(j, "xsk", sent->tx_xsk);
	json_number(j, "slowed", sent->tx_slowed);
	json_number(j, "refused", sent->tx_lost);
	json_number(j, "gave_up", sent->tx_gave_up);
	json_close(j);
}

/* Adds the hook, and reads our program on it into the empty *s. */
static void list_json_xdp(struct json *j, const struct netdev *dev, bool by_udp,
			  struct snapshot *s)
{
	struct xdp_hook hook = { 0 };
	const int err = observe_hook(dev->ifindex, &hook);

	json_open_object(j, "xdp");
	if (err)
		json_text(j, "error", strerror(-err));
	else if (hook.prog_id)
		list_json_hook(j, &hook);
	else
		list_json_ahead(j, dev, by_udp);
	json_close(j);
	if (hook.ours_id)
		snapshot_read_program(s, hook.ours_id, LIST_PARTS);
	list_json_counters(j, s);
}

static void list_json_client(struct json *j, struct asker *asker, const struct ask_client *c)
{
	char command[sizeof(c->command)];
	struct snapshot s;

	snprintf(command, sizeof(command), "%.*s", (int)sizeof(c->command) - 1, c->command);
	json_open_object(j, NULL);
	json_number(j, "client", c->client);
	json_number(j, "pid", c->pid);
	json_text(j, "command", command);
	json_number(j, "uid", c->uid);
	json_number(j, "qps", c->qps);
	json_number(j, "services", c->services);
	json_boolean(j, "has_sockets", c->sockets);
	json_number(j, "sent", c->frames);
	json_number(j, "sent_here", c->hairpin);
	json_number(j, "refused", c->refused);
	json_number(j, "memory", c->memory);
	snapshot_read_client(&s, asker, c, SNAPSHOT_ENGINE);
	list_json_listeners(j, s.engine);
	snapshot_end(&s);
	json_close(j);
}

/* Adds the answer of the broker. */
static void list_json_clients(struct json *j, struct asker *asker)
{
	struct ask_client client;
	struct ask_kind kind;
	int err = ask_list(asker, 0, &client);

	/* it is ending */
	if (ask_is_over(err) && err != -ETIMEDOUT)
		return;
	json_open_object(j, "broker");
	list_json_process(j, ask_server(asker));
	json_boolean(j, "silent", err == -ETIMEDOUT);
	json_open_array(j, "clients");
	for (; !err; err = ask_list(asker, client.client + 1, &client))
		list_json_client(j, asker, &client);
	json_close(j);
	if (err != -ETIMEDOUT)
		json_boolean(j, "others_hidden", asker->withholds);
	if (err != -ETIMEDOUT && !ask_kind(asker, &kind)) {
		json_text(j, "receives_by", kind.udp ? "UDP sockets" : "XDP");
		json_open_array(j, "pkeys");
		for (u32 i = 0; i < kind.pkeys.num; i++)
			json_number(j, NULL, kind.pkeys.key[i]);
		json_close(j);
	}
	json_close(j);
}

static void list_json_users(struct json *j, const struct netdev *dev)
{
	struct asker asker;
	pid_t pid = 0;
	char comm[32];
	int err;

	ask_init(&asker);
	asker.max_ns = OBSERVE_ASK_NS;
	err = ask_connect(&asker, netdev_netns(), dev->ifindex);
	json_boolean(j, "broker_hidden", err == -EACCES);
	if (!err)
		list_json_clients(j, &asker);
	ask_close(&asker);
	if (!observe_holder(dev->ifindex, &pid, comm, sizeof(comm))) {
		json_open_object(j, "in_use");
		list_json_known(j, "pid", pid > 0 ? (u64)pid : 0);
		json_text(j, "command", pid ? comm : "?");
		json_close(j);
	}
}

static void list_json_gids(struct json *j, const struct netdev *dev)
{
	char text[INET6_ADDRSTRLEN];

	json_open_array(j, "gids");
	for (u32 i = 0; i < dev->num_gids; i++)
		json_text(j, NULL,
			  inet_ntop(AF_INET6, dev->gid[i].gid.raw, text, sizeof(text)));
	json_close(j);
}

void list_json_device(struct json *j, const struct netdev *dev)
{
	bool has_broker;
	const bool by_udp = list_uses_udp(dev, &has_broker);
	u32 active;
	const u32 pmtu = list_path_mtu(dev, by_udp, &active);
	char text[8 + sizeof(dev->name)];
	struct snapshot s = { 0 };

	json_open_object(j, NULL);
	snprintf(text, sizeof(text), NETDEV_DEVICE_PREFIX "%s", dev->name);
	json_text(j, "name", text);
	json_text(j, "interface", dev->name);
	json_number(j, "index", dev->ifindex);
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", dev->mac[0], dev->mac[1],
		 dev->mac[2], dev->mac[3], dev->mac[4], dev->mac[5]);
	json_text(j, "mac", text);
	json_boolean(j, "up", dev->is_up);
	list_json_known(j, "speed_mbps", dev->speed_mbps);
	json_number(j, "mtu", dev->mtu);
	json_number(j, "rx_queues", dev->rx_queues);
	list_json_known(j, "path_mtu", pmtu);
	list_json_known(j, "active_mtu", active);
	list_json_xdp(j, dev, by_udp, &s);
	list_json_users(j, dev);
	list_json_listeners(j, s.engine);
	snapshot_end(&s);
	list_json_gids(j, dev);
	json_close(j);
}
