/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls of librdmacm that came with rdma-core 60 and 65, as a program compiled with the header
 * of 65 has them. The library of the build machine may lack them, so each is a pointer that
 * dlvsym(3) sets. Included by one file of a program, which defines _GNU_SOURCE.
 */
#ifndef TESTS_RDMACM_NEWER_H
#define TESTS_RDMACM_NEWER_H

#include <dlfcn.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

/* enum rdma_cm_event_type */
#define ADDRINFO_RESOLVED ((enum rdma_cm_event_type)16)
#define ADDRINFO_ERROR	  ((enum rdma_cm_event_type)17)
#define USER		  ((enum rdma_cm_event_type)18)
#define INTERNAL	  ((enum rdma_cm_event_type)19)
enum { FLAG_SA = 0x10, FLAG_DNS = 0x20 };

/* X(node, symbol, name, arguments): `name` points to `symbol` of RDMACM_`node`. */
#define NEWER_CALLS(X)                                                                             \
	X(1.4, rdma_resolve_addrinfo, v_resolve_addrinfo,                                          \
	  (struct rdma_cm_id *, const char *, const char *, const struct rdma_addrinfo *))         \
	X(1.4, rdma_query_addrinfo, v_query_addrinfo,                                              \
	  (struct rdma_cm_id *, struct rdma_addrinfo **))                                          \
	X(1.4, rdma_write_cm_event, v_write_cm_event,                                              \
	  (struct rdma_cm_id *, enum rdma_cm_event_type, int, uint64_t))                           \
	X(1.5, repoll_create, v_repoll_create, (int))                                              \
	X(1.5, repoll_ctl, v_repoll_ctl, (int, int, int, struct epoll_event *))                    \
	X(1.5, repoll_wait, v_repoll_wait, (int, struct epoll_event *, int, int))

#define X(node, symbol, name, arguments) __attribute__((unused)) static int(*name) arguments;
NEWER_CALLS(X)
#undef X

/* The first symbol that the library lacks in its node, or NULL. */
static const char *newer_missing;

__attribute__((constructor)) static void find_newer(void)
{
#define X(node, symbol, name, arguments)                                                   \
	name = (int(*) arguments)dlvsym(RTLD_DEFAULT, #symbol, "RDMACM_" #node);           \
	if (!name && !newer_missing)                                                       \
		newer_missing = #symbol;
	NEWER_CALLS(X)
#undef X
}

#endif
