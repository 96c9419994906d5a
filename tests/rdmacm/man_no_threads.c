/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * A process that may make no more threads (RLIMIT_NPROC, RLIMIT_AS): what its event channels have
 * by then serves it, and connections are made as before.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

#include "man.h"

static bool no_more; /* pthread_create() fails */
static int refused;  /* calls that failed so */

/* In place of the C library's, for librdmacm and libibverbs too. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		(int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
			RTLD_NEXT, "pthread_create");

	if (__atomic_load_n(&no_more, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
		return EAGAIN;
	}
	return create(thread, attr, fn, arg);
}

static bool connections_body(struct link *l, int family)
{
	MUST(link_open(l, family, RDMA_PS_TCP));
	/* threads that have nothing to do end after a second */
	sleep(2);
	__atomic_store_n(&no_more, true, __ATOMIC_RELAXED);
	MUST(link_request(l, NULL));
	MUST(link_accept(l, NULL));
	MUST(link_established(l));
	MUST(__atomic_load_n(&refused, __ATOMIC_RELAXED) > 0);
	return true;
}

static bool connections(int family)
{
	struct link l = { 0 };
	bool good = connections_body(&l, family);

	good = link_close(&l) && good;
	__atomic_store_n(&no_more, false, __ATOMIC_RELAXED);
	refused = 0;
	return good;
}
BOTH(connections)

const struct test_case man_cases[] = {
	CASE(connections_v4),
	CASE(connections_v6),
	{ 0 },
};
