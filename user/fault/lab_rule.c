/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab_rule.h"

#define DELAY_MAX_NS (60 * (u64)NSEC_PER_SEC)
#define LAB_WORDS    16

/* ---- words ---- */

struct word {
	const char *at;
	size_t len;
};

struct words {
	const char *text;
	u32 num;
	struct word word[LAB_WORDS];
	struct lab_error *error;
};

static bool word_is(const struct word *w, const char *name)
{
	return w->len == strlen(name) && !strncmp(w->at, name, w->len);
}

static bool refuse(const struct words *w, const struct word *word, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Sets the error at the word, or at the end of the text. Returns false. */
static bool refuse(const struct words *w, const struct word *word, const char *fmt, ...)
{
	va_list args;

	w->error->at = (u32)(word ? word->at - w->text : (long)strlen(w->text));
	w->error->len = word ? (u32)word->len : 1;
	va_start(args, fmt);
	vsnprintf(w->error->why, sizeof(w->error->why), fmt, args);
	va_end(args);
	return false;
}

static bool words_split(struct words *w)
{
	const char *at = w->text;

	for (;;) {
		struct word word;

		while (isspace((unsigned char)*at))
			at++;
		if (!*at)
			return true;
		word.at = at;
		while (*at && !isspace((unsigned char)*at))
			at++;
		word.len = (size_t)(at - word.at);
		if (w->num == LAB_WORDS)
			return refuse(w, &word, "a rule has at most %d words", LAB_WORDS);
		w->word[w->num++] = word;
	}
}

/* ---- values ---- */

/* Parses digits, or hexadecimal digits after 0x. Advances *at. */
static bool take_number(const char **at, const char *end, u32 *out)
{
	const bool hex = end - *at > 2 && (*at)[0] == '0' && (*at)[1] == 'x';
	const u32 base = hex ? 16 : 10;
	u64 value = 0;
	const char *c = *at + (hex ? 2 : 0), *first = c;

	for (; c < end && (hex ? isxdigit((unsigned char)*c) : isdigit((unsigned char)*c)); c++) {
		value = value * base + (u64)(isdigit((unsigned char)*c) ?
						     *c - '0' :
						     tolower((unsigned char)*c) - 'a' + 10);
		if (value > UINT32_MAX)
			return false;
	}
	*out = (u32)value;
	*at = c;
	return c > first;
}

/* Parses N or N..M. */
static bool range_parse(const char *at, const char *end, u32 least, struct lab_range *r)
{
	if (!take_number(&at, end, &r->from))
		return false;
	r->to = r->from;
	if (end - at > 2 && at[0] == '.' && at[1] == '.') {
		at += 2;
		if (*at == '+')
			at++;
		if (!take_number(&at, end, &r->to))
			return false;
	}
	return at == end && r->from >= least && r->to >= r->from;
}

/* Parses a decimal number with a fraction. Advances *at. */
static bool take_decimal(const char **at, const char *end, double *out)
{
	char text[32], *stop;
	size_t len = (size_t)(end - *at);

	if (!len || len >= sizeof(text) || (!isdigit((unsigned char)**at) && **at != '.'))
		return false;
	memcpy(text, *at, len);
	text[len] = 0;
	/* without what strtod() would take as an exponent or a hexadecimal number */
	text[strspn(text, "0123456789.")] = 0;
	*out = strtod(text, &stop);
	*at += stop - text;
	return stop > text;
}

bool lab_chance_parse(const char *text, size_t len, u64 *chance)
{
	const char *at = text, *end = text + len;
	double value;

	if (!take_decimal(&at, end, &value))
		return false;
	if (end - at == 1 && *at == '%') {
		value /= 100;
		at++;
	}
	if (at != end || !(value > 0) || value > 1)
		return false;
	*chance = value < 1 ? (u64)(value * 18446744073709551616.0) : UINT64_MAX;
	return true;
}

bool lab_time_parse(const char *text, size_t len, u64 *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 } };
	const char *at = text, *end = text + len;
	double value;

	if (!take_decimal(&at, end, &value))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		const double all = value * units[i].ns;

		if ((size_t)(end - at) != strlen(units[i].unit) ||
		    strncmp(at, units[i].unit, (size_t)(end - at)))
			continue;
		if (!(all >= 1) || all > (double)DELAY_MAX_NS)
			return false;
		*ns = (u64)all;
		return true;
	}
	return false;
}

/* ---- the parts of a rule ---- */

static const char *const verbs[] = {
	[LAB_DROP] = "drop", [LAB_DUPLICATE] = "duplicate", [LAB_DELAY] = "delay",
	[LAB_SWAP] = "swap", [LAB_CORRUPT] = "corrupt",	    [LAB_MARK] = "mark",
};
static const char *const parts[] = {
	[LAB_PAYLOAD] = "payload", [LAB_ICRC] = "icrc",	    [LAB_QPN] = "qpn",
	[LAB_PSN] = "psn",	   [LAB_OPCODE] = "opcode", [LAB_PKEY] = "pkey",
};
/* Bits of lab_rule.positions are numbered by OP_START and OP_END. */
static const char *const positions[] = { "middle", "first", "last", "only" };

static u32 position_of(u32 flags)
{
	return (flags & OP_START ? 1u : 0) | (flags & OP_END ? 2u : 0);
}

/* Returns the word's place in a list, or the list's length. */
static u32 find_word(const struct word *w, const char *const *list, u32 num)
{
	u32 i = 0;

	while (i < num && !word_is(w, list[i]))
		i++;
	return i;
}

static bool parse_verb(const struct words *w, u32 *i, struct lab_rule *r)
{
	const struct word *word = &w->word[0], *next = w->num > 1 ? &w->word[1] : NULL;
	u32 part;

	if (!w->num)
		return refuse(
			w, NULL,
			"an empty rule; it begins with drop, duplicate, delay, swap, corrupt or "
			"mark");
	r->verb = find_word(word, verbs, ARRAY_SIZE(verbs));
	if (r->verb == ARRAY_SIZE(verbs))
		return refuse(
			w, word,
			"no such verb; a rule begins with drop, duplicate, delay, swap, corrupt "
			"or mark");
	*i = 1;
	if (r->verb == LAB_DELAY) {
		if (!next || !lab_time_parse(next->at, next->len, &r->delay_ns))
			return refuse(w, next, "delay needs a time up to a minute, as 2ms");
		*i = 2;
	}
	if (r->verb == LAB_CORRUPT && next) {
		part = find_word(next, parts, ARRAY_SIZE(parts));
		if (part < ARRAY_SIZE(parts)) {
			r->part = part;
			*i = 2;
		}
	}
	return true;
}

/* Parses h1>h2. Returns false if the word is no direction at all, with *good unchanged. */
static bool parse_direction(const struct words *w, const struct word *word, u32 hosts,
			    struct lab_rule *r, bool *good)
{
	const char *at = word->at, *end = at + word->len;

	if (!memchr(at, '>', word->len))
		return false;
	if (*at++ != 'h' || !take_number(&at, end, &r->from) || at == end || *at++ != '>' ||
	    at == end || *at++ != 'h' || !take_number(&at, end, &r->to) || at != end)
		*good = refuse(w, word, "a direction is written h1>h2");
	else if (!r->from || !r->to || r->from > hosts || r->to > hosts || r->from == r->to)
		*good = refuse(w, word,
			       "there are hosts h1 to h%u, and a direction has two of them", hosts);
	return true;
}

static bool parse_psn(const char *at, const char *end, struct lab_rule *r)
{
	struct lab_range psn;

	r->is_step = at < end && *at == '+';
	if (!range_parse(at + r->is_step, end, 0, &psn) || psn.to > ROCE_PSN_MASK)
		return false;
	r->has_psn = true;
	r->psn_from = psn.from;
	r->psn_to = psn.to;
	return true;
}

static bool parse_qp(const char *at, const char *end, struct lab_rule *r)
{
	const bool is_number = end - at > 2 && at[1] == 'x';
	u32 *to = is_number ? &r->qpn : &r->order;

	return take_number(&at, end, to) && at == end && *to && *to <= ROCE_QPN_MASK;
}

/* Parses KEY=VALUE. */
static bool parse_value(const struct words *w, const struct word *word, struct lab_rule *r)
{
	const char *equals = memchr(word->at, '=', word->len), *end = word->at + word->len;
	const struct word key = { word->at, (size_t)(equals - word->at) };
	const char *value = equals + 1;
	struct lab_range times;

	if (word_is(&key, "nth"))
		return range_parse(value, end, 1, &r->nth) ||
		       refuse(w, word, "nth is a number from 1 or a range, as nth=1..5");
	if (word_is(&key, "round"))
		return range_parse(value, end, 1, &r->round) ||
		       refuse(w, word, "round is a number or range: 1 is the first transmission");
	if (word_is(&key, "psn"))
		return parse_psn(value, end, r) ||
		       refuse(w, word, "psn is a number, or +N from the first one, or a range");
	if (word_is(&key, "qp"))
		return parse_qp(value, end, r) ||
		       refuse(w, word,
			      "qp is 1, 2, ... in the order of first packets, or a number "
			      "as 0x12");
	if (word_is(&key, "p")) {
		r->has_chance = true;
		return lab_chance_parse(value, (size_t)(end - value), &r->chance) ||
		       refuse(w, word, "p is a share above 0 and up to 1, as 0.01 or 1%%");
	}
	if (word_is(&key, "times")) {
		if (!range_parse(value, end, 1, &times) || times.from != times.to)
			return refuse(w, word, "times is a number from 1");
		r->times = times.from;
		return true;
	}
	return refuse(w, &key, "no such selector; there are qp, nth, psn, round, p and times");
}

static bool parse_selector(const struct words *w, const struct word *word, u32 hosts,
			   struct lab_rule *r)
{
	const u32 position = find_word(word, positions, ARRAY_SIZE(positions));
	bool good = true;

	if (parse_direction(w, word, hosts, r, &good))
		return good;
	if (memchr(word->at, '=', word->len))
		return parse_value(w, word, r);
	if (position < ARRAY_SIZE(positions)) {
		r->positions |= 1u << position;
		return true;
	}
	if (lab_kinds_add(&r->kinds, word->at, word->len)) {
		r->any_kind = false;
		return true;
	}
	return refuse(w, word,
		      "neither a kind of packet (rc.send, rc.ack, cm.req), a direction "
		      "(h1>h2) nor a selector");
}

bool lab_rule_parse(const char *text, u32 hosts, struct lab_rule *rule, struct lab_error *error)
{
	struct words w = { .text = text, .error = error };
	u32 i = 0;

	*rule = (struct lab_rule){ .any_kind = true };
	if (strlen(text) >= sizeof(rule->text))
		return refuse(&w, NULL, "a rule has at most %d characters", LAB_RULE_TEXT - 1);
	strcpy(rule->text, text);
	if (!words_split(&w) || !parse_verb(&w, &i, rule))
		return false;
	for (; i < w.num; i++)
		if (!parse_selector(&w, &w.word[i], hosts, rule))
			return false;
	/* a PSN is one packet, unless the rule names more transmissions */
	if (rule->has_psn && !rule->times && rule->psn_from == rule->psn_to && !rule->round.from)
		rule->times = 1;
	return true;
}

/* ---- selection ---- */

static bool in_range(const struct lab_range *r, u32 value)
{
	return !r->from || (value >= r->from && value <= r->to);
}

/* The finalizer of MurmurHash3. */
static u64 mix(u64 x)
{
	x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

static bool chance_selects(const struct lab_rule *r, u32 index, u64 seed, u32 from, u32 to,
			   const struct lab_identity *id)
{
	u64 x = mix(seed + 0x9e3779b97f4a7c15ull * (index + 1));

	x = mix(x ^ ((u64)from << 40 | (u64)to << 32 | id->order));
	x = mix(x ^ ((u64)id->step << 32 | (u64)id->kind << 16 | id->round));
	return x <= r->chance;
}

bool lab_rule_selects(struct lab_rule *r, u32 index, u64 seed, u32 from, u32 to, u32 flags,
		      const struct lab_identity *id)
{
	const u32 psn = r->is_step ? id->step : id->psn;
	u32 nth;

	if ((r->from && (from != r->from || to != r->to)) ||
	    (!r->any_kind && !lab_kinds_has(&r->kinds, id->kind)) ||
	    (r->positions && !(r->positions >> position_of(flags) & 1)) ||
	    (r->order && id->order != r->order) || (r->qpn && id->qpn != r->qpn) ||
	    !in_range(&r->round, id->round) ||
	    (r->has_psn && (psn < r->psn_from || psn > r->psn_to)))
		return false;
	nth = ++r->matched[from][to];
	if (!in_range(&r->nth, nth) || (r->times && r->hit_in[from][to] >= r->times) ||
	    (r->has_chance && !chance_selects(r, index, seed, from, to, id)))
		return false;
	r->hit_in[from][to]++;
	r->hits++;
	if (r->num_shown < LAB_RULE_SHOWN)
		r->shown[r->num_shown++] = (struct lab_hit){ (u8)from, (u8)to, *id };
	return true;
}
