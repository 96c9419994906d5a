/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queries the XDP hook of an interface and its driver's capabilities. Attaches and loads nothing.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../attach/dispatcher.h"
#include "../../broker/broker.h"
#include "../cli.h"

#define MAPS_MAX 64 /* more than any xroce program has */

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

	while (!bpf_link_get_next_id(id, &id)) {
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

/* Returns a descriptor of the program's map of that name and fills *map, or -ENOENT or -errno. */
static int map_of(u32 prog_id, const char *name, struct bpf_map_info *map)
{
	u32 ids[MAPS_MAX], len = sizeof(struct bpf_prog_info);
	struct bpf_prog_info prog = { .nr_map_ids = MAPS_MAX, .map_ids = (uintptr_t)ids };
	int fd = bpf_prog_get_fd_by_id(prog_id), ret;

	if (fd < 0)
		return fd;
	ret = bpf_obj_get_info_by_fd(fd, &prog, &len);
	close(fd);
	for (u32 i = 0; !ret && i < prog.nr_map_ids && i < MAPS_MAX; i++) {
		len = sizeof(*map);
		memset(map, 0, len);
		fd = bpf_map_get_fd_by_id(ids[i]);
		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, map, &len) && !strcmp(map->name, name) &&
		    (map->type == BPF_MAP_TYPE_ARRAY || map->type == BPF_MAP_TYPE_PERCPU_ARRAY))
			return fd;
		close(fd);
	}
	return ret ? ret : -ENOENT;
}

int xdp_counters(u32 prog_id, const char *name, u64 *sum, size_t counters)
{
	struct bpf_map_info map;
	int fd = map_of(prog_id, name, &map), cpus = 1, ret = -ENOMEM;
	size_t stride;
	u64 *value;

	memset(sum, 0, counters * sizeof(*sum));
	if (fd < 0)
		return fd;
	if (map.type == BPF_MAP_TYPE_PERCPU_ARRAY)
		cpus = libbpf_num_possible_cpus();
	stride = (map.value_size + sizeof(*sum) - 1) / sizeof(*sum);
	/* New counters are only appended, so another version's value may be shorter or longer. */
	value = cpus > 0 ? calloc(cpus, (stride + counters) * sizeof(*sum)) : NULL;
	for (u32 i = 0; value && i < map.max_entries; i++) {
		ret = bpf_map_lookup_elem(fd, &i, value);
		if (ret)
			break;
		for (int c = 0; c < cpus; c++)
			for (size_t k = 0; k < counters && k < stride; k++)
				sum[k] += value[c * stride + k];
	}
	free(value);
	close(fd);
	return ret;
}

int xdp_hook_query(u32 ifindex, struct xdp_hook *hook)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	int ret = bpf_xdp_query((int)ifindex, 0, &query);

	memset(hook, 0, sizeof(*hook));
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

void xdp_driver_query(const struct netdev *dev, struct xdp_driver *driver)
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
