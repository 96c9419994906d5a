# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The scheduling of the library's threads."""
import contextlib
import os

from resources import RcPair, in_child

CPUS = os.sched_getaffinity(0)


def bind_in_real_time():
    """Binds this thread to one CPU at a real-time priority, where that is allowed."""
    os.sched_setaffinity(0, {min(CPUS)})
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))


def threads__inherit_no_real_time_policy_and_no_single_cpu(device):
    def check():
        bind_in_real_time()
        pair = RcPair(device)
        made = set(map(int, os.listdir('/proc/self/task'))) - {os.getpid()}
        assert made and {os.sched_getscheduler(thread) for thread in made} == {os.SCHED_OTHER}
        for thread in made:
            assert len(CPUS) == 1 or min(CPUS) not in os.sched_getaffinity(thread)
        pair.close()
    in_child(check)
