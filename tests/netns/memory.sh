#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# crashes: memory python3
# tier: core
# tier: long shards XROCE_TEST_QUEUES=2
# tier: long shared XROCE_TEST_BROKER=1
#
# Memory that is unmapped, protected, made read-only or truncated while it is registered (memory.c):
# requests fail, processes live. Between two processes and within one; with all signals blocked,
# with handlers of SIGSEGV of the program's own, and under Python's faulthandler, before and after
# xroce's. The program's own faults end it by the right signal. memory.sh BUILD
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
requests=48
did="^memory: $requests requests failed as they must"

# memory OPTION...: two processes.
memory() {
	gids_for v4 || return
	client_server 18650 100 "$TOOLS/memory" -d $DEV_A -g "$gid_a" "$@" -- "$TOOLS/memory" -d $DEV_B -g "$gid_b" "$@" $IP4_A || return
	need_line server "$did"
	need_line client "$did"
}

# one_process STATUS COMMAND...: both ends in one; ends with that status.
one_process() {
	local status=$1 rc
	shift
	gids_for v4 || return
	start_on loop a "$@" -L -d $DEV_A -g "$gid_a"
	finish "$child" 100
	rc=$?
	[ $rc -eq "$status" ] || { fail "ended with $rc, not $status"; show loop; }
	need_line loop "$did"
}

# Python with its fault handler, installed before xroce's or after; in the end Python faults itself,
# which must be reported.
python_program() {
	cat <<-'END'
		import ctypes, faulthandler, sys
		when, path, *args = sys.argv[1:]
		if when == "before":
		    faulthandler.enable()
		main = ctypes.CDLL(path).memory_main
		argv = (ctypes.c_char_p * (len(args) + 2))(b"memory", *[a.encode() for a in args])
		rc = main(len(args) + 1, argv)
		if when == "after":
		    faulthandler.enable()
		    rc |= main(len(args) + 1, argv)
		print("python: main returned", rc, flush=True)
		ctypes.string_at(16)
	END
}
python() {
	if ! command -v python3 >/dev/null || ! python3 -c 'import ctypes, faulthandler'; then
		skip_reason="no python3"
		return 77
	fi
	python_program >"$WORK/memory.py"
	one_process 139 python3 "$WORK/memory.py" "$1" "$TOOLS/memory.so" || return
	need_line loop '^python: main returned 0'
	need_line loop 'Segmentation fault'
	need_line loop 'string_at'
}

run_case two_processes memory
run_case two_processes_signals_blocked memory -B
run_case two_processes_handler_before memory -J before
run_case two_processes_handler_after memory -J after
run_case one_process one_process 0 "$TOOLS/memory"
run_case one_process_signals_blocked one_process 0 "$TOOLS/memory" -B
run_case one_process_handler_after one_process 0 "$TOOLS/memory" -J after
run_case own_fault_ends_it one_process 139 "$TOOLS/memory" -D
run_case python_faulthandler_before python before
run_case python_faulthandler_after python after
finish_cases
