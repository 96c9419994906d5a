/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An RC queue pair between two programs, or two sides of one: its states, its requests. */
#ifndef NETNS_RC_H
#define NETNS_RC_H

#include <infiniband/verbs.h>

#define RC_ACCESS \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* What one side tells the other. */
struct rc_address {
	union ibv_gid gid;
	uint32_t qpn, psn, rkey, bytes;
	uint64_t addr;
};

/* Options of an RC connection; zero-initialise the rest. */
struct rc_options {
	uint8_t gid_index;
	uint8_t timeout, retry_cnt, rnr_retry; /* as in ibv_modify_qp(3) */
	uint16_t pkey_index;
	enum ibv_mtu path_mtu; /* 0: 1024 bytes */
};

/* RESET to RTS against the peer; depth 8 of READs and atomics. Also a UC QP. Returns errno. */
int rc_try_connect(struct ibv_qp *qp, const struct rc_address *own, const struct rc_address *peer,
		   const struct rc_options *o);
/* The same; dies if refused. */
void rc_connect(struct ibv_qp *qp, const struct rc_address *own, const struct rc_address *peer,
		const struct rc_options *o);
void rc_reset(struct ibv_qp *qp);
/* A completion in bounded time; dies with what if there is none. */
struct ibv_wc rc_wait(struct ibv_cq *cq, const char *what);

#endif
