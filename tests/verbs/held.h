/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Resources that a process holds: shows that created and destroyed objects leave nothing, neither
 * in the process nor in the kernel. The address sanitizer keeps freed memory, so under it pages do
 * not count: its leak checker does (`make SAN=1`).
 */
#ifndef TESTS_VERBS_HELD_H
#define TESTS_VERBS_HELD_H

#include "contract.h"

struct held {
	long pages, mappings, descriptors, threads;
	long heap;    /* bytes of malloc(3) in use */
	long entries; /* of the process's BPF hash maps: QPs, addresses, multicast groups */
	long kernel;  /* bytes of memory that the kernel counts for its BPF maps */
	long groups;  /* that the kernel has joined in this network namespace */
	long promiscuity; /* sum of the interfaces' promiscuity */
};

bool held_now(struct held *h);

/*
 * After `cycles` cycles the process holds as much as before, except for caches: any leaked object
 * would exceed them.
 */
bool held_same(const struct held *before, const struct held *after, int cycles);

/*
 * cycle(0), cycle(1), ... make and destroy an object: XROCE_CYCLES of them (10,000), after some to
 * warm up, must leave nothing.
 */
bool leaves_nothing(bool (*cycle)(int i), int cycles);
int cycles_wanted(void);

#endif
