/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Values and calls that <rdma/rdma_cma.h> has since rdma-core 60, for builds against older headers.
 * The names of enumerators differ, as a newer header has them too; the calls' declarations are the
 * same there.
 */
#ifndef RDMACM_NEWER_H
#define RDMACM_NEWER_H

#include <rdma/rdma_cma.h>

/* enum rdma_cm_event_type */
#define EVENT_ADDRINFO_RESOLVED ((enum rdma_cm_event_type)16)
#define EVENT_ADDRINFO_ERROR	((enum rdma_cm_event_type)17)
#define EVENT_USER		((enum rdma_cm_event_type)18)

/* rdma_addrinfo.ai_flags; without one of them, DNS. */
#ifndef RAI_SA
#define RAI_SA	0x00000010
#define RAI_DNS 0x00000020
#endif

int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg);

#endif
