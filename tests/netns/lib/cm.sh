# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Programs that connect by librdmacm, in three places:
#
#   between	the server in A, the client in B; each has its interface alone
#   within	both in A, on one interface, which they share when the second comes
#   user	both in A, of a user without any privilege, on a broker's interface
#
# and over two families. Sourced after case.sh and unprivileged.sh and the topology.
#
#   cm_place between|within|user
#   cm_family v4|v6	sets $server_ip, $client_ip, $any_ip
#   cm_pair SECONDS SERVER... -- CLIENT...	both must end with 0 in time

cm_place=between
broker=

cm_place() {
	cm_place=$1
	[ "$1" != user ] || [ -n "$broker" ] || serve a $IF_A
}

cm_family() {
	case $1 in
	v4) server_ip=$IP4_A any_ip=0.0.0.0 family_word=ip ;;
	v6) server_ip=$IP6_A any_ip=:: family_word=ipv6 ;;
	esac
	case $cm_place.$1 in
	between.v4) client_ip=$IP4_B ;;
	between.v6) client_ip=$IP6_B ;;
	*) client_ip=$server_ip ;;
	esac
}

# cm_start NAME server|client COMMAND...
cm_start() {
	local name=$1 end=$2
	shift 2
	case $cm_place.$end in
	between.client) start "$name" b "$XROCE" run --dev $IF_B "${CM_RUN[@]}" -- "$@" ;;
	user.*)
		start "$name" a "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A \
			"${CM_RUN[@]}" -- "$@"
		;;
	*) start "$name" a "$XROCE" run --dev $IF_A "${CM_RUN[@]}" -- "$@" ;;
	esac
}
# More options of `xroce run`.
CM_RUN=()

# cm_listens PID|any [NS]: the process listens by rdma_cm at the interface of A (or B), and may be
# asked. Not to be had from ss(8): `xroce list` shows it, alone, shared, and of any user.
cm_listens() {
	local ns=${2:-a} dev=$IF_A who=$1
	[ "$ns" = b ] && dev=$IF_B
	[ "$who" = any ] && who='[0-9]+'
	[[ $'\n'$(in_ns "$ns" "$XROCE" list $dev) =~ $'\n  listens   pid '$who' ' ]]
}
cm_listens_or_gone() { is_gone_or_zombie "$1" || cm_listens "$@"; }

# cm_wait_listening PID [NS]: until it listens. Fails if it has ended, or does not in 20 s.
cm_wait_listening() { wait_until 20 cm_listens_or_gone "$@" && ! is_gone_or_zombie "$1"; }

# cm_serve COMMAND...: starts `server`, its pid in $cm_server, and waits until it listens.
cm_serve() {
	cm_start server server "$@"
	cm_server=$child
	cm_wait_listening "$cm_server" && return
	stop "$cm_server"
	fail "the server does not listen: $*"
	show server
	return 1
}

# rping destroys its event channel while its other thread may be about to ask for one more event,
# which then ends the program: with 255, when all is done. NAME STATUS
rping_was_done() {
	[ "$2" -eq 255 ] && grep -q 'ping data: rdma-ping-' "$WORK/$1.out" &&
		grep -q '^rdma_get_cm_event: Bad file descriptor$' "$WORK/$1.out"
}

# cm_end NAME PID SECONDS: it must end with 0.
cm_end() {
	local rc
	finish "$2" "$3"
	rc=$?
	[ $rc -eq 0 ] || rping_was_done "$1" $rc || { fail "$1 ended with $rc"; show "$1"; return 1; }
}

cm_pair() {
	local bound=$1 server client
	split_words server client "${@:2}"
	cm_serve "${server[@]}" || return
	cm_start client client "${client[@]}"
	if ! cm_end client "$child" "$bound"; then
		fail "with: ${client[*]}"
		stop "$cm_server"
		show server
		return 1
	fi
	cm_end server "$cm_server" 20
}

# cm_case PLACES FAMILIES NAME FUNCTION...: adds the case NAME_PLACE_FAMILY of each place and
# family. If the script has core_cases, the others are of the long tier.
cm_cases=()
cm_case() { cm_cases+=("$(printf '%q ' "$@")"); }
cm_everywhere() { cm_case "between within user" "v4 v6" "$@"; }

# cm_run: runs all cases of one place before the next place's, so that a broker stays.
cm_run() {
	local place families name case run=run_case
	[ ${#core_cases[@]} = 0 ] || run=tier_case
	for place in between within user; do
		: >"$WORK/case.notes"
		cm_place $place || { echo "not ok the place $place"; cat "$WORK/case.notes"; case_failed=1; continue; }
		for case in "${cm_cases[@]}"; do
			eval "set -- $case"
			case " $1 " in *" $place "*) ;; *) continue ;; esac
			families=$2 name=$3
			shift 3
			for family in $families; do
				cm_family $family
				$run "${name}_${place}_$family" "$@"
			done
		done
	done
}
