#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# A process that opens its device as root and drops its privileges can do as much as with an
# adapter's descriptor: it can create, use and destroy every object (cm_dropped.c). Alone on its
# interface, and with a broker. Only raw frames stay refused, as by an adapter without CAP_NET_RAW.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"

STEPS="channels events channels_end channels_again memory srq xrcd moderated multicast
second_context forks rdma_cm cm_multicast before end"

# All steps are good, but that raw packet QPs are refused.
drops() {
	local step
	start dropped a timeout 60 env LD_LIBRARY_PATH="$OWN/lib" "$TOOLS/cm_dropped" $DEV_A $IP4_A
	finish "$child" 60 || { fail "it ended with $?"; show dropped; return; }
	for step in $STEPS; do
		need_line dropped "^$step 0\$"
	done
	need_line dropped "^raw_flow EPERM\$"
}

alone() { drops; }
by_a_broker() {
	serve a $IF_A || return
	drops
	stop "$broker"
}

# A device that nothing was made on is not attached to its interface yet.
late() {
	start late a timeout 60 env LD_LIBRARY_PATH="$OWN/lib" "$TOOLS/cm_dropped" $DEV_A $IP4_A late
	finish "$child" 60 || { fail "it ended with $?"; show late; }
	need_line late "^late $1\$"
}
nothing_made_before() {
	XROCE_PORT=xdp late EPERM
	serve a $IF_A || return
	late 0
	stop "$broker"
}

run_case alone_on_its_interface alone
run_case with_a_broker by_a_broker
run_case nothing_made_before nothing_made_before
finish_cases
