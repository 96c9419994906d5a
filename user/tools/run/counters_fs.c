/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All nodes are known from the beginning and have fixed numbers, so the kernel may keep them; the
 * values it may not: files are read by direct_io.
 */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "counters_fs.h"
#include "../counter_names.h"

const char *const counters_dirs[COUNTERS_DIRS] = { "counters", "hw_counters" };

#define COUNTERS_KEPT_S 86400.0 /* nodes, in the kernel */

/* A broker, or a process that has the interface, that does not answer: so long, */
#define COUNTERS_MAX_NS	   (2 * NSEC_PER_SEC)
#define COUNTERS_SILENT_NS (5 * NSEC_PER_SEC) /* and not asked again before that */

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
	u32 dev, dir, name; /* + 1 each; 0: it is above those */
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

/* A name that two families have is one file. */
static bool node_is_listed(u32 dir, u32 i)
{
	if ((counter_names[i].family == NAME_PORT) != (dir == 0))
		return false;
	for (u32 before = 0; before < i; before++)
		if ((counter_names[before].family == NAME_PORT) == (dir == 0) &&
		    !strcmp(counter_names[before].name, counter_names[i].name))
			return false;
	return true;
}

/* What lies in the directory at: the first from *i on, which is moved on behind it; or NULL. */
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
		return next->dir <= COUNTERS_DIRS ? counters_dirs[next->dir - 1] : NULL;
	}
	while (*i < counter_num_names) {
		next->name = ++*i;
		if (node_is_listed(at.dir - 1, next->name - 1))
			return counter_names[next->name - 1].name;
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
 * The sum of what `xroce stat --json` says of each process. Returns 0, or -errno: without an answer
 * of the broker the sum would be wrong. A program that reads all files waits for that once.
 */
static int counters_add_up(struct counters_dev *d, const struct counter_name *c, u64 *value)
{
	const struct netdev *dev = d->dev;
	struct observer o;
	struct sums s;
	int err = clock_now_ns() < d->silent_ns ? -ETIMEDOUT : observer_begin(&o, dev->name);

	*value = 0;
	if (err)
		return err;
	o.ask_ns = COUNTERS_MAX_NS;
	/* another has its name by now */
	if (o.ifaces[0].ifindex != dev->ifindex)
		err = -ENODEV;
	if (!err)
		err = observer_list(&o);
	if (!err && o.ifaces[0].is_silent) {
		d->silent_ns = clock_now_ns() + COUNTERS_SILENT_NS;
		err = -ETIMEDOUT;
	}
	for (u32 i = 0; !err && i < o.num; i++) {
		if (observed_open(&o.ports[i]))
			continue;
		sums_read(&o.ports[i], &s);
		*value += counter_value(&s, c);
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
	int err = counters_add_up(&fs->devs[n.dev - 1], &counter_names[n.name - 1], &value);

	if (!err)
		f->len = (u32)snprintf(f->text, sizeof(f->text), "%" PRIu64 "\n", (uint64_t)value);
	return err;
}

/* ---- what the kernel asks; what it names is a node that it was told of ---- */

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

void counters_fs_serve(int fd, const struct netdev *devs, u32 n)
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
