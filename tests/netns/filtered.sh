#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# Unprivileged programs of a broker under their own seccomp filter, which allows the system calls
# listed in docs/containers.md and refuses all others. No call is refused.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/python.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
install -m 644 "$here/tests/netns/lib/filtered.py" "$OWN/filtered.py"
install -m 755 "$TOOLS/event_circle" "$OWN/bin/event_circle"

# listed ROW: the calls of the rows that begin so.
listed() { sed -nE "s/^\\| $1[^|]*\\| (.*) \\|\$/\\1/p" "$here/docs/containers.md" | tr -d '\`,'; }
# shellcheck disable=SC2207 # words
calls=($(listed 'seccomp: '))
# both WHO PORT|cm SERVER... -- CLIENT...: WHO is `user`, both on A.
both() {
	local who=$1 port=$2 server client filter pid ns=a dev=$IF_A rc
	split_words server client "${@:3}"
	case $who in
	user)
		filter=("${NOBODY[@]}" "$OWN/bin/xroce" run --share always --no-mounts)
		words=(/usr/bin/python3 -B "$OWN/filtered.py" "${calls[@]}" --)
		;;
	esac
	start server a "${filter[@]}" --dev $IF_A -- "${words[@]}" "${server[@]}"
	pid=$child
	if [ "$port" = cm ]; then
		wait_until 10 listens_by_cm "$pid"
	else
		wait_until 10 listens_there "$port" "$pid"
	fi
	start client "$ns" "${filter[@]}" --dev "$dev" -- "${words[@]}" "${client[@]}"
	finish "$child" 60
	rc=$?
	[ $rc -ne 77 ] || { skip_reason="no libseccomp, or none that notifies"; stop "$pid"; return 77; }
	[ $rc -eq 0 ] || { fail "the client ended with $rc"; show client; }
	[ $rc -eq 0 ] || stop "$pid"
	finish "$pid" 20 || { fail "the server ended with $?"; show server; }
}
listens_there() { listens a "$1" || is_gone_or_zombie "$2"; }
listens_by_cm() { in_a "$XROCE" list $IF_A | grep -q '^  listens ' || is_gone_or_zombie "$1"; }

# Of WHO, on whose DEVICE the client is.
programs() {
	local who=$1 dev=$2
	run_case ${who}_pingpong both $who 18515 ibv_rc_pingpong -d $DEV_A -g 0 -n 2000 -e -- \
		ibv_rc_pingpong -d "$dev" -g 0 -n 2000 -e $IP4_A
	run_case ${who}_write_bw both $who 18515 ib_write_bw -d $DEV_A -x 0 -n 2000 -F -- \
		ib_write_bw -d "$dev" -x 0 -n 2000 -F $IP4_A
	run_case ${who}_send_lat both $who 18515 ib_send_lat -d $DEV_A -x 0 -n 1000 -F -- \
		ib_send_lat -d "$dev" -x 0 -n 1000 -F $IP4_A
	run_case ${who}_signals both $who 18661 "$OWN/bin/event_circle" -d $DEV_A -w signal -n 1000 -- \
		"$OWN/bin/event_circle" -d "$dev" -w signal -n 1000 $IP4_A
	run_case ${who}_rping both $who cm rping -s -a $IP4_A -C 20 -- rping -c -a $IP4_A -C 20
	run_case ${who}_rsocket both $who cm rstream -b $IP4_A -S 65536 -C 100 -- \
		rstream -s $IP4_A -S 65536 -C 100
}

# The filter does refuse.
refuses() {
	/usr/bin/python3 -B "$OWN/filtered.py" "${calls[@]}" -- mkdir "$WORK/made" >"$WORK/made.out" 2>&1
	need_equal "status" $? 99
	need_line made '^refused: .*mkdir'
}

run_case refuses refuses
serve a $IF_A || { cat "$WORK/case.notes"; exit 1; }
programs user $DEV_A
finish_cases
