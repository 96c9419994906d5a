# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# with_quick_clock COMMAND...: perftest's tools that it starts do without the 0.2 s of work in which
# each measures the processor's clock (perftest/clock.c). Without a compiler they take their time.
# Sourced behind case.sh.

. "$(dirname "${BASH_SOURCE[0]}")/preload.sh"
preload_make clock perftest/clock.c
with_quick_clock() { preloaded clock "$@"; }
