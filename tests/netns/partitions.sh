#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# P_Keys: brokers on both interfaces, each with its own table (`xroce serve --pkey`), and
# unprivileged processes. Checks the table; that QPs of a partition talk, by the wire and on one
# interface, and that QPs of different partitions, or two limited members, do not, and are counted.
# hostile.sh tests that a client cannot send with another P_Key.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/perf.sh"
. "$here/tests/netns/lib/exchange.sh"

install -m 755 "$TOOLS/partition" "$OWN/bin/partition"

# before_program NS: in words what stands before a program.
before_program() { as_nobody always "$1"; }
. "$here/tests/netns/lib/partitions.sh"

# ---- the table ----

usage() {
	local list
	for list in 0 0x8000 0x10000 -1 0x8001, ,1 x 0x8001,0x8001 0x1z "$(seq -s, 1 32)"; do
		in_a "$XROCE" serve --pkey "$list" $IF_A >"$WORK/usage.out" 2>&1
		need_equal "the exit status of --pkey $list" $? 2
		need_line usage '--pkey'
	done
}

tables() {
	partition table a table $DEV_A
	need_line table '^before: 0xffff 0x8001 0x0002 0x7fff$'
	need_line table '^with a port: 0xffff 0x8001 0x0002 0x7fff$'
	partition table b table $DEV_B
	need_line table '^before: 0xffff 0x8001 0x0002 0x8003$'
	in_a "$XROCE" list $IF_A >"$WORK/list.out"
	need_line list '^  P_Keys    0xffff 0x8001 0x0002 0x7fff$'
}

run_case partitions_usage usage
serve_options=(--pkey 0x8001,0x0002 --pkey 0x7fff)
serve a $IF_A || exit 1
serve_options=(--pkey 0x8001,2 --pkey 0xffff,0x8003)
serve b $IF_B || exit 1
run_case partitions_tables tables
run_case partitions_sysfs in_sysfs
run_long_case partitions_default_wire works b 0 0
run_case partitions_full_wire works b 1 1
run_case partitions_full_near works a 1 1
run_case partitions_limited_near fails a 2 2
run_long_case partitions_other_wire fails b 1 3
run_case partitions_default_limited works b 3 0
run_case partitions_datagrams_wire datagrams b 1 1 0x77 'received 20 bad_pkey 0 qkey_viol 0'
run_long_case partitions_datagrams_other datagrams b 1 3 0x77 'received 0 bad_pkey 20 qkey_viol 0'
run_long_case partitions_datagrams_default datagrams b 1 0 0x77 'received 0 bad_pkey 20 qkey_viol 0'
run_case partitions_datagrams_limited datagrams b 2 2 0x77 'received 0 bad_pkey 20 qkey_viol 0'
run_case partitions_datagrams_qkey datagrams b 1 1 0x78 'received 0 bad_pkey 0 qkey_viol 20'
run_case partitions_datagrams_near datagrams a 1 2 0x77 'received 0 bad_pkey 20 qkey_viol 0'
run_long_case partitions_datagrams_near_qkey datagrams a 1 1 0x78 'received 0 bad_pkey 0 qkey_viol 20'
finish_cases
