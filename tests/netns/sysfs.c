/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sysfs DEVICE: a device's files against what the verbs answer, each value as the kernel's files
 * have it. Read by ibv_read_sysfs_file() from below ibv_get_sysfs_path(); both are exported, and in
 * no installed header.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl.h"
#include "lib/device.h"

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

static struct ibv_context *ctx;
static char base[512];
static int compared, wrong;

/* The file holds this text, and a newline that was taken away. */
__attribute__((format(printf, 2, 3)))
static void has(const char *file, const char *fmt, ...)
{
	char want[256], got[256] = "";
	va_list ap;
	int len;

	va_start(ap, fmt);
	vsnprintf(want, sizeof(want), fmt, ap);
	va_end(ap);
	len = ibv_read_sysfs_file(base, file, got, sizeof(got));
	compared++;
	if (len == (int)strlen(want) && !strcmp(got, want))
		return;
	wrong++;
	printf("%s is '%s' (%d, %s), not '%s'\n", file, got, len, strerror(errno), want);
}

static void has_not(const char *file)
{
	char got[256];

	compared++;
	errno = 0;
	if (ibv_read_sysfs_file(base, file, got, sizeof(got)) == -1 && errno == ENOENT)
		return;
	wrong++;
	printf("%s can be read: %s\n", file, strerror(errno));
}

static void has_guid(const char *file, __be64 guid)
{
	const unsigned long long g = be64toh(guid);

	has(file, "%04llx:%04llx:%04llx:%04llx", g >> 48, g >> 32 & 0xffff, g >> 16 & 0xffff,
	    g & 0xffff);
}

static void compare_device(void)
{
	struct ibv_device_attr attr;

	must(!ibv_query_device(ctx, &attr), "ibv_query_device: %s", strerror(errno));
	must(attr.phys_port_cnt == 1, "%d ports", attr.phys_port_cnt);
	has_guid("node_guid", attr.node_guid);
	has_guid("node_guid", ibv_get_device_guid(ctx->device));
	has_guid("sys_image_guid", attr.sys_image_guid);
	has("fw_ver", "%s", attr.fw_ver);
	has("hw_rev", "%x", attr.hw_ver);
	has("node_type", "%d: CA", ctx->device->node_type);
	has("node_desc", "%s", ibv_get_device_name(ctx->device));
	has("hca_type", "xroce");
	has("board_id", "xroce");
}

static const char *speed_name(int code)
{
	switch (code) {
	case 1: return "2.5 SDR";
	case 4: return "10 QDR";
	case 32: return "25 EDR";
	case 64: return "50 HDR";
	case 128: return "100 NDR";
	}
	return "0 ?";
}

static void compare_port(void)
{
	static const char *const phys[] = { [2] = "Polling", [3] = "Disabled", [5] = "LinkUp" };
	struct ibv_port_attr p;
	char name[8];
	double lane;
	int width;

	must(!ibv_query_port(ctx, 1, &p), "ibv_query_port: %s", strerror(errno));
	has("ports/1/state", "%d: %s", p.state, p.state == IBV_PORT_ACTIVE ? "ACTIVE" : "DOWN");
	has("ports/1/phys_state", "%d: %s", p.phys_state, phys[p.phys_state]);
	must(sscanf(speed_name(p.active_speed), "%lf %7s", &lane, name) == 2, "speed");
	width = p.active_width == 1 ? 1 : 4;
	has("ports/1/rate", "%g Gb/sec (%dX %s)", lane * width, width, name);
	must(p.link_layer == IBV_LINK_LAYER_ETHERNET, "link layer %d", p.link_layer);
	has("ports/1/link_layer", "Ethernet");
	has("ports/1/lid", "0x%x", p.lid);
	has("ports/1/lid_mask_count", "%d", p.lmc);
	has("ports/1/sm_lid", "0x%x", p.sm_lid);
	has("ports/1/sm_sl", "%d", p.sm_sl);
	has("ports/1/cap_mask", "0x%08x", p.port_cap_flags);
}

static void compare_tables(void)
{
	struct ibv_port_attr p;
	char file[64], ifname[IF_NAMESIZE];

	must(!ibv_query_port(ctx, 1, &p), "ibv_query_port: %s", strerror(errno));
	for (int i = 0; i < p.gid_tbl_len; i++) {
		struct ibv_gid_entry entry;
		union ibv_gid gid;
		const uint8_t *g = gid.raw;

		must(!ibv_query_gid(ctx, 1, i, &gid), "ibv_query_gid: %s", strerror(errno));
		snprintf(file, sizeof(file), "ports/1/gids/%d", i);
		has(file, "%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x",
		    g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11], g[12],
		    g[13], g[14], g[15]);
		if (ibv_query_gid_ex(ctx, 1, (uint32_t)i, &entry, 0)) {
			snprintf(file, sizeof(file), "ports/1/gid_attrs/types/%d", i);
			has_not(file);
			snprintf(file, sizeof(file), "ports/1/gid_attrs/ndevs/%d", i);
			has_not(file);
			continue;
		}
		must(entry.gid_type == IBV_GID_TYPE_ROCE_V2, "GID type %u", entry.gid_type);
		snprintf(file, sizeof(file), "ports/1/gid_attrs/types/%d", i);
		has(file, "RoCE v2");
		snprintf(file, sizeof(file), "ports/1/gid_attrs/ndevs/%d", i);
		has(file, "%s", if_indextoname(entry.ndev_ifindex, ifname));
	}
	snprintf(file, sizeof(file), "ports/1/gids/%d", p.gid_tbl_len);
	has_not(file);
	for (int i = 0; i < p.pkey_tbl_len; i++) {
		__be16 pkey;

		must(!ibv_query_pkey(ctx, 1, i, &pkey), "ibv_query_pkey: %s", strerror(errno));
		snprintf(file, sizeof(file), "ports/1/pkeys/%d", i);
		has(file, "0x%04x", be16toh(pkey));
	}
	snprintf(file, sizeof(file), "ports/1/pkeys/%d", p.pkey_tbl_len);
	has_not(file);
	/* an idle one; sysfs_counters.sh has more of these */
	has("ports/1/counters/port_rcv_data", "0");
	has("ports/1/hw_counters/duplicate_request", "0");
	has_not("ports/2/state");
}

/* The call itself: short buffers, and invalid files. */
static void read_corners(void)
{
	char got[8] = "zzzzzzz";

	/* no room for the zero */
	must(ibv_read_sysfs_file(base, "node_type", got, 2) == -1, "a short buffer: '%.7s'", got);
	must(ibv_read_sysfs_file(base, "node_type", got, 6) == 5 && !memcmp(got, "1: CA\0z", 7),
	     "a buffer of that size: '%.7s'", got);
	must(ibv_read_sysfs_file(base, "ports", got, sizeof(got)) == -1 && errno == EISDIR,
	     "a directory: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct ibv_device **list;

	must(argc == 2, "usage: sysfs DEVICE");
	list = ibv_get_device_list(NULL);
	must(list, "ibv_get_device_list: %s", strerror(errno));
	ibv_free_device_list(list);
	ctx = open_device(argv[1]);
	snprintf(base, sizeof(base), "%s/class/infiniband/%s", ibv_get_sysfs_path(), argv[1]);
	must(!strcmp(base, ctx->device->ibdev_path), "ibdev_path is %s", ctx->device->ibdev_path);
	compare_device();
	compare_port();
	compare_tables();
	read_corners();
	printf("compared %d values, %d differ\n", compared, wrong);
	ibv_close_device(ctx);
	return wrong != 0;
}
