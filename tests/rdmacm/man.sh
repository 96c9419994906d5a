#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The manual pages of librdmacm as specification: man.sh BUILD SUBJECT... runs
# BUILD/tests/rdmacm/man_SUBJECT (`make rdmacm-pages`) for each subject, on one interface, against
# itself. The name of each result begins with its subject. XROCE_MAN_SPLIT=1 runs each case in its
# own process, so that a case that hangs or crashes affects no other.
here=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
BUILD=${1:?usage: man.sh BUILD SUBJECT...}
shift
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
XROCE=$BUILD/bin/xroce
. "$here/scripts/netns.sh"
cd "$here/tests/rdmacm" || exit 1
subjects=("$@")
. "$here/tests/common/sanitized.sh"
netns_pair 4500

# An address that resolves, to a neighbour that does not exist.
NOBODY=02:00:00:77:00:77
for ns in $NS_A $NS_B; do
	dev=$IF_A
	[ $ns = $NS_A ] || dev=$IF_B
	ip -n $ns neigh add ${IP4_A%.*}.77 lladdr $NOBODY dev $dev nud permanent &&
		ip -n $ns neigh add ${IP6_A%::*}::77 lladdr $NOBODY dev $dev nud permanent || exit 1
done

cases_of() { grep -oE '\bCASE\([a-z0-9_]+\)' "$1" | sed -E 's/CASE\((.*)\)/\1/'; }

# run SUBJECT NS IPV4 IPV6 [CASE...]: its output in $WORK/SUBJECT.out; 0 if all it printed is good
run() {
	local subject=$1 ns=$2 cases printed rc
	shift 2
	in_ns "$ns" timeout --kill-after=5 "${XROCE_MAN_TIMEOUT:-200}" env LD_LIBRARY_PATH="$BUILD/lib" \
		"$BUILD/tests/rdmacm/man_$subject" "$@" >"$WORK/$subject.out" 2>&1
	rc=$?
	shift 2
	sed -E "s/^(ok|not ok|skip) /\1 ${subject}__/" "$WORK/$subject.out"
	cases=$#
	[ $cases -gt 0 ] || cases=$(cases_of "man_$subject.c" | wc -l)
	# A program that exits early has printed too few of them.
	printed=$(grep -cE '^(ok|not ok|skip) ' "$WORK/$subject.out")
	if [ "$printed" -ne "$cases" ] || [ $rc -gt 1 ]; then
		echo "not ok ${subject}__${1:-ran_to_its_end}"
		echo "# $printed of $cases cases, exit status $rc"
		return 1
	fi
	return $rc
}

failed=0
# The CM's time-outs are long: that subject runs in B, in parallel with the others.
beside=
for subject in "${subjects[@]}"; do
	if [ "$subject" = unreachable ]; then
		run unreachable b $IP4_B $IP6_B >"$WORK/beside" &
		beside=$!
		netns_children+=("$beside")
	fi
done
for subject in "${subjects[@]}"; do
	[ "$subject" != unreachable ] || continue
	if [ -z "${XROCE_MAN_SPLIT:-}" ]; then
		run "$subject" a $IP4_A $IP6_A || failed=1
		continue
	fi
	for case in $(cases_of "man_$subject.c"); do
		run "$subject" a $IP4_A $IP6_A "$case" || failed=1
	done
done
if [ -n "$beside" ]; then
	finish "$beside" 250 || failed=1
	cat "$WORK/beside"
fi
exit $failed
