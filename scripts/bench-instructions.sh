#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Instructions that the engine takes for a message, both ends together, by valgrind
# --tool=callgrind: the same on any machine of one kind and without regard to its load.
# bench-instructions.sh BUILD. Making the engines is taken off by measuring two lengths of run.
set -u
engine=${1:-build}/tests/bench/engine
command -v valgrind >/dev/null || { echo "bench-instructions: valgrind is not installed" >&2; exit 0; }

# total WORKLOAD MESSAGES
total() { valgrind --tool=callgrind --callgrind-out-file=/dev/null "$engine" -n "$2" "$1" 2>&1 >/dev/null | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'; }
for w in send:64 write:4096 read:64; do
	a=$(total $w 1600) b=$(total $w 6400)
	[ -n "$a" ] && [ -n "$b" ] || { echo "bench-instructions: $w gave no count" >&2; exit 1; }
	echo "instructions a message, both ends, $w: $(((b - a) / 4800))"
done
