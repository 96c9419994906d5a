#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Permissions of a broker's clients (docs/broker.md): root, root without capabilities, a user, a
# user with one capability, a process of another network namespace; and invalid proofs. Each speaks
# the protocol itself (who.py), so that no library of ours filters the requests.
. "$(dirname "$0")/lib/case.sh"
netns_pair 1500
. "$here/tests/netns/lib/unprivileged.sh"
cp "$here/tests/netns/who.py" "$OWN/who.py"
install -m 755 "$TOOLS/mads" "$OWN/bin"
chmod 644 "$OWN/who.py"
export ASK_VERSION
ASK_VERSION=$(sed -nE "s/^#define ASK_VERSION ([0-9]+)u\$/\1/p" "$here/user/os/ask.h")

BARE=(setpriv --inh-caps=-all --bounding-set=-all)
# with CAPABILITY: the words before a command that run it as a user with that one.
with() {
	words=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps="-all,+$1"
		--bounding-set="-all,+$1" --ambient-caps="-all,+$1")
}

# asks NAME NS WORDS... -- STEP...: what NAME is answered, a line a step, is in $WORK/NAME.out.
asks() {
	local name=$1 ns=$2 before steps
	split_words before steps "${@:3}"
	in_ns "$ns" "${before[@]}" /usr/bin/python3 "$OWN/who.py" "$door" "${steps[@]}" >"$WORK/$name.out" 2>&1 ||
		{ fail "$name ended with $?"; show "$name"; }
}
# answered NAME LINE...: exactly these.
answered() {
	need_equal "what $1 is answered" "$(cat "$WORK/$1.out")" "$(printf '%s\n' "${@:2}")"
}

# A client of root's and one of a user's, which wait for a peer.
begin() {
	serve a $IF_A || return
	door=/run/xroce/$(in_a stat -L -c %i /proc/self/ns/net)-$(ip -n $NS_A -o link show dev $IF_A | cut -d: -f1).sock
	start roots a env XROCE_SHARE=always "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -g 0 -p 18700
	roots=$child
	start users a "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A -- ibv_rc_pingpong -g 0 -p 18701
	users=$child
	wait_until 20 listens_or_gone a 18700 "$roots"
	wait_until 20 listens_or_gone a 18701 "$users"
	in_a "$XROCE" list $IF_A >"$WORK/list.out"
	at_roots=$(number_of "$roots") at_users=$(number_of "$users")
	steps=("maps=$at_roots" "trace=$at_roots" "maps=$at_users" "trace=$at_users")
}
# number_of PID: of a client, at its broker
number_of() { sed -n "s/^  client  *\([0-9]*\): pid $1 .*/\1/p" "$WORK/list.out"; }

# Maps and packets of each client: root and CAP_NET_ADMIN get all; a user gets the ones of the same
# user without CAP_NET_ADMIN; and all others get none.
# looked NAME ROOTS USERS: that NAME, with the steps of begin(), was answered this about each, which
# is `yes` or an error.
looked() {
	local maps_of_roots=$2 trace_of_roots=$2 maps_of_users=$3 trace_of_users=$3
	[ "$2" = yes ] && maps_of_roots=16 trace_of_roots=2
	[ "$3" = yes ] && maps_of_users=16 trace_of_users=2
	need_equal "what $1 is answered" "$(tail -n 4 "$WORK/$1.out")" "$(printf '%s\n' \
		"maps=$at_roots: $maps_of_roots" "trace=$at_roots: $trace_of_roots" \
		"maps=$at_users: $maps_of_users" "trace=$at_users: $trace_of_users")"
}
looks_before_proof() { asks looks a -- "${steps[@]}"; looked looks ENONET ENONET; }
looks_as_root() { asks looks a -- prove "${steps[@]}"; looked looks yes yes; }
looks_as_bare_root() { asks looks a "${BARE[@]}" -- prove "${steps[@]}"; looked looks ENOENT ENOENT; }
looks_as_user() { asks looks a "${NOBODY[@]}" -- prove "${steps[@]}"; looked looks ENOENT yes; }
looks_as_other_user() {
	asks looks a setpriv --reuid=12345 --regid=12345 --clear-groups -- prove "${steps[@]}"
	looked looks ENOENT ENOENT
}
looks_with_raw() {
	with net_raw
	asks looks a "${words[@]}" -- prove "${steps[@]}"
	looked looks ENOENT yes
}
looks_with_admin() {
	with net_admin
	asks looks a "${words[@]}" -- prove "${steps[@]}"
	looked looks yes yes
}
looks_from_elsewhere() { asks looks b -- prove "${steps[@]}"; looked looks ENONET ENONET; }

nothing_before_proof() {
	asks early a -- hello list claim stop
	answered early "hello: ENONET" "list: ENONET" "claim: ENONET" "stop: ENONET"
}
root() {
	local all
	asks root a -- prove list hello claim again
	all=$(sed -n 's/^list: //p' "$WORK/root.out")
	[[ " $all " == *" $roots "* && " $all " == *" $users "* ]] || fail "root does not see both: $all"
	answered root "prove: ok" "list: $all" "hello: privileged 1" "claim: ok" "again: EALREADY"
}
root_without_capabilities() {
	asks bare a "${BARE[@]}" -- prove list hello claim stop
	answered bare "prove: ok" "list: " "hello: privileged 0" "claim: EPERM" "stop: EPERM"
}
user() {
	asks user a "${NOBODY[@]}" -- prove list hello claim stop
	answered user "prove: ok" "list: $users" "hello: privileged 0" "claim: EPERM" "stop: EPERM"
}
raw_alone() {
	with net_raw
	asks raw a "${words[@]}" -- prove list hello claim stop
	answered raw "prove: ok" "list: $users" "hello: privileged 1" "claim: EPERM" "stop: EPERM"
	asks mark a "${words[@]}" -- prove=mark hello
	answered mark "prove=mark: ok" "hello: privileged 0"
}
admin_alone() {
	with net_admin
	asks admin a "${words[@]}" -- prove list hello claim
	need_line admin "^list: .*\\b$roots\\b"
	need_line admin '^claim: ok$'
}
# mads prints what binding a service's port is answered
port_80() {
	local gid
	gids_for v4 || return
	gid=$gid_a
	with "${1:-net_bind_service}"
	start binder a "${words[@]}" "$OWN/bin/xroce" run --dev $IF_A -- "$OWN/bin/mads" -s 0x01060050 $DEV_A "$gid"
	finish "$child" 20
	need_line binder "^service 0x1060050: $2\$"
}
low_port() { port_80 net_bind_service bound; }
low_port_refused() { port_80 net_admin EACCES; }
elsewhere() {
	asks elsewhere b -- hello prove hello list stop
	answered elsewhere "hello: ENONET" "prove: ENONET" "hello: ENONET" "list: ENONET" "stop: ENONET"
}
useless_proofs() {
	local wrong
	asks again a -- again prove again
	answered again "again: EINVAL" "prove: ok" "again: EINVAL"
	for wrong in address size; do
		asks $wrong a -- prove=$wrong again hello stop
		answered $wrong "prove=$wrong: ENONET" "again: EINVAL" "hello: ENONET" "stop: ENONET"
	done
}
ends() {
	with net_admin
	stop "$roots"
	stop "$users"
	asks stopper a "${words[@]}" -- prove stop
	answered stopper "prove: ok" "stop: ok"
	finish "$broker" 20 || fail "the broker ends with $?"
}

run_case begin begin
run_case nothing_before_proof nothing_before_proof
run_case root root
run_case root_without_capabilities root_without_capabilities
run_case user user
run_case raw_alone raw_alone
run_case admin_alone admin_alone
run_case low_port low_port
run_case low_port_refused low_port_refused
run_case elsewhere elsewhere
run_case useless_proofs useless_proofs
for who in before_proof as_root as_bare_root as_user as_other_user with_raw with_admin from_elsewhere; do
	run_case looks_$who looks_$who
done
run_case ends ends
finish_cases
