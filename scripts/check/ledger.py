# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The ledger: one line for each program that was late or slow, kept over the runs of a build.

Columns: date, commit, program, case, event, seconds, load, detail. Events: `slow` (a program took
over half of its limit), `over` (it took over its limit), `waited` (a case waited past a deadline
and passed), `late` (a case was late), `again` (a late case was tried again).
"""

import os
import subprocess
import time

COLUMNS = ('date', 'commit', 'program', 'case', 'event', 'seconds', 'load', 'detail')


class Ledger:
    def __init__(self, path):
        self.path = path
        self.commit = subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], text=True,
                                     capture_output=True, check=False).stdout.strip() or '-'
        if not os.path.exists(path):
            with open(path, 'w', encoding='utf-8') as f:
                print(*COLUMNS, sep='\t', file=f)

    def add(self, program, case, event, seconds, detail=''):
        with open(self.path, 'a', encoding='utf-8') as f:
            print(time.strftime('%F %T'), self.commit, program, case or '-', event,
                  f'{seconds:.1f}', f'{os.getloadavg()[0]:.1f}', detail.replace('\t', ' '),
                  sep='\t', file=f)
