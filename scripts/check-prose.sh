#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Counts lines of comments and documents that break a rule of plain English, for each area of
# scripts/check/prose.budget, and fails if an area has more than its budget.
#
# check-prose.sh [-v] [PATH...]
#   -v	print each line that breaks a rule, with the name of the rule
cd "$(dirname "$0")/.." || exit 1
exec "$(command -v /usr/bin/python3 || echo python3)" scripts/check/prose.py "$@"
