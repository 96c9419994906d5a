/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls of a port at work to the kernel: all of them, with the clock (clock.h). The rooms run
 * and port, and of io the AF_XDP sockets, make these calls and no others (scripts/check-kernel.sh).
 * tests/portsim has functions of the same names, and so runs ports without a kernel.
 *
 * Not here: threads and locks, which are POSIX's; AF_XDP sockets, which libxdp makes, and their
 * rings; arm words and counters, which are shared memory; the code that makes a port (attach/, the
 * files of interfaces in os/, the ways out in io/); faults of memory (run/fault.c).
 *
 * None is a cancellation point but kernel_sleep(): callers hold locks.
 */
#ifndef OS_KERNEL_H
#define OS_KERNEL_H

#include <linux/if_xdp.h>
#include <poll.h>

#include "clock.h"

/* ---- descriptors ---- */
void kernel_close(int fd);
/* Another for the same file, close-on-exec, or -errno. */
int kernel_duplicate(int fd);
/* As many as this process may have. */
u32 kernel_descriptors_max(void);

/* ---- kicking: a descriptor that is readable from a raise to a clear ---- */
/* Close-on-exec, or -errno. */
int kernel_event_make(void);
void kernel_event_raise(int fd);
void kernel_event_clear(int fd);
/*
 * In a forked child: another, which is raised, in place of a descriptor that is the parent's as
 * well.
 */
void kernel_event_replace(int fd);

/* ---- descriptors that are readable when one of several is (epoll) ---- */
/* Close-on-exec, or -errno. */
int kernel_set_make(void);
/* Returns 0 or -errno. A descriptor that is closed leaves. */
int kernel_set_add(int set, int fd);
void kernel_set_remove(int set, int fd);

/* ---- sleeping ---- */
/*
 * Until one of n descriptors is as asked, or until then: 0 does not sleep, NSEC_NEVER is for ever.
 * Returns how many are, 0, or -errno: -EINTR for a signal. kernel_sleep() is a cancellation point.
 */
int kernel_sleep(struct pollfd *fds, u32 n, u64 until_ns);
int kernel_await(struct pollfd *fds, u32 n, u64 until_ns);
/* Others may run first. */
void kernel_yield(void);

/* ---- wake-up records: rings that XDP writes to, readable while a record is there ---- */
struct ring_reader;
/* Called for each record, with data of len bytes; returns 0. */
typedef int kernel_record_fn(void *arg, void *data, size_t len);
/* A ring for XROCE_RING_BYTES of records, close-on-exec, or -errno. */
int kernel_ring_make(void);
/* One for that many bytes of records, a power of two. Returns it, close-on-exec, or -errno. */
int kernel_ring_make_of(u32 bytes);
/* fn is told what is written to a ring from here on. Returns 0 or -errno. */
int kernel_ring_open(int fd, kernel_record_fn *fn, void *arg, struct ring_reader **out);
/* The ring's descriptor stays. */
void kernel_ring_close(struct ring_reader *ring);
/* Tells fn of the records that are whole. */
void kernel_ring_consume(struct ring_reader *ring);

/* ---- the memory of a ring buffer: positions are in bytes ---- */
struct ring_memory {
	unsigned long *consumer; /* ours to write, and nothing else */
	const unsigned long *producer;
	const u8 *data; /* bytes of it twice in a row, so that every record is in one piece */
	u32 bytes;	/* a power of two */
};
/* fd has that many bytes. Returns 0, or -errno, and then there is nothing to unmap. */
int kernel_ring_map(int fd, u32 bytes, struct ring_memory *out);
void kernel_ring_unmap(const struct ring_memory *memory);

/* ---- maps that XDP reads and that are no memory of ours: 0 or -errno ---- */
int kernel_map_get(int map, const void *key, void *value);
int kernel_map_put(int map, const void *key, const void *value);
/* Of a per-CPU map whose values are so many words: each word's sum over the CPUs. */
int kernel_map_sum(int map, u32 key, u64 *sums, u32 words);
/* n at once, at the price of one; or none of them. */
int kernel_map_put_all(int map, const void *keys, const void *values, u32 n);
void kernel_map_remove(int map, const void *key);

/*
 * Runs a program of BPF_PROG_TYPE_SYSCALL with that context, which it may change. Returns what it
 * does, which must not be below 0, or -errno: it has not run.
 */
int kernel_program_run(int program, void *context, u32 bytes);

/* ---- AF_XDP sockets ---- */
/* Look at the transmit ring; at the fill ring. Does not wait. */
void kernel_xsk_send(int fd);
void kernel_xsk_receive(int fd);
/* What the socket has lost. Returns 0 or -errno. */
int kernel_xsk_count(int fd, struct xdp_statistics *out);
/* Close-on-exec, and with larger budgets where the kernel and our privileges have them. */
void kernel_xsk_tune(int fd);

/* ---- the rest ---- */
/* Shared memory of that size, all of it there; NULL with errno set. */
void *kernel_memory_make(u64 bytes);
void kernel_memory_free(void *area, u64 bytes);
void kernel_random(void *to, size_t bytes);
/* Of the calling thread. */
u32 kernel_thread_id(void);

#endif
