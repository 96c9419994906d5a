/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <linux/if_link.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "../client/attach_error.h"
#include "../os/bpf_room.h"
#include "../os/clock.h"
#include "../os/close_fd.h"
#include "../os/privilege.h"
#include "mux.h"
#include "tap.h"
#include "xroce_broker.skel.h"

/* Longest wait for the kernel to detach a killed broker's program. */
#define LAST_BROKER_NS (2 * NSEC_PER_SEC)
#define LAST_BROKER_MS 10 /* between two tries */

#define FIRST_PORT 1024 /* the kernel's default */

static int mux_prog_fd(const struct mux *m)
{
	return bpf_program__fd(m->programs->progs.xroce_mux);
}

/* ---- the maps that both kinds of mux have ---- */

static int mux_map_fd(const struct mux *m, enum host_map_name which)
{
	switch (which) {
	case HOST_OWNER:
		return bpf_map__fd(m->bpf->maps.xroce_owner);
	case HOST_CM_CLIENT:
		return bpf_map__fd(m->bpf->maps.xroce_cm_client);
	case HOST_SERVICE:
		return bpf_map__fd(m->bpf->maps.xroce_service);
	case HOST_ASKED:
		return bpf_map__fd(m->bpf->maps.xroce_asked);
	case HOST_CONN:
		return bpf_map__fd(m->bpf->maps.xroce_conn);
	case HOST_MEMBERS:
		return bpf_map__fd(m->bpf->maps.xroce_members);
	default:
		return bpf_map__fd(m->bpf->maps.xroce_gid);
	}
}

int mux_map_put(struct mux *m, enum host_map_name which, const void *key, const void *value)
{
	return m->host ? host_map_put(&m->host->map[which], key, value) :
			 bpf_map_update_elem(mux_map_fd(m, which), key, value, BPF_ANY);
}

void mux_map_remove(struct mux *m, enum host_map_name which, const void *key)
{
	if (m->host)
		host_map_remove(&m->host->map[which], key);
	else
		bpf_map_delete_elem(mux_map_fd(m, which), key);
}

/* ---- programs and maps of the kernel ---- */

int mux_clients_fd(const struct mux *m)
{
	return bpf_map__fd(m->bpf->maps.xroce_client);
}

int mux_gids_fd(const struct mux *m)
{
	return bpf_map__fd(m->bpf->maps.xroce_gid);
}

int mux_turn_fd(const struct mux *m)
{
	return bpf_map__fd(m->bpf->maps.xroce_turn);
}

int mux_unowned_fd(const struct mux *m)
{
	return bpf_map__fd(m->bpf->maps.xroce_unowned);
}

int mux_tap_ingress_fd(const struct mux *m)
{
	return bpf_program__fd(m->bpf->progs.xroce_tap_in);
}

int mux_tap_egress_fd(const struct mux *m)
{
	return bpf_program__fd(m->bpf->progs.xroce_shut);
}

int mux_tap_single_fd(const struct mux *m)
{
	return bpf_program__fd(m->programs->progs.xroce_single);
}

u32 mux_max_qps(const struct mux *m)
{
	return m->host ? XROCE_MAX_OWNED : bpf_map__max_entries(m->bpf->maps.xroce_owner);
}

/* ---- loading ---- */

/* The programs of TAP devices are loaded with the maps: they take the kernel no time. */
static void mux_choose(struct xroce_broker_bpf *bpf, bool guards)
{
	bpf_program__set_autoload(bpf->progs.xroce_tap_in, guards);
	bpf_program__set_autoload(bpf->progs.xroce_shut, guards);
	bpf_program__set_autoload(bpf->progs.xroce_mux, !guards);
	bpf_program__set_autoload(bpf->progs.xroce_egress, !guards);
	bpf_program__set_autoload(bpf->progs.xroce_single, !guards);
}

static int mux_load_maps(struct mux *m)
{
	m->bpf = xroce_broker_bpf__open();
	if (!m->bpf)
		return -errno;
	mux_choose(m->bpf, true);
	return bpf_load(m->bpf->skeleton);
}

/* Has the programs use the maps that are there. */
static int mux_share_maps(const struct mux *m)
{
	struct bpf_map *map, *there;
	int err = 0;

	bpf_object__for_each_map(map, m->programs->obj) {
		there = bpf_object__find_map_by_name(m->bpf->obj, bpf_map__name(map));
		if (!err)
			err = bpf_map__reuse_fd(map, bpf_map__fd(there));
	}
	return err;
}

static int mux_load_programs(struct mux *m)
{
	const u32 first = 0;
	int err, egress_fd;

	m->programs = xroce_broker_bpf__open();
	if (!m->programs)
		return -errno;
	mux_choose(m->programs, false);
	err = mux_share_maps(m);
	if (!err)
		err = bpf_load(m->programs->skeleton);
	if (err)
		return err;
	egress_fd = bpf_program__fd(m->programs->progs.xroce_egress);
	return bpf_map_update_elem(bpf_map__fd(m->bpf->maps.xroce_alive), &first, &egress_fd,
				   BPF_ANY);
}

static int mux_load(struct mux *m, int (*load)(struct mux *m))
{
	libbpf_print_fn_t before = privilege_hush_libbpf();
	const int err = load(m);

	libbpf_set_print(before);
	return err;
}

/*
 * Attaches the mux to the hairpin. A killed broker's hairpin may still have that broker's program:
 * clients see the hang-up before the kernel has closed all descriptors of the broker.
 */
static int mux_attach_hairpin(struct mux *m)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_SKB_MODE);
	const u64 until_ns = clock_now_ns() + LAST_BROKER_NS;
	int fd;

	do
		fd = bpf_link_create(mux_prog_fd(m), (int)m->hairpin, BPF_XDP, &opts);
	while (fd == -EBUSY && clock_now_ns() < until_ns && !poll(NULL, 0, LAST_BROKER_MS));
	return fd;
}

/*
 * Makes the device by which frames from client to client return: generic XDP gets them as if the
 * device had received them. Frames that XDP passes are dropped.
 */
static int mux_make_hairpin(struct mux *m)
{
	const int drop_fd = mux_tap_egress_fd(m);
	int err;

	m->hairpin_fd = tap_make(m->dev.ifindex, TAP_HAIRPIN, &m->hairpin);
	if (m->hairpin_fd < 0)
		return m->hairpin_fd;
	err = tap_guard(m->hairpin, drop_fd, drop_fd);
	if (err)
		return err;
	m->hairpin_link_fd = mux_attach_hairpin(m);
	return m->hairpin_link_fd < 0 ? m->hairpin_link_fd : tap_set_up(m->hairpin);
}

static int mux_say_wire(struct mux *m, const struct netdev *dev)
{
	struct xroce_wire wire = { .ifindex = dev->ifindex,
				   .hairpin = m->hairpin,
				   .is_loopback = dev->is_loopback };
	const u32 first = 0;

	memcpy(wire.mac, dev->mac, sizeof(wire.mac));
	return bpf_map_update_elem(bpf_map__fd(m->bpf->maps.xroce_wire), &first, &wire, BPF_ANY);
}

static int mux_say_out(struct mux *m)
{
	const u32 first = 0;

	return bpf_map_update_elem(bpf_map__fd(m->bpf->maps.xroce_out), &first, &m->dev.ifindex,
				   BPF_ANY);
}

static int mux_say_pkeys(struct mux *m, const struct pkey_table *pkeys)
{
	int err = 0;

	for (u32 i = 0; !err && i < pkeys->num; i++) {
		const u32 pkey = pkeys->key[i];

		err = bpf_map_update_elem(bpf_map__fd(m->bpf->maps.xroce_pkey), &pkey, &i, BPF_ANY);
	}
	return err;
}

/* The other end of a veth pair may enter or leave this network namespace. */
static int mux_say_pair(struct mux *m, const struct netdev *dev)
{
	const int fd = bpf_map__fd(m->bpf->maps.xroce_pair);
	const u32 first = 0;
	int err;

	if (dev->is_pair)
		return bpf_map_update_elem(fd, &first, &dev->ifindex, BPF_ANY);
	err = bpf_map_delete_elem(fd, &first);
	return err == -ENOENT ? 0 : err;
}

/* Reads ip_unprivileged_port_start of this thread's network namespace. */
u32 mux_read_first_port(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re");
	u32 port;

	if (!f || fscanf(f, "%u", &port) != 1)
		port = FIRST_PORT;
	if (f)
		fclose(f);
	return port;
}

int mux_make(struct mux *m, const struct netdev *dev, const struct pkey_table *pkeys)
{
	const char *step = "delete leftover TAP devices";
	int err;

	*m = (struct mux){ .hook = HOOK_NONE, .hairpin_fd = -1, .hairpin_link_fd = -1 };
	m->dev = *dev;
	m->dev.num_gids = 0;
	m->neighbours.ifindex = dev->ifindex;
	m->first_port = mux_read_first_port();
	err = tap_sweep(dev->ifindex);
	if (!err) {
		step = "create the broker's maps";
		err = mux_load(m, mux_load_maps);
	}
	if (!err)
		err = mux_say_out(m);
	if (!err)
		err = mux_say_pair(m, dev);
	if (!err)
		err = mux_say_pkeys(m, pkeys);
	if (err) {
		attach_failed(dev, step, err);
		mux_unmake(m);
	}
	return err;
}

/* Returns 0, or -errno after a line on standard error. */
static int mux_start(struct mux *m)
{
	const char *step = "load the broker's programs";
	int err = mux_load(m, mux_load_programs);

	if (!err) {
		step = "create the TAP device for packets between processes";
		err = mux_make_hairpin(m);
	}
	if (!err) {
		step = "set the destinations of packets";
		err = mux_say_wire(m, &m->dev);
	}
	if (!err)
		return 0;
	close_fd(&m->hairpin_link_fd);
	close_fd(&m->hairpin_fd);
	xroce_broker_bpf__destroy(m->programs);
	m->programs = NULL;
	return attach_failed(&m->dev, step, err);
}

int mux_put_on(struct mux *m)
{
	int err;

	if (m->is_on || m->host)
		return 0;
	if (hook_is_in_dispatcher(&m->hook))
		return -EBUSY;
	err = m->programs ? 0 : mux_start(m);
	if (!err)
		err = hook_put(&m->dev, &m->hook, mux_prog_fd(m));
	m->is_on = !err;
	return err;
}

int mux_put_client_on(struct mux *m, int prog_fd)
{
	int err = hook_put(&m->dev, &m->hook, prog_fd);

	m->is_on = m->is_on && err;
	return err;
}

int mux_put_new_client_on(struct mux *m, hook_open_fn *open, void *arg, struct xroce_bpf **bpf)
{
	int err = hook_attach(&m->dev, &m->hook, open, arg, bpf);

	m->is_on = m->is_on && err;
	return err;
}

void mux_take_off(struct mux *m)
{
	m->is_on = false;
	hook_detach(&m->dev, &m->hook);
}

void mux_detach(struct mux *m)
{
	if (m->host) {
		host_receive_close(&m->receive);
		return;
	}
	mux_take_off(m);
	close_fd(&m->hairpin_link_fd);
}

void mux_unmake(struct mux *m)
{
	mux_udp_unmake(m);
	mux_detach(m);
	close_fd(&m->hairpin_fd);
	xroce_broker_bpf__destroy(m->programs);
	xroce_broker_bpf__destroy(m->bpf);
	m->programs = m->bpf = NULL;
}

int mux_publish(struct mux *m, const struct netdev *now)
{
	struct xroce_engine engine = { .pid = (u32)getpid() };
	const u32 first = 0;
	int err;

	if (m->host)
		return mux_udp_publish(m, now);
	err = netdev_publish_gids(mux_gids_fd(m), &m->dev, now);
	/* the programs may read a mix of old and new here: then they look it up in xroce_gid */
	if (now->num_gids)
		memcpy(engine.gid, now->gid[0].gid.raw, sizeof(engine.gid));
	if (!err)
		err = bpf_map_update_elem(bpf_map__fd(m->bpf->maps.xroce_engine), &first, &engine,
					  BPF_ANY);
	if (!err)
		err = mux_say_wire(m, now);
	if (!err)
		err = mux_say_pair(m, now);
	m->dev = *now;
	return err;
}

int mux_follow_neighbours(struct mux *m)
{
	/* a client's sockets find their way by the kernel's routes */
	return m->host ?
		       0 :
		       neighbours_follow(&m->neighbours, bpf_map__fd(m->bpf->maps.xroce_neighbour));
}

int mux_add_tap(struct mux *m, const struct mux_client *c, u32 tap)
{
	const struct xroce_tap sends = { .client = c->number,
					 .privileged = c->privileged,
					 .place = c->place };

	return bpf_map_update_elem(bpf_map__fd(m->bpf->maps.xroce_tap), &tap, &sends, BPF_ANY);
}

void mux_remove_tap(struct mux *m, u32 tap)
{
	if (m->host)
		return;
	bpf_map_delete_elem(bpf_map__fd(m->bpf->maps.xroce_tap), &tap);
}

int mux_enter(struct mux *m, const struct mux_client *c, int prog_fd,
	      const u32 tap[INSTANCE_TAPS])
{
	int err = 0;

	if (m->host) {
		m->host->client[c->number] = c->host;
		return 0;
	}
	for (u32 i = 0; !err && i < INSTANCE_TAPS; i++)
		if (tap[i])
			err = mux_add_tap(m, c, tap[i]);
	if (!err && prog_fd >= 0)
		err = bpf_map_update_elem(bpf_map__fd(m->bpf->maps.xroce_client), &c->number,
					  &prog_fd, BPF_ANY);
	if (err)
		mux_leave(m, c->number, tap);
	return err;
}

void mux_leave(struct mux *m, u32 client, const u32 tap[INSTANCE_TAPS])
{
	if (m->host) {
		m->host->client[client] = NULL;
		return;
	}
	bpf_map_delete_elem(bpf_map__fd(m->bpf->maps.xroce_client), &client);
	for (u32 i = 0; i < INSTANCE_TAPS; i++)
		mux_remove_tap(m, tap[i]);
}

int mux_own(struct mux *m, u32 qpn, u32 client, u32 pid)
{
	const struct xroce_owner owner = { .client = client, .pid = pid };

	return mux_map_put(m, HOST_OWNER, &qpn, &owner);
}

void mux_disown(struct mux *m, const u32 *qpn, u32 n)
{
	for (u32 i = 0; i < n; i++)
		mux_map_remove(m, HOST_OWNER, &qpn[i]);
}

int mux_put_place(struct mux *m, u32 place, const struct xroce_cm_client *p)
{
	if (p)
		return mux_map_put(m, HOST_CM_CLIENT, &place, p);
	mux_map_remove(m, HOST_CM_CLIENT, &place);
	return 0;
}

void mux_unbind(struct mux *m, const struct binding_keys *keys)
{
	for (u32 i = 0; i < keys->num; i++)
		mux_map_remove(m, HOST_SERVICE, &keys->key[i]);
}

int mux_bind(struct mux *m, const struct binding_keys *keys, u32 place, u32 pid)
{
	const struct xroce_service s = { .place = place, .pid = pid };
	int err = 0;

	for (u32 i = 0; !err && i < keys->num; i++)
		err = mux_map_put(m, HOST_SERVICE, &keys->key[i], &s);
	if (err)
		mux_unbind(m, keys);
	return err;
}

u32 mux_first_port(const struct mux *m)
{
	return m->first_port;
}

int mux_put_members(struct mux *m, const struct gid *group, const struct xroce_members *members)
{
	int err = members && m->host ? host_receive_join(&m->receive, group) : 0;

	if (err)
		return err;
	if (members)
		return mux_map_put(m, HOST_MEMBERS, group, members);
	mux_map_remove(m, HOST_MEMBERS, group);
	if (m->host)
		host_receive_leave(&m->receive, group);
	return 0;
}

void mux_sent(const struct mux *m, const u32 tap[INSTANCE_TAPS], struct xroce_tap *sent)
{
	struct xroce_tap one;

	*sent = (struct xroce_tap){ 0 };
	if (m->host)
		return; /* a client's sockets are its own */
	for (u32 i = 0; i < INSTANCE_TAPS; i++) {
		if (bpf_map_lookup_elem(bpf_map__fd(m->bpf->maps.xroce_tap), &tap[i], &one))
			continue;
		sent->frames += one.frames;
		sent->hairpin += one.hairpin;
		sent->bytes += one.bytes;
		sent->refused += one.refused;
	}
}
