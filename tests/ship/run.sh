#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# What `xroce run` puts into a program's environment. run.sh [BUILD]
. "$(dirname "$0")/lib/case.sh"

# A private place, as the command looks for its libraries relative to itself; a preloaded library
# that can be loaded and does nothing.
mkdir "$work/bin" "$work/lib" && cp "$BUILD/bin/xroce" "$work/bin/" &&
	cp "$BUILD/lib/libibverbs.so.1" "$work/lib/" &&
	echo 'int run_test;' | ${CC:-gcc} -shared -fPIC -x c - -o "$work/lib/librspreload.so" || exit 1
lib=$(realpath "$work/lib")

# environment_is WANT ARGUMENT...: the two variables, in a program that `xroce run ARGUMENT` runs
environment_is() {
	local want=$1
	shift
	# shellcheck disable=SC2016 # the shell that is run is to expand it
	"$work/bin/xroce" run "$@" -- sh -c 'echo "$LD_LIBRARY_PATH $LD_PRELOAD"' >"$work/out" 2>&1
	[ "$(cat "$work/out")" = "$want" ] || show out
}

unset LD_LIBRARY_PATH LD_PRELOAD

run__library_path() { environment_is "$lib "; }
run__library_path_goes_in_front() { LD_LIBRARY_PATH=/some:/where environment_is "$lib:/some:/where "; }
# An empty entry would be the current directory.
run__no_empty_entry() { LD_LIBRARY_PATH= LD_PRELOAD= environment_is "$lib $lib/librspreload.so" -r; }
run__rsockets_are_preloaded() { environment_is "$lib $lib/librspreload.so" --rsockets; }
run__rsockets_go_in_front() {
	LD_PRELOAD=$lib/libibverbs.so.1 environment_is "$lib $lib/librspreload.so:$lib/libibverbs.so.1" -r
}

run__rsockets_need_their_library() {
	mkdir "$work/without" && cp -r "$work/bin" "$lib" "$work/without/" || return
	rm "$work/without/lib/librspreload.so"
	"$work/without/bin/xroce" run -r -- true >"$work/out" 2>&1
	[ $? -eq 2 ] && grep -q 'cannot read .*/librspreload.so' "$work/out" || show out
}

# LD_PRELOAD is divided by spaces too, LD_LIBRARY_PATH is not.
run__rsockets_from_no_place_with_a_space() {
	mkdir "$work/a place" && cp -r "$work/bin" "$lib" "$work/a place/" || return
	"$work/a place/bin/xroce" run -- true || return
	"$work/a place/bin/xroce" run -r -- true >"$work/out" 2>&1
	[ $? -eq 2 ] && grep -q 'has a space' "$work/out" || show out
}

# rdma(8) of programs (user/tools/run/rdma.c): its directory comes first, if it exists.
run__path() {
	local with=$work/with/lib/bin

	mkdir "$work/with" && cp -r "$work/bin" "$lib" "$work/with/" || return
	# shellcheck disable=SC2016 # the shell that is run is to expand it
	[ "$("$work/with/bin/xroce" run -- sh -c 'echo "$PATH"')" = "$PATH" ] || return
	mkdir "$with" && ln -s ../../bin/xroce "$with/rdma" || return
	# shellcheck disable=SC2016 # as above
	[ "$("$work/with/bin/xroce" run -- sh -c 'echo "$PATH"')" = "$with:$PATH" ]
}

run__verbose_says_what_is_set() {
	"$work/bin/xroce" run -rv -- true >"$work/out" 2>&1
	grep -qx "xroce run: LD_LIBRARY_PATH=$lib LD_PRELOAD=$lib/librspreload.so true" "$work/out" || show out
}

run_cases
