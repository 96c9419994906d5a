# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Crashes that the kernel logged while the check ran.

A script may not look at the exit status of each process that it starts. The kernel logs each
process that a SIGSEGV, SIGBUS, SIGILL or SIGFPE ends while it has no handler.
"""

import os
import re

LINE = re.compile(r'(?:traps: )?([^ ]+)\[(\d+)\]:? (segfault|trap|general protection)')


class Crashes:
    """`expected` are the names of processes that crash on purpose. XROCE_KMSG is read in place of
    /dev/kmsg: the log shows the processes of every check that runs on the machine."""

    def __init__(self, expected):
        self.expected = {name[:15] for name in expected}    # as the kernel cuts them
        try:
            self.kmsg = os.open(os.environ.get('XROCE_KMSG', '/dev/kmsg'), os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.kmsg, 0, os.SEEK_END)
        except OSError:
            self.kmsg = -1

    def readable(self):
        return self.kmsg >= 0

    def take(self):
        """Returns the unexpected crashes since the last call, one line each."""
        lines = []
        while self.kmsg >= 0:
            try:
                record = os.read(self.kmsg, 8192).decode(errors='replace')
                if not record:
                    break
            except BlockingIOError:
                break
            except BrokenPipeError:     # records were overwritten before they were read
                continue
            text = record.split(';', 1)[-1].split('\n', 1)[0]
            match = LINE.match(text)
            if match and match.group(1) not in self.expected:
                lines.append(text)
        return lines
