/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>
#include <strings.h>

#include "accept.h"

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

bool accept_format(const char *header, enum text_format *format)
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
