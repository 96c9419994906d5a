# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# with_quick_clock COMMAND...: perftest's tools that it starts do without the 0.2 s of work in which
# each measures the processor's clock (perftest/clock.c). Without a compiler they take their time.
# Sourced behind case.sh.

if command -v gcc >/dev/null; then
	gcc -O2 -shared -fPIC -o "$WORK/clock.so" "$here/tests/netns/perftest/clock.c" || exit 1
fi
with_quick_clock() {
	if [ -e "$WORK/clock.so" ]; then
		LD_PRELOAD=$WORK/clock.so "$@"
	else
		"$@"
	fi
}
