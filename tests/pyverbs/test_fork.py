# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A process that forks with connected QPs: nothing that the child does reaches the parent."""
from pyverbs.enums import IBV_WC_SUCCESS

from resources import RcPair, in_child, shown_qp


def fork__the_parents_qps_are_shown_as_before(device):
    pair = RcPair(device)
    before = [shown_qp(end.qp.qp_num) for end in (pair.a, pair.b)]
    assert [qp['state'] for qp in before] == ['rts', 'rts'], before
    in_child(lambda: None)
    assert [shown_qp(end.qp.qp_num) for end in (pair.a, pair.b)] == before
    pair.close()


def fork__a_child_that_closes_its_copies_changes_nothing_shown(device):
    pair = RcPair(device)
    before = [shown_qp(end.qp.qp_num) for end in (pair.a, pair.b)]
    in_child(pair.close)
    assert [shown_qp(end.qp.qp_num) for end in (pair.a, pair.b)] == before
    pair.a.write(b'after')
    pair.b.post_recv()
    pair.a.post(length=5)
    assert pair.b.wait().status == pair.a.wait().status == IBV_WC_SUCCESS
    assert pair.b.read(5) == b'after'
    pair.close()
