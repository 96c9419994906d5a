#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
# tier: long sockets XROCE_PORT=sockets
#
# pyverbs' own tests of librdmacm, of Debian's packages: each with two processes on one interface,
# as root and as a user without privileges. They look for the interface of a device in sysfs, where
# `xroce run` has it.
. "$(dirname "$0")/lib/case.sh"
suite=/usr/share/doc/rdma-core/tests
[ -d $suite ] && /usr/bin/python3 -c 'import pyverbs.cmid' 2>/dev/null ||
	skip_all "packages rdma-core and python3-pyverbs are not installed"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
. "$(dirname "$0")/lib/cm.sh"

mkdir "$OWN/py" && cp -r $suite "$OWN/py/tests" && gunzip -r "$OWN/py/tests" && chmod -R a+rX "$OWN/py" ||
	netns_die "cannot copy pyverbs' tests"

# All of them in one run; the cases read its output.
run_suite() {
	cm_start python server env PYTHONDONTWRITEBYTECODE=1 \
		/usr/bin/python3 "$OWN/py/tests/run_tests.py" -v --dev $DEV_A tests.test_rdmacm.CMTestCase
	cm_end python "$child" 90 && need_line python "^Ran $(wc -w <<<"$tests") tests in "
}
# "test_name (module.Class.test_name)", a line of its documentation perhaps, " ... ok"
passed() {
	grep -A 1 "^$1 " "$WORK/python.out" | grep -q '\.\.\. ok$' && return
	fail "not passed: $1"
	show python
}

tests=$(sed -n 's/^    def \(test_[a-z_]*\)(self):$/\1/p' "$OWN/py/tests/test_rdmacm.py")
for place in within user; do
	cm_place $place
	run_case pyverbs_$place run_suite
	for test in $tests; do
		run_case ${test}_$place passed $test
	done
done
finish_cases
