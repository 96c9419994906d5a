#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdma-core's own test-suite, pyverbs, under `xroce run`, on one interface against itself:
# pyverbs.sh [BUILD [PATTERN...]]. It is Debian's (packages rdma-core and python3-pyverbs) and runs
# as it is, one process a test; each_test.py says what is printed, pyverbs-skips.txt which tests are
# skipped and why. PATTERNs are parts of tests' names, for instance test_mr.
#
# Huge pages are taken for as long as it runs, if the kernel gives them.
here=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
BUILD=${1:-build}
shift $(($# > 0))
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
. "$here/scripts/netns.sh"

suite=/usr/share/doc/rdma-core/tests
if [ ! -d $suite ] || ! /usr/bin/python3 -c 'import pyverbs.device' 2>/dev/null; then
	echo "skip pyverbs packages rdma-core and python3-pyverbs are not installed"
	exit 0
fi
cp -r $suite "$WORK/tests" && find "$WORK/tests" -name '*.gz' -exec gunzip {} + || exit 1

huge=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
before=$(cat $huge 2>/dev/null) && { echo $((before + 8)) >$huge; } 2>/dev/null &&
	trap 'echo $before >$huge; netns_cleanup' EXIT
netns_pair 4500

in_a env PYTHONDONTWRITEBYTECODE=1 "$BUILD/bin/xroce" run -- /usr/bin/python3 \
	"$here/tests/foreign/each_test.py" "$WORK/tests" "$here/tests/foreign/pyverbs-skips.txt" \
	$DEV_A "$@"
