#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""migrate.py SOURCE DESTINATION URI MIB FOLDER [CAPABILITY...]

Migrates the running guest of one QEMU to another by their QMP sockets; the destination was started
with `-incoming defer -S`. Compares all of the guest's memory of both ends, lets the guest go on,
and prints the times that QEMU measured. Ends with 1 and a line that says why if something fails.
"""
import filecmp
import json
import os
import socket
import sys
import time


class Monitor:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        for _ in range(200):
            try:
                self.socket.connect(path)
                break
            except OSError:
                time.sleep(0.05)
        self.lines = self.socket.makefile('rw')
        self.lines.readline()
        self.ask('qmp_capabilities')

    def ask(self, command, **arguments):
        """Returns what the command returns; events between are passed over."""
        self.lines.write(json.dumps({'execute': command, 'arguments': arguments}) + '\n')
        self.lines.flush()
        while True:
            line = self.lines.readline()
            if not line:
                sys.exit(f'{command}: QEMU has ended')
            answer = json.loads(line)
            if 'error' in answer:
                sys.exit(f'{command}: {answer["error"]["desc"]}')
            if 'return' in answer:
                return answer['return']


def main():
    source, destination = Monitor(sys.argv[1]), Monitor(sys.argv[2])
    uri, size, folder = sys.argv[3], int(sys.argv[4]) << 20, sys.argv[5]
    for end in source, destination:
        end.ask('migrate-set-capabilities',
                capabilities=[{'capability': c, 'state': True} for c in sys.argv[6:]])
        end.ask('migrate-set-parameters', **{'max-bandwidth': 100 << 30, 'downtime-limit': 1000})
    destination.ask('migrate-incoming', uri=uri)
    source.ask('migrate', uri=uri)
    ends = time.monotonic() + 60
    while True:
        state = source.ask('query-migrate')
        if state['status'] == 'completed':
            break
        if state['status'] == 'failed' or time.monotonic() > ends:
            sys.exit(f'the migration is {state["status"]}: {state.get("error-desc")}')
        time.sleep(0.02)
    while destination.ask('query-status')['status'] == 'inmigrate':
        if time.monotonic() > ends:
            sys.exit('the destination does not end its migration')
        time.sleep(0.02)
    files = []
    for name, end in ('source', source), ('destination', destination):
        files.append(os.path.join(folder, f'{name}.memory'))
        end.ask('pmemsave', val=0, size=size, filename=files[-1])
    if not filecmp.cmp(*files, shallow=False):
        sys.exit('the memory of the two is not the same')
    for name in files:
        os.unlink(name)
    destination.ask('cont')
    if destination.ask('query-status')['status'] != 'running':
        sys.exit('the guest does not run')
    print(f'migrated: {size} bytes the same, total {state["total-time"]} ms, '
          f'downtime {state["downtime"]} ms', flush=True)


main()
