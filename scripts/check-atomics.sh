#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# One style of atomic access in user/: C11's atomic_*_explicit, with the order named. No builtins,
# no volatile, no call that leaves the order out and no plain use of an _Atomic object, which means
# seq_cst as well (clang finds such use). In bpf/ volatile is for READ_ONCE() and constants set
# at loading, and atomic operations are the __sync builtins.
#
# check-atomics.sh [BUILD] [ROOT]
set -u
build=${1:-build}
cd "${2:-$(dirname "$0")/..}" || exit 1
bad=0

# refuse WHAT PATTERN FILES... prints the lines that have it
refuse() {
	local what=$1 pattern=$2
	shift 2
	if grep -nE "$pattern" "$@" | grep -vE ':[0-9]+:[[:space:]]*/?\*'; then
		echo "check-atomics: $what" >&2
		bad=1
	fi
}

shopt -s nullglob
# The preload library's table of descriptors needs one order for all threads, as the kernel's table
# has, and is not on a fast path.
files=($(find user -name "*.[ch]" | grep -v '^user/rspreload/'))
refuse "a builtin: use atomic_*_explicit, on shared_word() if the object is plain" \
	'\b__(atomic|sync)_' "${files[@]}"
refuse "an order is left out" \
	'\batomic_(load|store|exchange|fetch_[a-z]+|compare_exchange_(weak|strong)|flag_(clear|test_and_set))\(' \
	"${files[@]}"
refuse "volatile orders nothing" '\bvolatile\b' $(grep -L '__asm__ volatile' "${files[@]}")
refuse "__atomic builtins are not BPF's" '\b__atomic_' bpf/*
refuse "volatile: use READ_ONCE()" '^[^c]*\bvolatile\b' $(ls bpf/* | grep -v '^bpf/wake\.h$')
# The headers made of the XDP programs must be in BUILD. user/host/program.c is BPF programs itself.
clang -fsyntax-only -Wno-everything -Watomic-implicit-seq-cst -Werror -std=gnu11 \
	-DXROCE_LIBDIR='""' -DXROCE_BINDIR='""' -Iinclude -I"$build/gen" \
	$(pkg-config --cflags fuse3) \
	$(find user -name '*.c' | grep -vE '^user/(rspreload/|host/program\.c)') || bad=1
echo "${#files[@]} files looked at"
exit $((bad || !${#files[@]}))
