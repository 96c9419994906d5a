/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All calls of a running port to the kernel, with the clock (clock.h). The rooms run and port, and
 * the AF_XDP sockets of io, make only these calls (scripts/check-kernel.sh). tests/portsim has
 * functions of the same names, and so runs ports without a kernel.
 *
 * Not included: threads and locks, which are POSIX's; AF_XDP sockets, which libxdp makes, and their
 * rings; arm words and counters, which are shared memory; the code that makes a port (client/,
 * the interface files in os/, the ways out in io/); memory faults (run/fault.c).
 *
 * Only kernel_sleep() is a cancellation point: callers hold locks.
 */
#ifndef OS_KERNEL_H
#define OS_KERNEL_H

#include <errno.h>
#include <linux/if_xdp.h>
#include <poll.h>

#include "clock.h"

/* Returns whether the error means that the process, or the kernel, lacks resources for now. */
static inline bool kernel_is_short(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

/* ---- descriptors ---- */
void kernel_close(int fd);
/* Returns another descriptor of the same file, close-on-exec, or -errno. */
int kernel_duplicate(int fd);
/* Makes `to`, an open descriptor, another one of fd's file, close-on-exec. */
void kernel_replace(int fd, int to);
/* Returns the limit of open descriptors of this process. */
u32 kernel_descriptors_max(void);
/* Removes the limit (getrlimit(2)), or raises it to the hard limit. A failure is ignored. */
void kernel_raise_limit(int resource);

/* ---- events: a descriptor that is readable from a raise to a clear ---- */
/*
 * Returns a close-on-exec descriptor, or -errno. for_program: a program gets it, as that of a
 * channel, without O_NONBLOCK.
 */
int kernel_event_make(bool for_program);
void kernel_event_raise(int fd);
/*
 * Does not block, also when the event is not raised. A program's descriptor is cleared by one
 * thread at a time.
 */
void kernel_event_clear(int fd);
/*
 * Replaces a descriptor that a forked child shares with its parent by a new one, raised. O_NONBLOCK
 * stays as it is.
 */
void kernel_event_replace(int fd);

/* ---- descriptors that are readable when one of several is (epoll) ---- */
/* Returns a close-on-exec descriptor, or -errno. */
int kernel_set_make(void);
/* Returns 0 or -errno. Closing a descriptor removes it. */
int kernel_set_add(int set, int fd);
void kernel_set_remove(int set, int fd);

/* ---- sleeping ---- */
/*
 * Wait until one of n descriptors is ready, or until until_ns: 0 does not sleep, NSEC_NEVER has no
 * time-out. Return the number of ready descriptors, 0, or -errno: -EINTR for a signal.
 * kernel_sleep() is a cancellation point. If the kernel refuses the call (a seccomp filter),
 * kernel_await() sleeps for 1 ms before it returns the error.
 */
int kernel_sleep(struct pollfd *fds, u32 n, u64 until_ns);
int kernel_await(struct pollfd *fds, u32 n, u64 until_ns);
/* Yields the CPU to other threads. */
void kernel_yield(void);

/* ---- wake-up records: rings that XDP writes to, readable while a record is there ---- */
struct ring_reader;
/* Called for each record, with len bytes of data. A negative result ends kernel_ring_consume(). */
typedef int kernel_record_fn(void *arg, void *data, size_t len);
/* Returns a ring for XROCE_RING_BYTES of records, close-on-exec, or -errno. */
int kernel_ring_make(void);
/* Returns a ring for a number of bytes, a power of two, close-on-exec, or -errno. */
int kernel_ring_make_of(u32 bytes);
/* Makes a reader of a ring of `bytes`, which passes new records to fn. Returns 0 or -errno. */
int kernel_ring_open(int fd, u32 bytes, kernel_record_fn *fn, void *arg, struct ring_reader **out);
/* Frees the reader; the ring's descriptor stays open. */
void kernel_ring_close(struct ring_reader *ring);
/*
 * Passes all complete records to fn. Returns fn's negative result, with whose record it has ended;
 * or 0. Reads nothing outside the ring if its writer stores lengths at will.
 */
int kernel_ring_consume(struct ring_reader *ring);

/* ---- the memory of a ring buffer: positions are in bytes ---- */
struct ring_memory {
	unsigned long *consumer; /* the only field that we write */
	const unsigned long *producer;
	const u8 *data; /* the data mapped twice in a row, so that every record is contiguous */
	u32 bytes;	/* a power of two */
};
/* Maps the ring of fd, which has this many bytes. Returns 0, or -errno with nothing mapped. */
int kernel_ring_map(int fd, u32 bytes, struct ring_memory *out);
void kernel_ring_unmap(const struct ring_memory *memory);

/* ---- maps that XDP reads and that are not mapped here: 0 or -errno ---- */
int kernel_map_get(int map, const void *key, void *value);
int kernel_map_put(int map, const void *key, const void *value);
/* Sums each word over the CPUs, for a per-CPU map with values of `words` words. */
int kernel_map_sum(int map, u32 key, u64 *sums, u32 words);
/* Writes n entries at the cost of one, or none of them. */
int kernel_map_put_all(int map, const void *keys, const void *values, u32 n);
void kernel_map_remove(int map, const void *key);

/*
 * Runs a BPF_PROG_TYPE_SYSCALL program with a context, which it may change. Returns the program's
 * return value, which must not be negative, or -errno if it did not run.
 */
int kernel_program_run(int program, void *context, u32 bytes);

/* Takes the messages that wait at a socket, without waiting for more. */
void kernel_drain(int fd);
/* Sends a message on a socket without waiting. Returns 0 or -errno; -EAGAIN: it has no room. */
int kernel_send(int fd, const void *message, u32 bytes);

/*
 * Makes a ring as kernel_ring_make() does, and puts it into an array of maps. Returns its
 * descriptor or -errno.
 */
static inline int kernel_ring_insert(int map, u32 slot)
{
	const int fd = kernel_ring_make(), err = fd < 0 ? fd : kernel_map_put(map, &slot, &fd);

	if (!err)
		return fd;
	if (fd >= 0)
		kernel_close(fd);
	return err;
}

/* ---- AF_XDP sockets ---- */
/* Start the kernel's work on the transmit ring and on the fill ring. Do not wait. */
void kernel_xsk_send(int fd);
void kernel_xsk_receive(int fd);
/* Reads the socket's drop counters. Returns 0 or -errno. */
int kernel_xsk_count(int fd, struct xdp_statistics *out);
/* Sets close-on-exec, and larger budgets if the kernel and our privileges permit. */
void kernel_xsk_tune(int fd);

/* ---- the rest ---- */
/* Returns shared memory with all pages present; NULL with errno set. */
void *kernel_memory_make(u64 bytes);
void kernel_memory_free(void *area, u64 bytes);
/*
 * Makes a mapping private memory with the same content. A thread that reads it meanwhile finds one
 * or the other. Returns 0 or -errno.
 */
int kernel_memory_make_private(void *area, u64 bytes);
/*
 * Stores random bytes of the kernel, at most 256. Returns 0, or -errno of getrandom(2) if the
 * kernel refuses that call (a seccomp filter) and /dev/urandom cannot be read.
 */
int kernel_random(void *to, size_t bytes);
/*
 * Replaces n random words. A filter that was installed since the first ones were fetched can refuse
 * new ones; then each word gives the next, and distinct words stay distinct.
 */
static inline void kernel_random_renew(u64 *word, u32 n)
{
	if (!kernel_random(word, n * sizeof(*word)))
		return;
	for (u32 i = 0; i < n; i++) {
		word[i] += 0x9e3779b97f4a7c15ull;
		word[i] = (word[i] ^ word[i] >> 30) * 0xbf58476d1ce4e5b9ull;
		word[i] = (word[i] ^ word[i] >> 27) * 0x94d049bb133111ebull;
		word[i] ^= word[i] >> 31;
	}
}
/* Returns the thread ID of the caller. */
u32 kernel_thread_id(void);

#endif
