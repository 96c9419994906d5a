/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../os/privilege.h"
#include "../os/bpf_room.h"
#include "../os/thread.h"
#include "tx.h"
#include "tx_redirect.h"
#include "xroce_tx.skel.h"

#ifndef BPF_F_TEST_XDP_LIVE_FRAMES
#define BPF_F_TEST_XDP_LIVE_FRAMES (1U << 1)
#endif

/* frames that the kernel runs before it passes them on: a quarter of a veth's ring */
#define LIVE_BATCH 32u
#define ETH_HEADER 14u

/* ---- the TAP ---- */

struct tap_job {
	struct tx_redirect *r;
	const char *why;
	int err;
};

static int make_tap(char name[IFNAMSIZ])
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI, .ifr_name = "xroce%d" };
	int fd = open(TX_TUN_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (ioctl(fd, TUNSETIFF, &ifr)) {
		int err = -errno;

		close(fd);
		return err;
	}
	memcpy(name, ifr.ifr_name, IFNAMSIZ);
	return fd;
}

static int tx_redirect_set_up(const char *name)
{
	struct ifreq ifr = { .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	memcpy(ifr.ifr_name, name, IFNAMSIZ);
	err = ioctl(fd, SIOCSIFFLAGS, &ifr) ? -errno : 0;
	close(fd);
	return err;
}

static int fail_at(struct tap_job *job, const char *why, int err)
{
	job->why = why;
	return err;
}

static int open_tap(struct tap_job *job)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_DRV_MODE);
	struct tx_redirect *r = job->r;
	char name[IFNAMSIZ];
	int err;

	if (unshare(CLONE_NEWNET))
		return fail_at(job, TX_STEP_NAMESPACE, -errno);
	r->tap_fd = make_tap(name);
	if (r->tap_fd < 0)
		return fail_at(job, TX_STEP_TAP, r->tap_fd);
	err = tx_redirect_set_up(name);
	if (err)
		return fail_at(job, "bringing the TAP device up", err);
	r->link_fd = bpf_link_create(bpf_program__fd(r->bpf->progs.xroce_transmit),
				     (int)if_nametoindex(name), BPF_XDP, &opts);
	return r->link_fd < 0 ? fail_at(job, "attaching the transmit program", r->link_fd) : 0;
}

static void *tap_main(void *arg)
{
	struct tap_job *job = arg;

	job->err = open_tap(job);
	return NULL;
}

/* Runs in a temporary thread, as changing the network namespace may be irreversible. */
static int open_tap_elsewhere(struct tx_redirect *r, const char **why)
{
	struct tap_job job = { .r = r };
	pthread_t thread;
	int err = thread_start(&thread, tap_main, &job);

	if (err)
		return err;
	pthread_join(thread, NULL);
	*why = job.why;
	return job.err;
}

/* ---- making and ending ---- */

static void *tx_redirect_map(const struct bpf_map *map, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		       bpf_map__fd(map), 0);

	return p == MAP_FAILED ? NULL : p;
}

static int fill_devmap(const struct bpf_map *map, u32 ifindex, int prog_fd)
{
	const struct bpf_devmap_val val = { .ifindex = ifindex, .bpf_prog.fd = prog_fd };
	int err = 0;

	for (u32 key = 0; !err && key < bpf_map__max_entries(map); key++)
		err = bpf_map_update_elem(bpf_map__fd(map), &key, &val, BPF_ANY);
	return err;
}

static int fill_devmaps(struct tx_redirect *r, u32 ifindex)
{
	const struct bpf_map *several[] = { r->bpf->maps.xroce_tx_dev2, r->bpf->maps.xroce_tx_dev3,
					    r->bpf->maps.xroce_tx_dev4, r->bpf->maps.xroce_tx_dev8,
					    r->bpf->maps.xroce_tx_dev16 };
	int err = fill_devmap(r->bpf->maps.xroce_tx_dev, ifindex, 0);

	for (u32 i = 0; !err && i < ARRAY_SIZE(several); i++)
		err = fill_devmap(several[i], ifindex, bpf_program__fd(r->bpf->progs.xroce_tx_cut));
	return err;
}

const char *tx_redirect_remedy(const char *step, u64 caps)
{
	if (!strcmp(step, TX_STEP_NAMESPACE))
		return "run with CAP_SYS_ADMIN as well: the TAP device needs its own network "
		       "namespace";
	if (!strcmp(step, TX_STEP_PROGRAM))
		return privilege_has(caps, CAP_PERFMON) || privilege_has(caps, CAP_SYS_ADMIN) ?
			       "use Linux 6.3 or later; XROCE_DEBUG=1 shows the kernel's "
			       "message" :
			       "run with CAP_PERFMON as well (CAP_SYS_ADMIN includes it)";
	if (!strcmp(step, TX_STEP_TAP))
		return "run `modprobe tun`; give a container " TX_TUN_DEVICE;
	return NULL;
}

static int redirect_load(struct tx_redirect *r, u32 ifindex, const char **why)
{
	libbpf_print_fn_t before;
	int err;

	*why = TX_STEP_PROGRAM;
	before = privilege_hush_libbpf();
	r->bpf = xroce_tx_bpf__open();
	err = r->bpf ? bpf_load(r->bpf->skeleton) : -errno;
	libbpf_set_print(before);
	if (err) {
		xroce_tx_bpf__destroy(r->bpf);
		r->bpf = NULL;
		return err;
	}
	r->ring = tx_redirect_map(r->bpf->maps.xroce_tx_ring, sizeof(*r->ring));
	r->frame =
		tx_redirect_map(r->bpf->maps.xroce_tx_frame, XROCE_TX_FRAMES * sizeof(*r->frame));
	*why = "mapping the transmit program's maps";
	if (!r->ring || !r->frame)
		return -errno;
	*why = "redirecting to the interface";
	return fill_devmaps(r, ifindex);
}

static const struct tx_redirect tx_redirect_none = {
	.tap_fd = -1, .link_fd = -1, .program_fd = -1
};

/* Closes all of the loader's descriptors but the program's, which holds everything else. */
static int redirect_keep_program(struct tx_redirect *r, const char **why)
{
	r->program_fd =
		fcntl(bpf_program__fd(r->bpf->progs.xroce_transmit), F_DUPFD_CLOEXEC, 0);
	*why = "duplicating a file descriptor";
	if (r->program_fd < 0)
		return -errno;
	xroce_tx_bpf__destroy(r->bpf);
	r->bpf = NULL;
	return 0;
}

int tx_redirect_open(struct tx_redirect *r, u32 ifindex, const char **why)
{
	int err;

	*r = tx_redirect_none;
	err = redirect_load(r, ifindex, why);
	if (!err)
		err = open_tap_elsewhere(r, why);
	if (!err)
		err = redirect_keep_program(r, why);
	if (err)
		tx_redirect_close(r);
	return err;
}

void tx_redirect_close(struct tx_redirect *r)
{
	if (r->link_fd >= 0)
		close(r->link_fd);
	if (r->tap_fd >= 0)
		close(r->tap_fd);
	if (r->ring)
		munmap(r->ring, sizeof(*r->ring));
	if (r->frame)
		munmap(r->frame, XROCE_TX_FRAMES * sizeof(*r->frame));
	if (r->program_fd >= 0)
		close(r->program_fd);
	xroce_tx_bpf__destroy(r->bpf);
	*r = tx_redirect_none;
}

/* ---- sending ---- */

/*
 * Returns how many of the n entries from first on go into one write: a number for which there is a
 * devmap, within write_max.
 */
static u32 redirect_pieces(const struct tx_redirect *r, u32 first, u32 n)
{
	static const u32 sizes[] = { TX_PIECES_MAX, 8, 4, 3, 2 };
	u32 fit = 0, bytes = 0;

	while (fit < n && bytes + r->ring->batch[first + fit].len <= r->write_max)
		bytes += r->ring->batch[first + fit++].len;
	for (u32 i = 0; i < ARRAY_SIZE(sizes); i++)
		if (sizes[i] <= fit)
			return sizes[i];
	return 1;
}

void tx_redirect_by(struct tx_redirect *r, int cpu)
{
	r->ring->cpu = (u32)(cpu + 1);
	r->ring->strayed = 0;
}

static bool tx_redirect_strayed(const struct tx_redirect *r)
{
	return atomic_load_explicit(shared_word(&r->ring->strayed), memory_order_relaxed);
}

/* Writes the k entries from index i on. Returns false if the kernel refused. */
static bool tx_redirect_write(struct tx_redirect *r, u32 i, u32 k)
{
	struct iovec iov[TX_PIECES_MAX];
	long bytes = 0;

	for (u32 j = 0; j < k; j++) {
		const struct xroce_tx_entry *entry = &r->ring->batch[i + j];

		iov[j] = (struct iovec){ r->frame[entry->frame].bytes, entry->len };
		bytes += entry->len;
	}
	r->ring->next = i;
	r->ring->cut = 0;
	r->ring->pieces = k;
	/* Uses syscall(), as write() is a cancellation point, under the shard's lock. */
	return (k == 1 ? syscall(SYS_write, r->tap_fd, iov[0].iov_base, iov[0].iov_len)
		       : syscall(SYS_writev, r->tap_fd, iov, (int)k)) == bytes;
}

u32 tx_redirect_tap(struct tx_redirect *r, u32 n, u32 *lost, __u64 *writes)
{
	for (u32 i = 0, k; i < n; i += k) {
		bool written;

		k = redirect_pieces(r, i, n - i);
		++*writes;
		written = tx_redirect_write(r, i, k);
		if (unlikely(tx_redirect_strayed(r)))
			return i;
		*lost += written ? 0 : k;
	}
	return n;
}

/* A signal ends a run between two of the kernel's batches; the loop continues with the rest. */
u32 tx_redirect_live(struct tx_redirect *r, u32 n, u32 *lost)
{
	static const u8 zeroes[XROCE_TX_LIVE_BYTES];
	const u64 refused = r->ring->refused;
	u32 longest = ETH_HEADER, next = 0;

	for (u32 i = 0; i < n; i++)
		longest = longest > r->ring->batch[i].len ? longest : r->ring->batch[i].len;
	r->ring->next = 0;
	while (next < n) {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = zeroes, .data_size_in = longest,
			    .repeat = (int)(n - next), .flags = BPF_F_TEST_XDP_LIVE_FRAMES,
			    .batch_size = LIVE_BATCH);
		const int err = bpf_prog_test_run_opts(r->program_fd, &opts);
		const u32 now =
			atomic_load_explicit(shared_word(&r->ring->next), memory_order_relaxed);

		if (unlikely(tx_redirect_strayed(r))) {
			next = min_u32(now, n);
			break;
		}
		if (now <= next || now > n || (err && err != -EINTR)) {
			*lost += n - min_u32(now, n);
			return n;
		}
		next = now;
	}
	*lost += (u32)(r->ring->refused - refused);
	return next;
}
