/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Making a port: the only part that needs privileges. It takes the interface (a name that one
 * process holds), loads and attaches the XDP program, creates the UMEM and the sockets, and maps
 * what is shared. Everything is a descriptor of this process and goes with it, however it ends.
 * Nothing is received until the GIDs are published: XDP passes what is not to one of them.
 *
 * Each failure is one line on standard error that names the remedy.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../base/kernel.h"
#include "../base/options.h"
#include "../base/privilege.h"
#include "../netdev/xdp_mode.h"
#include "attach.h"
#include "xroce.skel.h"

#define HOOK_BUSY_MS 200

static void attach_complain(const struct netdev *dev, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void attach_complain(const struct netdev *dev, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "xroce: %s: %s\n", dev->name, text);
}

/* AF_XDP counts packet memory against RLIMIT_MEMLOCK, for all processes of the user together. */
static void complain_memlock(const struct netdev *dev, const char *step)
{
	struct rlimit lim = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &lim);
	attach_complain(dev,
		 "cannot %s: the limit of locked memory (`ulimit -l`, %llu KiB for all processes "
		 "of this user together) is used up; "
		 "raise it (`ulimit -l unlimited` as root, LimitMEMLOCK= of a service), or run "
		 "with CAP_IPC_LOCK",
		 step, (unsigned long long)lim.rlim_cur >> 10);
}

/* The line for a step that failed for no reason of its own. Returns err. */
static int attach_failed(const struct netdev *dev, const char *step, int err)
{
	if ((err == -EPERM || err == -EACCES) && !privilege_in_first_user_namespace())
		attach_complain(dev,
			 "not permitted to %s: the privileges of a user namespace are not enough, "
			 "the kernel asks for those of the first one",
			 step);
	else if (err == -EPERM || err == -EACCES)
		attach_complain(dev,
				"not permitted to %s; run as root, or with CAP_NET_ADMIN, CAP_BPF "
				"and CAP_NET_RAW",
				step);
	else if (err == -ENODEV)
		attach_complain(dev, "cannot %s: no such interface; `ip link` lists them", step);
	else if (err == -ENOBUFS)
		complain_memlock(dev, step);
	else if (err == -ENOMEM)
		attach_complain(dev,
				"cannot %s: no memory; raise `ulimit -l` or the memory limit of "
				"this control group",
				step);
	else
		attach_complain(dev, "cannot %s: %s; run `xroce doctor %s`", step, strerror(-err),
				dev->name);
	return err == -EACCES ? -EPERM : err;
}

static int attach_hold(const struct netdev *dev, struct attachment *m)
{
	char comm[32] = "?";
	pid_t pid = 0;

	m->holder_fd = netdev_hold(dev->ifindex);
	/* EPERM: anyone can take a name. The XDP hook, which takes privileges, decides. */
	if (m->holder_fd >= 0 || m->holder_fd == -EPERM)
		return 0;
	if (m->holder_fd != -EBUSY)
		return attach_failed(dev, "take the interface", m->holder_fd);
	if (netdev_holder(dev->ifindex, &pid, comm, sizeof(comm)) == 0 && pid > 0)
		attach_complain(dev, "in use by process %d (%s); end it, or use another interface",
				(int)pid, comm);
	else
		attach_complain(dev, "in use by another process; end it, or use another interface");
	return -EBUSY;
}

/*
 * Kernels before 5.11 count maps and UMEM against this limit; later ones count the UMEM. Failing is
 * no error here.
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
	libbpf_print_fn_t before = privilege_hush_libbpf();
	int err = 0;

	m->bpf = xroce_bpf__open();
	if (!m->bpf)
		err = -errno;
	else
		err = xroce_bpf__load(m->bpf);
	libbpf_set_print(before);
	if (err)
		return attach_failed(dev, "load the XDP program", err);
	/*
	 * The program does not use them: bound to it, they are found by who knows the interface
	 * (xroce list). Before 5.10 they are not.
	 */
	bpf_prog_bind_map(bpf_program__fd(m->bpf->progs.xroce_xdp),
			  bpf_map__fd(m->bpf->maps.xroce_eng_stat), NULL);
	bpf_prog_bind_map(bpf_program__fd(m->bpf->progs.xroce_xdp),
			  bpf_map__fd(m->bpf->maps.xroce_eng_drop), NULL);
	bpf_prog_bind_map(bpf_program__fd(m->bpf->progs.xroce_xdp),
			  bpf_map__fd(m->bpf->maps.xroce_sock), NULL);
	m->maps.qp_fd = bpf_map__fd(m->bpf->maps.xroce_qp);
	m->maps.gid_fd = bpf_map__fd(m->bpf->maps.xroce_gid);
	m->maps.channel_fd = bpf_map__fd(m->bpf->maps.xroce_channel);
	return 0;
}

/* The map's memory, shared with XDP and with whoever dumps the map; NULL with errno set. */
static void *attach_map(const struct bpf_map *map, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return p == MAP_FAILED ? NULL : p;
}

#define CQ_BYTES     (XROCE_MAX_CQ * sizeof(struct xroce_cq))
#define EXPECT_BYTES (XROCE_MAX_QP * sizeof(struct xroce_expect))
#define VECTOR_BYTES (XROCE_MAX_QUEUE * sizeof(struct xroce_vector))
#define SOCK_BYTES   (XROCE_MAX_QUEUE * sizeof(struct xroce_sock))
#define STATS_BYTES  (XROCE_MAX_SHARD * sizeof(struct xroce_engine_stats))
#define DROPS_BYTES  (XROCE_MAX_SHARD * sizeof(struct xroce_drops))

static int map_maps(const struct netdev *dev, struct attachment *m)
{
	m->maps.cq = attach_map(m->bpf->maps.xroce_cq, CQ_BYTES);
	m->maps.expect = attach_map(m->bpf->maps.xroce_expect, EXPECT_BYTES);
	m->maps.engine = attach_map(m->bpf->maps.xroce_engine, sizeof(*m->maps.engine));
	m->maps.vector = attach_map(m->bpf->maps.xroce_vector, VECTOR_BYTES);
	m->maps.sock = attach_map(m->bpf->maps.xroce_sock, SOCK_BYTES);
	m->maps.stats = attach_map(m->bpf->maps.xroce_eng_stat, STATS_BYTES);
	m->maps.drops = attach_map(m->bpf->maps.xroce_eng_drop, DROPS_BYTES);
	if (!m->maps.cq || !m->maps.expect || !m->maps.engine || !m->maps.vector || !m->maps.sock ||
	    !m->maps.stats || !m->maps.drops)
		return attach_failed(dev, "map the BPF maps", -errno);
	m->maps.engine->pid = (u32)getpid();

	return 0;
}

static int make_rings(const struct netdev *dev, struct attachment *m)
{
	int err = 0;

	for (u32 i = 0; i < m->info.shards && !err; i++) {
		m->io[i].ring_fd = kernel_ring_make();
		if (m->io[i].ring_fd < 0)
			return attach_failed(dev, "make a BPF ring buffer", m->io[i].ring_fd);
		err = bpf_map_update_elem(m->maps.channel_fd, &i, &m->io[i].ring_fd, BPF_ANY);
	}
	for (u32 queue = 0; queue < m->info.queues; queue++)
		m->maps.vector[queue].ring = queue % m->info.shards;
	return err ? attach_failed(dev, "publish a BPF ring buffer", err) : 0;
}

static int attach_once(struct attachment *m, u32 ifindex, u32 flags)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = flags);

	return bpf_link_create(bpf_program__fd(m->bpf->progs.xroce_xdp), (int)ifindex, BPF_XDP,
			       &opts);
}

/*
 * The link of a process that has just ended may take a moment to go. Returns a descriptor or
 * -errno.
 */
static int attach_when_free(struct attachment *m, u32 ifindex, u32 flags)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	int fd;

	for (u32 ms = 0;; ms++) {
		fd = attach_once(m, ifindex, flags);
		if ((fd != -EBUSY && fd != -EEXIST) || ms == HOOK_BUSY_MS)
			return fd;
		nanosleep(&nap, NULL);
	}
}

static void complain_hook(const struct netdev *dev)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_prog_info info = { 0 };
	u32 id = 0, len = sizeof(info);
	char comm[32] = "?";
	pid_t pid = 0;
	int fd = -1;

	if (bpf_xdp_query((int)dev->ifindex, 0, &query) == 0)
		id = query.prog_id ? query.prog_id :
		     query.attach_mode == XDP_ATTACHED_MULTI && query.drv_prog_id ?
				     query.drv_prog_id :
				     query.skb_prog_id;
	if (id)
		fd = bpf_prog_get_fd_by_id(id);
	if (fd >= 0)
		bpf_obj_get_info_by_fd(fd, &info, &len);
	if (fd >= 0)
		close(fd);
	if (netdev_holder(dev->ifindex, &pid, comm, sizeof(comm)) == -EPERM && pid > 0)
		attach_complain(dev,
			 "the XDP hook holds program %u (%s); process %d (%s), of another user, "
			 "says that the interface is its own",
			 id, info.name[0] ? info.name : "?", (int)pid, comm);
	else
		attach_complain(dev,
			 "the XDP hook holds program %u (%s); take it away (`ip link set dev %s "
			 "xdp off`, or end its owner)",
			 id, info.name[0] ? info.name : "?", dev->name);
}

/* Returns a descriptor or -errno. */
static int attach_in_mode(const struct netdev *dev, struct attachment *m)
{
	const enum xdp_mode mode = xdp_mode(dev);
	int fd;

	if (mode == XDP_MODE_GENERIC)
		return attach_when_free(m, dev->ifindex, XDP_FLAGS_SKB_MODE);
	fd = attach_when_free(m, dev->ifindex, XDP_FLAGS_DRV_MODE);
	m->info.native = fd >= 0;
	/*
	 * EOPNOTSUPP: no native XDP. The others are drivers that have it, but not with this MTU or
	 * this many queues.
	 */
	if (mode == XDP_MODE_NATIVE ||
	    (fd != -EOPNOTSUPP && fd != -EINVAL && fd != -ERANGE && fd != -ENOSPC))
		return fd;
	if (!options_is_set(OPTION_QUIET))
		attach_complain(dev, "no native XDP here (%s): using generic mode, which is slower",
				strerror(-fd));
	return attach_when_free(m, dev->ifindex, XDP_FLAGS_SKB_MODE);
}

static int attach_xdp(const struct netdev *dev, struct attachment *m)
{
	struct bpf_prog_info info = { 0 };
	u32 len = sizeof(info);
	int fd = attach_in_mode(dev, m);

	if (fd == -EBUSY || fd == -EEXIST) {
		complain_hook(dev);
		return -EBUSY;
	}
	if (fd < 0)
		return attach_failed(dev, "attach the XDP program", fd);
	m->link_fd = fd;
	if (bpf_obj_get_info_by_fd(bpf_program__fd(m->bpf->progs.xroce_xdp), &info, &len) == 0)
		m->info.prog_id = info.id;
	return 0;
}

/*
 * Generic XDP sees all packets as the first queue's; and more engines than CPUs to run them on
 * would be in each other's way.
 */
static u32 shards_for(u32 queues, bool native)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	u32 most = options_number(OPTION_SHARDS);

	if (cpus > 0 && most > (u32)cpus)
		most = (u32)cpus;
	return native ? min_u32(queues, most) : 1;
}

/* The i-th of the shards has every shards-th of the queues. */
static int open_sockets_of(const struct netdev *dev, struct attachment *m, u32 i,
			   bool try_zero_copy)
{
	const u32 each = xsk_rx_frames(m->info.queues), step = m->info.shards;
	struct shard_io *s = &m->io[i];
	int err;

	err = umem_create(&s->umem, each * ((m->info.queues - i + step - 1) / step), XSK_TX_SLOTS);
	if (err)
		return attach_failed(dev, "get memory for packets", err);
	err = xsk_open(&s->xsks, &s->umem, dev->name, i, step, m->info.queues, try_zero_copy,
		       m->maps.sock);
	if (err == -EBUSY) {
		attach_complain(dev, "another AF_XDP socket holds a receive queue; end its owner "
				     "(`ss --xdp -p` may name it)");
		return err;
	}
	if (err)
		return attach_failed(dev, "open AF_XDP sockets", err);
	s->tx = tx_policy_open(dev, tx_xsk_open(&s->xsks, s->stats),
			       m->info.queues > 1 ? (int)xsk_queue(&s->xsks, 0) : -1,
			       s->xsks.zero_copy, i > 0, s->stats);
	if (!s->tx)
		return attach_failed(dev, "get memory", -ENOMEM);
	for (u32 j = 0; j < s->xsks.count; j++) {
		const u32 queue = xsk_queue(&s->xsks, j);

		err = bpf_map_update_elem(bpf_map__fd(m->bpf->maps.xroce_xsk), &queue,
					  &s->xsks.xsk[j].fd, BPF_ANY);
		if (err)
			return attach_failed(dev, "publish an AF_XDP socket", err);
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

int attach_make(const struct netdev *dev, struct attachment *m)
{
	int err;

	*m = (struct attachment){ .holder_fd = -1, .link_fd = -1 };
	for (u32 i = 0; i < XROCE_MAX_SHARD; i++)
		m->io[i].ring_fd = m->io[i].umem.fd = -1;
	raise_memlock();
	err = attach_hold(dev, m);
	if (!err)
		err = attach_load(dev, m);
	if (!err)
		err = map_maps(dev, m);
	if (!err)
		err = attach_xdp(dev, m);
	if (!err)
		err = open_sockets(dev, m);
	if (!err)
		err = make_rings(dev, m);
	if (err)
		attach_unmake(m);
	return err;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void attach_unmap(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

void attach_detach(struct attachment *m)
{
	close_fd(&m->link_fd);
}

static void close_everything(struct attachment *m)
{
	attach_detach(m);
	for (u32 i = 0; i < XROCE_MAX_SHARD; i++) {
		struct shard_io *s = &m->io[i];

		if (s->tx)
			tx_close(s->tx);
		s->tx = NULL;
		xsk_close(&s->xsks);
		umem_destroy(&s->umem);
		close_fd(&s->ring_fd);
	}
	if (m->bpf)
		xroce_bpf__destroy(m->bpf);
	m->bpf = NULL;
	/* Last: the next process finds everything gone. */
	close_fd(&m->holder_fd);
}

void attach_unmake(struct attachment *m)
{
	/* its sockets are counted for the last time in what is unmapped then */
	close_everything(m);
	attach_unmap(m->maps.cq, CQ_BYTES);
	attach_unmap(m->maps.expect, EXPECT_BYTES);
	attach_unmap(m->maps.engine, sizeof(*m->maps.engine));
	attach_unmap(m->maps.vector, VECTOR_BYTES);
	attach_unmap(m->maps.sock, SOCK_BYTES);
	attach_unmap(m->maps.stats, STATS_BYTES);
	attach_unmap(m->maps.drops, DROPS_BYTES);
}

static void make_private(void *p, size_t bytes)
{
	mmap(p, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void attach_abandon(struct attachment *m)
{
	/*
	 * The child's objects still point here; what they write must not reach the parent's arm
	 * words and counters.
	 */
	make_private(m->maps.cq, CQ_BYTES);
	make_private(m->maps.expect, EXPECT_BYTES);
	make_private(m->maps.engine, sizeof(*m->maps.engine));
	make_private(m->maps.vector, VECTOR_BYTES);
	make_private(m->maps.sock, SOCK_BYTES);
	make_private(m->maps.stats, STATS_BYTES);
	make_private(m->maps.drops, DROPS_BYTES);
	close_everything(m);
}
