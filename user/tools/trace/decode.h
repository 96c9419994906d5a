/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decodes RoCEv2 packets and engine events as text and JSON. */
#ifndef TRACE_DECODE_H
#define TRACE_DECODE_H

#include <xroce/trace.h>

#include "../../engine/packet.h"
#include "../json.h"

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
void decode_event(const struct xroce_told *told, char *text, size_t n);
void decode_event_json(const struct xroce_told *told, struct json *j);
/* Returns true for an event that reports a fault. */
bool decode_event_is_trouble(const struct xroce_told *told);

#endif
