#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# The variables of user/os/options.c, of the rules of an endpoint and of user/rspreload are in the
# documents, and the documents name no others.
. "$(dirname "$0")/../netns/lib/case.sh"

variables() {
	grep -ohE '"XROCE_[A-Z_]+"' user/os/options.c user/verbs/fault.c user/rspreload/*.c | tr -d '"' | sort -u
}

documented() {
	local v
	for v in $(variables); do
		grep -qx ".It Ev $v" man/xroce.7 || fail "$v is not in xroce(7)"
	done
	[ -n "$v" ] || fail "no variable found"
}

none_else() {
	local v
	for v in $(grep -hoE '^(\| .|\.It Ev )XROCE_[A-Z_]+' docs/*.md man/xroce.7 | grep -oE 'XROCE_[A-Z_]+' | sort -u); do
		[ $v = XROCE_DEV ] || variables | grep -qx $v || fail "$v is documented and unknown"
	done
}

run_case options_documented documented
run_case options_none_else none_else
finish_cases
