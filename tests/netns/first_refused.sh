#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# A process that has its interface alone, and others that come: when they come at the same moment,
# when they may not, cannot, or only want to disturb.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/first.sh"
install -m 755 "$TOOLS/first_knock" "$OWN/bin"

# ---- at the same moment ----

# together N ROUNDS: N processes of root at a time, each with a link with itself and one with the
# peer.
together() {
	local round i rc pids peer rounds=$2
	: >"$GO"
	by_root $IF_B never
	traffic peer b -p 18601 -k "$GO" || return
	peer=$child
	for ((round = 1; round <= rounds; round++)); do
		pids=()
		by_root $IF_A auto
		for ((i = 0; i < $1; i++)); do
			start together$i a "${words[@]}" "$OWN/bin/first_traffic" -d $DEV_A \
				-p 1861$i -m 50 $IP4_A:1861$i $IP4_B:18601
			pids+=("$child")
		done
		for ((i = 0; i < $1; i++)); do
			finish "${pids[i]}" 30
			rc=$?
			[ $rc -eq 0 ] || { fail "round $round: number $i of $1 ended with $rc"; show together$i; }
		done
		nothing_left
		[ ! -s "$WORK/case.notes" ] || return
	done
	rm -f "$GO"
	finish "$peer" 20 || { fail "the peer ended with $?"; show peer; }
}

# ---- not allowed, not possible ----

# refused BY...: another process gets the error that the broker owns the interface
refused() {
	start late a "${words[@]}" "$OWN/bin/first_traffic" -d $DEV_A -m 1 $IP4_A:18600
	finish "$child" 15
	need_equal "how the late one ends" $? 1
	need_line late "^xroce: $IF_A: in use by process [0-9]* .xroce"
}

# Both ends of the cable at work, as begin has them, with the first by $words.
begin_alone() {
	traffic first a -p 18600 -k "$GO" $IP4_A:18600 || return
	first=$child
	by_root $IF_B never
	traffic peer b -p 18601 -k "$GO" $IP4_A:18600 || return
	peer=$child
}

# The first shares with no other process.
never_shares() {
	: >"$GO"
	by_root $IF_A never
	begin_alone || return
	by_root $IF_A auto
	refused
	by_root $IF_A never
	refused
	by_user $IF_A auto
	refused
	still_at_work
	nothing_was_lost
	end
}

# The other process does not want to share.
never_asks() {
	begin || return
	by_root $IF_A never
	refused
	is_alone || fail "the first has noticed"
	guests 30 && guests_end
	still_at_work
	nothing_was_lost
	end
}

# The first has given up its privileges since, as daemons do: the broker has them.
no_privileges() {
	begin -u 65534 || return
	guests 30 && guests_end
	alone_again
	still_at_work
	nothing_was_lost
	end
}

# unable REASON: a process of root cannot start a broker, and says why.
unable() {
	by_root $IF_A auto
	start late a "${words[@]}" "$OWN/bin/first_traffic" -d $DEV_A -m 1 $IP4_A:18600
	finish "$child" 15 && fail "it works without a broker"
	need_line late "$1"
	nothing_left
}
no_command() {
	[ -x /usr/local/bin/xroce ] && { skip_reason="xroce is installed here"; return 77; }
	mv "$OWN/bin/xroce" "$OWN/bin/xroce.away"
	unable "^xroce: $IF_A: cannot start a broker .*: No such file or directory"
	mv "$OWN/bin/xroce.away" "$OWN/bin/xroce"
}
# The status of the loader when a library is missing, which is not an errno.
command_unloaded() {
	echo unloaded >"$OWN/how"
	unable "^xroce: $IF_A: cannot start a broker .*: No such file or directory"
	rm -f "$OWN/how"
}
command_fails() {
	echo fail >"$OWN/how"
	unable "^ibv_create_qp: "
	rm -f "$OWN/how"
	begin || return
	guests 30 && guests_end
	alone_again
	end
}

# No place to listen: alone, as ever, and not a word about it.
no_place() {
	mkdir -p /run/xroce
	: >"$GO"
	by_root $IF_A auto
	words=(unshare -m --propagation private
		sh -c 'mount -t tmpfs -o ro none /run/xroce && exec "$@"' sh "${words[@]}")
	begin_alone || return
	[ ! -e "$SOCKET" ] || fail "there is $SOCKET"
	by_root $IF_A auto
	refused
	still_at_work
	end
}

# ---- hostile ----

# hostile HOW N: a user at the socket. The first works on, and the next honest process is admitted
# after the user has left.
hostile() {
	local knock
	begin || return
	start knock a "${NOBODY[@]}" "$OWN/bin/first_knock" "$SOCKET" "$@"
	knock=$child
	wait_until 30 said_or_gone knock '^knocked' "$knock"
	said knock '^knocked' || { fail "it did not come in"; show knock; }
	still_at_work
	is_gone_or_zombie "$knock" && { fail "it has ended"; show knock; }
	kill "$knock"
	finish "$knock" 10
	wait_until 20 is_alone
	guests 30 && guests_end
	alone_again
	still_at_work
	nothing_was_lost
	end
}

first_case two_together together 2 1
first_long_case two_together_often together 2 4
first_long_case five_together together 5 4
first_case never_shares never_shares
first_long_case never_asks never_asks
first_case no_privileges no_privileges
first_long_case no_command no_command
first_case command_unloaded command_unloaded
first_case command_fails command_fails
first_case no_place no_place
first_long_case hostile_silent hostile silent 100
first_long_case hostile_half hostile half 20
first_long_case hostile_garbage hostile garbage 20
first_long_case hostile_flood hostile flood 8
first_long_case hostile_comes_and_goes hostile come 1000
finish_cases
