/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A recursive descent parser with a bounded cursor. */
#include "json_read.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

struct json_cursor {
	const char *at, *end;
};

static struct json_value *json_read_value(struct json_cursor *c, u32 depth);

static void json_skip_space(struct json_cursor *c)
{
	while (c->at < c->end && strchr(" \t\r\n", *c->at) && *c->at)
		c->at++;
}

/* Consumes the character if it is next. */
static bool json_take(struct json_cursor *c, char wanted)
{
	if (c->at == c->end || *c->at != wanted)
		return false;
	c->at++;
	return true;
}

static bool json_take_word(struct json_cursor *c, const char *word)
{
	const size_t len = strlen(word);

	if ((size_t)(c->end - c->at) < len || memcmp(c->at, word, len))
		return false;
	c->at += len;
	return true;
}

static struct json_value *json_new(enum json_kind kind)
{
	struct json_value *v = calloc(1, sizeof(*v));

	if (v)
		v->kind = kind;
	return v;
}

void json_read_free(struct json_value *v)
{
	while (v) {
		struct json_value *next = v->next;

		json_read_free(v->first);
		free(v->text);
		free(v->name);
		free(v);
		v = next;
	}
}

/* ---- text ---- */

/* Reads an escape after its backslash. Returns false if invalid. */
static bool json_read_escape(struct json_cursor *c, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;
	u32 code = 0;

	if (c->at == c->end)
		return false;
	if (*c->at != 'u') {
		at = *c->at ? strchr(from, *c->at) : NULL;
		if (!at)
			return false;
		*out = to[at - from];
		c->at++;
		return true;
	}
	c->at++;
	for (u32 i = 0; i < 4; i++, c->at++) {
		if (c->at == c->end || !isxdigit((unsigned char)*c->at))
			return false;
		code = code * 16 + (u32)(isdigit((unsigned char)*c->at) ?
						 *c->at - '0' :
						 (*c->at | 0x20) - 'a' + 10);
	}
	*out = code < 0x80 ? (char)code : '?';
	return true;
}

/* Returns a string, with '?' for all but printable ASCII; NULL if malformed or without memory. */
static char *json_read_string(struct json_cursor *c)
{
	const char *begin = c->at;
	bool good = true;
	char *out, *to;

	if (!json_take(c, '"'))
		return NULL;
	/* at most the remaining length */
	to = out = malloc((size_t)(c->end - begin));
	while (out && good && c->at < c->end && (unsigned char)*c->at >= 0x20 && *c->at != '"') {
		if (json_take(c, '\\'))
			good = json_read_escape(c, to++);
		else
			*to++ = *c->at++;
	}
	if (!out || !good || !json_take(c, '"')) {
		free(out);
		return NULL;
	}
	*to++ = 0;
	for (char *at = out; at < to - 1; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	begin = realloc(out, (size_t)(to - out));
	return begin ? (char *)begin : out;
}

/* ---- numbers ---- */

static bool json_skip_digits(struct json_cursor *c)
{
	const char *begin = c->at;

	while (c->at < c->end && isdigit((unsigned char)*c->at))
		c->at++;
	return c->at > begin;
}

/* -? (0 | 1-9 digits) (. digits)? ([eE] [+-]? digits)? */
static bool json_read_number(struct json_cursor *c, double *out)
{
	const char *begin = c->at;
	char copy[64];

	json_take(c, '-');
	if (!json_take(c, '0') && !json_skip_digits(c))
		return false;
	if (json_take(c, '.') && !json_skip_digits(c))
		return false;
	if (json_take(c, 'e') || json_take(c, 'E')) {
		if (!json_take(c, '+'))
			json_take(c, '-');
		if (!json_skip_digits(c))
			return false;
	}
	if ((size_t)(c->at - begin) >= sizeof(copy))
		return false;
	memcpy(copy, begin, (size_t)(c->at - begin));
	copy[c->at - begin] = 0;
	*out = strtod(copy, NULL);
	return isfinite(*out);
}

/* ---- arrays and objects ---- */

static struct json_value *json_read_member(struct json_cursor *c, bool named, u32 depth)
{
	struct json_value *v;
	char *name = NULL;

	json_skip_space(c);
	if (named) {
		name = json_read_string(c);
		json_skip_space(c);
		if (!name || !json_take(c, ':')) {
			free(name);
			return NULL;
		}
	}
	v = json_read_value(c, depth + 1);
	if (v)
		v->name = name;
	else
		free(name);
	return v;
}

/* Reads the members after the opening bracket. */
static struct json_value *json_read_members(struct json_cursor *c, bool named, u32 depth)
{
	struct json_value *v = json_new(named ? JSON_OBJECT : JSON_ARRAY);
	struct json_value **last = v ? &v->first : NULL;
	const char close = named ? '}' : ']';

	if (!v)
		return NULL;
	json_skip_space(c);
	if (json_take(c, close))
		return v;
	do {
		*last = json_read_member(c, named, depth);
		if (!*last)
			break;
		last = &(*last)->next;
		json_skip_space(c);
		if (json_take(c, close))
			return v;
	} while (json_take(c, ','));
	json_read_free(v);
	return NULL;
}

static struct json_value *json_read_scalar(struct json_cursor *c)
{
	struct json_value v = { .kind = JSON_NULL }, *out;

	if (c->at < c->end && *c->at == '"') {
		v.kind = JSON_TEXT;
		v.text = json_read_string(c);
		if (!v.text)
			return NULL;
	} else if (json_take_word(c, "true")) {
		v.kind = JSON_BOOL;
		v.is_true = true;
	} else if (json_take_word(c, "false")) {
		v.kind = JSON_BOOL;
	} else if (!json_take_word(c, "null")) {
		v.kind = JSON_NUMBER;
		if (!json_read_number(c, &v.number))
			return NULL;
	}
	out = json_new(v.kind);
	if (out)
		*out = v;
	else
		free(v.text);
	return out;
}

static struct json_value *json_read_value(struct json_cursor *c, u32 depth)
{
	if (depth > JSON_READ_DEPTH)
		return NULL;
	json_skip_space(c);
	if (json_take(c, '{'))
		return json_read_members(c, true, depth);
	if (json_take(c, '['))
		return json_read_members(c, false, depth);
	return json_read_scalar(c);
}

struct json_value *json_read(const char *text, size_t len, size_t *at)
{
	struct json_cursor c = { text, text + len };
	struct json_value *v = json_read_value(&c, 1);

	json_skip_space(&c);
	*at = (size_t)(c.at - text);
	if (c.at == c.end)
		return v;
	json_read_free(v);
	return NULL;
}

/* ---- reading the tree ---- */

const struct json_value *json_member(const struct json_value *v, const char *name)
{
	if (!v || v->kind != JSON_OBJECT)
		return NULL;
	for (const struct json_value *m = v->first; m; m = m->next)
		if (!strcmp(m->name, name))
			return m;
	return NULL;
}

double json_number_of(const struct json_value *v, const char *name, double otherwise)
{
	const struct json_value *m = json_member(v, name);

	return m && m->kind == JSON_NUMBER ? m->number : otherwise;
}

const char *json_text_of(const struct json_value *v, const char *name)
{
	const struct json_value *m = json_member(v, name);

	return m && m->kind == JSON_TEXT ? m->text : "";
}
