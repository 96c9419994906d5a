#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Counts the engine's instructions for one message, both ends together: bench-instructions.sh BUILD.
# valgrind --tool=callgrind counts, so the load of the machine does not matter. Also prints the cost
# of the state that QPs, CQs and SRQs show, by comparison with an engine built without it. Two runs
# of different length are subtracted, which removes the cost of creating the engines.
set -u
tools=${1:-build}/tests/bench
command -v valgrind >/dev/null || { echo "bench-instructions: valgrind is not installed" >&2; exit 0; }

# total ENGINE WORKLOAD MESSAGES
total() { valgrind --tool=callgrind --callgrind-out-file=/dev/null "$tools/$1" -n "$3" "$2" 2>&1 >/dev/null | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'; }
# each ENGINE WORKLOAD: tenths of an instruction a message
each() {
	local a b
	a=$(total "$1" "$2" 1600) b=$(total "$1" "$2" 6400)
	[ -n "$a" ] && [ -n "$b" ] || { echo "bench-instructions: $2 gave no count" >&2; return 1; }
	echo $(((b - a) / 480))
}
for w in send:64 write:4096 read:64; do
	seen=$(each engine $w) && unseen=$(each engine_unseen $w) || exit 1
	awk -v w=$w -v seen="$seen" -v unseen="$unseen" 'BEGIN {
		printf "instructions a message, both ends, %s: %.0f, %.1f of them (%.2f %%) to be seen\n",
			w, seen / 10, (seen - unseen) / 10, 100 * (seen - unseen) / unseen }'
done
