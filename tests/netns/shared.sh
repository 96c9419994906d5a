#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Many processes on one interface, without root: unmodified programs of a user without any
# privilege, two on the interface of A that talk to each other, and one there that talks over the
# wire to B, whose interface one process has alone. perftest_shared.sh has perftest between two
# processes on one interface.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/perf.sh"
. "$here/tests/netns/lib/perftest.sh"
. "$here/tests/netns/lib/exchange.sh"

# ---- programs that need a broker get a message ----

no_broker() {
	local -x XROCE_PORT=xdp
	program user a
	start lonely a "${words[@]}" ibv_rc_pingpong -d $DEV_A -g 0
	finish "$child" 10 && fail "it works without a broker"
	need_line lonely "no broker on $IF_A; as root, run \`xroce serve $IF_A\`"
	as_nobody auto a
	start lonely a "${words[@]}" ibv_rc_pingpong -d $DEV_A -g 0
	finish "$child" 10 && fail "it works without a broker and privileges"
	need_line lonely "no broker on $IF_A; as root, run \`xroce serve $IF_A\`"
}

in_use() {
	local pid
	program alone a
	start holder a "${words[@]}" ibv_rc_pingpong -d $DEV_A -g 0
	pid=$child
	wait_until 10 listens_or_gone a 18515 "$pid"
	start late a "${words[@]}" ibv_rc_pingpong -d $DEV_A -g 0 -p 18516
	finish "$child" 10 && fail "the interface is used twice"
	need_line late "^xroce: $IF_A: in use by process [0-9]* .xroce. for a process that shares it with no other; .*\`xroce list $IF_A\`"
	stop "$pid"
}

# ---- the broker's end, children, numbers ----

install -m 755 "$TOOLS/sharer" "$OWN/bin/sharer"

sharer() {
	as_nobody always a
	start sharer a "${words[@]}" "$OWN/bin/sharer" "$1" $DEV_A
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
	broker_a=$broker
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

# between WHAT... : another program in the broker's place, which gets the requests first.
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

# Three numbers in whose place the process has a QP: it gives them back, and has others.
useless_numbers() {
	between useless 3
	sharer numbers
	wait_until 20 said_or_gone ready
	need_equal "numbers drawn in vain" "$(grep -c '^drew' "$WORK/between.out")" 3
	need_equal "and given back" "$(sed -n 's/^released //p' "$WORK/between.out" | sort)" \
		"$(sed -n 's/^drew //p' "$WORK/between.out" | sort)"
	need_equal "QPs that the process has" "$(owned "$between")" 11
	stop "$sharer"
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
broker_a=$broker
core_cases=(
	near_rc_v4 near_ud_events_v6 wire_uc_events_v6 wire_write_bw_65536_both wire_read_lat_64
)
pingpong_cases near user user a
pingpong_cases wire user alone b
perftest_cases mixed wire_ measure user alone b
run_case forks forks
run_case numbers numbers
run_case useless_numbers useless_numbers
run_case refused_numbers_full refused_numbers full
run_long_case refused_numbers_garbage refused_numbers garbage
run_case broker_lost broker_lost
finish_cases
