#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core XROCE_CASE=!(*numbers)
# tier: core numbers XROCE_CASES=core XROCE_CASE=*numbers
# tier: long long XROCE_CASES=long
#
# The observing and measuring commands with invalid arguments, and with output that cannot be
# written: the exit status of the manual page, no crash, no terminal sequences. The options are the
# ones in each command's --help. Under the sanitizers: arguments.sh build-san.
. "$(dirname "$0")/../netns/lib/case.sh"

# Each with what ends it soon.
declare -A BASE=([list]= [doctor]= [stat]= [qp]= [cq]= [srq]= [mr]= [clients]=
	[trace]='-D 1' [capture]="-D 1 -w $WORK/captured" [ping]="-c 1 -i 0.01 -W 0.01 -D 1 $IP4_B" [bench]="-D 0.001 --rounds 1 --quiet $IP4_B")
COMMANDS=(list doctor stat qp cq srq mr clients trace capture ping bench)
# print at once, and end
PRINT=(list doctor stat qp cq srq mr clients)

netns_pair 4500
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:exitcode=99"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-}:halt_on_error=1:exitcode=99"

# ends STATUSES COMMAND...: with one of these, in time, and with nothing but text printed
ends() {
	local want=$1 status
	shift
	in_a timeout -k 1 20 "$XROCE" "$@" >"$WORK/ends.out" 2>"$WORK/ends.err" </dev/null
	status=$?
	[[ ,$want, == *,$status,* ]] || { fail "xroce ${*@Q} ends with $status, not $want: $(head -c 300 "$WORK/ends.err" | tr -c '[:print:]' ' ')"; return; }
	! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]' "$WORK/ends.out" "$WORK/ends.err" || fail "xroce ${*@Q} prints a control character"
}

# options COMMAND: `--name KIND` of each option that takes a value
options() {
	"$XROCE" "$1" --help | sed -nE 's/^  (-[A-Za-z], )?(--[a-z-]+) ([A-Z][A-Z]*)( .*)?$/\2 \3/p'
}

of_no_value() {
	local c option kind base n=0
	for c in "${COMMANDS[@]}"; do
		read -ra base <<<"${BASE[$c]}"
		while read -r option kind; do
			n=$((n + 1))
			# the last word, without its value
			ends 2 "$c" "${base[@]}" "$option"
			# nothing is empty but TEXT, and a FILE which then cannot be made
			[ "$kind" = TEXT ] || [ "$kind" = FILE ] || ends 2 "$c" "$option=" "${base[@]}"
		done < <(options "$c")
	done
	need_least "options" $n 45
}

numbers() {
	local c option kind base value
	for c in "${COMMANDS[@]}"; do
		read -ra base <<<"${BASE[$c]}"
		while read -r option kind; do
			case $kind in N | S | SECONDS | BYTES | PID | QPN | PORT | MIB) ;; *) continue ;; esac
			for value in -1 0x x 1x ' 1x' 99999999999999999999999999 -99999999999999999999999 1e999 nan inf '%s%n' $'\e[31m'; do
				ends 2 "$c" "$option=$value" "${base[@]}"
			done
		done < <(options "$c")
	done
}

words() {
	local c option kind base value long
	long=$(printf '%5000s' | tr ' ' x)
	for c in "${COMMANDS[@]}"; do
		read -ra base <<<"${BASE[$c]}"
		while read -r option kind; do
			case $kind in N | S | SECONDS | BYTES | PID | QPN | PORT | MIB | FILE | TEXT) continue ;; esac
			for value in '%s%n%500d' $'\e[31mred' $'a\nb' $'\xff\xfe' '../../etc/passwd' "$long"; do
				ends 2 "$c" "$option=$value" "${base[@]}"
			done
		done < <(options "$c")
	done
}

interfaces() {
	local c base name
	for c in "${COMMANDS[@]}"; do
		case $c in ping | bench) continue ;; esac
		read -ra base <<<"${BASE[$c]}"
		for name in '' . .. / 'a b' '%n' $'v\e[31m' $'v\na' $'\xff' "$(printf '%300s' | tr ' ' v)" nosuch; do
			if [ "$c" = list ] || [ "$c" = doctor ] || [ "$c" = trace ] || [ "$c" = capture ]; then
				ends 2 "$c" "${base[@]}" "$name"
			else
				ends 2 "$c" "${base[@]}" --dev "$name"
				ends 2 "$c" "${base[@]}" more
			fi
		done
	done
}

# An interface may have any name without blanks, slashes and colons.
strange_interface() {
	local name=$'e\e[31m"\\' c
	ip -n $NS_A link add "$name" address 02:00:00:77:00:09 type veth peer name ve && ip -n $NS_A link set "$name" up && ip -n $NS_A addr add 10.79.0.1/24 dev "$name" ||
		{ fail "no such interface"; return; }
	start server a "$XROCE" run --dev "$name" -- ibv_rc_pingpong -d "xroce_$name" -g 0 -p 18530
	wait_until 10 listens_or_gone a 18530 "$child"
	for c in "${PRINT[@]}"; do
		ends 0,1 "$c"
		case $c in list | doctor) continue ;; esac
		ends 0 "$c" --json
		python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$WORK/ends.out" 2>/dev/null || fail "$c --json prints no JSON"
	done
	ends 0 qp --dev "$name" --json
	[ "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["qps"][0]["dev"])' "$WORK/ends.out")" = "$name" ] || fail "the name is not that in JSON"
	ends 0 trace -D 1 "$name"
	stop "$child"
	ip -n $NS_A link del "$name"
}

# Twice the same, and what excludes each other: the last one counts, or it is a mistake.
repeated() {
	local c option kind base value
	for c in "${COMMANDS[@]}"; do
		read -ra base <<<"${BASE[$c]}"
		while read -r option kind; do
			case $kind in PID | QPN) value=7 ;; IFACE) value=$IF_A ;; *) continue ;; esac
			ends 0,1,2 "$c" "$option=$value" "$option=$value" "${base[@]}"
		done < <(options "$c")
	done
	ends 0 stat -i 0.01 -c 1 -i 0.01 -c 2 --json --json
	ends 0,1,2 ping -4 -6 -4 -c 1 -W 0.01 $IP4_B
	ends 2 ping --server -c 1 $IP4_B
	ends 2 ping
	ends 2 ping $IP4_B $IP4_B
	ends 2 bench
	ends 2 bench --server $IP4_B
	ends 2 bench --compare "$WORK/nosuch"
	ends 1 bench --compare "$WORK/nosuch" "$WORK/nosuch"
	ends 2 bench -t send,nosuch $IP4_B
	ends 2 bench -t , $IP4_B
	ends 2 bench -s 64,16 $IP4_B
	ends 2 bench -s 99999999999G $IP4_B
	ends 2 capture
	ends 2 capture -w "$WORK/captured" --file-count 3
	ends 2 capture -w - -C 1
	# names of before, which no help has
	ends 0 capture -w "$WORK/captured" -C 1 --files 3 -D 0.01
	ends 1 bench --port 1 --events --once $IP4_A
	[ "$("$XROCE" bench --help | grep -cE -e '--(port|events|once)\b')" = 0 ] || fail "the help has old names"
	ends 1 capture -w "$WORK/no/such/directory" -D 1
	ends 1 capture -w "$WORK" -D 1
	ends 1 capture -w '' -D 1
}

# written_to STATUSES WHERE COMMAND...: with its standard output there
written_to() {
	local want=$1 where=$2 status
	shift 2
	in_a timeout -k 1 20 bash -c 'where=$1; shift; case $where in closed) exec >&- ;; *) exec >$where ;; esac; exec "$@"' - "$where" "$XROCE" "$@" 2>"$WORK/ends.err" </dev/null
	status=$?
	[[ ,$want, == *,$status,* ]] || fail "xroce $* into $where ends with $status, not $want: $(head -c 300 "$WORK/ends.err")"
	[ "$want" != 1 ] || [ -s "$WORK/ends.err" ] || fail "xroce $* into $where says nothing"
}

cannot_be_written() {
	local c where
	start server a "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -p 18531
	wait_until 10 listens_or_gone a 18531 "$child"
	for where in closed /dev/full; do
		for c in "${PRINT[@]}"; do
			written_to 1 $where "$c"
			case $c in list | doctor) ;; *) written_to 1 $where "$c" --json ;; esac
		done
		written_to 1 $where stat -i 0.01 -c 3
		written_to 1 $where stat -i 0.01
		written_to 1 $where --version
		written_to 1 $where --help
		written_to 1 $where qp --help
		written_to 1 $where capture -w - -D 1
	done
	written_to 0 closed capture -w "$WORK/captured" -D 1
	python3 "$here/tests/netns/lib/pcapng.py" "$WORK/captured" >"$WORK/pcapng.out" 2>&1 || { fail "the file is not whole"; show pcapng; }
	ends 1 capture -w /dev/full -D 1
	# a command keeps the descriptors that it is given
	in_a "$XROCE" run -- sh -c 'ls -l /proc/self/fd/1' >&- 2>"$WORK/ends.err"
	grep -q null "$WORK/ends.err" && fail "a command under run has a standard output that it was not given"
	stop "$child"
}

# With a closed pipe it ends, soon.
nobody_reads() {
	local c rc
	start server a "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -p 18532
	wait_until 10 listens_or_gone a 18532 "$child"
	for c in "${PRINT[@]}" 'stat -i 0.01' 'stat -i 0.01 --json'; do
		# shellcheck disable=SC2086 # words
		in_a timeout -k 1 20 bash -c '"$@" | true; exit ${PIPESTATUS[0]}' - "$XROCE" $c >/dev/null 2>"$WORK/ends.err"
		rc=$?
		[[ $rc =~ ^(0|1|141)$ ]] || fail "xroce $c whose output nobody reads ends with $rc"
	done
	stop "$child"
}

run_case arguments_of_no_value of_no_value
run_case arguments_numbers numbers
run_case arguments_words words
run_case arguments_interfaces interfaces
run_long_case arguments_strange_interface strange_interface
run_case arguments_repeated repeated
run_long_case output_cannot_be_written cannot_be_written
run_case output_nobody_reads nobody_reads
finish_cases
