#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# P_Keys of brokers on demand: they have the table of `xroce run --pkey` of the root process that
# started them, and that has its interface to itself. The same checks as for a service's table
# (partitions.sh); and a process that comes later gets this table, also if it requested another one.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/perf.sh"
. "$here/tests/netns/lib/exchange.sh"

install -m 755 "$TOOLS/partition" "$OWN/bin/partition"

declare -A keys=([a]=0x8001,0x0002,0x7fff [b]=0x8001,2,0xffff,0x8003)
share=auto
# before_program NS: in words what stands before a program.
before_program() { words=("$XROCE" run --dev "$(iface_of "$1")" --share $share --pkey "${keys[$1]}" --); }
. "$here/tests/netns/lib/partitions.sh"

no_brokers() { has_no_broker a $IF_A && has_no_broker b $IF_B; }
TABLE_A='0xffff 0x8001 0x0002 0x7fff'

# tables SHARE
tables() {
	wait_until 10 no_brokers || fail "there are brokers"
	share=$1 partition table a table $DEV_A
	need_line table "^before: $TABLE_A\$"
	need_line table "^with a port: $TABLE_A\$"
	share=$1 partition table b table $DEV_B
	need_line table '^before: 0xffff 0x8001 0x0002 0x8003$'
	need_line table '^with a port: 0xffff 0x8001 0x0002 0x8003$'
}

# Nothing is created, and the refused request is reported.
not_valid() {
	wait_until 10 no_brokers || fail "there are brokers"
	in_a env XROCE_PKEY=0x8001,0x8000 LD_LIBRARY_PATH="$BUILD/lib" XROCE_DEV=$IF_A "$TOOLS/partition" table $DEV_A >"$WORK/ignored.out" 2>&1
	need_line ignored '^xroce: XROCE_PKEY=0x8001,0x8000 is ignored: it is not a P_Key list'
	need_line ignored '^with a port: 0xffff$'
}

# comer SHARE-OF-THE-FIRST: the table of an unprivileged process that comes after one of root's.
comer() {
	local first stays
	wait_until 10 no_brokers || fail "there are brokers"
	share=$1 before_program a
	start first a "${words[@]}" "$OWN/bin/partition" receive $DEV_A 1 0x77 0
	first=$child
	wait_until 10 said_or_gone first '^qpn ' "$first"
	start comer a env XROCE_PKEY=0x8009 "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A -- "$OWN/bin/partition" table $DEV_A
	finish "$child" 30 || { fail "the comer ended with $?"; show comer; }
	need_line comer "^before: $TABLE_A\$"
	need_line comer "^with a port: $TABLE_A\$"
	start stays a "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A -- "$OWN/bin/partition" receive $DEV_A 1 0x77 0
	stays=$child
	wait_until 10 said_or_gone stays '^qpn ' "$stays"
	in_a "$XROCE" list $IF_A >"$WORK/list.out"
	need_line list "^  P_Keys    $TABLE_A\$"
	need_line list "^  client    [0-9]+: pid $first "
	need_line list "^  client    [0-9]+: pid $stays "
	kill -TERM "$stays"
	finish "$stays" 10 || { fail "the one that stays ended with $?"; show stays; }
	kill -TERM "$first"
	finish "$first" 10 || { fail "the first ended with $?"; show first; }
}

# A process without a port learns the table of the broker of one that has the interface to itself.
asked() {
	local first
	wait_until 10 no_brokers || fail "there are brokers"
	before_program a
	start first a "${words[@]}" "$OWN/bin/partition" receive $DEV_A 1 0x77 0
	first=$child
	wait_until 10 said_or_gone first '^qpn ' "$first"
	start asked a "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A -- sh -c "cd /sys/class/infiniband/$DEV_A/ports/1/pkeys && cat 0 1 2 3 && ls | wc -l"
	finish "$child" 10 || { fail "ended with $?"; show asked; }
	need_equal "the files" "$(tr '\n' ' ' <"$WORK/asked.out")" "$TABLE_A 4 "
	in_a "$XROCE" list $IF_A >"$WORK/list.out"
	need_line list '^  broker    pid [0-9]+ \(xroce\)$'
	need_line list "^  P_Keys    $TABLE_A\$"
	need_line list "^  client    [0-9]+: pid $first \(partition\) of root, 1 QP; received 0 frames by its AF_XDP sockets;"
	need_equal "clients" "$(grep -c '^  client ' "$WORK/list.out")" 1
	kill -TERM "$first"
	finish "$first" 10 || { fail "the first ended with $?"; show first; }
}

run_case partitions_alone_tables tables auto
run_long_case partitions_alone_never tables never
run_case partitions_alone_always tables always
run_case partitions_alone_not_valid not_valid
run_case partitions_alone_sysfs in_sysfs
run_long_case partitions_alone_default_wire works b 0 0
run_case partitions_alone_full_wire works b 1 1
run_case partitions_alone_other_wire fails b 1 3
run_case partitions_alone_default_limited works b 3 0
run_long_case partitions_alone_datagrams_wire datagrams b 1 1 0x77 'received 20 bad_pkey 0 qkey_viol 0'
run_case partitions_alone_datagrams_other datagrams b 1 3 0x77 'received 0 bad_pkey 20 qkey_viol 0'
run_long_case partitions_alone_datagrams_default datagrams b 1 0 0x77 'received 0 bad_pkey 20 qkey_viol 0'
run_long_case partitions_alone_datagrams_limited datagrams b 2 2 0x77 'received 0 bad_pkey 20 qkey_viol 0'
run_case partitions_alone_datagrams_qkey datagrams b 1 1 0x78 'received 0 bad_pkey 0 qkey_viol 20'
run_case partitions_alone_asked asked
run_case partitions_alone_comer comer auto
run_long_case partitions_alone_comer_to_broker comer always
run_long_case partitions_alone_near works a 1 1
run_case partitions_alone_near_limited fails a 2 2
finish_cases
