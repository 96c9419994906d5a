# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Changes that programs leave on the interfaces of the namespaces ENDS. Sourced after case.sh.
#
#   there_is >"$WORK/before.out"	before a program starts
#   nothing_left			fails the case if something is left 10 s after its end

# Lists everything that our programs could leave on interfaces. ip complains of names of namespaces
# that another program deletes at that moment.
there_is() {
	local ns
	for ns in "${ENDS[@]}"; do
		in_ns $ns ip -o link | sed -E 's/ (state|mode|qdisc) [^ ]+//g'
		in_ns $ns ip rule
		in_ns $ns ip -6 rule
		in_ns $ns tc qdisc show
		in_ns $ns bpftool net show
	done 2>&1 | grep -v '^Error: Peer netns reference is invalid'
}
is_as_before() { there_is >"$WORK/after.out" && cmp -s "$WORK/before.out" "$WORK/after.out"; }
nothing_left() {
	wait_at_most 10 is_as_before && return
	diff "$WORK/before.out" "$WORK/after.out" >"$WORK/differs.out"
	fail "something is left"
	show differs
}
