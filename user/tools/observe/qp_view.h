/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs of a port, joined by QPN from two maps: the engine's view (xroce_qp_stat) and XDP's
 * (xroce_qp). The process wrote all of it: values are in bounds but otherwise not trusted.
 */
#ifndef OBSERVE_QP_VIEW_H
#define OBSERVE_QP_VIEW_H

#include <xroce/stat.h>

#include "observe_options.h"

struct qp_view {
	struct xroce_qp_stat stat; /* qpn 0: an older library without this map */
	struct xroce_qp steer;
	bool has_stat, has_steer;  /* XDP has no entry for a QP in RESET */
	u32 qpn;
};

/*
 * Returns the QPs of an open port that match the options, sorted by QPN, as an array for free();
 * NULL if there are none. Sets *stats, unless NULL, to the number of elements of the port with a
 * struct xroce_qp_stat, of at most XROCE_QP_STATS.
 */
struct qp_view *qp_views(const struct observe_options *l, const struct observed *p, u32 *num,
			 u32 *stats);

#endif
