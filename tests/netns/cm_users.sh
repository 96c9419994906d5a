#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
# needs: processors
#
# Debian's rdmacm-utils of several users at once by one broker, with each other and with a host at
# the other end of the cable, for a time: rping, ucmatose, cmtime, udaddy, rstream. Each
# must come to its end each time. XROCE_USERS_SECONDS: how long.
. "$(dirname "$0")/lib/case.sh"
command -v ucmatose >/dev/null || skip_all "rdmacm-utils is not installed"
netns_chain
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/cable.sh"
SECONDS_EACH=${XROCE_USERS_SECONDS:-20}

# as USER NS COMMAND...: as an unprivileged user of that number
as() {
	local uid=$1 ns=$2 dev=$IF_A
	shift 2
	[ "$ns" = a ] || dev=$IF_B
	in_ns "$ns" setpriv "--reuid=$uid" "--regid=$uid" --clear-groups --inh-caps=-all --bounding-set=-all \
		timeout -k 1 60 "$OWN/bin/xroce" run --dev $dev -- "$@"
}
listens_at() { in_a "$XROCE" list $IF_A | grep -q "TCP port $1 \|UDP port $1 "; }

# loop NAME UID NS PORT SERVER... -- CLIENT...: again and again until the time is up
loop() {
	local name=$1 uid=$2 ns=$3 port=$4 server client n=0 rc pid
	shift 4
	split_words server client "$@"
	while [ $SECONDS -lt $ends ]; do
		as "$uid" a "${server[@]}" >"$WORK/$name.server" 2>&1 &
		pid=$!
		wait_at_most 15 listens_at "$port" || { echo "$name: the server does not listen"; cat "$WORK/$name.server"; break; }
		as "$uid" "$ns" "${client[@]}" >"$WORK/$name.client" 2>&1
		rc=$?
		if [ $rc -ne 0 ] && ! { [ $rc -eq 255 ] && grep -q '^rdma_get_cm_event: Bad file' "$WORK/$name.client"; }; then
			echo "$name: client $n ended with $rc"
			tail -n 5 "$WORK/$name.client" "$WORK/$name.server"
		fi
		# cmtime's server goes on for ever
		[[ $name != cmtime* ]] || pkill -P $pid
		wait $pid
		rc=$?
		[ $rc -eq 0 ] || [[ $name == cmtime* || $name == rping* ]] || {
			echo "$name: server $n ended with $rc"
			tail -n 5 "$WORK/$name.server" "$WORK/$name.client"
		}
		n=$((n + 1))
	done
	echo "$name: $n rounds"
}

all_at_once() {
	local ends=$((SECONDS + SECONDS_EACH)) pids=() pid port=7300 uid ns
	rm -f "$WORK"/*-6553?.out
	# udaddy has one port, and waits for datagrams that a bad cable loses
	[ "$1" = bad ] || loop udaddy-65532 65532 b 7174 udaddy -c 5 -- udaddy -s $IP4_A -c 5 >"$WORK/udaddy-65532.out" 2>&1 &
	[ "$1" = bad ] || pids+=($!)
	for uid in 65532 65533 65534; do
		ns=a
		[ $uid = 65533 ] && ns=b
		loop rping-$uid $uid $ns $((port + 1)) rping -s -a $IP4_A -p $((port + 1)) -C 20 -- rping -c -V -a $IP4_A -p $((port + 1)) -C 20 >"$WORK/rping-$uid.out" 2>&1 &
		pids+=($!)
		loop ucmatose-$uid $uid $ns $((port + 2)) ucmatose -p $((port + 2)) -c 20 -- ucmatose -s $IP4_A -p $((port + 2)) -c 20 >"$WORK/ucmatose-$uid.out" 2>&1 &
		pids+=($!)
		loop migrate-$uid $uid $ns $((port + 3)) ucmatose -m -p $((port + 3)) -c 20 -- ucmatose -m -s $IP4_A -p $((port + 3)) -c 20 >"$WORK/migrate-$uid.out" 2>&1 &
		pids+=($!)
		loop rstream-$uid $uid $ns $((port + 5)) rstream -p $((port + 5)) -T v -S 1000 -C 50 -- rstream -s $IP4_A -p $((port + 5)) -T v -S 1000 -C 50 >"$WORK/rstream-$uid.out" 2>&1 &
		pids+=($!)
		loop cmtime-$uid $uid $ns $((port + 6)) cmtime -b $IP4_A -p $((port + 6)) -c 50 -- cmtime -s $IP4_A -p $((port + 6)) -c 50 >"$WORK/cmtime-$uid.out" 2>&1 &
		pids+=($!)
		port=$((port + 10))
	done
	for pid in "${pids[@]}"; do wait "$pid"; done
	cat "$WORK"/{rping,ucmatose,migrate,udaddy,rstream,cmtime}-*.out >"$WORK/all.out"
	need_no_line all 'ended with|does not listen|xroce: '
	need_no_line all ': 0 rounds'
	need_equal "loops" "$(grep -c ' rounds$' "$WORK/all.out")" ${#pids[@]}
}
good_cable() { cable_with -s 1; all_at_once good; cable_did; }
bad_cable() { cable_with -s 2 -l 20 -u 50 -r 50; all_at_once bad; cable_did dropped; }

serve a $IF_A && serve b $IF_B || { cat "$WORK/case.notes"; exit 1; }
run_case good_cable good_cable
run_case bad_cable bad_cable
finish_cases
