#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Completion for bash, asked as the shell asks it. completion.sh [BUILD]
. "$(dirname "$0")/lib/case.sh"

# complete_words WORD...: the completions of the last word, a line each. As in readline, `=` is a
# separate word. Without bash-completion's own functions: a plain bash must do.
complete_words() {
	bash --norc -c '. share/xroce.bash
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_xroce && printf "%s\n" "${COMPREPLY[@]}"' _ "$@" | sed '/^$/d' | sort -u
}
is() {
	[ "$*" = "$(cat "$work/got")" ] || { note "offered: $(cat "$work/got"), not $*"; return 1; }
}
offers() { complete_words "$@" | paste -sd' ' >"$work/got"; }

completion__is_registered() {
	bash --norc -c '. share/xroce.bash; complete -p xroce' | grep -q -e '-F _xroce xroce$'
}

completion__subcommands_are_the_commands() {
	local want

	want=$({ subcommands; echo help; } | sort | paste -sd' ')
	complete_words xroce "" | grep -v '^-' | paste -sd' ' >"$work/got"
	is "$want"
	offers xroce do && is doctor
}

completion__options_are_those_of_run() {
	local want

	want=$({ options_of run; echo --; } | sort | paste -sd' ')
	offers xroce run - && is "$want"
}

completion__options_are_those_of_serve() {
	local want

	want=$(options_of serve | sort | paste -sd' ')
	offers xroce serve - && is "$want" &&
		offers xroce serve --mode 066 && is "0660 0666" &&
		offers xroce serve --group roo && is root &&
		offers xroce serve --mode = 0600 l && grep -qw lo "$work/got"
}

completion__options_are_those_of_ping() {
	local want

	want=$(options_of ping | sort | paste -sd' ')
	offers xroce ping - && is "$want" &&
		offers xroce ping --dev l && grep -qw lo "$work/got" &&
		offers xroce ping --dev = l && grep -qw lo "$work/got" &&
		offers xroce ping --count "" && is ""
}

completion__options_are_those_of_top() {
	local want

	want=$(options_of top | sort -u | paste -sd' ')
	offers xroce top - && is "$want" && offers xroce top --view "" && is "cqs interfaces processes qps"
}

completion__options_are_those_of_capture() {
	local want

	want=$({ options_of capture; echo --help; } | sort -u | paste -sd' ')
	offers xroce capture - && is "$want" &&
		offers xroce capture --count "" && is "" &&
		offers xroce capture l && grep -qw lo "$work/got"
}

completion__options_are_those_of_trace() {
	local want

	want=$({ options_of trace; echo --help; } | sort -u | paste -sd' ')
	offers xroce trace - && is "$want" && offers xroce trace -Q "" && is "in out"
}

completion__options_are_those_of_explain() {
	local want

	want=$({ options_of explain; echo --help; } | sort -u | paste -sd' ')
	offers xroce explain - && is "$want" && offers xroce explain --interval "" && is ""
}

completion__options_are_those_of_export() {
	local want

	want=$(options_of export | sort | paste -sd' ')
	offers xroce export - && is "$want" &&
		offers xroce export --format o && is openmetrics &&
		offers xroce export --dev = l && grep -qw lo "$work/got" &&
		offers xroce export --listen "" && is ""
}

completion__options_are_those_of_bench() {
	local want

	want=$(options_of bench | sort | paste -sd' ')
	offers xroce bench - && is "$want" &&
		offers xroce bench --transport u && is "ud udp" &&
		offers xroce bench --only = l && is latency &&
		offers xroce bench --compare README.m && is README.md &&
		offers xroce bench --sizes "" && is ""
}

completion__options_are_those_of_lab() {
	local want

	want=$({ options_of lab; echo --; } | sort | paste -sd' ')
	offers xroce lab - && is "$want" &&
		offers xroce lab --shared --al && is --allow-miss &&
		offers xroce lab --loss "" && is "" &&
		offers xroce lab --report README.m && is README.md &&
		offers xroce lab --hosts 3 -- bas && grep -qw bash "$work/got"
}

completion__after_a_word_that_is_no_option() {
	offers xroce stop -- && is "--help --pin" &&
		offers xroce stop lo -- && is "--help --pin" &&
		offers xroce list lo --j && is --json &&
		offers xroce stop lo l && is "" &&
		offers xroce run --pin = /x --de && is --dev &&
		offers xroce run --pin --de && is --dev &&
		offers xroce run --port a && is auto &&
		offers xroce serve --port a && is auto
}

completion__words_are_those_that_run_takes() {
	local option word

	for option in tx xdp shards; do
		complete_words xroce run --$option "" >"$work/words"
		[ -s "$work/words" ] || { note "none for --$option"; return 1; }
		while read -r word; do
			"$BUILD/bin/xroce" run --$option "$word" -- true || return
		done <"$work/words"
	done
	offers xroce run --xdp = n && is native
	offers xroce run --tx l && is live
}

completion__options_are_those_of_list_and_doctor() {
	local word

	for word in list doctor; do
		offers xroce $word - && is "$(options_of $word | sort | paste -sd' ')" &&
			offers xroce $word --json l && grep -qw lo "$work/got" || return
	done
}

completion__interfaces() {
	offers xroce list l && grep -qw lo "$work/got" &&
		offers xroce run --dev l && grep -qw lo "$work/got" &&
		offers xroce run --dev = l && grep -qw lo "$work/got" &&
		offers xroce doctor lo "" && is ""
}

completion__a_program_behind_the_options() {
	offers xroce run --dev lo -v -- ibv_rc_pingpon && is ibv_rc_pingpong &&
		offers xroce run ibv_rc_pingpon && is ibv_rc_pingpong &&
		offers xroce run --dev = lo ibv_rc_pingpon && is ibv_rc_pingpong &&
		offers xroce run -- ibv_devinfo -- - && is ""
}

run_cases
