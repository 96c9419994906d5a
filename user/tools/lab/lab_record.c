/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xroce/version.h>

#include "lab_cases.h"
#include "lab_record.h"

enum { RECORD_WORDS = 250 }; /* most words of a command */

/* ---- writing ---- */

/* Writes a string of TOML. Returns false if it has a control character. */
static bool put_string(const char *text, FILE *out)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '\n' || *text == '\t')
			fprintf(out, "\\%c", *text == '\n' ? 'n' : 't');
		else if ((u8)*text < ' ' || *text == 0x7f)
			return false;
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
	fputc('"', out);
	return true;
}

/* Writes the values of an option that can be repeated, or the last one of another. */
static bool put_setting(const struct lab *lab, const struct cli_option *o, FILE *out)
{
	const char *last = NULL;
	bool is_set = false, good = true;

	for (u32 i = 0; i < lab->num_settings; i++) {
		const struct lab_setting *s = &lab->settings[i];

		if (s->id != o->id)
			continue;
		if (lab_option_is_list(o->id)) {
			fprintf(out, is_set ? ", " : "%s = [", o->name);
			good &= put_string(s->value, out);
		}
		is_set = true;
		last = s->value;
	}
	if (!is_set)
		return true;
	if (lab_option_is_list(o->id)) {
		fputs("]\n", out);
	} else if (!o->argument) {
		fprintf(out, "%s = true\n", o->name);
	} else {
		fprintf(out, "%s = ", o->name);
		good &= put_string(last, out);
		fputc('\n', out);
	}
	return good;
}

bool lab_record_write(const struct lab *lab, FILE *out)
{
	bool good = true;

	fprintf(out,
		"# A run of xroce lab, for --replay.\n[[run]]\nversion = \"" XROCE_VERSION "\"\n");
	if (lab->programs[0].argv) {
		fputs("command = [", out);
		for (char *const *word = lab->programs[0].argv; *word; word++) {
			good &= put_string(*word, out);
			if (word[1])
				fputs(", ", out);
		}
		fputs("]\n", out);
	}
	for (const struct cli_option *o = lab_options; o->id; o++)
		if (lab_option_by_id(o->id))
			good &= put_setting(lab, o, out);
	return good;
}

int lab_record(const struct lab *lab)
{
	FILE *out = fopen(lab->record, "we");
	const bool good = out && lab_record_write(lab, out);

	if (out && !good) {
		fclose(out);
		fprintf(stderr, "xroce lab: a control character in the command or an option "
				"cannot be recorded\n");
		return EXIT_FAILED;
	}
	if (out && !(ferror(out) | fclose(out)))
		return EXIT_OK;
	fprintf(stderr, "xroce lab: cannot write '%s': %s\n", lab->record, strerror(errno));
	return EXIT_FAILED;
}

/* ---- reading ---- */

struct reader {
	struct lab *lab;
	u32 num_tables, num_words;
	char *free;    /* room for the values, in lab.recorded */
	bool is_other; /* another version has written it */
};

static bool on_table(void *arg, const char *name, u32 line, char *why, size_t bytes)
{
	struct reader *r = arg;

	if (!strcmp(name, "run") && !r->num_tables++)
		return true;
	snprintf(why, bytes, "'%s': this file has one table, [[run]]", name);
	return false;
}

static bool add_word(struct reader *r, char *text)
{
	struct lab_program *p = &r->lab->programs[0];

	if (!p->argv)
		p->argv = calloc(RECORD_WORDS + 1, sizeof(*p->argv));
	if (!p->argv || r->num_words == RECORD_WORDS)
		return false;
	p->argv[r->num_words++] = text;
	return true;
}

static bool on_value(void *arg, const struct lab_toml_value *v, char *why, size_t bytes)
{
	struct reader *r = arg;
	const struct cli_option *o;
	char *text;

	if (!strcmp(v->key, "version")) {
		r->is_other = strcmp(v->text, XROCE_VERSION);
		return true;
	}
	o = lab_run_option(v->key);
	if (!o && strcmp(v->key, "command")) {
		snprintf(why, bytes, "'%s' is no key of a run", v->key);
		return false;
	}
	if (o && !o->argument && !strcmp(v->text, "false"))
		return true;
	/* shorter than the value in the file, which has quotes or a key and an equals sign */
	text = r->free;
	r->free = stpcpy(text, v->text) + 1;
	if (o ? v->in_list <= lab_option_is_list(o->id) &&
			    lab_set_option(r->lab, o->id, o->argument ? text : NULL) :
		v->in_list && add_word(r, text))
		return true;
	snprintf(why, bytes, "'%.40s': %s takes %s", v->text, v->key,
		 o && o->wants ? o->wants :
		 o	       ? "another value" :
				 "a list of words");
	return false;
}

bool lab_record_parse(char *text, size_t len, struct lab *lab, struct lab_toml_error *error)
{
	struct reader r = { .lab = lab };
	const struct lab_toml_reader reader = { on_table, on_value, &r };

	*error = (struct lab_toml_error){ 1, 1, "out of memory" };
	r.free = lab->recorded = malloc(len + 1);
	if (!r.free || !lab_toml_read(text, len, &reader, error))
		return false;
	if (r.is_other)
		fprintf(stderr, "xroce lab: note: another version of xroce recorded this run\n");
	*error = (struct lab_toml_error){ 1, 1, "no [[run]]" };
	return r.num_tables;
}

int lab_replay(struct lab *lab)
{
	struct lab *given = malloc(sizeof(*given));
	struct lab_toml_error error;
	char *text = NULL;
	ssize_t len;
	bool good;

	if (!given)
		return lab_failed("allocate memory", -ENOMEM);
	*given = *lab;
	len = lab_file_read(given->replay, &text);
	if (len < 0) {
		fprintf(stderr, "xroce lab: cannot read '%s': %s\n", given->replay,
			strerror((int)-len));
		return len == -ENOENT ? EXIT_USAGE : EXIT_FAILED;
	}
	if (!lab_begin(lab))
		return lab_failed("allocate memory", -ENOMEM);
	good = lab_record_parse(text, (size_t)len, lab, &error);
	free(text);
	if (!good) {
		output_clean(error.why);
		fprintf(stderr, "xroce lab: %s:%u:%u: %s\n", given->replay, error.line,
			error.column, error.why);
		return EXIT_USAGE;
	}
	for (u32 i = 0; i < given->num_settings; i++)
		if (!lab_set_option(lab, given->settings[i].id, given->settings[i].value))
			return usage_error(&command_lab, "too many options");
	free(given);
	return EXIT_OK;
}
