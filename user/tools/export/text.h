/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Metrics as text, into memory: OpenMetrics 1.0, or the text format 0.0.4 of Prometheus. A caller
 * says each family once, and its samples right behind it; what the two formats do not have in
 * common is told apart here. Pure: no system call but malloc().
 *
 * Label values may be any bytes. The text is UTF-8 whatever they are: what is no UTF-8, and control
 * characters, become U+FFFD; quotes, backslashes and newlines are escaped.
 */
#ifndef EXPORT_TEXT_H
#define EXPORT_TEXT_H

#include <stdbool.h>

#include "../../engine/types.h"

enum text_format { TEXT_OPENMETRICS, TEXT_PROMETHEUS };
enum text_type { TEXT_GAUGE, TEXT_COUNTER, TEXT_INFO };

struct text {
	enum text_format format;
	char *at;	/* free() */
	size_t len, room;
	bool is_full;	/* no memory; what comes then is left out */
	char name[128]; /* of the family that is open, with its suffix */
};

struct text_label {
	const char *name, *value;
};

void text_begin(struct text *t, enum text_format format);
/* 0, or -ENOMEM. The text is the caller's either way. */
int text_end(struct text *t);

/*
 * A family. name has no suffix that its type or unit asks for: "rx", unit "bytes" of a counter
 * becomes rx_bytes_total. unit may be NULL.
 */
void text_family(struct text *t, enum text_type type, const char *name, const char *unit,
		 const char *help);
void text_sample(struct text *t, const struct text_label *labels, u32 num, u64 value);
/* value is finite. */
void text_sample_real(struct text *t, const struct text_label *labels, u32 num, double value);

/*
 * text as a label can have it, without escapes: UTF-8 without control characters other than the
 * newline, cut to whole characters where it is too long for size bytes with its 0.
 */
void text_clean(char *to, size_t size, const char *text);
/* The Content-Type of a format. */
const char *text_content_type(enum text_format format);

#endif
