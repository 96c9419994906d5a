/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors that a broker inherits from the process that owned the interface alone, and started
 * it for a visitor (first.h): from INHERIT_AT on, in this order, by `xroce serve --inherit N`.
 */
#ifndef ATTACH_INHERIT_H
#define ATTACH_INHERIT_H

enum inherit {
	INHERIT_DOOR,	 /* listens at the broker's path */
	INHERIT_HOLDER,	 /* the interface's name (netdev_hold()) */
	INHERIT_LINK,	 /* attaches that process's program, later the broker's */
	INHERIT_PROGRAM, /* that process's program, which stays its own */
	INHERIT_FIRST,	 /* the connection to that process */
	INHERIT_VISITOR, /* a connection accepted at the door, which asks for a port */
	INHERIT_HAIRPIN, /* from an earlier broker of that process; the first gets none */
	INHERITS
};

#define INHERIT_AT 3

#endif
