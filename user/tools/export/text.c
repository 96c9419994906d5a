/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "text.h"

#define TEXT_ROOM 65536u

/* ---- memory ---- */

static bool text_make_room(struct text *t, size_t more)
{
	size_t room = t->room ? t->room : TEXT_ROOM;
	char *at;

	if (t->is_full)
		return false;
	while (room - t->len < more)
		if (__builtin_mul_overflow(room, (size_t)2, &room)) {
			t->is_full = true;
			return false;
		}
	if (room == t->room)
		return true;
	at = realloc(t->at, room);
	if (!at) {
		t->is_full = true;
		return false;
	}
	t->at = at;
	t->room = room;
	return true;
}

static void text_bytes(struct text *t, const char *bytes, size_t n)
{
	if (!text_make_room(t, n))
		return;
	memcpy(t->at + t->len, bytes, n);
	t->len += n;
}

static void text_put(struct text *t, const char *s)
{
	text_bytes(t, s, strlen(s));
}

static void text_char(struct text *t, char c)
{
	text_bytes(t, &c, 1);
}

void text_begin(struct text *t, enum text_format format)
{
	*t = (struct text){ .format = format };
}

int text_end(struct text *t)
{
	if (t->format == TEXT_OPENMETRICS)
		text_put(t, "# EOF\n");
	return t->is_full ? -ENOMEM : 0;
}

/* ---- characters ---- */

/*
 * Returns the length of the character at s, 0 if it is not UTF-8 (RFC 3629: shortest form, no
 * surrogates, at most U+10FFFF). Never reads beyond the terminating 0.
 */
static u32 utf8_length(const unsigned char *s)
{
	u32 n, code, least;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] < 0xe0) {
		n = 2, code = s[0] & 0x1f, least = 0x80;
	} else if (s[0] >= 0xe0 && s[0] < 0xf0) {
		n = 3, code = s[0] & 0x0f, least = 0x800;
	} else if (s[0] >= 0xf0 && s[0] < 0xf5) {
		n = 4, code = s[0] & 0x07, least = 0x10000;
	} else {
		return 0;
	}
	for (u32 i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	return code >= least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? n : 0;
}

/* C0 except newline, DEL, and C1 (U+0080 to U+009F). */
static bool utf8_is_control(const unsigned char *s)
{
	return (s[0] < 0x20 && s[0] != '\n') || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Sets *out to the next printable character, advances s, and returns the length of *out. */
static u32 utf8_next(const unsigned char **s, const char **out)
{
	const u32 n = utf8_length(*s);

	*out = (const char *)*s;
	if (!n || utf8_is_control(*s)) {
		*s += n ? n : 1;
		*out = replacement;
		return sizeof(replacement) - 1;
	}
	*s += n;
	return n;
}

void text_clean(char *to, size_t size, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t len = 0;
	const char *c;

	while (*s) {
		const u32 n = utf8_next(&s, &c);

		if (size - len <= n)
			break;
		memcpy(to + len, c, n);
		len += n;
	}
	to[len] = 0;
}

/* Escapes a label value, or HELP text, where the older format has no escape for quotes. */
static void text_escaped(struct text *t, const char *text, bool has_quotes)
{
	const unsigned char *s = (const unsigned char *)text;
	const char *c;

	while (*s) {
		const u32 n = utf8_next(&s, &c);

		if (*c == '\n') {
			text_put(t, "\\n");
		} else {
			if (*c == '\\' || (*c == '"' && has_quotes))
				text_char(t, '\\');
			text_bytes(t, c, n);
		}
	}
}

/* ---- families ---- */

static void text_meta(struct text *t, const char *what, const char *name)
{
	text_put(t, "# ");
	text_put(t, what);
	text_char(t, ' ');
	text_put(t, name);
	text_char(t, ' ');
}

/* OpenMetrics names a family without its samples' suffix, the older format with it. */
void text_family(struct text *t, enum text_type type, const char *name, const char *unit,
		 const char *help)
{
	static const struct {
		const char *suffix, *type, *older;
	} types[] = {
		[TEXT_GAUGE] = { "", "gauge", "gauge" },
		[TEXT_COUNTER] = { "_total", "counter", "counter" },
		[TEXT_INFO] = { "_info", "info", "gauge" },
	};
	const bool is_older = t->format == TEXT_PROMETHEUS;
	char family[sizeof(t->name)];

	snprintf(family, sizeof(family), "%s%s%s", name, unit ? "_" : "", unit ? unit : "");
	snprintf(t->name, sizeof(t->name), "%s%s%s%s", name, unit ? "_" : "", unit ? unit : "",
		 types[type].suffix);
	if (is_older)
		memcpy(family, t->name, sizeof(family));
	text_meta(t, "HELP", family);
	text_escaped(t, help, !is_older);
	text_char(t, '\n');
	text_meta(t, "TYPE", family);
	text_put(t, is_older ? types[type].older : types[type].type);
	text_char(t, '\n');
	if (unit && !is_older) {
		text_meta(t, "UNIT", family);
		text_put(t, unit);
		text_char(t, '\n');
	}
}

static void text_sample_lead(struct text *t, const struct text_label *labels, u32 num)
{
	text_put(t, t->name);
	for (u32 i = 0; i < num; i++) {
		text_char(t, i ? ',' : '{');
		text_put(t, labels[i].name);
		text_put(t, "=\"");
		text_escaped(t, labels[i].value, true);
		text_char(t, '"');
	}
	text_put(t, num ? "} " : " ");
}

void text_sample(struct text *t, const struct text_label *labels, u32 num, u64 value)
{
	char number[24];

	text_sample_lead(t, labels, num);
	snprintf(number, sizeof(number), "%llu\n", (unsigned long long)value);
	text_put(t, number);
}

void text_sample_real(struct text *t, const struct text_label *labels, u32 num, double value)
{
	char number[40];

	text_sample_lead(t, labels, num);
	snprintf(number, sizeof(number), "%.9g\n", value);
	text_put(t, number);
}

const char *text_content_type(enum text_format format)
{
	return format == TEXT_OPENMETRICS ?
		       "application/openmetrics-text; version=1.0.0; charset=utf-8" :
		       "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- the format by a request's Accept header (RFC 9110, 12.5.1) ---- */

#define ACCEPT_WHOLE 1000 /* quality 1; a quality has at most three decimals */

/* Text within the header. */
struct span {
	const char *at;
	size_t len;
};

static struct span span_trim(struct span s)
{
	while (s.len && (s.at[0] == ' ' || s.at[0] == '\t'))
		s.at++, s.len--;
	while (s.len && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* Returns the text before the next unquoted separator, and moves *rest past it. */
static struct span span_until(struct span *rest, char separator)
{
	struct span first = { rest->at, 0 };
	bool is_quoted = false;

	while (first.len < rest->len) {
		const char c = rest->at[first.len];

		if (c == separator && !is_quoted)
			break;
		if (c == '"')
			is_quoted = !is_quoted;
		else if (c == '\\' && is_quoted && first.len + 1 < rest->len)
			first.len++;
		first.len++;
	}
	rest->at += first.len;
	rest->len -= first.len;
	if (rest->len)
		rest->at++, rest->len--;
	return span_trim(first);
}

static bool span_is(struct span s, const char *text)
{
	return s.len == strlen(text) && !strncasecmp(s.at, text, s.len);
}

/* Returns a quality in thousandths; 0 if malformed. */
static int accept_quality(struct span s)
{
	int value = 0, digit = ACCEPT_WHOLE / 10;

	if (!s.len || (s.at[0] != '0' && s.at[0] != '1') || (s.len > 1 && s.at[1] != '.') ||
	    s.len > 5)
		return 0;
	value = s.at[0] == '1' ? ACCEPT_WHOLE : 0;
	for (size_t i = 2; i < s.len; i++, digit /= 10) {
		if (s.at[i] < '0' || s.at[i] > '9')
			return 0;
		value += (s.at[i] - '0') * digit;
	}
	return value <= ACCEPT_WHOLE ? value : 0;
}

/* A media range: its specificity for each format (0: no match), and its quality. */
struct range {
	int narrow[2], quality;
};

static bool range_has_version(struct span version, enum text_format format)
{
	if (version.len >= 2 && version.at[0] == '"' && version.at[version.len - 1] == '"')
		version = (struct span){ version.at + 1, version.len - 2 };
	if (format == TEXT_PROMETHEUS)
		return span_is(version, "0.0.4");
	/* version 0.0.1 was the draft of 1.0.0 and is compatible */
	return span_is(version, "1.0.0") || span_is(version, "0.0.1");
}

static struct range range_read(struct span media)
{
	const struct span type = span_until(&media, ';');
	struct range r = { .quality = ACCEPT_WHOLE };

	if (span_is(type, "*/*"))
		r.narrow[TEXT_OPENMETRICS] = r.narrow[TEXT_PROMETHEUS] = 1;
	else if (span_is(type, "application/*"))
		r.narrow[TEXT_OPENMETRICS] = 2;
	else if (span_is(type, "text/*"))
		r.narrow[TEXT_PROMETHEUS] = 2;
	else if (span_is(type, "application/openmetrics-text"))
		r.narrow[TEXT_OPENMETRICS] = 3;
	else if (span_is(type, "text/plain"))
		r.narrow[TEXT_PROMETHEUS] = 3;
	while (media.len) {
		struct span value = span_until(&media, ';'), name = span_until(&value, '=');

		if (span_is(name, "q")) {
			r.quality = accept_quality(value);
		} else if (span_is(name, "version")) {
			for (int f = 0; f < 2; f++)
				if (!range_has_version(value, (enum text_format)f))
					r.narrow[f] = 0;
				else if (r.narrow[f])
					r.narrow[f]++;
		}
	}
	return r;
}

bool text_accept(const char *header, enum text_format *format)
{
	struct range best[2] = { { .quality = 0 } };
	struct span rest = { header ? header : "", header ? strlen(header) : 0 };

	*format = TEXT_PROMETHEUS;
	if (!span_trim(rest).len)
		return true;
	while (rest.len) {
		const struct range r = range_read(span_until(&rest, ','));

		/* the most specific range decides; of several equal ones, the best */
		for (int f = 0; f < 2; f++) {
			if (!r.narrow[f] || r.narrow[f] < best[f].narrow[f] ||
			    (r.narrow[f] == best[f].narrow[f] && r.quality <= best[f].quality))
				continue;
			best[f].narrow[f] = r.narrow[f];
			best[f].quality = r.quality;
		}
	}
	if (best[TEXT_OPENMETRICS].quality > best[TEXT_PROMETHEUS].quality ||
	    (best[TEXT_OPENMETRICS].quality == best[TEXT_PROMETHEUS].quality &&
	     best[TEXT_OPENMETRICS].narrow[TEXT_OPENMETRICS] > 1))
		*format = TEXT_OPENMETRICS;
	return best[*format].quality > 0;
}
