/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Put before libibverbs by LD_PRELOAD: a program stops before it destroys its first queue pair, or
 * as it ends without that, and goes on at SIGCONT. Until then its maps can be pinned, however short
 * its run was.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>

struct ibv_qp;

static int (*destroy)(struct ibv_qp *);

int ibv_destroy_qp(struct ibv_qp *qp)
{
	if (!destroy) {
		*(void **)&destroy = dlsym(RTLD_NEXT, "ibv_destroy_qp");
		raise(SIGSTOP);
	}
	return destroy(qp);
}

__attribute__((destructor)) static void end(void)
{
	if (!destroy && dlsym(RTLD_DEFAULT, "ibv_open_device"))
		raise(SIGSTOP);
}
