/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a process holds: to see that objects that come and go leave nothing, neither in the process
 * nor in the kernel. The address sanitizer keeps what was freed, so under it pages do not count:
 * its leak checker does (san.sh).
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
	long promiscuity; /* how often interfaces were asked to take all frames */
};

bool held_now(struct held *h);

/*
 * After so many cycles the process holds what it held before, but for what caches keep: no object
 * is so small.
 */
bool held_same(const struct held *before, const struct held *after, int cycles);

/*
 * cycle(0), cycle(1), ... make and unmake an object: so many of them (XROCE_CYCLES; 10,000), after
 * some to warm up, must leave nothing.
 */
bool leaves_nothing(bool (*cycle)(int i), int cycles);
int cycles_wanted(void);

#endif
