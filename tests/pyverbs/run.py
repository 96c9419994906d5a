#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the functions of test_*.py whose names have two underscores: run.py DEVICE [PATTERN].

Prints `ok NAME` or `not ok NAME` and the traceback for each. Exit status 0 if all passed."""
import fnmatch
import glob
import importlib
import os
import sys
import traceback

here = os.path.dirname(os.path.abspath(__file__))
device, pattern = sys.argv[1], (sys.argv[2:] or ['*'])[0]
failed = ran = 0
for path in sorted(glob.glob(here + '/test_*.py')):
    module = importlib.import_module(os.path.basename(path)[:-len('.py')])
    for name, function in vars(module).items():
        if '__' not in name.strip('_') or not callable(function) or \
                not fnmatch.fnmatchcase(name, pattern):
            continue
        ran += 1
        try:
            function(device)
            print('ok', name, flush=True)
        except Exception:
            failed += 1
            print('not ok', name)
            print('# ' + traceback.format_exc().rstrip().replace('\n', '\n# '), flush=True)
sys.exit(1 if failed or not ran else 0)
