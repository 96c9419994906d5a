/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the tests of access rights share: what each operation needs, by the specification, and a try
 * of one.
 */
#ifndef TESTS_VERBS_RIGHTS_H
#define TESTS_VERBS_RIGHTS_H

#include "wr.h"

#define L_WRITE	 IBV_ACCESS_LOCAL_WRITE
#define R_WRITE	 IBV_ACCESS_REMOTE_WRITE
#define R_READ	 IBV_ACCESS_REMOTE_READ
#define R_ATOMIC IBV_ACCESS_REMOTE_ATOMIC
#define R_FLUSH	 ACCESS_FLUSH_GLOBAL
#define MW_BIND	 IBV_ACCESS_MW_BIND

#define REFUSED	  IBV_WC_REM_ACCESS_ERR	 /* the key does not allow it */
#define DISABLED  IBV_WC_REM_INV_REQ_ERR /* the QP does not */
#define WORD_SIZE 8u

/* The operations of the service that carry a remote address; OPS after the last. */
const enum wr_code *remote_ops_of(const struct wr_ends *e);
#define EACH_REMOTE_OP(e, op) (const enum wr_code *op = remote_ops_of(e); *op != OPS; op++)

/* The right that an operation needs of the key and of the peer's QP. */
int right_of(enum wr_code op);

/* The i-th subset of these bits, for i below 1 << their number; -1 when there are no more. */
int subset(int bits, int i);

/* "If IBV_ACCESS_REMOTE_WRITE or IBV_ACCESS_REMOTE_ATOMIC is set, then [...] LOCAL_WRITE" */
bool may_be_registered(int access);

/*
 * End 0 does this to 8 bytes at `remote`, which are `at` in end 1's memory. It must end with this
 * status; then bytes, completions, states and events of both ends must follow from that, and after
 * an error both ends are made again. On UC the status is the responder's: the requester succeeds
 * all the same, without a report.
 */
bool try(struct wr_ends *e, enum wr_code op, uint32_t rkey, uint64_t remote, uint32_t at,
	 int status);

/* RTS to RTS: the rights of end 1's QP, which is at work. */
bool change_access(struct wr_ends *e, int access);

#define ON(service, name, body)                              \
	static bool name(void)                               \
	{                                                    \
		return on_service(IBV_QPT_##service, body);  \
	}

#endif
