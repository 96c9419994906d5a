/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE /* stpcpy() */
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>

#include "json.h"
#include "memory.h"

void json_begin(struct json *j, FILE *out)
{
	*j = (struct json){ .out = out };
}

void json_end(struct json *j)
{
	const int form = j->is_compact ? JSON_C_TO_STRING_PLAIN :
					 JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED;

	fputs(memory_need((void *)json_object_to_json_string_ext(
		      j->open[0], form | JSON_C_TO_STRING_NOSLASHESCAPE)),
	      j->out);
	fputc('\n', j->out);
	json_object_put(j->open[0]);
	*j = (struct json){ .out = j->out, .is_compact = j->is_compact };
}

/* value: NULL for null. */
static void json_add(struct json *j, const char *name, struct json_object *value)
{
	struct json_object *in = j->open[j->depth - 1];

	if (json_object_is_type(in, json_type_array) ? json_object_array_add(in, value) :
						       json_object_object_add(in, name, value))
		memory_need(NULL);
}

static void json_level(struct json *j, const char *name, struct json_object *level)
{
	if (j->depth == JSON_DEPTH)
		abort();
	if (j->depth)
		json_add(j, name, memory_need(level));
	j->open[j->depth++] = memory_need(level);
}

void json_open_object(struct json *j, const char *name)
{
	json_level(j, name, json_object_new_object());
}

void json_open_array(struct json *j, const char *name)
{
	json_level(j, name, json_object_new_array());
}

void json_close(struct json *j)
{
	if (!j->depth)
		abort();
	j->depth--;
}

void json_text(struct json *j, const char *name, const char *value)
{
	char *clean = memory_need(malloc(3 * strlen(value) + 1)), *to = clean;

	for (; *value; value++) {
		if ((unsigned char)*value < 0x7f)
			*to++ = *value;
		else
			to = stpcpy(to, "\ufffd");
	}
	json_add(j, name, memory_need(json_object_new_string_len(clean, (int)(to - clean))));
	free(clean);
}

void json_number(struct json *j, const char *name, u64 value)
{
	json_add(j, name, memory_need(json_object_new_uint64(value)));
}

void json_signed(struct json *j, const char *name, s64 value)
{
	json_add(j, name, memory_need(json_object_new_int64(value)));
}

void json_real(struct json *j, const char *name, double value, u32 digits)
{
	char text[352]; /* DBL_MAX has 309 digits before the point */

	snprintf(text, sizeof(text), "%.*f", (int)digits, value);
	json_add(j, name,
		 isfinite(value) ? memory_need(json_object_new_double_s(value, text)) : NULL);
}

void json_boolean(struct json *j, const char *name, bool value)
{
	json_add(j, name, memory_need(json_object_new_boolean(value)));
}

void json_null(struct json *j, const char *name)
{
	json_add(j, name, NULL);
}
