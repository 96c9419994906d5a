#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdma-core's own test-suite, pyverbs, on one interface against itself: pyverbs.sh [BUILD [ARG...]].
# It is Debian's (packages rdma-core and python3-pyverbs, which this installs nothing of) and runs
# as it is; ARGs are unittest's, for instance `-k test_mr`. Prints `ok`, `not ok` or `skip` for each
# test, and what failed; then the counts. A test of a vendor's hardware is skipped by itself.
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
netns_pair 4500

in_a env LD_LIBRARY_PATH="$BUILD/lib" timeout --kill-after=5 "${XROCE_PYVERBS_TIMEOUT:-280}" \
	/usr/bin/python3 "$WORK/tests/run_tests.py" --dev $DEV_A -v "$@" >"$WORK/out" 2>&1
rc=$?
# "test_name (module.Class[.test_name]) ... ok", the docstring on a line of its own between
awk '
	/^test_[a-z0-9_]+ \(/ { name = $2; gsub(/[()]/, "", name); sub(/^tests\./, "", name); if (name !~ $1 "$") name = name "." $1 }
	/( \.\.\. |^)ok$/ { print "ok " name; p++ }
	/ \.\.\. skipped / { why = $0; sub(/.* \.\.\. skipped /, "", why); print "skip " name " " why; s++ }
	/ \.\.\. (FAIL|ERROR)$/ { print "not ok " name; f++ }
	/^(FAIL|ERROR): / { tell = 1 }
	tell { print "# " $0 }
	END { printf "# %d passed, %d failed, %d skipped\n", p, f, s; exit p + f + s == 0 }' "$WORK/out"
if [ $? -ne 0 ] || ! grep -qE '^Ran [0-9]+ test' "$WORK/out"; then
	echo "not ok pyverbs__ran_to_its_end"
	tail -20 "$WORK/out" | sed 's/^/# /'
	exit 1
fi
exit $rc
