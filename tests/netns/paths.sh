#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core XROCE_CASE=a*
# tier: core others XROCE_CASES=core XROCE_CASE=[!a]*
# tier: long long XROCE_CASES=long
#
# Every way that frames can leave (XROCE_TX=xsk|tap|live|gso, auto): data of every kind arrives
# right, and the counters say that the frames did go that way. Where the interface takes no
# redirected frames they go by sockets, and it may change its mind while the program runs. Both ends
# are in native mode, which takes redirected frames, unless a case says otherwise.
export XROCE_XDP=native
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/paths.sh"
netns_pair 4500 2
in_a ethtool -L $IF_A rx 1 tx 1 >/dev/null && in_b ethtool -L $IF_B rx 1 tx 1 >/dev/null || netns_die "cannot set the number of queues"

# way_data WAY DATA...: all of it leaves by that way.
way_data() { way_until "has_left_by $1" "$@"; }
# way_until STATE WAY DATA...
way_until() {
	local state=$1 way=$2
	shift 2
	XROCE_TX=$way data_until "$state" "$@" || return
	left_by "$way"
	need_equal "frames lost on their way out" "$(sent lost)" 0
}

# Packets that follow each other leave as one. What the peer, which has native XDP, receives are
# packets again, so their ICRCs are right.
in_groups() { way_until has_left_in_groups gso "$@"; }
# Three frames to two packets, on average.
has_left_in_groups() { has_left_by gso && [ $(($(sent gso) * 2)) -ge $(($(sent gso_sends) * 3)) ]; }

# Both ends in generic mode, which receives super-packets as they are.
generic() {
	local way=$1
	shift
	XROCE_XDP=generic way_data "$way" "$@" || return
	[ "$2" = v6 ] || need_least "super-packets received" "$(kept server xroce_rx super_packets)" 10
}

# The choice between the sockets there: by the batch.
auto_generic() {
	XROCE_XDP=generic on_a timeout 10 ibv_devinfo -v | grep -q 'active_mtu:.*4096 ' || fail "active_mtu is not 4096"
	XROCE_XDP=generic data_until "has_sent 1 xsk gso" "$@" || return
	need_equal "frames that left otherwise" $(($(sent) - $(sent xsk) - $(sent gso))) 0
}

# A program may ask for more than active_mtu, which is 2048 here. Frames that are too long to be
# redirected go by AF_XDP; the short ones do not.
long_frames() {
	local way=$1 t=$2 mean
	XROCE_TX=$way on_a timeout 10 ibv_devinfo -v | grep -q 'active_mtu:.*2048 ' || fail "active_mtu is not 2048"
	XROCE_TX=$way data_until "has_long_frames $way" "$t" v4 4096 60 5 || return
	mean=$(($(sent bytes) / $(sent)))
	# 2200 and more on an idle machine; on a busy one there are more ACKs, of 62 bytes
	[ "$t" = ud ] || need_least "mean of the frames, in bytes" $mean 1500
	need_equal "frames lost on their way out" "$(sent lost)" 0
}
has_long_frames() { has_sent 100 xsk && has_sent 1 "$1"; }

# The choice between the paths: small batches and large ones, and AF_XDP for packets before the peer
# is up.
auto_data() {
	data_until "has_sent 1 tap live" rc v4 2048 80 6 || return
	need_equal "frames lost on their way out" "$(sent lost)" 0
}

# Frames too long to be redirected leave as super-packets, which the kernel cuts for this peer; the
# others are redirected.
auto_long() {
	data_until has_long_groups "$@" || return
	need_equal "frames lost on their way out" "$(sent lost)" 0
}
has_long_groups() {
	has_sent 100 gso && [ $(($(sent gso) * 2)) -ge $(($(sent gso_sends) * 3)) ] &&
		[ $(($(sent tap) + $(sent live))) -ge 1 ]
}

# One end has an active_mtu of 4096, the other of 2048: perftest agrees on the smaller one, and a
# program that requests 4096 gets it.
ends_differ() {
	local pid
	gids_once v4 || return
	XROCE_TX=xsk start_on server a ib_write_bw -d $DEV_A -x "$gid_a" -s 65536 -n 100 -F
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	XROCE_TX=$1 start_on client b ib_write_bw -d $DEV_B -x "$gid_b" -s 65536 -n 100 -F $IP4_A
	client=$child
	for pid in "$client" "$server"; do
		finish "$pid" 30 || fail "ib_write_bw ends with $?"
	done
	need_line client 'Mtu +: 2048'
	need_line server 'Mtu +: 2048'
	XROCE_TX=xsk start_on server a "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -m 4096 -n 30 -s 8
	server=$child
	wait_until 10 listens_or_gone a 18600 "$server"
	XROCE_TX=$1 start_on client b "$TOOLS/vdata" -d $DEV_B -g "$gid_b" -m 4096 -n 30 -s 8 $IP4_A
	client=$child
	for pid in "$client" "$server"; do
		finish "$pid" 30 || fail "vdata ends with $?"
	done
	need_line client '^vdata: rc .* bytes right'
}

# start_data WAY: vdata runs, for as long as $WORK/go is there; pids in $server and $client.
start_data() {
	gids_once v4 || return
	: >"$WORK/go"
	XROCE_TX=$1 start_on server a "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -m 1024 -n 10 -s 7 -T 18 -k "$WORK/go"
	server=$child
	wait_until 10 listens_or_gone a 18600 "$server"
	XROCE_TX=$1 start_on client b "$TOOLS/vdata" -d $DEV_B -g "$gid_b" -m 1024 -n 10 -s 7 -T 18 -k "$WORK/go" $IP4_A
	client=$child
}

# It ends, in order, and everything has been right.
end_data() {
	local pid rc
	rm -f "$WORK/go"
	for pid in "$client" "$server"; do
		finish "$pid" 60
		rc=$?
		need_equal "exit status of vdata" $rc 0
	done
	need_line server "^vdata: rc seed 7 side 0: [0-9]+ messages, [0-9]+ bytes right"
	need_line client "^vdata: rc seed 7 side 1: [0-9]+ messages, [0-9]+ bytes right"
}

by_gso() { counter "$1" xroce_eng_stat tx_gso; }
redirected() { local t l; t=$(counter "$1" xroce_eng_stat tx_tap) && l=$(counter "$1" xroce_eng_stat tx_live) && echo $((t + l)); }
by_xsk() { counter "$1" xroce_eng_stat tx_xsk; }
# moved READER PID BEFORE: the counter has grown, by more than a batch or two.
moved() { local n; n=$($1 "$2") && [ "$n" -gt $(($3 + 300)) ]; }
comes_to_move() { wait_until 15 moved "$1" "$server" "$($1 "$server")" || fail "after $2: no frames $1"; }

# The peer's end takes redirected frames while it has native XDP or GRO: here it has generic XDP. So
# GRO decides.
switching() {
	local sockets=by_xsk
	[ "$1" = auto ] && sockets=by_gso
	XROCE_XDP=generic start_data "$1"
	comes_to_move $sockets "the start"
	need_equal "frames redirected" "$(redirected "$server")" 0
	in_b ethtool -K $IF_B gro on
	comes_to_move redirected "GRO on"
	in_b ethtool -K $IF_B gro off
	comes_to_move $sockets "GRO off"
	end_data
}

# Frames that the interface loses are seen, and slow the sender; no longer than they are lost. Here
# the peer's end becomes too small for them.
losses_seen() {
	local slowed
	start_data "$1"
	comes_to_move redirected "the start"
	slowed=$(counter "$server" xroce_eng_stat tx_slowed)
	wait_until 20 is_slowed_by_losses "$server" $((slowed + 1)) || fail "nobody notices that frames are lost"
	in_b ip addr replace $IP6_B/64 dev $IF_B nodad
	wait_until 10 is_at_large "$server" || fail "the sender stays slow"
	comes_to_move redirected "the losses"
	end_data
	gids_are= # IPv6 addresses went and came
}
# Repeatedly, and each time for less than a connection's retries last.
is_slowed_by_losses() {
	in_b ip link set $IF_B mtu 600
	read -r -t 0.12 <>"$WORK/quiet"
	in_b ip link set $IF_B mtu 4500
	is_slowed "$@"
}
is_slowed() { local n; n=$(counter "$1" xroce_eng_stat tx_slowed) && [ "$n" -ge "$2" ]; }
is_at_large() { [ "$(counter "$1" xroce_eng_stat tx_pacer)" = 256 ]; }

tx_dropped() { ip -n $NS_A -s -o link show $IF_A | sed -n 's/.*TX: [^\\]*\\ *[0-9]* *[0-9]* *[0-9]* *\([0-9]*\).*/\1/p'; }
# has_dropped BEFORE N: the interface has dropped N more since.
has_dropped() { [ "$(tx_dropped)" -ge $(($1 + $2)) ]; }

# The redirected frames of these (veth's own counter).
lost_ours() { in_a ethtool -S $IF_A | awk '/xdp_xmit_errors/ { n += $2 } END { print n + 0 }'; }
has_lost_ours() { [ "$(lost_ours)" -gt "$1" ]; }

# The ring between the two ends is repeatedly full of another program's datagrams: the thread that
# empties it (threaded NAPI) does not keep up.
ring_full() {
	local way=$1 reader=redirected before ours flood
	case $way in xsk | gso) reader=by_$way ;; esac
	in_b ethtool -K $IF_B gro on # there is NAPI from the beginning
	threaded 1 || return
	start_data "$way"
	wait_until 15 moved $reader "$server" 0 || fail "no frames"
	before=$(tx_dropped) ours=$(lost_ours)
	start flood a "$TOOLS/flood" $IP4_B 18
	flood=$child
	wait_until 15 has_dropped "$before" 5000 || fail "the flood does not fill the ring: $(tx_dropped) - $before dropped"
	if [ $reader = redirected ]; then
		wait_until 15 has_lost_ours "$ours" || fail "no frame of ours was lost"
		wait_until 15 is_slowed "$server" 1 || fail "nobody notices that frames are lost"
	fi
	comes_to_move $reader "the ring was full"
	stop "$flood"
	end_data
	threaded 0
	in_b ethtool -K $IF_B gro off
}
# In a mount namespace, to see the sysfs of B's interfaces.
threaded() {
	in_b unshare --mount sh -c "mount -t sysfs sysfs /sys && echo $1 >/sys/class/net/$IF_B/threaded" || fail "cannot set threaded NAPI"
}

# A queue in front of the interface is slower than we are, and is repeatedly full: refused frames
# are sent later.
queue_full() {
	in_a tc qdisc add dev $IF_A root tbf rate 50mbit burst 80k limit 90k 2>/dev/null || { skip_reason="no tbf in this kernel"; return 77; }
	XROCE_XDP=generic way_data "$@" && need_least "times that there was no room" "$(sent no_room)" 1
	in_a tc qdisc del dev $IF_A root
}

# The same queue, long enough for all: AF_XDP frames do not wait in it, and must not overtake frames
# that do.
queue_order() {
	in_a tc qdisc add dev $IF_A root tbf rate 50mbit burst 80k limit 64m 2>/dev/null || { skip_reason="no tbf in this kernel"; return 77; }
	auto_generic "$@" && need_equal "NAKs for packets that came too early" "$(kept server xroce_eng_stat rx_sequence_naks)" 0
	in_a tc qdisc del dev $IF_A root
}

# The peer's packets are received by both CPUs in turn of their flows, so a frame is often still on
# its way when the call that sent it has returned.
rps() {
	steer_packets 3 || return
	auto_generic "$@" && need_equal "NAKs for packets that came too early" "$(kept server xroce_eng_stat rx_sequence_naks)" 0
	steer_packets 0
}
# In a mount namespace, to see the sysfs of B's interfaces.
steer_packets() {
	in_b unshare --mount sh -c "mount -t sysfs sysfs /sys && echo $1 >/sys/class/net/$IF_B/queues/rx-0/rps_cpus" || fail "cannot steer packets to CPUs"
}

# mode WANTED XROCE_XDP XROCE_TX: how XDP is attached, by the kernel's word.
mode() {
	local xdp=xdp
	[ "$1" = generic ] && xdp=xdpgeneric
	XROCE_XDP=$2 XROCE_TX=$3 start_on server a ibv_rc_pingpong -d $DEV_A -g 0
	wait_until 10 is_attached || fail "nothing is attached"
	in_a ip -o link show $IF_A | grep -q " $xdp " || fail "not $1: $(in_a ip -o link show $IF_A)"
	stop "$child"
}
is_attached() { ! xdp_off $NS_A $IF_A; }

# No native mode for an end with fewer queues than the other sends by: reported in one line, and
# generic mode then, but not if native was requested.
no_native() {
	# a broker ends some milliseconds after its killed client
	wait_until 5 xdp_off $NS_A $IF_A && wait_until 5 xdp_off $NS_B $IF_B || fail "XDP stays"
	in_a ethtool -L $IF_A rx 2 && in_b ethtool -L $IF_B tx 2 && in_a ethtool -L $IF_A rx 1 || fail "cannot set the number of queues"
	XROCE_TX=tap mode generic auto tap
	need_line server 'using generic mode'
	in_a timeout 10 env XROCE_XDP=native "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 >"$WORK/refused.out" 2>&1 && fail "it opens in native mode"
	need_line refused 'cannot attach the XDP program'
	in_b ethtool -L $IF_B tx 1
}

core_cases=(mode_auto_tap mode_no_native tap_rc_v4 live_uc_v6 tap_ud_long_frames)
core_cases+=(tap_switching live_ring_full auto auto_long ends_differ auto_losses_seen)
core_cases+=(gso_groups gso_generic_rc auto_generic_uc gso_queue_full auto_queue_order)
core_cases+=(auto_rps)
tier_case mode_auto mode generic auto auto
tier_case mode_auto_tap mode native auto tap
tier_case mode_native mode native native auto
tier_case mode_generic mode generic generic auto
in_a ethtool -L $IF_A rx 2 >/dev/null
tier_case mode_two_queues mode native auto auto
in_a ethtool -L $IF_A rx 1 >/dev/null
tier_case mode_no_native no_native
for way in xsk tap live gso; do
	for t in rc uc ud; do
		tier_case ${way}_${t}_v4 way_data $way $t v4 2048 80 1
		tier_case ${way}_${t}_v6 way_data $way $t v6 1024 60 2 -e
	done
	tier_case ${way}_rc_small_mtu way_data $way rc v4 256 60 3 -o -x 20000
done
for way in tap live; do
	for t in rc ud; do
		tier_case ${way}_${t}_long_frames long_frames $way $t
	done
	tier_case ${way}_switching switching $way
	tier_case ${way}_losses_seen losses_seen $way
	tier_case ${way}_ring_full ring_full $way
done
tier_case auto auto_data
tier_case auto_long auto_long rc v4 4096 80 19
tier_case ends_differ ends_differ auto
tier_case auto_switching switching auto
tier_case auto_losses_seen losses_seen auto
tier_case auto_ring_full ring_full auto
tier_case xsk_ring_full ring_full xsk
tier_case gso_groups in_groups rc v4 256 80 10
tier_case gso_groups_long in_groups rc v4 4096 80 10
tier_case gso_ring_full ring_full gso
for t in rc uc ud; do
	tier_case gso_generic_$t generic gso $t v4 2048 80 11
	tier_case auto_generic_$t auto_generic $t v4 1024 80 12
done
tier_case gso_generic_long generic gso rc v4 4096 80 13
tier_case gso_generic_v6 generic gso rc v6 1024 60 14
tier_case auto_generic_long auto_generic rc v4 4096 80 15
tier_case gso_queue_full queue_full gso rc v4 1024 80 16
tier_case auto_queue_order queue_order rc v4 1024 80 17
tier_case auto_rps rps rc v4 1024 80 18
finish_cases
