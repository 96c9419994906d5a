#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Man pages as specification: man.sh BUILD [PAGE...] runs man_PAGE.c for each page, on one interface
# with two receive queues, against itself. Each result's name begins with its page's. The programs
# are linked with the installed libibverbs and run on ours. XROCE_MAN_SANITIZE=address,undefined
# builds them with these sanitizers, for a BUILD that was made so (SAN=1).
here=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
BUILD=${1:?usage: man.sh BUILD [PAGE...]}
shift
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
. "$here/scripts/netns.sh"
cd "$here/tests/verbs" || exit 1

QUEUES=2
pages=("$@")
if [ ${#pages[@]} -eq 0 ]; then
	for f in man_*.c; do
		f=${f#man_}
		pages+=("${f%.c}")
	done
fi

CFLAGS="-std=gnu11 -O1 -g -Wall -Wextra -Wno-unused-parameter -Werror -pthread"
CFLAGS+="${XROCE_MAN_SANITIZE:+ -fsanitize=$XROCE_MAN_SANITIZE -fno-omit-frame-pointer}"
shared=()
for f in man pair tm wr rights held limits walk_model walk_objects walk_requests; do
	# shellcheck disable=SC2086
	"${CC:-gcc}" $CFLAGS -c $f.c -o "$WORK/$f.o" || exit 1
	shared+=("$WORK/$f.o")
done
# shellcheck disable=SC2086
printf '%s\n' "${pages[@]}" | xargs -P "$(nproc)" -I PAGE "${CC:-gcc}" $CFLAGS man_PAGE.c "${shared[@]}" -rdynamic -libverbs -o "$WORK/man_PAGE" || exit 1
netns_pair 4500 $QUEUES

failed=0
for page in "${pages[@]}"; do
	# The program prints the results; one that ends early has printed too few of them.
	cases=$(grep -cE '^	CASE\(' "man_$page.c")
	in_a timeout --kill-after=5 "${XROCE_MAN_TIMEOUT:-300}" env LD_LIBRARY_PATH="$BUILD/lib" XROCE_TEST_QUEUES=$QUEUES "$WORK/man_$page" $DEV_A >"$WORK/out" 2>&1
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
