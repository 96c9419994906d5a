#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
# crashes: planted
#
# Each kind of planted fault turns a run of the check red, also where the script that met it prints
# `ok`, and is never tried again. faults.sh [BUILD]
. "$(dirname "$0")/lib/tree.sh"

faults__wrong_byte() {
	script data '# tier: core' 'cmp <(echo a) <(echo b) || { echo "not ok data"; exit 1; }' 'echo ok data'
	ends '0 passed, 1 failed, 0 skipped' netns-data && says '^FAILED netns-data: .*wrong' || return
	cmocka byte "printf '[==========] Running 2 test(s).\n[       OK ] a\n[  FAILED  ] b\n'; exit 1"
	ends '1 passed, 1 failed, 0 skipped' unit-test_byte && says '^FAILED unit-test_byte: .*wrong'
}

faults__crash() {
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
faults__sanitizer() {
	compiled overrun -fsanitize=address <<<'int main(void) { volatile char *p = __builtin_malloc(4); return p[5]; }' &&
		compiled leak -fsanitize=address <<<'int main(void) { volatile char *p = __builtin_malloc(4); p = 0; }' &&
		compiled undefined -fsanitize=undefined <<<'int main(int argc, char **argv) { volatile int x = 0x7fffffff + argc; }' || return
	local kind
	for kind in overrun leak undefined; do
		script $kind '# tier: core' "$work/$kind >/dev/null 2>&1" 'echo ok one' 'exit 0'
		ends '1 passed, 1 failed, 0 skipped' netns-$kind && says "^FAILED netns-$kind: .*sanitizer" || return
	done
}

faults__skip_that_is_not_listed() {
	script package '# tier: core' 'echo ok one' 'echo skip two there is no package' 'exit 0'
	ends '1 passed, 0 failed, 1 skipped' netns-package || return
	printf '# none\nnetns-other no package\nnetns-pack* no device\n' >"$work/listed"
	ends '1 passed, 1 failed, 1 skipped' --skips "$work/listed" netns-package &&
		says '^FAILED netns-package: .*skip' || return
	echo 'netns-pack* no packa[g]e' >>"$work/listed"
	ends '1 passed, 0 failed, 1 skipped' --skips "$work/listed" netns-package
}

faults__hang() {
	script hang '# tier: core' 'trap "echo cleaned; exit 143" TERM' 'echo ok one' 'while :; do sleep 0.1; done'
	XROCE_TEST_TIMEOUT=1 ends '1 passed, 1 failed, 0 skipped' netns-hang && says '^FAILED netns-hang: .*hang' &&
		says '^    cleaned'
}

faults__says_too_little() {
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

# The output of a program is searched also if all its results are ok.
faults__output_tells_of_a_fault() {
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

faults__expected_crash_is_of_its_program() {
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

faults__odd_signal() {
	script odd '# tier: core' 'echo ok one' 'kill -40 $$'
	ends '1 passed, 1 failed, 0 skipped' netns-odd
}

faults__a_fault_is_never_tried_again() {
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
faults__processes_left_behind() {
	script leaves '# tier: core' "sleep 100 & echo \$! >$work/left" 'echo ok one'
	ends '1 passed, 1 failed, 0 skipped' netns-leaves && says 'leak: left behind: process [0-9]+ sleep' &&
		! readlink "/proc/$(cat "$work/left")/exe" || return
	script session '# tier: core' "setsid sleep 100 & echo \$! >$work/left" 'echo ok one'
	ends '1 passed, 1 failed, 0 skipped' netns-session && ! readlink "/proc/$(cat "$work/left")/exe" || return
	script lingers '# tier: core' 'sleep 1 &' 'echo ok one'
	ends '1 passed, 0 failed, 0 skipped' netns-lingers
}

run_cases
