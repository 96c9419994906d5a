/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the making of a port says when it fails: a line on standard error that names the remedy. */
#ifndef ATTACH_ERROR_H
#define ATTACH_ERROR_H

#include "../os/netdev.h"

/* "xroce: IFACE: text" */
void attach_complain(const struct netdev *dev, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The remedy in a container that has the network namespace of the interface, and not the broker. */
#define ATTACH_MOUNT "mount the host's /run/xroce into this container (-v /run/xroce:/run/xroce)"

/*
 * Tells whether a process of another PID namespace lets others in, and its socket is not here (or
 * ASK_DIR is not here at all).
 */
bool attach_lacks_mount(const struct netdev *dev);
/* The line for that. Returns false, without a line, if it is not so. */
bool attach_complain_of_mount(const struct netdev *dev);

/*
 * The line for a limit of the broker's that was met: -EDQUOT the user's, which `xroce serve OPTION`
 * sets, or -ENOSPC that of all; nothing for another err. Returns -ENOSPC for both, or err.
 */
int attach_limited(const char *name, const char *what, const char *option, int err);

/* The line for a step that failed for no reason of its own. Returns err, -EPERM for -EACCES. */
int attach_failed(const struct netdev *dev, const char *step, int err);

/* The line for an interface that another process has. Returns -EBUSY. */
int attach_in_use(const struct netdev *dev);

#endif
