/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes JSON (RFC 8259), a value after the other, as it comes. What is open is closed by the
 * caller in the reverse order; more than JSON_DEPTH levels are a mistake of the caller's, and end
 * the program.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdbool.h>
#include <stdio.h>

#include "../engine/types.h"

#define JSON_DEPTH 16

struct json {
	FILE *out;
	u32 depth;
	bool is_array[JSON_DEPTH];
	bool has_values[JSON_DEPTH]; /* a comma comes before the next */
	bool is_compact;	     /* one line for all, as for a stream of documents */
};

/* out is the caller's and stays open. */
void json_begin(struct json *j, FILE *out);
/* The end of a document: a newline. Everything is closed. */
void json_end(struct json *j);

/*
 * One value each. name: its name in the object that is open; NULL in an array, or of the document
 * itself. Text may be any bytes: what is no printable ASCII is escaped, bytes from 0x80 on are
 * U+FFFD.
 */
void json_object(struct json *j, const char *name);
void json_array(struct json *j, const char *name);
void json_close(struct json *j); /* the innermost of both */
void json_text(struct json *j, const char *name, const char *value);
void json_number(struct json *j, const char *name, u64 value);
void json_signed(struct json *j, const char *name, s64 value);
/* With so many digits behind the point; what is no number (NaN, infinite) becomes null. */
void json_real(struct json *j, const char *name, double value, u32 digits);
void json_bool(struct json *j, const char *name, bool value);
void json_null(struct json *j, const char *name);

#endif
