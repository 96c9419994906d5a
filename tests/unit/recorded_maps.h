/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interfaces, ports and maps without a kernel, for tests of the commands that read maps: the
 * functions of observe.c that find ports, and of libbpf that read maps, in their places. Maps are
 * read by the real user/tools/observe/observe_maps.c. Included once by a test; a test linked with
 * observe_options.c defines RECORDED_WITH_LOOK.
 */
#ifndef TESTS_UNIT_RECORDED_MAPS_H
#define TESTS_UNIT_RECORDED_MAPS_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "../../user/tools/observe/observe_options.h"
#include "../../user/tools/counters.h"

#include <xroce/stat.h>

enum fake_map_name {
	MAP_ENGINE_STAT, /* the five of struct sums, in its order */
	MAP_RX,
	MAP_SOCK,
	MAP_DROP,
	MAP_ENGINE_DROP,
	MAP_QP,
	MAP_QP_STAT,
	MAP_CQ_STAT,
	MAP_SRQ_STAT,
	MAP_MR_STAT,
	MAPS,
};

struct fake_map {
	const char *name;
	enum bpf_map_type type;
	u32 id, cpus, entries, key_size, value_size;
	u32 *keys;  /* of a hash; NULL: an array */
	u8 *values; /* entries x cpus x value_size, malloc() */
};

struct fake_port {
	enum observed_kind kind;
	u32 ifindex, pid, prog_id;
	char command[32];
	bool is_gone; /* not listed any more */
	int open_err; /* of observed_open() */
	struct fake_map maps[MAPS];
};

#define FAKE_FD 100000 /* above all descriptors of this process: close() does no harm */

static struct {
	u32 num_ifaces, num;
	struct observed_iface ifaces[4];
	struct fake_port ports[8];
} fake;

/* ---- making ---- */

static void kernel_begin(void)
{
	memset(&fake, 0, sizeof(fake));
}

static void map_end(struct fake_map *m)
{
	free(m->values);
	free(m->keys);
	m->values = NULL;
	m->keys = NULL;
}

static void kernel_end(void)
{
	for (u32 i = 0; i < fake.num; i++)
		for (u32 k = 0; k < MAPS; k++)
			map_end(&fake.ports[i].maps[k]);
	kernel_begin();
}

/* Returns the interface of that name; creates it if missing. */
static struct observed_iface *kernel_iface(const char *name)
{
	struct observed_iface *f;

	for (u32 i = 0; i < fake.num_ifaces; i++)
		if (!strcmp(fake.ifaces[i].name, name))
			return &fake.ifaces[i];
	f = &fake.ifaces[fake.num_ifaces++];
	*f = (struct observed_iface){ .ifindex = fake.num_ifaces, .mtu = 4500, .is_up = true };
	snprintf(f->name, sizeof(f->name), "%s", name);
	return f;
}

/* Resets all values of the map to zeros. */
static void map_size(struct fake_map *m, u32 entries, u32 value_size)
{
	free(m->values);
	m->entries = entries;
	m->value_size = value_size;
	m->values = calloc((size_t)entries * m->cpus, value_size);
	assert_non_null(m->values);
}

/* Adds a port of a process: its maps have numbers from `first_id`, and zeros. */
static struct fake_port *kernel_port(const char *iface, u32 pid, u32 first_id)
{
#define ARRAY_OF(name, size) { name, BPF_MAP_TYPE_ARRAY, 0, 1, 1, sizeof(u32), size, NULL, NULL }
#define PER_CPU(name, size) \
	{ name, BPF_MAP_TYPE_PERCPU_ARRAY, 0, 2, 1, sizeof(u32), size, NULL, NULL }
	static const struct fake_map all[MAPS] = {
		[MAP_ENGINE_STAT] = ARRAY_OF(XROCE_MAP_ENGINE_STAT,
					     sizeof(struct xroce_engine_stats)),
		[MAP_RX] = PER_CPU(XROCE_MAP_RX, sizeof(struct xroce_rx_stats)),
		[MAP_SOCK] = ARRAY_OF(XROCE_MAP_SOCK, sizeof(struct xroce_sock)),
		[MAP_DROP] = PER_CPU(XROCE_MAP_DROP, sizeof(struct xroce_drops)),
		[MAP_ENGINE_DROP] = ARRAY_OF(XROCE_MAP_ENGINE_DROP, sizeof(struct xroce_drops)),
		[MAP_QP] = ARRAY_OF(XROCE_MAP_QP, sizeof(struct xroce_qp)),
		[MAP_QP_STAT] = ARRAY_OF(XROCE_MAP_QP_STAT, sizeof(struct xroce_qp_stat)),
		[MAP_CQ_STAT] = ARRAY_OF(XROCE_MAP_CQ_STAT, sizeof(struct xroce_cq_stat)),
		[MAP_SRQ_STAT] = ARRAY_OF(XROCE_MAP_SRQ_STAT, sizeof(struct xroce_srq_stat)),
		[MAP_MR_STAT] = ARRAY_OF(XROCE_MAP_MR_STAT, sizeof(struct xroce_mr_stat)),
	};
	struct fake_port *p = &fake.ports[fake.num++];

	*p = (struct fake_port){ .kind = OBSERVED_SILENT,
				 .ifindex = kernel_iface(iface)->ifindex,
				 .pid = pid,
				 .prog_id = first_id };
	snprintf(p->command, sizeof(p->command), "program");
	memcpy(p->maps, all, sizeof(all));
	p->maps[MAP_QP].type = BPF_MAP_TYPE_HASH;
	for (u32 i = 0; i < MAPS; i++) {
		p->maps[i].id = first_id + i;
		map_size(&p->maps[i], p->maps[i].entries, p->maps[i].value_size);
	}
	p->maps[MAP_QP].entries = 0; /* a hash without an element */
	return p;
}

static void *map_value(struct fake_port *p, enum fake_map_name name, u32 nth)
{
	return p->maps[name].values + (size_t)nth * p->maps[name].cpus * p->maps[name].value_size;
}

static struct xroce_qp_stat *port_qp(struct fake_port *p, u32 nth)
{
	return map_value(p, MAP_QP_STAT, nth);
}

/* Gives the port `num` queue pairs in RTS, with numbers from 0x100. */
static void port_qps(struct fake_port *p, u32 num)
{
	struct fake_map *m = &p->maps[MAP_QP];

	map_size(m, num, m->value_size);
	free(m->keys);
	m->keys = calloc(num, sizeof(*m->keys));
	assert_non_null(m->keys);
	map_size(&p->maps[MAP_QP_STAT], num, sizeof(struct xroce_qp_stat));
	for (u32 i = 0; i < num; i++) {
		m->keys[i] = 0x100 + i;
		*port_qp(p, i) = (struct xroce_qp_stat){ .qpn = 0x100 + i,
							 .pid = p->pid,
							 .transport = XROCE_RC,
							 .state = XROCE_QPS_RTS };
	}
}

/*
 * The server of steady_pingpong on va as it was recorded (recorded/explain_healthy.h), with counts
 * that were split over two CPUs and two receive queues.
 */
static struct fake_port *kernel_pingpong(void)
{
	struct fake_port *p = kernel_port("va", 3202, 100);
	struct xroce_rx_stats *rx;
	struct xroce_sock *sock;
	struct xroce_qp_stat *qp;
	struct xroce_qp *steer;

	snprintf(p->command, sizeof(p->command), "steady_pingpong");
	*(struct xroce_engine_stats *)map_value(p, MAP_ENGINE_STAT, 0) =
		(struct xroce_engine_stats){ .rx_packets = 5680,
					     .tx_packets = 5681,
					     .tx_bytes = 4988122,
					     .tx_retransmitted = 1,
					     .tx_retransmitted_bytes = 1082,
					     .rto_probes = 1 };
	rx = map_value(p, MAP_RX, 0);
	rx[0].redirected = 5000;
	rx[1].redirected = 680;
	map_size(&p->maps[MAP_SOCK], 2, sizeof(struct xroce_sock));
	sock = map_value(p, MAP_SOCK, 0);
	sock[0].rx_frames = 80;
	sock[1].rx_frames = 5600;
	((struct xroce_drops *)map_value(p, MAP_DROP, 0))[1].peer = 4;
	((struct xroce_drops *)map_value(p, MAP_ENGINE_DROP, 0))->peer = 3;
	port_qps(p, 1);
	steer = map_value(p, MAP_QP, 0);
	*steer = (struct xroce_qp){ .qpn = 4127861, .receiving = 1, .pkey = 0xffff,
				    .rx_packets = 5680, .wakeups = 12 };
	qp = port_qp(p, 0);
	*qp = (struct xroce_qp_stat){ .qpn = 4127861,
				      .peer_qpn = 5343523,
				      .pid = 3202,
				      .transport = XROCE_RC,
				      .state = XROCE_QPS_RTS,
				      .path_mtu = 1024,
				      .pkey = 0xffff,
				      .tx_packets = 5681,
				      .tx_bytes = 4988122,
				      .rx_packets = 5680,
				      .msn = 1136 };
	memcpy(qp->peer, (u8[16]){ [10] = 0xff, 0xff, 10, 77, 0, 2 }, sizeof(qp->peer));
	*(struct xroce_cq_stat *)map_value(p, MAP_CQ_STAT, 0) =
		(struct xroce_cq_stat){ .pid = 3202,
					.cq = 1,
					.entries = 501,
					.waiting = 1,
					.most_waiting = 2,
					.completions = 2272 };
	*(struct xroce_mr_stat *)map_value(p, MAP_MR_STAT, 0) =
		(struct xroce_mr_stat){ .pid = 3202,
					.key = 0x1234,
					.length = 4096,
					.kind = XROCE_MR_REGION };
	return p;
}

/*
 * Gives the values of one map another size, as another version of the library has. Its maps must
 * not be open: the kernel changes no map's size.
 */
static void kernel_resize(struct fake_port *p, u64 seed)
{
	struct fake_map *m = &p->maps[seed % MAPS];

	map_size(m, m->entries, (u32)(8 * (1 + seed * 7 % 100)));
}

/* Rewrites maps as a lying process does: any bytes, and the extremes. */
static void kernel_mutate(struct fake_port *p, u64 seed)
{
	u64 random = seed * 2 + 1;

	for (u32 k = 0; k < MAPS; k++) {
		struct fake_map *m = &p->maps[k];
		const size_t words = (size_t)m->entries * m->cpus * m->value_size / sizeof(u32);

		for (size_t i = 0; i < words; i++) {
			u32 *word = (u32 *)m->values + i;

			random = random * 6364136223846793005ull + 1442695040888963407ull;
			switch (random >> 60) {
			case 0: *word = 0; break;
			case 1: *word = 0xffffffff; break;
			case 2: *word = (u32)(random >> 32) & 7; break;
			case 3:
			case 4: *word = (u32)(random >> 16); break;
			default: break; /* as it was */
			}
		}
	}
}

/* ---- in the place of observe.c ---- */

int observer_begin(struct observer *o, const char *dev)
{
	*o = (struct observer){ .num_ifaces = fake.num_ifaces, .ifaces = fake.ifaces };
	return dev && !fake.num_ifaces ? -ENODEV : 0;
}

int observer_renew(struct observer *o, const char *dev)
{
	return 0;
}

static void fake_forget(struct observer *o)
{
	for (u32 i = 0; i < o->num; i++)
		observed_close(&o->ports[i]);
	free(o->ports);
	o->ports = NULL;
	o->num = 0;
}

void observer_list(struct observer *o)
{
	fake_forget(o);
	o->ports = calloc(8, sizeof(*o->ports));
	assert_non_null(o->ports);
	for (u32 i = 0; i < fake.num; i++) {
		const struct fake_port *p = &fake.ports[i];
		struct observed *to = &o->ports[o->num];

		if (p->is_gone)
			continue;
		*to = (struct observed){ .iface = &fake.ifaces[p->ifindex - 1],
					 .kind = p->kind,
					 .prog_id = p->prog_id,
					 .pid = p->pid };
		memcpy(to->command, p->command, sizeof(to->command));
		o->num++;
	}
}

void observer_end(struct observer *o)
{
	fake_forget(o);
}

/* All ports are in the list. */
bool observe_foreign(bool (*is_known)(void *arg, u32 prog_id), u32 parts, observe_fn *fn,
		     void *arg)
{
	return true;
}

/* ---- in the place of libbpf: a descriptor is FAKE_FD and the number of its map ---- */

static struct fake_port *fake_port_of(u32 prog_id)
{
	for (u32 i = 0; i < fake.num; i++)
		if (!fake.ports[i].is_gone && fake.ports[i].prog_id == prog_id)
			return &fake.ports[i];
	return NULL;
}

static struct fake_map *fake_map_of(int fd)
{
	for (u32 i = 0; i < fake.num; i++)
		for (u32 k = 0; k < MAPS; k++)
			if (fake.ports[i].maps[k].id == (u32)(fd - FAKE_FD))
				return &fake.ports[i].maps[k];
	return NULL;
}

int libbpf_num_possible_cpus(void)
{
	return 2;
}

int bpf_prog_get_fd_by_id(__u32 id)
{
	const struct fake_port *p = fake_port_of(id);

	return !p ? -ENOENT : p->open_err ? p->open_err : 2 * FAKE_FD + (int)id;
}

int bpf_map_get_fd_by_id_opts(__u32 id, const struct bpf_get_fd_by_id_opts *opts)
{
	return fake_map_of(FAKE_FD + (int)id) ? FAKE_FD + (int)id : -ENOENT;
}

int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *len)
{
	struct bpf_map_info *map = info;
	const struct fake_map *m;

	if (fd >= 2 * FAKE_FD) {
		const struct fake_port *p = fake_port_of((u32)(fd - 2 * FAKE_FD));
		struct bpf_prog_info *prog = info;

		if (!p)
			return -ENOENT;
		for (u32 i = 0; i < MAPS && i < prog->nr_map_ids; i++)
			((u32 *)(uintptr_t)prog->map_ids)[i] = p->maps[i].id;
		prog->nr_map_ids = MAPS;
		return 0;
	}
	m = fake_map_of(fd);
	if (!m)
		return -EBADF;
	*map = (struct bpf_map_info){ .type = m->type,
				      .id = m->id,
				      .key_size = m->key_size,
				      .value_size = m->value_size,
				      .max_entries = m->entries };
	memcpy(map->name, m->name, strlen(m->name));
	return 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	const struct fake_map *m = fake_map_of(fd);
	const u32 nth = *(const u32 *)key;
	const size_t size = m ? (size_t)m->cpus * m->value_size : 0;

	if (!m || nth >= m->entries)
		return -ENOENT;
	memcpy(value, m->values + nth * size, size);
	return 0;
}

int bpf_map_lookup_batch(int fd, void *in, void *out, void *keys, void *values, __u32 *num,
			 const struct bpf_map_batch_opts *opts)
{
	const struct fake_map *m = fake_map_of(fd);
	const u32 first = in ? *(const u32 *)in : 0, room = *num;

	if (!m)
		return -EBADF;
	*num = m->entries - first < room ? m->entries - first : room;
	for (u32 i = 0; i < *num; i++)
		((u32 *)keys)[i] = m->keys ? m->keys[first + i] : first + i;
	memcpy(values, m->values + (size_t)first * m->value_size, (size_t)*num * m->value_size);
	*(u32 *)out = first + *num;
	return first + *num == m->entries ? -ENOENT : 0;
}

/* ---- in the places of clock.c and of names in observe_options.c ---- */

#ifndef RECORDED_WITH_LOOK
const char *observe_options_state(u32 state)
{
	static const char *const names[] = { "reset", "init", "rtr", "rts", "sqd", "sqe", "err" };

	return state < ARRAY_SIZE(names) ? names[state] : "?";
}

const char *observe_options_transport(u32 transport)
{
	return transport == XROCE_RC ? "RC" : "?";
}

const char *observe_options_gid(const u8 gid[16], char text[46])
{
	snprintf(text, 46, "%u.%u.%u.%u", gid[12], gid[13], gid[14], gid[15]);
	return text;
}
#endif

u64 clock_now_ns(void)
{
	static u64 now_ns = 1000000000;

	return now_ns += 100000000;
}

/* All maps are opened by their numbers, as root does. */
int ask_maps(struct asker *a, u32 n, u32 first, struct ask_client *client, int fds[ASK_FDS])
{
	return -EPERM;
}

#endif
