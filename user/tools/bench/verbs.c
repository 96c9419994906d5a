/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loads our libibverbs.so.1 and opens one of its devices. */
#define _GNU_SOURCE /* dlvsym() */
#include "verbs.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#define PORT 1

struct verbs verbs;

/* Finds a symbol. POSIX requires data and function pointers of the same size. */
static bool verbs_find(void *library, const char *name, const char *version, void *to)
{
	void *at = version ? dlvsym(library, name, version) : dlsym(library, name);

	memcpy(to, &at, sizeof(at));
	return at;
}

static const char *verbs_find_all(void *library)
{
#define VERBS_FIND(name, type, arguments)                              \
	if (!verbs_find(library, "ibv_" #name, NULL, &verbs.name))     \
		return "ibv_" #name;
	VERBS_CALLS(VERBS_FIND)
#undef VERBS_FIND
#define VERBS_FIND(name, type, arguments)                                               \
	if (!verbs_find(library, "xroce_" #name, "XROCE_PRIVATE_1", &verbs.name))       \
		return "xroce_" #name;
	VERBS_PRIVATE_CALLS(VERBS_FIND)
#undef VERBS_FIND
	return NULL;
}

int verbs_load(const struct command *command)
{
	char dir[2 * PATH_MAX + 64], file[3 * PATH_MAX];
	const char *missing;
	void *library;
	int err;

	if (verbs.open_device)
		return EXIT_OK;
	err = library_dir(dir, sizeof(dir));
	if (err) {
		fprintf(stderr, "xroce %s: xroce's libibverbs.so.1 is not in %s: %s\n",
			command->name,
			err == -ENOENT ? dir : "its place", strerror(-err));
		return EXIT_FAILED;
	}
	snprintf(file, sizeof(file), "%s/libibverbs.so.1", dir);
	library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "xroce %s: %s\n", command->name, dlerror());
		return EXIT_FAILED;
	}
	missing = verbs_find_all(library);
	if (!missing)
		return EXIT_OK;
	fprintf(stderr, "xroce %s: %s has no %s: another version of xroce\n", command->name, file,
		missing);
	memset(&verbs, 0, sizeof(verbs));
	return EXIT_FAILED;
}

/* ---- devices ---- */

/* Returns 0 or -errno. */
static int device_open_named(const char *iface, struct ibv_context **ctx)
{
	struct ibv_device **list = verbs.get_device_list(NULL);
	char name[IF_NAMESIZE + 8];
	int err = -ENODEV;

	if (!list)
		return -errno;
	snprintf(name, sizeof(name), "xroce_%s", iface);
	for (struct ibv_device **d = list; *d && err == -ENODEV; d++)
		if (!strcmp(verbs.get_device_name(*d), name)) {
			*ctx = verbs.open_device(*d);
			err = *ctx ? 0 : -errno;
		}
	verbs.free_device_list(list);
	return err;
}

static bool device_find_gid(struct device *dev, int entries)
{
	union ibv_gid gid;

	for (int i = 0; i < entries && i <= UINT8_MAX; i++)
		if (!verbs.query_gid(dev->ctx, PORT, i, &gid) &&
		    !memcmp(gid.raw, dev->gid.raw, sizeof(gid.raw))) {
			dev->gid_index = (u8)i;
			return true;
		}
	return false;
}

int device_open(const struct command *command, const char *iface, const struct gid *gid,
		struct device *dev)
{
	struct ibv_port_attr port = { 0 };
	const char *failed = NULL;
	int err;

	*dev = (struct device){ .gid = *gid };
	snprintf(dev->name, sizeof(dev->name), "%s", iface);
	err = device_open_named(iface, &dev->ctx);
	if (err)
		failed = "cannot open the device";
	else if (verbs.query_port(dev->ctx, PORT, (struct _compat_ibv_port_attr *)&port))
		failed = "cannot query the port";
	else if (!device_find_gid(dev, port.gid_tbl_len))
		failed = "the source address of the route is not a GID of the device";
	else if (!(dev->pd = verbs.alloc_pd(dev->ctx)))
		failed = "cannot allocate a protection domain";
	if (!failed) {
		dev->mtu = 128u << port.active_mtu;
		return EXIT_OK;
	}
	if (!err)
		err = -errno;
	fprintf(stderr, "xroce %s: %s: %s: %s; 'xroce doctor %s' shows what is missing\n",
		command->name, iface, failed, strerror(-err), iface);
	device_close(dev);
	return EXIT_FAILED;
}

void device_close(struct device *dev)
{
	if (dev->pd)
		verbs.dealloc_pd(dev->pd);
	if (dev->ctx)
		verbs.close_device(dev->ctx);
	dev->pd = NULL;
	dev->ctx = NULL;
}

struct ibv_ah_attr device_ah_attr(const struct device *dev, const struct gid *peer)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = PORT,
		.grh = { .sgid_index = dev->gid_index, .hop_limit = 64 },
	};

	memcpy(attr.grh.dgid.raw, peer->raw, sizeof(peer->raw));
	return attr;
}

struct ibv_ah *device_create_ah(const struct device *dev, const struct gid *peer)
{
	struct ibv_ah_attr attr = device_ah_attr(dev, peer);

	return verbs.create_ah(dev->pd, &attr);
}
