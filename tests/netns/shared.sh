#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Many processes on one interface, without root: unmodified programs of a user without any
# privilege, two on the interface of A that talk to each other, and one there that talks over the
# wire to B, whose interface one process has alone, or which is shared as well.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# Of a user who may not read the build.
chmod 755 "$WORK"
mkdir -p "$WORK/own/bin" "$WORK/own/lib"
install -m 755 "$XROCE" "$WORK/own/bin/xroce"
install -m 755 "$BUILD/lib/libibverbs.so.1" "$WORK/own/lib/libibverbs.so.1"
install -m 755 "$TOOLS/sharer" "$WORK/own/bin/sharer"
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)

iface_of() { if [ "$1" = a ]; then echo $IF_A; else echo $IF_B; fi; }

# as_nobody SHARE NS: in words what stands before a program of that user.
as_nobody() {
	words=("${nobody[@]}" "$WORK/own/bin/xroce" run --dev "$(iface_of "$2")" --share "$1" --)
}

# program WHO NS: `user` is nobody with a broker, `alone` is root without one.
program() {
	case $1 in
	user) as_nobody always "$2" ;;
	alone) words=("$XROCE" run --dev "$(iface_of "$2")" --share never --) ;;
	esac
}

answers() { in_ns "$1" "$XROCE" list | grep -q 'broker *pid'; }

# serve NS IFACE
serve() {
	start "broker_$1" "$1" "$XROCE" serve "$2"
	eval "broker_$1=$child"
	wait_until 10 answers "$1" || { fail "no broker on $2"; show "broker_$1"; }
}

# exchange SERVER CLIENT NS BOUND TOOL... : the server is a SERVER on A, the client a CLIENT on NS.
exchange() {
	local server=$1 client=$2 ns=$3 bound=$4 dev=$DEV_A gid=$gid_a rc pid
	shift 4
	local tool=("$@")
	[ "$ns" = b ] && dev=$DEV_B && gid=$gid_b
	local flag=-g
	case $1 in ib_*) flag=-x ;; esac
	program "$server" a
	start server a "${words[@]}" "${tool[0]}" -d $DEV_A $flag "$gid_a" "${tool[@]:1}"
	pid=$child
	wait_until 10 listens_or_gone a 18515 "$pid"
	program "$client" "$ns"
	start client "$ns" "${words[@]}" "${tool[0]}" -d $dev $flag "$gid" "${tool[@]:1}" $IP4_A
	finish "$child" "$bound"
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc"; show client; stop "$pid"; show server; return 1; }
	finish "$pid" 10
	rc=$?
	[ $rc -eq 0 ] || { fail "the server ended with $rc"; show server; return 1; }
}

# pingpong SERVER CLIENT NS FAMILY TOOL SIZE ITERATIONS [OPTION...]
pingpong() {
	local who=("$1" "$2" "$3") family=$4 tool=$5 size=$6 n=$7 side
	shift 7
	gids_for "$family" || return
	exchange "${who[@]}" 60 "$tool" -s "$size" -n "$n" "$@" || return
	for side in server client; do
		need_line $side "^$((2 * size * n)) bytes in "
		need_no_line $side 'invalid data'
	done
}

# perf SERVER CLIENT NS TOOL SIZE ITERATIONS [OPTION...]
perf() {
	local who=("$1" "$2" "$3") tool=$4 size=$5 n=$6
	shift 6
	local sized=(-s "$size")
	case $tool in ib_atomic_*) sized=() ;; esac
	gids_for v4 || return
	exchange "${who[@]}" 90 "$tool" "${sized[@]}" -n "$n" -F "$@" || return
	awk -v s="$size" -v n="$n" '$1 == s && $2 % n == 0 && NF >= 5 && $4 + 0 >= 0 { found = 1 } END { exit !found }' "$WORK/client.out" ||
		{ fail "no line of results"; show client; }
}

# ---- who needs a broker is told so ----

no_broker() {
	program user a
	start lonely a "${words[@]}" ibv_rc_pingpong -d $DEV_A -g 0
	finish "$child" 10 && fail "it works without a broker"
	need_line lonely "^xroce: $IF_A: no broker on $IF_A: as root, \`xroce serve $IF_A\`"
	as_nobody auto a
	start lonely a "${words[@]}" ibv_rc_pingpong -d $DEV_A -g 0
	finish "$child" 10 && fail "it works without a broker and privileges"
	need_line lonely "no broker on $IF_A: as root, \`xroce serve $IF_A\`"
}

in_use() {
	local pid
	program alone a
	start holder a "${words[@]}" ibv_rc_pingpong -d $DEV_A -g 0
	pid=$child
	wait_until 10 listens_or_gone a 18515 "$pid"
	start late a "${words[@]}" ibv_rc_pingpong -d $DEV_A -g 0 -p 18516
	finish "$child" 10 && fail "the interface is used twice"
	need_line late "^xroce: $IF_A: in use by process $pid .*\`xroce serve $IF_A\`"
	stop "$pid"
}

# ---- programs ----

all_programs() {
	local name=$1 who=("${@:2}") t
	for t in rc uc srq; do
		run_case ${name}_${t}_v4 pingpong "${who[@]}" v4 ibv_${t}_pingpong 4096 300 -c
		run_case ${name}_${t}_events_v6 pingpong "${who[@]}" v6 ibv_${t}_pingpong 4096 300 -c -e
		run_case ${name}_${t}_large pingpong "${who[@]}" v4 ibv_${t}_pingpong 65536 60 -c -m 4096
	done
	run_case ${name}_ud pingpong "${who[@]}" v4 ibv_ud_pingpong 2048 300 -c
	run_case ${name}_ud_events_v6 pingpong "${who[@]}" v6 ibv_ud_pingpong 2048 300 -c -e
	for t in send_bw write_bw read_bw send_lat write_lat read_lat; do
		run_case ${name}_${t}_64 perf "${who[@]}" ib_$t 64 500
		run_case ${name}_${t}_65536 perf "${who[@]}" ib_$t 65536 100
	done
	run_case ${name}_atomic perf "${who[@]}" ib_atomic_bw 8 500
	run_case ${name}_send_bw_events perf "${who[@]}" ib_send_bw 64 500 -e
	run_case ${name}_send_bw_qps perf "${who[@]}" ib_send_bw 4096 500 -q 8
	run_case ${name}_write_bw_both perf "${who[@]}" ib_write_bw 65536 100 -b
	run_case ${name}_send_lat_ud perf "${who[@]}" ib_send_lat 64 500 -c UD
}

# ---- the broker's end, children, numbers ----

sharer() {
	as_nobody always a
	start sharer a "${words[@]}" "$WORK/own/bin/sharer" "$1" $DEV_A
	sharer=$child
}

sharer_ends() {
	local rc
	finish "$sharer" 30
	rc=$?
	[ $rc -eq 0 ] || { fail "sharer ended with $rc"; show sharer; }
}

said() { grep -qx "$1" "$WORK/sharer.out"; }
said_or_gone() { said "$1" || is_gone_or_zombie "$sharer"; }

broker_lost() {
	sharer lost
	wait_until 20 said_or_gone ready
	kill -9 $broker_a
	finish $broker_a 5
	wait_until 20 said_or_gone lost
	serve a $IF_A || return
	wait_until 20 said_or_gone again
	sharer_ends
	need_line sharer '^again$'
}

forks() {
	sharer fork
	sharer_ends
}

# Of 21 QPs 10 are destroyed.
owned() { bpftool map dump id "$(map_id $broker_a xroce_owner)" | grep -cE "\"pid\": $1\b"; }
numbers() {
	sharer numbers
	wait_until 20 said_or_gone ready
	need_equal "QPs that the process has" "$(owned "$sharer")" 11
	need_equal "descriptors that a program would inherit" "$(inherited "$sharer")" ""
	kill -9 "$sharer"
	finish "$sharer" 5
	wait_until 5 none_owned "$sharer" || fail "the dead process has $(owned "$sharer") QPs"
}
# What the library has opened, and is not close-on-exec.
inherited() {
	local f flags
	for f in "/proc/$1/fdinfo/"*; do
		flags=$(awk '$1 == "flags:" { print $2 }' "$f")
		case $(readlink "${f/fdinfo/fd}") in anon_inode:* | socket:* | /dev/net/tun | /memfd:*) ;; *) continue ;; esac
		(((8#$flags & 8#2000000))) || echo "${f##*/}"
	done
}
none_owned() { [ "$(owned "$1")" = 0 ]; }

# between WHAT... : another program in the broker's place, before which it is asked.
between() {
	path=/run/xroce/$(in_a stat -L -c %i /proc/self/ns/net)-
	path+=$(ip -n $NS_A -o link show dev $IF_A | cut -d: -f1).sock
	start between a "$TOOLS/go_between" "$path" "$@"
	between=$child
	wait_until 5 grep -qx ready "$WORK/between.out" || { fail "it is not ready"; show between; }
}

between_ends() {
	stop "$between"
	mv "$path.real" "$path"
}

# Three numbers of the first process are another's: it draws others.
taken_numbers() {
	between taken 3
	pingpong user alone b v4 ibv_rc_pingpong 4096 100 -c
	need_equal "numbers that were refused" "$(grep -c '^answered' "$WORK/between.out")" 3
	need_equal "different ones" "$(grep '^answered' "$WORK/between.out" | sort -u | wc -l)" 3
	between_ends
}

refused_numbers() {
	between "$1"
	sharer "$1"
	sharer_ends
	between_ends
}

run_case no_broker no_broker
run_case in_use in_use
serve a $IF_A || { cat "$WORK/case.notes"; exit 1; }
all_programs near user user a
all_programs wire user alone b
run_case wire_from_root pingpong user alone b v4 ibv_rc_pingpong 4096 300 -c
serve b $IF_B || { cat "$WORK/case.notes"; exit 1; }
all_programs far user user b
run_case forks forks
run_case numbers numbers
stop $broker_b
run_case taken_numbers taken_numbers
run_case refused_numbers_full refused_numbers full
run_case refused_numbers_garbage refused_numbers garbage
run_case broker_lost broker_lost
finish_cases
