/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
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
#ifndef RSOCKET_FLOW_H
#define RSOCKET_FLOW_H

#include "rsocket_wire.h"

#define FLOW_CONTROLS 4u /* control messages in flight */

/* Our list, which the peer may write at any time: two words per entry, each written atomically. */
struct flow_slot {
	_Atomic u64 address;
	_Atomic u64 key_and_length;
};
_Static_assert(sizeof(struct flow_slot) == sizeof(struct wire_sge), "written by the peer");

struct flow {
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
	struct flow_slot *slots;
	u32 slot;	  /* next slot when target is used up */
	u32 requests;	  /* send queue slots for messages with a credit */
	u32 controls;	  /* send queue slots for messages without a credit */
	u32 ring_bytes, ring_at, ring_free; /* copies of data in flight */
};

struct flow_config {
	u32 receive_bytes; /* even */
	u64 buffer;	   /* address of the receive buffer */
	u32 buffer_key;
	u32 send_bytes;
	u32 receives, requests; /* requests: without FLOW_CONTROLS */
	struct flow_slot *slots; /* WIRE_SLOTS entries of zeros */
};

void flow_init(struct flow *flow, const struct flow_config *config);
/* Takes the peer's parameters of the connection. */
void flow_connect(struct flow *flow, const struct wire_conn *peer);

/* ---- receiving ---- */

enum flow_verdict {
	FLOW_NOTHING,	 /* nothing for the application */
	FLOW_DATA,	 /* there is something to read */
	FLOW_CREDIT,	 /* there may be something to send */
	FLOW_IOMAP,	 /* the peer wrote entry wire_number() of the table; not checked here */
	FLOW_SHUTDOWN,	 /* the peer sends no more */
	FLOW_DISCONNECT, /* and receives no more */
	FLOW_VIOLATION,	 /* the connection must end */
};
enum flow_verdict flow_receive(struct flow *flow, u32 message);

/* Returns the contiguous unread bytes after `skip`, and their offset in the buffer. */
u32 flow_unread(const struct flow *flow, u32 skip, u32 *offset);
/* The application has read n bytes. */
void flow_read(struct flow *flow, u32 n);

/* A message with new credits and, if with_sge, a half of the buffer. */
struct flow_update {
	u32 message;
	struct wire_sge sge; /* to be written there, as it is */
	bool with_sge;
	u64 address;
	u32 key;
};
/* Fills in *update if one is due and a slot is free; it then counts as in flight. */
bool flow_update(struct flow *flow, struct flow_update *update);
/* Takes a slot for another control message; false: none free. */
bool flow_control(struct flow *flow);
void flow_control_done(struct flow *flow);

/* ---- sending ---- */

/* Returns the limit of the next message; 0: none now. Up to `inlined` bytes need no ring space. */
u32 flow_room(struct flow *flow, u32 inlined);

struct flow_piece {
	u32 offset, bytes; /* in the ring */
};
struct flow_write {
	u32 message;
	u64 address;
	u32 key;
	struct flow_piece pieces[2]; /* none: posted inline */
	u32 ring_bytes;		     /* of all pieces; to be returned by flow_done() */
};
/* Describes the next message, of n bytes, at most flow_room(). */
void flow_write(struct flow *flow, u32 n, u32 inlined, struct flow_write *write);
/* The same for a WRITE elsewhere in the peer's memory; in its table, flow_count() as well. */
void flow_place(struct flow *flow, u32 n, u32 inlined, struct flow_write *write);
void flow_count(struct flow *flow);
void flow_done(struct flow *flow, u32 ring_bytes);

#endif
