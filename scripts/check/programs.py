# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Finds the programs of the tests and reads their heads.

A head is the comment at the top of a source or script. One line describes one run of the program:

    # tier: core                                the run has the name of the program
    # tier: long shards XROCE_TEST_QUEUES=2     NAME-shards, with that variable in its environment
    /* tier: core XROCE_FUZZ_SECONDS=8 */       the name of the program, and a variable
    # needs: systemd                            locks, held while the program runs
    # crashes: victim                           names of its processes that crash on purpose

`core` is what `make check` runs, `long` is the rest of `make check-all`. The modes `san` and
`san_...` run a program of the build with ASan and UBSan, `tsan` one of the build with TSan.
Programs that name the same lock never run at the same time, on the whole machine; `alone` runs
beside no other program of the run, `processors` counts as two.
"""

import os
import re
from dataclasses import dataclass, field, replace

PARTS = ('tree', 'portsim', 'model', 'unit', 'sim', 'cm', 'san', 'fuzz', 'ship', 'bpf', 'verbs',
         'port', 'netns', 'vm', 'arch')
# Run only if named: compilers and emulators of other machines.
ASKED = ('arch',)

# Directories of cmocka programs, test_*.c, with their part.
CMOCKA = {'unit': 'unit', 'measure': 'unit', 'sim': 'sim', 'cm': 'cm', 'portsim': 'portsim',
          'brokersim': 'portsim', 'bpf': 'bpf', 'port': 'port', 'rdmacm': 'verbs'}
# Directories of scripts, *.sh.
SCRIPTS = {'model': 'model', 'ship': 'ship', 'check': 'tree', 'verbs': 'verbs', 'rdmacm': 'verbs',
           'port': 'port', 'netns': 'netns', 'foreign': 'netns', 'pyverbs': 'verbs'}
# Scripts of other directories: path, name, part and arguments.
OTHERS = (
    ('tests/vm/rxe.sh', 'vm-rxe', 'vm', ()),
    ('tests/vm/broker.sh', 'vm-broker', 'vm', ('6.1',)),
    ('tests/vm/sockets.sh', 'vm-sockets', 'vm', ('5.10',)),
    ('tests/vm/newest.sh', 'vm-newest', 'vm', ()),
    ('tests/ship/trial/arch.sh', 'arch-arm64', 'arch', ('arm64',)),
    ('tests/ship/trial/arch.sh', 'arch-s390x', 'arch', ('s390x',)),
    ('tests/vm/arm64.sh', 'arch-vm-arm64', 'arch', ()),
    ('tests/ship/trial/musl.sh', 'arch-musl', 'arch', ()),
)
# Directories of pages, man_*.c, which their man.sh runs one by one.
PAGES = {'verbs': 'verbs', 'rdmacm': 'verbs'}
# Scripts that take another program as an argument.
NOT_ALONE = ('tests/verbs/man.sh', 'tests/rdmacm/man.sh')

# Parts whose programs keep a processor busy; the others wait for packets half of the time.
BUSY = ('tree', 'portsim', 'model', 'unit', 'sim', 'cm', 'san', 'fuzz', 'ship', 'arch')

# Goals of make that a part needs in addition to its programs.
GOALS = {
    'tree': ['all'],
    'portsim': ['portsim-tests', 'brokersim-tests'],
    'model': [],
    'unit': ['unit-tests', 'measure-tests'],
    'sim': ['sim-tests'],
    'cm': ['cm-tests'],
    'san': [],
    'fuzz': [],
    'ship': ['all', 'texts'],
    'bpf': ['bpf-tests'],
    'verbs': ['all', 'netns-tools', 'rdmacm-tests', 'verbs-pages', 'rdmacm-pages'],
    'port': ['all', 'port-tests', 'netns-tools'],
    'netns': ['all', 'netns-tools'],
    'vm': ['all', 'netns-tools', 'vm-tools'],
    'arch': ['all'],
}
# Builds with sanitizers: the mode of a run, and make's variable.
SANITIZERS = {'san': 'SAN=1', 'tsan': 'TSAN=1'}

# Rules of the sources, each one command.
STEPS = (
    ('includes', ['scripts/check-includes.sh']),
    ('kernel', ['scripts/check-kernel.sh']),
    ('atomics', ['scripts/check-atomics.sh', '{build}']),
    ('errno', ['scripts/check-errno.sh']),
    ('environment', ['scripts/check-environment.sh']),
    ('releases', ['scripts/check-releases.sh']),
    ('licences', ['scripts/check-licences.sh']),
    ('documents', ['scripts/check-docs.sh']),
    ('counters', ['scripts/check-counters.sh']),
    ('lists', ['scripts/check-lists.sh']),
    ('width', ['scripts/check-width.sh']),
    ('prose', ['scripts/check-prose.sh']),
    ('tiers', ['scripts/check.sh', '--list']),
    ('mutations', ['tests/mutate.sh', '-c']),
    ('mutations-verbs', ['tests/mutate-verbs.sh', '-c']),
)


# `guest_do` runs its command in a virtual machine.
BY_NAME = re.compile(r'^(?!.*guest_do)[^#]*\b(pkill|killall)\b(?!.* -P )')


class HeadError(Exception):
    """A program without a valid head. The message names the file and what is wrong."""


@dataclass(frozen=True)
class Program:
    """One run of one program of the tests."""
    name: str                   # unique: directory, file and mode, joined by '-'
    part: str                   # of PARTS
    tier: str                   # core or long
    kind: str                   # cmocka, shell or step: how its output is counted
    argv: tuple                 # {build} stands for the directory of the build
    env: tuple = ()             # pairs of name and value, beside the environment of the check
    needs: frozenset = field(default_factory=frozenset)
    crashes: frozenset = field(default_factory=frozenset)
    after: str = 'build'        # the build that must have succeeded
    is_build: bool = False      # no test, but what tests need
    weight: int = 1             # of the capacity of the pool, which is two for each processor


HEAD_LINES = 80
TIER = re.compile(r'^(?:#|/\*) tier: (.*?)(?: \*/)?$')
NEEDS = re.compile(r'^(?:#|/\*) needs: (.*?)(?: \*/)?$')
CRASHES = re.compile(r'^(?:#|/\*) crashes: (.*?)(?: \*/)?$')
LOCKS = {'alone', 'processors', 'hugepages', 'systemd', '/run/xroce', 'build-san', 'userns'}
MODE = re.compile(r'^[a-z_0-9]+$')
VARIABLE = re.compile(r'^([A-Z_]+)=(.*)$')


def read_head(path):
    """Returns the runs of the program `path`, (tier, mode, variables) each, its locks, and the
    names of its processes that crash on purpose.

    Raises HeadError if there is no `tier:` line or a line cannot be read, and for a script that
    ends processes by name: it would end those of programs that run beside it."""
    runs, needs, crashes = [], set(), set()
    with open(path, encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            if path.endswith('.sh') and BY_NAME.search(line):
                raise HeadError(f'{path}:{number}: it ends processes by name')
            if number > HEAD_LINES:
                continue
            match = TIER.match(line.rstrip())
            if match:
                runs.append(read_tier(match.group(1).split(), f'{path}:{number}'))
            match = NEEDS.match(line.rstrip())
            if match:
                needs |= read_needs(match.group(1), f'{path}:{number}')
            match = CRASHES.match(line.rstrip())
            if match:
                crashes |= set(match.group(1).split())
    if not runs:
        raise HeadError(f'{path}: no "tier:" line in its head')
    modes = [mode for _, mode, _ in runs]
    if len(set(modes)) != len(modes):
        raise HeadError(f'{path}: two "tier:" lines have the same mode')
    return runs, frozenset(needs), frozenset(crashes)


def read_tier(words, where):
    if not words or words[0] not in ('core', 'long'):
        raise HeadError(f'{where}: the tier is core or long')
    tier, words = words[0], words[1:]
    mode = words.pop(0) if words and MODE.match(words[0]) else ''
    variables = [VARIABLE.match(word) for word in words]
    if None in variables:
        raise HeadError(f'{where}: expected VARIABLE=value')
    return tier, mode, tuple((v.group(1), v.group(2)) for v in variables)


def read_needs(text, where):
    needs = {word.strip() for word in text.split('|')}
    if not needs <= LOCKS:
        raise HeadError(f'{where}: needs: some of {", ".join(sorted(LOCKS))}, joined by "|"')
    return needs


def program(path, name, part, kind, argv):
    """Yields a Program for each `tier:` line of the file `path`."""
    runs, needs, crashes = read_head(path)
    weight = 2 if part in BUSY or 'processors' in needs else 1
    for tier, mode, variables in runs:
        one = Program(name + (mode and '-' + mode), part, tier, kind, tuple(argv), variables,
                      needs - {'processors'}, crashes, 'build', weight=weight)
        sanitizer = mode.split('_')[0]
        if sanitizer in SANITIZERS:
            words = tuple(a.replace('{build}', '{build}-' + sanitizer) for a in argv)
            if sanitizer == 'tsan':     # needs the address space without its random bits
                words = ('setarch', '-R', *words)
            one = replace(one, part='san', argv=words, after='build-' + sanitizer, weight=2)
        elif part == 'fuzz':
            one = replace(one, after='build-fuzz')
        yield one


def sources(directory, prefix, suffix):
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    return [n for n in names if n.startswith(prefix) and n.endswith(suffix)]


def find_programs():
    """Returns all programs of the tests. The current directory is the top of the tree.

    Raises HeadError for the first file whose head is wrong."""
    found = [Program(name, 'tree', 'core', 'step', tuple(argv), weight=2,
                     after='build' if '{build}' in argv else '') for name, argv in STEPS]
    for directory, part in CMOCKA.items():
        for source in sources(f'tests/{directory}', 'test_', '.c'):
            base = source[:-len('.c')]
            found += program(f'tests/{directory}/{source}', f'{directory}-{base}', part, 'cmocka',
                             [f'{{build}}/tests/{directory}/{base}'])
    for source in sources('tests/fuzz', 'fuzz_', '.c'):
        name = source[len('fuzz_'):-len('.c')]
        found += program(f'tests/fuzz/{source}', f'fuzz-{name}', 'fuzz', 'step',
                         ['scripts/fuzz.sh', '{build}', name])
    for directory, part in PAGES.items():
        for source in sources(f'tests/{directory}', 'man_', '.c'):
            base = source[:-len('.c')]
            found += program(f'tests/{directory}/{source}', f'{directory}-{base}', part, 'shell',
                             ['bash', f'tests/{directory}/man.sh', '{build}', base[len('man_'):]])
    for directory, part in SCRIPTS.items():
        for source in sources(f'tests/{directory}', '', '.sh'):
            path = f'tests/{directory}/{source}'
            if path in NOT_ALONE:
                continue
            found += program(path, f'{directory}-{source[:-len(".sh")]}', part, 'shell',
                             ['bash', path, '{build}'])
    for path, name, part, words in OTHERS:
        if os.path.exists(path):
            found += program(path, name, part, 'shell', ['bash', path, '{build}', *words])
    return found


def goals_of(program, mode):
    """Returns what make builds for a program of a build with sanitizers."""
    directory = program.name.split('-', 1)[0]
    build = f'{{build}}-{mode}'
    if directory in CMOCKA and program.kind == 'cmocka':
        return [f'{directory}-tests'] if mode == 'san' else [program.argv[-1]]
    libraries = [f'{build}/lib/libibverbs.so.1', f'{build}/lib/librdmacm.so.1',
                 f'{build}/bin/xroce']
    if directory in PAGES:
        return libraries + [f'{build}/tests/{directory}/man_{program.argv[-1]}']
    return libraries + ['netns-tools']


def builds(programs, make, jobs):
    """Returns the builds that `programs` need, each a Program of kind `step`."""
    parts = {p.part for p in programs if p.after == 'build'}
    goals = sorted({goal for part in parts for goal in GOALS[part]})
    wanted = {p.after for p in programs}
    base = [make, '--no-print-directory', '-k']
    result = []
    if goals and 'build' in wanted:
        result.append(Program('build', 'tree', 'core', 'step',
                              (*base, f'-j{jobs}', 'BUILD={build}', *goals), after='',
                              is_build=True, weight=2 * jobs))
    # At the same time as each other and the first programs.
    for mode, variable in SANITIZERS.items():
        mine = [p for p in programs if p.after == 'build-' + mode]
        if mine:
            result.append(Program('build-' + mode, 'san', 'core', 'step',
                                  (*base, f'BUILD={{build}}-{mode}', variable,
                                   *sorted({g for p in mine for g in goals_of(p, mode)})),
                                  after='build' if result else '', is_build=True, weight=2))
    if 'build-fuzz' in wanted:
        result.append(Program('build-fuzz', 'fuzz', 'core', 'step',
                              (*base, 'BUILD={build}', 'fuzzers'),
                              after='build' if result else '', is_build=True, weight=2))
    return result
