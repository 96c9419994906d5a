/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What xroce list says of an interface with a broker: its process, and its clients. */
#include <pwd.h>
#include <unistd.h>

#include "../attach/ask.h"
#include "../base/process.h"
#include "cli.h"

static void list_user(u32 uid, char *text, size_t n)
{
	const struct passwd *entry = getpwuid(uid);

	if (entry)
		snprintf(text, n, "%s", entry->pw_name);
	else
		snprintf(text, n, "%u", uid);
}

/* What its program has put into its ring, and had no room for; needs CAP_SYS_ADMIN. */
static void list_received(u32 prog_id)
{
	struct xroce_rx_stats rx;
	struct xroce_drops drops;

	if (xdp_counters(prog_id, XROCE_MAP_RX, (u64 *)&rx, sizeof(rx) / sizeof(u64)) ||
	    xdp_counters(prog_id, XROCE_MAP_DROP, (u64 *)&drops, sizeof(drops) / sizeof(u64)))
		return;
	printf("; received %llu frames by its ring", (unsigned long long)rx.redirected);
	if (drops.ring_full)
		printf(", lost %llu as that was full", (unsigned long long)drops.ring_full);
}

static void list_client(const struct ask_client *c)
{
	char user[64], command[sizeof(c->command)];

	list_user(c->uid, user, sizeof(user));
	snprintf(command, sizeof(command), "%.*s", (int)sizeof(c->command) - 1, c->command);
	printf("  client    %u: pid %u (%s) of %s, %u QP%s", c->client, c->pid, command, user,
	       c->qps, c->qps == 1 ? "" : "s");
	list_received(c->prog_id);
	printf("; sent by TAP device %llu, and %llu to processes here",
	       (unsigned long long)c->frames, (unsigned long long)c->hairpin);
	if (c->refused)
		printf(", %llu refused", (unsigned long long)c->refused);
	putchar('\n');
}

bool list_broker(const struct netdev *dev)
{
	struct ask_client client;
	struct asker asker;
	char comm[32];
	pid_t pid;
	int err;
	u32 n;

	ask_init(&asker);
	err = ask_connect(&asker, netdev_netns(), dev->ifindex);
	if (err == -EACCES)
		printf("  broker    there is one, but not for this user\n");
	if (!err) {
		pid = ask_server(&asker);
		process_name(pid, comm, sizeof(comm));
		printf("  broker    pid %d (%s)%s\n", (int)pid, comm,
		       geteuid() ? ", with these clients of this user:" : "");
		for (n = 0; !ask_list(&asker, n, &client); n++)
			list_client(&client);
		if (!n)
			printf("  client    none\n");
	}
	ask_close(&asker);
	return !err || err == -EACCES;
}
