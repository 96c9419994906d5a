#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
# tier: long sockets XROCE_PORT=sockets
#
# Tests of the verbs in Python, on one interface against itself: pyverbs.sh BUILD [PATTERN]. New
# tests of the API are written here, ten lines each, on the classes of resources.py.
here=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
BUILD=${1:?usage: pyverbs.sh BUILD [PATTERN]}
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
. "$here/scripts/netns.sh"
netns_pair 4500

in_a env PYTHONDONTWRITEBYTECODE=1 XROCE="$BUILD/bin/xroce" "$BUILD/bin/xroce" run -- \
	/usr/bin/python3 "$here/tests/pyverbs/run.py" $DEV_A "${2:-*}"
