# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""RC between two QPs of one device."""
from pyverbs.enums import (IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR,
                           IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE)

from resources import RcPair


def send__arrives_whole(device):
    pair = RcPair(device)
    pair.a.write(b'abcdefg' * 100)
    pair.b.post_recv()
    pair.a.post(length=700)
    received, sent = pair.b.wait(), pair.a.wait()
    assert (received.status, received.byte_len, received.wr_id) == (IBV_WC_SUCCESS, 700, 1)
    assert received.src_qp == pair.a.qp.qp_num and (sent.status, sent.wr_id) == (IBV_WC_SUCCESS, 2)
    assert pair.b.read(700) == b'abcdefg' * 100
    pair.close()


def write__changes_its_bytes_alone(device):
    pair = RcPair(device, size=64)
    pair.b.write(b'-' * 64)
    pair.a.write(b'x' * 64)
    pair.a.post(IBV_WR_RDMA_WRITE, length=10, remote=pair.b.remote(5))
    assert pair.a.wait().status == IBV_WC_SUCCESS
    assert pair.b.read(64) == b'-' * 5 + b'x' * 10 + b'-' * 49
    pair.close()


def read__beyond_the_region_is_refused(device):
    pair = RcPair(device, size=64)
    pair.a.post(IBV_WR_RDMA_READ, remote=pair.b.remote(1))
    pair.a.post(IBV_WR_RDMA_READ, wr_id=3, remote=pair.b.remote())
    assert pair.a.wait().status == IBV_WC_REM_ACCESS_ERR
    flushed = pair.a.wait()
    assert (flushed.status, flushed.wr_id) == (IBV_WC_WR_FLUSH_ERR, 3)
    pair.close()
