# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Counts lines of prose that break a rule of plain English. scripts/check-prose.sh is the command.

Prose is every line of a document outside code blocks, and every line of a comment in C, shell and
Python sources. Strings are not read. A budget is the number of lines with a hit per 1,000 lines of
prose that an area may have. A budget that is more than SLACK above the count fails too, so that
budgets follow the counts down to the AIM.

Exit status: 0 if each area keeps its budget, 1 if not.
"""
import os
import re
import sys

BUDGET = 'scripts/check/prose.budget'
SLACK = 10
AIM = 15
C = ('.c', '.h', '.S')
SCRIPTS = ('.sh', '.py', '.mk')
DOCUMENTS = ('.md', '.7', '.8')

# Name of the rule: what to write instead.
RULES = {
    'a relative clause without a noun': r'\b(what|who|whoever|whatever)\s+(is|are|was|were|has|have|'
    r'had|it|they|comes?|leaves?|looks?|waits?|must|may|can|cannot|does|did|goes|passes|holds?|'
    r'fits?|differs|remains|lies|hangs|depends|needs?|takes?)\b|(?<!to )\bwhom\b',
    'a pronoun for a noun (that of, such as has)': r'\b(such\s+(that|as|at|of|a\s+one)|'
    r'those\s+(that|of|which|who|with|at|it)|ones?\s+that|that\s+of\s+those)\b',
    'gone, come (write ended, arrived)': r'\bha(s|ve|d)\s+(gone|come|been\s+there)\b',
    'so many, so long (name the quantity)': r'\b(so|that)\s+(many|much|long|often)\b',
    'nobody (name the process or packet)': r'\b(no|some|every)body(\'s)?\b|\bwhoever\b',
    'behind (write after)': r'\bbehind\b',
    'told, says (write reported, contains)': r'\b(is|are|was|were)\s+(told|said|asked)\b|'
    r'\b(says|tells|knows|sees|wants|finds)\s+(what|which|where|whether|who|how|it|of|so)\b',
    'an archaic adverb': r'\b(anew|in vain|ever and again|to and fro|at hand|besides?|ever after|'
    r'hence|thereby|therein|for want of|lest|afterwards)\b',
    'mend, spoil, double, lend': r'\b(mend|spoil|grave)\w*\b|\b(doubles|lent)\b',
    'of its own': r"\bof\s+(its|their|our|his|one's)\s+own\b|\bthe\s+own\b",
    'let go, give back (write release)': r'\blet(s|ting)?\s+go\b|\bgives?\s+up\b|\bgiven?\s+back\b',
}
PATTERNS = {name: re.compile(pattern, re.I) for name, pattern in RULES.items()}
# In C: a string, a character, or a comment.
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)


def numbered(text, first=1):
    return list(enumerate(text.split('\n'), first))


def comments_of_c(text):
    for m in TOKEN.finditer(text):
        if m.group().startswith('/'):
            yield from numbered(m.group(), text.count('\n', 0, m.start()) + 1)


def comments_of_script(text):
    for number, line in numbered(text):
        if re.match(r'\s*#(?!!)', line):
            yield number, line


def lines_of_document(text):
    code = False
    for number, line in numbered(text):
        if line.startswith('```'):
            code = not code
        elif not code:
            yield number, line


def prose(path):
    """The lines of prose of a file: pairs of number and text."""
    with open(path, encoding='utf-8', errors='replace') as f:
        text = f.read()
    if path.endswith(C):
        lines = comments_of_c(text)
    elif path.endswith(SCRIPTS):
        lines = comments_of_script(text)
    else:
        lines = lines_of_document(text)
    return [(n, t) for n, t in lines if re.search('[A-Za-z]{2}', t) and 'SPDX' not in t]


def files(area):
    if os.path.isfile(area):
        return [area]
    found = []
    for folder, folders, names in os.walk(area):
        folders[:] = sorted(f for f in folders if f != 'golden')
        found += [os.path.join(folder, n) for n in sorted(names)
                  if n.endswith(C + SCRIPTS + DOCUMENTS)]
    return found


def count(area, verbose):
    """Returns the lines of prose of an area, and how many of these break a rule."""
    lines = hits = 0
    for path in files(area):
        for number, text in prose(path):
            broken = [name for name, pattern in PATTERNS.items() if pattern.search(text)]
            lines += 1
            hits += bool(broken)
            if broken and verbose:
                print(f'{path}:{number}: {", ".join(broken)}: {text.strip()}')
    return lines, hits


def budgets():
    """Area: lines with a hit per 1,000 lines of prose."""
    with open(BUDGET, encoding='utf-8') as f:
        rows = [line.split() for line in f if line.strip() and not line.startswith('#')]
    return {area: int(most) for area, most in rows}


def judge(area, per_1000, most):
    if per_1000 > most:
        return f'more than {most}; check-prose.sh -v {area} prints the lines'
    if max(per_1000, AIM) < most - SLACK:
        return f'write {max(per_1000, AIM)} instead of {most} into {BUDGET}'
    return ''


def main(arguments):
    verbose = '-v' in arguments
    areas = [a for a in arguments if a != '-v']
    allowed = budgets()
    failed = False
    for area in areas or allowed:
        lines, hits = count(area, verbose)
        per_1000 = -(-1000 * hits // lines) if lines else 0
        fault = judge(area, per_1000, allowed[area]) if area in allowed else ''
        print(f'{area}: {lines} lines of prose, {hits} with a hit, {per_1000} per 1,000'
              + (f': {fault}' if fault else ''))
        failed = failed or bool(fault) or not lines
    return failed


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
