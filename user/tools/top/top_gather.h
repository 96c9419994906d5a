/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Collects the samples of `xroce top` from the maps of the processes that match its options. */
#ifndef TOP_GATHER_H
#define TOP_GATHER_H

#include "../observe/observe_options.h"
#include "top_model.h"

/*
 * Runs a round of the model, and without --dev follows added and removed interfaces. Returns 0, or
 * -errno with the model unchanged.
 */
int top_gather(struct observe_options *l, struct top_model *m);

#endif
