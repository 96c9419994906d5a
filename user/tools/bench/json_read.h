/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads JSON (RFC 8259) strictly into a tree: input that the RFC forbids is refused. Depth and
 * bytes are bounded. Pure except for malloc().
 *
 * A file may come from another host, and its text is printed, so control characters are replaced.
 */
#ifndef BENCH_JSON_READ_H
#define BENCH_JSON_READ_H

#include "../../engine/types.h"

#define JSON_READ_DEPTH 32u
#define JSON_READ_BYTES (64u << 20)

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_TEXT, JSON_ARRAY, JSON_OBJECT };

struct json_value {
	enum json_kind kind;
	bool is_true;		   /* BOOL */
	double number;		   /* NUMBER */
	char *text;		   /* TEXT: printable ASCII, '?' for other characters */
	char *name;		   /* like text, for a member of an object; else NULL */
	struct json_value *first;  /* of ARRAY and OBJECT */
	struct json_value *next;
};

/*
 * Returns the document in len bytes of text. Returns NULL if it is malformed, too deep, or memory
 * runs out; *at is then the offset of the fault. The caller frees it with json_read_free(), which
 * accepts NULL.
 */
struct json_value *json_read(const char *text, size_t len, size_t *at);
void json_read_free(struct json_value *v);

/* Returns a member of an object, the first of that name; NULL if none, or if v is not an object. */
const struct json_value *json_member(const struct json_value *v, const char *name);
/* Returns the member's number, or otherwise. */
double json_number_of(const struct json_value *v, const char *name, double otherwise);
/* Returns the member's text, or "". */
const char *json_text_of(const struct json_value *v, const char *name);

#endif
