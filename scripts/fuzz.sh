#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# fuzz.sh BUILD NAME [SECONDS]: runs the fuzzer tests/fuzz/fuzz_NAME.c on the inputs that it writes
# first (golden captures or generated messages) for SECONDS, by default XROCE_FUZZ_SECONDS or 20.
# An input that fails is kept in BUILD/fuzz/NAME, and replays the fault:
# BUILD/tests/fuzz/fuzz_NAME FILE. Exit status 0 only if none failed.
set -eu

build=$1 name=$2 seconds=${3:-${XROCE_FUZZ_SECONDS:-20}}
dir=$build/fuzz/$name
fuzzer=$build/tests/fuzz/fuzz_$name
longest=16384
case $name in host | segments | record) longest=65000 ;; esac
[ -x "$fuzzer" ] || { echo "unknown fuzzer $name" >&2; exit 2; }
mkdir -p "$dir/seeds" "$dir/corpus"

XROCE_SEED_DIR=$dir/seeds "$fuzzer" >/dev/null 2>&1
[ -n "$(ls "$dir/seeds")" ] || { echo "no seeds were written" >&2; exit 1; }

"$fuzzer" -max_len="$longest" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
	-artifact_prefix="$dir/" "$dir/corpus" "$dir/seeds"
