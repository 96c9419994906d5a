/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The protocol between rsockets, byte for byte as in rdma-core. No I/O.
 *
 * A stream is an RC connection. Each end has a receive buffer in two halves, and a list of two
 * entries into which the peer writes the addresses of its halves. Data is sent by RDMA WRITE into
 * the half in the list. Every message ends with 32 bits of immediate data: a 3-bit operation and a
 * 29-bit number n.
 *
 *   WIRE_DATA    n bytes were written into the buffer
 *   WIRE_SGL     total number of messages permitted (modulo 2^16); the list may have a new entry
 *   WIRE_IOMAP   entry n of the table of mapped buffers was written
 *   WIRE_CTRL    enum wire_ctrl
 *
 * The private data of REQ and REP contain the first half and the list. A datagram follows a struct
 * wire_dgram in a UD SEND. While the peer's QPN is unknown, it follows a struct wire_udp with the
 * sender's QPN in a UDP packet.
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

/* An entry of the list or the table: written by the peer, in the byte order of the reading host. */
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

#define WIRE_SLOTS 2u /* entries of our list; the table of mapped buffers follows */

/* Converts to the other byte order. */
struct wire_sge wire_swap_sge(struct wire_sge sge);

/* ---- private data of REQ and REP ---- */

#define WIRE_CONN_BYTES 40u

struct wire_conn {
	bool big_endian;	/* byte order in which this host reads its list and table */
	bool iomap;		/* has a table after the list, of iomap_size entries */
	u16 credits;		/* initial credits: messages that may be sent to it */
	u32 iomap_size;		/* up to 128, or a multiple of 256 */
	struct wire_sge list;	/* length: number of entries */
	struct wire_sge buffer; /* the first half */
};

void wire_put_conn(u8 bytes[WIRE_CONN_BYTES], const struct wire_conn *conn);
/* Returns false if the version differs, the data is too short, or the list is empty. */
bool wire_get_conn(struct wire_conn *conn, const void *bytes, size_t n);

/* Returns the size of a table, near n, that 8 bits can encode. */
u32 wire_iomap_size(u32 n);

/* ---- datagrams ---- */

#define WIRE_DGRAM_BYTES     2048u /* room of a datagram with its header */
#define WIRE_DGRAM_MAX_BYTES 24u   /* maximum header of a UD datagram */
#define WIRE_UDP_MAX_BYTES   28u   /* maximum header of a UDP datagram */

struct wire_address {
	u8 version; /* 4 or 6 */
	u16 port;
	u32 flow;     /* version 6 */
	u8 bytes[16]; /* version 4: the first 4 */
};

/* Returns the length of the header: 8 or 24 bytes. */
u32 wire_put_dgram(u8 bytes[WIRE_DGRAM_MAX_BYTES], const struct wire_address *from);
/* Returns the length of the header; 0: incomplete. */
u32 wire_get_dgram(struct wire_address *from, const void *bytes, size_t n);

struct wire_udp {
	u8 op; /* WIRE_DATA: a datagram follows; WIRE_CTRL: an answer */
	u32 qpn;
	struct wire_address address; /* port and flow are not sent */
};

u32 wire_put_udp(u8 bytes[WIRE_UDP_MAX_BYTES], const struct wire_udp *udp);
u32 wire_get_udp(struct wire_udp *udp, const void *bytes, size_t n);

#endif
