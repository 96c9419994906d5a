/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the ports by the XDP hooks of the interfaces and the answers of their brokers. Queries
 * hooks, drivers and the processes that use interfaces; attaches and loads nothing.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <linux/if_link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../client/ask.h"
#include "../../client/broker_socket.h"
#include "../../broker/dispatcher.h"
#include "../../broker/broker.h"
#include "../../os/clock.h"
#include "../../os/process.h"
#include "../cli.h"
#include "../memory.h"
#include "observe_maps.h"

/* ---- XDP hooks ---- */

/* Reads the program's name. Without CAP_SYS_ADMIN the name stays empty. */
static void program_name(u32 id, char *name, size_t n)
{
	struct bpf_prog_info info = { 0 };
	u32 len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(id);

	if (fd < 0)
		return;
	if (!bpf_obj_get_info_by_fd(fd, &info, &len))
		snprintf(name, n, "%.*s", (int)sizeof(info.name), info.name);
	close(fd);
}

/* Records a program that the dispatcher on the hook calls. */
static void hook_add(struct xdp_hook *hook, u32 prog_id)
{
	const size_t used = strlen(hook->others);
	char name[sizeof(hook->prog_name)] = "?";

	program_name(prog_id, name, sizeof(name));
	if (!strcmp(name, DISPATCHER_OURS))
		hook->ours_id = prog_id;
	else
		snprintf(hook->others + used, sizeof(hook->others) - used, "%s%s",
			 used ? ", " : "", name);
}

/* Finds the link that holds the hook's program, and the programs that a dispatcher calls. */
static void hook_read_links(u32 ifindex, struct xdp_hook *hook)
{
	u32 id = 0;

	while ((!hook->link_id || hook->is_dispatcher) && !bpf_link_get_next_id(id, &id)) {
		struct bpf_link_info info = { 0 };
		u32 len = sizeof(info);
		int fd = bpf_link_get_fd_by_id(id), ret;

		if (fd < 0)
			continue;
		ret = bpf_obj_get_info_by_fd(fd, &info, &len);
		close(fd);
		if (ret)
			continue;
		if (info.type == BPF_LINK_TYPE_XDP && info.xdp.ifindex == ifindex &&
		    info.prog_id == hook->prog_id)
			hook->link_id = id;
		else if (info.type == BPF_LINK_TYPE_TRACING && hook->is_dispatcher &&
			 info.tracing.target_obj_id == hook->prog_id)
			hook_add(hook, info.prog_id);
	}
}

int observe_hook(u32 ifindex, struct xdp_hook *hook)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	int ret = bpf_xdp_query((int)ifindex, 0, &query);

	*hook = (struct xdp_hook){ .ours_name = DISPATCHER_OURS };
	if (ret)
		return ret;
	hook->native = query.attach_mode != XDP_ATTACHED_SKB;
	/*
	 * With several programs (one in the NIC itself, one in the driver), the driver's blocks
	 * ours.
	 */
	hook->prog_id = query.attach_mode == XDP_ATTACHED_MULTI ? query.drv_prog_id : query.prog_id;
	if (!hook->prog_id)
		return 0;
	program_name(hook->prog_id, hook->prog_name, sizeof(hook->prog_name));
	hook->is_dispatcher = !strcmp(hook->prog_name, DISPATCHER_NAME);
	hook->is_broker = !strcmp(hook->prog_name, BROKER_PROGRAM);
	if (!strcmp(hook->prog_name, DISPATCHER_OURS))
		hook->ours_id = hook->prog_id;
	hook_read_links(ifindex, hook);
	return 0;
}

/* Drivers with ndo_bpf and redirect, for kernels that do not report features (before 6.3). */
static const char *const native_drivers[] = {
	"atlantic",  "bnxt_en", "dpaa2-eth", "ena",	   "fec",     "gve",
	"hv_netvsc", "i40e",	"ice",	     "igb",	   "igc",     "ixgbe",
	"ixgbevf",   "mana",	"mlx4_en",   "mlx5_core",  "mvneta",  "mvpp2",
	"nfp",	     "nicvf",	"qede",	     "sfc",	   "stmmac",  "ti_cpsw",
	"tsnep",     "tun",	"veth",	     "virtio_net", "vmxnet3", "xen_netfront",
};

void observe_driver(const struct netdev *dev, struct xdp_driver *driver)
{
	u64 features;

	memset(driver, 0, sizeof(*driver));
	netdev_driver(dev->name, driver->name, sizeof(driver->name));
	if (!netdev_xdp_features(dev->ifindex, &features)) {
		driver->told = true;
		driver->native = (features & NETDEV_XDP_BASIC) && (features & NETDEV_XDP_REDIRECT);
		driver->zero_copy = features & NETDEV_XDP_XSK_ZEROCOPY;
		/* Generic mode receives multi-buffer frames without driver support. */
		driver->multibuffer = !driver->native || (features & NETDEV_XDP_RX_SG);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(native_drivers); i++)
		driver->native |= !strcmp(driver->name, native_drivers[i]);
}

/* ---- processes that use interfaces ---- */

/*
 * Asks at the sharing socket, whose server accepts connections. Connections to the holder's socket
 * stay in its listen queue, which would fill up (os/netdev_holder.c).
 */
int observe_holder(u32 ifindex, pid_t *pid, char *comm, size_t n)
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
	static const char prefix[] = NETDEV_DEVICE_PREFIX;
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
	const u64 ask_ns = o->ask_ns, silent_ns = o->silent_ns;
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
	o->silent_ns = silent_ns;
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

	o->ports = memory_grow(o->ports, o->num, &o->room, sizeof(*o->ports));
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
 * Adds the process whose program is on the hook, while its broker does not answer. The socket is
 * queried for its PID once per program: each question stays in the queue of a socket that is not
 * read, and once the queue is full no one can learn the PID.
 */
static void observer_add_silent(struct observer *o, struct observed_iface *iface, u32 prog_id)
{
	struct observed *p = observer_add(o, iface, OBSERVED_SILENT, prog_id);
	pid_t pid = 0;

	if (iface->silent_pid && iface->silent_prog_id == prog_id) {
		pid = iface->silent_pid;
	} else {
		observe_holder(iface->ifindex, &pid, p->command, sizeof(p->command));
		iface->silent_prog_id = prog_id;
		iface->silent_pid = pid;
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
	struct observed *p = observer_add(o, iface, c->sockets ? OBSERVED_SOLE : OBSERVED_CLIENT,
					  c->prog_id);

	p->client = c->client;
	p->pid = c->pid;
	p->uid = c->uid;
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
	if (observe_hook(iface->ifindex, &hook) || !hook.prog_id) {
		/* a broker with UDP sockets has nothing on the hook */
		observer_ask(o, iface);
		if (!iface->asks)
			iface->is_left = broker_socket_is_left(iface->ifindex);
		return;
	}
	if (hook.ours_id && !hook.is_broker) {
		/* the sole client of a broker, or a process that has none and hangs up */
		observer_ask(o, iface);
		if (!iface->asks)
			observer_add_silent(o, iface, hook.ours_id);
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

void observer_list(struct observer *o)
{
	observer_forget(o);
	for (u32 i = 0; i < o->num_ifaces; i++)
		observer_look(o, &o->ifaces[i]);
}

/* ---- processes of other network namespaces ---- */

/* Returns whether a line of fdinfo names one of the maps. */
static bool line_names_map(const char *line, const u32 *maps, int num)
{
	unsigned int id;

	if (sscanf(line, "map_id: %u", &id) == 1)
		for (int i = 0; i < num; i++)
			if (maps[i] == id)
				return true;
	return false;
}

/* Returns whether the process has a descriptor of one of the maps. */
static bool process_has_map(u32 pid, const u32 *maps, int num)
{
	char path[300], line[128];
	bool has = false;
	struct dirent *fd;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%u/fdinfo", pid);
	fds = opendir(path);
	while (fds && !has && (fd = readdir(fds))) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%u/fdinfo/%.20s", pid, fd->d_name);
		f = fopen(path, "re");
		while (f && !has && fgets(line, sizeof(line), f))
			has = line_names_map(line, maps, num);
		if (f)
			fclose(f);
	}
	if (fds)
		closedir(fds);
	return has;
}

/*
 * A map may claim any PID as its owner. A process that has mapped its maps and closed their
 * descriptors still has descriptors of its program's rings.
 */
static void foreign_owner(struct observed *p)
{
	u32 maps[OBSERVED_IDS], pid;
	const int num = observed_map_ids(p->prog_id, maps);

	if (!observed_get(p, XROCE_MAP_ENGINE, 0, &pid, sizeof(pid)) &&
	    process_has_map(pid, maps, num)) {
		p->pid = pid;
		process_name((pid_t)pid, p->command, sizeof(p->command));
	}
}

static bool prog_is_ours(u32 id)
{
	char name[OBSERVED_NAME_MAX] = "";

	program_name(id, name, sizeof(name));
	return !strcmp(name, DISPATCHER_OURS);
}

bool observe_foreign(bool (*is_known)(void *arg, u32 prog_id), u32 parts, observe_fn *fn,
		     void *arg)
{
	struct observed_iface nowhere = { .name = "" };
	struct snapshot s;
	u32 id = 0;
	int err;

	while (!(err = bpf_prog_get_next_id(id, &id))) {
		struct observed p = { .iface = &nowhere,
				      .kind = OBSERVED_SILENT,
				      .prog_id = id,
				      .command = "?" };

		/* without a broker connection, observed_open() opens the maps by ID or fails */
		if (is_known(arg, id) || !prog_is_ours(id) || observed_open(&p))
			continue;
		foreign_owner(&p);
		if (!snapshot_read(&s, &p, parts))
			fn(arg, &p, &s);
		snapshot_end(&s);
		observed_close(&p);
	}
	return err == -ENOENT;
}
