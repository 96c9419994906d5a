# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Builds and runs the tests. scripts/check.sh is the command; --help lists its options.

Exit status: 0 if no program failed and at least one passed, 1 if not, 2 for a wrong argument. The
last line of the output is `N passed, N failed, N skipped`.
"""

import argparse
import fnmatch
import os
import shutil
import signal
import subprocess
import sys
import time

from crashes import Crashes
from ledger import Ledger
from pool import Pool
from programs import ASKED, PARTS, HeadError, builds, find_programs
from verdict import judge, read_reports

CORE_LIMIT_S = float(os.environ.get('XROCE_CORE_LIMIT', 30))   # seconds of a program of the core
CORE_BOUND_S = 240      # its time runs out: it hangs
LONG_BOUND_S = 1200
BUILD_BOUND_S = 2700
MAY_BE_LATE = 2         # cases of a run that may be tried again
PID_MAX = '/proc/sys/kernel/pid_max'


def arguments(argv):
    p = argparse.ArgumentParser(
        prog='check.sh', description='Builds and runs the tests: the core, unless told otherwise.')
    p.add_argument('program', nargs='*', help='NAME of a program, a pattern of names, or a path')
    p.add_argument('--build', default='build', metavar='DIR', help='build in DIR')
    p.add_argument('--tier', choices=('core', 'long', 'all'), help='run the programs of a tier')
    p.add_argument('--part', action='append', default=[], metavar='PART',
                   help='run all programs of a part: ' + ' '.join(PARTS))
    p.add_argument('--turn', metavar='COMMIT', help='begin with the program that the hash selects')
    p.add_argument('--seconds', type=int, metavar='N', help='start no program after N seconds')
    p.add_argument('--repeat', type=int, default=1, metavar='N', help='run each program N times')
    p.add_argument('--load', type=int, default=0, metavar='N', help='keep N busy processes beside')
    p.add_argument('--jobs', type=int, default=os.cpu_count() or 2, metavar='N',
                   help='processors to use')
    p.add_argument('--list', action='store_true', help='list the programs and run none')
    args = p.parse_args(argv)
    for part in args.part:
        if part not in PARTS:
            p.error(f'there is no part {part}; there are: {" ".join(PARTS)}')
    if args.repeat < 1 or args.load < 0 or args.jobs < 1:
        p.error('a number is too small')
    return args


def select(args, programs):
    """Returns the programs that the arguments name, in the order in which they start."""
    tier = args.tier or ('all' if args.part or args.program else 'core')
    chosen = [p for p in programs if tier in (p.tier, 'all')]
    if args.part:
        chosen = [p for p in chosen if p.part in args.part]
    elif not args.program:
        chosen = [p for p in chosen if p.part not in ASKED]
    if args.program:
        named = []
        for word in args.program:
            mine = [p for p in chosen if fnmatch.fnmatchcase(p.name, word) or word in p.argv or
                    word == f'tests/{p.name.replace("-", "/", 1)}.c']
            if not mine:
                sys.exit(f'check.sh: there is no program {word} (--list shows all)')
            named += [p for p in mine if p not in named]
        chosen = named
    if args.turn:
        start = int(args.turn[:8], 16) % max(1, len(chosen))
        chosen = chosen[start:] + chosen[:start]
    else:
        chosen.sort(key=lambda p: PARTS.index(p.part))
    return chosen


class Check:
    """One run of the check: what is started, judged, counted and reported."""

    def __init__(self, args, programs, everything):
        self.args = args
        self.programs = programs
        self.dir = os.path.join(args.build, directory(args))
        self.logs = os.path.join(self.dir, 'logs')
        self.reports = os.path.abspath(os.path.join(self.dir, 'reports'))
        for path in (self.logs, self.reports):
            shutil.rmtree(path, ignore_errors=True)
            os.makedirs(path)
        os.chmod(self.reports, 0o1777)  # tests run programs of users without privileges
        self.ledger = Ledger(os.path.join(self.dir, 'ledger.tsv'))
        self.crashes = Crashes({name for p in everything for name in p.crashes})
        self.began = time.monotonic()
        self.counts = {}        # part: [passed, failed, skipped]
        self.failures = []      # lines of the summary
        self.late = []
        self.times = []         # (seconds, cpu seconds, name)
        self.tried_again = {}   # name: the Verdict of the first run
        self.make = os.environ.get('MAKE', 'make')
        self.left = []

    def environment(self, program, bound):
        env = dict(os.environ)
        # The variables of an outer make must not change what the inner ones build.
        for name in ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL', 'MAKEOVERRIDES', 'SAN', 'TSAN'):
            env.pop(name, None)
        log_path = f'log_path={self.reports}/{program.name}'
        env.update(
            LC_ALL='C', WERROR='1', CMOCKA_MESSAGE_OUTPUT='STDOUT',
            UBSAN_OPTIONS=f'print_stacktrace=1:halt_on_error=1:{log_path}',
            ASAN_OPTIONS=f'detect_leaks=1:abort_on_error=0:{log_path}',
            TSAN_OPTIONS=f'halt_on_error=0:exitcode=66:{log_path}',
            XROCE_TEST_ENDS=str(int(time.time() + bound)))
        env.update(program.env)
        if program.name in self.tried_again:
            names = '|'.join(case for case, _ in self.tried_again[program.name].late)
            env['XROCE_CASE'] = f'@({names})'
        return env

    def bound(self, program):
        if os.environ.get('XROCE_TEST_TIMEOUT'):
            return float(os.environ['XROCE_TEST_TIMEOUT'])
        if program.name.startswith('build'):
            return BUILD_BOUND_S
        return CORE_BOUND_S if program.tier == 'core' else LONG_BOUND_S

    def run(self):
        pool = Pool(2 * self.args.jobs, self.logs, self.args.build, self.bound, self.environment)
        for build in builds(self.programs, self.make, self.args.jobs):
            pool.add(build)
        if not any(b.name == 'build' for b in pool.queue):
            pool.built['build'] = True
        for program in self.programs:
            pool.add(program)
        self.pool = pool
        self.left = pool.run(self.ended, self.may_start)

    def may_start(self):
        return not self.args.seconds or time.monotonic() - self.began < self.args.seconds

    def ended(self, ended):
        program = ended.program
        with open(ended.log, encoding='utf-8', errors='replace') as f:
            text = f.read()
        reports = read_reports(f'{self.reports}/{program.name}')
        verdict = judge(program.kind, ended.status, ended.hung, text, reports)
        if ended.left and not ended.hung:
            verdict.failed = max(verdict.failed, 1)
            verdict.kind = 'leak'
            verdict.note = 'left behind: ' + ', '.join(ended.left)
        first = self.tried_again.get(program.name)
        is_build = program.name.startswith('build')
        if verdict.kind == 'late' and self.may_try_again(program, verdict):
            self.tried_again[program.name] = verdict
            os.rename(ended.log, ended.log[:-len('.log')] + '.first.log')
            for case, detail in verdict.late:
                self.ledger.add(program.name, case, 'again', ended.seconds, detail)
                self.late.append(f'{program.name} {case}: {detail} (tried again)')
            self.pool.add(program, first=True)
            return
        if first:
            verdict.passed += first.passed
            verdict.skipped += first.skipped
        for case, detail in verdict.late:
            self.ledger.add(program.name, case, 'late', ended.seconds, detail)
            self.late.append(f'{program.name} {case}: {detail}')
            # A case of the long tier that stays late is listed, and counted as not run.
            if program.tier == 'long':
                verdict.skipped += 1
            else:
                verdict.failed += 1
        for case, detail in verdict.slow:
            self.ledger.add(program.name, case, 'waited', ended.seconds, detail)
            self.late.append(f'{program.name} {case}: {detail} (passed)')
        if program.tier == 'core' and not is_build:
            self.judge_time(program, ended, verdict)
        self.report(program, ended, verdict, text, reports)

    def may_try_again(self, program, verdict):
        if program.name in self.tried_again or self.args.repeat > 1:
            return False
        used = sum(len(v.late) for v in self.tried_again.values())
        return used + len(verdict.late) <= MAY_BE_LATE

    def judge_time(self, program, ended, verdict):
        if ended.seconds <= CORE_LIMIT_S / 2:
            return
        over = ended.seconds > CORE_LIMIT_S
        self.ledger.add(program.name, '', 'over' if over else 'slow', ended.seconds,
                        f'{ended.cpu:.1f} s of processor time')
        if over and not self.args.load:
            verdict.failed += 1
            verdict.note += f' over the limit of {CORE_LIMIT_S} s for a program of the core'

    def report(self, program, ended, verdict, text, reports):
        if program.name.startswith('build'):
            verdict.passed = 0  # no test
        counts = self.counts.setdefault(program.part, [0, 0, 0, 0.0])
        for i, n in enumerate((verdict.passed, verdict.failed, verdict.skipped, ended.seconds)):
            counts[i] += n
        self.times.append((ended.seconds, ended.cpu, program.name))
        with open(os.path.join(self.dir, 'results.tsv'), 'a', encoding='utf-8') as f:
            print(program.part, program.tier, program.name, verdict.passed, verdict.failed,
                  verdict.skipped, f'{ended.seconds:.2f}', f'{ended.cpu:.2f}', verdict.kind,
                  verdict.note, sep='\t', file=f)
        took = f'{ended.seconds:.1f} s, {ended.cpu:.1f} s of processor time'
        note = f' ({verdict.note.strip()})' if verdict.note else ''
        if verdict.failed:
            for line in text.splitlines() + '\n'.join(reports).splitlines():
                print('    ' + line)
            print(f'FAILED {program.name}: {verdict.passed} passed, {verdict.failed} failed, '
                  f'{verdict.skipped} skipped, {verdict.kind or "slow"}{note}, {took}')
            self.failures.append(f'{program.name}: {verdict.kind or "slow"}{note}')
        else:
            print(f'passed {program.name}: {verdict.passed} passed, {verdict.skipped} skipped, '
                  f'{took}')
            for line in verdict.skips:
                print('    ' + line)
        for line in self.crashes.take():
            running = ' '.join(r.program.name for r in self.pool.running.values())
            print(f'CRASH  {line} (while {program.name} {running} ran)')
            self.failures.append(f'crash: {line}')
            self.counts.setdefault('crashes', [0, 0, 0, 0.0])[1] += 1
        sys.stdout.flush()

    def summary(self, interrupted):
        """Prints the closing lines. Returns the exit status."""
        if interrupted:
            self.failures.append('interrupted')
            self.counts.setdefault('interrupted', [0, 0, 0, 0.0])[1] += 1
        not_run = [p for p in self.left if self.pool.built.get(p.after) is False]
        if not_run:
            self.failures.append(f'{len(not_run)} programs were not run: their build failed')
        if len(self.left) > len(not_run):
            print(f'{len(self.left) - len(not_run)} programs were not started: the time was up')
        print('ten slowest programs (seconds, processor seconds):')
        for seconds, cpu, name in sorted(self.times, reverse=True)[:10]:
            print(f'    {seconds:7.1f} {cpu:7.1f}  {name}')
        if self.late:
            print(f'waited past a deadline (all in {self.ledger.path}):')
            for line in self.late:
                print('    ' + line)
        for part, (passed, failed, skipped, seconds) in self.counts.items():
            print(f'{part:9} {passed} passed, {failed} failed, {skipped} skipped, {seconds:.0f} s')
        if not self.crashes.readable():
            print('the kernel log is not readable: crashes are seen by their exit status alone')
        print(f'all took {time.monotonic() - self.began:.0f} s')
        if self.failures:
            print(f'failed (output in {self.logs}):')
            for line in self.failures:
                print('    ' + line)
        passed, failed, skipped = (sum(c[i] for c in self.counts.values()) for i in range(3))
        failed = max(failed, int(bool(self.failures)))
        line = f'{passed} passed, {failed} failed, {skipped} skipped'
        with open(os.path.join(self.dir, 'count'), 'w', encoding='utf-8') as f:
            print(line, file=f)
        print(line)
        return 0 if passed and not failed else 1


def directory(args):
    """Returns where a run keeps its output, so that different ones can go side by side."""
    if args.program:
        return 'check-some'
    if len(args.part) == 1:
        return 'check-' + args.part[0]
    return 'check-turn' if args.turn else 'check'


def repeated(programs, times):
    """Returns `times` copies of each program, one after another: they share a lock."""
    if times == 1:
        return programs
    from dataclasses import replace
    return [replace(p, name=f'{p.name}.{i}', needs=p.needs | {'repeat ' + p.name})
            for p in programs for i in range(1, times + 1)]


def keep_busy(count):
    """Starts `count` processes that keep a processor busy, and end with this one."""
    spin = 'import ctypes; ctypes.CDLL(None).prctl(1, 9)\nwhile True: pass'
    return [subprocess.Popen([sys.executable, '-c', spin]) for _ in range(count)]


def raise_pid_max():
    """Makes room for more process numbers. Returns what was there before, or None.

    Where there are 32768, each is used again every few minutes, and bash then waits for ever for a
    child that it takes for one that ended."""
    try:
        with open(PID_MAX, encoding='ascii') as f:
            before = f.read().strip()
        if int(before) < 4194304:
            with open(PID_MAX, 'w', encoding='ascii') as f:
                f.write('4194304')
            return before
    except (OSError, ValueError):
        pass
    return None


def restore_pid_max(before):
    if before:
        with open(PID_MAX, 'w', encoding='ascii') as f:
            f.write(before)


def show_list(programs):
    for p in programs:
        words = ' '.join([f'{name}={value}' for name, value in p.env] + sorted(p.needs))
        print(f'{p.tier} {p.part:8} {p.name} {words}'.rstrip())


def main():
    args = arguments(sys.argv[1:])
    try:
        everything = find_programs()
        programs = select(args, everything)
    except HeadError as error:
        print(f'check.sh: {error}', file=sys.stderr)
        return 2
    if args.list:
        show_list(programs)
        return 0
    check = Check(args, repeated(programs, args.repeat), everything)
    with open(os.path.join(check.dir, 'results.tsv'), 'w', encoding='utf-8'):
        pass
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    before = raise_pid_max()
    busy = keep_busy(args.load)
    interrupted = False
    try:
        check.run()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        for process in busy:
            process.kill()
        restore_pid_max(before)
    return check.summary(interrupted)


if __name__ == '__main__':
    sys.exit(main())
