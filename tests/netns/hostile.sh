#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# A client of the broker that attacks the others: with its descriptors (hostile.c), by its packets
# (forger.c), at the broker's socket. Two pairs of other clients exchange checked data at the same
# time, one over the wire and one between processes of the interface. None of their data may be
# changed or stopped, and no forged packet may leave.
. "$(dirname "$0")/lib/case.sh"

netns_pair 4500

SINK4=10.77.0.99 SINK6=fd77::99
chmod 755 "$WORK"
mkdir -p "$WORK/own/bin" "$WORK/own/lib"
install -m 755 "$XROCE" "$TOOLS"/{hostile,attacher,forger,vdata,asker} "$WORK/own/bin"
install -m 755 "$BUILD/lib/libibverbs.so.1" "$WORK/own/lib/libibverbs.so.1"
OWN=$WORK/own/bin
index_a=$(ip -n $NS_A -o link show $IF_A | cut -d: -f1)
SOCKET=/run/xroce/$(stat -L -c %i /run/netns/$NS_A)-$index_a.sock
# An unused address, also at B: its witness sees all arriving packets.
for address in $SINK4 $SINK6; do
	ip -n $NS_A neigh replace $address lladdr $MAC_B dev $IF_A nud permanent
done

HONEST=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
HOSTILE=(setpriv --reuid=65533 --regid=65533 --clear-groups --inh-caps=-all --bounding-set=-all)

socket_is_there() { [ -S "$SOCKET" ]; }
taps() { ip -n $NS_A -o link show type tun | grep -c "xrt$index_a\\."; }
taps_are() { [ "$(taps)" = "$1" ]; }
descriptors() { find "/proc/$broker/fd" -type l | wc -l; }
anonymous() { sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$broker/status"; }
has() { echo "$(descriptors) $(bpf_ids "$broker" prog | wc -l) $(bpf_ids "$broker" map | wc -l) $(taps)"; }
settles() { settled=$(has); read -r -t 0.3 <>"$WORK/quiet"; [ "$settled" = "$(has)" ]; }
has_settled_at() { [ "$(has)" = "$1" ]; }

# hostile SECONDS COMMAND...: to its end, in $WORK/hostile.out
hostile() {
	local bound=$1
	shift
	start hostile a "${HOSTILE[@]}" "$OWN/hostile" "$SOCKET" "$@"
	finish "$child" "$bound" || { fail "hostile $1 ended with $?"; show hostile; }
	need_line hostile '^done$'
}

# pair NAME PORT NS: two processes, the first on A; pids in pair_NAME
pair() {
	local name=$1 port=$2 ns=$3 client=("${HONEST[@]}" "$OWN/xroce" run --share always)
	local dev=$IF_A gid=$gid_a server
	[ "$ns" = b ] && client=("$XROCE" run --share never) dev=$IF_B gid=$gid_b
	local options=(-n 1 -x 20000 -k "$WORK/own/go" -p "$port" -s "$port" -m 4096 -T 16 -i 5)
	start "$name-server" a "${HONEST[@]}" "$OWN/xroce" run --share always --dev $IF_A -- \
		"$OWN/vdata" -d $DEV_A -g "$gid_a" "${options[@]}"
	server=$child
	wait_until 10 listens_or_gone a "$port" "$server"
	start "$name-client" "$ns" "${client[@]}" --dev $dev -- \
		"$OWN/vdata" -d xroce_$dev -g "$gid" "${options[@]}" $IP4_A
	honest+=("$server" "$child")
}
honest_goes_on() {
	local pid
	for pid in "${honest[@]}"; do
		is_gone_or_zombie "$pid" || continue
		fail "an honest process has ended"
		for pid in near-server near-client wire-server wire-client; do show $pid; done
		return
	done
	is_gone_or_zombie "$broker" && { fail "the broker has ended"; show broker; }
	in_a ping -q -c 1 -W 2 $IP4_B >/dev/null || fail "no ping"
	wait_until 20 has_settled_at "$settled" ||
		fail "the broker has $(has) descriptors, programs, maps, TAP devices, before: $settled"
}

# Reports of any content, while an observer shows the packets of honest clients. Linux has
# SO_PASSRIGHTS, 83, from 6.16 on: the broker then refuses descriptors.
reports() {
	start watcher a "$XROCE" trace $IF_A
	local watcher=$child
	wait_until 10 grep -q ' > ' "$WORK/watcher.out" || fail "the observer shows nothing"
	hostile 60 reports 3000 1
	! python3 -c 'import socket; socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, 83, 0)' 2>/dev/null ||
		need_no_line hostile '^did'
	kill -INT "$watcher"
	finish "$watcher" 20 || { fail "the observer ended with $?"; show watcher; }
	honest_goes_on
}

# What a process may do with its own maps and with no other object: look up, update, delete, next,
# freeze, batches.
own_maps_only() {
	hostile 60 bpf
	need_no_line hostile '^did bpf .* by number'
	grep -E '^did bpf' "$WORK/hostile.out" | awk '{ print $3 }' | sort -nu | tr '\n' ' ' >"$WORK/commands.out"
	need_no_line commands '(^| )(0|5|6|7|8|9|1[0-9]|20|23|28|29|3[0-9]|[4-6][0-9]) '
	need_line commands '^1 2 '
	[ ! -e /sys/fs/bpf/xroce-hostile ] || { fail "pinned"; rm -f /sys/fs/bpf/xroce-hostile; }
	honest_goes_on
}

# The one program that a client gets can be run, and attached to nothing, though the client may
# attach any program in its own network namespace. Other programs are attached by the same calls.
own_program_only() {
	start attacher a "${HOSTILE[@]}" "$OWN/attacher" client "$SOCKET"
	finish "$child" 60 || { fail "attacher ended with $?"; show attacher; }
	need_line attacher '^ran$'
	need_line attacher '^done$'
	need_no_line attacher '^did'
	start attached b unshare -n "$OWN/attacher" xdp
	finish "$child" 60 || { fail "attacher xdp ended with $?"; show attached; }
	need_line attached '^did link 37 as root$'
	need_line attached '^did netlink_xdp 2 as root$'
	start attached b unshare -n "$OWN/attacher" cls
	finish "$child" 60 || { fail "attacher cls ended with $?"; show attached; }
	need_line attached '^did netlink_tc 0 as root$'
	need_line attached '^did map_of 3 as root$'
	honest_goes_on
}

own_device_only() {
	hostile 60 ioctl
	need_line hostile '^did TUNSETPERSIST'
	need_no_line hostile '^did (open|TUNSETIFF|TUNSETQUEUE|TUNSETIFINDEX|TUNGETDEVNETNS|SIOCGSKNS|ioctl)'
	honest_goes_on
}

mappings() {
	hostile 60 mmap
	need_line hostile '^did map'
	honest_goes_on
}

shared_words() {
	hostile 60 words 3 $IP4_A
	need_line hostile '^sent [1-9]'
	honest_goes_on
}

honest_numbers() {
	bpftool -j map dump id "$(map_id "$broker" xroce_owner | sort -n | head -1)" |
		python3 -c 'import json, sys
for e in json.load(sys.stdin):
    k = e["key"]
    print(e["formatted"]["key"] if "formatted" in e else sum(int(b, 16) << 8 * i for i, b in enumerate(k)))'
}

others_numbers() {
	local of
	mapfile -t of < <(honest_numbers)
	need_least "numbers of honest clients" ${#of[@]} 3
	hostile 30 numbers "${of[@]}"
	need_no_line hostile '^did'
	need_equal "numbers of honest clients" "$(honest_numbers | sort | tr '\n' ' ')" "$(printf '%s\n' "${of[@]}" | sort | tr '\n' ' ')"
	honest_goes_on
}

forged() {
	local here there of kind
	mapfile -t of < <(honest_numbers)
	start witness_a a "$TOOLS/forger" witness $MAC_A $IP4_A $IP6_A
	here=$child
	start witness_b b "$TOOLS/forger" witness $MAC_A $IP4_A $IP6_A
	there=$child
	wait_until 5 grep -q watching "$WORK/witness_a.out" && wait_until 5 grep -q watching "$WORK/witness_b.out"
	start forger a "${HOSTILE[@]}" "$OWN/forger" "$SOCKET" $IP4_A $SINK4 $IP6_A $SINK6 "${of[@]}"
	finish "$child" 60 || { fail "the forger ended with $?"; show forger; }
	need_line forger '^forged$'
	stop "$here"
	stop "$there"
	for kind in a b; do
		need_line witness_$kind '^watched$'
		need_no_line witness_$kind '^(leaked|changed)'
	done
	for kind in legal legal_v6 legal_ud legal_long legal_super legal_super_long lying lying_super; do
		need_line witness_b "^came $kind [1-9]"
	done
	honest_goes_on
}

random_messages() {
	hostile 60 messages 3000 1
	honest_goes_on
}

# As many connections as one user can make; another user is still served.
crowds() {
	local i crowd=()
	for i in 1 2 3 4; do
		start "crowd$i" a "${HOSTILE[@]}" prlimit --nofile=1024:4096 "$OWN/hostile" "$SOCKET" crowd 900
		crowd+=("$child")
	done
	for i in 1 2 3 4; do
		wait_until 3 grep -q '^crowd' "$WORK/crowd$i.out"
	done
	start other a "${HONEST[@]}" "$OWN/asker" "$SOCKET" hello draws 7
	finish "$child" 10 || fail "another user is not served beside a crowd"
	need_line other '^hello 0 '
	need_line other '^draws 7 0$'
	for i in "${crowd[@]}"; do stop "$i"; done
	honest_goes_on
}

honest_ends() {
	local pid name
	rm -f "$WORK/own/go"
	for pid in "${honest[@]}"; do
		finish "$pid" 30 || fail "an honest process ended with $?"
	done
	for name in near-server near-client wire-server wire-client; do
		need_line $name 'messages, [1-9][0-9]* bytes right' || show $name
	done
	need_least "memory before, and 1 MiB" $((memory + 1024)) "$(anonymous)"
	in_a "$XROCE" stop $IF_A || fail "stop ends with $?"
	finish "$broker" 5 || fail "the broker ends with $?"
	xdp_off $NS_A $IF_A || fail "an XDP program is left"
	need_equal "TAP devices left" "$(taps)" 0
	need_equal "what the broker said" "$(cat "$WORK/broker.out")" ""
}

start broker a "$XROCE" serve $IF_A
broker=$child
honest=()
wait_until 10 socket_is_there || netns_die "no broker"
gids_for v4 || netns_die "no GID"
: >"$WORK/own/go"
pair near 18700 a
pair wire 18701 b
# When a client of a user has ended, the broker loads the program that lists maps, and keeps it.
programs=$(bpf_ids "$broker" prog | wc -l)
lists_maps() { [ "$(bpf_ids "$broker" prog | wc -l)" -gt "$programs" ]; }
in_a "${HONEST[@]}" "$OWN/asker" "$SOCKET" again 10 >/dev/null
wait_until 20 lists_maps
wait_until 10 settles
memory=$(anonymous)

run_case hostile_bpf own_maps_only
run_case hostile_program own_program_only
run_case hostile_reports reports
run_case hostile_ioctl own_device_only
run_case hostile_mmap mappings
run_long_case hostile_words shared_words
run_case hostile_numbers others_numbers
run_case hostile_forged forged
run_case hostile_messages random_messages
run_case hostile_crowd crowds
# In both tiers: no honest process was disturbed by the earlier cases.
judge_case hostile_honest honest_ends
finish_cases
