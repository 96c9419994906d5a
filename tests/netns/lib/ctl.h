/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared parts of this directory's test programs other than verbs: the exit on failure, and the TCP
 * connection over which two programs agree. The connection carries addresses and barriers, never
 * the data under test.
 */
#ifndef NETNS_CTL_H
#define NETNS_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Longest that anything is waited for. It never decides that something is right, only that
 * something will not come.
 */
#define WAIT_MS 20000

/* Print one line on standard error and exit with 1. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#define must(condition, ...)            \
	do {                            \
		if (!(condition))       \
			die(__VA_ARGS__); \
	} while (0)

uint64_t now_ms(void);

/* host NULL: listen on port and take one connection; else connect. Returns the socket. */
int ctl_open(const char *host, const char *port);
/* Send len bytes and receive as many. */
void ctl_swap(int fd, const void *mine, void *theirs, size_t len);
/* Both sides are at the same point: tag must be equal. */
void ctl_barrier(int fd, uint32_t tag);
/*
 * Prints "rests", and keeps all objects until a writer opens the FIFO: the counters can be read
 * until then.
 */
void ctl_rest(const char *fifo);

#endif
