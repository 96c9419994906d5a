/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The samples of `xroce top`, from the maps of the processes that its options let through. */
#ifndef TOP_GATHER_H
#define TOP_GATHER_H

#include "../observe/observe_options.h"
#include "top_model.h"

/*
 * A round of the model. Interfaces that have come or gone since the last one are noticed, if none
 * is named. Returns 0 or -errno, then the model is what it was.
 */
int top_gather(struct observe_options *l, struct top_model *m);

#endif
