/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lab's cable: a process that forwards frames between the hosts' links, as a switch does, and
 * treats RoCEv2 packets as the rules say (lab_wire.h).
 */
#ifndef LAB_CABLE_H
#define LAB_CABLE_H

#include "lab_net.h"
#include "lab_wire.h"

struct cable_plan {
	u32 num; /* hosts */
	const struct lab_host *hosts;
	u32 mtu;
	u64 delay_ns;	     /* of each frame */
	u64 bits_per_second; /* 0: no limit */
	int capture_fd;	     /* of a pcapng file of all frames; -1: none */
};

/* In memory that the cable shares with its parent. */
struct cable {
	struct lab_wire wire;
	_Atomic u32 partitioned; /* all frames are dropped */
	_Atomic u32 path_mtu;	 /* frames with more bytes after their header are; 0: none */
	/* a change of rules; its maker writes a byte, and waits until changes has grown */
	struct lab_rule change;
	u32 change_at;	     /* its place in wire.rules */
	_Atomic u32 changes; /* that are done */
	int capture_err;     /* -errno of the capture */
	u64 forwarded;
	u64 lost_ring, lost_queue, too_long; /* frames that the cable could not forward */
};

/*
 * Forwards until the end of control_fd; then sends the frames that it holds, and returns. A byte
 * from control_fd makes it apply the change of rules. Writes a byte to ready_fd when it forwards.
 * Returns 0 or -errno.
 */
int cable_run(struct cable *c, const struct cable_plan *plan, int ready_fd, int control_fd);

#endif
