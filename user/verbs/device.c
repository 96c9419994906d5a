/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The device list: one device per network interface, named xroce_<interface>. Listing and opening
 * read the kernel's tables and change nothing on the interface. A device keeps its address while it
 * is referenced, so a second list has the same pointers.
 */
#include <stdio.h>
#include <unistd.h>

#include "../os/options.h"
#include "../os/identity.h"
#include "objects.h"

static struct vdevice *devices;

/*
 * Some programs need the files of a device, which `xroce run` provides. Prints once per process
 * that they are missing.
 */
static void device_note_missing_files(const struct ibv_device *device)
{
	static atomic_bool is_told;
	char node[sizeof(device->dev_name) + 32];

	if (!options_is_set(OPTION_DEBUG))
		return;
	snprintf(node, sizeof(node), "/dev/infiniband/%s", device->dev_name);
	if ((access(device->ibdev_path, F_OK) || access(node, F_OK)) &&
	    !atomic_exchange_explicit(&is_told, true, memory_order_relaxed))
		fprintf(stderr,
			"xroce: no %s or no %s: programs that look for these files (UCX, NCCL, "
			"ibstat) find no device; start them by `xroce run`\n",
			device->ibdev_path, node);
}

/* Caller holds lists_lock. */
static struct vdevice *device_find(const struct netdev *nd)
{
	for (struct vdevice *d = devices; d; d = d->next)
		if (d->nd.ifindex == nd->ifindex && !strcmp(d->nd.name, nd->name) &&
		    !memcmp(d->nd.mac, nd->mac, sizeof(nd->mac)))
			return d;
	return NULL;
}

/* Caller holds lists_lock. */
static struct vdevice *device_new(const struct netdev *nd)
{
	struct vdevice *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->nd = *nd;
	d->ibv.node_type = IBV_NODE_CA;
	d->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(d->ibv.name, sizeof(d->ibv.name), NETDEV_DEVICE_PREFIX "%s", nd->name);
	snprintf(d->ibv.dev_name, sizeof(d->ibv.dev_name), "%s", d->ibv.name);
	snprintf(d->ibv.dev_path, sizeof(d->ibv.dev_path), "/sys/class/infiniband_verbs/%s",
		 d->ibv.name);
	snprintf(d->ibv.ibdev_path, sizeof(d->ibv.ibdev_path), "/sys/class/infiniband/%s",
		 d->ibv.name);
	d->next = devices;
	devices = d;
	return d;
}

/* Caller holds lists_lock. */
static void device_put_locked(struct vdevice *dev)
{
	struct vdevice **at = &devices;

	if (--dev->refs)
		return;
	while (*at != dev)
		at = &(*at)->next;
	*at = dev->next;
	free(dev);
}

void device_get(struct vdevice *dev)
{
	pthread_mutex_lock(&lists_lock);
	dev->refs++;
	pthread_mutex_unlock(&lists_lock);
}

void device_put(struct vdevice *dev)
{
	pthread_mutex_lock(&lists_lock);
	device_put_locked(dev);
	pthread_mutex_unlock(&lists_lock);
}

bool device_is_known(const struct ibv_device *device)
{
	const struct vdevice *d;

	pthread_mutex_lock(&lists_lock);
	for (d = devices; d && &d->ibv != device; d = d->next)
		;
	pthread_mutex_unlock(&lists_lock);
	return d != NULL;
}

int device_take(struct ibv_context *context, enum vlimit kind)
{
	static const u32 limits[LIMITS] = {
		[LIMIT_PD] = VERBS_MAX_PD, [LIMIT_MR] = VERBS_MAX_MR, [LIMIT_MW] = VERBS_MAX_MW,
		[LIMIT_AH] = VERBS_MAX_AH, [LIMIT_CQ] = VERBS_MAX_CQ, [LIMIT_SRQ] = VERBS_MAX_SRQ,
		[LIMIT_TABLE] = VERBS_MAX_TABLE,
	};

	if (atomic_fetch_add_explicit(&to_vdevice(context->device)->made[kind], 1,
				      memory_order_relaxed) < limits[kind])
		return 0;
	device_give(context, kind);
	return ENOMEM;
}

void device_give(struct ibv_context *context, enum vlimit kind)
{
	atomic_fetch_sub_explicit(&to_vdevice(context->device)->made[kind], 1,
				  memory_order_relaxed);
}

EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;
	struct netdev *nd;
	int count = netdev_list(&nd);
	int n = 0;

	if (num_devices)
		*num_devices = 0;
	if (count < 0)
		return verb_fail(-count);
	list = calloc(count + 1, sizeof(*list));
	if (!list) {
		free(nd);
		return verb_fail(ENOMEM);
	}
	pthread_mutex_lock(&lists_lock);
	for (int i = 0; i < count; i++) {
		struct vdevice *d = device_find(&nd[i]);

		if (!d)
			d = device_new(&nd[i]);
		if (!d)
			break;
		d->refs++;
		list[n++] = &d->ibv;
	}
	pthread_mutex_unlock(&lists_lock);
	free(nd);
	if (n < count) {
		ibv_free_device_list(list);
		return verb_fail(ENOMEM);
	}
	if (n)
		device_note_missing_files(list[0]);
	if (num_devices)
		*num_devices = n;
	return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	for (struct ibv_device **d = list; *d; d++)
		device_put(to_vdevice(*d));
	free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	__be64 guid;

	netdev_guid(&to_vdevice(device)->nd, (u8 *)&guid);
	return guid;
}

EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return (int)to_vdevice(device)->nd.ifindex;
}
