#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Data races of librdmacm: tsan.sh BUILD. Those subjects of man.sh in which several threads have to
# do with an id, a channel or its events. The libraries are built in BUILD-tsan (make TSAN=1).
here=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
BUILD=${1:?usage: tsan.sh BUILD}
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
tsan=$BUILD-tsan

out=$("${MAKE:-make}" --no-print-directory -C "$here" BUILD="$tsan" TSAN=1 -j"$(nproc)" "$tsan/bin/xroce" \
	"$tsan/lib/libibverbs.so.1" "$tsan/lib/librdmacm.so.1" 2>&1) || {
	echo "$out"
	exit 1
}
# A report of TSan's ends the program with an exit status of its own.
export TSAN_OPTIONS="halt_on_error=0 exitcode=66"
XROCE_MAN_SANITIZE=thread exec bash "$here/tests/rdmacm/man.sh" "$tsan" events teardown
