/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A port that is shared with other processes, through the broker of its interface. */
#ifndef ATTACH_SHARED_H
#define ATTACH_SHARED_H

#include "attach.h"

/*
 * Makes a port from the answer of the interface's broker, without privileges; or with sockets, if
 * this process has the privileges and is the only one. Returns 0; -ENOENT
 * without a line: there is no broker; else -errno after a line on standard error. After an error
 * *m owns everything that was made before.
 */
int attach_shared(const struct netdev *dev, struct attachment *m);

#endif
