/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A broker: one process that serves interfaces to others, which need no privilege. It holds the XDP
 * hook of each interface, gives each client a program with maps and TAP devices (os/ask.h), and
 * assigns QP numbers. Packets of clients do not pass it.
 *
 * It makes only descriptors and devices, which disappear with it, even if it is killed. Only the
 * TAP devices of live clients remain then; no frame leaves by them.
 */
#ifndef BROKER_H
#define BROKER_H

#include <sys/types.h>

#include <xroce/abi.h>

#include "../os/netdev.h"
#include "../engine/pkey.h"

#define BROKER_SERVICES (XROCE_MAX_SERVICE / 2) /* of all users; each has at most two keys */

#define BROKER_PROGRAM "xroce_mux" /* on the XDP hook */

struct broker_options {
	mode_t mode;	/* of the socket */
	gid_t group;	/* of the socket; -1: the caller's */
	/* of each user; clients with CAP_NET_ADMIN have no limit */
	u32 max_clients, max_qps, max_rings, max_services;
	u32 max_memory_mib; /* kernel memory of each user's clients; as above */
	struct pkey_table pkeys; /* that clients' QPs can use */
	const char *pin; /* the directory that maps are pinned in (pin.h), or NULL */
	gid_t pin_group; /* that may read them; -1: none */
	bool while_used; /* ends shortly after its last client */
	bool udp;	 /* receives by UDP sockets, without privileges */
	bool or_udp;	 /* the same if an XDP program is impossible here */
	const char *why_udp; /* the beginning of the line that reports udp; NULL: no line */
	bool sockets;	 /* it is expected that this has AF_XDP sockets (sole.h); with while_used */
	/* NULL, or called when a broker ends, before its clients and xroce stop notice */
	void (*ends)(void *arg, const struct netdev *dev);
	void *ends_arg;
	int client_fd;	 /* the connection of its first client; -1: none */
};

struct brokers; /* all of a process */

/* Returns 0 or -errno. */
int brokers_make(struct brokers **out);
void brokers_unmake(struct brokers *all);
/*
 * Serves one more interface of the calling thread's network namespace. Returns 0; -EALREADY without
 * a line: the interface has a broker, and this one is for a first client (client_fd); or -errno
 * after a line on standard error and undoing all steps.
 */
int brokers_add(struct brokers *all, const struct netdev *dev, const struct broker_options *o);
/*
 * Serves until all brokers have ended (ASK_STOP, unused, or without their interface), or end_fd is
 * readable. Returns 0 or -errno.
 */
int brokers_run(struct brokers *all, int end_fd);

#endif
