/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A shared port. The broker has loaded a program and its maps for this process alone, and passes
 * descriptors of the maps, a ring for received packets, and two TAP devices for sending. The
 * process cannot harm others with them, so nothing here takes a privilege, and nothing calls
 * bpf(2), which containers refuse: the process maps the maps and asks the broker for the rest.
 *
 * The kernel refuses to map more than a map has, so no access is beyond a map's end.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../io/tx_udp.h"
#include "attach_error.h"
#include "shared.h"
#include "shared_maps.h"

static bool shared_is_tap(int fd, short header)
{
	const short wanted = (short)(IFF_TAP | IFF_NO_PI | header);
	struct ifreq ifr = { 0 };

	return ioctl(fd, TUNGETIFF, &ifr) == 0 &&
	       (ifr.ifr_flags & (IFF_TAP | IFF_NO_PI | IFF_VNET_HDR)) == wanted;
}

static bool shared_is_whole(const struct netdev *dev, const struct attachment *m,
			    const struct ask_port *port)
{
	return port->ifindex == dev->ifindex && port->client < XROCE_MAX_CLIENT &&
	       (port->sockets || port->udp || (shared_is_tap(m->fd[ASK_FD_TAP], IFF_VNET_HDR) &&
				  shared_is_tap(m->fd[ASK_FD_SINGLE], 0)));
}

/* Prints the line for a broker that gives no port. Returns err, or -ENOSPC for a limit. */
static int shared_complain(const struct netdev *dev, int err)
{
	char comm[32];
	pid_t pid;

	if (err == -EACCES)
		attach_complain(dev,
				"not permitted to use the broker: it serves only the owner and "
				"the group of its socket in " ASK_DIR);
	else if (err == -EPERM)
		attach_complain(dev,
				"the broker runs neither as root nor as this user; end it, and "
				"run `xroce serve %s` as root",
				dev->name);
	else if (err == -EDQUOT || err == -ENOSPC)
		err = attach_limited(dev->name, "processes",
				     "--max-memory MIB --max-clients", err);
	else if (err == -EBUSY)
		attach_in_use(dev); /* by the process that answered: it cannot admit others */
	else if (err == -EMFILE)
		attach_complain(dev, "too few file descriptors for a port; raise `ulimit -n`");
	else if (err == -ETIMEDOUT && !netdev_holder(dev->ifindex, &pid, comm, sizeof(comm)) &&
		 pid > 0)
		attach_complain(dev,
				"process %d (%s), which owns the interface, does not answer; "
				"continue it (`kill -CONT`) or end it",
				(int)pid, comm);
	else if (err == -ENONET)
		attach_complain(dev, "the broker serves another network namespace");
	else if (err == -EPROTONOSUPPORT)
		attach_complain(dev,
				"the broker is of another version of xroce; as root, run `xroce "
				"stop %s; xroce serve %s`",
				dev->name, dev->name);
	else
		attach_complain(dev,
				"the broker sent an invalid answer (%s); as root, run `xroce "
				"stop %s; xroce serve %s`",
				strerror(-err), dev->name, dev->name);
	return err;
}

static int shared_greet(const struct netdev *dev, struct attachment *m, struct ask_port *port)
{
	int err = m->asker.fd >= 0 ? 0 : ask_connect(&m->asker, netdev_netns(), dev->ifindex);

	if (!err)
		err = ask_hello(&m->asker, m->hello, port, m->fd);
	if (!err && !shared_is_whole(dev, m, port))
		err = -EPROTO;
	/* the broker is ending: as if it had ended before */
	if (err == -EPIPE)
		err = -ENOENT;
	return err && err != -ENOENT ? shared_complain(dev, err) : err;
}

/* Returns a descriptor, which then belongs to the caller. */
static int shared_take(struct attachment *m, enum ask_fd which)
{
	const int fd = m->fd[which];

	m->fd[which] = -1;
	return fd;
}

/* Maps the shared maps and closes their descriptors. Returns 0 or -errno. */
static int shared_map_all(struct attachment *m)
{
#define X(name, map, fd_index, n)                                                             \
	m->maps.name = shared_map(m->fd[fd_index], (n) * sizeof(*m->maps.name));              \
	if (!m->maps.name)                                                                    \
		return -errno;                                                                \
	close(shared_take(m, fd_index));
	SHARED_MAPS(X)
#undef X
	m->maps.engine->pid = (u32)getpid();
	m->maps.group_fd = -1;
	m->maps.flow_fd = m->maps.flows_fd = m->maps.flow_count_fd = -1;
	m->maps.copies_fd = m->maps.copying_fd = -1;
	m->maps.tell_fd = m->fd[ASK_FD_TELL];
	m->maps.tells_by_socket = m->hello & ASK_REPORTS_BY_SOCKET;
	return 0;
}

/* ---- a port with sockets ---- */

/* The broker's ring is of shard 0; the others have rings of their own. */
static int shared_open_wake_rings(const struct netdev *dev, struct attachment *m)
{
	u32 slot[XROCE_MAX_SHARD] = { 0 };
	struct ring_slot ring;
	int err = 0;

	m->io[0].ring_fd = shared_take(m, ASK_FD_WAKE);
	for (u32 i = 1; !err && i < m->info.shards; i++) {
		err = attach_ring(m, &ring);
		if (err)
			return attach_failed(dev, "get a ring from the broker", err);
		m->io[i].ring_fd = ring.fd;
		slot[i] = ring.slot;
	}
	for (u32 queue = 0; queue < m->info.queues; queue++)
		m->maps.vector[queue].ring = slot[queue % m->info.shards];
	return 0;
}

/* The ring counts as the interface's last queue. */
static int shared_open_ring_of_others(const struct netdev *dev, struct attachment *m,
				      const struct ask_port *port)
{
	struct xroce_sock *stats = &m->maps.sock[min_u32(m->info.queues, XROCE_MAX_QUEUE - 1)];
	int err = xsk_open_ring(&m->local, m->fd[ASK_FD_RX], port->ring_bytes, stats);

	if (err == -ENOMEM)
		return attach_failed(dev, "map the receive ring", err);
	return err ? shared_complain(dev, -EPROTO) : 0;
}

static int shared_open_with_sockets(const struct netdev *dev, struct attachment *m,
				    const struct ask_port *port)
{
	int err;

	m->info.shared = false;
	m->maps.group_fd = m->fd[ASK_FD_GROUP];
	m->maps.flow_fd = m->fd[ASK_FD_FLOW];
	m->maps.flows_fd = m->fd[ASK_FD_FLOWS];
	m->maps.flow_count_fd = m->fd[ASK_FD_FLOW_COUNT];
	m->maps.copies_fd = m->fd[ASK_FD_COPIES];
	m->maps.copying_fd = m->fd[ASK_FD_COPYING];
	attach_raise_memlock();
	err = attach_open_sockets(dev, m, m->fd[ASK_FD_XSK]);
	if (!err)
		err = shared_open_wake_rings(dev, m);
	return err ? err : shared_open_ring_of_others(dev, m, port);
}

/* ---- a port without ---- */

static int shared_open_rx(const struct netdev *dev, struct attachment *m,
			  const struct ask_port *port)
{
	struct shard_io *s = &m->io[0];
	int err;

	s->stats = &m->maps.stats[0];
	s->drops = &m->maps.drops[0];
	s->ring_fd = shared_take(m, ASK_FD_WAKE);
	m->maps.vector[0].ring = 0;
	err = xsk_open_ring(&s->xsks, m->fd[ASK_FD_RX], port->ring_bytes, m->maps.sock);
	if (err == -ENOMEM)
		return attach_failed(dev, "map the receive ring", err);
	return err ? shared_complain(dev, -EPROTO) : 0;
}

static int shared_open(const struct netdev *dev, struct attachment *m, const struct ask_port *port)
{
	struct shard_io *s = &m->io[0];
	const int tap = m->fd[ASK_FD_TAP], single = m->fd[ASK_FD_SINGLE];
	int err = shared_open_rx(dev, m, port);

	if (err)
		return err;
	if (fcntl(tap, F_SETFL, O_RDWR | O_NONBLOCK) ||
	    fcntl(single, F_SETFL, O_RDWR | O_NONBLOCK))
		return attach_failed(dev, "set up the TAP devices", -errno);
	s->tx = tx_shared_open(dev, tap, single, false, s->stats);
	if (!s->tx)
		return attach_failed(dev, "allocate memory", -ENOMEM);
	shared_take(m, ASK_FD_TAP);
	shared_take(m, ASK_FD_SINGLE);
	return 0;
}

/* ---- a port by UDP ---- */

static int shared_open_udp(const struct netdev *dev, struct attachment *m,
			   const struct ask_port *port)
{
	struct shard_io *s = &m->io[0];
	int err = shared_open_rx(dev, m, port);

	if (err)
		return err;
	m->info.udp_frames = port->udp;
	s->ring_event_fd = shared_take(m, ASK_FD_WAKE_EVENT);
	err = xsk_set_event(&s->xsks, m->fd[ASK_FD_RX_EVENT]);
	if (!err)
		err = tx_udp_open(dev->ifindex, s->stats, &s->tx);
	return err ? attach_failed(dev, "create UDP sockets", err) : 0;
}

int attach_shared(const struct netdev *dev, struct attachment *m)
{
	struct ask_port port;
	int err = shared_greet(dev, m, &port);

	if (err)
		return err;
	m->info = (struct port_info){
		.shared = true,
		.client = port.client,
		.native = port.native != 0,
		.multibuffer = true,
		.queues = 1,
		.shards = 1,
		.prog_id = port.prog_id,
		.path_mtu = netdev_path_mtu(dev->mtu, true),
		.pkeys = port.pkeys,
	};
	err = shared_map_all(m);
	if (err == -ENOMEM)
		return attach_failed(dev, "map the BPF maps", err);
	/* not a map, or a smaller one */
	if (err)
		return shared_complain(dev, -EPROTO);
	return port.sockets ? shared_open_with_sockets(dev, m, &port) :
	       port.udp	    ? shared_open_udp(dev, m, &port) :
			      shared_open(dev, m, &port);
}
