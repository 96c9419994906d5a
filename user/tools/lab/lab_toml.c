/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lab_toml.h"

struct toml {
	char *at, *end;
	const char *line_at; /* begin of the line */
	u32 line;
	const struct lab_toml_reader *reader;
	struct lab_toml_error *error;
	bool in_table;
	u32 num_keys;
	char keys[TOML_KEYS][TOML_WORD]; /* of the current table */
};

static bool refuse_at(struct toml *t, const char *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Sets the error at a place of the current line. Returns false. */
static bool refuse_at(struct toml *t, const char *at, const char *fmt, ...)
{
	va_list args;

	t->error->line = t->line;
	t->error->column = (u32)(at - t->line_at) + 1;
	va_start(args, fmt);
	vsnprintf(t->error->why, sizeof(t->error->why), fmt, args);
	va_end(args);
	return false;
}

/* ---- bytes ---- */

/* Returns the length of the UTF-8 sequence at the place, or 0 if it is none (RFC 3629). */
static u32 utf8_len(const u8 *at, size_t left)
{
	u32 len = 0;

	if (*at < 0x80)
		return 1;
	if (*at >= 0xc2 && *at < 0xf5)
		len = *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
	if (!len || len > left)
		return 0;
	for (u32 i = 1; i < len; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	/* longer than need be, surrogates, and above U+10FFFF */
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90))
		return 0;
	return len;
}

/* Checks all bytes: UTF-8, and of control characters tabs and ends of lines alone. */
static bool check_bytes(struct toml *t)
{
	for (const char *at = t->at; at < t->end;) {
		const size_t left = (size_t)(t->end - at);
		const u32 len = utf8_len((const u8 *)at, left);
		const bool ends_line = *at == '\r' && left > 1 && at[1] == '\n';

		if (!len)
			return refuse_at(t, at, "not UTF-8");
		if ((u8)*at == 0x7f || ((u8)*at < ' ' && *at != '\t' && *at != '\n' && !ends_line))
			return refuse_at(t, at, "a control character (0x%02x)", (u8)*at);
		at += len;
		if (at[-1] == '\n') {
			t->line++;
			t->line_at = at;
		}
	}
	t->line = 1;
	t->line_at = t->at;
	return true;
}

static char peek(const struct toml *t)
{
	return t->at < t->end ? *t->at : 0;
}

static void skip_spaces(struct toml *t)
{
	while (peek(t) == ' ' || peek(t) == '\t')
		t->at++;
}

/* Skips spaces and a comment. Returns whether a line, or the text, ends there; goes to the next. */
static bool skip_line_end(struct toml *t)
{
	skip_spaces(t);
	if (peek(t) == '#')
		while (t->at < t->end && *t->at != '\n' && *t->at != '\r')
			t->at++;
	if (t->at == t->end)
		return true;
	if (*t->at == '\r')
		t->at++;
	if (*t->at != '\n')
		return false;
	t->line_at = ++t->at;
	t->line++;
	return true;
}

/* The word at the place, for messages: up to a space or the end of the line. */
static int word_len(const struct toml *t)
{
	const char *at = t->at;

	while (at < t->end && !isspace((unsigned char)*at) && at - t->at < TOML_WORD)
		at++;
	return (int)(at - t->at);
}

static bool take_line_end(struct toml *t, const char *after)
{
	if (skip_line_end(t))
		return true;
	return refuse_at(t, t->at, "'%.*s' after %s: the line ends there", word_len(t), t->at,
			 after);
}

/* ---- words ---- */

static bool is_bare(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

static bool take_bare(struct toml *t, char word[TOML_WORD], const char *what)
{
	const char *from = t->at;
	u32 n = 0;

	while (is_bare(peek(t))) {
		if (n == TOML_WORD - 1)
			return refuse_at(t, from, "%s has at most %d characters", what,
					 TOML_WORD - 1);
		word[n++] = *t->at++;
	}
	word[n] = 0;
	if (!n)
		return refuse_at(t, from, "'%.*s' is not %s of letters, digits, - and _",
				 word_len(t), t->at, what);
	return true;
}

/* Parses "..." or '...' and sets *text to its decoded text, in place. */
static bool take_string(struct toml *t, const char **text)
{
	const char quote = *t->at, *from = t->at++;
	char *to = t->at;

	*text = to;
	if (peek(t) == quote && t->end - t->at > 1 && t->at[1] == quote)
		return refuse_at(t, from, "strings of several lines are not supported");
	while (t->at < t->end && *t->at != quote && *t->at != '\n' && *t->at != '\r') {
		char c = *t->at++;

		if (c == '\\' && quote == '"') {
			const char *known = "\"\\nt", *is = peek(t) ? strchr(known, *t->at) : NULL;

			if (!is)
				return refuse_at(t, t->at - 1,
						 "'\\%.*s': the escapes are \\\" \\\\ \\n \\t",
						 peek(t) > ' ', t->at);
			c = "\"\\\n\t"[is - known];
			t->at++;
		}
		*to++ = c;
	}
	if (peek(t) != quote)
		return refuse_at(t, from, "a string without its closing %c", quote);
	t->at++;
	*to = 0;
	return true;
}

/* Checks [+-]DIGITS[.DIGITS] of TOML: no leading zero, no underscore, exponent or other base. */
static bool is_number(const char *word)
{
	word += *word == '-' || *word == '+';
	if (!isdigit((unsigned char)*word) || (*word == '0' && isdigit((unsigned char)word[1])))
		return false;
	word += strspn(word, "0123456789");
	if (*word == '.' && isdigit((unsigned char)word[1]))
		word += 1 + strspn(word + 1, "0123456789");
	return !*word;
}

/* Parses true, false or a number. */
static bool take_plain(struct toml *t, char word[TOML_WORD], enum lab_toml_type *type)
{
	const char *from = t->at;
	u32 n = 0;

	while (t->at < t->end && !strchr(" \t\r\n,]#", *t->at) && n < TOML_WORD - 1)
		word[n++] = *t->at++;
	word[n] = 0;
	*type = is_number(word) ? TOML_NUMBER : TOML_BOOLEAN;
	if (*type == TOML_NUMBER || !strcmp(word, "true") || !strcmp(word, "false"))
		return true;
	return refuse_at(t, from,
			 "'%s' is no value: a value is a \"string\", a decimal number, true, "
			 "false, or a [\"list\", \"of strings\"]",
			 word);
}

/* ---- values ---- */

static bool give(struct toml *t, struct lab_toml_value *v, const char *at)
{
	char why[sizeof(t->error->why)] = "";

	v->line = t->line;
	v->column = (u32)(at - t->line_at) + 1;
	return t->reader->value(t->reader->arg, v, why, sizeof(why)) || refuse_at(t, at, "%s", why);
}

/* Skips spaces, comments and ends of lines. */
static void skip_lines(struct toml *t)
{
	while (t->at < t->end && skip_line_end(t))
		;
}

/* Takes a string of a list, and the comma after it. */
static bool take_item(struct toml *t, struct lab_toml_value *v)
{
	const char *at = t->at;

	if (*at != '"' && *at != '\'')
		return refuse_at(t, at, "'%.*s' in a list: it has strings alone", word_len(t), at);
	if (!take_string(t, &v->text) || !give(t, v, at))
		return false;
	skip_lines(t);
	if (peek(t) == ',') {
		t->at++;
		skip_lines(t);
	} else if (peek(t) && peek(t) != ']') {
		return refuse_at(t, t->at, "'%.*s' in a list: , or ] is missing", word_len(t),
				 t->at);
	}
	return true;
}

static bool take_list(struct toml *t, struct lab_toml_value *v)
{
	const u32 line = t->line, column = (u32)(t->at - t->line_at) + 1;

	v->in_list = true;
	t->at++;
	skip_lines(t);
	while (peek(t) && peek(t) != ']')
		if (!take_item(t, v))
			return false;
	if (t->at == t->end) {
		refuse_at(t, t->at, "a list without its closing ]");
		t->error->line = line;
		t->error->column = column;
		return false;
	}
	t->at++;
	return true;
}

static bool take_value(struct toml *t, const char *key)
{
	struct lab_toml_value v = { .key = key };
	char word[TOML_WORD];
	const char *at = t->at;

	if (peek(t) == '[')
		return take_list(t, &v);
	if (peek(t) == '"' || peek(t) == '\'')
		return take_string(t, &v.text) && give(t, &v, at);
	v.text = word;
	return take_plain(t, word, &v.type) && give(t, &v, at);
}

static bool add_key(struct toml *t, const char *key, const char *at)
{
	for (u32 i = 0; i < t->num_keys; i++)
		if (!strcmp(t->keys[i], key))
			return refuse_at(t, at, "'%s' stands twice in this table", key);
	if (t->num_keys == TOML_KEYS)
		return refuse_at(t, at, "a table has at most %d keys", TOML_KEYS);
	strcpy(t->keys[t->num_keys++], key);
	return true;
}

static bool take_pair(struct toml *t)
{
	char key[TOML_WORD];
	const char *at = t->at;

	if (!take_bare(t, key, "a key"))
		return false;
	skip_spaces(t);
	if (peek(t) != '=')
		return refuse_at(t, t->at, "= is missing after '%s'", key);
	t->at++;
	skip_spaces(t);
	if (!t->in_table)
		return refuse_at(t, at, "'%s' before the first [[table]]", key);
	return add_key(t, key, at) && take_value(t, key) && take_line_end(t, "a value");
}

static bool take_header(struct toml *t)
{
	char name[TOML_WORD], why[sizeof(t->error->why)] = "";
	const char *at = t->at++;

	if (peek(t) != '[')
		return refuse_at(t, at, "a table begins with [[NAME]]");
	t->at++;
	skip_spaces(t);
	if (!take_bare(t, name, "a name"))
		return false;
	skip_spaces(t);
	if (t->end - t->at < 2 || t->at[0] != ']' || t->at[1] != ']')
		return refuse_at(t, t->at, "]] is missing after '%s'", name);
	t->at += 2;
	t->num_keys = 0;
	t->in_table = true;
	if (!t->reader->table(t->reader->arg, name, t->line, why, sizeof(why)))
		return refuse_at(t, at, "%s", why);
	return take_line_end(t, "a header");
}

bool lab_toml_read(char *text, size_t len, const struct lab_toml_reader *reader,
		   struct lab_toml_error *error)
{
	struct toml t = { .at = text,
			  .end = text + len,
			  .line_at = text,
			  .line = 1,
			  .reader = reader,
			  .error = error };

	if (!check_bytes(&t))
		return false;
	while (t.at < t.end) {
		if (skip_line_end(&t))
			continue;
		if (*t.at == '[' ? !take_header(&t) : !take_pair(&t))
			return false;
	}
	return true;
}
