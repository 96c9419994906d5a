/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes metrics as text into memory: OpenMetrics 1.0, or text format 0.0.4 of Prometheus, and
 * chooses between them for a request. A caller writes each family once, followed by its samples;
 * differences of the formats are handled here.
 * Pure: no system call except malloc().
 *
 * Label values may be any bytes. The text is always valid UTF-8: invalid bytes and control
 * characters become U+FFFD; quotes, backslashes and newlines are escaped.
 */
#ifndef EXPORT_TEXT_H
#define EXPORT_TEXT_H

#include <stdbool.h>

#include "../../engine/types.h"

enum text_format { TEXT_OPENMETRICS, TEXT_PROMETHEUS };
enum text_type { TEXT_GAUGE, TEXT_COUNTER, TEXT_INFO };

struct text {
	enum text_format format;
	char *at;	/* for free() */
	size_t len, room;
	bool is_full;	/* out of memory; further text is dropped */
	char name[128]; /* of the current family, with its suffix */
};

struct text_label {
	const char *name, *value;
};

void text_begin(struct text *t, enum text_format format);
/* Returns 0 or -ENOMEM. The caller frees t->at in both cases. */
int text_end(struct text *t);

/*
 * Begins a family. name has no suffix for its type or unit: "rx" with the unit "bytes" as a counter
 * becomes rx_bytes_total. unit may be NULL.
 */
void text_family(struct text *t, enum text_type type, const char *name, const char *unit,
		 const char *help);
void text_sample(struct text *t, const struct text_label *labels, u32 num, u64 value);
/* value must be finite. */
void text_sample_real(struct text *t, const struct text_label *labels, u32 num, double value);

/*
 * Copies text for a label, unescaped: UTF-8 without control characters except newline, cut at a
 * character boundary to size bytes with its 0.
 */
void text_clean(char *to, size_t size, const char *text);
/* Returns the Content-Type of a format. */
const char *text_content_type(enum text_format format);
/*
 * Chooses the format by a request's Accept header (RFC 9110, 12.5.1), which may be NULL or any
 * text. Sets *format to the acceptable format of the highest quality. At equal quality that is
 * OpenMetrics, or the older format if only a wildcard matches, since every reader supports it.
 * Returns false if neither is acceptable (406).
 */
bool text_accept(const char *header, enum text_format *format);

#endif
