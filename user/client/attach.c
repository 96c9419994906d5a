/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes a port from the descriptors of the interface's broker. If there is no broker, the process
 * starts one (spawn.c): by UDP sockets if it has no privileges for XDP. Everything is a descriptor
 * of this process, and is released however the process ends.
 *
 * For a shared port the broker has loaded a program and its maps for this process alone, and passes
 * descriptors of the maps, a ring for received packets, and two TAP devices for sending. The
 * process cannot harm others with them, so this takes no privilege, nor bpf(2), which containers
 * refuse: the process maps the maps and asks the broker for the rest. The kernel refuses to map
 * more than a map has, so no access is beyond a map's end. A port with AF_XDP sockets makes these
 * here, with the process's own privileges.
 *
 * Each failure prints one line on standard error that names the remedy.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../io/tx_udp.h"
#include "../os/close_fd.h"
#include "../os/complain.h"
#include "../os/kernel.h"
#include "../os/options.h"
#include "../os/privilege.h"
#include "../os/process.h"
#include "../os/xdp_maps.h"
#include "attach.h"
#include "attach_error.h"
#include "shared_maps.h"
#include "spawn.h"

/*
 * Generic XDP reports the first queue for every packet. More engines than CPUs would only delay
 * each other.
 */
static u32 shards_for(u32 queues, bool native)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	u32 most = options_number(OPTION_SHARDS);

	if (cpus > 0 && most > (u32)cpus)
		most = (u32)cpus;
	return native ? min_u32(queues, most) : 1;
}

/* Opens the sockets of shard i: queues i, i + shards, i + 2 * shards and so on. */
static int open_sockets_of(const struct netdev *dev, struct attachment *m, u32 i,
			   bool try_zero_copy, int map_fd)
{
	const u32 each = xsk_rx_frames(m->info.queues), step = m->info.shards;
	struct shard_io *s = &m->io[i];
	int err;

	err = umem_create(&s->umem, each * ((m->info.queues - i + step - 1) / step), XSK_TX_SLOTS);
	if (err)
		return attach_failed(dev, "allocate packet memory", err);
	err = xsk_open(&s->xsks, &s->umem, dev->name, i, step, m->info.queues, try_zero_copy,
		       m->maps.sock);
	if (err == -EBUSY) {
		attach_complain(dev, "a receive queue is in use by another AF_XDP socket; end "
				     "its owner (`ss --xdp -p` may show it)");
		return err;
	}
	if (err)
		return attach_failed(dev, "open AF_XDP sockets", err);
	s->tx = tx_policy_open(dev, tx_xsk_open(&s->xsks, s->stats),
			       m->info.queues > 1 ? (int)xsk_queue(&s->xsks, 0) : -1,
			       s->xsks.zero_copy, i > 0, s->stats);
	if (!s->tx)
		return attach_failed(dev, "allocate memory", -ENOMEM);
	for (u32 j = 0; j < s->xsks.count; j++) {
		const u32 queue = xsk_queue(&s->xsks, j);

		err = kernel_map_put(map_fd, &queue, &s->xsks.xsk[j].fd);
		if (err)
			return attach_failed(dev, "add an AF_XDP socket to its map", err);
	}
	m->info.zero_copy &= s->xsks.zero_copy;
	m->info.multibuffer &= s->xsks.multibuffer;
	return 0;
}

static int attach_open_sockets(const struct netdev *dev, struct attachment *m, int map_fd)
{
	u64 features = 0;
	int err = 0;

	m->info.queues = dev->rx_queues > XROCE_MAX_QUEUE ? XROCE_MAX_QUEUE :
			 dev->rx_queues			  ? dev->rx_queues :
							    1;
	m->info.shards = shards_for(m->info.queues, m->info.native);
	m->info.zero_copy = m->info.multibuffer = true;
	if (netdev_xdp_features(dev->ifindex, &features))
		features = 0;
	for (u32 i = 0; i < m->info.shards && !err; i++) {
		m->io[i].stats = &m->maps.stats[i];
		m->io[i].drops = &m->maps.drops[i];
		err = open_sockets_of(dev, m, i,
				      m->info.native && features & NETDEV_XDP_XSK_ZEROCOPY,
				      map_fd);
	}
	return err;
}

/* ---- the broker's answer ---- */

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
	else if (err == -EADDRINUSE)
		attach_complain(dev,
				"all UDP ports of this network namespace are in use, and the "
				"broker needs one to see the rights of this process; end the "
				"program that has them (`ss -uanp`)");
	else if (err == -EMFILE)
		attach_complain(dev, "too few file descriptors for a port; raise `ulimit -n`");
	else if (err == -EFBIG)
		attach_failed(dev, "get a port from the broker", err);
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
	else if (err != -EPROTO && err != -EINVAL)
		attach_complain(dev,
				"cannot get a port from the broker: %s; check the limits "
				"(`ulimit -a`) and seccomp filters of this process and the broker",
				strerror(-err));
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
	m->maps.trace_fd = m->fd[ASK_FD_TRACE];
	m->maps.reports_by_socket = m->hello & ASK_REPORTS_BY_SOCKET;
	return 0;
}

/* ---- a port with sockets ---- */

/* The broker's ring is of shard 0; each of the others has a ring. */
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
	/* kernels before 5.11 count maps and the UMEM against this limit, later ones the UMEM */
	kernel_raise_limit(RLIMIT_MEMLOCK);
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
	m->maps.reports_by_socket = true;
	s->ring_event_fd = shared_take(m, ASK_FD_WAKE_EVENT);
	err = xsk_set_event(&s->xsks, m->fd[ASK_FD_RX_EVENT]);
	if (!err)
		err = tx_udp_open(dev, s->stats, &s->tx);
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

/* ---- the broker ---- */

/* Whether this process may make AF_XDP sockets and insert them in a map. */
static bool attach_can_use_sockets(void)
{
	const u64 caps = privilege_caps();

	return privilege_has(caps, CAP_NET_ADMIN) && privilege_has(caps, CAP_NET_RAW) &&
	       privilege_has(caps, CAP_BPF);
}

/* Returns what to ask the broker for: bits of enum ask_hello. */
static u32 attach_hello(void)
{
	const enum share_choice choice = options_share();
	const bool can_use_sockets = choice != SHARE_ALWAYS && options_port() != PORT_SOCKETS &&
				     attach_can_use_sockets();

	return (can_use_sockets ? ASK_CAN_USE_SOCKETS : 0) |
	       (choice == SHARE_NEVER ? ASK_TO_BE_ALONE : 0) |
	       (process_is_filtered() ? ASK_REPORTS_BY_SOCKET : 0);
}

void attach_init(const struct netdev *dev, struct attachment *m)
{
	*m = (struct attachment){ .ifindex = dev->ifindex,
				  .hello = attach_hello(),
				  .tap_fd = -1,
				  .info = { .pkeys = options_pkeys() },
				  .maps = { .trace_fd = -1 } };
	for (u32 i = 0; i < XROCE_MAX_SHARD; i++)
		m->io[i].ring_fd = m->io[i].ring_event_fd = -1;
	for (u32 i = 0; i < ASK_SOCKETS_FDS; i++)
		m->fd[i] = -1;
	ask_init(&m->asker);
}

/*
 * This process has had a port by XDP. When its broker is started again, a port by UDP sockets in
 * between would be lost with that, so it waits.
 */
static _Atomic bool attach_had_xdp;

/* Returns what a broker of this process shall receive by. */
static enum port_choice attach_choice(u32 hello)
{
	const enum port_choice port = options_port();

	/* a port by UDP sockets is always a shared one */
	return port == PORT_AUTO && (hello & ASK_TO_BE_ALONE ||
				     /* relaxed: this thread or an earlier one has set it */
				     atomic_load_explicit(&attach_had_xdp, memory_order_relaxed)) ?
		       PORT_XDP :
		       port;
}

bool attach_would_use_udp(void)
{
	const enum port_choice port = attach_choice(attach_hello());

	return port == PORT_SOCKETS || (port == PORT_AUTO && !spawn_may());
}

bool attach_would_be_sole(void)
{
	return attach_hello() & ASK_CAN_USE_SOCKETS;
}

/*
 * Starts a broker for this process, with the connection to it. Returns 0; or -errno after a line on
 * standard error.
 */
static int attach_start_broker(const struct netdev *dev, struct attachment *m)
{
	const enum port_choice port = attach_choice(m->hello);
	int fd;

	if (port != PORT_SOCKETS && !spawn_may()) {
		/* the new broker waits for a holder in here, which may be starting */
		if (attach_holder_is_outside(dev) && attach_complain_of_mount(dev))
			return -EBUSY;
		if (port == PORT_XDP)
			return attach_failed(dev, "attach an XDP program", -EPERM);
	}
	fd = spawn_broker(dev, &m->info.pkeys, port, m->hello & ASK_CAN_USE_SOCKETS);
	if (fd >= 0) {
		ask_begin(&m->asker, fd);
		return 0;
	}
	if (fd == -ENOENT)
		attach_complain(dev, "cannot start a broker (`xroce serve`): %s (the command, a "
				     "library of it, or /dev/null)", strerror(-fd));
	if (fd == -ETIMEDOUT)
		attach_complain(dev, "cannot start a broker (`xroce serve`): %s", strerror(-fd));
	return fd == -ENOENT ? -ENODEV : fd;
}

/* The longest that a process asks again while one broker ends and another one starts. */
#define ATTACH_MAX_NS (20 * NSEC_PER_SEC)

/*
 * Asks alternately the listening broker and a newly started one. The former hangs up if it is
 * ending, the latter if another broker has just started.
 */
int attach_make(const struct netdev *dev, struct attachment *m)
{
	const u64 until_ns = clock_now_ns() + ATTACH_MAX_NS;
	bool starts = true;
	int err;

	attach_init(dev, m);
	for (;; starts = !starts) {
		err = attach_shared(dev, m);
		if (err != -ENOENT || clock_now_ns() >= until_ns)
			break;
		ask_close(&m->asker);
		ask_init(&m->asker);
		err = starts ? attach_start_broker(dev, m) : 0;
		if (err)
			break;
	}
	if (err == -ENOENT) {
		attach_complain(dev, "its broker ends at once; run `xroce doctor %s`", dev->name);
		err = -ENODEV;
	}
	if (err)
		attach_unmake(m);
	else if (!m->info.udp_frames)
		atomic_store_explicit(&attach_had_xdp, true, memory_order_relaxed);
	return err;
}

static void attach_unmap(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

/* Waits until the broker has taken everything back, or a second. */
static void attach_say_goodbye(struct attachment *m)
{
	struct pollfd p = { .fd = m->asker.fd };

	/* relaxed: the hang-up follows */
	atomic_store_explicit(&m->has_left, true, memory_order_relaxed);
	ask_leave(&m->asker);
	if (p.fd >= 0)
		kernel_await(&p, 1, clock_now_ns() + NSEC_PER_SEC);
}

bool attach_is_whole(const struct attachment *m)
{
	return ask_is_whole(&m->asker);
}

void attach_detach(struct attachment *m)
{
	/* the broker detaches a shared port, after this process has released it */
	if (!m->info.shared && attach_is_whole(m))
		attach_say_goodbye(m);
}

/* ---- questions to the broker while the port runs ---- */

/*
 * Reports a lost device. After a hang-up of the broker the device's event is enough; nothing else
 * reports a broker that runs but gives no valid answer. Returns -EIO.
 */
static int attach_lost(const struct attachment *m, int err)
{
	char name[IF_NAMESIZE] = "?";

	if_indextoname(m->ifindex, name);
	if (err == -ETIMEDOUT)
		complain("%s: the broker has not answered for %llu s; this process "
			 "has lost the device",
			 name, (unsigned long long)(m->asker.max_ns / NSEC_PER_SEC));
	else if (err != -EPIPE)
		complain("%s: the broker sent an invalid answer; this process has "
			 "lost the device",
			 name);
	return -EIO;
}

/* Handles the error of a release. A broker that has ended has released everything. */
static void attach_gave(const struct attachment *m, int err)
{
	if (ask_is_over(err))
		attach_lost(m, err);
}

/* Returns the broker's answer, or -EIO if it has ended. */
static int attach_answer(const struct attachment *m, int err)
{
	return ask_is_over(err) ? attach_lost(m, err) : err;
}

int attach_draw(struct attachment *m, u32 *qpn)
{
	return attach_answer(m, ask_draw(&m->asker, qpn));
}

int attach_claim(struct attachment *m, u32 qpn)
{
	return attach_answer(m, ask_claim(&m->asker, qpn));
}

void attach_release(struct attachment *m, u32 qpn)
{
	attach_gave(m, ask_release(&m->asker, qpn));
}

int attach_bind(struct attachment *m, const struct ask_service *service)
{
	return attach_answer(m, ask_bind(&m->asker, service));
}

void attach_unbind(struct attachment *m, const struct ask_service *service)
{
	attach_gave(m, ask_unbind(&m->asker, service));
}

int attach_group(struct attachment *m, const struct gid *group)
{
	return attach_answer(m, ask_attach(&m->asker, group));
}

void attach_leave_group(struct attachment *m, const struct gid *group)
{
	attach_gave(m, ask_detach(&m->asker, group));
}

void attach_wait_arrived(struct attachment *m)
{
	if (m->info.udp_frames)
		attach_gave(m, ask_arrived(&m->asker));
}

int attach_ring(struct attachment *m, struct ring_slot *out)
{
	const int fd = ask_ring(&m->asker, &out->slot);

	out->fd = fd;
	return ask_is_over(fd) ? attach_lost(m, fd) : fd < 0 ? fd : 0;
}

int attach_meet_others(struct attachment *m)
{
	const int fd = ask_others(&m->asker);

	close_fd(&m->tap_fd);
	m->tap_fd = fd;
	return fd < 0 ? fd : 0;
}

int attach_open_local(const struct netdev *dev, struct attachment *m, u32 i)
{
	struct shard_io *s = &m->io[i];
	const int fd = fcntl(m->tap_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	s->local_tx = tx_local_open(dev, fd, s->stats);
	if (s->local_tx)
		return 0;
	close(fd);
	return -ENOMEM;
}

void attach_close_local(struct attachment *m, u32 i)
{
	struct shard_io *s = &m->io[i];

	if (s->local_tx)
		tx_close(s->local_tx);
	s->local_tx = NULL;
}

static void close_everything(struct attachment *m)
{
	attach_detach(m);
	for (u32 i = 0; i < XROCE_MAX_SHARD; i++) {
		struct shard_io *s = &m->io[i];

		if (s->tx)
			tx_close(s->tx);
		s->tx = NULL;
		attach_close_local(m, i);
		xsk_close(&s->xsks);
		umem_destroy(&s->umem);
		close_fd(&s->ring_fd);
		close_fd(&s->ring_event_fd);
	}
	xsk_close(&m->local);
	close_fd(&m->tap_fd);
	for (u32 i = 0; i < ASK_SOCKETS_FDS; i++)
		close_fd(&m->fd[i]);
	ask_close(&m->asker);
}

void attach_unmake(struct attachment *m)
{
	/* closing the sockets updates counters in the mappings for the last time */
	close_everything(m);
#define X(name, map, fd, n) attach_unmap(m->maps.name, (n) * sizeof(*m->maps.name));
	SHARED_MAPS(X)
#undef X
}

/*
 * Replaces a map by memory of this process. Ends the process if the kernel refuses: otherwise its
 * writes would reach its parent.
 */
static void make_private(void *p, size_t bytes)
{
	if (mmap(p, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) != MAP_FAILED)
		return;
	complain("cannot separate a forked child from its parent's device: %s", strerror(errno));
	abort();
}

void attach_abandon(struct attachment *m)
{
	/*
	 * The child's objects still point here; their writes must not reach the parent's arm
	 * words and counters.
	 */
#define X(name, map, fd, n) make_private(m->maps.name, (n) * sizeof(*m->maps.name));
	SHARED_MAPS(X)
#undef X
	ask_abandon(&m->asker);
	close_everything(m);
	m->maps.trace_fd = -1;
}
