# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A process that forks with connected QPs: nothing that the child does reaches the parent."""
import os
import resource
import signal

from pyverbs.enums import IBV_QPT_RC, IBV_WC_SUCCESS
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr

from resources import RcPair, differences, in_child, shown

COMMANDS = ('qp', 'cq', 'srq', 'mr', 'stat')


class Shown:
    """A connected pair, and an SRQ with a QP. What the commands show of them stays the same."""

    def __init__(self, device):
        self.pair = RcPair(device)
        a = self.pair.a
        self.srq = SRQ(a.pd, SrqInitAttr(SrqAttr(max_wr=8)))
        self.qp = QP(a.pd, QPInitAttr(qp_type=IBV_QPT_RC, scq=a.cq, rcq=a.cq, srq=self.srq,
                                      cap=QPCap(max_send_wr=1, max_send_sge=1)))
        self.exchange(b'before')
        self.before = self.now()
        assert len(self.before['qp']['qps']) == 3 and len(self.before['cq']['cqs']) == 2
        assert len(self.before['mr']['mrs']) == 2 and len(self.before['srq']['srqs']) == 1
        assert self.before['stat']['ports'][0]['counters']['tx_packets'] > 0, self.before

    def now(self):
        return {command: shown(command) for command in COMMANDS}

    def exchange(self, data):
        """Sends a message from A to B."""
        a, b = self.pair.a, self.pair.b
        a.write(data)
        b.post_recv()
        a.post(length=len(data))
        assert b.wait().status == a.wait().status == IBV_WC_SUCCESS
        assert b.read(len(data)) == data

    def check(self):
        changes = differences(self.before, self.now())
        assert not changes, changes
        self.exchange(b'after')
        self.pair.close()


def fork__a_child_that_exits_changes_nothing_shown(device):
    objects = Shown(device)
    in_child(lambda: None)
    objects.check()


def fork__a_child_that_closes_its_copies_changes_nothing_shown(device):
    objects = Shown(device)
    in_child(objects.pair.close)
    objects.check()


def fork__the_childs_device_is_another(device):
    objects = Shown(device)

    def own_device():
        objects.pair.close()
        Shown(device).check()
    if os.environ.get('XROCE_SHARE') != 'never':
        in_child(own_device)
    objects.check()


def fork__a_child_without_memory_does_not_share_the_parents(device):
    objects = Shown(device)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    # mmap(2) fails for each new mapping, in the place of others too; fork() does not
    resource.setrlimit(resource.RLIMIT_AS, (1 << 20, limits[1]))
    try:
        in_child(lambda: None, signal.SIGABRT)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    objects.check()
