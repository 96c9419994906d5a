/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A broker: one process that serves interfaces to others, which need no privilege. It has the XDP
 * hook of each interface, gives each client a program, maps and a TAP device of its own
 * (os/ask.h), and says whose a QP number is. It never sees a packet.
 *
 * What it makes are descriptors and devices: nothing of it stays after its end, however it ends,
 * but the TAP devices of clients that live, by which nothing leaves any more.
 */
#ifndef BROKER_H
#define BROKER_H

#include <sys/types.h>

#include <xroce/abi.h>

#include "../attach/inherit.h"
#include "../os/netdev.h"
#include "../engine/pkey.h"

#define BROKER_SERVICES (XROCE_MAX_SERVICE / 2) /* of all users: each has two keys at most */

/* The program that it has on the hook. */
#define BROKER_PROGRAM "xroce_mux"

struct broker_options {
	mode_t mode;	/* of the socket */
	gid_t group;	/* of the socket; -1: the caller's */
	u32 max_clients, max_qps, max_rings, max_services; /* of each user but root */
	u32 max_memory_mib; /* of each user but root: kernel memory for its clients */
	struct pkey_table pkeys; /* that clients' QPs can use */
	const char *pin; /* the directory that maps are pinned in (attach/pin.h), or NULL */
	gid_t pin_group; /* that may read them; -1: none */
	bool while_used; /* it ends a moment after its last client has gone */
	/* NULL, or called when one ends, before its clients and whoever ends it hear of that */
	void (*ends)(void *arg, const struct netdev *dev);
	void *ends_arg;
	bool inherits;	 /* from a process that has the interface alone: */
	int inherited[INHERITS]; /* -1: not that */
};

struct brokers; /* of a process */

/* Returns 0 or -errno. */
int brokers_make(struct brokers **out);
void brokers_unmake(struct brokers *all);
/*
 * Serves one more interface, of the calling thread's network namespace. Returns 0, or -errno after
 * a line on standard error; nothing of this one is left then.
 */
int brokers_add(struct brokers *all, const struct netdev *dev, const struct broker_options *o);
/*
 * Until all have ended (asked to, or their interfaces have gone), or until end_fd is readable.
 * Returns 0 or -errno.
 */
int brokers_run(struct brokers *all, int end_fd);

#endif
