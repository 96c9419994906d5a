#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# The Makefile's contract: the files compiled again after each change, its output, the warnings that
# are errors. make.sh [BUILD]
. "$(dirname "$0")/lib/case.sh"

# says ARG...: what `make -n` in the finished build would do, one "CC file" a line.
says() { make_here -n "$@" | sed -n "s/^ *printf [^;]* \([A-Z]*\) '\([^']*\)';.*/\1 \2/p"; }
# is_said LINE: the last says() had that line.
is_said() { grep -qxF -- "$1" <<<"$said" || { note "not among what would be done: $1"; return 1; }; }
is_not_said() { ! grep -qF -- "$1" <<<"$said" || { note "would be done: $1"; return 1; }; }

make__does_nothing_twice() {
	said=$(says all)
	[ -z "$said" ] || { note "$said"; return 1; }
}

make__header_rebuilds_its_users() {
	said=$(says -W user/engine/icrc.h all)
	is_said "CC user/engine/icrc.c" && is_not_said "CC user/tools/main.c"
}

make__bpf_header_rebuilds_what_embeds_the_program() {
	said=$(says -W bpf/parse.h all)
	is_said "BPF bpf/xroce.bpf.c" && is_said "GEN $BUILD/gen/xroce.skel.h" &&
		is_said "LINK $BUILD/lib/libibverbs.so.1" && is_said "LINK $BUILD/bin/xroce" &&
		is_not_said "CC user/engine/"
}

make__flags_rebuild_everything() {
	said=$(says CFLAGS=-O1 all)
	is_said "CC user/tools/main.c" && is_said "AS user/engine/guard_x86_64.S" &&
		is_said "BPF bpf/xroce.bpf.c" && is_said "LINK $BUILD/lib/libibverbs.so.1"
}

make__warnings_are_errors_if_wanted() {
	make_here -n -B WERROR=1 all >"$work/fatal" && make_here -n -B WERROR= all >"$work/not" || return
	! grep -E '(gcc|clang) ' "$work/fatal" | grep -E ' -c ' | grep -v -e -Werror | grep . &&
		grep -q -e '-c user/tools/main.c' "$work/not" && ! grep -e -Werror "$work/not"
}

make__says_a_line_a_file() {
	make_here BUILD="$work/b" "$work/b/obj/user/engine/guard_x86_64.o" >"$work/out" &&
		[ "$(cat "$work/out")" = "  AS    user/engine/guard_x86_64.S" ] || show out
	make_here BUILD="$work/c" V=1 "$work/c/obj/user/engine/guard_x86_64.o" >"$work/out" &&
		grep -q -e '-c user/engine/guard_x86_64.S' "$work/out" || show out
	make_here -s BUILD="$work/d" "$work/d/obj/user/engine/guard_x86_64.o" >"$work/out" &&
		[ ! -s "$work/out" ] || show out
}

run_cases
