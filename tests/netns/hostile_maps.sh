#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long
# needs: build-san
#
# Lying processes (hostile_maps.c): they rewrite all maps of their descriptors, while each command
# inspects them, as root and as users, into files and on a terminal. The commands are built with
# ASan and UBSan in BUILD-san. None may crash, hang, use unbounded memory, print terminal sequences
# or invalid JSON (lib/looker.py). No row may belong to another process than the map's owner: an
# honest process's rows are there as before.
#
# A new command goes into one of the four lists. XROCE_HOSTILE_ROUNDS=50 for more in the long tier.
# The core looks with few commands, without sanitizers; tests/unit/test_hostile_maps.c reads maps of
# any bytes there.
. "$(dirname "$0")/lib/case.sh"

# all that exist also have --json, and filters --dev and --pid
TABLES=(stat qp cq srq mr clients)
# repeat, as stat: -i SECONDS, -c N
WATCHED=(stat)
# a line for each event, until -D SECONDS
STREAMS=(trace)
# neither, as they stand
OTHERS=(list "list $IF_A" doctor "capture -D 1 -w $WORK/capture" "capture -D 1 -w -")
ROUNDS=${XROCE_HOSTILE_ROUNDS:-1}
is_core() { [ "${XROCE_CASES:-}" = core ]; }

netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
# `xroce doctor` starts no broker with UDP sockets then
export XROCE_PORT=xdp
USER_=(setpriv --reuid=12345 --regid=12346 --clear-groups --inh-caps=-all --bounding-set=-all)

# A second interface, of the honest process where each has one alone.
SECOND=vc
ip link add $SECOND mtu 4500 netns $NS_A type veth peer name vd mtu 4500 netns $NS_B &&
	netns_host $NS_A $SECOND 02:00:00:77:00:03 10.78.0.1 fd78::1 &&
	netns_host $NS_B vd 02:00:00:77:00:04 10.78.0.2 fd78::2 || netns_die "no second pair"

# The commands under sanitizers, where every user may read them.
SAN=$WORK/san/bin/xroce
mkdir -p "$WORK/san/bin" "$WORK/san/lib"
if is_core; then
	install -m 755 "$XROCE" "$SAN"
	TABLES=(qp) WATCHED=() STREAMS=() OTHERS=("list $IF_A")
else
	"${MAKE:-make}" --no-print-directory -C "$here" BUILD="$BUILD-san" SAN=1 -j"$(nproc)" "$BUILD-san/bin/xroce" >"$WORK/make.out" 2>&1 || { cat "$WORK/make.out"; exit 1; }
	install -m 755 "$BUILD-san/bin/xroce" "$SAN"
fi
install -m 755 "$BUILD"/lib/lib*.so* "$WORK/san/lib/"
install -m 755 "$TOOLS/hostile_maps" "$OWN/bin/"
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1}:exitcode=99"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}:exitcode=99"

# One process judges all commands.
coproc LOOKER {
	exec nsenter --net=/run/netns/$NS_A python3 "$here/tests/netns/lib/looker.py" - 2>&1
}
netns_children+=("$LOOKER_PID")

# lying NAME WHO DEVICE SEED [PID...]: a process of hostile_maps.c, in $liar. Seed 0: an honest one.
lying() {
	local name=$1 who=() dev=$3 seed=$4
	case $2 in nobody) who=("${NOBODY[@]}") ;; user) who=("${USER_[@]}") ;; esac
	shift 4
	start "$name" a "${who[@]}" "$OWN/bin/xroce" run --dev "$dev" -- "$OWN/bin/hostile_maps" "xroce_$dev" "$seed" "$@"
	liar=$child
	wait_until 20 grep -qE '^(rewriting|honest)$' "$WORK/$name.out" || { fail "$name does not begin"; show "$name"; return 1; }
}
lies_still() { ! is_gone_or_zombie "$1" || { fail "the process that lies has ended"; show liar; }; }

# judged WHO KIND OPTION... -- WORD...: runs a command, and judges its output
judged() {
	local who=() options=() words=() as=$1 kind=$2 line
	case $as in nobody) who=("${NOBODY[@]}") ;; user) who=("${USER_[@]}") ;; esac
	shift 2
	split_words options words "$@"
	looked=$((looked + 1))
	{ printf '%q ' "$kind" "${options[@]}" -- "${who[@]}" "$SAN" "${words[@]}"; echo; } >&"${LOOKER[1]}"
	while IFS= read -r line <&"${LOOKER[0]}"; do
		[ "$line" != . ] || return 0
		fail "$as: xroce ${words[*]}: $line"
	done
	fail "looker.py has ended"
}

# honest_rows WHO PID: the rows of that process in each table, before any process lies
honest_rows() {
	local c
	rm -f "$WORK"/rows.*
	for c in "${TABLES[@]}"; do
		judged "$1" json --rows "$2" "$WORK/rows.$1.$c" -- "$c" --json
	done
}

# look_at WHO HONEST PID...: all commands, as that user, who sees processes of these numbers
look_at() {
	local who=$1 honest=$2 all i c words
	shift
	all=$(IFS=,; echo "$*")
	for ((i = 0; i < ROUNDS; i++)); do
		for c in "${TABLES[@]}"; do
			judged "$who" text -- "$c"
			judged "$who" text --tty -- "$c"
			judged "$who" json --pids "$all" --rows "$honest" "$WORK/rows.$who.$c" -- "$c" --json
			judged "$who" json --pids "$all" --rows "$honest" "$WORK/rows.$who.$c" -- "$c" --json
		done
		for c in "${WATCHED[@]}"; do
			judged "$who" text --tty -- "$c" -i 0.05 -c 10
			judged "$who" text -- "$c" -i 0.05 -c 10
			judged "$who" lines --pids "$all" -- "$c" -i 0.05 -c 10 --json
		done
		for c in "${STREAMS[@]}"; do
			judged "$who" text --tty -- "$c" -D 1
			judged "$who" lines --pids "$all" -- "$c" -D 1 --json
		done
		for c in "${OTHERS[@]}"; do
			read -ra words <<<"$c"
			case $c in *'-w -') judged "$who" binary -- "${words[@]}" ;; *) judged "$who" text --pids "$all" -- "${words[@]}" ;; esac
		done
	done
}

# Root's own process, and another of root's on the other interface.
alone() {
	local honest
	lying honest root $SECOND 0 && honest=$liar || return
	honest_rows root "$honest"
	lying liar root $IF_A 1 "$honest" 1 || return
	# it prints the maps that it can write to
	need_line liar '^\.data\.trace mapped$'
	need_line liar '^xroce_qp mapped$'
	need_line liar '^tellers [1-9]'
	broker=$(brokers_of_both)
	# shellcheck disable=SC2086 # two pids
	look_at root "$honest" "$liar" $broker
	# shellcheck disable=SC2086
	look_at nobody 0 "$liar" $broker
	lies_still "$liar"
	stop "$liar"; stop "$honest"
}
brokers_of_both() { in_a "$XROCE" list | sed -n 's/^  broker *pid \([0-9]*\) .*/\1/p'; }

# A client of a broker, and another user's; each user looks, and root.
client() {
	local honest map
	serve a $IF_A || return
	lying honest user $IF_A 0 && honest=$liar || return
	honest_rows root "$honest"
	KEEP_MAPS=1 lying liar nobody $IF_A 2 "$honest" 1 "$broker" || return
	for map in xroce_qp_stat xroce_cq_stat xroce_srq_stat xroce_mr_stat xroce_eng_stat xroce_engine; do
		need_line liar "^$map mapped\$"
	done
	need_line liar '^xroce_qp mapped$'
	look_at root "$honest" "$liar" "$broker"
	look_at nobody 0 "$liar" "$broker"
	lies_still "$liar"
	stop "$liar"; stop "$honest"
	stop "$broker"
}

# A process that lied alone, and has a broker started when another comes.
first() {
	local honest
	lying liar root $IF_A 3 1 || return
	local first=$liar
	lying honest user $IF_A 0 && honest=$liar || return
	honest_rows user "$honest"
	broker=$(in_a "$XROCE" list $IF_A | sed -n 's/^  broker *pid \([0-9]*\) .*/\1/p')
	look_at root 0 "$first" "$honest" "$broker"
	look_at user "$honest" "$honest" "$broker"
	lies_still "$first"
	stop "$first"; stop "$honest"
}

looked=0
run_case alone alone
run_case client client
run_case first first
echo "# $looked commands"
finish_cases
