# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Crashes that the kernel logged while the check ran.

A script may not look at the exit status of each process that it starts. The kernel logs each
process that a SIGSEGV, SIGBUS, SIGILL or SIGFPE of its own ends while it has no handler.
"""

import os
import re

PROCESS = re.compile(r'(?:traps: )?(.+?)\[(\d+)\]:? (?:segfault|trap|general protection|bad frame)')
KERNEL = re.compile(r'BUG: |Oops: |Out of memory: Killed process')


class Crashes:
    """The kernel's log from now on.

    XROCE_KMSG is read in place of /dev/kmsg: the log shows the processes of every check that runs
    on the machine."""

    def __init__(self):
        try:
            self.kmsg = os.open(os.environ.get('XROCE_KMSG', '/dev/kmsg'),
                                os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.kmsg, 0, os.SEEK_END)
        except OSError:
            self.kmsg = -1

    def readable(self):
        return self.kmsg >= 0

    def take(self, expected):
        """Returns the crashes since the last call, one line each, but for processes whose names
        are in `expected`."""
        names = {name[:15] for name in expected}    # as the kernel cuts them
        found = []
        for text in self.lines():
            match = PROCESS.match(text)
            if (match and match.group(1) not in names) or KERNEL.search(text):
                found.append(text)
        return found

    def lines(self):
        while self.kmsg >= 0:
            try:
                record = os.read(self.kmsg, 8192)
            except BlockingIOError:
                return
            except BrokenPipeError:     # records were overwritten before they were read
                continue
            if not record:
                return
            for line in record.decode(errors='replace').split('\n'):
                yield line.split(';', 1)[-1]
