/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The properties of a port. */
#ifndef CLIENT_PORT_INFO_H
#define CLIENT_PORT_INFO_H

#include "../engine/pkey.h"

/* How XDP is attached and what the sockets can do; for `xroce list` and messages. */
struct port_info {
	bool shared;	    /* receives by a ring buffer, not by AF_XDP sockets */
	/* with shared: the frames that the UDP sockets of the broker hold; 0: by XDP */
	u32 udp_frames;
	u32 client;	    /* this process's number at the broker */
	bool native;	    /* XDP mode; false: generic (SKB) */
	bool zero_copy;
	bool multibuffer;
	u32 queues;
	u32 shards;
	u32 prog_id;
	struct pkey_table pkeys;
};

#endif
