/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The keeper of sysfs_global.h, and the caller's messages to it. */
#define _GNU_SOURCE
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../os/netdev_nl.h"
#include "../cli.h"
#include "sysfs_global.h"
#include "../run/daemonize.h"
#include "../run/sysfs.h"

#define KEEPER_NAME "xroce-files"

#define SETTLE_MS 50	/* quiet time after the last of a burst of events */
#define LATEST_MS 500	/* limit of the delay after the first event */
#define END_MS	  10000 /* limit of the caller's wait for an answer or the keeper's exit */

/* The keeper's result of its start. */
struct keeper_word {
	int err;	  /* 0: the files exist */
	int counters_err; /* 0, or -errno: no counters */
	char device[IF_NAMESIZE]; /* the failed device, or "" */
};

struct keeper {
	int fd; /* to the caller, whose hang-up ends the keeper */
	struct sysfs_global_device *devices;
	u32 n;
	struct pkey_table pkeys;
	struct sysfs_counters counters;
	struct link_events *link_events;
	int events_fd;
};

/* ---- start ---- */

static int keeper_show_counters(struct keeper *k, const struct sysfs_global_dir *d)
{
	struct sysfs_counters *c = &k->counters;
	char hidden[PATH_MAX];
	int err;

	if (c->err)
		return c->err;
	snprintf(hidden, sizeof(hidden), "%s/counters", d->path);
	err = sysfs_counters_mount(c, hidden);
	for (u32 i = 0; !err && i < k->n; i++)
		err = sysfs_counters_show(hidden, SYSFS_GLOBAL_SHOWN, &k->devices[i].dev);
	if (c->is_mounted)
		sysfs_counters_unmount(c, hidden);
	return err;
}

/* Removes the counters' directories, which would be empty without their mount. */
static void keeper_hide_counters(struct keeper *k, const struct sysfs_global_dir *d)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/class/infiniband", d->path);
	for (u32 i = 0; i < k->n; i++)
		sysfs_counters_rmdir(path, &k->devices[i].dev);
}

static void keeper_make(struct keeper *k, struct keeper_word *word)
{
	struct sysfs_global_dir d;

	sysfs_global_sweep(false);
	word->err = sysfs_global_enter(&d, true);
	if (word->err)
		return;
	for (u32 i = 0; !word->err && i < k->n; i++) {
		word->err = sysfs_global_add(&d, &k->devices[i], &k->pkeys);
		if (word->err)
			snprintf(word->device, sizeof(word->device), "%s", k->devices[i].dev.name);
	}
	if (!word->err) {
		word->counters_err = keeper_show_counters(k, &d);
		if (word->counters_err)
			keeper_hide_counters(k, &d);
	}
	for (u32 i = 0; word->err && i < k->n; i++)
		sysfs_global_remove(&d, &k->devices[i]);
	sysfs_global_leave(&d);
}

/* ---- changes ---- */

/* Updates a device's files, or removes them if its interface is gone or renamed. */
static void keeper_write_one(struct keeper *k, struct sysfs_global_dir *d,
			     struct sysfs_global_device *e)
{
	struct netdev now = e->dev;
	const int err = netdev_refresh(&now);

	if (err == -ENODEV || (!err && strcmp(now.name, e->dev.name) != 0)) {
		sysfs_global_remove(d, e);
		return;
	}
	if (err)
		return;
	e->dev = now;
	sysfs_global_write(d, e, &k->pkeys);
}

/* Events: of interfaces; of the kernel's classes and devices. */
enum { HEARD_LINK = 1, HEARD_EVENTS = 2 };

/* Returns false if another process holds the lock. */
static bool keeper_write(struct keeper *k, u32 heard)
{
	struct sysfs_global_dir d;
	const int err = sysfs_global_enter(&d, false);

	if (err)
		return err != -EBUSY;
	for (u32 i = 0; heard & HEARD_LINK && i < k->n; i++)
		if (k->devices[i].owner_fd >= 0)
			keeper_write_one(k, &d, &k->devices[i]);
	if (heard & HEARD_EVENTS)
		sysfs_global_mount_again(&d);
	sysfs_global_leave(&d);
	return true;
}

static bool keeper_has(const struct keeper *k, u32 i, u32 ifindex)
{
	return k->devices[i].owner_fd >= 0 && (!ifindex || k->devices[i].dev.ifindex == ifindex);
}

/* Removes the files of an interface, 0: of all. Needs NS, so makes it again if deleted. */
static void keeper_remove(struct keeper *k, u32 ifindex)
{
	struct sysfs_global_dir d;
	u32 n = 0;

	for (u32 i = 0; i < k->n; i++)
		n += keeper_has(k, i, ifindex);
	if (!n || sysfs_global_enter(&d, true))
		return;
	for (u32 i = 0; i < k->n; i++)
		if (keeper_has(k, i, ifindex))
			sysfs_global_remove(&d, &k->devices[i]);
	sysfs_global_leave(&d);
}

/* Removes the files of the ifindex that the caller sent, and answers. Returns false at hang-up. */
static bool keeper_obey(struct keeper *k)
{
	u32 ifindex;

	if (recv(k->fd, &ifindex, sizeof(ifindex), 0) != sizeof(ifindex))
		return false;
	keeper_remove(k, ifindex);
	return send(k->fd, &ifindex, sizeof(ifindex), MSG_NOSIGNAL) == sizeof(ifindex);
}

struct heard {
	const struct keeper *keeper;
	u32 what;
};

static void keeper_hear(void *arg, enum link_events_kind kind, u32 ifindex,
			const struct nlmsghdr *nlh)
{
	struct heard *h = arg;

	if (kind == LINK_EVENTS_LOST)
		h->what |= HEARD_LINK;
	for (u32 i = 0; i < h->keeper->n; i++)
		if (h->keeper->devices[i].dev.ifindex == ifindex)
			h->what |= HEARD_LINK;
}

/*
 * Waits for the caller or events. Returns false at hang-up. *heard: pending changes, or 0. Without
 * a struct loop, whose handlers would have to hand both results to keeper_run() by the keeper.
 */
static bool keeper_wait(struct keeper *k, int timeout_ms, u32 *heard)
{
	struct heard h = { .keeper = k };
	struct pollfd p[] = {
		{ .fd = k->fd, .events = POLLIN },
		{ .fd = k->link_events->fd, .events = POLLIN },
		{ .fd = k->events_fd, .events = POLLIN },
	};

	*heard = 0;
	if (poll(p, ARRAY_SIZE(p), timeout_ms) <= 0)
		return true;
	if (p[0].revents)
		return keeper_obey(k);
	if (p[1].revents)
		link_events_take(k->link_events, keeper_hear, &h);
	if (p[2].revents && sysfs_global_hear(k->events_fd))
		h.what |= HEARD_EVENTS;
	*heard = h.what;
	return true;
}

static void keeper_run(struct keeper *k)
{
	u32 due = 0, heard;

	while (keeper_wait(k, due ? LATEST_MS : -1, &heard)) {
		due |= heard;
		for (int ms = 0; heard && ms < LATEST_MS; ms += SETTLE_MS) {
			if (!keeper_wait(k, SETTLE_MS, &heard))
				return;
			due |= heard;
		}
		if (due && keeper_write(k, due))
			due = 0;
	}
}

/* Stopping a service signals all its processes; the keeper exits after the broker instead. */
static void keeper_ignore_signals(void)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE };

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], SIG_IGN);
}

static void keeper_work(void *arg)
{
	struct keeper *k = arg;
	struct keeper_word word = { 0 };
	struct netdev *devs = calloc(k->n, sizeof(*devs));

	umask(0);
	k->link_events = calloc(1, sizeof(*k->link_events));
	word.err = devs && k->link_events ? link_events_open(k->link_events) : -ENOMEM;
	k->events_fd = word.err ? -1 : sysfs_global_listen();
	for (u32 i = 0; devs && i < k->n; i++)
		devs[i] = k->devices[i].dev;
	if (!word.err) {
		/* before signals are ignored, as the counters' process must not inherit that */
		k->counters.err = sysfs_counters_begin(&k->counters, devs, k->n, true);
		keeper_ignore_signals();
		keeper_make(k, &word);
	}
	/* the caller's data is older than the event socket */
	if (!word.err)
		keeper_write(k, HEARD_LINK);
	if (send(k->fd, &word, sizeof(word), MSG_NOSIGNAL) == sizeof(word) && !word.err)
		keeper_run(k);
	if (!word.err)
		keeper_remove(k, 0);
}

/* ---- the caller ---- */

static int sysfs_global_explain(const struct keeper_word *w)
{
	const char *why = w->err == -EPERM || w->err == -EACCES ?
				  "needs root with CAP_SYS_ADMIN and CAP_MKNOD" :
			  w->err == -ENODEV ? "the kernel has no overlay file systems" :
			  w->err == -EEXIST ? "files of a device with this name exist already" :
					      strerror(-w->err);

	fprintf(stderr,
		"xroce serve: no files in " SYSFS_GLOBAL_SHOWN " and " SYSFS_GLOBAL_NODES
		"%s%s: %s\n",
		*w->device ? " of " NETDEV_DEVICE_PREFIX : "", w->device, why);
	return w->err;
}

int sysfs_global_begin(struct sysfs_global *e, const struct netdev *devs, u32 n,
		       const struct pkey_table *pkeys)
{
	struct keeper k = { .n = n, .pkeys = *pkeys, .events_fd = -1 };
	struct keeper_word word = { .err = -EIO };
	int pair[2], pid;

	*e = SYSFS_GLOBAL_NONE;
	k.devices = calloc(n, sizeof(*k.devices));
	if (!k.devices || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		word.err = k.devices ? -errno : -ENOMEM;
		free(k.devices);
		return sysfs_global_explain(&word);
	}
	for (u32 i = 0; i < n; i++)
		k.devices[i] = (struct sysfs_global_device){ .dev = devs[i], .owner_fd = -1 };
	k.fd = pair[1];
	pid = daemonize_as_child(KEEPER_NAME, keeper_work, &k, &pair[1], 1);
	close(pair[1]);
	free(k.devices);
	*e = (struct sysfs_global){ .keeper = pid > 0 ? pid : 0, .fd = pair[0] };
	if (pid < 0)
		word.err = pid;
	else if (recv(e->fd, &word, sizeof(word), 0) != sizeof(word))
		word.err = -EIO;
	if (word.err) {
		sysfs_global_end(e);
		return sysfs_global_explain(&word);
	}
	if (word.counters_err)
		fprintf(stderr,
			"xroce serve: cannot serve counter files by /dev/fuse: %s\n",
			strerror(-word.counters_err));
	return 0;
}

/*
 * Waits for the keeper's answer, or for its exit, which closes the socket. Kills a keeper that does
 * neither, and then returns false.
 */
static bool sysfs_global_wait(const struct sysfs_global *e)
{
	struct pollfd p = { .fd = e->fd, .events = POLLIN };

	if (poll(&p, 1, END_MS))
		return true;
	fprintf(stderr,
		"xroce serve: process %d, " KEEPER_NAME ", has not answered for %d s: it is "
		"killed, and the files in " SYSFS_GLOBAL_SHOWN " and " SYSFS_GLOBAL_NODES
		" are taken away\n",
		e->keeper, END_MS / 1000);
	kill(e->keeper, SIGKILL);
	poll(&p, 1, END_MS);
	return false;
}

void sysfs_global_drop(struct sysfs_global *e, u32 ifindex)
{
	if (e->fd < 0 || send(e->fd, &ifindex, sizeof(ifindex), MSG_NOSIGNAL) != sizeof(ifindex))
		return;
	if (sysfs_global_wait(e))
		recv(e->fd, &ifindex, sizeof(ifindex), MSG_DONTWAIT);
	else
		sysfs_global_end(e);
}

void sysfs_global_end(struct sysfs_global *e)
{
	if (e->fd < 0)
		return;
	shutdown(e->fd, SHUT_WR);
	sysfs_global_wait(e);
	close(e->fd);
	if (e->keeper)
		waitpid(e->keeper, NULL, WNOHANG);
	/* in case the keeper was killed */
	sysfs_global_sweep(false);
	*e = SYSFS_GLOBAL_NONE;
}
