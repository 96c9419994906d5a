/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Making ports without a kernel, in place of user/client and user/os; see made.h. */
#include "made.h"

#include <stdio.h>
#include <string.h>

#include "../../user/client/attach.h"
#include "../../user/client/attach_error.h"
#include "../../user/os/kernel.h"
#include "../../user/os/link_watch.h"
#include "../../user/port/port_object.h"
#include "../../user/run/fault.h"
#include "../../user/io/tx.h"
#include "../../user/io/tx_policy.h"
#include "../../user/run/cq_notify.h"
#include "shared.h"

static struct made_options options;

void made_begin(const struct made_options *o)
{
	options = *o;
	/* a shared port's one receive queue is all of the interface's */
	options.nic.queues = o->shared ? 2 : o->queues;
}

struct gid made_gid(u32 number)
{
	struct gid g = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 9 } };

	g.raw[15] = (u8)(number + 1);
	return g;
}

void made_netdev(u32 number, struct netdev *dev)
{
	*dev = (struct netdev){ .ifindex = number + 1, .mtu = 9000, .is_enabled = true,
				.is_up = true, .rx_queues = options.queues, .speed_mbps = 10000,
				.num_gids = 1 };
	snprintf(dev->name, sizeof(dev->name), "%s", nic_name(number));
	nic_mac(number, dev->mac);
	dev->gid[0].gid = made_gid(number);
}

bool made_refuses_rings(void)
{
	return options.no_rings;
}

/* ---- user/client ---- */

static struct nic *nic_of(const struct attachment *m)
{
	return nic_get(m->ifindex - 1);
}

static int make_shared(struct attachment *m, struct shard_io *s)
{
	const int fd = shared_ring_make(nic_of(m), options.ring_bytes);

	s->tx = shared_tx_open(nic_of(m));
	return xsk_open_ring(&s->xsks, fd, options.ring_bytes, m->maps.sock);
}

static int make_sockets(const struct netdev *dev, struct attachment *m, struct shard_io *s, u32 i)
{
	const u32 queues = (options.queues - i + options.shards - 1) / options.shards;
	int err;

	err = umem_create(&s->umem, options.rx_frames * queues, XSK_TX_SLOTS);
	if (!err)
		err = xsk_open(&s->xsks, &s->umem, dev->name, i, options.shards, options.queues,
			       false, m->maps.sock);
	if (err)
		return err;
	s->tx = tx_xsk_open(&s->xsks, s->stats);
	sim_check(s->tx);
	return 0;
}

static int make_shard(const struct netdev *dev, struct attachment *m, u32 i)
{
	struct shard_io *s = &m->io[i];
	int err;

	s->stats = &m->maps.stats[i];
	s->drops = &m->maps.drops[i];
	err = options.shared ? make_shared(m, s) : make_sockets(dev, m, s, i);
	if (err)
		return err;
	s->ring_fd = kernel_ring_make();
	s->ring_event_fd = -1;
	nic_maps(nic_of(m))->channel[i] = xdp_ring(s->ring_fd);
	return 0;
}

int attach_make(const struct netdev *dev, struct attachment *m)
{
	const u32 number = dev->ifindex - 1;
	const struct netdev none = { 0 };
	struct nic *n = nic_make(number, &options.nic);
	int err = 0;

	*m = (struct attachment){ .ifindex = dev->ifindex, .asker.fd = -1 };
	m->info = (struct port_info){ .native = true, .pkeys = PKEY_TABLE_DEFAULT,
				      .multibuffer = true,
				      .queues = options.queues, .shards = options.shards };
	m->maps = nic_maps(n)->shared;
	netdev_publish_gids(nic_maps(n)->gid_fd, &none, dev);
	for (u32 i = 0; i < options.shards && !err; i++)
		err = make_shard(dev, m, i);
	for (u32 i = 0; i < options.queues; i++)
		m->maps.vector[i].ring = i % options.shards;
	nic_attach(n);
	return err;
}

void attach_detach(struct attachment *m)
{
	nic_detach(nic_of(m));
}

/* No program here closes descriptors that are not its own. */
bool attach_is_whole(const struct attachment *m)
{
	return true;
}

void attach_unmake(struct attachment *m)
{
	attach_detach(m);
	for (u32 i = 0; i < m->info.shards; i++) {
		struct shard_io *s = &m->io[i];
		const int fd = xsk_is_ring(&s->xsks) ? s->xsks.xsk->fd : -1;

		tx_close(s->tx);
		xsk_close(&s->xsks);
		if (fd >= 0)
			kernel_close(fd);
		umem_destroy(&s->umem);
		kernel_close(s->ring_fd);
	}
	kernel_close(nic_maps(nic_of(m))->gid_fd);
	kernel_close(nic_maps(nic_of(m))->channel_fd);
	nic_free(nic_of(m));
}

bool ask_kind_of(u64 netns, u32 ifindex, struct ask_kind *kind)
{
	sched_fail("nobody asks for the kind of port here");
}

bool attach_would_be_sole(void)
{
	sched_fail("nobody asks for the kind of port here");
}

bool attach_would_use_udp(void)
{
	sched_fail("nobody asks for the kind of port here");
}

int attach_failed_random(const struct netdev *dev, int err)
{
	return err;
}

int attach_draw(struct attachment *m, u32 *qpn)
{
	*qpn = 0;
	return 0;
}

int attach_claim(struct attachment *m, u32 qpn)
{
	return 0;
}

void attach_release(struct attachment *m, u32 qpn)
{
}

int attach_group(struct attachment *m, const struct gid *group)
{
	sched_fail("nobody joins a group here");
}

void attach_leave_group(struct attachment *m, const struct gid *group)
{
}

int attach_ring(struct attachment *m, struct ring_slot *out)
{
	struct port_maps *maps = nic_maps(nic_of(m));
	const u32 slot = XROCE_MAX_QUEUE + maps->num_rings;
	const int fd = kernel_ring_insert(maps->channel_fd, slot);

	if (fd < 0)
		return fd;
	maps->num_rings++;
	*out = (struct ring_slot){ fd, slot };
	return 0;
}

/* No port of these has a broker with UDP sockets. */
void attach_wait_arrived(struct attachment *m)
{
	sched_fail("nobody waits for a broker");
}

int attach_limited(const char *name, const char *what, const char *option, int err)
{
	sched_fail("nobody limits anybody here");
}

void attach_abandon(struct attachment *m)
{
	sched_fail("nobody forks here");
}

/* No other process comes to the interface. */
int others_start(struct port *port)
{
	return 0;
}

/* ---- user/os and what else a port asks of the real machine ---- */

u64 netdev_netns(void)
{
	return 1;
}

int netdev_refresh(struct netdev *dev)
{
	return 0;
}

int netdev_join(u32 ifindex, const struct gid *group)
{
	sched_fail("nobody joins a group here");
}

int netdev_open_macs(void)
{
	sched_fail("nobody has flows here");
}

int netdev_take_macs(int fd, u32 ifindex, const struct netdev_macs *macs)
{
	sched_fail("nobody has flows here");
}

void netdev_leave_macs(int fd, u32 ifindex, const struct netdev_macs *macs)
{
	sched_fail("nobody has flows here");
}

int netdev_queue_cpu(u32 ifindex, u32 queue)
{
	return -ENOENT;
}

u32 netdev_path_mtu(u32 link_mtu, bool multibuffer)
{
	return options.path_mtu;
}

int link_watch_start(const struct netdev *dev, bool urgent, link_watch_fn *fn, void *arg,
		     struct link_watch **out)
{
	fn(arg, NULL, dev);
	*out = NULL;
	return 0;
}

int link_watch_until_hangup(struct link_watch *watch, int fd)
{
	sched_fail("nobody shares an interface here");
}

void link_watch_stop(struct link_watch *watch)
{
}

void link_watch_before_fork(void)
{
	sched_fail("nobody forks here");
}

void link_watch_after_fork_parent(void)
{
	sched_fail("nobody forks here");
}

void link_watch_after_fork_child(void)
{
	sched_fail("nobody forks here");
}

_Thread_local u64 fault_due_ns = NSEC_NEVER;

void fault_look(u64 now_ns)
{
}

void fault_after_fork(void)
{
}

u32 tx_preferred_path_mtu(const struct netdev *dev, u32 path_mtu)
{
	return path_mtu;
}
