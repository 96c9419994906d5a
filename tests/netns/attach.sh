#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# How the XDP program is attached (XROCE_ATTACH) where no dispatcher is possible: alone, with a
# message. A dispatcher needs a kernel with freplace: tests/vm/rxe.sh has cases with one.
. "$(dirname "$0")/lib/case.sh"

netns_pair 1500

# server NAME [VARIABLE=VALUE...]: a program that holds A's interface until it is killed.
server() {
	local name=$1
	shift
	start "$name" a env "$@" "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	listens a 18515 || { fail "no server"; show "$name"; }
}
hook() { in_a "$XROCE" list $IF_A | grep '^  XDP' >"$WORK/hook.out"; }

alone() {
	hook
	need_line hook '^  XDP  .*, program [0-9]+ xroce_xdp, exclusive$'
	stop "$server"
	wait_until 5 hook_is_free || { fail "something stays attached"; show hook; }
}
hook_is_free() { hook && grep -q 'nothing attached' "$WORK/hook.out"; }

# No BPF file system: no dispatcher, on any kernel.
no_dispatcher() {
	server asked XROCE_ATTACH=dispatcher LIBXDP_BPFFS=/nonexistent
	need_line asked "^xroce: $IF_A: cannot use an XDP dispatcher: .+; attaching exclusively: "
	alone
	server quiet XROCE_ATTACH=dispatcher LIBXDP_BPFFS=/nonexistent XROCE_QUIET=1
	! grep -q 'XDP dispatcher' "$WORK/quiet.out" || fail "said although quiet"
	alone
}

# None is requested, and none is there.
not_asked() {
	local how
	for how in XROCE_ATTACH=auto XROCE_ATTACH=exclusive A=; do
		server "not_asked" $how
		! grep -q dispatcher "$WORK/not_asked.out" || fail "$how: a dispatcher was tried"
		alone
	done
}

run_case attach_without_dispatcher no_dispatcher
run_case attach_exclusive not_asked
finish_cases
