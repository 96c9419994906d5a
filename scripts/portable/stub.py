#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Writes the source of a library for linking against an old glibc: the names and versions of this
machine's library up to the given release, each name with its newest version of these.

stub.py LIBRARY MAX SOURCE.S MAP"""
import re
import subprocess
import sys

LINE = re.compile(r'\s*\d+: \w+\s+(\w+) (\w+)\s+(\w+)\s+\w+\s+(\w+) (\S+?)@@?(GLIBC_([0-9.]+))$')
SECTION = {'OBJECT': '.bss', 'TLS': '.section .tbss,"awT",%nobits'}
KIND = {'OBJECT': 'object', 'TLS': 'tls_object'}


def numbers(version):
    return tuple(int(n) for n in version.split('.'))


def symbols(library, most):
    """Returns {name: (version, node, kind, binding, size)}."""
    table = subprocess.run(['readelf', '--dyn-syms', '-W', library], check=True, text=True,
                           capture_output=True).stdout
    found = {}
    for line in table.splitlines():
        match = LINE.match(line)
        if not match or match.group(4) == 'UND':
            continue
        size, kind, binding, _, name, node, version = match.groups()
        version = numbers(version)
        if version <= most and (name not in found or version > found[name][0]):
            found[name] = version, node, kind, binding, int(size, 0)
    return found


def main():
    library, most, source, version_map = sys.argv[1:]
    nodes = {}
    with open(source, 'w', encoding='ascii') as out:
        for name, (version, node, kind, binding, size) in sorted(
                symbols(library, numbers(most)).items()):
            nodes.setdefault((version, node), []).append(name)
            section = SECTION.get(kind, '.text')
            kind = KIND.get(kind, 'function')
            bind = '.weak' if binding == 'WEAK' else '.globl'
            out.write(f'{section}\n.balign 32\n{bind} {name}\n.type {name}, %{kind}\n'
                      f'{name}: .skip {max(size, 1)}\n.size {name}, {size}\n')
        out.write('.section .note.GNU-stack,"",%progbits\n')
    with open(version_map, 'w', encoding='ascii') as out:
        before = ''
        for (_, node), names in sorted(nodes.items()):
            hidden = '' if before else ' local: *;'
            out.write(f'{node} {{ global: {"; ".join(names)};{hidden} }} {before};\n')
            before = node


main()
