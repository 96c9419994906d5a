/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a broker begins with that a process starts which has the interface alone, since another has
 * come (first.h): descriptors from INHERIT_AT on, in this order, by `xroce serve --inherit N`.
 */
#ifndef ATTACH_INHERIT_H
#define ATTACH_INHERIT_H

enum inherit {
	INHERIT_DOOR,	 /* listens at the broker's path */
	INHERIT_HOLDER,	 /* the interface's name (netdev_hold()) */
	INHERIT_LINK,	 /* of the program on the interface: the broker's own follows */
	INHERIT_PROGRAM, /* that program: it stays the first process's */
	INHERIT_FIRST,	 /* the connection of that process */
	INHERIT_VISITOR, /* one that was taken at the door and has asked for a port */
	INHERIT_HAIRPIN, /* of an earlier broker of that process; the first has none */
	INHERITS
};

#define INHERIT_AT 3

#endif
