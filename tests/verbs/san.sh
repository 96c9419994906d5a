#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Those programs of man.sh that give the library's memory most to do, under ASan and UBSan: san.sh
# BUILD. The library is built in BUILD-san (make SAN=1). Leaks count, too.
here=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
BUILD=${1:?usage: san.sh BUILD}
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
san=$BUILD-san

out=$("${MAKE:-make}" --no-print-directory -C "$here" BUILD="$san" SAN=1 -j"$(nproc)" \
	"$san/lib/libibverbs.so.1" 2>&1) || {
	echo "$out"
	exit 1
}
# SIGSEGV is the library's: memory of a program's that goes bad (docs/memory.md).
export ASAN_OPTIONS=detect_leaks=1:handle_segv=0:allow_user_segv_handler=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export XROCE_CYCLES=${XROCE_CYCLES:-1000} XROCE_WALK_STEPS=${XROCE_WALK_STEPS:-5000}
XROCE_MAN_SANITIZE=address,undefined exec bash "$here/tests/verbs/man.sh" "$san" caps dm dm_traffic \
	ibv_advise_mr ibv_alloc_null_mr ibv_create_counters ibv_create_flow ibv_create_rwq_ind_table \
	ibv_create_wq loose_ends odd_requests on_demand other_ends random_walk several_threads ten_thousand \
	ten_thousand_raw windows_under_way
