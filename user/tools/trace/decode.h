/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RoCEv2 packets and what engines note of QPs, in words and in JSON. */
#ifndef TRACE_DECODE_H
#define TRACE_DECODE_H

#include <xroce/trace.h>

#include "../../engine/packet.h"
#include "../json.h"

#define DECODE_TEXT 512

/* A whole frame: false if it is no packet that the library would read. */
bool decode_parse(const u8 *frame, u32 len, struct packet *p);
/* Its opcode and what the headers say, as "RC SEND_ONLY QP 17 PSN 4711, 64 bytes". */
void decode_text(const struct packet *p, char *text, size_t n);
/* The same as values of the object that is open. */
void decode_json(const struct packet *p, struct json *j);
/* Is it a refusal: a NAK, or a packet that says that there was congestion? */
bool decode_is_trouble(const struct packet *p);

/* The reason's name and text; "unknown" for a number that is none. */
const char *decode_drop(u8 drop, const char **name);

/* An event's name; "unknown". */
const char *decode_event_name(u8 event);
/* What it says, as "sequence NAK received: the peer misses packets". */
void decode_event(const struct xroce_told *told, char *text, size_t n);
void decode_event_json(const struct xroce_told *told, struct json *j);
/* Does it tell of something that went wrong? */
bool decode_event_is_trouble(const struct xroce_told *told);

#endif
