/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A packet to a multicast group that several clients have members of. Each of their programs has
 * its turn: xroce_mux notes whose, and runs the first one; that takes its copy and runs the next.
 * One that hands the packet itself on, the process with sockets, is the last.
 *
 * On one CPU one packet is looked at from the beginning to the end: the note is each CPU's own. The
 * kernel runs 33 programs in place of one another, which is why XROCE_GROUP_CLIENTS is what it is.
 */
#ifndef BPF_TURN_H
#define BPF_TURN_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <xroce/abi.h>

/* The broker's, which each client's program has in place of its own. */
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
 * Run the next one's program, of the PROG_ARRAY that has them by client: does not return then.
 * Those that have just gone are left out; it returns when nobody is left.
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
