#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long shards XROCE_TEST_QUEUES=2 XROCE_FIRST_TIMES=5
#
# A process that owns its interface shares it when others come, and owns it again when they have
# left. Its traffic with another host is checked all the time, message by message, over RC, UC and
# UD. XROCE_FIRST_TIMES: how often they come; 100 by hand.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/first.sh"

TIMES=${XROCE_FIRST_TIMES:-20}
MODES="generic native"
# generic XDP knows the first queue only
[ "${XROCE_TEST_QUEUES:-1}" = 1 ] || MODES=native

# Every fourth time the first is waited for until it is alone again; the other times the next ones
# come while the broker is about to end, or has just ended.
come_and_go() {
	local i
	export XROCE_XDP=$1
	begin "${@:2}" || return
	for ((i = 1; i <= TIMES; i++)); do
		guests $((30 + i * 7 % 60)) && guests_end || { fail "the ${i}th time"; return; }
		if [ $((i % 4)) = 0 ]; then
			alone_again
			still_at_work || return
		fi
	done
	alone_again
	still_at_work
	nothing_was_lost
	end
}

# The same, of programs as they are: pingpongs and perftest between two processes of a user, while
# the first is a pingpong over the wire that has no end.
. "$(dirname "$0")/lib/preload.sh"
preload_make paced first/paced.c
paced() { preloaded paced "$@"; }
flows() { [ "$(counter "$1" xroce_rx redirected)" -gt "$2" ]; }
still_flows() {
	local n
	is_gone_or_zombie "$1" && { fail "$2 has ended"; show "$2"; return; }
	n=$(counter "$1" xroce_rx redirected) && wait_until 20 flows "$1" $((n + 100)) ||
		{ fail "$2 gets nothing more"; show "$2"; }
}
# between NS TOOL...: two processes of the user, the server on A
between() {
	local ns=$1 dev=$DEV_A iface=$IF_A flag=-g server
	shift
	case $1 in ib_*) flag=-x ;; esac
	by_user $IF_A auto
	start server a "${words[@]}" "$1" -d $DEV_A $flag 0 "${@:2}"
	server=$child
	wait_until 30 listens_or_gone a "$port" "$server"
	[ "$ns" = b ] && dev=$DEV_B iface=$IF_B
	by_user $iface auto
	start client "$ns" "${words[@]}" "$1" -d $dev $flag 0 "${@:2}" $IP4_A
	finish "$child" 60 ||
		{ fail "the client of $* ended with $?"; show client; kill -9 "$server" 2>/dev/null; }
	finish "$server" 20 || { fail "the server of $* ended with $?"; show server; }
}
programs() {
	local t port=18590 peer_share=$1
	: >"$OWN/started"
	by_root $IF_A auto
	paced start first a "${words[@]}" ibv_rc_pingpong -d $DEV_A -g 0 -n 100000000 -e
	first=$child
	wait_until 10 listens_or_gone a 18515 "$first"
	by_root $IF_B "$peer_share"
	paced start peer b "${words[@]}" ibv_rc_pingpong -d $DEV_B -g 0 -n 100000000 -e $IP4_A
	peer=$child
	wait_until 10 flows "$first" 100 || { fail "nothing flows"; show first; return; }
	for t in rc uc ud srq; do
		between a ibv_${t}_pingpong -s 2048 -n 300 -c -p $port || return
		need_line client '^1228800 bytes in '
	done
	between a ib_send_bw -s 65536 -n 100 -F -p $port
	between a ib_write_lat -s 64 -n 500 -F -p $port
	between a ib_read_bw -s 4096 -n 300 -F -p $port -e
	if [ "$peer_share" = auto ]; then
		between b ibv_rc_pingpong -s 4096 -n 300 -c -p $port
		between b ibv_uc_pingpong -s 4096 -n 300 -c -e -p $port
		between b ib_write_bw -s 65536 -n 100 -F -p $port
	fi
	still_flows "$first" first
	still_flows "$peer" peer
	alone_again
	still_flows "$first" first
	still_flows "$peer" peer
	kill "$first" "$peer"
	finish "$first" 5
	finish "$peer" 5
	rm -f "$SOCKET" # pingpong ends by the signal, and takes nothing away
	nothing_left
}

# ---- numbers of QPs ----

ask() { in_a timeout 60 "$OWN/bin/asker" "$SOCKET" "$@"; }
held() {
	messages first
	sed -n 's/^at [0-9]* held //p' "$WORK/first.out" | tail -n 1
}
draws() { [ "$(grep -c '^drawn' "$WORK/first.out")" -gt "$1" ]; }
drawn() {
	local n
	n=$(grep -c '^drawn' "$WORK/first.out")
	kill -USR2 "$first"
	wait_until 30 draws "$n" || { fail "no numbers were drawn"; show first; }
	sed -n 's/^drawn //p' "$WORK/first.out" | tail -n 1
}
# It is hung up while a broker ends.
is_heard() {
	ask hello "$@" >"$WORK/claim.out" 2>&1
	grep -q '^hello 0' "$WORK/claim.out"
}
# claimed WHAT ANSWER NUMBER...: a process of root claims them, and is answered so each time
claimed() {
	local what=$1 answer=$2 n words=()
	shift 2
	for n in "$@"; do
		words+=(claim "$n")
	done
	wait_until 20 is_heard "${words[@]}" || fail "nobody answers"
	n=$(grep -c "^claim $answer\$" "$WORK/claim.out")
	need_equal "numbers $what ($answer)" "$n" $# || show claim
}
numbers() {
	local mine gone low=1000000 n=60000 i
	: >"$GO"
	: >"$OWN/started"
	by_root $IF_A auto
	traffic first a -p 18600 -k "$GO" $IP4_A:18600 || return
	first=$child
	by_root $IF_B never
	traffic peer b -p 18601 -k "$GO" $IP4_A:18600 || return
	peer=$child
	wait_until 5 listens_alone || { fail "nobody listens for others"; return; }
	messages peer
	mine=$(held) gone=$(drawn | cut -d' ' -f1-50)
	need_equal "QPs of the first" "$(wc -w <<<"$mine")" 9
	# shellcheck disable=SC2086 # words
	{
		claimed "that it made while alone" EEXIST $mine
		claimed "that it destroyed while alone" 0 $gone
		guests 100000000 || return
		still_at_work
		claimed "that it made with others there" EEXIST $(held)
		claimed "that it destroyed with others there" 0 $(drawn | cut -d' ' -f1-50)
		kill "$guest"
		guests_end || return
		alone_again
		claimed "that it has after all" EEXIST $(held)
	}
	alone_again
	start claims a "$OWN/bin/asker" "$SOCKET" hello claims $low $n hold
	wait_until 60 said claims '^hold' || { fail "no claims"; show claims; }
	for i in 1 2 3 4 5; do
		drawn
	done | tr ' ' '\n' >"$WORK/drawn"
	need_least "numbers drawn" "$(wc -l <"$WORK/drawn")" 990
	need_equal "numbers given twice" \
		"$(awk -v l=$low -v n=$n '$1 >= l && $1 < l + n' "$WORK/drawn" | wc -l)" 0
	kill "$child"
	finish "$child" 5
	alone_again
	end
}

# ---- a child ----

forks() {
	by_root $IF_A auto
	start sharer a "${words[@]}" "$OWN/bin/sharer" fork $DEV_A
	finish "$child" 30 || { fail "sharer ended with $?"; show sharer; }
	nothing_left
}

# ---- a set-user-ID program ----

# Neither the program nor its broker takes anything from the environment of its caller: with this
# XROCE_DEV a program has no device.
set_user_id() {
	cat >"$WORK/opens.c" <<'END'
#include <infiniband/verbs.h>
#include <unistd.h>
int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && *list && !setuid(0) ? ibv_open_device(*list) : NULL;
	struct ibv_cq *cq = ctx ? ibv_create_cq(ctx, 8, NULL, NULL, 0) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
					 .cap = { 1, 1, 1, 1, 0 } };

	return !pd || !cq || !ibv_create_qp(pd, &init);
}
END
	gcc -o "$OWN/bin/opens" "$WORK/opens.c" -Wl,-rpath,"$OWN/lib" "$OWN/lib/libibverbs.so.1" ||
		{ fail "no program"; return; }
	chmod 4755 "$OWN/bin/opens"
	: >"$OWN/started"
	echo 'environment' >"$OWN/how"
	start opens a setpriv --reuid=65534 --regid=65534 --clear-groups env XROCE_DEV=none \
		XROCE_PIN=/sys/fs/bpf/pins OF_THE_CALLER=1 "$OWN/bin/opens"
	finish "$child" 20 || { fail "the program ended with $?"; show opens; }
	need_equal "brokers started" "$(started)" 1
	grep -E 'XROCE_|OF_THE_CALLER' "$OWN/environment" && fail "a variable of the caller"
	rm -f "$OWN/how"
	nothing_left
}

for m in $MODES; do
	first_long_case "come_and_go_$m" come_and_go $m
done
TIMES=2
first_case come_and_go_twice come_and_go native
TIMES=3
first_long_case come_and_go_polling come_and_go native -P
unset XROCE_XDP
first_long_case programs programs never
first_long_case programs_both_ends programs auto
first_long_case numbers numbers
first_case forks forks
first_case set_user_id set_user_id
finish_cases
