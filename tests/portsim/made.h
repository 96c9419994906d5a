/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ports of the simulated machine: ports_make() of a port on nic.c in place of the kernel, and the
 * interfaces that user/os would report. Everything else of a port is the real code.
 */
#ifndef PORTSIM_MADE_H
#define PORTSIM_MADE_H

#include "../../user/port/port.h"
#include "nic.h"

/* Of both interfaces. */
struct made_options {
	u32 queues, shards;
	u32 path_mtu;
	u32 rx_frames; /* of each queue: a power of two */
	/* the interfaces are shared with other processes: ports receive by a ring buffer */
	bool shared;
	u32 ring_bytes;
	bool no_rings; /* completion channels get none */
	struct nic_options nic;
};
void made_begin(const struct made_options *o);
/* Whether rings of channels are refused. */
bool made_refuses_rings(void);
/* The interface of that number. */
void made_netdev(u32 number, struct netdev *dev);
struct gid made_gid(u32 number);

#endif
