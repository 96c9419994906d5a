/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files counters/NAME and hw_counters/NAME of devices (sysfs.h): a FUSE file system, the
 * process that serves it, and its mounts. Each read sums the counters of `xroce stat` over the
 * processes visible to this user. Nothing is cached between reads. All nodes are known from the
 * beginning and have fixed numbers, so the kernel may keep them, but not the values: files are read
 * by direct_io.
 *
 * The process starts before this one enters the mount namespace, and therefore does not hold the
 * namespace. It ends when that is gone, as its file system is then mounted nowhere. The file system
 * is mounted once, and each of its directories is bound to its place.
 */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 35
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "../../os/close_fd.h"
#include "../cli.h"
#include "../observe/observe.h"
#include "daemonize.h"
#include "sysfs.h"

#define FUSE_DEVICE "/dev/fuse"

/*
 * To have a broker list all of its clients and pass read-only descriptors of their maps. The
 * contents of maps are from other users' processes, so the process has no CAP_SYS_ADMIN to open
 * maps by ID.
 */
#define SERVER_CAPS (1ull << CAP_NET_ADMIN)

#define COUNTERS_KEPT_S 86400.0 /* nodes, in the kernel */

#define COUNTERS_MAX_NS	   (2 * NSEC_PER_SEC) /* longest wait for a broker's answer */
#define COUNTERS_SILENT_NS (5 * NSEC_PER_SEC) /* after that, pause before the next question */

struct counters_dev {
	const struct netdev *dev;
	u64 silent_ns; /* not asked before */
};

struct counters_fs {
	struct counters_dev *devs;
	u32 num;
};

/* ---- nodes: root / interface / directory / name, the indexes + 1 in a number ---- */

#define NODE_DEV_SHIFT	32
#define NODE_DIR_SHIFT	16
_Static_assert(FUSE_ROOT_ID >> NODE_DIR_SHIFT == 0, "the root has a number of its own");

struct node {
	/* index + 1 of the device, its directory, the file; 0: the node is a directory above it */
	u32 dev, dir, name;
};

static fuse_ino_t node_number(struct node n)
{
	return n.dev ? (fuse_ino_t)n.dev << NODE_DEV_SHIFT | n.dir << NODE_DIR_SHIFT | n.name :
		       FUSE_ROOT_ID;
}

static struct node node_of(fuse_ino_t ino)
{
	if (ino == FUSE_ROOT_ID)
		return (struct node){ 0 };
	return (struct node){ .dev = (u32)(ino >> NODE_DEV_SHIFT),
			      .dir = (u32)(ino >> NODE_DIR_SHIFT & 0xffff),
			      .name = (u32)(ino & 0xffff) };
}

/*
 * Returns the name of the directory's first entry from index *i on, with the entry in *next, and
 * sets *i to the following index; or NULL.
 */
static const char *node_next(const struct counters_fs *fs, struct node at, u32 *i,
			     struct node *next)
{
	*next = at;
	if (at.name)
		return NULL;
	if (!at.dev) {
		next->dev = ++*i;
		return next->dev <= fs->num ? fs->devs[next->dev - 1].dev->name : NULL;
	}
	if (!at.dir) {
		next->dir = ++*i;
		return next->dir <= SYSFS_COUNTER_DIRS ? sysfs_counter_dirs[next->dir - 1] : NULL;
	}
	while (*i < counters_num_names) {
		next->name = ++*i;
		if (sysfs_has_counter(at.dir - 1, next->name - 1))
			return counters_names[next->name - 1].name;
	}
	return NULL;
}

/* As sysfs has them: a page is what a file may be long. */
static struct stat node_stat(struct node n)
{
	return (struct stat){
		.st_ino = node_number(n),
		.st_mode = n.name ? S_IFREG | 0444 : S_IFDIR | 0755,
		.st_nlink = n.name ? 1 : 2,
		.st_uid = geteuid(),
		.st_gid = getegid(),
		.st_size = n.name ? sysconf(_SC_PAGESIZE) : 0,
	};
}

/* ---- values ---- */

/*
 * Adds up a counter of `xroce stat --json` over all processes. Returns 0 or -errno: without the
 * broker's answer the sum would be wrong. A program that reads all files waits for the answer once.
 */
static int counters_add_up(struct counters_dev *d, const struct counters_name *c, u64 *value)
{
	const struct netdev *dev = d->dev;
	struct observer o;
	struct snapshot s;
	int err = clock_now_ns() < d->silent_ns ? -ETIMEDOUT : observer_begin(&o, dev->name);

	*value = 0;
	if (err)
		return err;
	o.ask_ns = COUNTERS_MAX_NS;
	/* another has its name by now */
	if (o.ifaces[0].ifindex != dev->ifindex)
		err = -ENODEV;
	if (!err)
		observer_list(&o);
	if (!err && o.ifaces[0].is_silent) {
		d->silent_ns = clock_now_ns() + COUNTERS_SILENT_NS;
		err = -ETIMEDOUT;
	}
	for (u32 i = 0; !err && i < o.num; i++) {
		if (observed_open(&o.ports[i]))
			continue;
		if (!snapshot_read(&s, &o.ports[i], SNAPSHOT_COUNTERS))
			*value = counter_plus(*value, counters_value(&s.sums, c));
		snapshot_end(&s);
		observed_close(&o.ports[i]);
	}
	observer_end(&o);
	return err;
}

/* A file that is open. What its beginning was read as it stays until that is read again. */
struct counters_file {
	char text[24];
	u32 len;
};

static int counters_file_fill(struct counters_fs *fs, struct node n, struct counters_file *f)
{
	u64 value;
	int err = counters_add_up(&fs->devs[n.dev - 1], &counters_names[n.name - 1], &value);

	if (!err)
		f->len = (u32)snprintf(f->text, sizeof(f->text), "%" PRIu64 "\n", (uint64_t)value);
	return err;
}

/* ---- requests of the kernel, which name only nodes that fs_lookup() has returned ---- */

static struct counters_fs *fs_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static void fs_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = { .attr_timeout = COUNTERS_KEPT_S,
				      .entry_timeout = COUNTERS_KEPT_S };
	struct node next;
	const char *found;
	u32 i = 0;

	while ((found = node_next(fs_of(req), node_of(parent), &i, &next)))
		if (!strcmp(found, name)) {
			e.ino = node_number(next);
			e.attr = node_stat(next);
			fuse_reply_entry(req, &e);
			return;
		}
	fuse_reply_err(req, ENOENT);
}

static void fs_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	const struct stat st = node_stat(node_of(ino));

	fuse_reply_attr(req, &st, COUNTERS_KEPT_S);
}

/* Entries have no "." and "..", which are not asked for. */
static void fs_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	char *buf = calloc(1, size ? size : 1);
	size_t used = 0, len;
	struct node next;
	const char *name;
	u32 i = (u32)off;

	if (!buf) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	while ((name = node_next(fs_of(req), node_of(ino), &i, &next))) {
		const struct stat st = node_stat(next);

		len = fuse_add_direntry(req, buf + used, size - used, name, &st, (off_t)i);
		if (len > size - used)
			break;
		used += len;
	}
	fuse_reply_buf(req, buf, used);
	free(buf);
}

static void fs_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct counters_file *f = calloc(1, sizeof(*f));

	if (!f) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	fi->fh = (uintptr_t)f;
	fi->direct_io = 1;
	if (fuse_reply_open(req, fi) < 0)
		free(f);
}

static void fs_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	free((void *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}

static void fs_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct counters_file *f = (struct counters_file *)(uintptr_t)fi->fh;
	int err = off ? 0 : counters_file_fill(fs_of(req), node_of(ino), f);
	const u32 from = off < f->len ? (u32)off : f->len;

	if (err)
		fuse_reply_err(req, -err);
	else
		fuse_reply_buf(req, f->text + from, min_u32(f->len - from, (u32)size));
}

static const struct fuse_lowlevel_ops fs_ops = {
	.lookup = fs_lookup,
	.getattr = fs_getattr,
	.readdir = fs_readdir,
	.open = fs_open,
	.release = fs_release,
	.read = fs_read,
};

/* Serves n interfaces on fd, an open /dev/fuse, until the file system is no longer mounted. */
static void counters_serve(int fd, const struct netdev *devs, u32 n)
{
	struct counters_fs fs = { calloc(n, sizeof(*fs.devs)), n };
	struct fuse_args args = FUSE_ARGS_INIT(1, ((char *[]){ "xroce", NULL }));
	struct fuse_session *session =
		fs.devs ? fuse_session_new(&args, &fs_ops, sizeof(fs_ops), &fs) : NULL;
	char place[32];

	for (u32 i = 0; session && i < n; i++)
		fs.devs[i].dev = &devs[i];
	/* what libfuse takes for a mount that is made already */
	snprintf(place, sizeof(place), "/dev/fd/%d", fd);
	if (session && !fuse_session_mount(session, place))
		fuse_session_loop(session);
	if (session)
		fuse_session_destroy(session);
	fuse_opt_free_args(&args);
	free(fs.devs);
}

/* ---- the process ---- */

struct counters_server {
	int fuse_fd, begin_fd;
	bool is_bound;
	const struct netdev *devs;
	u32 n;
};

static int server_bound_fd;

static bool server_is_bound(void)
{
	struct pollfd p = { .fd = server_bound_fd };
	int n;

	/* the late signal may come while this looks */
	do
		n = poll(&p, 1, 0);
	while (n < 0 && errno == EINTR);
	return n == 0;
}

/* The signal may be for the byte at the start of this process: a slow sender raises it late. */
static void server_end_unbound(int sig)
{
	const int err = errno;

	if (!server_is_bound())
		_exit(0);
	errno = err;
}

/* When the other end of the socket hangs up, the kernel sends SIGIO, and this process ends. */
static bool server_bind(int fd)
{
	const struct sigaction end = { .sa_handler = server_end_unbound, .sa_flags = SA_RESTART };

	server_bound_fd = fd;
	return !sigaction(SIGIO, &end, NULL) && !fcntl(fd, F_SETOWN, getpid()) &&
	       !fcntl(fd, F_SETFL, O_ASYNC) && server_is_bound();
}

/* By a read before the mount, the kernel would say that there is none. */
static void server_work(void *arg)
{
	const struct counters_server *s = arg;
	char byte;

	if (recv(s->begin_fd, &byte, 1, 0) != 1)
		return;
	if (!s->is_bound)
		close(s->begin_fd);
	else if (!server_bind(s->begin_fd))
		return;
	counters_serve(s->fuse_fd, s->devs, s->n);
}

int sysfs_counters_begin(struct sysfs_counters *c, const struct netdev *devs, u32 n,
				 bool is_bound)
{
	struct counters_server s = { .is_bound = is_bound, .devs = devs, .n = n };
	int pair[2], err;

	*c = (struct sysfs_counters){ .fuse_fd = -1, .begin_fd = -1 };
	s.fuse_fd = open(FUSE_DEVICE, O_RDWR | O_CLOEXEC);
	if (s.fuse_fd < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		err = -errno;
		close(s.fuse_fd);
		return err;
	}
	s.begin_fd = pair[1];
	err = daemonize("xroce-counters", SERVER_CAPS, server_work, &s,
			(const int[]){ s.fuse_fd, pair[1] }, 2);
	close(pair[1]);
	*c = (struct sysfs_counters){ .is_bound = is_bound,
					      .fuse_fd = s.fuse_fd,
					      .begin_fd = pair[0] };
	if (err)
		sysfs_counters_end(c);
	return err;
}

void sysfs_counters_end(struct sysfs_counters *c)
{
	close_fd(&c->fuse_fd);
	close_fd(&c->begin_fd);
}

/* ---- the mounts ---- */

/*
 * After this the other process alone has the descriptor of the file system: once it has ended, a
 * look-up fails at once.
 */
static int counters_mount(struct sysfs_counters *c, const char *path)
{
	char options[160];
	int err = 0;

	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40755,user_id=%u,group_id=%u,allow_other,default_permissions",
		 c->fuse_fd, geteuid(), getegid());
	if (mount(SYSFS_SOURCE, path, "fuse.xroce",
		  MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, options))
		err = -errno;
	else if (send(c->begin_fd, "", 1, MSG_NOSIGNAL) != 1)
		err = -errno;
	if (c->is_bound && !err)
		close_fd(&c->fuse_fd);
	else
		sysfs_counters_end(c);
	return err;
}

int sysfs_counters_mount(struct sysfs_counters *c, const char *hidden)
{
	int err = counters_mount(c, hidden);

	c->is_mounted = true;
	if (err)
		sysfs_counters_unmount(c, hidden);
	return err;
}

void sysfs_counters_unmount(struct sysfs_counters *c, const char *hidden)
{
	umount2(hidden, MNT_DETACH);
	c->is_mounted = false;
}

/* One of a device's directories in dir. */
static void counters_path(char path[PATH_MAX + 64], const char *dir, const struct netdev *dev,
			  u32 i)
{
	snprintf(path, PATH_MAX + 64, "%s/" NETDEV_DEVICE_PREFIX "%s/ports/1/%s", dir, dev->name,
		 sysfs_counter_dirs[i]);
}

int sysfs_counters_mkdir(const char *dir, const struct netdev *dev)
{
	char path[PATH_MAX + 64];

	for (u32 i = 0; i < SYSFS_COUNTER_DIRS; i++) {
		counters_path(path, dir, dev, i);
		if (mkdir(path, 0755) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

void sysfs_counters_rmdir(const char *dir, const struct netdev *dev)
{
	char path[PATH_MAX + 64];

	for (u32 i = 0; i < SYSFS_COUNTER_DIRS; i++) {
		counters_path(path, dir, dev, i);
		rmdir(path);
	}
}

int sysfs_counters_show(const char *hidden, const char *dir, const struct netdev *dev)
{
	char from[PATH_MAX + 64], to[PATH_MAX + 64];
	int err = 0;

	for (u32 i = 0; !err && i < SYSFS_COUNTER_DIRS; i++) {
		snprintf(from, sizeof(from), "%s/%s/%s", hidden, dev->name, sysfs_counter_dirs[i]);
		counters_path(to, dir, dev, i);
		if (mount(from, to, NULL, MS_BIND, NULL))
			err = -errno;
	}
	return err;
}
