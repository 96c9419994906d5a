/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes a directory like /sys/class/infiniband/NAME, in the kernel's formats
 * (Documentation/ABI/stable/sysfs-class-infiniband). The values are those at the time of writing;
 * counters, which change, are not included. The verbs report the same (user/verbs/query.c;
 * tests/netns/sysfs.sh compares). Writing again replaces only changed files, each atomically, so
 * that a reader gets the old or the new text.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xroce/version.h>
#include <xroce/wire.h>

#include "../../os/netdev.h"
#include "../cli.h"
#include "sysfs_private.h"

/* IBV_PORT_CM_SUP, IBV_PORT_IP_BASED_GIDS, without the verbs headers */
#define PORT_CAPABILITIES (1u << 16 | 1u << 26)

#define CLASS_NET "/sys/class/net"

/* Temporary name in a device's directory while a file is replaced. */
#define REPLACEMENT ".new"

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
	char old[160];
	const int fd = openat(d->fd, name, O_RDONLY | O_CLOEXEC);
	bool says;

	if (fd < 0)
		return false;
	says = read(fd, old, sizeof(old)) == (ssize_t)len && !memcmp(old, text, len);
	close(fd);
	return says;
}

__attribute__((format(printf, 3, 4)))
static void sysfs_file(struct sysfs_dir *d, const char *name, const char *fmt, ...)
{
	const char *at = d->is_new ? name : REPLACEMENT;
	char text[160];
	va_list ap;
	int fd, len;

	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!d->is_new && sysfs_says(d, name, text, (size_t)len))
		return;
	fd = openat(d->fd, at, O_WRONLY | O_CREAT | (d->is_new ? O_EXCL : O_TRUNC) | O_CLOEXEC,
		    0444);
	if (fd < 0 || write(fd, text, (size_t)len) != len)
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

static void sysfs_guid(struct sysfs_dir *d, const char *name, const struct netdev *dev)
{
	u8 g[8];

	netdev_guid(dev, g);
	sysfs_file(d, name, "%02x%02x:%02x%02x:%02x%02x:%02x%02x\n", g[0], g[1], g[2], g[3], g[4],
		   g[5], g[6], g[7]);
}

/* ---- the port ---- */

static void sysfs_gid(struct sysfs_dir *d, u32 index, const u8 *raw)
{
	char name[64], text[8 * 5 + 1], *at = text;

	snprintf(name, sizeof(name), "ports/1/gids/%u", index);
	for (u32 i = 0; i < 16; i += 2)
		at += sprintf(at, "%s%02x%02x", i ? ":" : "", raw[i], raw[i + 1]);
	sysfs_file(d, name, "%s\n", text);
}

static void sysfs_remove(struct sysfs_dir *d, const char *name)
{
	if (unlinkat(d->fd, name, 0) && errno != ENOENT)
		sysfs_fail(d);
}

/* Clears slots that had an address before; a new directory has none. */
static void sysfs_forget_gids(struct sysfs_dir *d, u32 first)
{
	static const u8 zeros[16];
	char name[64];

	for (u32 i = first; i < XROCE_MAX_GID; i++) {
		sysfs_gid(d, i, zeros);
		snprintf(name, sizeof(name), "ports/1/gid_attrs/types/%u", i);
		sysfs_remove(d, name);
		snprintf(name, sizeof(name), "ports/1/gid_attrs/ndevs/%u", i);
		sysfs_remove(d, name);
	}
}

/* Makes empty slots, which read as zeros: one file with a hard link for each. */
static void sysfs_empty_gids(struct sysfs_dir *d, u32 first)
{
	static const u8 zeros[16];
	char old[64], name[64];

	if (first >= XROCE_MAX_GID)
		return;
	sysfs_gid(d, first, zeros);
	snprintf(old, sizeof(old), "ports/1/gids/%u", first);
	for (u32 i = first + 1; i < XROCE_MAX_GID; i++) {
		snprintf(name, sizeof(name), "ports/1/gids/%u", i);
		if (linkat(d->fd, old, d->fd, name, 0))
			sysfs_fail(d);
	}
}

/* An empty slot has no type and no interface files, as reading the kernel's fails then. */
static void sysfs_gids(struct sysfs_dir *d, const struct netdev *dev)
{
	char name[64];

	sysfs_mkdir(d, "ports/1/gids");
	sysfs_mkdir(d, "ports/1/gid_attrs");
	sysfs_mkdir(d, "ports/1/gid_attrs/types");
	sysfs_mkdir(d, "ports/1/gid_attrs/ndevs");
	for (u32 i = 0; i < dev->num_gids; i++) {
		sysfs_gid(d, i, dev->gid[i].gid.raw);
		snprintf(name, sizeof(name), "ports/1/gid_attrs/types/%u", i);
		sysfs_file(d, name, "RoCE v2\n");
		snprintf(name, sizeof(name), "ports/1/gid_attrs/ndevs/%u", i);
		sysfs_file(d, name, "%s\n", dev->name);
	}
	if (d->is_new)
		sysfs_empty_gids(d, dev->num_gids);
	else
		sysfs_forget_gids(d, dev->num_gids);
}

/* Formats the rate like the kernel's ib_core: "100 Gb/sec (4X EDR)". */
static void sysfs_rate(struct sysfs_dir *d, const struct netdev *dev)
{
	static const struct {
		u8 code;
		const char *name;
	} speeds[] = { { 1, "SDR" },  { 4, "QDR" }, { 32, "EDR" },
		       { 64, "HDR" }, { 128, "NDR" } };
	const struct port_speed s = netdev_port_speed(dev);
	const char *name = "";

	for (size_t i = 0; i < ARRAY_SIZE(speeds); i++)
		if (speeds[i].code == s.speed)
			name = speeds[i].name;
	sysfs_file(d, "ports/1/rate", "%u%s Gb/sec (%uX %s)\n", s.mbps / 1000,
		   s.mbps % 1000 ? ".5" : "", s.width == 1 ? 1 : 4, name);
}

static void sysfs_pkeys(struct sysfs_dir *d, const struct pkey_table *pkeys)
{
	char name[64];

	sysfs_mkdir(d, "ports/1/pkeys");
	for (u32 i = 0; i < pkeys->num; i++) {
		snprintf(name, sizeof(name), "ports/1/pkeys/%u", i);
		sysfs_file(d, name, "0x%04x\n", pkeys->key[i]);
	}
}

static void sysfs_port(struct sysfs_dir *d, const struct netdev *dev,
		       const struct pkey_table *pkeys)
{
	const enum port_phys_state phys = netdev_phys_state(dev);

	sysfs_mkdir(d, "ports");
	sysfs_mkdir(d, "ports/1");
	sysfs_file(d, "ports/1/state", dev->is_up ? "4: ACTIVE\n" : "1: DOWN\n");
	sysfs_file(d, "ports/1/phys_state", "%d: %s\n", phys,
		   phys == PHYS_LINK_UP ? "LinkUp" :
		   phys == PHYS_POLLING ? "Polling" : "Disabled");
	sysfs_rate(d, dev);
	sysfs_file(d, "ports/1/link_layer", "Ethernet\n");
	/* RoCE has no subnet manager, which would assign local identifiers. */
	sysfs_file(d, "ports/1/lid", "0x0\n");
	sysfs_file(d, "ports/1/lid_mask_count", "0\n");
	sysfs_file(d, "ports/1/sm_lid", "0x0\n");
	sysfs_file(d, "ports/1/sm_sl", "0\n");
	sysfs_file(d, "ports/1/cap_mask", "0x%08x\n", PORT_CAPABILITIES);
	sysfs_pkeys(d, pkeys);
	sysfs_gids(d, dev);
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
static void sysfs_device(struct sysfs_dir *d, const struct netdev *dev)
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
	char path[PATH_MAX];
	struct sysfs_dir d = { .is_new = true };

	snprintf(path, sizeof(path), "%s/" NETDEV_DEVICE_PREFIX "%s", dir, dev->name);
	if (mkdir(path, 0755)) {
		if (errno != EEXIST)
			return -errno;
		d.is_new = false;
	}
	d.fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d.fd < 0)
		return -errno;
	sysfs_guid(&d, "node_guid", dev);
	sysfs_guid(&d, "sys_image_guid", dev);
	sysfs_file(&d, "node_type", "1: CA\n");
	sysfs_file(&d, "node_desc", NETDEV_DEVICE_PREFIX "%s\n", dev->name);
	sysfs_file(&d, "fw_ver", XROCE_VERSION "\n");
	sysfs_file(&d, "hw_rev", "0\n");
	sysfs_file(&d, "hca_type", "xroce\n");
	sysfs_file(&d, "board_id", "xroce\n");
	sysfs_port(&d, dev, pkeys);
	if (d.is_new)
		sysfs_device(&d, dev);
	close(d.fd);
	return d.err;
}
