#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Which programs the check runs at the same time, and when it tries a case again. runs.sh [BUILD]
. "$(dirname "$0")/lib/tree.sh"

runs__late_case_is_tried_once() {
	once late 'echo ok other' 'echo "late slept it came after 3 s"' 'exit 75'
	ends '2 passed, 0 failed, 0 skipped' netns-late && says 'netns-late slept: it came after 3 s' &&
		[ "$(cat "$work/late")" = '@(slept)' ] || return
	# late again
	script later '# tier: core' 'echo "late slept for 4 s"' 'exit 75'
	ends '0 passed, 1 failed, 0 skipped' netns-later && says '^FAILED netns-later: .*late' || return
	# in a turn it is listed and does not count
	script longer '# tier: long' "[ -n \"\${XROCE_CASE:-}\" ] || echo ok one" 'echo "late slept for 4 s"' 'exit 75'
	ends '1 passed, 1 failed, 0 skipped' netns-longer || return
	ends '1 passed, 0 failed, 1 skipped' --turn 1234567 netns-longer && says 'netns-longer slept: for 4 s' || return
	grep -q $'\tnetns-longer\tslept\tlate\t' b/check/ledger.tsv
}

runs__two_late_cases_at_most() {
	local i
	for i in 1 2 3; do
		once l$i "echo 'late case$i x'" 'exit 75'
	done
	ends '2 passed, 1 failed, 0 skipped' --jobs 1 netns-l1 netns-l2 netns-l3 || return
	rm "$work"/l?
	once l4 "echo 'late a x'; echo 'late b x'; echo 'late c x'" 'exit 75'
	ends '0 passed, 3 failed, 0 skipped' netns-l4
}

# The second run must judge the late cases and no others; the first must have ended with status 75.
runs__second_run_judges_the_late_cases() {
	local second status
	for second in 'echo ok other' 'echo ok b; echo ok other' 'echo "skip b no"' 'echo "not ok b"; exit 1' \
		'echo ok b; exit 3' 'kill -SEGV $$' ':'; do
		rm -f "$work/second"
		script second '# tier: core' "[ -e $work/second ] && { $second; exit; }" ": >$work/second" 'echo "late b x"' 'exit 75'
		run netns-second && { note "green with: $second"; return 1; }
	done
	for status in 0 1 3 127 139; do
		once early$status 'echo "late b x"' "exit $status"
		run netns-early$status && { note "green with status $status"; return 1; }
		[ ! -s "$work/early$status" ] || { note "tried again with status $status"; return 1; }
	done
	once named 'echo "late a*[1]|b x"' 'exit 75'
	run netns-named
	[ "$(cat "$work/named")" = '@(a\*\[1\]\|b)' ] || note "asked for $(cat "$work/named")"
}

runs__failed_build() {
	script some '# tier: core' 'echo ok one'
	cmocka any "printf '[==========] Running 1 test(s).\n[       OK ] a\n'"
	echo '/* tier: core san */' >>tests/unit/test_any.c
	MAKE=false ends '0 passed, 1 failed, 0 skipped' netns-some unit-test_any unit-test_any-san &&
		says '4 programs were not run: their build failed|3 programs were not run'
}

# Two checks of one build keep out of each other's way.
runs__two_at_once() {
	script slow_one '# tier: core' 'sleep 1' 'echo ok one'
	script quick '# tier: core' 'echo ok one'
	scripts/check.sh --build b netns-slow_one >"$work/one" 2>&1 &
	ends '1 passed, 0 failed, 0 skipped' netns-quick
	wait $! && [ "$(tail -n 1 "$work/one")" = '1 passed, 0 failed, 0 skipped' ] || show one
}

runs__reader_that_leaves() {
	script lots '# tier: core' 'echo ok one' 'echo ok two'
	scripts/check.sh --build b netns-lots 2>&1 | true
	[ "$(cat b/check-some/count)" = '2 passed, 0 failed, 0 skipped' ]
}

runs__slow_program_fails() {
	script slow '# tier: core' 'sleep 1.2' 'echo ok one'
	script slow_long '# tier: long' 'sleep 1.2' 'echo ok one'
	XROCE_CORE_LIMIT=1 ends '1 passed, 1 failed, 0 skipped' netns-slow && says 'over the limit' &&
		XROCE_CORE_LIMIT=1 ends '1 passed, 0 failed, 0 skipped' netns-slow_long &&
		XROCE_CORE_LIMIT=3 ends '1 passed, 0 failed, 0 skipped' netns-slow
}

runs__case_that_waited_is_listed() {
	script waits '# tier: core' 'echo ok a' 'echo "slow a waited 7 s, not 5 s: x"'
	ends '1 passed, 0 failed, 0 skipped' netns-waits && says 'netns-waits a: waited 7 s' &&
		grep -q $'\tnetns-waits\ta\twaited\t' b/check/ledger.tsv
}

runs__head_is_needed() {
	script headless '# no tier'
	run && return 1
	says 'headless.sh: no "tier:" line' || return
	script headless '# tier: medium'
	run && return 1
	says 'the tier is core or long' || return
	script headless $'# tier: core\npkill -x sleep'
	run && { note "a script that ends processes by name"; return; }
	says 'headless.sh:[0-9]*: it ends processes by name' || return
	script headless $'# tier: core\n# tier: core'
	! run && rm tests/netns/headless.sh
}

runs__modes_and_variables() {
	rm -f tests/*/*.sh tests/unit/*
	script modes $'# tier: core\n# tier: long two XROCE_X=2' 'echo "ok x${XROCE_X:-1}"'
	ends '1 passed, 0 failed, 0 skipped' 'netns-modes' && ends '2 passed, 0 failed, 0 skipped' 'netns-modes*' &&
		grep -qx 'ok x2' b/check-some/logs/netns-modes-two.log && [ "$(scripts/check.sh --list --part netns)" = "core netns    netns-modes
long netns    netns-modes-two XROCE_X=2" ]
}

# Programs that need one lock never run at the same time. `alone` runs without any other program.
runs__locks() {
	local i lines="exec 9>$work/lock; flock -n 9 || { echo 'not ok lock'; exit 1; }; sleep 0.3; echo ok lock"
	for i in 1 2 3; do
		script lock$i $'# tier: core\n# needs: systemd | /run/xroce' "$lines"
	done
	ends '3 passed, 0 failed, 0 skipped' 'netns-lock?' || return
	for i in 1 2 3 4; do
		script beside$i '# tier: core' "exec 9>$work/alone; flock -ns 9 || { echo 'not ok beside'; exit 1; }; sleep 0.3; echo ok beside"
	done
	script alone $'# tier: core\n# needs: alone' "exec 9>$work/alone; flock -n 9 || { echo 'not ok alone'; exit 1; }; sleep 0.3; echo ok alone"
	ends '5 passed, 0 failed, 0 skipped' netns-alone 'netns-beside?'
}

runs__pool_loses_no_result() {
	local i
	for i in 1 2 3 4 5 6 7 8 9; do
		script p$i '# tier: core' "test $i -ne 5 && echo ok p || { echo not ok p; exit 1; }"
	done
	ends '8 passed, 1 failed, 0 skipped' 'netns-p?' && says '^    netns-p5: wrong'
}

# Each program of the long tier comes in some turn, and a turn ends in time.
runs__turn() {
	local i
	rm -f tests/*/*.sh tests/unit/*
	for i in 1 2 3 4; do
		script t$i '# tier: long' 'sleep 1.2' 'echo ok t'
	done
	for i in 1 2 3 4 5; do
		run --jobs 1 --tier long --turn 000000$i --seconds 1 || { show out; return; }
		says 'programs were not run: netns-t' || return
		cp "$work/out" "$work/turn$i"
	done
	[ "$(sed -n 's/^passed \(netns-t.\):.*/\1/p' "$work"/turn? | sort -u | wc -l)" -eq 4 ] || note "not all came"
}

runs__repeat_under_load() {
	script again '# tier: core' "echo x >>$work/times" 'echo ok one'
	ends '3 passed, 0 failed, 0 skipped' --repeat 3 --load 2 netns-again && [ "$(wc -l <"$work/times")" -eq 3 ] || return
	script late_again '# tier: core' 'echo "late a x"' 'exit 75'
	ends '0 passed, 2 failed, 0 skipped' --repeat 2 netns-late_again
}

runs__interrupt_ends_programs() {
	script ends '# tier: core' "trap 'echo gone >$work/gone; exit 1' TERM; touch $work/began; while :; do sleep 0.1; done"
	scripts/check.sh --build b netns-ends >"$work/out" 2>&1 &
	until [ -e "$work/began" ]; do kill -0 $! || return; done
	kill -TERM $!
	wait $! && return 1
	[ -e "$work/gone" ] && says 'interrupted' && says '^0 passed, 1 failed, 0 skipped'
}

# The signal comes before the check knows that the program has started.
runs__interrupt_at_a_start() {
	mkdir "$work/site"
	cat >"$work/site/sitecustomize.py" <<-EOF
		import os, signal, subprocess, time

		class Popen(subprocess.Popen):
		    def __init__(self, *args, **kwargs):
		        super().__init__(*args, **kwargs)
		        if 'starts.sh' not in str(args):
		            return
		        while not os.path.exists('$work/trapped'):
		            time.sleep(0.01)
		        os.kill(os.getpid(), signal.SIGTERM)

		subprocess.Popen = Popen
	EOF
	script starts '# tier: core' "trap 'echo gone >$work/ended; exit 1' TERM; echo \$\$ >$work/trapped" \
		'while :; do sleep 0.1; done'
	PYTHONPATH=$work/site ends '0 passed, 1 failed, 0 skipped' netns-starts && says 'interrupted' || return
	[ -e "$work/ended" ] || { kill "$(cat "$work/trapped")"; return 1; }
}

runs__wrong_arguments() {
	local a
	for a in --part=none --repeat=0 --seconds=0 --turn=none no-such-program --tier=x --nonsense; do
		run "$a" && { note "$a is taken"; return 1; }
	done
	return 0
}

run_cases
