/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines of xroce list for a shared interface: the broker process and its clients. */
#include <pwd.h>
#include <unistd.h>

#include "../../attach/ask.h"
#include "../../os/process.h"
#include "list.h"
#include "../observe/observe.h"

static void list_user(u32 uid, char *text, size_t n)
{
	const struct passwd *entry = getpwuid(uid);

	if (entry)
		snprintf(text, n, "%s", entry->pw_name);
	else
		snprintf(text, n, "%u", uid);
}

/* Prints the client program's redirected and lost frames; needs CAP_SYS_ADMIN. */
static void list_received(const struct ask_client *c)
{
	struct xroce_rx_stats rx;
	struct xroce_drops drops;

	if (observe_hook_sum(c->prog_id, XROCE_MAP_RX, (u64 *)&rx, sizeof(rx) / sizeof(u64)) ||
	    observe_hook_sum(c->prog_id, XROCE_MAP_DROP, (u64 *)&drops, sizeof(drops) / sizeof(u64)))
		return;
	printf("; received %llu frames by its %s", (unsigned long long)rx.redirected,
	       c->sockets ? "AF_XDP sockets" : "ring");
	if (drops.ring_full)
		printf(", lost %llu because it was full", (unsigned long long)drops.ring_full);
}

static void list_client(const struct ask_client *c)
{
	char user[64], command[sizeof(c->command)];

	list_user(c->uid, user, sizeof(user));
	snprintf(command, sizeof(command), "%.*s", (int)sizeof(c->command) - 1, c->command);
	printf("  client    %u: pid %u (%s) of %s, %u QP%s", c->client, c->pid, command, user,
	       c->qps, c->qps == 1 ? "" : "s");
	if (c->services)
		printf(", bound to %u service%s", c->services, c->services == 1 ? "" : "s");
	list_received(c);
	if (c->sockets)
		printf("; sent %llu to processes here", (unsigned long long)c->hairpin);
	else
		printf("; sent by TAP device %llu, and %llu to processes here",
		       (unsigned long long)c->frames, (unsigned long long)c->hairpin);
	if (c->refused)
		printf(", %llu refused", (unsigned long long)c->refused);
	if (c->memory)
		printf("; uses %.1f MiB of kernel memory", (double)c->memory / 1048576);
	putchar('\n');
	list_listeners(c->prog_id, c->pid);
}

/* Prints the P_Keys if the table has more than the default key. */
static void list_pkeys(struct asker *asker)
{
	struct pkey_table pkeys;

	if (ask_pkeys(asker, &pkeys) || pkeys.num == 1)
		return;
	printf("  P_Keys   ");
	for (u32 i = 0; i < pkeys.num; i++)
		printf(" 0x%04x", pkeys.key[i]);
	putchar('\n');
}

/* Returns false if the listening process uses the interface exclusively and has no broker yet. */
static bool list_clients(struct asker *asker)
{
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
	if (ask_is_over(err)) {
		printf("  sharing   pid %d (%s) owns the interface; other processes may "
		       "join\n", (int)pid,
		       comm);
		return false;
	}
	printf("  broker    pid %d (%s)%s\n", (int)pid, comm,
	       geteuid() ? ", with these clients of this user:" : "");
	list_pkeys(asker);
	for (; !err; err = ask_list(asker, client.client + 1, &client))
		list_client(&client);
	if (!any)
		printf("  client    none\n");
	return true;
}

bool list_broker(const struct netdev *dev)
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
