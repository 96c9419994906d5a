#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_MODELS=quick
# tier: long long
#
# Checks the models of the port's hand-overs with spin, every reachable state of each: run.sh [BUILD
# [MODEL...]]. Prints `ok MODEL` if no state breaks the property of the model, and `ok
# MODEL-MUTATION_n` if one does under that mutation. The trail of a failure, and of each mutation,
# is left in BUILD/model/NAME/; tests/README.md has the replay. XROCE_MODELS=quick leaves out
# the mutations, and the model of ten seconds.
set -u

models=$(cd "$(dirname "$0")" && pwd) || exit 1
out=${1:-build}/model
shift
failed=0

result() {
	echo "$1 $2"
	[ "$1" = ok ] || failed=1
}

# build NAME DIR [DEFINE]: the checker of a model. For most models gcc takes longer to optimise than
# the search takes, and a mutation is found soon.
build() {
	local optimize=-O0
	case $1-${3:-} in defer- | migration-) optimize=-O1 ;; esac
	rm -rf "$2" && mkdir -p "$2" && cd "$2" &&
		spin ${3:+"-D$3"} -a "$models/$1.pml" >spin.out 2>&1 &&
		gcc $optimize -w -DSAFETY -DNOREDUCE -DMEMLIM=2048 -o pan pan.c >cc.out 2>&1
}

# check DIR: whole if it was a search to the end, broken if there is a trail.
check() {
	(cd "$1" && ./pan -m100000 -n >pan.out 2>&1)
	if grep -qE '^pan:[0-9]+: (assertion violated|invalid end state)' "$1/pan.out"; then
		echo broken
	elif grep -qE 'search depth too small|memory limit|MEMLIM|not completed' "$1/pan.out"; then
		echo cut
	elif grep -q 'errors: 0' "$1/pan.out"; then
		echo whole
	fi
}

# model NAME: it, and each of its mutations.
model() {
	local name=$1 mutation dir
	if (build "$name" "$out/$name") && [ "$(check "$out/$name")" = whole ]; then
		result ok "$name"
	else
		result 'not ok' "$name"
		cat "$out/$name"/*.out 2>/dev/null
	fi
	[ "${XROCE_MODELS:-}" != quick ] || return
	for mutation in $(grep -oE '\bMUTATION_[0-9]+' "$models/$name.pml" | sort -u); do
		dir=$out/$name-$mutation
		if (build "$name" "$dir" "$mutation") && [ "$(check "$dir")" = broken ]; then
			result ok "$name-$mutation"
		else
			result 'not ok' "$name-$mutation"
		fi
	done
}

command -v spin >/dev/null || {
	echo "not ok spin: not installed (scripts/deps.sh)"
	exit 1
}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
if [ $# -eq 0 ]; then
	for m in "$models"/*.pml; do
		m=$(basename "$m" .pml)
		case $m-${XROCE_MODELS:-} in
		memory-* | migration-quick) ;;
		*) model "$m" ;;
		esac
	done
else
	for m in "$@"; do
		model "$m"
	done
fi
exit $failed
