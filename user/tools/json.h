/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes JSON (RFC 8259), one value after another. The caller closes open levels in reverse order.
 * More than JSON_DEPTH levels are a caller's error and abort the program.
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
	bool has_values[JSON_DEPTH]; /* the next value needs a comma */
	bool is_compact;	     /* one line per document, for streams */
};

/* out belongs to the caller and stays open. */
void json_begin(struct json *j, FILE *out);
/* Ends a document with a newline. All levels must be closed. */
void json_end(struct json *j);

/*
 * Add one value each. name: its name in the open object; NULL in an array or for the document
 * itself. Text may have any bytes: control characters are escaped, bytes from 0x80 become U+FFFD.
 */
void json_object(struct json *j, const char *name);
void json_array(struct json *j, const char *name);
void json_close(struct json *j); /* the innermost object or array */
void json_text(struct json *j, const char *name, const char *value);
void json_number(struct json *j, const char *name, u64 value);
void json_signed(struct json *j, const char *name, s64 value);
/* With digits decimals; NaN and infinity become null. */
void json_real(struct json *j, const char *name, double value, u32 digits);
void json_bool(struct json *j, const char *name, bool value);
void json_null(struct json *j, const char *name);

#endif
