#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
rdma-core's tests, each in a process of its own: each_test.py SUITE TABLE DEVICE [PATTERN...].

SUITE is the directory of the tests as they are packaged. A child is forked for a test after all of
them are imported, before any device is opened. PATTERNs are parts of a test's name. Prints
`ok NAME`, `not ok NAME` or `skip NAME reason` for each test, what it printed if it failed, and the
counts in the last line.

TABLE has a row for each group of tests that are skipped: a pattern of names (fnmatch), what the
reason begins with and why that is so, separated by tabs. A skip without a row fails, and so does a
row without a skip if all tests were run. A test that ends with EOPNOTSUPP is skipped as well: not
all of them ask for what they need. A why that begins with `?` is of something that a machine may
have or not.
"""
import errno
import fnmatch
import importlib
import multiprocessing
import os
import selectors
import signal
import sys
import time
import unittest

SECONDS = 60  # a test; it takes one or two
# Raw packet QPs need an interface without a broker, and tests of two processes leave one for a
# while: these come first.
ALONE = 'test_flow', 'test_rss_traffic'


def load(suite, device):
    """The tests of a directory, in order: list of TestCase."""
    sys.path[0] = suite
    sys.path.insert(0, os.path.dirname(suite))
    sys.argv[1:] = ['--dev', device]
    importlib.import_module('args_parser').parser.parse_args()
    # as run_tests.py makes it known to the modules
    importlib.import_module('tests')

    def flat(suite):
        for test in suite:
            if isinstance(test, unittest.TestSuite):
                yield from flat(test)
            else:
                yield test

    names = sorted((n[:-3] for n in os.listdir(suite)
                    if n.startswith('test_') and n.endswith('.py')),
                   key=lambda name: (name not in ALONE, name))
    loader = unittest.defaultTestLoader
    return [test for name in names
            for test in flat(loader.loadTestsFromModule(sys.modules['tests.' + name]))]


def child(test, out):
    """Runs the test, says how it went in `out`, and ends the process."""
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.setsid()
    result = unittest.TestResult()
    unittest.TestSuite([test]).run(result)
    for _, text in result.errors + result.failures:
        print(text)
    refused = [text.splitlines()[-1] for _, text in result.errors
               if 'Errno: %d,' % errno.EOPNOTSUPP in text.splitlines()[-1]]
    if refused:
        verdict = 'skip ' + refused[0]
    elif result.skipped:
        verdict = 'skip ' + ' '.join(result.skipped[0][1].split())
    elif result.wasSuccessful() and result.testsRun == 1:
        verdict = 'ok'
    else:
        verdict = 'failed'
    print(verdict, flush=True)
    # not os._exit: what ends with the interpreter belongs to the test
    sys.exit(0)


def run(test):
    """(verdict, what it printed) of a test in a process of its own."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        child(test, writer)
    os.close(writer)
    printed = b''
    end = time.monotonic() + SECONDS
    with selectors.DefaultSelector() as wait:
        wait.register(reader, selectors.EVENT_READ)
        while True:
            if not wait.select(max(0, end - time.monotonic())):
                break
            part = os.read(reader, 65536)
            if not part:
                break
            printed += part
    late = time.monotonic() >= end
    if late:
        # the test may have its own processes
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(pid, signal.SIGKILL)
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    lines = printed.decode(errors='replace').splitlines()
    if late:
        return 'failed', lines + ['no end after %d seconds' % SECONDS]
    if status != 0:
        return 'failed', lines + ['wait status %d' % status]
    return (lines[-1], lines[:-1]) if lines else ('failed', ['printed nothing'])


def read_table(path):
    rows = []
    with open(path, encoding='ascii') as table:
        for line in table:
            if line.strip() and not line.startswith('#'):
                rows.append(tuple(line.rstrip('\n').split('\t')))
                if len(rows[-1]) != 3:
                    sys.exit('each_test.py: not three columns: ' + line)
    return rows


def main():
    # Tests start methods of a TestCase, which the default of Python 3.14 cannot pickle.
    multiprocessing.set_start_method('fork')
    suite, table, device = sys.argv[1:4]
    wanted = sys.argv[4:]
    every = int(os.environ.get('XROCE_PYVERBS_EVERY') or 1)
    rows = read_table(table)
    used = set()
    count = {'ok': 0, 'skip': 0, 'failed': 0}

    def tell(verdict, line, more=()):
        count[verdict] += 1
        print({'failed': 'not ok'}.get(verdict, verdict), line, flush=True)
        for text in more:
            print('#', text)

    for test in load(suite, device)[::every]:
        name = test.id().replace('tests.', '', 1)
        if wanted and not any(part in name for part in wanted):
            continue
        verdict, more = run(test)
        if verdict == 'ok':
            tell('ok', name)
        elif verdict.startswith('skip '):
            reason = verdict[len('skip '):]
            hits = [row for row in rows
                    if fnmatch.fnmatchcase(name, row[0]) and reason.startswith(row[1])]
            used.update(hits)
            if hits:
                tell('skip', name + ' ' + reason)
            else:
                tell('failed', name + ' is skipped without a row in the table: ' + reason)
        else:
            tell('failed', name, more)
    if not wanted and every == 1:
        for row in rows:
            if row not in used and not row[2].startswith('?'):
                tell('failed', 'row_without_a_skip ' + row[0] + ' ' + row[1])
    print('pyverbs: %(ok)d ok, %(skip)d skipped, %(failed)d failed' % count)
    return count['ok'] == 0 or count['failed'] != 0


if __name__ == '__main__':
    sys.exit(main())
