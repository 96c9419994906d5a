# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server and a client on pyverbs: messages over an RC queue pair, whose bytes both ends check.

rc_pair.py DEVICE [ADDRESS]: the client has the server's address. Both print `rc_pair: N messages
right` and exit with 0 if so.
"""
import json
import socket
import sys

from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.device import Context
from pyverbs.enums import IBV_WC_SUCCESS
from pyverbs.qp import QPAttr

from resources import GID_INDEX, PORT, RcEnd

TCP_PORT = 18520
MESSAGES, SIZE = 100, 10000
RECEIVED, SENT = 1, 2


def greet(address):
    """Returns two streams to the other end, for reading and writing."""
    if address:
        peer = socket.create_connection((address, TCP_PORT))
    else:
        with socket.create_server(('', TCP_PORT)) as listener:
            peer = listener.accept()[0]
    return peer.makefile('r'), peer.makefile('w')


def exchange(streams, value):
    reader, writer = streams
    writer.write(json.dumps(value) + '\n')
    writer.flush()
    return json.loads(reader.readline())


def connect(end, qp_num, gid):
    attr = QPAttr(port_num=PORT)
    route = GlobalRoute(dgid=GID(gid), sgid_index=GID_INDEX)
    attr.ah_attr = AHAttr(port_num=PORT, is_global=1, gr=route, dlid=0)
    attr.dest_qp_num = qp_num
    attr.path_mtu = end.context.query_port(PORT).active_mtu
    attr.timeout, attr.retry_cnt, attr.rnr_retry = 18, 7, 7
    end.qp.to_rts(attr)


def expected(number, is_servers):
    return bytes((number + 3 * at + is_servers) % 256 for at in range(SIZE))


def completed(end, wr_ids):
    """Waits for the completions of these work requests, in any order."""
    left = set(wr_ids)
    while left:
        completion = end.wait()
        assert completion.status == IBV_WC_SUCCESS, completion.status
        left.remove(completion.wr_id)


def send(end, number, is_server):
    end.write(expected(number, is_server))
    end.post(length=SIZE, wr_id=SENT)


def received(end, number, is_servers):
    assert end.read(SIZE, SIZE) == expected(number, is_servers), number


def main(device, address=None):
    streams = greet(address)
    context = Context(name=device)
    end = RcEnd(context, size=2 * SIZE)
    gid = context.query_gid(PORT, GID_INDEX)
    connect(end, *exchange(streams, (end.qp.qp_num, str(gid))))
    is_server = not address
    for number in range(MESSAGES):
        end.post_recv(SIZE, SIZE, wr_id=RECEIVED)
        exchange(streams, number)    # the receive of the other end is posted
        if is_server:
            completed(end, [RECEIVED])
            received(end, number, False)
            send(end, number, True)
            completed(end, [SENT])
        else:
            send(end, number, False)
            completed(end, [SENT, RECEIVED])
            received(end, number, True)
    exchange(streams, MESSAGES)      # the last message is acknowledged
    print(f'rc_pair: {MESSAGES} messages right')
    context.close()


main(*sys.argv[1:])
