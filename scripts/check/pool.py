# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs programs side by side.

The capacity is two for each processor. A program that keeps a processor busy takes two of it, one
that waits for packets takes one. Programs start in the order in which they were added, but one that
does not fit yet is passed, so a program that needs the machine alone comes last. Each program has a session, so that a program whose time ran out
is ended with all its children, and its output is kept in LOGS/NAME.log.
"""

import glob
import os
import signal
import subprocess
import time
from collections import deque
from dataclasses import dataclass

GRACE_S = 20    # from SIGTERM to SIGKILL: a script takes its namespaces away
LINGER_S = 10   # what children may take to exit after the program
POLL_S = 0.05


@dataclass
class Ended:
    """How a program ended."""
    program: object
    status: int         # as of os.waitstatus_to_exitcode()
    hung: bool          # its time ran out
    left: list          # what it left behind: processes, network namespaces
    seconds: float
    cpu: float          # seconds of processor time, with its children
    log: str            # the path of its output


@dataclass
class Running:
    program: object
    process: subprocess.Popen
    began: float
    bound: float
    log: str
    hung: bool = False
    status: int = None      # once the program itself has exited
    ended: float = 0.0
    cpu: float = 0.0


def members(group):
    """Returns the processes of a process group, each as `process PID NAME`; none that exited."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return []
    except PermissionError:
        pass
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
                name, rest = f.read().split('(', 1)[1].rsplit(')', 1)
        except OSError:
            continue
        state, _, its_group = rest.split()[:3]
        if int(its_group) == group and state not in 'ZX':
            found.append(f'process {pid} {name}')
    return found


def namespaces(pid):
    """Returns the network namespaces that a script left (scripts/netns.sh names them)."""
    return [f'namespace {os.path.basename(n)}' for n in glob.glob(f'/run/netns/xr{pid}[abp]')]


class Pool:
    """Programs that run, at most `capacity` of weight at a time.

    `logs` is an existing directory, `build` replaces {build} in arguments, `bound` returns the
    seconds that a program may take, and `environment` its variables."""

    def __init__(self, capacity, logs, build, bound, environment):
        self.capacity = capacity
        self.logs = logs
        self.build = build
        self.bound = bound
        self.environment = environment
        self.queue = deque()
        self.running = {}
        self.built = {'': True}     # by name of the build, once it has ended

    def add(self, program, first=False):
        if first:
            self.queue.appendleft(program)
        else:
            self.queue.append(program)

    def run(self, ended, may_start=lambda: True):
        """Runs all that was added. Calls `ended` with each Ended; it may add more programs.

        Starts nothing more once `may_start` returns false. Returns the programs that were not
        started: those, and those whose build failed."""
        left = []
        try:
            while self.queue or self.running:
                if not may_start():
                    left += self.queue
                    self.queue.clear()
                self.start_what_fits(left)
                self.reap(ended)
        finally:
            self.end_all()
        return left

    def start_what_fits(self, left):
        waiting = deque()
        while self.queue:
            program = self.queue.popleft()
            if self.built.get(program.after) is False:
                left.append(program)
            elif self.fits(program):
                self.start(program)
            else:
                waiting.append(program)
        self.queue = waiting

    def fits(self, program):
        if program.after not in self.built:
            return False
        if not self.running:
            return True
        others = [r.program for r in self.running.values()]
        if 'alone' in program.needs or any('alone' in o.needs for o in others):
            return False
        if any(program.needs & o.needs for o in others):
            return False
        return sum(o.weight for o in others) + program.weight <= self.capacity

    def start(self, program):
        log = os.path.join(self.logs, program.name + '.log')
        argv = [a.replace('{build}', self.build) for a in program.argv]
        bound = self.bound(program)
        with open(log, 'wb') as out:
            try:
                process = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                    start_new_session=True, env=self.environment(program, bound))
            except OSError as error:
                out.write(f'cannot run {argv[0]}: {error.strerror}\n'.encode())
                process = subprocess.Popen(['false'], start_new_session=True)
        self.running[process.pid] = Running(program, process, time.monotonic(), bound, log)

    def reap(self, ended):
        now = time.monotonic()
        for r in self.running.values():
            if r.status is not None:
                continue
            if now > r.began + r.bound + GRACE_S:
                self.signal(r, signal.SIGKILL)
            elif now > r.began + r.bound and not r.hung:
                r.hung = True
                self.signal(r, signal.SIGTERM)
        if not self.running:
            return
        reaped = False
        for pid, r in list(self.running.items()):
            if r.status is None:
                got, status, usage = os.wait4(pid, os.WNOHANG)
                if got == 0:
                    continue
                r.status = r.process.returncode = os.waitstatus_to_exitcode(status)
                r.ended, r.cpu = time.monotonic(), usage.ru_utime + usage.ru_stime
            # Its children may take a moment to exit.
            left = members(pid)
            if left and not r.hung and time.monotonic() < r.ended + LINGER_S:
                continue
            if left:
                self.signal(r, signal.SIGKILL)
            reaped = True
            del self.running[pid]
            if r.program.name.startswith('build'):
                self.built[r.program.name] = r.status == 0
            ended(Ended(r.program, r.status, r.hung, left + namespaces(pid), r.ended - r.began,
                        r.cpu, r.log))
        if not reaped:
            time.sleep(POLL_S)

    def end_all(self):
        """Ends what still runs, as after an interrupt."""
        for r in self.running.values():
            self.signal(r, signal.SIGTERM)
        last = time.monotonic() + GRACE_S
        for r in self.running.values():
            try:
                r.process.wait(max(0.1, last - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.signal(r, signal.SIGKILL)
                r.process.wait()
        self.running.clear()

    @staticmethod
    def signal(running, number):
        try:
            os.killpg(running.process.pid, number)
        except ProcessLookupError:
            pass
