/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lab_cases.h"

enum { FILE_MOST = 1 << 20 }; /* bytes of a file of cases */

struct loader {
	struct lab_cases *cases;
	struct lab *scratch; /* where values are tried */
};

/* ---- keys ---- */

static bool is_case_name(const char *name)
{
	const size_t len = strlen(name);

	return len && len < LAB_CASE_NAME &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static bool set_name(struct lab_cases *cases, struct lab_case *c, const struct lab_toml_value *v,
		     char *why, size_t bytes)
{
	if (v->type != TOML_STRING || v->in_list || !is_case_name(v->text)) {
		snprintf(why, bytes, "'%.40s': a name has up to %d of a-z, 0-9 and -", v->text,
			 LAB_CASE_NAME - 1);
		return false;
	}
	for (u32 i = 0; i < cases->num; i++)
		if (!strcmp(cases->list[i].name, v->text)) {
			snprintf(why, bytes, "'%s' is the name of another case", v->text);
			return false;
		}
	strcpy(c->name, v->text);
	return true;
}

static bool set_expect(struct lab_case *c, const struct lab_toml_value *v, char *why, size_t bytes)
{
	static const char *const words[] = { "success", "failure", "end" };

	for (u32 i = 0; i < ARRAY_SIZE(words); i++)
		if (v->type == TOML_STRING && !v->in_list && !strcmp(v->text, words[i])) {
			c->expect = i;
			return true;
		}
	snprintf(why, bytes, "'%.40s': expect is success, failure or end", v->text);
	return false;
}

/* Checks that the value has the type that its option takes. */
static bool type_fits(const struct cli_option *o, const struct lab_toml_value *v)
{
	if (!o->argument)
		return v->type == TOML_BOOLEAN && !v->in_list;
	if (lab_option_is_list(o->id))
		return v->type == TOML_STRING;
	return v->type != TOML_BOOLEAN && !v->in_list;
}

/* Tries the value in a lab of its own, which has the most hosts. */
static bool value_fits(struct loader *l, const struct cli_option *o, char *text, char *why,
		       size_t bytes)
{
	struct lab_error error = { 0 };
	struct lab_action action;
	struct lab_rule rule;
	bool good;

	*l->scratch = (struct lab){ .num_hosts = LAB_HOSTS };
	if (o->id == 'f' || lab_option_is_action(o->id)) {
		good = o->id == 'f' ? lab_rule_parse(text, LAB_HOSTS, &rule, &error) :
				      lab_action_parse(text, LAB_HOSTS, &action, &error);
		if (good)
			return true;
		snprintf(why, bytes, "'%.*s' in a rule or action: %s", (int)min_u32(error.len, 40),
			 error.at < strlen(text) ? text + error.at : "", error.why);
		return false;
	}
	good = lab_set_option(l->scratch, o->id, o->argument ? text : NULL);
	/* the rule of a share */
	if (l->scratch->num_texts)
		free(l->scratch->texts[0]);
	if (good)
		return true;
	snprintf(why, bytes, "'%.40s': %s takes %s", text, o->name, o->wants ? o->wants : "");
	return false;
}

static bool set_option(struct loader *l, struct lab_case *c, const struct lab_toml_value *v,
		       char *why, size_t bytes)
{
	const struct cli_option *o = lab_case_option(v->key);
	char *text;

	if (!o) {
		snprintf(why, bytes, "'%s' is no key of a case", v->key);
		return false;
	}
	if (!type_fits(o, v)) {
		snprintf(why, bytes, "'%.40s': %s takes %s", v->text, o->name,
			 !o->argument		   ? "true or false" :
			 lab_option_is_list(o->id) ? "a string or a list of strings" :
						     o->wants);
		return false;
	}
	if (!o->argument && !strcmp(v->text, "false"))
		return true;
	text = strdup(v->text);
	if (!text || c->num_settings == LAB_CASE_SETTINGS) {
		free(text);
		snprintf(why, bytes, "a case has at most %d values", LAB_CASE_SETTINGS);
		return false;
	}
	if (!value_fits(l, o, text, why, bytes)) {
		free(text);
		return false;
	}
	c->settings[c->num_settings++] = (struct lab_setting){ o->id, o->argument ? text : NULL };
	if (!o->argument)
		free(text);
	return true;
}

/* ---- tables ---- */

/* Checks the last case when the next one, or the end, follows it. */
static bool case_is_whole(const struct lab_cases *cases, char *why, size_t bytes)
{
	const struct lab_case *c = cases->num ? &cases->list[cases->num - 1] : NULL;

	if (!c || (c->name[0] && c->num_settings))
		return true;
	snprintf(why, bytes, "the case of line %u has no %s", c->line,
		 c->name[0] ? "rule, action or option" : "name");
	return false;
}

static bool on_table(void *arg, const char *name, u32 line, char *why, size_t bytes)
{
	struct loader *l = arg;

	if (strcmp(name, "case")) {
		snprintf(why, bytes, "'%s': tables of this file are [[case]]", name);
		return false;
	}
	if (!case_is_whole(l->cases, why, bytes))
		return false;
	if (l->cases->num == LAB_CASES) {
		snprintf(why, bytes, "more than %d cases", LAB_CASES);
		return false;
	}
	l->cases->list[l->cases->num++] = (struct lab_case){ .line = line };
	return true;
}

static bool on_value(void *arg, const struct lab_toml_value *v, char *why, size_t bytes)
{
	struct loader *l = arg;
	struct lab_case *c = &l->cases->list[l->cases->num - 1];

	if (!strcmp(v->key, "name"))
		return set_name(l->cases, c, v, why, bytes);
	if (!strcmp(v->key, "expect"))
		return set_expect(c, v, why, bytes);
	if (strcmp(v->key, "description"))
		return set_option(l, c, v, why, bytes);
	if (v->type == TOML_STRING && !v->in_list)
		c->description = strdup(v->text);
	else
		snprintf(why, bytes, "'%.40s': description takes a string", v->text);
	if (c->description)
		output_clean(c->description);
	return c->description;
}

bool lab_cases_parse(char *text, size_t len, struct lab_cases *cases, struct lab_toml_error *error)
{
	struct loader l = { .cases = cases, .scratch = calloc(1, sizeof(struct lab)) };
	const struct lab_toml_reader reader = { on_table, on_value, &l };
	bool good;

	cases->num = 0;
	cases->list = calloc(LAB_CASES, sizeof(*cases->list));
	*error = (struct lab_toml_error){ 1, 1, "out of memory" };
	good = l.scratch && cases->list && lab_toml_read(text, len, &reader, error);
	free(l.scratch);
	if (!good)
		return false;
	*error = (struct lab_toml_error){ 1, 1, "no [[case]]" };
	if (cases->num)
		error->line = cases->list[cases->num - 1].line;
	return cases->num && case_is_whole(cases, error->why, sizeof(error->why));
}

void lab_cases_free(struct lab_cases *cases)
{
	for (u32 i = 0; cases->list && i < cases->num; i++) {
		struct lab_case *c = &cases->list[i];

		for (u32 k = 0; k < c->num_settings; k++)
			free(c->settings[k].value);
		free(c->description);
		free(c->replay);
		free(c->output);
	}
	free(cases->list);
	*cases = (struct lab_cases){ .num = 0 };
}

/* ---- files ---- */

ssize_t lab_file_read(const char *path, char **text)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = 0, n = 1;
	struct stat st;

	if (fd < 0)
		return -errno;
	*text = malloc(FILE_MOST + 1);
	if (fstat(fd, &st))
		len = -errno;
	else if (S_ISDIR(st.st_mode))
		len = -EISDIR;
	else if (!*text)
		len = -ENOMEM;
	while (len >= 0 && n > 0 && len <= FILE_MOST) {
		n = read(fd, *text + len, (size_t)(FILE_MOST + 1 - len));
		len = n < 0 ? -errno : len + n;
	}
	close(fd);
	return len > FILE_MOST ? -EFBIG : len;
}

/* Finds the path of a file of cases: a path has a / or an ending. */
static void path_of(const char *file, const char *self, char path[PATH_MAX])
{
	const char *slash = strrchr(self, '/');

	if (strchr(file, '/') || strchr(file, '.'))
		snprintf(path, PATH_MAX, "%s", file);
	else
		snprintf(path, PATH_MAX, "%.*s/../share/xroce/lab/%s.toml",
			 slash ? (int)(slash - self) : 0, self, file);
}

static void name_of(const char *path, char *name, size_t bytes)
{
	const char *slash = strrchr(path, '/'), *at = slash ? slash + 1 : path;

	snprintf(name, bytes, "%.*s", (int)strcspn(at, "."), at);
	output_clean(name);
}

int lab_cases_load(const char *file, const char *self, struct lab_cases *cases)
{
	char path[PATH_MAX], shown[PATH_MAX], *text = NULL;
	struct lab_toml_error error;
	ssize_t len;

	path_of(file, self, path);
	strcpy(shown, path);
	output_clean(shown);
	len = lab_file_read(path, &text);
	if (len < 0) {
		fprintf(stderr, "xroce lab: cannot read '%s': %s\n", shown, strerror((int)-len));
		free(text);
		return len == -ENOENT ? EXIT_USAGE : EXIT_FAILED;
	}
	name_of(path, cases->name, sizeof(cases->name));
	if (!lab_cases_parse(text, (size_t)len, cases, &error)) {
		output_clean(error.why);
		fprintf(stderr, "xroce lab: %s:%u:%u: %s\n", shown, error.line, error.column,
			error.why);
		free(text);
		return EXIT_USAGE;
	}
	free(text);
	return EXIT_OK;
}

/* ---- results ---- */

enum lab_result lab_case_judge(const struct lab_case *c, int status, bool missed, bool may_miss,
			       char *why, size_t bytes)
{
	*why = 0;
	if (status == LAB_TIMEOUT)
		snprintf(why, bytes, "did not end before the deadline");
	else if (c->expect == LAB_EXPECT_SUCCESS && status)
		snprintf(why, bytes, "status %d", status);
	else if (missed && !may_miss)
		snprintf(why, bytes, "a rule never hit");
	else if (missed && !c->hits) {
		snprintf(why, bytes, "nothing that it selects");
		return LAB_NOT_REACHED;
	} else if (c->expect == LAB_EXPECT_FAILURE && !status)
		snprintf(why, bytes, "success, but a failure is expected");
	else
		return LAB_SURVIVED;
	return LAB_FAILED;
}
