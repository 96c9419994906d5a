# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Completion of xroce(8) for bash: subcommands, options, their words, interfaces, and behind
# `xroce run OPTIONS` whatever completes the program that is run.

_xroce_words() {
	# shellcheck disable=SC2207 # none of the words has a space
	COMPREPLY=($(compgen -W "$1" -- "$2"))
}

_xroce_interfaces() {
	local path names=

	for path in /sys/class/net/*/address; do
		path=${path%/address}
		names+=" ${path##*/}"
	done
	_xroce_words "$names" "$1"
}

# The program that `xroce run` runs begins at word $1.
_xroce_command() {
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif [ "$COMP_CWORD" -eq "$1" ]; then
		# shellcheck disable=SC2207
		COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
	else
		COMPREPLY=()
	fi
}

# Of `--option=value` bash makes three words: the caller's cur and prev are what they would be
# without the `=`.
_xroce_equals() {
	if [ "$cur" = = ]; then
		cur=
	elif [ "$prev" = = ]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
}

_xroce_run() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i

	# Over the options and their arguments, to the program if it begins before this word.
	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-d | --dev | --spin | --yield | --cpus | --shards | --tx | --xdp | --attach | --share | \
			--port | --pkey)
			i=$((i + 1))
			# --dev=IFACE is three words
			[ "${COMP_WORDS[i]}" = = ] && i=$((i + 1))
			;;
		# an optional argument, which follows =
		--pin) [ "${COMP_WORDS[i + 1]}" = = ] && [ $((i + 2)) -lt "$COMP_CWORD" ] && i=$((i + 2)) ;;
		--)
			_xroce_command $((i + 1))
			return
			;;
		-*) ;;
		*)
			_xroce_command "$i"
			return
			;;
		esac
	done
	_xroce_equals
	case $prev in
	-d | --dev) _xroce_interfaces "$cur" ;;
	--tx) _xroce_words "auto xsk tap live gso" "$cur" ;;
	--xdp) _xroce_words "auto native generic" "$cur" ;;
	--attach) _xroce_words "auto dispatcher exclusive" "$cur" ;;
	--share) _xroce_words "auto never always" "$cur" ;;
	--port) _xroce_words "auto xdp sockets" "$cur" ;;
	--shards) _xroce_words "1 2 3 4 5 6 7 8" "$cur" ;;
	--spin | --yield | --cpus | --pkey) COMPREPLY=() ;;
	*)
		case $cur in
		-*)
			_xroce_words "--dev --spin --yield --cpus --shards --tx --xdp --attach --share --port --pkey \
				--no-mounts --pin --rsockets --verbose --help --" "$cur"
			;;
		*) _xroce_command "$COMP_CWORD" ;;
		esac
		;;
	esac
}

_xroce_serve() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	_xroce_equals
	case $prev in
	-m | --mode) _xroce_words "0666 0660 0600" "$cur" ;;
	# shellcheck disable=SC2207 # none of the words has a space
	-g | --group | --pin-group) COMPREPLY=($(compgen -g -- "$cur")) ;;
	-n | --netns) _xroce_words "$(ip netns list 2>/dev/null | cut -d' ' -f1)" "$cur" ;;
	--port) _xroce_words "auto xdp sockets" "$cur" ;;
	--pkey | --max-*) COMPREPLY=() ;;
	*)
		case $cur in
		-*)
			_xroce_words "--mode --group --netns --background --while-used \
				--port --pkey --pin --pin-group --files --max-clients --max-qps --max-rings --max-services --max-memory --help" "$cur"
			;;
		*) _xroce_interfaces "$cur" ;;
		esac
		;;
	esac
}

_xroce_ping() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	_xroce_equals
	case $prev in
	-d | --dev) _xroce_interfaces "$cur" ;;
	-c | -i | -s | -W | -D | --count | --interval | --size | --timeout | --duration) COMPREPLY=() ;;
	*)
		case $cur in
		-*)
			_xroce_words "--count --interval --size --timeout --duration --dev --quiet \
				--json --server --help" "$cur"
			;;
		*) _xroce_hosts "$cur" ;;
		esac
		;;
	esac
}

_xroce_bench() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	_xroce_equals
	case $prev in
	-d | --dev) _xroce_interfaces "$cur" ;;
	-t | --transport) _xroce_words "send write read ud udp tcp" "$cur" ;;
	--only) _xroce_words "latency bandwidth" "$cur" ;;
	--mtu) _xroce_words "256 512 1024 2048 4096" "$cur" ;;
	-s | -D | --sizes | --duration | --rounds | --tcp-port) COMPREPLY=() ;;
	--svg) _xroce_files "$cur" ;;
	*)
		case "$cur ${COMP_WORDS[*]}" in
		-*)
			_xroce_words "--transport --sizes --only --duration --rounds --sleep --mtu \
				--dev --tcp-port --quiet --json --svg --server --one-client --compare --help" "$cur"
			;;
		*--compare*) _xroce_files "$cur" ;;
		*) _xroce_hosts "$cur" ;;
		esac
		;;
	esac
}

# A lab that stays: its names, hosts and words.
_xroce_lab_live() {
	local cur=${COMP_WORDS[COMP_CWORD]} word=${COMP_WORDS[2]}

	if [ "$COMP_CWORD" -eq 3 ] && [ "$word" != up ]; then
		_xroce_words "$(xroce lab list 2>/dev/null | cut -d' ' -f1)" "$cur"
	elif [ "$word" = fault ] && [ "$COMP_CWORD" -eq 4 ]; then
		_xroce_words "add list clear" "$cur"
	elif [ "$word" = exec ] && [ "$COMP_CWORD" -eq 4 ]; then
		_xroce_words "h1 h2 h3 h4 h5 h6 h7 h8" "$cur"
	elif [ "$word" = exec ] && [ "$COMP_CWORD" -gt 4 ]; then
		if [ "${COMP_WORDS[5]}" = -- ]; then _xroce_command 6; else _xroce_command 5; fi
	elif [ "$word" = up ] && [ "$COMP_CWORD" -gt 3 ]; then
		_xroce_words "--hosts --fault --loss --duplicate --reorder --corrupt --mark --delay --rate \
			--seed --mtu --shared --plain" "$cur"
	else
		COMPREPLY=()
	fi
}

# The program of h1 begins after the options, each of which has a value unless it is in the list.
_xroce_lab() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i

	case ${COMP_WORDS[2]} in
	up | exec | fault | down | list)
		if [ "$COMP_CWORD" -gt 2 ]; then
			_xroce_lab_live
			return
		fi
		;;
	esac
	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--shared | --plain | --allow-miss | --each | --help | -h) ;;
		--)
			_xroce_command $((i + 1))
			return
			;;
		-*)
			i=$((i + 1))
			[ "${COMP_WORDS[i]}" = = ] && i=$((i + 1))
			;;
		*)
			_xroce_command $i
			return
			;;
		esac
	done
	_xroce_equals
	case $prev in
	--report | --junit | --capture | --record | --replay)
		_xroce_files "$cur"
		return
		;;
	--cases)
		_xroce_files "$cur"
		# shellcheck disable=SC2207
		COMPREPLY+=($(compgen -W "wire connect host endpoint" -- "$cur"))
		return
		;;
	lab | --shared | --plain | --allow-miss | --each) ;;
	-*) return ;;
	esac
	case $cur in
	-*)
		_xroce_words "--hosts --h1 --h2 --fault --loss --duplicate --reorder --corrupt --mark \
			--delay --rate --seed --mtu --at --shared --plain --wait --deadline --allow-miss \
			--cases --each --case --junit --capture --record --replay --report --help --" "$cur"
		;;
	*)
		_xroce_command "$COMP_CWORD"
		# shellcheck disable=SC2207
		[ "$COMP_CWORD" -eq 2 ] && COMPREPLY+=($(compgen -W "up exec fault down list" -- "$cur"))
		;;
	esac
}

_xroce_files() { mapfile -t COMPREPLY < <(compgen -f -- "$1"); }

# shellcheck disable=SC2207 # none of the words has a space
_xroce_hosts() { COMPREPLY=($(compgen -A hostname -- "$1")); }

# Options alone, and the words of those that have any.
_xroce_look() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} options=$1

	_xroce_equals
	case $prev in
	-d | --dev) _xroce_interfaces "$cur" ;;
	-S | --state) _xroce_words "reset init rtr rts sqd sqe err" "$cur" ;;
	-V | --view) _xroce_words "qps processes cqs interfaces" "$cur" ;;
	-[pqPcoi] | --pid | --qpn | --peer | --count | --sort | --interval) COMPREPLY=() ;;
	*) _xroce_words "$options --help" "$cur" ;;
	esac
}

_xroce_capture() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	_xroce_equals
	case $prev in
	# shellcheck disable=SC2207
	-w | --write) COMPREPLY=($(compgen -f -- "$cur")) ;;
	-Q | --direction) _xroce_words "in out" "$cur" ;;
	-C | -c | -D | -q | -p | -P | --file-size | --file-count | --count | --duration | \
		--snaplen | --qpn | --pid | --peer | --buffer) COMPREPLY=() ;;
	*)
		case $cur in
		-*)
			_xroce_words "--write --file-size --file-count --count --duration --snaplen --qpn \
				--pid --direction --peer --drops --buffer --help" "$cur"
			;;
		*) _xroce_interfaces "$cur" ;;
		esac
		;;
	esac
}

_xroce_trace() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	_xroce_equals
	case $prev in
	-Q | --direction) _xroce_words "in out" "$cur" ;;
	-q | -p | -O | -c | -D | --qpn | --pid | --opcode | --count | --duration) COMPREPLY=() ;;
	*)
		case $cur in
		-*)
			_xroce_words "--qpn --pid --opcode --direction --events --errors --count \
				--duration --json --help" "$cur"
			;;
		*) _xroce_interfaces "$cur" ;;
		esac
		;;
	esac
}

_xroce_export() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	_xroce_equals
	case $prev in
	-d | --dev) _xroce_interfaces "$cur" ;;
	--format) _xroce_words "prometheus openmetrics" "$cur" ;;
	-l | --listen | --max-*) COMPREPLY=() ;;
	*) _xroce_words "--listen --once --format --dev --max-qps --max-processes --help" "$cur" ;;
	esac
}

_xroce() {
	local cur=${COMP_WORDS[COMP_CWORD]}

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		_xroce_words "run serve stop list doctor ping bench lab stat top qp cq srq mr clients capture trace explain export help --help --version" "$cur"
		return
	fi
	case ${COMP_WORDS[1]} in
	run) _xroce_run ;;
	serve) _xroce_serve ;;
	ping) _xroce_ping ;;
	clients) _xroce_look "--dev --pid --json" ;;
	cq | srq | mr) _xroce_look "--dev --pid --sort --json" ;;
	qp) _xroce_look "--dev --pid --qpn --peer --state --sort --json" ;;
	capture) _xroce_capture ;;
	explain) _xroce_look "--dev --pid --qpn --peer --interval --json" ;;
	stat) _xroce_look "--dev --pid --interval --count --json" ;;
	top) _xroce_look "--dev --pid --qpn --peer --state --interval --count --sort --view --batch --json" ;;
	trace) _xroce_trace ;;
	export) _xroce_export ;;
	bench) _xroce_bench ;;
	lab) _xroce_lab ;;
	stop | list | doctor)
		case $cur in
		-*)
			if [ "${COMP_WORDS[1]}" = stop ]; then
				_xroce_words "--pin --help" "$cur"
			else
				_xroce_words "--json --help" "$cur"
			fi
			;;
		*)
			[ "$COMP_CWORD" -eq 2 ] || [[ $COMP_CWORD -eq 3 && ${COMP_WORDS[2]} == -* ]] || return
			_xroce_interfaces "$cur"
			;;
		esac
		;;
	help) [ "$COMP_CWORD" -eq 2 ] && _xroce_words "run serve stop list doctor ping bench lab stat top qp cq srq mr clients capture trace explain export" "$cur" ;;
	esac
}

complete -F _xroce xroce
