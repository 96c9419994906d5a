#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Manual pages as specification: man.sh BUILD PAGE... runs BUILD/tests/verbs/man_PAGE (`make
# verbs-pages`) for each page, on one interface with two receive queues, against itself. The name of
# each result begins with its page.
here=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
BUILD=${1:?usage: man.sh BUILD PAGE...}
shift
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
. "$here/scripts/netns.sh"

QUEUES=2
netns_pair 4500 $QUEUES
. "$here/tests/common/sanitized.sh"

failed=0
for page in "$@"; do
	# A program that exits early has printed too few results.
	cases=$(grep -cE '^	CASE\(' "$here/tests/verbs/man_$page.c")
	in_a timeout --kill-after=5 "${XROCE_MAN_TIMEOUT:-300}" env LD_LIBRARY_PATH="$BUILD/lib" \
		XROCE_TEST_QUEUES=$QUEUES "$BUILD/tests/verbs/man_$page" $DEV_A >"$WORK/out" 2>&1
	rc=$?
	sed -E "s/^(ok|not ok|skip) /\1 ${page}__/" "$WORK/out"
	printed=$(grep -cE '^(ok|not ok|skip) ' "$WORK/out")
	if [ "$printed" -eq "$cases" ] && [ $rc -le 1 ]; then
		[ $rc -eq 0 ] || failed=1
		[ $rc -eq 0 ] || grep -q '^not ok' "$WORK/out" || echo "not ok ${page}__left_nothing_behind"
	else
		failed=1
		echo "not ok ${page}__ran_to_its_end"
		echo "# $printed of $cases cases, exit status $rc"
	fi
done
exit $failed
