# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Builds and runs the tests. scripts/check.sh is the command; --help lists its options.

Exit status: 0 if no program failed and at least one passed, 1 if not, 2 for a wrong argument. The
last line of the output is `N passed, N failed, N skipped`.
"""

import argparse
import fcntl
import fnmatch
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from crashes import Crashes
from ledger import Ledger
from pool import Pool
from programs import ASKED, PARTS, HeadError, builds, find_programs
from skips import Skips
from verdict import join, judge, read_reports

CORE_LIMIT_S = float(os.environ.get('XROCE_CORE_LIMIT', 30))   # seconds of a program of the core
CORE_BOUND_S = 240      # its time runs out: it hangs
LONG_BOUND_S = 1200
BUILD_BOUND_S = 2700
MAY_BE_LATE = 2         # cases of a run that may be tried again
CHUNK = 12              # programs of one kind that a turn runs one after another
SHOWN_LINES = 300       # of the output of a program that failed
PID_MAX = '/proc/sys/kernel/pid_max'


def arguments(argv):
    p = argparse.ArgumentParser(
        prog='check.sh', description='Builds and runs the tests: the core, unless told otherwise.')
    p.add_argument('program', nargs='*', help='NAME of a program, a pattern of names, or a path')
    p.add_argument('--build', default='build', metavar='DIR', help='build in DIR')
    p.add_argument('--tier', choices=('core', 'long', 'all'), help='run the programs of a tier')
    p.add_argument('--part', action='append', default=[], metavar='PART',
                   help='run all programs of a part: ' + ' '.join(PARTS))
    p.add_argument('--turn', metavar='COMMIT', help='shuffle the programs by the hash of a commit')
    p.add_argument('--seconds', type=int, metavar='N', help='start no program after N seconds')
    p.add_argument('--repeat', type=int, default=1, metavar='N',
                   help='run each program N times, and try no case again')
    p.add_argument('--load', type=int, default=0, metavar='N', help='keep N busy processes beside')
    p.add_argument('--jobs', type=int, default=os.cpu_count() or 2, metavar='N',
                   help='processors to use')
    p.add_argument('--skips', metavar='FILE', help='fail for a skip that FILE does not list')
    p.add_argument('--list', action='store_true', help='list the programs and run none')
    args = p.parse_args(argv)
    for part in args.part:
        if part not in PARTS:
            p.error(f'there is no part {part}; there are: {" ".join(PARTS)}')
    if args.repeat < 1 or args.load < 0 or args.jobs < 1 or \
            (args.seconds is not None and args.seconds < 1):
        p.error('a number is too small')
    if args.turn and not re.fullmatch('[0-9a-f]{7,}', args.turn):
        p.error('--turn takes the hash of a commit')
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
            path = os.path.relpath(word) if '/' in word else word
            mine = [p for p in chosen if fnmatch.fnmatchcase(p.name, word) or path in p.argv or
                    path == f'tests/{p.name.replace("-", "/", 1)}.c']
            if not mine:
                sys.exit(f'check.sh: there is no program {word} (--list shows all)')
            named += [p for p in mine if p not in named]
        chosen = named
    if args.turn:
        return shuffled(chosen, args.turn)
    # A program that needs the machine alone would hold up the others, as would one whose build has
    # not ended.
    chosen.sort(key=lambda p: ('alone' in p.needs, p.after not in ('', 'build'),
                               PARTS.index(p.part)))
    return chosen


def shuffled(programs, seed):
    """Returns the programs in an order that `seed` decides. Programs of the same build and part
    come in groups, so that a run that ends early needs few builds."""
    draw = random.Random(seed)
    groups = {}
    for program in programs:
        groups.setdefault((program.part, program.after), []).append(program)
    chunks = []
    for group in groups.values():
        draw.shuffle(group)
        chunks += [group[i:i + CHUNK] for i in range(0, len(group), CHUNK)]
    draw.shuffle(chunks)
    return [program for chunk in chunks for program in chunk]


class Check:
    """One run of the check: what is started, judged, counted and reported."""

    def __init__(self, args, programs):
        self.args = args
        self.programs = programs
        self.dir, self.lock = own_directory(args)
        self.logs = os.path.join(self.dir, 'logs')
        # Options of sanitizers are cut at spaces, commas and colons, which a path may have.
        self.reports = tempfile.mkdtemp(prefix='xroce-reports-')
        shutil.rmtree(self.logs, ignore_errors=True)
        os.makedirs(self.logs)
        os.chmod(self.reports, 0o1777)  # tests run programs of users without privileges
        with open(os.path.join(self.dir, 'results.tsv'), 'w', encoding='utf-8'):
            pass
        os.makedirs(os.path.join(args.build, 'check'), exist_ok=True)
        self.ledger = Ledger(os.path.join(args.build, 'check', 'ledger.tsv'))
        self.crashes = Crashes()
        self.skips = Skips(args.skips)
        self.began = time.monotonic()
        self.counts = {}        # part: [passed, failed, skipped]
        self.failures = []      # lines of the summary
        self.late = []
        self.times = []         # (seconds, cpu seconds, name)
        self.tried_again = {}   # name: the Verdict of the first run, and its seconds
        self.make = os.environ.get('MAKE', 'make')

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
        if not self.args.program:
            env.pop('XROCE_CASE', None)
            env.pop('XROCE_CASES', None)
        env.update(program.env)
        if program.name in self.tried_again:
            first, _ = self.tried_again[program.name]
            names = '|'.join(re.sub(r'\W', r'\\\g<0>', case) for case, _ in first.late)
            env['XROCE_CASE'] = f'@({names})'
        return env

    def bound(self, program):
        if os.environ.get('XROCE_TEST_TIMEOUT'):
            return float(os.environ['XROCE_TEST_TIMEOUT'])
        if program.is_build:
            return BUILD_BOUND_S
        return CORE_BOUND_S if program.tier == 'core' else LONG_BOUND_S

    def run(self):
        pool = Pool(2 * self.args.jobs, self.logs, self.args.build, self.bound, self.environment)
        needed = {b.name: b for b in builds(self.programs, self.make, self.args.jobs)}
        if 'build' not in needed:   # nothing to build
            pool.built['build'] = True
        if not self.args.turn:      # the programs of the first build keep the machine busy
            for name in list(needed):
                pool.add(needed.pop(name))
        for program in self.programs:
            for name in ('build', program.after):
                if name in needed and program.after:
                    pool.add(needed.pop(name))
            pool.add(program)
        self.pool = pool
        pool.run(self.ended, self.may_start)

    def may_start(self):
        return not self.args.seconds or time.monotonic() - self.began < self.args.seconds

    def ended(self, ended):
        program = ended.program
        with open(ended.log, encoding='utf-8', errors='replace') as f:
            text = f.read()
        reports = read_reports(f'{self.reports}/{program.name}')
        verdict = judge(program, ended, text, reports)
        seconds = ended.seconds
        if verdict.kind == 'late' and self.may_try_again(program, verdict):
            self.try_again(program, verdict, ended)
            return
        if program.name in self.tried_again:
            first, first_seconds = self.tried_again[program.name]
            verdict = join(first, verdict)
            seconds += first_seconds
        for case, detail in verdict.late:
            self.ledger.add(program.name, case, 'late', seconds, detail)
            self.late.append(f'{program.name} {case}: {detail}')
            # In a turn, a case that stays late is listed, and counted as not run.
            if self.args.turn:
                verdict.skipped += 1
            else:
                verdict.failed += 1
        for case, detail in verdict.slow:
            self.ledger.add(program.name, case, 'waited', seconds, detail)
            self.late.append(f'{program.name} {case}: {detail} (passed)')
        if program.tier == 'core' and not program.is_build:
            self.judge_time(program, seconds, ended.cpu, verdict)
        self.report(program, ended, verdict, text, reports)

    def try_again(self, program, verdict, ended):
        self.tried_again[program.name] = (verdict, ended.seconds)
        os.rename(ended.log, ended.log[:-len('.log')] + '.first.log')
        for case, detail in verdict.late:
            self.ledger.add(program.name, case, 'again', ended.seconds, detail)
            self.late.append(f'{program.name} {case}: {detail} (tried again)')
        self.pool.add(program, first=True)

    def may_try_again(self, program, verdict):
        if program.name in self.tried_again or self.args.repeat > 1:
            return False
        used = sum(len(v.late) for v, _ in self.tried_again.values())
        return used + len(verdict.late) <= MAY_BE_LATE

    def judge_time(self, program, seconds, cpu, verdict):
        if seconds <= CORE_LIMIT_S / 2:
            return
        over = seconds > CORE_LIMIT_S
        self.ledger.add(program.name, '', 'over' if over else 'slow', seconds,
                        f'{cpu:.1f} s of processor time')
        if over and not self.args.load and not verdict.failed:
            verdict.fail('slow', f'over the limit of {CORE_LIMIT_S:.0f} s of a program of the core')

    def report(self, program, ended, verdict, text, reports):
        if program.is_build:
            verdict.passed = 0  # no test
        for line in self.skips.forbidden(program.name, verdict.skips):
            verdict.fail('skip', line)
        counts = self.counts.setdefault(program.part, [0, 0, 0, 0.0])
        for i, n in enumerate((verdict.passed, verdict.failed, verdict.skipped, ended.seconds)):
            counts[i] += n
        self.times.append((ended.seconds, ended.cpu, program.name))
        with open(os.path.join(self.dir, 'results.tsv'), 'a', encoding='utf-8') as f:
            print(program.part, program.tier, program.name, verdict.passed, verdict.failed,
                  verdict.skipped, f'{ended.seconds:.2f}', f'{ended.cpu:.2f}', verdict.kind,
                  verdict.note, sep='\t', file=f)
        took = f'{ended.seconds:.1f} s, {ended.cpu:.1f} s of processor time'
        note = f'{verdict.kind}{verdict.note and ": " + verdict.note}'
        if verdict.failed:
            show(text.split('\n') + '\n'.join(reports).split('\n'))
            say(f'FAILED {program.name}: {verdict.passed} passed, {verdict.failed} failed, '
                f'{verdict.skipped} skipped, {took} ({note})')
            self.failures.append(f'{program.name}: {note}')
        else:
            say(f'passed {program.name}: {verdict.passed} passed, {verdict.skipped} skipped, '
                f'{took}')
            show(verdict.skips)
        self.report_crashes(program)

    def report_crashes(self, program=None):
        """Counts what the kernel logged since the last call. `program` has just ended."""
        running = [r.program for r in self.pool.running.values()] + ([program] if program else [])
        for line in self.crashes.take({name for p in running for name in p.crashes}):
            say(f'CRASH  {line} (while {" ".join(p.name for p in running) or "nothing"} ran)')
            self.failures.append(f'crash: {line}')
            self.counts.setdefault('crashes', [0, 0, 0, 0.0])[1] += 1

    def report_rest(self, interrupted):
        """Counts what no program that ended accounts for."""
        self.report_crashes()
        late_reports = read_reports(f'{self.reports}/*', is_pattern=True)
        if late_reports:
            show('\n'.join(late_reports).split('\n'))
            self.failures.append('a sanitizer reported after its program had ended')
        lost = [p.name for p in self.pool.left if p.name in self.tried_again]
        if lost:
            self.failures.append('late, and not tried again in time: ' + ' '.join(lost))
        if interrupted:
            self.failures.append('interrupted')
        not_built = [p for p in self.pool.left if self.pool.built.get(p.after) is False]
        if not_built:
            self.failures.append(f'{len(not_built)} programs were not run: their build failed')
        not_started = [p.name for p in self.pool.left if p not in not_built and not p.is_build]
        if not_started:
            say(f'{len(not_started)} programs were not run: ' + ' '.join(not_started))

    def summary(self, interrupted):
        """Prints the closing lines. Returns the exit status."""
        self.report_rest(interrupted)
        say('ten slowest programs (seconds, processor seconds):')
        for seconds, cpu, name in sorted(self.times, reverse=True)[:10]:
            say(f'    {seconds:7.1f} {cpu:7.1f}  {name}')
        if self.late:
            say(f'waited past a deadline (all in {self.ledger.path}):')
            for line in self.late:
                say('    ' + line)
        for part, (passed, failed, skipped, seconds) in self.counts.items():
            say(f'{part:9} {passed} passed, {failed} failed, {skipped} skipped, {seconds:.0f} s')
        if not self.crashes.readable():
            say('the kernel log is not readable: crashes are seen by their exit status alone')
        say(f'all took {time.monotonic() - self.began:.0f} s')
        if self.failures:
            say(f'failed (output in {self.logs}):')
            for line in self.failures:
                say('    ' + line)
        passed, failed, skipped = (sum(c[i] for c in self.counts.values()) for i in range(3))
        failed = max(failed, int(bool(self.failures)))
        if not passed and not failed:
            say('failed: no test passed')
        line = f'{passed} passed, {failed} failed, {skipped} skipped'
        with open(os.path.join(self.dir, 'count'), 'w', encoding='utf-8') as f:
            print(line, file=f)
        say(line)
        return 0 if passed and not failed else 1


def own_directory(args):
    """Makes the directory for the output of a run. Returns its path and a file that is locked while
    the run goes on: a second run of the same kind gets another directory."""
    if args.program:
        name = 'check-some'
    elif len(args.part) == 1:
        name = 'check-' + args.part[0]
    else:
        name = 'check-turn' if args.turn else 'check'
    for number in range(1, 100):
        path = os.path.join(args.build, name + (f'-{number}' if number > 1 else ''))
        os.makedirs(path, exist_ok=True)
        lock = open(os.path.join(path, 'lock'), 'a', encoding='ascii')
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return path, lock
        except BlockingIOError:
            lock.close()
    sys.exit(f'check.sh: too many runs in {args.build}')


def say(line):
    """Prints a line. The check goes on where nobody reads it any more."""
    try:
        print(line, flush=True)
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, 'w', encoding='utf-8')


def show(lines):
    """Prints the lines, of many the first and last ones."""
    if len(lines) > SHOWN_LINES:
        half = SHOWN_LINES // 2
        lines = lines[:half] + [f'... {len(lines) - SHOWN_LINES} lines ...'] + lines[-half:]
    for line in lines:
        say('    ' + line)


def repeated(programs, times):
    """Returns `times` copies of each program, one after another."""
    if times == 1:
        return programs
    from dataclasses import replace
    return [replace(p, name=f'{p.name}.{i}', needs=p.needs | {'alone'})
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
        programs = select(args, find_programs())
    except HeadError as error:
        print(f'check.sh: {error}', file=sys.stderr)
        return 2
    if args.list:
        show_list(programs)
        return 0
    check = Check(args, repeated(programs, args.repeat))
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
    status = check.summary(interrupted)
    shutil.rmtree(check.reports, ignore_errors=True)
    return status


if __name__ == '__main__':
    sys.exit(main())
