#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_PYVERBS_EVERY=4
# tier: long long
# needs: hugepages
#
# rdma-core's own test-suite, pyverbs, under `xroce run`, on one interface against itself:
# pyverbs.sh [BUILD [PATTERN...]]. It is Debian's (packages rdma-core and python3-pyverbs) and runs
# unmodified, one process a test; each_test.py describes the output, pyverbs-skips.txt the skipped
# tests and the reasons. PATTERNs are parts of tests' names, for instance test_mr.
# XROCE_PYVERBS_EVERY=4 runs one test in four.
#
# Eight huge pages more are there for as long as it runs, if the kernel gives them.
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
# more_huge_pages N: than there are now; another run may change their number as well. How many more
# there are.
more_huge_pages() {
	local before
	flock 9
	before=$(cat $huge)
	echo $((before + $1)) >$huge
	echo $(($(cat $huge) - before))
} 9<$huge
if [ -w $huge ]; then
	taken=$(more_huge_pages 8 2>/dev/null)
	trap 'more_huge_pages -$((taken)) >/dev/null 2>&1; netns_cleanup' EXIT
fi
netns_pair 4500

in_a env PYTHONDONTWRITEBYTECODE=1 "$BUILD/bin/xroce" run -- /usr/bin/python3 \
	"$here/tests/foreign/each_test.py" "$WORK/tests" "$here/tests/foreign/pyverbs-skips.txt" \
	$DEV_A "$@"
