/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the making of a port says when it fails: a line on standard error that names the remedy. */
#ifndef ATTACH_COMPLAIN_H
#define ATTACH_COMPLAIN_H

#include "../netdev/netdev.h"

/* "xroce: IFACE: text" */
void attach_complain(const struct netdev *dev, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The line for a step that failed for no reason of its own. Returns err, -EPERM for -EACCES. */
int attach_failed(const struct netdev *dev, const char *step, int err);

#endif
