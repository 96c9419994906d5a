/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The real kernel; see kernel.h. Uses syscall() where the C library's functions are cancellation
 * points. libbpf's ring functions are not used, as they call close(), which is one.
 */
#define _GNU_SOURCE
#include "kernel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <xroce/abi.h>

#include "privilege.h"

/* Newer than Debian 12's headers. */
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif

#define SEND_BUDGET 256
#define SEND_BUFFER (8 << 20) /* more than all transmit slots as skbs */

/* A loop around a call that a seccomp filter refuses turns every millisecond, and does not spin. */
static void pause_if_refused(int err)
{
	struct timespec t = { .tv_nsec = NSEC_PER_MSEC };

	if (err != EINTR && err != EAGAIN)
		syscall(SYS_nanosleep, &t, NULL);
}

/* ThreadSanitizer has to see that the number is free. */
void kernel_close(int fd)
{
#ifdef __SANITIZE_THREAD__
	close(fd);
#else
	syscall(SYS_close, fd);
#endif
}

int kernel_duplicate(int fd)
{
	const int other = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return other < 0 ? -errno : other;
}

void kernel_replace(int fd, int to)
{
	syscall(SYS_dup3, fd, to, O_CLOEXEC);
}

u32 kernel_descriptors_max(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > UINT32_MAX ?
		       UINT32_MAX :
		       (u32)limit.rlim_cur;
}

void kernel_raise_limit(int resource)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(resource, &limit) && !getrlimit(resource, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(resource, &limit);
	}
}

/* ---- kicking ---- */

int kernel_event_make(bool for_program)
{
	const int fd = eventfd(0, EFD_CLOEXEC | (for_program ? 0 : EFD_NONBLOCK));

	return fd < 0 ? -errno : fd;
}

void kernel_event_raise(int fd)
{
	const u64 one = 1;

	syscall(SYS_write, fd, &one, sizeof(one));
}

void kernel_event_clear(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	u64 count;

	if (kernel_await(&p, 1, 0) == 1 && syscall(SYS_read, fd, &count, sizeof(count)) < 0)
		pause_if_refused(errno);
}

void kernel_event_replace(int fd)
{
	const int flags = fcntl(fd, F_GETFL);
	int own;

	/* first, to make room for one; no other thread can take its number */
	kernel_close(fd);
	own = eventfd(1, EFD_CLOEXEC | (flags > 0 && flags & O_NONBLOCK ? EFD_NONBLOCK : 0));
	if (own < 0 || own == fd)
		return;
	kernel_replace(own, fd);
	kernel_close(own);
}

/* ---- descriptors that are readable when one of several is ---- */

int kernel_set_make(void)
{
	const int fd = epoll_create1(EPOLL_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int kernel_set_add(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void kernel_set_remove(int set, int fd)
{
	epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL);
}

/* ---- sleeping ---- */

/* Returns NULL for no time-out. */
static struct timespec *timeout_until(u64 until_ns, struct timespec *t)
{
	const u64 now_ns = until_ns && until_ns != NSEC_NEVER ? clock_now_ns() : 0;
	const u64 left_ns = until_ns > now_ns ? until_ns - now_ns : 0;

	if (until_ns == NSEC_NEVER)
		return NULL;
	*t = (struct timespec){ .tv_sec = (time_t)(left_ns / NSEC_PER_SEC),
				.tv_nsec = (long)(left_ns % NSEC_PER_SEC) };
	return t;
}

int kernel_sleep(struct pollfd *fds, u32 n, u64 until_ns)
{
	struct timespec t;
	const int ready = ppoll(fds, n, timeout_until(until_ns, &t), NULL);

	return ready < 0 ? -errno : ready;
}

int kernel_await(struct pollfd *fds, u32 n, u64 until_ns)
{
	struct timespec t;
	const long ready = syscall(SYS_ppoll, fds, n, timeout_until(until_ns, &t), NULL, 0);
	const int err = ready < 0 ? -errno : 0;

	if (err && until_ns)
		pause_if_refused(-err);
	return err ? err : (int)ready;
}

void kernel_yield(void)
{
	sched_yield();
}

/* ---- wake-up records ---- */

int kernel_ring_make_of(u32 bytes)
{
	/* libbpf makes map descriptors close-on-exec; bpf_map_create() gives -errno. */
	return bpf_map_create(BPF_MAP_TYPE_RINGBUF, "xroce_ring", 0, 0, bytes, NULL);
}

int kernel_ring_make(void)
{
	return kernel_ring_make_of(XROCE_RING_BYTES);
}

/* ---- the memory of a ring buffer ---- */

/* The size of the producer's page and the data, which is mapped twice. */
static size_t ring_readable_bytes(u32 bytes)
{
	return (size_t)sysconf(_SC_PAGESIZE) + 2 * (size_t)bytes;
}

/* Maps n bytes at `at`, where memory is reserved. */
static bool ring_map_at(u8 *at, size_t n, int fd, off_t from)
{
	return mmap(at, n, PROT_READ, MAP_SHARED | MAP_FIXED, fd, from) != MAP_FAILED;
}

/*
 * Maps the readable part of a ring: the kernel maps the data of a BPF ring twice in a row, a file
 * (user/host/client.c) has it once. Returns 0 or -errno.
 */
static int ring_map_readable(int fd, u32 bytes, u8 **out)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), all = ring_readable_bytes(bytes);
	struct stat st;
	bool is_file;
	u8 *p;

	if (fstat(fd, &st))
		return -errno;
	is_file = S_ISREG(st.st_mode);
	if (is_file && (u64)st.st_size != 2 * page + bytes)
		return -EINVAL;
	p = is_file ? mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) :
		      mmap(NULL, all, PROT_READ, MAP_SHARED, fd, (off_t)page);
	if (p == MAP_FAILED)
		return -errno;
	*out = p;
	if (!is_file || (ring_map_at(p, page + bytes, fd, (off_t)page) &&
			 ring_map_at(p + page + bytes, bytes, fd, (off_t)(2 * page))))
		return 0;
	munmap(p, all);
	return -ENOMEM;
}

int kernel_ring_map(int fd, u32 bytes, struct ring_memory *out)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	u8 *rest = NULL;
	int err;

	if (consumer == MAP_FAILED)
		return -errno;
	err = ring_map_readable(fd, bytes, &rest);
	if (err) {
		munmap(consumer, page);
		return err;
	}
	*out = (struct ring_memory){ consumer, (unsigned long *)rest, rest + page, bytes };
	return 0;
}

void kernel_ring_unmap(const struct ring_memory *memory)
{
	munmap(memory->consumer, (size_t)sysconf(_SC_PAGESIZE));
	munmap((void *)(uintptr_t)memory->producer, ring_readable_bytes(memory->bytes));
}

/* ---- reading records ---- */

struct ring_reader {
	struct ring_memory memory;
	kernel_record_fn *fn;
	void *arg;
};

int kernel_ring_open(int fd, u32 bytes, kernel_record_fn *fn, void *arg, struct ring_reader **out)
{
	struct ring_reader *ring = malloc(sizeof(*ring));
	int err;

	if (!ring)
		return -ENOMEM;
	ring->fn = fn;
	ring->arg = arg;
	err = kernel_ring_map(fd, bytes, &ring->memory);
	if (err)
		free(ring);
	else
		*out = ring;
	return err;
}

void kernel_ring_close(struct ring_reader *ring)
{
	kernel_ring_unmap(&ring->memory);
	free(ring);
}

/* A record is a header of two words, the first of which is the length and two flags; then data. */
int kernel_ring_consume(struct ring_reader *ring)
{
	const struct ring_memory *m = &ring->memory;
	unsigned long at = atomic_load_explicit(shared_word(m->consumer), memory_order_relaxed);
	int ret = 0;

	while (ret >= 0) {
		const u8 *record = m->data + (at & (m->bytes - 1));
		/* acquire: pairs with the release in the kernel's reservation */
		const unsigned long there =
			atomic_load_explicit(shared_word(m->producer), memory_order_acquire) - at;
		unsigned long whole;
		u32 len, bytes;

		if (!there || there > m->bytes)
			break;
		/* acquire: pairs with the kernel's commit: the data is whole */
		len = atomic_load_explicit(shared_word((const u32 *)record), memory_order_acquire);
		bytes = len & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		whole = ((unsigned long)bytes + BPF_RINGBUF_HDR_SZ + 7) & ~7ul;
		if (len & BPF_RINGBUF_BUSY_BIT || whole > there)
			break;
		if (!(len & BPF_RINGBUF_DISCARD_BIT))
			ret = ring->fn(ring->arg, (u8 *)(uintptr_t)record + BPF_RINGBUF_HDR_SZ,
				       bytes);
		at += whole;
		/* release: pairs with the acquire in the kernel's reservation */
		atomic_store_explicit(shared_word(m->consumer), at, memory_order_release);
	}
	return ret < 0 ? ret : 0;
}

/* ---- programs ---- */

int kernel_program_run(int program, void *context, u32 bytes)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = context, .ctx_size_in = bytes);
	const int err = bpf_prog_test_run_opts(program, &run);

	return err ? err : (int)run.retval;
}

/* ---- maps ---- */

int kernel_map_get(int map, const void *key, void *value)
{
	return bpf_map_lookup_elem(map, key, value);
}

int kernel_map_put(int map, const void *key, const void *value)
{
	return bpf_map_update_elem(map, key, value, BPF_ANY);
}

int kernel_map_sum(int map, u32 key, u64 *sums, u32 words)
{
	const int cpus = libbpf_num_possible_cpus();
	u64 *values = cpus > 0 ? calloc((size_t)cpus * words, sizeof(*values)) : NULL;
	int err = values ? bpf_map_lookup_elem(map, &key, values) : cpus > 0 ? -ENOMEM : cpus;

	memset(sums, 0, words * sizeof(*sums));
	for (size_t i = 0; !err && i < (size_t)cpus * words; i++)
		sums[i % words] += values[i];
	free(values);
	return err;
}

int kernel_map_put_all(int map, const void *keys, const void *values, u32 n)
{
	return bpf_map_update_batch(map, keys, values, &n, NULL);
}

void kernel_map_remove(int map, const void *key)
{
	bpf_map_delete_elem(map, key);
}

/* ---- AF_XDP sockets ---- */

void kernel_xsk_send(int fd)
{
	syscall(SYS_sendto, fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
}

void kernel_xsk_receive(int fd)
{
	syscall(SYS_recvfrom, fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

int kernel_xsk_count(int fd, struct xdp_statistics *out)
{
	socklen_t len = sizeof(*out);

	return getsockopt(fd, SOL_XDP, XDP_STATISTICS, out, &len) ? -errno : 0;
}

void kernel_xsk_tune(int fd)
{
	const int budget = SEND_BUDGET, buffer = SEND_BUFFER;

	fcntl(fd, F_SETFD, FD_CLOEXEC);
	/* an older kernel lacks the first, a missing privilege forbids the second */
	setsockopt(fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof(budget));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
}

/* ---- the rest ---- */

#define DRAIN_MAX 1024u /* the sender may go on */

void kernel_drain(int fd)
{
	char message[16];

	for (u32 i = 0; i < DRAIN_MAX; i++)
		if (syscall(SYS_recvfrom, fd, message, sizeof(message), MSG_DONTWAIT, NULL,
			    NULL) < 0)
			return;
}

int kernel_send(int fd, const void *message, u32 bytes)
{
	const long n = syscall(SYS_sendto, fd, message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL, NULL,
			       0);

	return n < 0 ? -errno : 0;
}

/* No memfd: RLIMIT_FSIZE limits its length, and SIGXFSZ kills a process that exceeds the limit. */
void *kernel_memory_make(u64 bytes)
{
	void *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return area == MAP_FAILED ? NULL : area;
}

void kernel_memory_free(void *area, u64 bytes)
{
	if (area)
		munmap(area, bytes);
}

int kernel_memory_make_private(void *area, u64 bytes)
{
	void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	if (copy == MAP_FAILED)
		return -errno;
	memcpy(copy, area, bytes);
	if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, area) != MAP_FAILED)
		return 0;
	err = -errno;
	munmap(copy, bytes);
	return err;
}

static bool random_from_file(void *to, size_t bytes)
{
	const int fd = (int)syscall(SYS_openat, AT_FDCWD, "/dev/urandom", O_RDONLY | O_CLOEXEC);
	const long n = fd < 0 ? -1 : syscall(SYS_read, fd, to, bytes);

	if (fd >= 0)
		kernel_close(fd);
	return n == (long)bytes;
}

int kernel_random(void *to, size_t bytes)
{
	int err;

	/*
	 * Waits for the generator's seed; after that up to 256 bytes are never cut short. The
	 * libc function is a cancellation point, and callers hold locks.
	 */
	do
		err = syscall(SYS_getrandom, to, bytes, 0) == (long)bytes ? 0 : -errno;
	while (err == -EINTR);
	return err && random_from_file(to, bytes) ? 0 : err;
}

u32 kernel_thread_id(void)
{
	return (u32)syscall(SYS_gettid);
}
