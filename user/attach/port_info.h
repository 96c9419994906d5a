/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What was made of an interface, in numbers. */
#ifndef ATTACH_PORT_INFO_H
#define ATTACH_PORT_INFO_H

#include "../engine/pkey.h"

/* How XDP is attached and what the sockets can do; for `xroce list` and messages. */
struct port_info {
	bool shared;	    /* with other processes, by a broker; else this one has it alone */
	u32 client;	    /* with shared: this one's number with the broker */
	bool native;	    /* else generic (SKB) mode */
	bool zero_copy;
	bool multibuffer;
	u32 queues;
	u32 shards;
	u32 prog_id;
	u32 path_mtu;	    /* largest, with what this port has */
	struct pkey_table pkeys;
};

#endif
