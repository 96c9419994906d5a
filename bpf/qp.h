/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the entry of a QP in xroce_qp. */
#ifndef BPF_QP_H
#define BPF_QP_H

#include "maps.h"
#include "wake.h"

/* Returns the entry, or NULL. */
static __always_inline struct xroce_qp *qp_find(__u32 qpn)
{
	__u32 slot = XROCE_QP_SLOT(qpn);
	struct xroce_qp *qp = bpf_map_lookup_elem(&xroce_qp, &slot);

	/* pairs with the release in steer_publish() (user/run/steer.c) */
	return qpn && qp && READ_ONCE(qp->qpn) == qpn ? qp : NULL;
}

#endif
