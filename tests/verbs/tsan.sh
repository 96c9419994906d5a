#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Data races in the CQ, SRQ and channel code, and between engines of a device: tsan.sh BUILD. The
# library is built with ThreadSanitizer in BUILD-tsan (make TSAN=1), so are the programs that use it
# from several threads, and all run in one process over the own GID. A report of TSan's is a
# failure.
here=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
BUILD=${1:?usage: tsan.sh BUILD}
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
. "$here/scripts/netns.sh"

PAGES="ibv_poll_cq ibv_resize_cq ibv_modify_cq ibv_get_cq_event ibv_req_notify_cq ibv_post_srq_recv ibv_modify_srq ibv_post_srq_ops tag_matching ibv_get_async_event dm_traffic thread_domain on_demand several_threads odd_requests ibv_create_wq ibv_create_rwq_ind_table ibv_create_counters windows_under_way"
tsan=$BUILD-tsan
flags="-std=gnu11 -O1 -g -Wall -Wextra -Wno-unused-parameter -Werror -pthread -fsanitize=thread"

if ! "${MAKE:-make}" --no-print-directory -C "$here" BUILD="$tsan" TSAN=1 -j"$(nproc)" "$tsan/lib/libibverbs.so.1" \
	"$tsan/tests/unit/test_cq" "$tsan/tests/unit/test_engine" "$tsan/tests/unit/test_threads" >"$WORK/make.out" 2>&1; then
	cat "$WORK/make.out"
	exit 1
fi
cd "$here/tests/verbs" || exit 1
# shellcheck disable=SC2086
{
	for page in $PAGES; do
		echo "-o $WORK/man_$page man_$page.c man.c pair.c tm.c held.c"
	done
	echo "-o $WORK/wake_stress ../netns/wake_stress.c ../netns/lib/ctl.c ../netns/lib/device.c ../netns/lib/rc.c"
} | xargs -P "$(nproc)" -L 1 "${CC:-gcc}" $flags -libverbs || exit 1
netns_pair 4500 2

# The library closes its descriptors by the system call itself, which ThreadSanitizer does not see:
# the next one of that number seems to be the one before.
printf 'race:%s\n' kernel_event_make kernel_set_make >"$WORK/suppressions"

failed=0
# TSan's shadow wants the address space where it was before 32 bits of it were random.
run() {
	local name=$1
	shift
	in_a timeout --kill-after=5 200 setarch -R env LD_LIBRARY_PATH="$tsan/lib" XROCE_TEST_QUEUES=2 TSAN_OPTIONS="halt_on_error=0 exitcode=66 suppressions=$WORK/suppressions print_suppressions=0" \
		"$@" >"$WORK/out" 2>&1
	rc=$?
	if [ $rc -eq 0 ] && ! grep -qE 'ThreadSanitizer|^not ok' "$WORK/out"; then
		echo "ok tsan__$name"
	else
		echo "not ok tsan__$name"
		echo "# exit status $rc"
		head -60 "$WORK/out" | sed 's/^/# /'
		failed=1
	fi
}
for page in $PAGES; do
	run "$page" "$WORK/man_$page" $DEV_A
done
run test_cq "$tsan/tests/unit/test_cq"
run test_engine "$tsan/tests/unit/test_engine"
run test_threads "$tsan/tests/unit/test_threads"
run wake_stress "$WORK/wake_stress" -L -d $DEV_A -n "${XROCE_TSAN_HOPS:-2000}"
exit $failed
