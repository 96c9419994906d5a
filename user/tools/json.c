/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <math.h>
#include <stdlib.h>

#include "json.h"

void json_begin(struct json *j, FILE *out)
{
	*j = (struct json){ .out = out };
}

void json_end(struct json *j)
{
	fputc('\n', j->out);
	*j = (struct json){ .out = j->out, .is_compact = j->is_compact };
}

static void json_indent(const struct json *j)
{
	if (j->is_compact)
		return;
	fputc('\n', j->out);
	for (u32 i = 0; i < j->depth; i++)
		fputs("  ", j->out);
}

static void json_string(const struct json *j, const char *text)
{
	fputc('"', j->out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(j->out, "\\%c", *c);
		else if (*c < 0x20 || *c == 0x7f)
			fprintf(j->out, "\\u%04x", *c);
		else if (*c >= 0x80)
			fputs("\\ufffd", j->out);
		else
			fputc(*c, j->out);
	}
	fputc('"', j->out);
}

/* Writes the comma, line break and name before a value. */
static void json_lead(struct json *j, const char *name)
{
	if (j->depth) {
		const u32 level = j->depth - 1;

		if (j->has_values[level])
			fputc(',', j->out);
		j->has_values[level] = true;
		json_indent(j);
		if (j->is_array[level])
			name = NULL;
	}
	if (j->depth && name) {
		json_string(j, name);
		fputs(j->is_compact ? ":" : ": ", j->out);
	}
}

static void json_open(struct json *j, const char *name, bool is_array)
{
	if (j->depth == JSON_DEPTH)
		abort();
	json_lead(j, name);
	fputc(is_array ? '[' : '{', j->out);
	j->is_array[j->depth] = is_array;
	j->has_values[j->depth] = false;
	j->depth++;
}

void json_object(struct json *j, const char *name)
{
	json_open(j, name, false);
}

void json_array(struct json *j, const char *name)
{
	json_open(j, name, true);
}

void json_close(struct json *j)
{
	if (!j->depth)
		abort();
	j->depth--;
	if (j->has_values[j->depth])
		json_indent(j);
	fputc(j->is_array[j->depth] ? ']' : '}', j->out);
}

void json_text(struct json *j, const char *name, const char *value)
{
	json_lead(j, name);
	json_string(j, value);
}

void json_number(struct json *j, const char *name, u64 value)
{
	json_lead(j, name);
	fprintf(j->out, "%llu", (unsigned long long)value);
}

void json_signed(struct json *j, const char *name, s64 value)
{
	json_lead(j, name);
	fprintf(j->out, "%lld", (long long)value);
}

void json_real(struct json *j, const char *name, double value, u32 digits)
{
	json_lead(j, name);
	if (isfinite(value))
		fprintf(j->out, "%.*f", (int)digits, value);
	else
		fputs("null", j->out);
}

void json_bool(struct json *j, const char *name, bool value)
{
	json_lead(j, name);
	fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *name)
{
	json_lead(j, name);
	fputs("null", j->out);
}
