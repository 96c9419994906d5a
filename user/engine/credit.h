/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* End-to-end credits. Private to user/engine. */
#ifndef ENGINE_CREDIT_H
#define ENGINE_CREDIT_H

#include "internal.h"

u8 credit_syndrome(const struct engine *e, const struct qp *qp);
/* Updates the credits from the peer's AETH. */
void credit_update(struct engine *e, struct qp *qp, u8 syndrome, u32 msn);
/* Returns whether the peer reported a receive WQE for this message, or none is needed. */
bool credit_covers(const struct qp *qp, const struct send_wqe *wqe, u32 index);
/* Returns whether this message may start; counts a wait. */
bool credit_allows(struct engine *e, struct qp *qp, const struct send_wqe *wqe, u32 index);

#endif
