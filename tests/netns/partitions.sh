#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# P_Keys: brokers on both interfaces, each with a table of its own (`xroce serve --pkey`), and
# processes of a user without any privilege. What the table is; that QPs of a partition talk, by the
# wire and on one interface, and that those of different ones, or two limited members, do not, and
# are counted. That a client cannot send with another P_Key: hostile.sh.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/perf.sh"
. "$here/tests/netns/lib/exchange.sh"

install -m 755 "$TOOLS/partition" "$OWN/bin/partition"

said_or_gone() { grep -qE "$2" "$WORK/$1.out" || is_gone_or_zombie "$3"; }

# partition NAME NS WORD...: until its end
partition() {
	local name=$1 ns=$2
	shift 2
	as_nobody always "$ns"
	start "$name" "$ns" "${words[@]}" "$OWN/bin/partition" "$@"
	finish "$child" 30 || { fail "partition $1 ended with $?"; show "$name"; }
}

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

# As the program sees it in /sys, too.
in_sysfs() {
	as_nobody always a
	start sysfs a "${words[@]}" sh -c "cd /sys/class/infiniband/$DEV_A/ports/1/pkeys && cat 0 1 2 3 && ls | wc -l"
	finish "$child" 10 || { fail "ended with $?"; show sysfs; }
	need_equal "the files" "$(tr '\n' ' ' <"$WORK/sysfs.out")" "0xffff 0x8001 0x0002 0x7fff 4 "
}

# ---- unmodified programs ----

# bandwidth NS INDEX-A INDEX-NS: ib_send_bw of two unprivileged processes, whose time-out a busy
# machine does not run into
bandwidth() {
	local dev=$DEV_A gid pid rc
	gids_once v4 || return
	gid=$gid_a
	[ "$1" = b ] && dev=$DEV_B gid=$gid_b
	as_nobody always a
	start server a "${words[@]}" ib_send_bw -d $DEV_A -x "$gid_a" -n 500 -s 4096 -F -u 14 --pkey_index="$2"
	pid=$child
	wait_until 10 listens_or_gone a 18515 "$pid"
	as_nobody always "$1"
	start client "$1" "${words[@]}" ib_send_bw -d $dev -x "$gid" -n 500 -s 4096 -F -u 14 --pkey_index="$3" $IP4_A
	finish "$child" 30
	rc=$?
	if [ $rc -ne 0 ]; then
		stop "$pid"
		return $rc
	fi
	finish "$pid" 10
}

works() {
	bandwidth "$@" || { fail "ended with $?"; show client; show server; return; }
	has_results client 4096 500
}
fails() {
	bandwidth "$@" && { fail "it works"; return; }
	need_line client 'Failed status 12|Completion with error'
}

# ---- datagrams, one by one ----

# datagrams NS INDEX-OF-RECEIVER INDEX QKEY WANT: 20 of them from NS to a QP on A with Q_Key 0x77;
# what the receiver's port has counted.
datagrams() {
	local receiver qpn gid
	gids_once v4 || return
	gid=$gid_a
	[ "$1" = b ] && gid=$gid_b
	as_nobody always a
	start receiver a "${words[@]}" "$OWN/bin/partition" receive $DEV_A "$2" 0x77 20
	receiver=$child
	wait_until 10 said_or_gone receiver '^qpn ' "$receiver"
	qpn=$(sed -n 's/^qpn //p' "$WORK/receiver.out")
	partition sender "$1" send "xroce_$(iface_of "$1")" "$gid" $IP4_A "$qpn" "$3" "$4" 20
	need_line sender '^sent 20$'
	kill -TERM "$receiver"
	finish "$receiver" 10 || { fail "the receiver ended with $?"; show receiver; }
	need_line receiver "^$5\$"
}

run_case partitions_usage usage
serve_options=(--pkey 0x8001,0x0002 --pkey 0x7fff)
serve a $IF_A || exit 1
serve_options=(--pkey 0x8001,2 --pkey 0xffff,0x8003)
serve b $IF_B || exit 1
run_case partitions_tables tables
run_case partitions_sysfs in_sysfs
run_case partitions_default_wire works b 0 0
run_case partitions_full_wire works b 1 1
run_case partitions_full_near works a 1 1
run_case partitions_limited_near fails a 2 2
run_case partitions_other_wire fails b 1 3
run_case partitions_default_limited works b 3 0
run_case partitions_datagrams_wire datagrams b 1 1 0x77 'received 20 bad_pkey 0 qkey_viol 0'
run_case partitions_datagrams_other datagrams b 1 3 0x77 'received 0 bad_pkey 20 qkey_viol 0'
run_case partitions_datagrams_default datagrams b 1 0 0x77 'received 0 bad_pkey 20 qkey_viol 0'
run_case partitions_datagrams_limited datagrams b 2 2 0x77 'received 0 bad_pkey 20 qkey_viol 0'
run_case partitions_datagrams_qkey datagrams b 1 1 0x78 'received 0 bad_pkey 0 qkey_viol 20'
run_case partitions_datagrams_near datagrams a 1 2 0x77 'received 0 bad_pkey 20 qkey_viol 0'
run_case partitions_datagrams_near_qkey datagrams a 1 1 0x78 'received 0 bad_pkey 0 qkey_viol 20'
finish_cases
