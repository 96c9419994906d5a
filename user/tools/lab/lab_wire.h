/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What happens to a frame on the lab's cable, by its rules. Pure: no system call, no clock. It
 * remembers the QPs and PSNs that it has seen in each direction, so that rules can name them.
 */
#ifndef LAB_WIRE_H
#define LAB_WIRE_H

#include "../../fault/lab_rule.h"

enum { LAB_RULES = 64, LAB_FLOWS = 4096 };

struct lab_flow;

struct lab_wire {
	u64 seed;
	u32 num_rules;
	struct lab_rule rules[LAB_RULES];
	/* the QPs that packets were sent to, by direction; flows: requests and responses of each */
	u32 num_qps[LAB_HOSTS + 1][LAB_HOSTS + 1];
	struct lab_flow *flows[LAB_FLOWS];
	u32 num_flows;
	u64 packets; /* RoCEv2 */
	u64 untold;  /* packets of QPs beyond LAB_FLOWS, which count as first transmissions */
};

/* What the rules do to a frame. */
struct lab_fate {
	bool drop, swap, mark;
	u32 copies; /* more than one frame */
	u64 delay_ns;
	u32 corrupt; /* a bit for each enum lab_part */
	u64 rules;   /* that have hit it, a bit each */
	struct lab_identity id;
};
_Static_assert((u32)LAB_RULES <= 64, "bits of rules");

/* Decides about a frame from one host to another. Returns true if it is a RoCEv2 packet. */
bool lab_wire_decide(struct lab_wire *w, u32 from, u32 to, const u8 *frame, u32 len,
		     struct lab_fate *fate);
/*
 * Corrupts parts of a frame of len bytes, and marks it "congestion experienced". The IPv4 and UDP
 * checksums stay right.
 */
void lab_wire_change(u8 *frame, u32 len, const struct lab_fate *fate);
void lab_wire_free(struct lab_wire *w);

#endif
