/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The queue pairs of a port as its maps have them: what their engine says of them (xroce_qp_stat)
 * and what XDP has (xroce_qp), joined by their numbers. All of it is what the process wrote, in
 * bounds but not otherwise to be believed.
 */
#ifndef OBSERVE_QP_VIEW_H
#define OBSERVE_QP_VIEW_H

#include <xroce/stat.h>

#include "observe_options.h"

struct qp_view {
	struct xroce_qp_stat stat; /* qpn 0: of an older library, which has none */
	struct xroce_qp steer;
	bool has_stat, has_steer;  /* XDP has no entry of a QP in RESET */
	u32 qpn;
};

/*
 * Those of an open port that the options of look let through, in the order of their numbers.
 * Returns an array for free(), NULL if there are none. *stats, unless NULL: how many of all have a
 * struct xroce_qp_stat, for which there is room for XROCE_QP_STATS.
 */
struct qp_view *qp_views(const struct observe_options *l, const struct observed *p, u32 *num,
			 u32 *stats);

#endif
