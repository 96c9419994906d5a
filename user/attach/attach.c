/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes a port: from the descriptors of the interface's broker (shared.c) or, without a broker,
 * alone. Only the latter needs privileges: it takes the interface (a name that one process holds),
 * loads and attaches the XDP program, creates the UMEM and the sockets, and maps the shared maps.
 * Everything is a descriptor of this process, and is released however the process ends. Nothing is
 * received until the GIDs are published: XDP passes packets to other addresses.
 *
 * Each failure prints one line on standard error that names the remedy.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../os/kernel.h"
#include "../os/options.h"
#include "../os/xdp_maps.h"
#include "attach.h"
#include "attach_error.h"
#include "iface_lock.h"
#include "hook.h"
#include "shared.h"
#include "shared_maps.h"
#include "spawn.h"
#include "xroce.skel.h"

/* The descriptors of a port alone, except its sockets' and rings'. */
#define KEPT_FDS(m)                                                                            \
	&(m)->prog_fd, &(m)->xsk_fd, &(m)->engine_fd, &(m)->maps.gid_fd,                       \
		&(m)->maps.group_fd, &(m)->maps.flow_fd, &(m)->maps.flows_fd,                  \
		&(m)->maps.flow_count_fd, &(m)->maps.copies_fd, &(m)->maps.copying_fd,         \
		&(m)->maps.channel_fd, &(m)->maps.tell_fd

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int attach_take_at_once(const struct netdev *dev)
{
	struct iface_lock hold;
	int fd;

	iface_lock_begin(&hold, dev->ifindex);
	fd = iface_lock_take(&hold);
	iface_lock_end(&hold);
	return fd == -EAGAIN ? -EBUSY : fd;
}

/* Takes the interface. -EAGAIN, without a message: the caller may wait, unless hold is NULL. */
static int attach_hold(const struct netdev *dev, struct attachment *m, struct iface_lock *hold)
{
	m->holder_fd = hold ? iface_lock_take(hold) : attach_take_at_once(dev);
	/*
	 * EPERM: any user can take a name, and a process that may not attach takes none. The
	 * XDP hook decides, as it takes privileges.
	 */
	if (m->holder_fd >= 0 || m->holder_fd == -EPERM)
		return 0;
	if (m->holder_fd == -EAGAIN)
		return -EAGAIN;
	return m->holder_fd == -EBUSY ? attach_in_use(dev) :
					attach_failed(dev, "claim the interface", m->holder_fd);
}

/*
 * Kernels before 5.11 count maps and the UMEM against this limit, later ones only the UMEM. A
 * failure is ignored.
 */
static void raise_memlock(void)
{
	struct rlimit lim = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(RLIMIT_MEMLOCK, &lim) && getrlimit(RLIMIT_MEMLOCK, &lim) == 0) {
		lim.rlim_cur = lim.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &lim);
	}
}

static int attach_load(const struct netdev *dev, struct attachment *m)
{
	struct bpf_prog_info info = { 0 };
	u32 len = sizeof(info);
	int prog_fd, err = hook_attach(dev, m);

	if (err)
		return err;
	prog_fd = bpf_program__fd(m->bpf->progs.xroce_xdp);
	/*
	 * The program does not use these maps. Bound to it, they can be found from the interface
	 * (`xroce list`), except on kernels before 5.10.
	 */
	bpf_prog_bind_map(prog_fd, bpf_map__fd(m->bpf->maps.xroce_eng_stat), NULL);
	bpf_prog_bind_map(prog_fd, bpf_map__fd(m->bpf->maps.xroce_eng_drop), NULL);
	bpf_prog_bind_map(prog_fd, bpf_map__fd(m->bpf->maps.xroce_sock), NULL);
	bpf_prog_bind_map(prog_fd, bpf_map__fd(m->bpf->maps.xroce_qp_stat), NULL);
	bpf_prog_bind_map(prog_fd, bpf_map__fd(m->bpf->maps.xroce_cq_stat), NULL);
	bpf_prog_bind_map(prog_fd, bpf_map__fd(m->bpf->maps.xroce_srq_stat), NULL);
	bpf_prog_bind_map(prog_fd, bpf_map__fd(m->bpf->maps.xroce_mr_stat), NULL);
	if (bpf_obj_get_info_by_fd(prog_fd, &info, &len) == 0)
		m->info.prog_id = info.id;
	m->maps.gid_fd = bpf_map__fd(m->bpf->maps.xroce_gid);
	m->maps.group_fd = bpf_map__fd(m->bpf->maps.xroce_group);
	m->maps.flow_fd = bpf_map__fd(m->bpf->maps.xroce_flow);
	m->maps.flows_fd = bpf_map__fd(m->bpf->maps.xroce_flows);
	m->maps.copies_fd = bpf_map__fd(m->bpf->maps.xroce_copies);
	_Static_assert(sizeof(*m->bpf->bss) == sizeof(u32), "xroce_copying alone");
	m->maps.copying_fd = bpf_map__fd(m->bpf->maps.bss);
	m->maps.flow_count_fd = bpf_map__fd(m->bpf->maps.xroce_flow_cnt);
	m->maps.channel_fd = bpf_map__fd(m->bpf->maps.xroce_channel);
	m->maps.tell_fd = bpf_program__fd(m->bpf->progs.xroce_tell);
	return 0;
}

static int map_maps(const struct netdev *dev, struct attachment *m)
{
	bool all = true;

#define X(name, map, fd, n)                                                   \
	all &= !!(m->maps.name = shared_map(bpf_map__fd(m->bpf->maps.map),      \
					    (n) * sizeof(*m->maps.name)));
	SHARED_MAPS(X)
#undef X
	if (!all)
		return attach_failed(dev, "map the BPF maps", -errno);
	m->maps.engine->pid = (u32)getpid();

	return 0;
}

/* Makes the rings of service threads and completion channels, and publishes all in one batch. */
static int make_rings(const struct netdev *dev, struct attachment *m)
{
	u32 slot[XROCE_MAX_SHARD + CHANNEL_RINGS_AHEAD], n = 0;
	int fd[XROCE_MAX_SHARD + CHANNEL_RINGS_AHEAD], err;

	for (u32 i = 0; i < m->info.shards + CHANNEL_RINGS_AHEAD; i++) {
		const bool service = i < m->info.shards;
		const u32 channel = i - m->info.shards;
		int *ring_fd = service ? &m->io[i].ring_fd : &m->ring_fd[channel];

		*ring_fd = kernel_ring_make();
		/* a channel works without a ring */
		if (*ring_fd < 0 && !service)
			break;
		if (*ring_fd < 0)
			return attach_failed(dev, "create a BPF ring buffer", *ring_fd);
		slot[n] = service ? i : XROCE_MAX_QUEUE + channel;
		fd[n++] = *ring_fd;
	}
	err = kernel_map_put_all(m->maps.channel_fd, slot, fd, n);
	for (u32 queue = 0; queue < m->info.queues; queue++)
		m->maps.vector[queue].ring = queue % m->info.shards;
	return err ? attach_failed(dev, "add a BPF ring buffer to its map", err) : 0;
}

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
			   bool try_zero_copy)
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

		err = bpf_map_update_elem(bpf_map__fd(m->bpf->maps.xroce_xsk), &queue,
					  &s->xsks.xsk[j].fd, BPF_ANY);
		if (err)
			return attach_failed(dev, "add an AF_XDP socket to its map", err);
	}
	m->info.zero_copy &= s->xsks.zero_copy;
	m->info.multibuffer &= s->xsks.multibuffer;
	return 0;
}

static int open_sockets(const struct netdev *dev, struct attachment *m)
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
				      m->info.native && features & NETDEV_XDP_XSK_ZEROCOPY);
	}
	m->info.path_mtu = netdev_path_mtu(dev->mtu, m->info.multibuffer);
	return err;
}

/*
 * Duplicates the loader's descriptors that are used later, and closes the loader's. A mapping keeps
 * its map without a descriptor. Returns 0 or -errno.
 */
static int keep_descriptors(const struct netdev *dev, struct attachment *m)
{
	int *const kept[] = { KEPT_FDS(m) };
	int fd[ARRAY_SIZE(kept)], err = 0;
	u32 n;

	m->prog_fd = hook_prog_fd(m);
	m->xsk_fd = bpf_map__fd(m->bpf->maps.xroce_xsk);
	/* mapped, and kept open so that /proc shows the program's owner: see foreign_owner() */
	m->engine_fd = bpf_map__fd(m->bpf->maps.xroce_engine);
	for (n = 0; n < ARRAY_SIZE(kept); n++) {
		/* negative if this kernel lacks it */
		fd[n] = *kept[n] < 0 ? -1 : fcntl(*kept[n], F_DUPFD_CLOEXEC, 0);
		if (fd[n] < 0 && *kept[n] >= 0) {
			err = -errno;
			break;
		}
	}
	if (err) {
		while (n)
			close_fd(&fd[--n]);
		m->prog_fd = m->xsk_fd = m->engine_fd = -1;
		return attach_failed(dev, "duplicate a file descriptor", err);
	}
	for (n = 0; n < ARRAY_SIZE(kept); n++)
		*kept[n] = fd[n];
	xroce_bpf__destroy(m->bpf);
	m->bpf = NULL;
	return 0;
}

/* Pins the maps if XROCE_PIN is set. The port is made even if that fails. */
static void attach_pin(const struct netdev *dev, struct attachment *m)
{
	const char *dir = options_pin();
	int err;

	if (!dir) {
		pins_sweep(PIN_DIR);
		return;
	}
	if (pins_begin(&m->pins, dir, dev, "alone", (gid_t)-1))
		return;
	err = pin_maps(&m->pins, &m->pins.own, m->bpf->obj, shown_map_is);
	if (err)
		attach_failed(dev, "pin the maps", err);
}

static int attach_alone(const struct netdev *dev, struct attachment *m, struct iface_lock *hold)
{
	int err = attach_hold(dev, m, hold);

	if (err)
		return err;
	raise_memlock();
	/* early: a process that arrives now connects and waits here, not for the name */
	first_listen(dev, m);
	err = attach_load(dev, m);
	if (!err && hook_is_in_dispatcher(m))
		first_forbid(m);
	if (!err)
		err = map_maps(dev, m);
	if (!err)
		err = open_sockets(dev, m);
	if (!err)
		err = make_rings(dev, m);
	if (!err)
		attach_pin(dev, m);
	return err ? err : keep_descriptors(dev, m);
}

static void attach_init(const struct netdev *dev, struct attachment *m)
{
	*m = (struct attachment){ .ifindex = dev->ifindex, .holder_fd = -1, .link_fd = -1,
				  .prog_fd = -1, .xsk_fd = -1, .engine_fd = -1,
				  .info = { .pkeys = options_pkeys() },
				  .maps = { .tell_fd = -1 } };
	for (u32 i = 0; i < XROCE_MAX_SHARD; i++)
		m->io[i].ring_fd = -1;
	for (u32 i = 0; i < CHANNEL_RINGS_AHEAD; i++)
		m->ring_fd[i] = -1;
	for (u32 i = 0; i < ASK_FDS; i++)
		m->fd[i] = -1;
	ask_init(&m->asker);
	first_init(m);
	m->pins = PINS_NONE;
}

/* Starts a broker, or uses a broker that another process starts at the same time. */
static int attach_with_broker(const struct netdev *dev, struct attachment *m)
{
	int err = spawn_broker(dev, &m->info.pkeys);

	if (err && err != -EIO) {
		if (!attach_complain_of_mount(dev))
			attach_complain(dev, "no broker on %s; as root, run `xroce serve %s`",
					dev->name, dev->name);
		return -ENODEV;
	}
	err = attach_shared(dev, m);
	return err == -ENOENT ? -ENODEV : err;
}

/*
 * Gets a port from the interface's owner or broker, or makes this process the owner. If the other
 * process hangs up on the question, it or its broker is ending, and the loop starts again.
 */
static int attach_auto(const struct netdev *dev, struct attachment *m)
{
	struct iface_lock hold;
	int err;

	iface_lock_begin(&hold, dev->ifindex);
	for (;;) {
		err = attach_shared(dev, m);
		if (err != -ENOENT)
			break;
		ask_close(&m->asker);
		ask_init(&m->asker);
		err = attach_alone(dev, m, &hold);
		if (err != -EAGAIN)
			break;
		iface_lock_await(&hold);
	}
	iface_lock_end(&hold);
	return err;
}

int attach_make(const struct netdev *dev, struct attachment *m)
{
	const enum share_choice choice = options_share();
	int err;

	attach_init(dev, m);
	if (choice == SHARE_NEVER) {
		err = attach_alone(dev, m, NULL);
	} else if (choice == SHARE_ALWAYS) {
		err = attach_shared(dev, m);
		if (err == -ENOENT)
			err = attach_with_broker(dev, m);
	} else {
		err = attach_auto(dev, m);
	}
	if (err)
		attach_unmake(m);
	return err;
}

static void attach_unmap(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

void attach_detach(struct attachment *m)
{
	/* the broker detaches a shared port, after this process has released it */
	if (m->info.shared)
		return;
	pins_end(&m->pins);
	first_detach(m);
	hook_detach(m);
}

void attach_follow(struct attachment *m)
{
	if (!m->info.shared)
		hook_follow(m);
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
		fprintf(stderr, "xroce: %s: the broker has not answered for %llu s; this process "
				"has lost the device\n",
			name, (unsigned long long)(m->asker.max_ns / NSEC_PER_SEC));
	else if (err != -EPIPE)
		fprintf(stderr, "xroce: %s: the broker sent an invalid answer; this process has "
				"lost the device\n", name);
	return -EIO;
}

/* Handles the error of a release. A broker that has ended has released everything. */
static void attach_gave(const struct attachment *m, int err)
{
	if (m->info.shared && ask_is_over(err))
		attach_lost(m, err);
}

/*
 * Returns the broker's answer, or -EIO if a shared port has lost its broker. A process that owned
 * the interface before the broker owns it again, and the caller's new object must get packets from
 * now on. The watch thread may not have noticed yet, so the program is put back here.
 */
static int attach_answer(struct attachment *m, int err)
{
	if (!ask_is_over(err))
		return err;
	if (m->info.shared)
		return attach_lost(m, err);
	first_put_program_back(m);
	return 0;
}

int attach_draw(struct attachment *m, u32 *qpn)
{
	int err = 0;

	*qpn = 0;
	if (m->info.shared || m->first.joined)
		err = ask_draw(&m->asker, qpn);
	return attach_answer(m, err);
}

int attach_claim(struct attachment *m, u32 qpn)
{
	int err = 0;

	if (m->info.shared || m->first.joined)
		err = ask_claim(&m->asker, qpn);
	return attach_answer(m, err);
}

void attach_release(struct attachment *m, u32 qpn)
{
	if (m->info.shared || m->first.joined)
		attach_gave(m, ask_release(&m->asker, qpn));
}

int attach_bind(struct attachment *m, const struct ask_service *service)
{
	int err = 0;

	if (m->info.shared || m->first.joined)
		err = ask_bind(&m->asker, service);
	return attach_answer(m, err);
}

void attach_unbind(struct attachment *m, const struct ask_service *service)
{
	if (m->info.shared || m->first.joined)
		attach_gave(m, ask_unbind(&m->asker, service));
}

int attach_group(struct attachment *m, const struct gid *group)
{
	int err = 0;

	if (m->info.shared || m->first.joined)
		err = ask_attach(&m->asker, group);
	return attach_answer(m, err);
}

void attach_leave_group(struct attachment *m, const struct gid *group)
{
	if (m->info.shared || m->first.joined)
		attach_gave(m, ask_detach(&m->asker, group));
}

void attach_give_rings(struct attachment *m, struct channel_rings *rings)
{
	for (u32 i = 0; i < CHANNEL_RINGS_AHEAD && m->ring_fd[i] >= 0; i++) {
		channel_rings_adopt(rings, m->ring_fd[i]);
		m->ring_fd[i] = -1;
	}
}

int attach_ring(struct attachment *m, struct ring_slot *out)
{
	const int fd = ask_ring(&m->asker, &out->slot);

	out->fd = fd;
	return ask_is_over(fd) ? attach_lost(m, fd) : fd < 0 ? fd : 0;
}

int attach_open_local(const struct netdev *dev, struct attachment *m, u32 i)
{
	struct shard_io *s = &m->io[i];
	const int fd = fcntl(m->first.tap_fd, F_DUPFD_CLOEXEC, 0);

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

static void close_kept(struct attachment *m)
{
	int *const kept[] = { KEPT_FDS(m) };

	for (u32 i = 0; i < ARRAY_SIZE(kept); i++)
		close_fd(kept[i]);
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
	}
	for (u32 i = 0; i < CHANNEL_RINGS_AHEAD; i++)
		close_fd(&m->ring_fd[i]);
	first_close(m);
	if (m->bpf)
		xroce_bpf__destroy(m->bpf);
	else if (m->prog_fd >= 0)
		close_kept(m);
	m->bpf = NULL;
	for (u32 i = 0; i < ASK_FDS; i++)
		close_fd(&m->fd[i]);
	ask_close(&m->asker);
	/* last, so that the next process finds everything released */
	close_fd(&m->holder_fd);
}

void attach_unmake(struct attachment *m)
{
	/* closing the sockets updates counters in the mappings for the last time */
	close_everything(m);
#define X(name, map, fd, n) attach_unmap(m->maps.name, (n) * sizeof(*m->maps.name));
	SHARED_MAPS(X)
#undef X
}

void attach_lose(struct attachment *m)
{
	if (m->info.shared)
		return;
	hook_detach(m);
	/* removes only the path: the watch thread sleeps on the descriptor */
	broker_socket_hide(&m->first.door);
	close_fd(&m->first.alone_fd);
	close_fd(&m->holder_fd);
}

static void make_private(void *p, size_t bytes)
{
	mmap(p, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
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
	first_abandon(m);
	pins_abandon(&m->pins);
	hook_abandon(m);
	ask_abandon(&m->asker);
	close_everything(m);
	m->maps.tell_fd = -1;
}
