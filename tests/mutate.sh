#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Would the tests notice? mutate.sh [-n EVERY] [-o OFFSET] [TABLE]: applies the mutations of TABLE
# (tests/mutations.txt) one at a time to a copy of the tree, builds it, and runs the tests of
# tests/unit and tests/sim until one fails, or of tests/bpf (as root) where the file is one of bpf/,
# of tests/cm, tests/rdmacm or tests/measure where it is one of user/cm, user/rdmacm, user/rsocket
# or user/tools/bench, tests/port (as root) and, for what the simulators of ports and of brokers
# have, tests/portsim and tests/brokersim above the transport.
#
# Prints `killed`, with what failed, `HUNG` (a program ran into its time limit, which a loaded
# machine may do to a sound one as well: a test that fails by an assertion is missing), `SURVIVED`
# or `broken` (does not build, or its line is not there) for each; -n runs every EVERYth of the
# table, from OFFSET on. A survivor is a line that no test needs: a test is missing, or the line is.
# Takes about ten seconds a mutation, so `make check` leaves it out. Exit status 0 if all were
# killed.
#
# mutate.sh -c [TABLE]: builds nothing, and prints the rows whose line is not there exactly once;
# `make check` does that.
#
# A line of the table: file TAB text, which must be on exactly one line of it TAB its replacement.
# No file of user/verbs, which none of these programs has (mutate-verbs.sh), and of user/tools only
# files of lab, bench and export.
set -eu

every=1 offset=0 check=
while getopts cn:o: opt; do
	case $opt in
	c) check=yes ;;
	n) every=$OPTARG ;;
	o) offset=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
top=$(cd "$(dirname "$0")/.." && pwd)
table=$(realpath "${1:-$top/tests/mutations.txt}")
# What one program may take, in seconds. Fewer random runs than otherwise: all must fit.
bound=${XROCE_MUTANT_TIMEOUT:-300}
export XROCE_SIM_SEEDS=${XROCE_SIM_SEEDS:-1500}
export XROCE_PORTSIM_SEEDS=${XROCE_PORTSIM_SEEDS:-5000}

# is_there FILE TEXT: on exactly one line.
is_there() { [ -e "$1" ] && [ "$(grep -cF -- "$2" "$1")" -eq 1 ]; }
# has_program FILE: is it in a program of these directories?
has_program() {
	case $1 in
	user/tools/bench/* | user/tools/export/* | user/tools/lab/lab_* | user/fault/*) ;;
	user/verbs/* | user/tools/*) return 1 ;;
	esac
}
if [ -n "$check" ]; then
	cd "$top"
	rows=0 broken=0
	while IFS=$'\t' read -r file text new; do
		case $file in '#'* | '') continue ;; esac
		rows=$((rows + 1))
		if ! has_program "$file"; then
			echo "broken    $file: $text (no program here has it)"
		elif is_there "$file" "$text" && [ "$text" != "$new" ]; then
			continue
		else
			echo "broken    $file: $text (not on exactly one line)"
		fi
		broken=$((broken + 1))
	done <"$table"
	echo "$rows rows, $broken broken"
	[ "$rows" -gt 0 ] && [ "$broken" -eq 0 ]
	exit
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp -r "$top"/{Makefile,include,bpf,share,user,tests} "$dir"
cd "$dir"
# quick ones first; the longest is left out
programs=
for kind in unit sim; do
	for src in tests/$kind/test_*.c; do
		case $src in */test_masks16.c | */test_loss.c | */test_random.c) ;; *) programs+=" ${src%.c}" ;; esac
	done
done
programs+=" tests/sim/test_random tests/sim/test_loss"
# programs_of KIND: the programs of tests/KIND.
programs_of() { local src; for src in tests/"$1"/test_*.c; do echo "${src%.c}"; done; }
# kind_of FILE: the directories of tests that it is tested by; none for the transport.
kind_of() {
	case $1 in
	bpf/wake.h) echo bpf portsim ;;
	bpf/*) echo bpf ;;
	user/engine/*) ;;
	user/cm/*) echo cm ;;
	user/tools/bench/*) echo measure ;;
	user/fault/*) echo unit sim ;;
	user/tools/lab/*) echo unit ;;
	user/rdmacm/* | user/rsocket/*) echo rdmacm ;;
	user/os/loop.*) echo rdmacm brokersim ;;
	user/run/* | user/port/port_cq.c) echo portsim port ;;
	user/io/rx_ring.* | user/io/umem.* | user/io/xsk.*) echo port portsim ;;
	user/broker/* | user/client/ask.c) echo brokersim port ;;
	user/port/port_qp.c | user/port/follow.c) echo brokersim ;;
	user/*) echo port ;;
	esac
}
# The makefile's targets and the programs of the directories.
targets_of() { local kind; for kind in $1; do echo "$kind-tests"; done; }
all_of() { local kind; for kind in $1; do programs_of "$kind"; done; }
# build TARGET: the transport's tests, if none is given.
build() { make -j2 BUILD="$dir/b" CFLAGS=-O1 WARNINGS= ${1:-unit-tests sim-tests} >"$dir/log" 2>&1; }
# Prints the first case that the log says failed.
first_case() { sed -n 's/^\[  FAILED  \] \([a-z]\)/: \1/p' "$dir/log" | head -n 1; }
# Prints the first program that fails, and its first case that does; or nothing. "HUNG" and the
# program, if it ends at its time limit.
first_failure() {
	local p status
	for p in ${1:-$programs}; do
		status=0
		timeout "$bound" "$dir/b/$p" >"$dir/log" 2>&1 </dev/null || status=$?
		case $status in
		0) ;;
		124) echo "HUNG ${p##*/}" && return ;;
		*) echo "${p##*/}$(first_case)" && return ;;
		esac
	done
}

build || { cat "$dir/log"; echo "the tree does not build"; exit 2; }
failed=$(first_failure)
[ -z "$failed" ] || { echo "$failed fails without any mutation"; exit 2; }
for kind in $(while IFS=$'\t' read -r file rest; do kind_of "$file"; done <"$table" | tr ' ' '\n' | sort -u); do
	build "$kind-tests" || { cat "$dir/log"; echo "tests/$kind does not build"; exit 2; }
	failed=$(first_failure "$(programs_of "$kind")")
	[ -z "$failed" ] || { echo "$failed fails without any mutation"; exit 2; }
done

n=0 killed=0 hung=0 survived=0 broken=0
while IFS=$'\t' read -r file text new; do
	case $file in '#'* | '') continue ;; esac
	n=$((n + 1))
	[ $(((n - 1) % every)) -eq "$offset" ] || continue
	name="$file: $text -> $new"
	if ! is_there "$file" "$text"; then
		echo "broken    $name (not on exactly one line)"
		broken=$((broken + 1))
		continue
	fi
	cp -p "$file" "$dir/original"
	TEXT=$text NEW=$new perl -pi -e 's/\Q$ENV{TEXT}\E/$ENV{NEW}/' "$file"
	kind=$(kind_of "$file")
	if ! build "$(targets_of "$kind")"; then
		echo "broken    $name (does not build)"
		broken=$((broken + 1))
	else
		failed=$(first_failure "$(all_of "$kind")")
		case $failed in
		'') echo "SURVIVED  $name" && survived=$((survived + 1)) ;;
		HUNG*) echo "HUNG      $name (${failed#HUNG })" && hung=$((hung + 1)) ;;
		*) echo "killed    $name ($failed)" && killed=$((killed + 1)) ;;
		esac
	fi
	cp "$dir/original" "$file" # newer than what was built of the mutant
done <"$table"
echo "$killed killed, $hung hung, $survived survived, $broken broken"
[ $((hung + survived + broken)) -eq 0 ]
