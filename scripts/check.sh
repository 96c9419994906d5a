#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Builds and runs the tests: check.sh [OPTION...] [PROGRAM...]; --help lists the options. Without
# any it runs the core.
#
#   check.sh netns-data                            one program
#   check.sh --repeat 20 --load 4 netns-data       20 times, under the load of four processes
#   check.sh --part netns                          all programs of a part
#   check.sh --tier all                            everything
cd "$(dirname "$0")/.." || exit 1
# The interpreter itself, where python3 is a script that looks for it.
exec "$(command -v /usr/bin/python3 || echo python3)" scripts/check/main.py "$@"
