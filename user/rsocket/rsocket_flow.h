/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a stream may send and what it has received: buffers, credits, the peer's list. Pure; the
 * caller posts what is said here and holds the stream's lock.
 *
 * Receive buffer: two halves, used in turn. Bytes of it are in one of three states, and their
 * number is always that of the buffer: announced to the peer and not written yet (open), written
 * and not read yet (unread), read and not announced again (spent). A half is announced when all of
 * it is spent.
 *
 * Credits: a receive is posted for each message that the peer may send. `received` of them are told
 * when half of them are used. Control messages need no credit: the few of them that may be under
 * way rely on RNR retries.
 *
 * Nothing that the peer says is believed: not how much it wrote (it may not have been open), not
 * which entry it changed. Addresses and keys that it names are its own.
 */
#ifndef RSOCKET_FLOW_H
#define RSOCKET_FLOW_H

#include "rsocket_wire.h"

#define FLOW_CONTROLS 4u /* control messages under way */

/* Our list, which the peer writes at any time: two words an entry, each written as one. */
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
	u32 publish_at; /* 0 or half: what is announced next */
	u16 credits;	/* receives posted */
	u16 received;	/* messages with a credit, modulo 2^16 */
	u16 told;	/* the value of received that the peer was told */
	u64 buffer;	/* address of the receive buffer */
	u32 buffer_key;

	/* the peer's list */
	struct wire_sge list; /* length: how many entries */
	u32 list_at;	      /* the entry that is written next */
	bool swap;

	/* sending */
	u16 sent, limit;
	struct wire_sge target; /* what is left of the peer's half that is written now */
	struct flow_slot *slots;
	u32 slot;	  /* whose turn it is when target is used up */
	u32 requests;	  /* places in the send queue for messages with a credit */
	u32 controls;	  /* places for messages without */
	u32 ring_bytes, ring_at, ring_free; /* copies of what is being sent */
};

struct flow_config {
	u32 receive_bytes; /* even */
	u64 buffer;	   /* address and key of so many bytes */
	u32 buffer_key;
	u32 send_bytes;
	u32 receives, requests; /* requests: without FLOW_CONTROLS */
	struct flow_slot *slots; /* WIRE_SLOTS of zeros */
};

void flow_init(struct flow *flow, const struct flow_config *config);
/* What the peer said when it connected. */
void flow_connect(struct flow *flow, const struct wire_conn *peer);

/* ---- receiving ---- */

enum flow_verdict {
	FLOW_NOTHING,	 /* nothing for the application */
	FLOW_DATA,	 /* there is something to read */
	FLOW_CREDIT,	 /* there may be something to send */
	FLOW_IOMAP,	 /* entry wire_number() of the table changed; it is not checked here */
	FLOW_SHUTDOWN,	 /* the peer sends no more */
	FLOW_DISCONNECT, /* and receives no more */
	FLOW_VIOLATION,	 /* the connection must end */
};
enum flow_verdict flow_receive(struct flow *flow, u32 message);

/* The unread bytes that lie together: where they are in the buffer, and how many. */
u32 flow_unread(const struct flow *flow, u32 skip, u32 *offset);
/* The first n of them were read. */
void flow_read(struct flow *flow, u32 n);

/* A message that tells the peer of credits and, with sge.length, of a half. */
struct flow_update {
	u32 message;
	struct wire_sge sge; /* to be written there, as it is */
	bool with_sge;
	u64 address;
	u32 key;
};
/* Is one due, and is there a place for it? Then it is in *update and counts as under way. */
bool flow_update(struct flow *flow, struct flow_update *update);
/* A place for another control message; false: there is none. */
bool flow_control(struct flow *flow);
void flow_control_done(struct flow *flow);

/* ---- sending ---- */

/* How many bytes the next message may have; 0: none may be sent now. inlined: a message of up to so
 * many needs no room in the ring. */
u32 flow_room(struct flow *flow, u32 inlined);

struct flow_piece {
	u32 offset, bytes; /* in the ring */
};
struct flow_write {
	u32 message;
	u64 address;
	u32 key;
	struct flow_piece pieces[2]; /* none: it is posted inline */
	u32 ring_bytes;		     /* of all pieces; flow_done() wants them back */
};
/* The next message has n bytes, as many as flow_room() allows. */
void flow_write(struct flow *flow, u32 n, u32 inlined, struct flow_write *write);
/* The same of another message than data: a write without immediate data to an address of the
 * peer's, or of an entry of its table (then it needs a credit). */
void flow_place(struct flow *flow, u32 n, u32 inlined, struct flow_write *write);
void flow_count(struct flow *flow);
void flow_done(struct flow *flow, u32 ring_bytes);

#endif
