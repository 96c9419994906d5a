/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What rsockets say to each other, byte for byte as rdma-core's do. Pure.
 *
 * A stream is an RC connection. Each end has a receive buffer in two halves, and a list of two
 * entries into which the peer writes where its halves are. Data goes by RDMA WRITE into the half
 * that the list names. Every message ends with 32 bits of immediate data: 3 bits say what it is,
 * 29 carry a number.
 *
 *   WIRE_DATA    n bytes were written into the buffer
 *   WIRE_SGL     n messages may be sent in all (modulo 2^16), and the list may have a new entry
 *   WIRE_IOMAP   entry n of the table of mapped buffers was written
 *   WIRE_CTRL    enum wire_ctrl
 *
 * Where the buffers are first is told in the private data of the connection's REQ and REP. A
 * datagram goes by UD SEND behind a struct wire_dgram; while the peer's QPN is unknown it goes by
 * UDP, behind a struct wire_udp that tells the sender's.
 */
#ifndef RSOCKET_WIRE_H
#define RSOCKET_WIRE_H

#include "../engine/types.h"

enum wire_op { WIRE_DATA = 0, WIRE_SGL = 4, WIRE_IOMAP = 6, WIRE_CTRL = 7 };
enum wire_ctrl { WIRE_DISCONNECT = 0, WIRE_KEEPALIVE = 1, WIRE_SHUTDOWN = 2 };

#define WIRE_NUMBER_BITS 29
#define WIRE_NUMBER_MAX	 ((1u << WIRE_NUMBER_BITS) - 1)

static inline u32 wire_message(enum wire_op op, u32 number)
{
	return (u32)op << WIRE_NUMBER_BITS | (number & WIRE_NUMBER_MAX);
}

static inline enum wire_op wire_op(u32 message)
{
	return (enum wire_op)(message >> WIRE_NUMBER_BITS);
}

static inline u32 wire_number(u32 message)
{
	return message & WIRE_NUMBER_MAX;
}

/* An entry of the list and of the table: written by the peer, in the byte order of the host that
 * reads it. */
struct wire_sge {
	u64 address;
	u32 key;
	u32 length;
};
_Static_assert(sizeof(struct wire_sge) == 16, "on the wire");

struct wire_iomap {
	u64 offset;
	struct wire_sge sge;
};
_Static_assert(sizeof(struct wire_iomap) == 24, "on the wire");

#define WIRE_SLOTS 2u /* entries of our list; the table of mapped buffers follows it */

/* The same in the other byte order. */
struct wire_sge wire_swap_sge(struct wire_sge sge);

/* ---- private data of REQ and REP ---- */

#define WIRE_CONN_BYTES 40u

struct wire_conn {
	bool big_endian;	/* the byte order in which this host reads its list and table */
	bool iomap;		/* it has a table behind the list, of iomap_size entries */
	u16 credits;		/* messages that may be sent to it at first */
	u32 iomap_size;		/* up to 128, or a multiple of 256 */
	struct wire_sge list;	/* length: how many entries */
	struct wire_sge buffer; /* the first half */
};

void wire_put_conn(u8 bytes[WIRE_CONN_BYTES], const struct wire_conn *conn);
/* False: of another version, shorter than it must be, or with a list of no entries. */
bool wire_get_conn(struct wire_conn *conn, const void *bytes, size_t n);

/* The size of a table that 8 bits can tell, near n. */
u32 wire_iomap_size(u32 n);

/* ---- datagrams ---- */

#define WIRE_DGRAM_BYTES     2048u /* a datagram's room, with its header */
#define WIRE_DGRAM_MAX_BYTES 24u   /* of a header before a UD datagram */
#define WIRE_UDP_MAX_BYTES   28u   /* of a header before a UDP datagram */

struct wire_address {
	u8 version; /* 4 or 6 */
	u16 port;
	u32 flow;     /* version 6 */
	u8 bytes[16]; /* version 4: the first 4 */
};

/* Returns how many bytes the header has: 8 or 24. */
u32 wire_put_dgram(u8 bytes[WIRE_DGRAM_MAX_BYTES], const struct wire_address *from);
/* Returns the header's bytes, 0: there is no whole header. */
u32 wire_get_dgram(struct wire_address *from, const void *bytes, size_t n);

struct wire_udp {
	u8 op; /* WIRE_DATA: a datagram follows; WIRE_CTRL: an answer */
	u32 qpn;
	struct wire_address address; /* port and flow are not sent */
};

u32 wire_put_udp(u8 bytes[WIRE_UDP_MAX_BYTES], const struct wire_udp *udp);
u32 wire_get_udp(struct wire_udp *udp, const void *bytes, size_t n);

#endif
