#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
# needs: processors
#
# QEMU moves a running guest to another QEMU by RDMA, which connects by librdmacm: with memory that
# is registered piece by piece and with all of it pinned. The guest (qemu/guest.S) changes memory
# all the time; all of its memory is compared, and it continues at the other end. Postcopy is not
# tested: QEMU 7.2 has a race there (docs/limits.md).
. "$(dirname "$0")/lib/case.sh"
command -v qemu-system-x86_64 >/dev/null ||
	skip_all "qemu-system-x86_64 is not installed (package qemu-system-x86)"
netns_pair 4500
. "$here/tests/netns/lib/counted.sh"
MIB=96

as --32 --defsym LAST=$((MIB - 4)) -o "$WORK/guest.o" "$here/tests/netns/qemu/guest.S" &&
	ld -m elf_i386 -Ttext 0x100000 -o "$WORK/guest" "$WORK/guest.o" ||
	{ echo "not ok guest.S cannot be assembled"; exit 1; }

# machine NAME NS OPTION...: what the guest writes to its debug console is in $WORK/NAME.console.
machine() {
	local name=$1 ns=$2
	shift 2
	rm -f "$WORK/$name.console"
	start_on "$name" "$ns" env XROCE_COUNTERS=1 qemu-system-x86_64 -machine pc -accel tcg \
		-m $MIB -nodefaults -no-user-config -display none -kernel "$WORK/guest" \
		-debugcon "file:$WORK/$name.console" \
		-qmp "unix:$WORK/$name.qmp,server=on,wait=off" "$@"
}
# said NAME PATTERN: on the guest's debug console
said() { tr -d '\0' <"$WORK/$1.console" | grep -q "$2"; }

# precopy LEAST-WRITES [CAPABILITY...]: from B to A. QEMU 7.2 refuses IPv6 on RoCE.
precopy() {
	local least=$1 source destination pid
	shift
	machine destination a -incoming defer -S
	destination=$child
	machine source b
	source=$child
	wait_at_most 60 said source 'f\.\.\.' || fail "the guest does not start"
	python3 "$here/tests/netns/qemu/migrate.py" "$WORK/source.qmp" "$WORK/destination.qmp" \
		"${QEMU_URI:-rdma}:$IP4_A:4444" $MIB "$WORK" "$@" >"$WORK/migrate.out" 2>&1 ||
		{ fail "the migration failed"; show migrate; show source; show destination; }
	need_line migrate '^migrated: ' && { wait_at_most 20 said destination '\.\.\.' ||
		fail "the guest does not go on"; }
	for pid in $source $destination; do
		kill $pid
		finish_at_most $pid 20 || fail "QEMU ended with $?"
	done
	need_counted destination WRITE "$least"
}

# pieces of 1 MiB, or of what the other end knows
run_case on_demand precopy 80
run_case pin_all precopy 80 rdma-pin-all
finish_cases
