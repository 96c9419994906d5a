/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Describes a device's directory in /sys/class/infiniband, in the kernel's formats
 * (Documentation/ABI/stable/sysfs-class-infiniband), and writes it. The values are read when they
 * are written; of the counters, which change, only names are here. The verbs report the same
 * (user/verbs/query.c; tests/netns/sysfs.sh compares). Writing again replaces only changed files,
 * each atomically, so that a reader gets the old or the new text.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xroce/version.h>
#include <xroce/wire.h>

#include "../cli.h"
#include "../counters.h"
#include "sysfs.h"

/* IBV_PORT_CM_SUP, IBV_PORT_IP_BASED_GIDS, without the verbs headers */
#define PORT_CAPABILITIES (1u << 16 | 1u << 26)

#define CLASS_NET "/sys/class/net"

/* Temporary name in a device's directory while a file is replaced. */
#define REPLACEMENT ".new"

#define SYSFS_TEXT 160

/* ---- contents ---- */

struct sysfs_device {
	const struct netdev *dev;
	const struct pkey_table *pkeys;
};

/* Formats the text of a file; i: its index among files of one entry. Returns the length. */
typedef int sysfs_text_fn(char text[SYSFS_TEXT], const struct sysfs_device *d, u32 i);

static int sysfs_guid(char text[SYSFS_TEXT], const struct sysfs_device *d, u32 i)
{
	u8 g[8];

	netdev_guid(d->dev, g);
	return snprintf(text, SYSFS_TEXT, "%02x%02x:%02x%02x:%02x%02x:%02x%02x\n", g[0], g[1], g[2],
			g[3], g[4], g[5], g[6], g[7]);
}

static int sysfs_name(char text[SYSFS_TEXT], const struct sysfs_device *d, u32 i)
{
	return snprintf(text, SYSFS_TEXT, NETDEV_DEVICE_PREFIX "%s\n", d->dev->name);
}

static int sysfs_state(char text[SYSFS_TEXT], const struct sysfs_device *d, u32 i)
{
	return snprintf(text, SYSFS_TEXT, d->dev->is_up ? "4: ACTIVE\n" : "1: DOWN\n");
}

static int sysfs_phys_state(char text[SYSFS_TEXT], const struct sysfs_device *d, u32 i)
{
	const enum port_phys_state phys = netdev_phys_state(d->dev);

	return snprintf(text, SYSFS_TEXT, "%d: %s\n", phys,
			phys == PHYS_LINK_UP ? "LinkUp" :
			phys == PHYS_POLLING ? "Polling" : "Disabled");
}

/* Formats the rate like the kernel's ib_core: "100 Gb/sec (4X EDR)". */
static int sysfs_rate(char text[SYSFS_TEXT], const struct sysfs_device *d, u32 index)
{
	static const struct {
		u8 code;
		const char *name;
	} speeds[] = { { 1, "SDR" },  { 4, "QDR" }, { 32, "EDR" },
		       { 64, "HDR" }, { 128, "NDR" } };
	const struct port_speed s = netdev_port_speed(d->dev);
	const char *name = "";

	for (size_t i = 0; i < ARRAY_SIZE(speeds); i++)
		if (speeds[i].code == s.speed)
			name = speeds[i].name;
	return snprintf(text, SYSFS_TEXT, "%u%s Gb/sec (%uX %s)\n", s.mbps / 1000,
			s.mbps % 1000 ? ".5" : "", s.width == 1 ? 1 : 4, name);
}

static int sysfs_cap_mask(char text[SYSFS_TEXT], const struct sysfs_device *d, u32 i)
{
	return snprintf(text, SYSFS_TEXT, "0x%08x\n", PORT_CAPABILITIES);
}

static int sysfs_pkey(char text[SYSFS_TEXT], const struct sysfs_device *d, u32 i)
{
	return snprintf(text, SYSFS_TEXT, "0x%04x\n", d->pkeys->key[i]);
}

static u32 sysfs_num_pkeys(const struct sysfs_device *d)
{
	return d->pkeys->num;
}

static int sysfs_gid(char text[SYSFS_TEXT], const struct sysfs_device *d, u32 i)
{
	const u8 *raw = d->dev->gid[i].gid.raw;
	char *at = text;

	for (u32 n = 0; n < 16; n += 2)
		at += sprintf(at, "%s%02x%02x", n ? ":" : "", raw[n], raw[n + 1]);
	return (int)(stpcpy(at, "\n") - text);
}

static int sysfs_ndev(char text[SYSFS_TEXT], const struct sysfs_device *d, u32 i)
{
	return snprintf(text, SYSFS_TEXT, "%s\n", d->dev->name);
}

static u32 sysfs_num_gids(const struct sysfs_device *d)
{
	return d->dev->num_gids;
}

/* ---- the tree ---- */

/*
 * A directory, a file, or the files 0, 1, ... of a directory. Of those, the first num(d) exist;
 * the others, up to max, have the text `empty` or do not exist.
 */
struct sysfs_entry {
	const char *name;
	const char *constant; /* text of each file, or NULL */
	sysfs_text_fn *text;  /* makes the text, or NULL */
	u32 (*num)(const struct sysfs_device *d); /* NULL: a single file */
	u32 max;
	const char *empty;
};

#define DIR(path)	   { .name = path }
#define TEXT(path, string) { .name = path, .constant = string }
#define VALUE(path, fn)	   { .name = path, .text = fn }
#define ZERO_GID "0000:0000:0000:0000:0000:0000:0000:0000\n"

/* An empty GID has no type and no interface, as reading the kernel's fails then. */
static const struct sysfs_entry sysfs_tree[] = {
	VALUE("node_guid", sysfs_guid),
	VALUE("sys_image_guid", sysfs_guid),
	TEXT("node_type", "1: CA\n"),
	VALUE("node_desc", sysfs_name),
	TEXT("fw_ver", XROCE_VERSION "\n"),
	TEXT("hw_rev", "0\n"),
	TEXT("hca_type", "xroce\n"),
	TEXT("board_id", "xroce\n"),
	DIR("ports"),
	DIR("ports/1"),
	VALUE("ports/1/state", sysfs_state),
	VALUE("ports/1/phys_state", sysfs_phys_state),
	VALUE("ports/1/rate", sysfs_rate),
	TEXT("ports/1/link_layer", "Ethernet\n"),
	/* RoCE has no subnet manager, which would assign local identifiers. */
	TEXT("ports/1/lid", "0x0\n"),
	TEXT("ports/1/lid_mask_count", "0\n"),
	TEXT("ports/1/sm_lid", "0x0\n"),
	TEXT("ports/1/sm_sl", "0\n"),
	VALUE("ports/1/cap_mask", sysfs_cap_mask),
	DIR("ports/1/pkeys"),
	{ .name = "ports/1/pkeys", .text = sysfs_pkey, .num = sysfs_num_pkeys },
	DIR("ports/1/gids"),
	{ .name = "ports/1/gids", .text = sysfs_gid, .num = sysfs_num_gids, .max = XROCE_MAX_GID,
	  .empty = ZERO_GID },
	DIR("ports/1/gid_attrs"),
	DIR("ports/1/gid_attrs/types"),
	{ .name = "ports/1/gid_attrs/types", .constant = "RoCE v2\n", .num = sysfs_num_gids,
	  .max = XROCE_MAX_GID },
	DIR("ports/1/gid_attrs/ndevs"),
	{ .name = "ports/1/gid_attrs/ndevs", .text = sysfs_ndev, .num = sysfs_num_gids,
	  .max = XROCE_MAX_GID },
};

const char *const sysfs_counter_dirs[SYSFS_COUNTER_DIRS] = {
	[SYSFS_COUNTERS] = "counters",
	[SYSFS_HW_COUNTERS] = "hw_counters",
};

static bool sysfs_is_counter(enum sysfs_counter_dir dir, u32 i)
{
	return (counters_names[i].family == NAME_PORT) == (dir == SYSFS_COUNTERS);
}

bool sysfs_has_counter(enum sysfs_counter_dir dir, u32 i)
{
	bool has = sysfs_is_counter(dir, i);

	for (u32 before = 0; has && before < i; before++)
		has = !sysfs_is_counter(dir, before) ||
		      strcmp(counters_names[before].name, counters_names[i].name);
	return has;
}

/* ---- writing ---- */

/* A directory being written; err keeps the first error. */
struct sysfs_dir {
	int fd;
	bool is_new;
	int err;
};

static void sysfs_fail(struct sysfs_dir *d)
{
	if (!d->err)
		d->err = -errno;
}

static bool sysfs_says(const struct sysfs_dir *d, const char *name, const char *text, size_t len)
{
	char old[SYSFS_TEXT];
	const int fd = openat(d->fd, name, O_RDONLY | O_CLOEXEC);
	bool says;

	if (fd < 0)
		return false;
	says = read(fd, old, sizeof(old)) == (ssize_t)len && !memcmp(old, text, len);
	close(fd);
	return says;
}

static void sysfs_file(struct sysfs_dir *d, const char *name, const char *text, size_t len)
{
	const char *at = d->is_new ? name : REPLACEMENT;
	int fd;

	if (!d->is_new && sysfs_says(d, name, text, len))
		return;
	fd = openat(d->fd, at, O_WRONLY | O_CREAT | (d->is_new ? O_EXCL : O_TRUNC) | O_CLOEXEC,
		    0444);
	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		sysfs_fail(d);
	else if (at != name && renameat(d->fd, at, d->fd, name))
		sysfs_fail(d);
	if (fd >= 0)
		close(fd);
}

static void sysfs_mkdir(struct sysfs_dir *d, const char *name)
{
	if (mkdirat(d->fd, name, 0755) && (d->is_new || errno != EEXIST))
		sysfs_fail(d);
}

static void sysfs_write_text(struct sysfs_dir *d, const struct sysfs_entry *e, const char *name,
			     const struct sysfs_device *device, u32 i)
{
	char text[SYSFS_TEXT];

	if (e->text)
		sysfs_file(d, name, text, (size_t)e->text(text, device, i));
	else
		sysfs_file(d, name, e->constant, strlen(e->constant));
}

static void sysfs_nth(char name[64], const struct sysfs_entry *e, u32 i)
{
	snprintf(name, 64, "%s/%u", e->name, i);
}

/* Writes empty files, or removes files. first: the first of them. */
static void sysfs_clear(struct sysfs_dir *d, const struct sysfs_entry *e, u32 first)
{
	char name[64], old[64];

	sysfs_nth(old, e, first);
	for (u32 i = first; i < e->max; i++) {
		sysfs_nth(name, e, i);
		if (e->empty && d->is_new && i > first) {
			/* a hard link to the first, as there are many */
			if (linkat(d->fd, old, d->fd, name, 0))
				sysfs_fail(d);
		} else if (e->empty) {
			sysfs_file(d, name, e->empty, strlen(e->empty));
		} else if (!d->is_new && unlinkat(d->fd, name, 0) && errno != ENOENT) {
			sysfs_fail(d);
		}
	}
}

static void sysfs_write_entry(struct sysfs_dir *d, const struct sysfs_entry *e,
			      const struct sysfs_device *device)
{
	const u32 n = e->num ? e->num(device) : 0;
	char name[64];

	if (!e->text && !e->constant)
		sysfs_mkdir(d, e->name);
	else if (!e->num)
		sysfs_write_text(d, e, e->name, device, 0);
	for (u32 i = 0; i < n; i++) {
		sysfs_nth(name, e, i);
		sysfs_write_text(d, e, name, device, i);
	}
	if (e->num)
		sysfs_clear(d, e, n);
}

/* ---- the interface ---- */

/* Returns whether /sys shows this interface, as /sys may belong to another network namespace. */
static bool sysfs_has_interface(const struct netdev *dev)
{
	char path[128], text[32], mac[32];
	const u8 *m = dev->mac;
	FILE *f;
	bool is_it;

	snprintf(path, sizeof(path), CLASS_NET "/%s/address", dev->name);
	f = fopen(path, "re");
	if (!f)
		return false;
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x\n", m[0], m[1], m[2], m[3], m[4],
		 m[5]);
	is_it = fgets(text, sizeof(text), f) && !strcmp(text, mac);
	fclose(f);
	return is_it;
}

/*
 * Links the interface's bus device. Without one, or if /sys does not show the interface, makes a
 * directory: programs look for the name in device/net.
 */
static void sysfs_link_device(struct sysfs_dir *d, const struct netdev *dev)
{
	char path[128], *real = NULL;

	if (sysfs_has_interface(dev)) {
		snprintf(path, sizeof(path), CLASS_NET "/%s/device", dev->name);
		real = realpath(path, NULL);
	}
	if (real) {
		if (symlinkat(real, d->fd, "device"))
			sysfs_fail(d);
		free(real);
		return;
	}
	snprintf(path, sizeof(path), "device/net/%s", dev->name);
	sysfs_mkdir(d, "device");
	sysfs_mkdir(d, "device/net");
	sysfs_mkdir(d, path);
}

int sysfs_write(const char *dir, const struct netdev *dev, const struct pkey_table *pkeys)
{
	const struct sysfs_device device = { dev, pkeys };
	struct sysfs_dir d = { .is_new = true };
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/" NETDEV_DEVICE_PREFIX "%s", dir, dev->name);
	if (mkdir(path, 0755)) {
		if (errno != EEXIST)
			return -errno;
		d.is_new = false;
	}
	d.fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d.fd < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(sysfs_tree); i++)
		sysfs_write_entry(&d, &sysfs_tree[i], &device);
	if (d.is_new)
		sysfs_link_device(&d, dev);
	close(d.fd);
	return d.err;
}
