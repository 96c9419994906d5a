# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A tree of small programs for tests of the check, and its runs. Sourced by the tests of this
# directory, with the build as the first argument of the script.
. "$(dirname "${BASH_SOURCE[0]}")/../../ship/lib/case.sh"

mkdir -p "$work/tree/scripts" "$work/tree/tests/netns" "$work/tree/tests/unit" "$work/tree/b/tests/unit"
cp -r scripts/check scripts/check.sh "$work/tree/scripts/"
cd "$work/tree" || exit 1
export MAKE=true # nothing to build
# The log shows what other programs of the outer check do.
export XROCE_KMSG=/dev/null XROCE_LINGER_S=2
unset XROCE_TEST_TIMEOUT

# script NAME HEAD [LINE...]: a program tests/netns/NAME.sh. HEAD: its `tier:` and `needs:` lines.
script() {
	local name=$1
	{
		printf '#!/bin/bash\n%s\n' "$2"
		shift 2
		printf '%s\n' "$@"
	} >"tests/netns/$name.sh"
}
# cmocka NAME COMMAND: a program of tests/unit.
cmocka() {
	echo '/* tier: core */' >"tests/unit/test_$1.c"
	printf '#!/bin/bash\n%s\n' "$2" >"b/tests/unit/test_$1"
	chmod +x "b/tests/unit/test_$1"
}
# run ARGUMENT...: runs the check, its output in $work/out. Returns its exit status.
run() { scripts/check.sh --build b "$@" >"$work/out" 2>&1; }
# ends COUNTS [ARGUMENT...]: the last line of a run is COUNTS; red if something failed.
ends() {
	local want=$1 rc=0
	shift
	run "$@" || rc=1
	[ "$(tail -n 1 "$work/out")" = "$want" ] || { show out; return; }
	case $want in *", 0 failed,"*) [ $rc -eq 0 ] ;; *) [ $rc -eq 1 ] ;; esac || { note "status $rc"; show out; }
}
says() { grep -qE -- "$1" "$work/out" || { note "no line like: $1"; show out; }; }
# compiled NAME FLAGS: a C program from standard input.
compiled() { ${CC:-gcc} -O0 -g -w -x c - ${2:-} -o "$work/$1"; }

# once NAME LINE...: a script of LINEs. The second time it prints `ok` for the cases that XROCE_CASE
# asks for, and keeps that.
once() {
	script "$1" '# tier: core' \
		"[ -e $work/$1 ] && { echo \"\$XROCE_CASE\" >$work/$1; tr -d '@()\\\\' <$work/$1 | tr '|' '\n' | sed 's/^/ok /'; exit 0; }" \
		": >$work/$1" "${@:2}"
}
