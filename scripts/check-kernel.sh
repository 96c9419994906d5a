#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The rooms that tests/portsim simulates reach the kernel through user/os/kernel.h and nothing
# else: no system call, no function of libbpf's, no header that has them. (AF_XDP sockets are made
# by libxdp's functions; threads and locks are POSIX's.) The clock is read where a thread comes in,
# gets a lock or has slept or sent, and the time is passed down from there: by the functions below
# and no others. Prints each violation.
#
# check-kernel.sh [ROOT]
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1

files=$(ls user/{run,port}/*.[ch] user/io/{rx_ring,umem,xsk}.[ch] | grep -v '^user/run/fault\.c$')
calls='syscall|ioctl|p?poll|p?select|epoll_[a-z0-9_]+|eventfd|timerfd_[a-z]+|signalfd|nanosleep|usleep|sleep'
calls+='|clock_gettime|clock_nanosleep|gettimeofday|time|sched_yield|read|write|readv|writev|close|fcntl'
calls+='|sendto|send|sendmsg|sendmmsg|recvfrom|recv|recvmsg|[gs]etsockopt|socket|getrandom|gettid'
calls+='|memfd_create|ftruncate|mmap|munmap|bpf_[a-z_]+|ring_buffer__[a-z_]+|libbpf_[a-z_]+'
headers='bpf/|sys/|time\.h|poll\.h|sched\.h|fcntl\.h'
# Members of the project's structures have some of these names; they are preceded by . or ->.
bad=$(grep -nE "(^|[^a-zA-Z0-9_>.])($calls)\(|#[[:space:]]*include <($headers)" $files |
	grep -vE '^[^:]*:[0-9]+:[[:space:]]*(/?\*|//)')
n=$(echo "$files" | wc -l)
[ "$n" -gt 20 ] || { echo "$n files: where are the others?" >&2; exit 1; }

readers='shard_turn shard_poll_cq shard_post_may_wait pump_transmit migration_move'
readers+=' worker_serve worker_is_deserted worker_sleep worker_main channel_sleep_run channel_sleep_await_unannounced'
readers+=' channel_await_record settle_at_exit port_destroy port_lock open_when_free'
readers+=' others_change port_group_attach trace_tx_send'
for reader in $(awk '{ sub(/^__attribute__\(\([a-z]+\)\) /, "") }
	/^[a-z_].*\(/ { match($0, /[a-z0-9_]+\(/); f = substr($0, RSTART, RLENGTH - 1) }
	/^[^\/*]*clock_now_ns\(/ && !/^[a-z]/ { print FILENAME ":" f }' $files | sort -u); do
	[[ " $readers " == *" ${reader#*:} "* ]] ||
		{ echo "$reader() reads the clock: take the time as an argument" >&2; exit 1; }
done
[ -z "$bad" ] || { echo "$bad" >&2; echo "not through user/os/kernel.h" >&2; exit 1; }
echo "$n files reach the kernel through user/os/kernel.h, $(wc -w <<<"$readers") functions the clock"
