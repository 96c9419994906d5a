#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# epoll(7), signals and other calls of event loops under librspreload.so: tests/netns/epolls.c, both
# ends in one process, judged first on TCP of the kernel.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# judge LABEL COMMAND...: its lines are this test's.
judge() {
	local label=$1 rc
	shift
	"$@" timeout 120 "$TOOLS/epolls" $IP4_A "${XROCE_CASE:-*}" "_$label" >"$WORK/$label.out" 2>&1
	rc=$?
	cat "$WORK/$label.out"
	case $rc in
	0) ;;
	1) case_failed=1 ;;
	*) echo "not ok epolls_$label it ended with $rc"; case_failed=1 ;;
	esac
	case_ran=1
}

# Nothing of the case came by TCP, so that rsockets were judged.
no_tcp_was_used() {
	local out
	out=$(in_a nstat -asz TcpActiveOpens | awk '/ActiveOpens/ {print $2}')
	if [ "$out" = "$1" ]; then
		echo "ok no_tcp"
	else
		echo "not ok no_tcp $out connections of TCP were made, $1 before"
		case_failed=1
	fi
}

judge tcp in_a
opens=$(in_a nstat -asz TcpActiveOpens | awk '/ActiveOpens/ {print $2}')
judge rsockets in_a "$XROCE" run --rsockets --dev $IF_A --
no_tcp_was_used "$opens"
finish_cases
