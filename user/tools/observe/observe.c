/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the ports by the XDP hooks of the interfaces and the answers of their brokers. */
#include <bpf/bpf.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../attach/broker_socket.h"
#include "../../os/clock.h"
#include "../../os/process.h"
#include "../cli.h"
#include "observe.h"

/* ---- interfaces ---- */

static int observed_iface_set(struct observed_iface *iface, const struct netdev *dev)
{
	*iface = (struct observed_iface){ .ifindex = dev->ifindex,
					  .mtu = dev->mtu,
					  .is_up = dev->is_up,
					  .asker = malloc(sizeof(*iface->asker)) };
	if (!iface->asker)
		return -ENOMEM;
	snprintf(iface->name, sizeof(iface->name), "%s", dev->name);
	ask_init(iface->asker);
	return 0;
}

static void observed_iface_unset(struct observed_iface *iface)
{
	ask_close(iface->asker);
	free(iface->asker);
}

/* Sets *list to the interfaces of dev: one, or an array for free(). Returns a number or -errno. */
static int observer_find(const char *dev, struct netdev *one, struct netdev **list)
{
	static const char prefix[] = "xroce_";
	int err;

	*list = one;
	if (!dev)
		return netdev_list(list);
	err = netdev_find(dev, one);
	if (err == -ENODEV && !strncmp(dev, prefix, sizeof(prefix) - 1))
		err = netdev_find(dev + sizeof(prefix) - 1, one);
	return err ? err : 1;
}

static struct observed_iface *observer_find_iface(const struct observer *o, u32 ifindex)
{
	for (u32 i = 0; i < o->num_ifaces; i++)
		if (o->ifaces[i].ifindex == ifindex)
			return &o->ifaces[i];
	return NULL;
}

int observer_follow(struct observer *o, const char *dev)
{
	struct netdev one, *list;
	const int n = observer_find(dev, &one, &list);
	struct observed_iface *more;
	int err = n < 0 ? n : 0;

	for (int i = 0; !err && i < n; i++) {
		more = observer_find_iface(o, list[i].ifindex);
		if (more) {
			snprintf(more->name, sizeof(more->name), "%s", list[i].name);
			continue;
		}
		more = reallocarray(o->ifaces, o->num_ifaces + 1, sizeof(*o->ifaces));
		if (more)
			o->ifaces = more;
		err = more ? observed_iface_set(&more[o->num_ifaces], &list[i]) : -ENOMEM;
		if (!err)
			o->num_ifaces++;
	}
	if (n >= 0 && list != &one)
		free(list);
	return err;
}

int observer_begin(struct observer *o, const char *dev)
{
	*o = (struct observer){ 0 };
	return observer_follow(o, dev);
}

int observer_renew(struct observer *o, const char *dev)
{
	const u64 ask_ns = o->ask_ns;
	struct netdev one, *list;
	const int n = observer_find(dev, &one, &list);
	bool is_same = n >= 0 && (u32)n == o->num_ifaces;
	int err;

	for (int i = 0; is_same && i < n; i++) {
		const struct observed_iface *iface = observer_find_iface(o, list[i].ifindex);

		is_same = iface && !strcmp(iface->name, list[i].name);
	}
	if (n >= 0 && list != &one)
		free(list);
	if (is_same)
		return 0;
	observer_end(o);
	err = observer_begin(o, dev);
	o->ask_ns = ask_ns;
	return err == -ENODEV ? 0 : err;
}

static void observer_forget(struct observer *o)
{
	for (u32 i = 0; i < o->num; i++)
		observed_close(&o->ports[i]);
	o->num = 0;
}

void observer_end(struct observer *o)
{
	observer_forget(o);
	for (u32 i = 0; i < o->num_ifaces; i++)
		observed_iface_unset(&o->ifaces[i]);
	free(o->ifaces);
	free(o->ports);
	*o = (struct observer){ 0 };
}

/* ---- ports ---- */

static struct observed *observer_add(struct observer *o, struct observed_iface *iface,
				     enum observed_kind kind, u32 prog_id)
{
	struct observed *p;

	if (o->num == o->room) {
		o->room = o->room ? 2 * o->room : 16;
		o->ports = reallocarray(o->ports, o->room, sizeof(*o->ports));
		if (!o->ports) {
			fprintf(stderr, "xroce: out of memory\n");
			exit(EXIT_FAILED);
		}
	}
	p = &o->ports[o->num++];
	*p = (struct observed){ .iface = iface, .kind = kind, .prog_id = prog_id, .uid = ~0u };
	return p;
}

static u32 process_uid(u32 pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	return pid && !stat(path, &st) ? st.st_uid : ~0u;
}

/*
 * Adds the process that uses the interface without a broker. The socket is queried for its PID once
 * per program: a process that does not share never reads its socket. Each question stays in the
 * socket's queue, and once that is full no one can learn the PID.
 */
static void observer_add_alone(struct observer *o, struct observed_iface *iface, u32 prog_id)
{
	struct observed *p = observer_add(o, iface, OBSERVED_ALONE, prog_id);
	pid_t pid = 0;

	if (iface->alone_pid && iface->alone_prog_id == prog_id) {
		pid = iface->alone_pid;
	} else {
		iface_holder(iface->ifindex, &pid, p->command, sizeof(p->command));
		iface->alone_prog_id = prog_id;
		iface->alone_pid = pid;
	}
	p->pid = (u32)pid;
	p->uid = process_uid(p->pid);
	if (pid)
		process_name(pid, p->command, sizeof(p->command));
	else
		snprintf(p->command, sizeof(p->command), "?");
}

static void observer_add_client(struct observer *o, struct observed_iface *iface,
				const struct ask_client *c)
{
	struct observed *p = observer_add(o, iface, c->sockets ? OBSERVED_FIRST : OBSERVED_CLIENT,
					  c->prog_id);

	p->client = c->client;
	p->pid = c->pid;
	p->uid = c->uid;
	p->qps = c->qps;
	p->services = c->services;
	p->sent = *c;
	snprintf(p->command, sizeof(p->command), "%.*s", (int)sizeof(c->command) - 1, c->command);
}

static void observer_add_broker(struct observer *o, struct observed_iface *iface)
{
	struct observed *p = observer_add(o, iface, OBSERVED_BROKER, iface->broker_prog_id);

	p->pid = (u32)iface->broker_pid;
	p->uid = process_uid(p->pid);
	process_name(iface->broker_pid, p->command, sizeof(p->command));
}

static void observer_note_silence(const struct observer *o, struct observed_iface *iface, int err)
{
	iface->is_silent = err == -ETIMEDOUT;
	if (iface->is_silent)
		iface->silent_until_ns = clock_now_ns() + o->silent_ns;
}

/* Adds the clients of the interface's broker, if it answers. */
static void observer_ask(struct observer *o, struct observed_iface *iface)
{
	struct ask_client client;
	u32 from = 0;
	int err = 0;

	if (!iface->asks && clock_now_ns() < iface->silent_until_ns) {
		iface->is_silent = true;
		return;
	}
	if (!iface->asks) {
		ask_close(iface->asker);
		ask_init(iface->asker);
		if (o->ask_ns)
			iface->asker->max_ns = o->ask_ns;
		err = ask_connect(iface->asker, netdev_netns(), iface->ifindex);
		iface->is_hidden = err == -EACCES;
		observer_note_silence(o, iface, err);
		/*
		 * ask_connect() returns -ENOENT without a broker; a question, at the end of a list
		 */
		if (err)
			return;
	}
	while (!(err = ask_list(iface->asker, from, &client))) {
		observer_add_client(o, iface, &client);
		from = client.client + 1;
	}
	iface->asks = err == -ENOENT;
	iface->is_partial = iface->asks && iface->asker->withholds;
	observer_note_silence(o, iface, err);
	if (iface->asks)
		iface->broker_pid = ask_server(iface->asker);
}

static void observer_look(struct observer *o, struct observed_iface *iface)
{
	const u32 broker_prog_id = iface->broker_prog_id;
	const pid_t broker_pid = iface->broker_pid;
	struct xdp_hook hook;

	iface->broker_prog_id = 0;
	iface->broker_pid = 0;
	iface->is_hidden = iface->is_silent = iface->is_partial = false;
	iface->is_left = false;
	if (xdp_hook_query(iface->ifindex, &hook) || !hook.prog_id) {
		iface->is_left = broker_socket_is_left(iface->ifindex);
		return;
	}
	if (hook.ours_id && !hook.is_broker) {
		observer_add_alone(o, iface, hook.ours_id);
		return;
	}
	/* without the privilege to read the name, the program may be any */
	if (*hook.prog_name && !hook.is_broker)
		return;
	observer_ask(o, iface);
	if (hook.is_broker) {
		iface->broker_prog_id = hook.prog_id;
		/* a silent broker with the same program is the same process */
		if (!iface->broker_pid && hook.prog_id == broker_prog_id)
			iface->broker_pid = broker_pid;
		observer_add_broker(o, iface);
	} else if (!iface->asks) {
		iface->is_hidden |= netdev_is_held(iface->ifindex);
	}
}

int observer_list(struct observer *o)
{
	observer_forget(o);
	for (u32 i = 0; i < o->num_ifaces; i++)
		observer_look(o, &o->ifaces[i]);
	return 0;
}
