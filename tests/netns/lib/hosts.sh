# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Frameworks between two hosts, unmodified: on_host starts a program by `xroce run` and no more.
# Each host has its own IPC, UTS and PID namespaces, so that shared memory is no path between them.
# A program's work is in its line of XROCE_COUNTERS (counted.sh). Sourced after case.sh and the
# topology.

. "$(dirname "${BASH_SOURCE[0]}")/counted.sh"

# host_make NS: a long-lived process holds the host's namespaces, as a broker must outlive the
# program that started it. The exit of a PID namespace's first process kills all others.
declare -A host_pid
host_outer=()
host_make() {
	local outer
	start "host_$1" "$1" unshare --ipc --uts --fork --kill-child --mount-proc --pid \
		sh -c "hostname host-$1 && echo up && exec sleep infinity"
	outer=$child
	host_outer+=("$outer")
	wait_until 10 grep -q up "$WORK/host_$1.out" || netns_die "no namespaces for host $1"
	read -r "host_pid[$1]" _ <"/proc/$outer/task/$outer/children"
}
host_make a
host_make b

# hosts_end: kills the processes that hold the namespaces. unshare(1) ignores SIGTERM, so that
# netns_cleanup would wait for each for seconds.
hosts_end() {
	kill -9 "${host_outer[@]}" 2>/dev/null
	host_outer=()
}
trap 'hosts_end; netns_cleanup' EXIT

# on_host NAME NS COMMAND...: in the background, its pid in $child.
on_host() {
	local name=$1 ns=$2 dev=$IF_A
	shift 2
	[ "$ns" = a ] || dev=$IF_B
	start "$name" "$ns" nsenter --target "${host_pid[$ns]}" --ipc --uts --pid --mount \
		env XROCE_COUNTERS=1 "$XROCE" run --dev $dev -- "$@"
}
