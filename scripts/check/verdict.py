# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Counts the results that a program printed, and says of what kind its failure is.

A cmocka program announces how many tests it runs. A script prints one line for each case:
`ok NAME`, `not ok NAME`, `skip NAME reason`, or `late NAME detail` for a case that waited for an
event which came after its deadline. A step has one result, its exit status.
"""

import glob
import os
import re
import signal
from dataclasses import dataclass, field

# What a sanitizer, the C library, valgrind or the kernel prints of a program with a fault.
FAULTS = (
    ('sanitizer', re.compile(r'(Address|Leak|Thread|Memory)Sanitizer|runtime error: ')),
    ('crash', re.compile(r'Segmentation fault|Bus error|core dumped|Illegal instruction|'
                         r'stack smashing detected|buffer overflow detected|double free|'
                         r'free\(\): |malloc\(\): |corrupted (size|double-linked)|'
                         r'terminated by signal')),
    ('leak', re.compile(r'definitely lost: [1-9]|leaked')),
)
# The summary of a cmocka program names its failed tests once more.
ANNOUNCED = re.compile(r'^\[==========\] .*Running (\d+) test')
CLOSED = re.compile(r'^\[==========\] .*test\(s\) run')
SLOW = re.compile(r'^slow (\S+) (.*)$')
LATE = re.compile(r'^late (\S+)(?: (.*))?$')


@dataclass
class Verdict:
    """The results of one run of a program."""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    late: list = field(default_factory=list)    # pairs of case and detail
    slow: list = field(default_factory=list)    # the same, of cases that passed
    skips: list = field(default_factory=list)   # lines
    kind: str = ''      # of the failure: crash, sanitizer, leak, hang, wrong or late; '' if none
    note: str = ''      # why a failure is counted that no line reports


def count_cmocka(lines, verdict):
    announced, body = 0, False
    for line in lines:
        match = ANNOUNCED.match(line)
        if match:
            announced += int(match.group(1))
            body = True
        elif CLOSED.match(line):
            body = False
        elif body and line.startswith('[       OK ]'):
            verdict.passed += 1
        elif body and line.startswith('[  FAILED  ]'):
            verdict.failed += 1
        elif body and line.startswith('[  SKIPPED ]'):
            verdict.skipped += 1
            verdict.skips.append(line)
    reported = verdict.passed + verdict.failed + verdict.skipped
    if reported < announced:
        verdict.failed += 1
        verdict.note = f'{reported} of {announced} tests reported a result'


def count_shell(lines, verdict):
    for line in lines:
        if line.startswith('ok '):
            verdict.passed += 1
        elif line.startswith('not ok '):
            verdict.failed += 1
        elif line.startswith('skip '):
            verdict.skipped += 1
            verdict.skips.append(line)
        elif LATE.match(line):
            verdict.late.append(LATE.match(line).groups(''))
        elif SLOW.match(line):
            verdict.slow.append(SLOW.match(line).groups())


def judge(kind, status, hung, text, reports):
    """Returns the Verdict of a program that ended.

    `status` is as of os.waitstatus_to_exitcode(), negative for a signal; `hung` is true if its time
    ran out; `text` is its output and `reports` are the texts of sanitizers that it left."""
    verdict = Verdict()
    lines = text.splitlines()
    if kind == 'cmocka':
        count_cmocka(lines, verdict)
    elif kind == 'shell':
        count_shell(lines, verdict)
    else:
        verdict.passed, verdict.failed = int(status == 0), int(status != 0)
    results = verdict.passed + verdict.failed + verdict.skipped + len(verdict.late)
    if hung:
        verdict.failed = max(verdict.failed, 1)
        verdict.note = 'its time ran out'
    elif status < 0:
        verdict.failed = max(verdict.failed, 1)
        verdict.note = f'ended by {signal.Signals(-status).name}'
    elif status != 0 and verdict.failed == 0 and not verdict.late:
        verdict.failed = 1
        verdict.note = f'exit status {status}'
    elif results == 0:
        verdict.failed = 1
        verdict.note = 'printed no result'
    if reports:
        verdict.failed = max(verdict.failed, 1)
        verdict.note = 'a sanitizer reported'
    verdict.kind = kind_of(verdict, status, hung, text, reports)
    return verdict


def kind_of(verdict, status, hung, text, reports):
    """Returns the kind of a failure. A case that is late is no failure beside another one."""
    if hung:
        return 'hang'
    if reports:
        return 'sanitizer'
    if verdict.failed == 0:
        return 'late' if verdict.late else ''
    for kind, pattern in FAULTS:
        if pattern.search(text):
            return kind
    if status < 0 or status >= 128:
        return 'crash'
    return 'wrong'


def read_reports(prefix):
    """Returns the texts of the files that sanitizers wrote, by their option log_path=`prefix`."""
    texts = []
    for path in sorted(glob.glob(glob.escape(prefix) + '.*')):
        with open(path, encoding='utf-8', errors='replace') as f:
            texts.append(f'{os.path.basename(path)}:\n{f.read()}')
    return texts
