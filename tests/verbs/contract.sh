#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# The verbs contract on one interface, against itself: contract.sh BUILD. The program is linked with
# the installed libibverbs and run on ours.
here=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
BUILD=${1:?usage: contract.sh BUILD}
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
. "$here/scripts/netns.sh"

program=$WORK/contract
"${CC:-gcc}" -std=gnu11 -O1 -g -Wall -Wextra -Werror -pthread "$here"/tests/verbs/contract*.c "$here"/tests/verbs/pair.c -libverbs -o "$program" || exit 1
netns_pair 4500

# The program prints the results; a program that exits early has printed too few of them.
cases=$(grep -hcE '^	CASE\(' "$here"/tests/verbs/contract_*.c | awk "{ n += \$1 } END { print n }")
in_a timeout 120 env LD_LIBRARY_PATH="$BUILD/lib" "$program" $DEV_A >"$WORK/contract.out" 2>&1
rc=$?
cat "$WORK/contract.out"
printed=$(grep -cE '^(ok|not ok) ' "$WORK/contract.out")
if [ "$printed" -eq "$cases" ]; then
	echo "ok contract__ran_to_its_end"
else
	echo "not ok contract__ran_to_its_end"
	echo "# $printed of $cases cases, exit status $rc"
	rc=1
fi
exit $rc
