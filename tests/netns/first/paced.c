/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Put before libibverbs by LD_PRELOAD: a program that sleeps on events, as ibv_rc_pingpong -e does,
 * rests for 2 ms before each. So a pingpong without an end leaves the processors to others.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

struct ibv_comp_channel;
struct ibv_cq;

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	static int (*get)(struct ibv_comp_channel *, struct ibv_cq **, void **);
	const struct timespec rest = { .tv_nsec = 2000000 };

	if (!get)
		*(void **)&get = dlsym(RTLD_NEXT, "ibv_get_cq_event");
	nanosleep(&rest, NULL);
	return get(channel, cq, context);
}
