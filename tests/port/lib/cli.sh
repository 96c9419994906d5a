# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Runs of the command on an interface of A, for tests of its words. Sourced with the build as the
# first argument of the script.
. "$(dirname "${BASH_SOURCE[0]}")/../../netns/lib/case.sh"
. "$here/tests/netns/lib/python.sh"
netns_pair 4500

# try STATUS COMMAND...: run it on A, bounded; output in cli.out.
try() {
	local want=$1 status
	shift
	in_a timeout 30 "$@" >"$WORK/cli.out" 2>&1
	status=$?
	[ $status -eq "$want" ] || { fail "$* ends with $status, not $want"; show cli; }
}

# mtu N: on both ends.
mtu() {
	in_a ip link set $IF_A mtu "$1"
	in_b ip link set $IF_B mtu "$1"
}

# json EXPRESSION: prints its value, where d is the document that the command printed.
json() {
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$WORK/cli.out" "$1" 2>&1
}

has_broker() { in_a "$XROCE" list $IF_A | grep -q 'broker *pid'; }
