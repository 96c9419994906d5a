/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A port that other processes have as well, by the broker of its interface. */
#ifndef ATTACH_SHARED_H
#define ATTACH_SHARED_H

#include "attach.h"

/*
 * Ask the interface's broker, and make of its answer what attach_make() returns. Takes no
 * privilege. Returns 0; -ENOENT: there is no broker, which is not said; else -errno after a line on
 * standard error. What was made before an error is *m's.
 */
int attach_shared(const struct netdev *dev, struct attachment *m);

#endif
