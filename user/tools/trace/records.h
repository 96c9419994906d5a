/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records of traced processes (xroce/trace.h), from the batch that a process writes to text. Reads
 * batches, splits records into packets, merges the records of several rings by time, and decodes
 * packets and engine events as text and JSON. Pure.
 */
#ifndef TRACE_RECORDS_H
#define TRACE_RECORDS_H

#include <xroce/trace.h>

#include "../../engine/gso.h"
#include "../../engine/packet.h"
#include "../../engine/types.h"
#include "../json.h"

/* ---- a batch ---- */

/*
 * Reads a batch of records from a process (struct xroce_trace_record). Its content is not trusted:
 * records that are whole and of a valid kind are returned, and the first other record ends the
 * batch.
 */
struct trace_record {
	const u8 *bytes;
	u32 at, size;
};

void trace_record_begin(struct trace_record *t, const u8 *bytes, u32 size);
/* Sets *data to entry->size bytes of a packet; an event has none. Returns false at the end. */
bool trace_record_next(struct trace_record *t, struct xroce_trace_entry *entry, const u8 **data);

/* ---- packets of a record ---- */

/*
 * Splits a record into packets as on the wire: a super-packet, not yet segmented, is segmented
 * here.
 */
struct packets {
	struct xroce_record *record;
	u32 have;	/* bytes of the record's packet data */
	u32 num;	/* packets in it; 1 for a single packet or an incomplete super-packet */
	u32 next;
	bool ids_are_unknown;
	bool is_cut_off; /* a super-packet that is truncated and cannot be segmented */
	struct segments segments;
};

struct one_packet {
	const u8 *data;
	u32 have;	/* bytes of data */
	u32 len;	/* bytes of the packet */
	u32 nth;	/* index from 1 to num */
};

/*
 * r has size bytes; the caller keeps it unchanged until the last packet. ids_are_unknown: the
 * packet is from a UDP socket, which does not show its IPv4 identification; an identification
 * that explains the ICRC is written into it.
 */
void packets_begin(struct packets *p, struct xroce_record *r, u32 size, bool ids_are_unknown);
/* Returns false after the last packet. *out is valid until the next call. */
bool packets_next(struct packets *p, struct one_packet *out);

/* ---- merging ---- */

/*
 * Records of several rings, merged by time. The rings are read one after the other, so a record may
 * be older than one that was read earlier. Records are therefore held for RECORDS_WINDOW_NS.
 */

/* Longest time from a record's timestamp until it is readable; slower records come out of order. */
#define RECORDS_WINDOW_NS (50 * NSEC_PER_MSEC)

struct traced;

struct held_record {
	u64 time_ns;
	u64 nth; /* sequence number over all rings: keeps the order of equal times */
	u32 size;
	struct traced *from;
	struct xroce_record *record;
};

struct records {
	struct held_record *of;
	u32 num, room;
	u64 count;   /* of all records so far */
	u64 last_ns; /* of the last record delivered */
	u64 late;    /* records delivered after one with a later time */
};

/* r has size bytes in a private copy, valid until the function returns. */
typedef void traced_fn(void *arg, struct traced *from, struct xroce_record *r, u32 size);

/* Holds a copy of a record: its header and bytes of data. Returns 0 or -ENOMEM. */
int records_put(struct records *s, struct traced *from, const struct xroce_record *head,
		const void *data, u32 bytes);
/* Calls fn for each record older than until_ns (NSEC_NEVER: all). Returns their number. */
u32 records_give(struct records *s, u64 until_ns, traced_fn *fn, void *arg);
void records_free(struct records *s);

/* ---- decoding ---- */

#define DECODE_TEXT 512

/* Parses a whole frame. Returns false if the library would not accept it. */
bool decode_parse(const u8 *frame, u32 len, struct packet *p);
/* Formats opcode and headers, for example "RC SEND_ONLY QP 17 PSN 4711, payload 64". */
void decode_text(const struct packet *p, char *text, size_t n);
/* Adds the same facts to the open object. */
void decode_json(const struct packet *p, struct json *j);
/* Returns true for a NAK, an RNR NAK, a CNP or a packet marked "congestion experienced". */
bool decode_is_trouble(const struct packet *p);

/* Returns the text of a drop reason and sets its name; "unknown" for other numbers. */
const char *decode_drop(u8 drop, const char **name);

/* Returns an event's name, or "unknown". */
const char *decode_event_name(u8 event);
/* Formats an event, for example "sequence NAK received: the peer misses packets". */
void decode_event(const struct xroce_trace_entry *entry, char *text, size_t n);
void decode_event_json(const struct xroce_trace_entry *entry, struct json *j);
/* Returns true for an event that reports a fault. */
bool decode_event_is_trouble(const struct xroce_trace_entry *entry);

#endif
