# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# with_quick_clock COMMAND...: makes its perftest tools skip the 0.2 s in which each measures the
# processor's clock (perftest/clock.c). Without a compiler they still measure. Sourced after
# case.sh.

. "$(dirname "${BASH_SOURCE[0]}")/preload.sh"
preload_make clock perftest/clock.c
with_quick_clock() { preloaded clock "$@"; }
