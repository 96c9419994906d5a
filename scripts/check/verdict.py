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

# The exit status of a script whose cases all ended, some late, none failed (finish_cases()).
LATE_STATUS = 75

# What a sanitizer, the C library, valgrind or the shell prints of a program with a fault.
FAULTS = (
    ('sanitizer', re.compile(r'(Address|Leak|Thread|Memory)Sanitizer|runtime error: |'
                             r"ERROR: Can't open file: ")),
    ('crash', re.compile(r'Segmentation fault|Bus error|core dumped|Illegal instruction|'
                         r': +\d+ Aborted|stack smashing detected|buffer overflow detected|'
                         r'double free|free\(\): |malloc\(\): |corrupted (size|double-linked)|'
                         r"Assertion `.*' failed")),
    ('leak', re.compile(r'definitely lost: [1-9]')),
)
ANNOUNCED = re.compile(r'^\[==========\] .*Running (\d+) test')
CLOSED = re.compile(r'^\[==========\] .*test\(s\) run')
CMOCKA = re.compile(r'^\[ +(OK|FAILED|SKIPPED) +\] (.*)$')
OK = re.compile(r'^ok (\S.*)$')
NOT_OK = re.compile(r'^\s*not ok\b')
SLOW = re.compile(r'^slow (\S+) (.*)$')
LATE = re.compile(r'^late (\S+)(?: (.*))?$')


@dataclass
class Verdict:
    """The results of one run of a program."""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    names: list = field(default_factory=list)   # of the cases that passed
    late: list = field(default_factory=list)    # pairs of case and detail
    slow: list = field(default_factory=list)    # the same, of cases that passed
    skips: list = field(default_factory=list)   # lines
    kind: str = ''      # of the failure: crash, sanitizer, leak, hang, wrong or late; '' if none
    note: str = ''      # why a failure is counted that no line reports

    def fail(self, kind, note):
        """Counts a failure that no line reports, unless one is counted already."""
        self.failed = max(self.failed, 1)
        self.kind = self.kind or kind
        self.note += (self.note and ', ') + note


def count_cmocka(lines, verdict):
    """Counts each test of each group once: the summary of a program names its failed tests again.
    """
    announced, reported, body = 0, set(), False
    for line in lines:
        match = ANNOUNCED.match(line)
        if match:
            announced += int(match.group(1))
            body, reported_before = True, len(reported)
            continue
        if CLOSED.match(line):
            body = False
        match = CMOCKA.match(line)
        if match and match.group(2).startswith('GROUP '):
            verdict.fail('wrong', match.group(2))
        elif match and body and (reported_before, match.group(2)) not in reported:
            reported.add((reported_before, match.group(2)))
            if match.group(1) == 'OK':
                verdict.passed += 1
            elif match.group(1) == 'FAILED':
                verdict.failed += 1
            else:
                verdict.skipped += 1
                verdict.skips.append(line)
    if len(reported) < announced:
        verdict.failed += 1
        verdict.note = f'{len(reported)} of {announced} tests reported a result'


def count_shell(lines, verdict):
    for line in lines:
        if OK.match(line):
            verdict.passed += 1
            verdict.names.append(OK.match(line).group(1))
        elif NOT_OK.match(line):
            verdict.failed += 1
        elif line.startswith('skip '):
            verdict.skipped += 1
            verdict.skips.append(line)
        elif LATE.match(line):
            verdict.late.append(LATE.match(line).groups(''))
        elif SLOW.match(line):
            verdict.slow.append(SLOW.match(line).groups())


def judge(program, ended, text, reports):
    """Returns the Verdict of a program that ended.

    `program` and `ended` are of programs.py and pool.py, `text` is the output of the program and
    `reports` are the texts that sanitizers left in files."""
    verdict = Verdict()
    lines = [line.rstrip('\r') for line in text.split('\n')]
    status = ended.status
    if program.kind == 'cmocka':
        count_cmocka(lines, verdict)
    elif program.kind == 'shell':
        count_shell(lines, verdict)
    else:
        verdict.passed, verdict.failed = int(status == 0), int(status != 0)
    found = [kind for kind, pattern in FAULTS
             if pattern.search(text) and not (kind == 'crash' and program.crashes)]
    if reports:
        verdict.fail('sanitizer', 'a sanitizer reported')
    if found:
        verdict.fail(found[0], f'its output tells of a {found[0]}')
    if ended.hung:
        verdict.fail('hang', 'its time ran out')
    elif status < 0:
        verdict.fail('crash', f'ended by {signal_name(-status)}')
    elif status >= 128:
        verdict.fail('crash', f'exit status {status}')
    elif verdict.late and status != LATE_STATUS and verdict.failed == 0:
        verdict.fail('wrong', f'exit status {status} after a late case')
    elif status != 0 and verdict.failed == 0 and not verdict.late:
        verdict.fail('wrong', f'exit status {status}')
    if ended.left and not ended.hung:
        verdict.fail('leak', 'left behind: ' + ', '.join(ended.left))
    if verdict.passed + verdict.failed + verdict.skipped + len(verdict.late) == 0:
        verdict.fail('wrong', 'printed no result')
    if not verdict.kind:
        verdict.kind = 'wrong' if verdict.failed else 'late' if verdict.late else ''
    return verdict


def join(first, second):
    """Returns the Verdict of a program whose late cases were run a second time.

    The second run must have judged exactly those cases."""
    if not second.failed and not second.late and \
            sorted(second.names) != sorted(case for case, _ in first.late):
        second.fail('wrong', 'the second run judged other cases')
    second.passed += first.passed
    second.skipped += first.skipped
    second.skips = first.skips + second.skips
    return second


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f'signal {number}'


def read_reports(prefix, is_pattern=False):
    """Returns the texts of the files that sanitizers wrote, by their option log_path=`prefix`, and
    removes the files."""
    texts = []
    pattern = prefix if is_pattern else glob.escape(prefix) + '.*'
    for path in sorted(glob.glob(pattern)):
        with open(path, encoding='utf-8', errors='replace') as f:
            texts.append(f'{os.path.basename(path)}:\n{f.read()}')
        os.unlink(path)
    return texts
