# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A bad cable between the ends of netns_chain: tests/netns/impair.c loses, repeats and reorders what
# it forwards. Sourced after case.sh.

cable=
# cable_with OPTION-OF-IMPAIR...: in place of the one before.
cable_with() {
	[ -z "$cable" ] || { stop "$cable"; cable=; }
	start cable p "$TOOLS/impair" "$@" pa pb
	cable=$child
	wait_until 5 grep -q forwarding "$WORK/cable.out" || { fail "impair does not start"; show cable; }
	wait_until 10 in_a ping -q -c 1 -W 1 $IP4_B || fail "no path from A to B"
}

# cable_did [dropped|duplicated|reordered]...: its own words. It did impair something, or the case
# has shown nothing.
cable_did() {
	local what
	kill "$cable"
	finish "$cable" 5
	cable=
	for what in "$@"; do
		need_line cable "$what [1-9]"
	done
}
