# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Resources for tests of the verbs in Python: a test takes one and is about ten lines long.

All are on one device and close with the test. A wait ends when the time of the whole program is up.
"""
import json
import os
import subprocess
import time
import traceback

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import (IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC,
                           IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE, IBV_QPT_RC, IBV_WR_SEND)
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

EVERY_ACCESS = (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                IBV_ACCESS_REMOTE_ATOMIC)
GID_INDEX = 0
PORT = 1
TIMES = ('age_s', 'time_ns')
ENDS = int(os.environ.get('XROCE_TEST_ENDS') or time.time() + 120)


def shown(command):
    """Returns what `xroce COMMAND --json` shows of this process, without times."""
    out = subprocess.run([os.environ['XROCE'], command, '--pid', str(os.getpid()), '--json'],
                         check=True, stdout=subprocess.PIPE).stdout
    return without_times(json.loads(out))


def without_times(value):
    if isinstance(value, dict):
        return {name: without_times(each) for name, each in value.items()
                if name not in TIMES}
    if isinstance(value, list):
        return [without_times(each) for each in value]
    return value


def differences(a, b, at=''):
    """Returns the places at which two values from JSON differ, with what is there."""
    if isinstance(a, dict) and isinstance(b, dict):
        return [line for name in {**a, **b}
                for line in differences(a.get(name), b.get(name), f'{at}.{name}')]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [line for i in range(len(a)) for line in differences(a[i], b[i], f'{at}[{i}]')]
    return [] if a == b else [f'{at}: {a} and {b}']


def in_child(function, status=0):
    """Runs `function` in a forked child. Raises unless its wait status is `status`."""
    child = os.fork()
    if not child:
        code = 1
        try:
            function()
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)
    got = os.waitpid(child, 0)[1]
    assert got == status, got


class RcEnd:
    """A reliable connected QP with a CQ of its own and a registered buffer of `size` bytes."""

    def __init__(self, context, size=4096, access=EVERY_ACCESS, depth=16):
        self.context, self.size = context, size
        self.pd = PD(context)
        self.cq = CQ(context, 2 * depth)
        self.mr = MR(self.pd, size, access)
        cap = QPCap(max_send_wr=depth, max_recv_wr=depth, max_send_sge=2, max_recv_sge=2)
        init = QPInitAttr(qp_type=IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=1)
        attr = QPAttr(port_num=PORT)
        attr.qp_access_flags = access
        self.qp = QP(self.pd, init, attr)

    def connect(self, peer):
        """Moves the QP to RTS, connected to the RcEnd `peer`."""
        attr = QPAttr(port_num=PORT)
        gid = self.context.query_gid(PORT, GID_INDEX)
        route = GlobalRoute(dgid=gid, sgid_index=GID_INDEX)
        attr.ah_attr = AHAttr(port_num=PORT, is_global=1, gr=route, dlid=0)
        attr.dest_qp_num = peer.qp.qp_num
        attr.path_mtu = self.context.query_port(PORT).active_mtu
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
        attr.timeout, attr.retry_cnt, attr.rnr_retry = 14, 7, 7
        self.qp.to_rts(attr)

    def write(self, data, offset=0):
        self.mr.write(data, len(data), offset)

    def read(self, length, offset=0):
        return self.mr.read(length, offset)

    def sge(self, length=None, offset=0):
        length = self.size - offset if length is None else length
        return SGE(self.mr.buf + offset, length, self.mr.lkey)

    def post_recv(self, length=None, offset=0, wr_id=1):
        self.qp.post_recv(RecvWR(wr_id=wr_id, sg=[self.sge(length, offset)], num_sge=1))

    def post(self, opcode=IBV_WR_SEND, length=None, offset=0, wr_id=2, remote=None):
        """Posts a send work request. `remote` is the rkey and address of an RDMA operation."""
        wr = SendWR(wr_id=wr_id, opcode=opcode, sg=[self.sge(length, offset)], num_sge=1)
        if remote:
            wr.set_wr_rdma(*remote)
        self.qp.post_send(wr)

    def remote(self, offset=0):
        """Returns the rkey and the address of the buffer at `offset`."""
        return self.mr.rkey, self.mr.buf + offset

    def wait(self):
        """Returns the next work completion."""
        while time.time() < ENDS:
            count, completions = self.cq.poll()
            if count:
                return completions[0]
        raise TimeoutError('no completion')


class RcPair:
    """Two RcEnds that are connected to each other, `a` and `b`."""

    def __init__(self, device, **options):
        self.context = Context(name=device)
        self.a, self.b = RcEnd(self.context, **options), RcEnd(self.context, **options)
        self.a.connect(self.b)
        self.b.connect(self.a)

    def close(self):
        self.context.close()
