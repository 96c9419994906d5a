#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
# crashes: planted
#
# The check itself, in a tree of small programs: each kind of fault turns the run red, also where
# the script that met it says `ok`; a case that was late is tried once more, and nothing else is.
# check.sh [BUILD]
. "$(dirname "$0")/../ship/lib/case.sh"

mkdir -p "$work/tree/scripts" "$work/tree/tests/netns" "$work/tree/tests/unit" "$work/tree/b/tests/unit"
cp -r scripts/check scripts/check.sh "$work/tree/scripts/"
cd "$work/tree" || exit 1
export MAKE=true # nothing to build
# The log shows what other programs of the outer check do.
export XROCE_KMSG=/dev/null
unset XROCE_TEST_TIMEOUT

# script NAME HEAD [LINE...]: a program tests/netns/NAME.sh. HEAD: its `tier:` and `needs:` lines.
script() {
	local name=$1
	{
		printf '#!/bin/bash\n%s\n' "$2"
		shift 2
		printf '%s\n' "$@"
	} >"tests/netns/$name.sh"
}
# cmocka NAME COMMAND: a program of tests/unit.
cmocka() {
	echo '/* tier: core */' >"tests/unit/test_$1.c"
	printf '#!/bin/bash\n%s\n' "$2" >"b/tests/unit/test_$1"
	chmod +x "b/tests/unit/test_$1"
}
# run ARGUMENT...: its output in $work/out. The status is that of the check.
run() { scripts/check.sh --build b "$@" >"$work/out" 2>&1; }
# ends COUNTS [ARGUMENT...]: the last line of a run is COUNTS; red if something failed.
ends() {
	local want=$1 rc=0
	shift
	run "$@" || rc=1
	[ "$(tail -n 1 "$work/out")" = "$want" ] || { show out; return; }
	case $want in *", 0 failed,"*) [ $rc -eq 0 ] ;; *) [ $rc -eq 1 ] ;; esac || { note "status $rc"; show out; }
}
says() { grep -qE -- "$1" "$work/out" || { note "no line like: $1"; show out; }; }
# compiled NAME FLAGS: a C program from standard input.
compiled() { ${CC:-gcc} -O0 -g -w -x c - ${2:-} -o "$work/$1"; }

check__wrong_byte() {
	script data '# tier: core' 'cmp <(echo a) <(echo b) || { echo "not ok data"; exit 1; }' 'echo ok data'
	ends '0 passed, 1 failed, 0 skipped' netns-data && says '^FAILED netns-data: .*wrong' || return
	cmocka byte "printf '[==========] Running 2 test(s).\n[       OK ] a\n[  FAILED  ] b\n'; exit 1"
	ends '1 passed, 1 failed, 0 skipped' unit-test_byte && says '^FAILED unit-test_byte: .*wrong'
}

check__crash() {
	compiled planted <<<'int main(void) { *(volatile int *)8 = 1; }' || return
	# the script reports it
	script told '# tier: core' "$work/planted || { echo 'not ok told'; echo \"# exit status \$?\"; exit 1; }"
	run netns-told && return 1
	says '^FAILED netns-told: .*crash' || return
	# the script ends by it
	script by '# tier: core' 'echo ok one' "exec $work/planted"
	run netns-by && return 1
	says '^FAILED netns-by: 1 passed, 1 failed, .*SIGSEGV' || return
	cmocka crash "printf '[==========] Running 2 test(s).\n[       OK ] a\n'; kill -SEGV \$\$"
	ends '1 passed, 1 failed, 0 skipped' unit-test_crash || return
	# the script does not look
	[ -r /dev/kmsg ] || skip "/dev/kmsg is not readable"
	script silent '# tier: core' "sh -c $work/planted >/dev/null 2>&1" 'echo ok silent'
	XROCE_KMSG=/dev/kmsg run netns-silent && return 1
	grep -q '^passed netns-silent' "$work/out" && says '^CRASH .*planted'
}

# The program's own output is elsewhere, and the script says that all is well.
check__sanitizer() {
	compiled overrun -fsanitize=address <<<'int main(void) { volatile char *p = __builtin_malloc(4); return p[5]; }' &&
		compiled leak -fsanitize=address <<<'int main(void) { volatile char *p = __builtin_malloc(4); p = 0; }' &&
		compiled undefined -fsanitize=undefined <<<'int main(int argc, char **argv) { volatile int x = 0x7fffffff + argc; }' || return
	local kind
	for kind in overrun leak undefined; do
		script $kind '# tier: core' "$work/$kind >/dev/null 2>&1" 'echo ok one' 'exit 0'
		ends '1 passed, 1 failed, 0 skipped' netns-$kind && says "^FAILED netns-$kind: .*sanitizer" || return
	done
}

check__hang() {
	script hang '# tier: core' 'trap "echo cleaned; exit 143" TERM' 'echo ok one' 'while :; do sleep 0.1; done'
	XROCE_TEST_TIMEOUT=1 ends '1 passed, 1 failed, 0 skipped' netns-hang && says '^FAILED netns-hang: .*hang' &&
		says '^    cleaned'
}

check__says_too_little() {
	script nothing '# tier: core' 'exit 0'
	ends '0 passed, 1 failed, 0 skipped' netns-nothing || return
	script status '# tier: core' 'echo ok one' 'exit 3'
	ends '1 passed, 1 failed, 0 skipped' netns-status || return
	cmocka few "printf '[==========] Running 3 test(s).\n[       OK ] a\n[  SKIPPED ] b\n'"
	ends '1 passed, 1 failed, 1 skipped' unit-test_few || return
	cmocka absent :
	rm b/tests/unit/test_absent
	ends '0 passed, 1 failed, 0 skipped' unit-test_absent
}

# once NAME LINE...: a script of LINEs. The second time it prints `ok` for the cases that XROCE_CASE
# asks for, and keeps that.
once() {
	script "$1" '# tier: core' \
		"[ -e $work/$1 ] && { echo \"\$XROCE_CASE\" >$work/$1; tr -d '@()\\\\' <$work/$1 | tr '|' '\n' | sed 's/^/ok /'; exit 0; }" \
		": >$work/$1" "${@:2}"
}

check__late_case_is_tried_once() {
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

check__two_late_cases_at_most() {
	local i
	for i in 1 2 3; do
		once l$i "echo 'late case$i x'" 'exit 75'
	done
	ends '2 passed, 1 failed, 0 skipped' --jobs 1 netns-l1 netns-l2 netns-l3 || return
	rm "$work"/l?
	once l4 "echo 'late a x'; echo 'late b x'; echo 'late c x'" 'exit 75'
	ends '0 passed, 3 failed, 0 skipped' netns-l4
}

# The second run must judge the late cases, and those alone; the first must have come to its end.
check__second_run_judges_the_late_cases() {
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

# What it prints is looked at also where all results are ok.
check__output_tells_of_a_fault() {
	local text
	for text in '==1==ERROR: AddressSanitizer: heap-use-after-free' 'a.c:3:4: runtime error: signed integer overflow' \
		'WARNING: ThreadSanitizer: data race' '*** stack smashing detected ***: terminated' \
		'line 3: 77 Segmentation fault      ./x' 'free(): double free detected'; do
		script text '# tier: core' "echo '$text'" 'echo ok one'
		ends '1 passed, 1 failed, 0 skipped' netns-text || return
	done
	script text '# tier: core' 'printf "ok one\n  not ok two\nnot ok\n"'
	ends '1 passed, 2 failed, 0 skipped' netns-text
}

check__expected_crash_is_of_its_program() {
	local log=$work/kmsg
	: >"$log"
	script other $'# tier: core\n# crashes: victim' 'echo ok one'
	script mine $'# tier: core\n# crashes: victim' "echo '6,1,1,-;victim[7]: segfault at 8' >>$log" 'echo ok one'
	script notmine '# tier: core' "echo '6,1,1,-;victim[7]: segfault at 8' >>$log" 'echo ok one'
	XROCE_KMSG=$log ends '1 passed, 0 failed, 0 skipped' netns-mine || return
	XROCE_KMSG=$log ends '1 passed, 1 failed, 0 skipped' netns-notmine && says '^CRASH  victim' || return
	script spaced '# tier: core' "echo '6,1,1,-;a b[7]: segfault at 8' >>$log" 'echo ok one'
	XROCE_KMSG=$log ends '1 passed, 1 failed, 0 skipped' netns-spaced
}

check__failed_build() {
	script some '# tier: core' 'echo ok one'
	cmocka any "printf '[==========] Running 1 test(s).\n[       OK ] a\n'"
	echo '/* tier: core san */' >>tests/unit/test_any.c
	MAKE=false ends '0 passed, 1 failed, 0 skipped' netns-some unit-test_any unit-test_any-san &&
		says '4 programs were not run: their build failed|3 programs were not run'
}

# Two checks of one build keep out of each other's way.
check__two_at_once() {
	script slow_one '# tier: core' 'sleep 1' 'echo ok one'
	script quick '# tier: core' 'echo ok one'
	scripts/check.sh --build b netns-slow_one >"$work/one" 2>&1 &
	ends '1 passed, 0 failed, 0 skipped' netns-quick
	wait $! && [ "$(tail -n 1 "$work/one")" = '1 passed, 0 failed, 0 skipped' ] || show one
}

check__reader_that_leaves() {
	script lots '# tier: core' 'echo ok one' 'echo ok two'
	scripts/check.sh --build b netns-lots 2>&1 | true
	[ "$(cat b/check-some/count)" = '2 passed, 0 failed, 0 skipped' ]
}

check__odd_signal() {
	script odd '# tier: core' 'echo ok one' 'kill -40 $$'
	ends '1 passed, 1 failed, 0 skipped' netns-odd
}

check__a_fault_is_never_tried_again() {
	once wrong 'echo "late a x"' 'echo "not ok b"' 'exit 1'
	ends '0 passed, 2 failed, 0 skipped' netns-wrong || return
	once signal 'echo "late a x"' 'kill -SEGV $$'
	ends '0 passed, 2 failed, 0 skipped' netns-signal || return
	once hung 'echo "late a x"' 'while :; do sleep 0.1; done'
	XROCE_TEST_TIMEOUT=1 ends '0 passed, 2 failed, 0 skipped' netns-hung || return
	compiled leak2 -fsanitize=address <<<'int main(void) { volatile char *p = __builtin_malloc(4); p = 0; }' || return
	once report "$work/leak2 >/dev/null 2>&1" 'echo "late a x"' 'exit 75'
	ends '0 passed, 2 failed, 0 skipped' netns-report || return
	once plain 'echo "not ok a"' 'exit 1'
	ends '0 passed, 1 failed, 0 skipped' netns-plain
}

# Children may take a moment to exit; after that they are ended, and the program has failed.
check__processes_left_behind() {
	script leaves '# tier: core' "sleep 100 & echo \$! >$work/left" 'echo ok one'
	ends '1 passed, 1 failed, 0 skipped' netns-leaves && says 'leak: left behind: process [0-9]+ sleep' &&
		! readlink "/proc/$(cat "$work/left")/exe" || return
	script session '# tier: core' "setsid sleep 100 & echo \$! >$work/left" 'echo ok one'
	ends '1 passed, 1 failed, 0 skipped' netns-session && ! readlink "/proc/$(cat "$work/left")/exe" || return
	script lingers '# tier: core' 'sleep 1 &' 'echo ok one'
	ends '1 passed, 0 failed, 0 skipped' netns-lingers
}

check__slow_program_fails() {
	script slow '# tier: core' 'sleep 2' 'echo ok one'
	script slow_long '# tier: long' 'sleep 2' 'echo ok one'
	XROCE_CORE_LIMIT=1 ends '1 passed, 1 failed, 0 skipped' netns-slow && says 'over the limit' &&
		XROCE_CORE_LIMIT=1 ends '1 passed, 0 failed, 0 skipped' netns-slow_long &&
		XROCE_CORE_LIMIT=3 ends '1 passed, 0 failed, 0 skipped' netns-slow
}

check__case_that_waited_is_listed() {
	script waits '# tier: core' 'echo ok a' 'echo "slow a waited 7 s, not 5 s: x"'
	ends '1 passed, 0 failed, 0 skipped' netns-waits && says 'netns-waits a: waited 7 s' &&
		grep -q $'\tnetns-waits\ta\twaited\t' b/check/ledger.tsv
}

check__head_is_needed() {
	script headless '# no tier'
	run && return 1
	says 'headless.sh: no "tier:" line' || return
	script headless '# tier: medium'
	run && return 1
	says 'the tier is core or long' || return
	script headless $'# tier: core\n# tier: core'
	! run && rm tests/netns/headless.sh
}

check__modes_and_variables() {
	rm -f tests/*/*.sh tests/unit/*
	script modes $'# tier: core\n# tier: long two XROCE_X=2' 'echo "ok x${XROCE_X:-1}"'
	ends '1 passed, 0 failed, 0 skipped' 'netns-modes' && ends '2 passed, 0 failed, 0 skipped' 'netns-modes*' &&
		grep -qx 'ok x2' b/check-some/logs/netns-modes-two.log && [ "$(scripts/check.sh --list --part netns)" = "core netns    netns-modes
long netns    netns-modes-two XROCE_X=2" ]
}

# Two that hold a lock never run at the same time; one that needs the machine alone beside no other.
check__locks() {
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

check__pool_loses_no_result() {
	local i
	for i in 1 2 3 4 5 6 7 8 9; do
		script p$i '# tier: core' "test $i -ne 5 && echo ok p || { echo not ok p; exit 1; }"
	done
	ends '8 passed, 1 failed, 0 skipped' 'netns-p?' && says '^    netns-p5: wrong'
}

# Each program of the long tier comes in some turn, and a turn ends in time.
check__turn() {
	local i
	rm -f tests/*/*.sh tests/unit/*
	for i in 1 2 3 4; do
		script t$i '# tier: long' 'sleep 1.2' 'echo ok t'
	done
	for i in 1 2 3 4 5 6; do
		run --jobs 1 --tier long --turn 000000$i --seconds 1 || { show out; return; }
		says 'programs were not run: netns-t' || return
		cp "$work/out" "$work/turn$i"
	done
	[ "$(sed -n 's/^passed \(netns-t.\):.*/\1/p' "$work"/turn? | sort -u | wc -l)" -eq 4 ] || note "not all came"
}

check__repeat_under_load() {
	script again '# tier: core' "echo x >>$work/times" 'echo ok one'
	ends '3 passed, 0 failed, 0 skipped' --repeat 3 --load 2 netns-again && [ "$(wc -l <"$work/times")" -eq 3 ] || return
	script late_again '# tier: core' 'echo "late a x"' 'exit 75'
	ends '0 passed, 2 failed, 0 skipped' --repeat 2 netns-late_again
}

check__interrupt_ends_programs() {
	script ends '# tier: core' "trap 'echo gone >$work/gone; exit 1' TERM; touch $work/began; while :; do sleep 0.1; done"
	scripts/check.sh --build b netns-ends >"$work/out" 2>&1 &
	until [ -e "$work/began" ]; do kill -0 $! || return; done
	kill -TERM $!
	wait $! && return 1
	[ -e "$work/gone" ] && says 'interrupted' && says '^0 passed, 1 failed, 0 skipped'
}

check__wrong_arguments() {
	local a
	for a in --part=none --repeat=0 --seconds=0 --turn=none no-such-program --tier=x --nonsense; do
		run "$a" && { note "$a is taken"; return 1; }
	done
	return 0
}

run_cases
