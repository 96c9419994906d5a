/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads JSON (RFC 8259) into a tree, strictly: what no writer may write is refused. Bounded in
 * depth and in bytes. Pure but for malloc().
 *
 * A file may come from another host, and its text is printed: no character of it controls a
 * terminal.
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
	char *name;		   /* the same, in an object, else NULL */
	struct json_value *first;  /* of ARRAY and OBJECT */
	struct json_value *next;
};

/*
 * The document in len bytes of text, or NULL: it is no JSON, too deep, or there is no memory; *at
 * is then the offset at which it is wrong. The caller frees it by json_read_free(), which takes
 * NULL.
 */
struct json_value *json_read(const char *text, size_t len, size_t *at);
void json_read_free(struct json_value *v);

/* A member of an object, or NULL; also of what is no object. The first of several. */
const struct json_value *json_member(const struct json_value *v, const char *name);
/* Its number, or otherwise if there is none. */
double json_number_of(const struct json_value *v, const char *name, double otherwise);
/* Its text, or "" if there is none. */
const char *json_text_of(const struct json_value *v, const char *name);

#endif
