#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# What shared.sh has, with both ends of the wire shared: unmodified programs of a user without any
# privilege on A's interface and on B's.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/perf.sh"
. "$here/tests/netns/lib/exchange.sh"

serve a $IF_A && serve b $IF_B || { cat "$WORK/case.notes"; exit 1; }
all_programs far user user b
finish_cases
