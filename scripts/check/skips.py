# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The skips that a run permits.

Each line of the file is a pattern of program names and, after white space, a regular expression
that is searched for in the line of the skip. A line that begins with # gives the reason."""

import fnmatch
import re


class Skips:
    def __init__(self, path):
        """`path` None permits every skip."""
        self.rules = None
        if path:
            with open(path, encoding='utf-8') as f:
                lines = [line.split(None, 1) for line in f if line.strip() and line[0] != '#']
            self.rules = [(name, re.compile(text.strip())) for name, text in lines]

    def forbidden(self, program, lines):
        """Returns those of the skip lines of a program that no rule permits."""
        if self.rules is None:
            return []
        return [line.strip() for line in lines
                if not any(fnmatch.fnmatchcase(program, name) and text.search(line)
                           for name, text in self.rules)]
