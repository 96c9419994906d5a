/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checks of one interface. */
#define _GNU_SOURCE /* pipe2() */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../client/ask.h"
#include "../../client/attach_error.h"
#include "../../client/attach.h"
#include "../../os/options.h"
#include "../../os/process.h"
#include "../../os/netdev.h"
#include "../../io/tx.h"
#include "../../io/tx_policy.h"
#include "doctor.h"
#include "../observe/observe.h"

/* The kernel's RDMA devices, with the network interface of each GID. */
#define RDMA_CLASS "/sys/class/infiniband"

/* A round number above what path MTU 4096 needs, for tags and other encapsulations. */
#define LINK_MTU_ADVICE 4500

/* Returns "IFACE thing" in a static buffer. */
static const char *iface_subject(const struct netdev *dev, const char *thing)
{
	static char what[IF_NAMESIZE + 32];

	snprintf(what, sizeof(what), "%s %s", dev->name, thing);
	return what;
}

static void check_link(struct doctor *d, const struct netdev *dev)
{
	char remedy[128];

	if (dev->is_up) {
		if (dev->speed_mbps)
			finding(d, LEVEL_OK, iface_subject(dev, "link"), NULL, "up, %u Mb/s",
				dev->speed_mbps);
		else
			finding(d, LEVEL_OK, iface_subject(dev, "link"), NULL, "up");
		return;
	}
	snprintf(remedy, sizeof(remedy),
		 "run `ip link set %s up`; if it is up, check the cable and the other end",
		 dev->name);
	finding(d, LEVEL_FAIL, iface_subject(dev, "link"), remedy, "down");
}

static void check_addresses(struct doctor *d, const struct netdev *dev)
{
	char text[INET6_ADDRSTRLEN], remedy[128];

	if (dev->num_gids) {
		finding(d, LEVEL_OK, iface_subject(dev, "addresses"), NULL,
			"%u GID%s, the first is %s", dev->num_gids, dev->num_gids == 1 ? "" : "s",
			inet_ntop(AF_INET6, dev->gid[0].gid.raw, text, sizeof(text)));
		return;
	}
	snprintf(remedy, sizeof(remedy), "run `ip address add ADDRESS/PREFIX dev %s`", dev->name);
	finding(d, LEVEL_FAIL, iface_subject(dev, "addresses"), remedy, "no address, so no GID");
}

/*
 * Returns whether ports use UDP sockets: as the broker does, or, without one, as the broker that a
 * program would start.
 */
static bool iface_uses_udp(const struct doctor *d, const struct netdev *dev)
{
	struct ask_kind kind = { 0 };

	if (ask_kind_of(netdev_netns(), dev->ifindex, &kind))
		return kind.udp;
	return attach_would_use_udp() || (!d->may_bpf && d->may_use_udp);
}

static void check_mtu(struct doctor *d, const struct netdev *dev, bool by_udp)
{
	const bool is_split = by_udp || d->multibuffer;
	const u32 pmtu = netdev_path_mtu(dev->mtu, is_split);
	const u32 active = by_udp ? pmtu : tx_preferred_path_mtu(dev, pmtu);
	const u32 best = is_split ? ROCE_PMTU_MAX : ROCE_PMTU_MAX / 2;
	char remedy[160];

	snprintf(remedy, sizeof(remedy),
		 "run `ip link set %s mtu %u`, also at the other ends and between them", dev->name,
		 is_split ? LINK_MTU_ADVICE : LINK_MTU_ADVICE / 2);
	if (!pmtu)
		finding(d, LEVEL_FAIL, iface_subject(dev, "MTU"), remedy,
			"%u is too small: the smallest path MTU, 256, needs %u", dev->mtu,
			netdev_link_mtu_for(256));
	else if (pmtu < best)
		finding(d, LEVEL_WARN, iface_subject(dev, "MTU"), remedy,
			"%u allows path MTU %u; path MTU %u needs %u", dev->mtu, pmtu, best,
			netdev_link_mtu_for(best));
	else if (active < pmtu)
		finding(d, LEVEL_OK, iface_subject(dev, "MTU"), NULL,
			"%u allows path MTU %u; programs see %u as active_mtu, because longer "
			"frames cannot be redirected",
			dev->mtu, pmtu, active);
	else
		finding(d, LEVEL_OK, iface_subject(dev, "MTU"), NULL, "%u allows path MTU %u",
			dev->mtu, pmtu);
}

static void check_queues(struct doctor *d, const struct netdev *dev)
{
	char remedy[128];

	if (dev->rx_queues <= XROCE_MAX_QUEUE) {
		finding(d, LEVEL_OK, iface_subject(dev, "queues"), NULL,
			"%u receive queue%s", dev->rx_queues, dev->rx_queues == 1 ? "" : "s");
		return;
	}
	snprintf(remedy, sizeof(remedy), "`ethtool -L %s combined %u`", dev->name, XROCE_MAX_QUEUE);
	finding(d, LEVEL_WARN, iface_subject(dev, "queues"), remedy,
		"%u receive queues, of which the first %u are used", dev->rx_queues,
		XROCE_MAX_QUEUE);
}

static void check_mode(struct doctor *d, const struct netdev *dev)
{
	struct xdp_driver driver;
	const char *name;

	observe_driver(dev, &driver);
	name = *driver.name ? driver.name : dev->name;
	if (!driver.native && xdp_mode(dev) == XDP_MODE_NATIVE) {
		finding(d, LEVEL_FAIL, iface_subject(dev, "XDP mode"),
			"unset XROCE_XDP, or set it to generic",
			"none: %s has no native XDP, which XROCE_XDP=native requires", name);
		return;
	}
	if (!driver.native) {
		finding(d, dev->is_loopback ? LEVEL_OK : LEVEL_WARN, iface_subject(dev, "XDP mode"),
			dev->is_loopback ? NULL :
					   "use the interface below it, if there is one (of a "
					   "bridge, bond, VLAN or macvlan)",
			"generic: %s has no native XDP; it works, but slower", name);
		return;
	}
	if (xdp_mode(dev) == XDP_MODE_GENERIC) {
		finding(d, LEVEL_OK, iface_subject(dev, "XDP mode"), NULL,
			"generic: %s then sends super-packets unsplit; set XROCE_XDP=native for "
			"lower latency",
			name);
		return;
	}
	finding(d, LEVEL_OK, iface_subject(dev, "XDP mode"), NULL, "native (%s%s), %s", name,
		driver.told ? "" : ", judged by its name",
		driver.zero_copy ? "zero-copy" : "copies packets once");
	if (driver.told && !driver.multibuffer &&
	    netdev_path_mtu(dev->mtu, d->multibuffer) == ROCE_PMTU_MAX)
		finding(d, LEVEL_WARN, iface_subject(dev, "XDP mode"),
			"use a path MTU of at most 2048 on this interface",
			"%s does not accept frames in several buffers in native mode", name);
}

/*
 * Sets *pid to the process that shares the interface; returns 0, or as ask_connect(). *answer is 0
 * or -errno of a first question. -EPIPE: an exclusive process that hangs up on a question, and
 * would start a broker for a port request. -ETIMEDOUT: no answer.
 */
static int ask_for_broker(const struct netdev *dev, pid_t *pid, int *answer)
{
	struct ask_client client;
	struct asker asker;
	int err;

	ask_init(&asker);
	asker.max_ns = OBSERVE_ASK_NS;
	err = ask_connect(&asker, netdev_netns(), dev->ifindex);
	*pid = err ? 0 : ask_server(&asker);
	*answer = err ? err : ask_list(&asker, 0, &client);
	ask_close(&asker);
	return err;
}

/*
 * Makes a port by the interface's broker, or starts one with UDP sockets, which ends soon. The
 * broker frees the port at the process's exit.
 */
static int make_port(const struct netdev *dev, bool has_broker)
{
	struct attachment m;

	if (!has_broker) {
		/* the reason for UDP sockets is another finding */
		setenv("XROCE_QUIET", "1", 1);
		return attach_make(dev, &m);
	}
	attach_init(dev, &m);
	return attach_shared(dev, &m);
}

/*
 * Makes a port as a program does, in a child; the broker frees it when the child exits. text
 * receives the first line that the library printed on standard error. Returns true on success.
 */
static bool try_port(const struct netdev *dev, bool has_broker, char *text, size_t n)
{
	int fds[2], status = 1;
	size_t len = 0;
	ssize_t got;
	pid_t pid;

	*text = 0;
	if (pipe2(fds, O_CLOEXEC))
		return false;
	pid = fork();
	if (pid == 0)
		_exit(dup2(fds[1], STDERR_FILENO) < 0 || make_port(dev, has_broker));
	close(fds[1]);
	while (pid > 0 && len < n - 1 && (got = read(fds[0], text + len, n - 1 - len)) > 0)
		len += (size_t)got;
	close(fds[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	text[len] = 0;
	text[strcspn(text, "\n")] = 0;
	return !status;
}

static void check_port(struct doctor *d, const struct netdev *dev, bool has_broker)
{
	char text[512], prefix[IF_NAMESIZE + 16];
	size_t skip;

	if (try_port(dev, has_broker, text, sizeof(text))) {
		finding(d, LEVEL_OK, iface_subject(dev, "port"), NULL, "a program can open one%s",
			has_broker ? "" : ", by UDP sockets");
		return;
	}
	snprintf(prefix, sizeof(prefix), "xroce: %s: ", dev->name);
	skip = strncmp(text, prefix, strlen(prefix)) ? 0 : strlen(prefix);
	finding(d, LEVEL_FAIL, iface_subject(dev, "port"), NULL, "%s",
		text[skip] ? text + skip : "the library cannot open one");
}

bool doctor_has_broker(const struct netdev *dev)
{
	struct asker asker;
	int err;

	ask_init(&asker);
	err = ask_connect(&asker, netdev_netns(), dev->ifindex);
	ask_close(&asker);
	return !err;
}

/* Reports another program on the hook. */
static void check_foreign_program(struct doctor *d, const struct netdev *dev,
				  const struct xdp_hook *hook)
{
	char remedy[160];

	if (hook->link_id)
		snprintf(remedy, sizeof(remedy),
			 "end the process that attached it, or run `bpftool link detach id %u`",
			 hook->link_id);
	else
		snprintf(remedy, sizeof(remedy),
			 "end the process that attached it, or run `ip link set dev %s %s "
			 "off`", dev->name,
			 hook->native ? "xdp" : "xdpgeneric");
	if (hook->is_dispatcher) {
		finding(d, LEVEL_OK, iface_subject(dev, "XDP hook"), NULL,
			"dispatcher %u, %s mode, with %s: an xroce program can be added",
			hook->prog_id, hook->native ? "native" : "generic",
			*hook->others ? hook->others : "no program");
		return;
	}
	finding(d, LEVEL_FAIL, iface_subject(dev, "XDP hook"), remedy,
		"in use by another program, id %u%s%s, %s mode", hook->prog_id,
		*hook->prog_name ? ", " : "", hook->prog_name, hook->native ? "native" : "generic");
}

static void check_hook(struct doctor *d, const struct netdev *dev)
{
	struct xdp_hook hook;
	char comm[32];
	pid_t pid;
	int ret = observe_hook(dev->ifindex, &hook);

	if (ret) {
		finding(d, LEVEL_WARN, iface_subject(dev, "XDP hook"), NULL, "unknown: %s",
			strerror(-ret));
		return;
	}
	/* Another user's holder socket proves nothing: the hook shows whether it is in use. */
	if (observe_holder(dev->ifindex, &pid, comm, sizeof(comm)) == 0) {
		/* An interface in use is normal: only a second process fails. */
		finding(d, LEVEL_WARN, iface_subject(dev, "XDP hook"),
			"end it, or use another interface: a second process gets EBUSY; `xroce "
			"serve` shares an interface",
			"in use by %s (pid %d), program %u, %s mode, %s%s", comm, (int)pid,
			hook.prog_id, hook.native ? "native" : "generic",
			hook.is_dispatcher ? "in a dispatcher with other programs: " : "exclusive",
			hook.is_dispatcher ? *hook.others ? hook.others : "none now" : "");
		return;
	}
	if (hook.prog_id)
		check_foreign_program(d, dev, &hook);
	else
		finding(d, LEVEL_OK, iface_subject(dev, "XDP hook"), NULL, "free");
}

/* Reports that no broker serves this user. Another user's process may have the UDP ports. */
static void check_no_broker(struct doctor *d, const struct netdev *dev)
{
	char remedy[128], comm[32];
	pid_t pid = 0;

	if (netdev_holder(dev->ifindex, &pid, comm, sizeof(comm)) == -EPERM && pid > 0) {
		snprintf(remedy, sizeof(remedy),
			 "end it (`kill %d`), or as root, run `xroce serve %s`", (int)pid,
			 dev->name);
		finding(d, LEVEL_WARN, iface_subject(dev, "broker"), remedy,
			"none for this user; process %d (%s) of another user claims the interface",
			(int)pid, comm);
		return;
	}
	finding(d, LEVEL_OK, iface_subject(dev, "broker"), NULL,
		"none: the first process starts one%s", d->may_bpf ? "" : ", for UDP sockets");
}

/* Also checks the XDP hook, unless a broker's program is on it. */
static void check_broker(struct doctor *d, const struct netdev *dev, bool by_udp)
{
	char remedy[128], comm[32];
	int answer;
	pid_t pid;
	const int err = ask_for_broker(dev, &pid, &answer);

	process_name(pid, comm, sizeof(comm));
	if (!err && answer == -ETIMEDOUT) {
		snprintf(remedy, sizeof(remedy), "continue it (`kill -CONT %d`) or end it",
			 (int)pid);
		finding(d, LEVEL_FAIL, iface_subject(dev, "broker"), remedy,
			"process %d (%s) does not answer: it is stopped or gets no CPU time",
			(int)pid, comm);
	} else if (!err) {
		finding(d, LEVEL_OK, iface_subject(dev, "broker"), NULL,
			"process %d (%s): any number of processes can use the interface%s",
			(int)pid, comm, by_udp ? ", by UDP sockets" : "");
		if (answer != -EPIPE && options_share() != SHARE_NEVER)
			check_port(d, dev, true);
	} else if (err == -EACCES) {
		finding(d, LEVEL_FAIL, iface_subject(dev, "broker"),
			"as root, run `xroce serve` with another --mode or --group, or join the "
			"group of its socket in " ASK_DIR,
			"permission denied for this user");
	} else if (err != -ENOENT) {
		finding(d, LEVEL_WARN, iface_subject(dev, "broker"), NULL, "cannot be queried: %s",
			strerror(-err));
	} else if (attach_lacks_mount(dev)) {
		finding(d, LEVEL_FAIL, iface_subject(dev, "broker"), ATTACH_MOUNT,
			"its socket is not in " ASK_DIR " of this container");
	} else if (d->may_bpf || d->may_use_udp) {
		check_no_broker(d, dev);
		/* before a broker that the check of the port starts */
		check_hook(d, dev);
		if (!d->may_bpf)
			check_port(d, dev, false);
		return;
	} else {
		snprintf(remedy, sizeof(remedy), "as root, run `xroce serve %s`", dev->name);
		finding(d, LEVEL_FAIL, iface_subject(dev, "broker"), remedy, "no broker on %s",
			dev->name);
	}
	if (err && err != -EACCES)
		check_hook(d, dev);
}

/*
 * Returns true if RDMA device rdma has a GID on the interface. Entry 0 of port 1 is enough: all
 * drivers fill it when bound.
 */
static bool rdma_uses(const char *rdma, const char *ifname)
{
	char path[512], name[IF_NAMESIZE + 1] = "";
	bool uses = false;
	FILE *f;

	snprintf(path, sizeof(path), RDMA_CLASS "/%s/ports/1/gid_attrs/ndevs/0", rdma);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(name, sizeof(name), f)) {
		name[strcspn(name, "\n")] = 0;
		uses = !strcmp(name, ifname);
	}
	fclose(f);
	return uses;
}

/* `xroce run` shows xroce devices there, which are not the kernel's (sysfs_private.h). */
static bool is_our_device(const char *rdma)
{
	return !strncmp(rdma, NETDEV_DEVICE_PREFIX, strlen(NETDEV_DEVICE_PREFIX));
}

static void check_kernel_rdma(struct doctor *d, const struct netdev *dev)
{
	DIR *dir = opendir(RDMA_CLASS);
	struct dirent *e;
	char remedy[384];

	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] == '.' || is_our_device(e->d_name) ||
		    !rdma_uses(e->d_name, dev->name))
			continue;
		snprintf(remedy, sizeof(remedy),
			 "use only one of them; `rdma link delete %s` removes a Soft-RoCE device",
			 e->d_name);
		finding(d, LEVEL_WARN, iface_subject(dev, "kernel RDMA"), remedy,
			"%s is on this interface as well: while an xroce program runs, it receives "
			"no RoCEv2 packets",
			e->d_name);
	}
	if (dir)
		closedir(dir);
}

void doctor_iface(struct doctor *d, const struct netdev *dev)
{
	const bool by_udp = iface_uses_udp(d, dev);

	check_link(d, dev);
	check_addresses(d, dev);
	check_mtu(d, dev, by_udp);
	if (by_udp) {
		finding(d, LEVEL_OK, iface_subject(dev, "XDP mode"), NULL,
			"none: ports use UDP sockets");
	} else {
		check_queues(d, dev);
		check_mode(d, dev);
	}
	check_broker(d, dev, by_udp);
	check_kernel_rdma(d, dev);
}
