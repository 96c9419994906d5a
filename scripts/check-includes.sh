#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Checks every #include against the rule of its directory. The engine makes no system call, the BPF
# programs include only headers that they share with user space, only the verbs layer includes the
# verbs headers, and no room includes a header of a room above.
#
# check-includes.sh [ROOT]
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1

# The C library's headers that make no system call, keep no clock and do no I/O.
pure='assert|cpuid|endian|errno|inttypes|limits|setjmp|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdlib|string|immintrin'

# The rooms of user/, lower ones first, and the rooms whose headers each may include.
declare -A rooms=(
	[os]='engine'
	[io]='engine|os'
	[run]='engine|os|io'
	[client]='engine|os|io|run'
	[host]='engine|os|client'
	[broker]='engine|os|io|client|host|cm'
	[port]='engine|os|io|run|client'
	[verbs]='engine|fault|os|port'
	[rdmacm]='engine|os|cm'
	[rsocket]='engine|os|rdmacm'
	[rspreload]='none'
	[tools]='engine|os|io|client|port'
	[tools/bench]='engine|os|cm'
	[tools/export]='engine|os'
	[tools/lab]='engine|fault|os'
)
# The folders of user/tools, and the other folders whose headers each may include.
declare -A tools=([bench]=none [doctor]='observe|run|serve' [explain]=observe [export]='observe|serve'
	[lab]=trace [list]=observe [observe]=none [run]=observe [serve]=run [top]=observe [trace]=observe)
for tool in "${!tools[@]}"; do
	rooms[tools/$tool]=${rooms[tools/$tool]:-${rooms[tools]}}
done
# The folders of user/tools that may include headers of the broker, and which: observe reads maps,
# doctor probes the kernel, run removes pins of its children, trace takes slots as root.
declare -A broker=([tools/observe]='broker|dispatcher' [tools/doctor]='pin|probe'
	[tools/serve]='broker|pin' [tools/run]=pin [tools/trace]=trace_slot)
# The skeletons of BPF programs, each for the room that loads it.
declare -A skeletons=([io]='xroce_tx' [broker]='(xroce|xroce_broker|xroce_held)')

# What a directory may include, as extended regular expressions on the text between (and with) <> or
# "".
declare -A may=(
	[include/xroce]='<linux/types\.h>|<xroce/[a-z_]+\.h>'
	[bpf]='<linux/[a-z0-9_]+\.h>|<asm/[a-z_]+\.h>|<bpf/bpf_(helpers|endian|core_read|tracing)\.h>|<stdbool\.h>|<stddef\.h>|<xroce/[a-z_]+\.h>|"[a-z0-9_]+\.h"'
	[user/cm]="<($pure)\\.h>|\"(\\.\\./engine/(types|timer_heap)|[a-z0-9_]+)\\.h\""
	[user/fault]="<($pure|ctype|stdio)\\.h>|\"(\\.\\./engine/(engine|packet|types)|[a-z0-9_]+)\\.h\""
	[user/engine]="<($pure)\\.h>|<isa-l(/crc)?\\.h>|<xroce/[a-z_]+\\.h>|\"[a-z0-9_]+\\.h\""
)
for room in "${!rooms[@]}"; do
	up='\.\./'
	[[ $room =~ / ]] && up='\.\./\.\./'
	may[user/$room]="<[a-z0-9_/-]+\\.h>|\"[a-z0-9_]+\\.h\""
	may[user/$room]+="|\"$up(${rooms[$room]})/[a-z0-9_]+\\.h\""
	tool=${tools[${room#tools/}]:-}
	[ -n "$tool" ] && may[user/$room]+="|\"\\.\\./(($tool)/)?[a-z0-9_]+\\.h\""
	[ -n "${broker[$room]:-}" ] && may[user/$room]+="|\"${up}broker/(${broker[$room]})\\.h\""
	[ -n "${skeletons[$room]:-}" ] && may[user/$room]+="|\"${skeletons[$room]}\\.skel\\.h\""
done
# Includes that are refused although a rule above allows them.
declare -A never=(
	[user/verbs]='<bpf/|<xdp/|<libmnl/|<linux/(if_xdp|bpf|if_link|rtnetlink|netlink)\.h>'
)
# The BPF programs that run in the broker, and headers in place of the kernel's and libbpf's.
may[user/host]+='|"\.\./\.\./bpf/(xroce\.bpf\.c|mux_mad\.h)"'
may[user/host/include]='<[a-z0-9_/-]+\.h>'
# One header of the verbs each, and headers of network interfaces that change nothing.
may[user/rdmacm]+='|"\.\./verbs/xroce_cm\.h"'
may[user/tools/bench]+='|"\.\./\.\./verbs/xroce_cm\.h"'
may[user/rsocket]+='|"\.\./verbs/xroce_cm\.h"'
may[user/rspreload]+='|"\.\./rsocket/xroce_rsocket\.h"'
never[user/rdmacm]=${never[user/verbs]}
never[user/rsocket]=${never[user/verbs]}
for room in "${!rooms[@]}"; do
	[[ $room =~ ^(verbs|rdmacm|rsocket|rspreload|tools/bench)$ ]] || never[user/$room]='<infiniband/|<rdma/'
done
# Only observe reads maps, and only doctor probes the kernel; trace reads ring buffers of records.
for room in "${!rooms[@]}"; do
	case $room in
	tools/observe | tools/doctor) ;;
	tools/trace) never[user/$room]+='|<bpf/bpf\.h>' ;;
	tools/bench) never[user/$room]='<bpf/' ;;
	tools | tools/*) never[user/$room]+='|<bpf/' ;;
	esac
done
# Making a port needs no thread that runs one. Interfaces are above frames, locks and the clock, but
# for the worker, which asks for the CPU of a queue.
never[user/client]+='|<bpf/|<xdp/|"\.\./run/(worker|port_channel)\.h"'
interfaces='(netdev[a-z_]*|link_watch)\.h"'
never_file() {
	case $1 in
	user/run/worker.c) ;;
	user/run/* | user/io/xsk.* | user/io/umem.* | user/io/rx_ring.*) echo "\"\\.\\./os/$interfaces" ;;
	user/os/netdev* | user/os/link_watch.*) ;;
	user/os/*) echo "\"$interfaces" ;;
	esac
}

bad=0 seen=0
complain() {
	echo "$1: may not include $2 ($3)" >&2
	bad=1
}

for dir in "${!may[@]}"; do
	[ -d "$dir" ] || continue
	while IFS= read -r f; do
		not=$(never_file "$f")
		while IFS= read -r inc; do
			[ -n "$not" ] && [[ $inc =~ ^$not ]] && complain "$f" "$inc" "interfaces are above this file"
			seen=$((seen + 1))
			[[ $inc =~ ^(${may[$dir]})$ ]] || complain "$f" "$inc" "not on the list of $dir/"
			[ -n "${never[$dir]:-}" ] && [[ $inc =~ ${never[$dir]} ]] && complain "$f" "$inc" "belongs to another layer"
			# A quoted name without a directory is a neighbour (or generated), never
			# found by luck on the include path.
			[[ $inc =~ \.skel\.h ]] && continue
			if [[ $inc =~ ^\"([a-z0-9_]+\.h)\"$ ]] && [ ! -e "$(dirname "$f")/${BASH_REMATCH[1]}" ]; then
				complain "$f" "$inc" "no such neighbour"
			fi
		done < <(sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*([<"][^>"]*[>"]).*/\1/p' "$f")
		while IFS= read -r inc; do
			complain "$f" "$inc" "an #include that cannot be read as it stands"
		done < <(grep -E '^[[:space:]]*#[[:space:]]*include' "$f" | grep -vE 'include[[:space:]]*(<[^>]+>|"[^"]+")')
	done < <(find "$dir" -maxdepth 1 -name '*.[chS]' -type f)
done

# A source directory without a rule would be a hole in the rules.
for d in user/*/ user/*/*/; do
	d=${d%/}
	[ -n "${may[$d]:-}" ] || { echo "$d: no include rule" >&2; bad=1; }
done
[ $seen -gt 0 ] || { echo "found no #include at all" >&2; bad=1; }
echo "$seen includes looked at"
exit $bad
