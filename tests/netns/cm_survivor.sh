#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# The broker ends, by TERM and by KILL, and another one begins: what of a process's connections,
# listeners and waiting calls comes back, that it connects again at once, that a listener at any
# address is there again, and that others connect (cm_survivor.c).
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
install -m 755 "$TOOLS"/cm_{survivor,beside} "$OWN/bin"
PORT=7495 SILENT_PORT=7497 ANY_PORT=7493

said() { grep -qE "^$2" "$WORK/$1.out"; }
said_or_gone() { said "$1" "$2" || is_gone_or_zombie "$3"; }
# hears NAME PID LINE
hears() {
	wait_until 30 said_or_gone "$1" "$3" "$2"
	said "$1" "$3" || { fail "$1 does not say '$3'"; show "$1"; }
}
user_on() { start "$1" "$2" env LD_LIBRARY_PATH="$OWN/lib" "${NOBODY[@]}" "$OWN/bin/$3" "${@:4}"; }

# ends_by SIGNAL
ends_by() {
	local survivor server silent name
	serve a $IF_A || return
	user_on server b cm_beside serve $IP4_B $PORT
	server=$child
	hears server "$server" ready || return
	user_on silent b cm_beside hold $IP4_B $SILENT_PORT
	silent=$child
	hears silent "$silent" ready || return
	user_on survivor a cm_survivor $IP4_A $IP4_B $PORT $SILENT_PORT
	survivor=$child
	hears survivor "$survivor" ready || return
	kill "-$1" "$broker"
	finish "$broker" 10
	kill -USR1 "$survivor"
	hears survivor "$survivor" ended || return
	for name in listener connected connecting accepted; do
		need_line survivor "^$name RDMA_CM_EVENT_DEVICE_REMOVAL"
	done
	need_line survivor '^async_event local catastrophic error'
	need_line survivor '^get_request failed EINVAL$'
	need_line survivor '^connect failed ENODEV$'
	need_line survivor '^raccept failed ENODEV$'
	need_line survivor '^0 wait after'
	serve a $IF_A || return
	kill -USR1 "$survivor"
	hears survivor "$survivor" asked || return
	need_line survivor '^again [0-9]+$'
	user_on fresh a cm_beside connect $IP4_B $PORT 0 3000
	finish "$child" 20 || { fail "another process ended with $?"; show fresh; }
	user_on any b cm_beside connect $IP4_A $ANY_PORT 0 3000
	finish "$child" 20 || { fail "nobody listens at any address"; show any; }
	kill -USR1 "$survivor"
	finish "$survivor" 10 || { fail "the survivor ended with $?"; show survivor; }
	stop "$broker"
	stop "$silent"
	stop "$server"
}

broker_b() { serve b $IF_B; broker_of_b=$broker; }
broker_b || exit 1
run_case ends_by_term ends_by TERM
run_case ends_by_kill ends_by KILL
stop "$broker_of_b"
finish_cases
