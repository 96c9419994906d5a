/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab_rule.h"

#define DELAY_MAX_NS (60 * (u64)NSEC_PER_SEC)
#define LAB_WORDS    16
#define LAB_CREDITS_MAX 32768 /* the most that an AETH can name */
#define REJ_REASON_MAX 0xffff
#define REJ_BY_CONSUMER 28 /* the reason of rdma_reject(3) */

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

/* Selectors that a verb's rules may have, beside nth, p and times. */
enum {
	TAKES_DIRECTION = 1 << 0,
	TAKES_HOST = 1 << 1,
	TAKES_KIND = 1 << 2,  /* of packets, and the position in a message */
	TAKES_PSN = 1 << 3,   /* and round */
	TAKES_QP = 1 << 4,
	TAKES_WORK = 1 << 5,
	TAKES_CALL = 1 << 6,
	TAKES_TIMER = 1 << 7,
	TAKES_REASON = 1 << 8,
	TAKES_PACKET = TAKES_KIND | TAKES_PSN | TAKES_QP,
};

static const struct {
	const char *name;
	enum lab_place place;
	u32 takes;
} verbs[LAB_VERBS] = {
	[LAB_DROP] = { "drop", LAB_AT_CABLE, TAKES_DIRECTION | TAKES_PACKET },
	[LAB_DUPLICATE] = { "duplicate", LAB_AT_CABLE, TAKES_DIRECTION | TAKES_PACKET },
	[LAB_DELAY] = { "delay", LAB_AT_CABLE, TAKES_DIRECTION | TAKES_PACKET },
	[LAB_SWAP] = { "swap", LAB_AT_CABLE, TAKES_DIRECTION | TAKES_PACKET },
	[LAB_CORRUPT] = { "corrupt", LAB_AT_CABLE, TAKES_DIRECTION | TAKES_PACKET },
	[LAB_MARK] = { "mark", LAB_AT_CABLE, TAKES_DIRECTION | TAKES_PACKET },
	[LAB_FAIL] = { "fail", LAB_AT_CALLS, TAKES_HOST },
	[LAB_COMPLETE] = { "complete", LAB_AT_COMPLETIONS, TAKES_HOST | TAKES_WORK | TAKES_QP },
	[LAB_LATE] = { "late", LAB_AT_COMPLETIONS, TAKES_HOST | TAKES_WORK | TAKES_QP },
	[LAB_HOLD] = { "hold", LAB_AT_COMPLETIONS, TAKES_HOST | TAKES_WORK | TAKES_QP },
	[LAB_EVENT] = { "event", LAB_AT_CALLS, TAKES_HOST | TAKES_CALL },
	[LAB_RNR] = { "rnr", LAB_AT_RESPONDER, TAKES_HOST | TAKES_PACKET | TAKES_TIMER },
	[LAB_NAK] = { "nak", LAB_AT_RESPONDER, TAKES_HOST | TAKES_PACKET },
	[LAB_CREDITS] = { "credits", LAB_AT_ANSWERS, TAKES_HOST | TAKES_QP },
	[LAB_CNP] = { "cnp", LAB_AT_RESPONDER, TAKES_HOST | TAKES_PACKET },
	[LAB_ECN] = { "ecn", LAB_AT_RESPONDER, TAKES_HOST | TAKES_PACKET },
	[LAB_REJECT] = { "reject", LAB_AT_CM, TAKES_HOST | TAKES_REASON },
};
#define VERBS_TEXT                                                                                 \
	"drop, duplicate, delay, swap, corrupt, mark, fail, complete, late, hold, event, rnr, "    \
	"nak, credits, cnp, ecn or reject"

#define X(name, ...) #name,
static const char *const calls[] = { LAB_CALLS(X) };
static const char *const errno_names[] = { LAB_ERRNOS(X) };
static const char *const status_names[] = { LAB_STATUSES(X) };
static const char *const event_names[] = { LAB_EVENTS(X) };
static const char *const work_names[] = { LAB_WORKS(X) };
#undef X
#define X(name) name,
static const int errnos[] = { LAB_ERRNOS(X) };
#undef X
#define X(name, number) number,
static const u32 statuses[] = { LAB_STATUSES(X) };
#undef X
/* In the order of the codes of a NAK: wire.h. */
static const char *const nak_names[] = { "invalid-request", "remote-access", "operational" };

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

/* Steps from one word to another: characters added, left out or changed; at most LONG_WORD each. */
#define LONG_WORD 40
static u32 word_distance(const char *a, size_t len, const char *b)
{
	const size_t other = strlen(b);
	u32 row[LONG_WORD + 1];

	if (len > LONG_WORD || other > LONG_WORD)
		return LONG_WORD;
	for (size_t j = 0; j <= other; j++)
		row[j] = (u32)j;
	for (size_t i = 1; i <= len; i++) {
		u32 before = row[0];

		row[0] = (u32)i;
		for (size_t j = 1; j <= other; j++) {
			const u32 changed = before + (a[i - 1] != b[j - 1]);

			before = row[j];
			row[j] = min_u32(changed, 1 + min_u32(row[j], row[j - 1]));
		}
	}
	return row[other];
}

/* Returns the name that is most like the word. */
static const char *most_like(const struct word *w, const char *const *list, u32 num)
{
	const char *found = list[0];
	u32 least = LONG_WORD;

	for (u32 i = 0; i < num; i++) {
		const u32 d = word_distance(w->at, w->len, list[i]);

		if (d < least) {
			least = d;
			found = list[i];
		}
	}
	return found;
}

/* Finds the next word in a list. Returns false with the error set: "WHAT; did you mean NAME?" */
static bool take_name(const struct words *w, u32 *i, const char *const *list, u32 num,
		      const char *what, u32 *out)
{
	const struct word *word = *i < w->num ? &w->word[*i] : NULL;

	if (!word)
		return refuse(w, NULL, "%s is missing, as %s", what, list[0]);
	*out = find_word(word, list, num);
	if (*out == num)
		return refuse(w, word, "no such %s; did you mean %s?", what,
			      most_like(word, list, num));
	++*i;
	return true;
}

static bool parse_fail(const struct words *w, u32 *i, struct lab_rule *r)
{
	u32 number;

	if (!take_name(w, i, calls, ARRAY_SIZE(calls), "call", &r->call) ||
	    !take_name(w, i, errno_names, ARRAY_SIZE(errno_names), "errno", &number))
		return false;
	r->err = errnos[number];
	return true;
}

static bool parse_complete(const struct words *w, u32 *i, struct lab_rule *r)
{
	u32 number;

	if (!take_name(w, i, status_names, ARRAY_SIZE(status_names), "status", &number))
		return false;
	r->status = statuses[number];
	return true;
}

static bool parse_event(const struct words *w, u32 *i, struct lab_rule *r)
{
	r->call = CALL_ibv_post_send;
	return take_name(w, i, event_names, ARRAY_SIZE(event_names), "event", &r->event);
}

static bool parse_nak(const struct words *w, u32 *i, struct lab_rule *r)
{
	static const u8 codes[] = { NAK_INVALID_REQUEST, NAK_REMOTE_ACCESS, NAK_REMOTE_OPERATION };
	u32 number;

	if (!take_name(w, i, nak_names, ARRAY_SIZE(nak_names), "NAK", &number))
		return false;
	r->value = codes[number];
	return true;
}

/* Of the MADs that a REJ answers, the request alone: a refused REP is the client's own fault. */
static bool parse_reject(const struct words *w, u32 *i, struct lab_rule *r)
{
	static const char *const kind = "cm.req";
	u32 only;

	r->value = REJ_BY_CONSUMER;
	return take_name(w, i, &kind, 1, "kind of MAD that is rejected", &only);
}

static bool parse_time(const struct words *w, u32 *i, struct lab_rule *r)
{
	const struct word *word = *i < w->num ? &w->word[*i] : NULL;

	if (!word || !lab_time_parse(word->at, word->len, &r->delay_ns))
		return refuse(w, word, "%s needs a time up to a minute, as 2ms",
			      verbs[r->verb].name);
	++*i;
	return true;
}

static void parse_part(const struct words *w, u32 *i, struct lab_rule *r)
{
	const u32 part = *i < w->num ? find_word(&w->word[*i], parts, ARRAY_SIZE(parts)) :
				       ARRAY_SIZE(parts);

	if (part == ARRAY_SIZE(parts))
		return;
	r->part = part;
	++*i;
}

/* Parses what follows the verb and is no selector. */
static bool parse_operands(const struct words *w, u32 *i, struct lab_rule *r)
{
	switch (r->verb) {
	case LAB_DELAY:
	case LAB_LATE:
		return parse_time(w, i, r);
	case LAB_CORRUPT:
		parse_part(w, i, r);
		return true;
	case LAB_FAIL:
		return parse_fail(w, i, r);
	case LAB_COMPLETE:
		return parse_complete(w, i, r);
	case LAB_EVENT:
		return parse_event(w, i, r);
	case LAB_NAK:
		return parse_nak(w, i, r);
	case LAB_REJECT:
		return parse_reject(w, i, r);
	default:
		return true;
	}
}

/* Parses credits=N. Returns false if the word is another one. */
static bool parse_credits(const struct words *w, const struct word *word, struct lab_rule *r,
			  bool *good)
{
	static const char prefix[] = "credits=";
	const char *at = word->at + strlen(prefix), *end = word->at + word->len;

	if (word->len < strlen(prefix) || strncmp(word->at, prefix, strlen(prefix)))
		return false;
	r->verb = LAB_CREDITS;
	*good = (take_number(&at, end, &r->value) && at == end && r->value <= LAB_CREDITS_MAX) ||
		refuse(w, word, "credits are a number up to %d", LAB_CREDITS_MAX);
	return true;
}

static bool parse_verb(const struct words *w, u32 *i, struct lab_rule *r)
{
	const struct word *word = &w->word[0];
	bool good = true;

	if (!w->num)
		return refuse(w, NULL, "an empty rule; it begins with " VERBS_TEXT);
	*i = 1;
	if (parse_credits(w, word, r, &good))
		return good;
	while (r->verb < LAB_VERBS && !word_is(word, verbs[r->verb].name))
		r->verb++;
	if (r->verb == LAB_VERBS)
		return refuse(w, word, "no such verb; a rule begins with " VERBS_TEXT);
	if (r->verb == LAB_CREDITS)
		return refuse(w, word, "the number of credits is missing, as credits=0");
	return parse_operands(w, i, r);
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

/* Parses h1, the host of an endpoint's rule. Returns false if the word is no host. */
static bool parse_rule_host(const struct words *w, const struct word *word, u32 hosts,
			    struct lab_rule *r, bool *good)
{
	const char *at = word->at + 1, *end = word->at + word->len;

	if (word->len < 2 || *word->at != 'h' || !take_number(&at, end, &r->host) || at != end)
		return false;
	*good = (r->host && r->host <= hosts) ||
		refuse(w, word, "there are hosts h1 to h%u", hosts);
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
	const u32 takes = verbs[r->verb].takes;
	struct lab_range times;

	if (word_is(&key, "nth"))
		return range_parse(value, end, 1, &r->nth) ||
		       refuse(w, word, "nth is a number from 1 or a range, as nth=1..5");
	if (takes & TAKES_PSN && word_is(&key, "round"))
		return range_parse(value, end, 1, &r->round) ||
		       refuse(w, word, "round is a number or range: 1 is the first transmission");
	if (takes & TAKES_PSN && word_is(&key, "psn"))
		return parse_psn(value, end, r) ||
		       refuse(w, word, "psn is a number, or +N from the first one, or a range");
	if (takes & TAKES_QP && word_is(&key, "qp"))
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
	if (takes & TAKES_TIMER && word_is(&key, "timer")) {
		r->has_timer = true;
		return (take_number(&value, end, &r->value) && value == end &&
			r->value <= AETH_VALUE_MASK) ||
		       refuse(w, word, "timer is a code of an RNR NAK, 0 to %d", AETH_VALUE_MASK);
	}
	if (takes & TAKES_REASON && word_is(&key, "reason"))
		return (take_number(&value, end, &r->value) && value == end && r->value &&
			r->value <= REJ_REASON_MAX) ||
		       refuse(w, word, "reason is the number of a REJ, 1 to %d", REJ_REASON_MAX);
	return refuse(w, &key, "no such selector of %s; there are %snth, %sp and times",
		      verbs[r->verb].name, takes & TAKES_QP ? "qp, " : "",
		      takes & TAKES_PSN ? "psn, round, " : "");
}

static bool parse_selector(const struct words *w, const struct word *word, u32 hosts,
			   struct lab_rule *r)
{
	const u32 position = find_word(word, positions, ARRAY_SIZE(positions));
	const u32 work = find_word(word, work_names, ARRAY_SIZE(work_names));
	const u32 call = find_word(word, calls, ARRAY_SIZE(calls));
	const u32 takes = verbs[r->verb].takes;
	bool good = true;

	if (takes & TAKES_DIRECTION && parse_direction(w, word, hosts, r, &good))
		return good;
	if (takes & TAKES_HOST && memchr(word->at, '>', word->len))
		return refuse(w, word, "%s acts on a host: h1 instead of a direction",
			      verbs[r->verb].name);
	if (takes & TAKES_HOST && parse_rule_host(w, word, hosts, r, &good))
		return good;
	if (memchr(word->at, '=', word->len))
		return parse_value(w, word, r);
	if (takes & TAKES_KIND && position < ARRAY_SIZE(positions)) {
		r->positions |= 1u << position;
		return true;
	}
	if (takes & TAKES_WORK && work < ARRAY_SIZE(work_names)) {
		r->works |= 1u << work;
		return true;
	}
	if (takes & TAKES_CALL && call < ARRAY_SIZE(calls)) {
		r->call = call;
		return true;
	}
	if (takes & TAKES_KIND && lab_kinds_add(&r->kinds, word->at, word->len)) {
		r->any_kind = false;
		return true;
	}
	return refuse(w, word, "neither %s nor a selector",
		      takes & TAKES_DIRECTION ?
			      "a kind of packet (rc.send, rc.ack, cm.req), a direction (h1>h2)" :
		      takes & TAKES_KIND ? "a kind of packet (rc.send, rc.read), a host (h1)" :
		      takes & TAKES_WORK ? "a kind of completion (send, recv), a host (h1)" :
		      takes & TAKES_CALL ? "a call (ibv_post_send), a host (h1)" :
					   "a host (h1)");
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

enum lab_place lab_rule_place(const struct lab_rule *rule)
{
	return verbs[rule->verb].place;
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
