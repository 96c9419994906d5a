# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server and a client of asyncio's streams: asyncio_echo.py serve|ask ADDRESS PORT.

The client has 30 connections at once; each sends 100 messages of up to 100,000 bytes and compares
the answers, which are the messages reversed.
"""
import asyncio
import sys

CONNECTIONS, MESSAGES = 30, 100


async def answer(reader, writer):
    try:
        while True:
            n = int.from_bytes(await reader.readexactly(4), "big")
            writer.write((await reader.readexactly(n))[::-1])
            await writer.drain()
    except asyncio.IncompleteReadError:
        writer.close()


async def serve(address, port):
    server = await asyncio.start_server(answer, address, port)
    await server.serve_forever()


async def converse(address, port, number):
    reader, writer = await asyncio.open_connection(address, port)
    for i in range(MESSAGES):
        n = (i * 7919 + number * 104729) % (100000 if i % 10 == 0 else 1000)
        message = bytes((i + j) % 251 for j in range(n))
        writer.write(n.to_bytes(4, "big") + message)
        await writer.drain()
        assert await reader.readexactly(n) == message[::-1], (number, i)
    writer.close()
    await writer.wait_closed()
    return MESSAGES


async def ask(address, port):
    done = await asyncio.gather(*(converse(address, port, i) for i in range(CONNECTIONS)))
    print(f"{len(done)} connections, {sum(done)} messages")


if __name__ == "__main__":
    asyncio.run({"serve": serve, "ask": ask}[sys.argv[1]](sys.argv[2], int(sys.argv[3])))
