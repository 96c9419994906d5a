#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# Compiles everything with clang. clang.sh [BUILD]
. "$(dirname "$0")/lib/case.sh"

# Keeps the objects next to the build, so that the next run compiles only changed files.
clang__compiles_all_without_a_warning() {
	make_here -s -j"$(nproc)" CC=clang WERROR=1 BUILD="$BUILD-clang" all unit-tests netns-tools
}

run_cases
