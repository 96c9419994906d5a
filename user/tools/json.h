/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Builds JSON documents by json-c, one value after another, and prints each when it is whole. The
 * caller closes open levels in reverse order. More than JSON_DEPTH levels are a caller's error and
 * abort the program, which exits if memory runs out.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdbool.h>
#include <stdio.h>

#include "../engine/types.h"

#define JSON_DEPTH 16

struct json_object;

struct json {
	FILE *out;
	u32 depth;
	struct json_object *open[JSON_DEPTH]; /* open[0] holds all others */
	bool is_compact;		      /* one line per document, for streams */
};

/* out belongs to the caller and stays open. */
void json_begin(struct json *j, FILE *out);
/* Prints the document, which is an object or an array, and a newline. */
void json_end(struct json *j);

/*
 * Add one value each. name: its name in the open object; NULL in an array or for the document
 * itself. Text may have any bytes: control characters are escaped, bytes from 0x7f become U+FFFD.
 */
void json_open_object(struct json *j, const char *name);
void json_open_array(struct json *j, const char *name);
void json_close(struct json *j); /* the innermost object or array */
void json_text(struct json *j, const char *name, const char *value);
void json_number(struct json *j, const char *name, u64 value);
void json_signed(struct json *j, const char *name, s64 value);
/* With digits decimals; NaN and infinity become null. */
void json_real(struct json *j, const char *name, double value, u32 digits);
void json_boolean(struct json *j, const char *name, bool value);
void json_null(struct json *j, const char *name);

#endif
