/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages about a port that cannot be made: a line on standard error that names the remedy. */
#ifndef CLIENT_ATTACH_ERROR_H
#define CLIENT_ATTACH_ERROR_H

#include "../os/netdev.h"

/* Prints "xroce: IFACE: text". */
void attach_complain(const struct netdev *dev, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The remedy in a container that has the interface's network namespace, but no broker's socket. */
#define ATTACH_MOUNT "mount the host's /run/xroce into this container (-v /run/xroce:/run/xroce)"

/*
 * Returns whether the interface's holder admits others at a socket that does not exist here. The
 * holder is in another PID namespace, or ASK_DIR does not exist either.
 */
bool attach_lacks_mount(const struct netdev *dev);
/* The same of a holder in another PID namespace alone: another one may be starting. */
bool attach_holder_is_outside(const struct netdev *dev);
/* Prints the line for attach_lacks_mount(). Returns false, without a line, if that is false. */
bool attach_complain_of_mount(const struct netdev *dev);

/*
 * Prints the line for a limit of the broker: -EDQUOT, the user's, which `xroce serve OPTION` sets;
 * -ENOSPC, the limit of all users. Returns -ENOSPC for both. Returns another err without a line.
 */
int attach_limited(const char *name, const char *what, const char *option, int err);

/* Prints the line for a step without a special message. Returns err, or -EPERM for -EACCES. */
int attach_failed(const struct netdev *dev, const char *step, int err);
/* The same for kernel_random(). */
int attach_failed_random(const struct netdev *dev, int err);

/* Prints the line for an interface that another process owns. Returns -EBUSY. */
int attach_in_use(const struct netdev *dev);

#endif
