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
#ifndef RSOCKET_PROTOCOL_H
#define RSOCKET_PROTOCOL_H

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
	u32 flowinfo; /* version 6 */
	u8 bytes[16]; /* version 4: the first 4 */
};

/* Returns the length of the header: 8 or 24 bytes. */
u32 wire_put_dgram(u8 bytes[WIRE_DGRAM_MAX_BYTES], const struct wire_address *from);
/* Returns the length of the header; 0: incomplete. */
u32 wire_get_dgram(struct wire_address *from, const void *bytes, size_t n);

struct wire_udp {
	u8 op; /* WIRE_DATA: a datagram follows; WIRE_CTRL: an answer */
	u32 qpn;
	struct wire_address address; /* port and flowinfo are not sent */
};

u32 wire_put_udp(u8 bytes[WIRE_UDP_MAX_BYTES], const struct wire_udp *udp);
u32 wire_get_udp(struct wire_udp *udp, const void *bytes, size_t n);

/* ---- a stream ---- */

/*
 * Flow control of a stream: buffers, credits, the peer's list. No I/O; the caller posts the
 * messages and holds the stream's lock.
 *
 * Receive buffer: two halves, used in turn. Each byte is open (announced to the peer and not
 * written), unread (written and not read) or spent (read and not announced again). The three add up
 * to the buffer. A half is announced when all of it is spent.
 *
 * Credits: a receive is posted for each message that the peer may send. The peer gets new credits
 * when half of them are used. Control messages need no credit: the few that may be in flight rely
 * on RNR retries.
 *
 * Nothing from the peer is trusted: neither how much it wrote (the bytes may not have been open)
 * nor the entry that it changed. Addresses and keys from the peer refer to its own memory.
 */

#define STREAM_CONTROLS 4u /* control messages in flight */

/* Our list, which the peer may write at any time: two words per entry, each written atomically. */
struct credit_slot {
	_Atomic u64 address;
	_Atomic u64 key_and_length;
};
_Static_assert(sizeof(struct credit_slot) == sizeof(struct wire_sge), "written by the peer");

struct stream_credit {
	/* receiving */
	u32 half;	/* bytes of one half */
	u32 open, unread, spent;
	u32 read_at;	/* offset of the first unread byte */
	u32 publish_at; /* 0 or half: start of the half announced next */
	u16 credits;	/* receives posted */
	u16 received;	/* messages with a credit, modulo 2^16 */
	u16 told;	/* value of received last reported to the peer */
	u64 buffer;	/* address of the receive buffer */
	u32 buffer_key;

	/* the peer's list */
	struct wire_sge list; /* length: number of entries */
	u32 list_at;	      /* next entry to write */
	bool swap;

	/* sending */
	u16 sent, limit;
	struct wire_sge target; /* rest of the peer's half that is being written */
	struct credit_slot *slots;
	u32 slot;	  /* next slot when target is used up */
	u32 requests;	  /* send queue slots for messages with a credit */
	u32 controls;	  /* send queue slots for messages without a credit */
	u32 ring_bytes, ring_at, ring_free; /* copies of data in flight */
};

struct credit_config {
	u32 receive_bytes; /* even */
	u64 buffer;	   /* address of the receive buffer */
	u32 buffer_key;
	u32 send_bytes;
	u32 receives, requests;	   /* requests: without STREAM_CONTROLS */
	struct credit_slot *slots; /* WIRE_SLOTS entries of zeros */
};

void stream_credit_init(struct stream_credit *credit, const struct credit_config *config);
/* Takes the peer's parameters of the connection. */
void stream_credit_connect(struct stream_credit *credit, const struct wire_conn *peer);

enum message_verdict {
	MESSAGE_NOTHING,    /* nothing for the application */
	MESSAGE_DATA,	    /* there is something to read */
	MESSAGE_CREDIT,	    /* there may be something to send */
	MESSAGE_IOMAP,	    /* the peer wrote entry wire_number() of the table; not checked here */
	MESSAGE_SHUTDOWN,   /* the peer sends no more */
	MESSAGE_DISCONNECT, /* and receives no more */
	MESSAGE_VIOLATION,  /* the connection must end */
};
enum message_verdict stream_credit_receive(struct stream_credit *credit, u32 message);

/* Returns the contiguous unread bytes after `skip`, and their offset in the buffer. */
u32 stream_credit_unread(const struct stream_credit *credit, u32 skip, u32 *offset);
/* The application has read n bytes. */
void stream_credit_read(struct stream_credit *credit, u32 n);

/* A message with new credits and, if with_sge, a half of the buffer. */
struct credit_update {
	u32 message;
	struct wire_sge sge; /* to be written there, as it is */
	bool with_sge;
	u64 address;
	u32 key;
};
/* Fills in *update if one is due and a slot is free; it then counts as in flight. */
bool stream_credit_update(struct stream_credit *credit, struct credit_update *update);
/* Takes a slot for another control message; false: none free. */
bool stream_credit_control(struct stream_credit *credit);
void stream_credit_control_done(struct stream_credit *credit);

/* Returns the limit of the next message; 0: none now. Up to `inlined` bytes need no ring space. */
u32 stream_credit_room(struct stream_credit *credit, u32 inlined);

struct credit_piece {
	u32 offset, bytes; /* in the ring */
};
struct credit_write {
	u32 message;
	u64 address;
	u32 key;
	struct credit_piece pieces[2]; /* none: posted inline */
	u32 ring_bytes;		       /* of all pieces; to be returned by stream_credit_done() */
};
/* Describes the next message, of n bytes, at most stream_credit_room(). */
void stream_credit_write(struct stream_credit *credit, u32 n, u32 inlined,
			 struct credit_write *write);
/* The same for a WRITE elsewhere in the peer's memory. In its table: stream_credit_count(), too. */
void stream_credit_place(struct stream_credit *credit, u32 n, u32 inlined,
			 struct credit_write *write);
void stream_credit_count(struct stream_credit *credit);
void stream_credit_done(struct stream_credit *credit, u32 ring_bytes);

#endif
