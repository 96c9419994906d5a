# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Programs in partitions: the script defines before_program(). Sourced after exchange.sh.

said_or_gone() { grep -qE "$2" "$WORK/$1.out" || is_gone_or_zombie "$3"; }

# partition NAME NS WORD...: until its end
partition() {
	local name=$1 ns=$2
	shift 2
	before_program "$ns"
	start "$name" "$ns" "${words[@]}" "$OWN/bin/partition" "$@"
	finish "$child" 30 || { fail "partition $1 ended with $?"; show "$name"; }
}

# As the program reads it in /sys, too.
in_sysfs() {
	before_program a
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
	before_program a
	start server a "${words[@]}" ib_send_bw -d $DEV_A -x "$gid_a" -n 500 -s 4096 -F -u 14 --pkey_index="$2"
	pid=$child
	wait_until 10 listens_or_gone a 18515 "$pid"
	before_program "$1"
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
	before_program a
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
