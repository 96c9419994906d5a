/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Delivers a packet to a multicast group with members in several clients. Their programs take
 * turns: xroce_mux notes the order and runs the first program, which takes its copy and runs the
 * next. The last is the program of the process with sockets, which passes the packet itself on.
 *
 * A CPU processes one packet from start to end, so the note is per CPU. The kernel allows 33 tail
 * calls, which determines XROCE_GROUP_CLIENTS.
 */
#ifndef BPF_TURN_H
#define BPF_TURN_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <xroce/abi.h>

/* The broker's map, which replaces the one of each client's program. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xroce_turn);
} xroce_turn SEC(".maps");

static __always_inline struct xroce_turn *turn_note(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&xroce_turn, &zero);
}

/*
 * Runs the next client's program from a PROG_ARRAY indexed by client, and does not return. Skips
 * clients that have just ended; returns if none is left.
 */
static __always_inline void turn_pass(struct xdp_md *ctx, void *programs)
{
	struct xroce_turn *turn = turn_note();

	if (!turn)
		return;
	for (__u32 i = 0; i < XROCE_GROUP_CLIENTS; i++) {
		const __u32 at = turn->next;

		if (at >= turn->to.num || at >= XROCE_GROUP_CLIENTS)
			return;
		turn->next = at + 1;
		bpf_tail_call(ctx, programs, turn->to.client[at]);
	}
}

#endif
