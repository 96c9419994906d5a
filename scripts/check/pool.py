# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs programs side by side.

The capacity is two for each processor. A program that keeps a processor busy takes two of it, one
that waits for packets takes one. Programs start in the order in which they were added, but one that
does not fit yet is passed by the next LOOKAHEAD ones; after PATIENCE_S nothing passes it any more. Each has a session, and a
variable of the environment by which all its descendants are found: they are ended with a program
whose time ran out, and reported if they outlive it. Output is kept in LOGS/NAME.log.
"""

import fcntl
import glob
import os
import signal
import subprocess
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field

GRACE_S = 20        # from SIGTERM to SIGKILL: a script takes its namespaces away
LINGER_S = float(os.environ.get('XROCE_LINGER_S', 10))     # of descendants, after the program
LOOKAHEAD = 24
PATIENCE_S = 60     # how long later programs may pass one
POLL_S = 0.05
TOKEN = 'XROCE_TEST_RUN'
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
    token: str
    began: float
    bound: float
    log: str
    locks: list = field(default_factory=list)   # open files, locked
    hung: bool = False
    status: int = None      # once the program itself has exited
    ended: float = 0.0
    cpu: float = 0.0


def descendants(token):
    """Returns {pid: name} of the processes whose environment has `token`; none that exited."""
    want = f'{TOKEN}={token}'.encode()
    found = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/environ', 'rb') as f:
                if want not in f.read().split(b'\0'):
                    continue
            with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
                name, rest = f.read().split('(', 1)[1].rsplit(')', 1)
        except OSError:
            continue
        if rest.split()[0] not in 'ZX':
            found[int(pid)] = name
    return found


def namespaces(pid):
    """Returns the network namespaces that a script left (scripts/netns.sh names them)."""
    return [f'namespace {os.path.basename(n)}' for n in glob.glob(f'/run/netns/xr{pid}[abp]')]


def take_locks(names):
    """Locks each name against other checks on the machine. Returns the open files, or None."""
    files = []
    for name in sorted(names):
        path = os.path.join(tempfile.gettempdir(), 'xroce-check-' + name.replace('/', '-'))
        f = open(path, 'a', encoding='ascii')   # pylint: disable=consider-using-with
        files.append(f)
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            for f in files:
                f.close()
            return None
    return files


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
        self.passed_since = {}      # by name
        self.running = {}
        self.built = {'': True}     # by name of the build, once it has ended
        self.left = []
        self.interrupted = False

    def add(self, program, first=False):
        if first:
            self.queue.appendleft(program)
        else:
            self.queue.append(program)

    def run(self, ended, may_start=lambda: True):
        """Runs all that was added. Calls `ended` with each Ended; it may add more programs.

        Starts nothing more once `may_start` returns false. Programs that were not started are then
        in `left`: those, and those whose build failed. After SIGINT, SIGTERM or SIGHUP it ends what
        runs and raises KeyboardInterrupt."""
        handlers = {n: signal.signal(n, self.interrupt) for n in INTERRUPTS}
        try:
            while self.queue or self.running:
                # Looked at here alone: between the start of a program and its entry in `running`,
                # an exception would lose the program.
                if self.interrupted:
                    raise KeyboardInterrupt
                if not may_start():
                    self.left += self.queue
                    self.queue.clear()
                self.start_what_fits()
                self.reap(ended)
        finally:
            self.end_all()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def interrupt(self, _number, _frame):
        self.interrupted = True

    def start_what_fits(self):
        waiting = deque()
        while self.queue and len(waiting) < LOOKAHEAD:
            program = self.queue.popleft()
            if self.built.get(program.after) is False:
                self.left.append(program)
                if program.is_build:
                    self.built[program.name] = False
                continue
            locks = take_locks(program.needs - {'alone'}) if self.fits(program) else None
            if locks is not None:
                self.start(program, locks)
                continue
            waiting.append(program)
            since = self.passed_since.setdefault(program.name, time.monotonic())
            if program.after in self.built and time.monotonic() > since + PATIENCE_S:
                break
        self.queue.extendleft(reversed(waiting))

    def fits(self, program):
        if program.after not in self.built:
            return False
        others = [r.program for r in self.running.values()]
        if not others:
            return True
        if 'alone' in program.needs or any('alone' in o.needs for o in others):
            return False
        return sum(o.weight for o in others) + program.weight <= self.capacity

    def start(self, program, locks):
        log = os.path.join(self.logs, program.name + '.log')
        argv = [a.replace('{build}', self.build) for a in program.argv]
        bound = self.bound(program)
        token = f'{os.getpid()}-{program.name}'
        env = self.environment(program, bound)
        env[TOKEN] = token
        with open(log, 'wb') as out:
            try:
                process = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                    start_new_session=True, env=env)
            except (OSError, ValueError) as error:
                out.write(f'cannot run {argv[0]}: {error}\n'.encode())
                process = subprocess.Popen(['false'], start_new_session=True)
        self.running[process.pid] = Running(program, process, token, time.monotonic(), bound, log,
                                            locks)

    def reap(self, ended):
        now = time.monotonic()
        for r in self.running.values():
            if r.status is not None:
                continue
            if now > r.began + r.bound + GRACE_S:
                self.kill(r)
            elif now > r.began + r.bound and not r.hung:
                r.hung = True
                self.signal(r, signal.SIGTERM)
        reaped = False
        for pid, r in list(self.running.items()):
            if r.status is None:
                got, status, usage = os.wait4(pid, os.WNOHANG)
                if got == 0:
                    continue
                r.status = r.process.returncode = os.waitstatus_to_exitcode(status)
                r.ended, r.cpu = time.monotonic(), usage.ru_utime + usage.ru_stime
            left = descendants(r.token)
            if left and not r.hung and time.monotonic() < r.ended + LINGER_S:
                continue
            self.kill(r)
            reaped = True
            del self.running[pid]
            for f in r.locks:
                f.close()
            if r.program.is_build:
                self.built[r.program.name] = r.status == 0
            ended(Ended(r.program, r.status, r.hung,
                        [f'process {p} {name}' for p, name in left.items()] + namespaces(pid),
                        r.ended - r.began, r.cpu, r.log))
        if not reaped:
            time.sleep(POLL_S)

    def end_all(self):
        """Ends what still runs, as after an interrupt. A second interrupt changes nothing."""
        for r in self.running.values():
            self.signal(r, signal.SIGTERM)
        last = time.monotonic() + GRACE_S
        for r in self.running.values():
            try:
                r.process.wait(max(0.1, last - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            self.kill(r)
            r.process.wait()
            self.left.append(r.program)
        self.running.clear()
        self.left += self.queue
        self.queue.clear()

    def kill(self, running):
        """Kills the program, if it runs, and its descendants."""
        self.signal(running, signal.SIGKILL)
        for pid in descendants(running.token):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    @staticmethod
    def signal(running, number):
        try:
            os.killpg(running.process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass
