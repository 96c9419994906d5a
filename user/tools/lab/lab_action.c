/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab_action.h"

static const struct {
	const char *name;
	enum lab_act act;
	bool has_host, has_bytes, has_time;
} acts[] = {
	{ "kill", LAB_KILL, true, false, false },
	{ "stop", LAB_STOP, true, false, true },
	{ "link", LAB_LINK, true, false, true },
	{ "address", LAB_ADDRESS, true, false, true },
	{ "mtu", LAB_PATH_MTU, false, true, true },
	{ "partition", LAB_PARTITION, false, false, true },
};

u32 lab_host_parse(const char *word)
{
	return word && word[0] == 'h' && word[1] >= '1' && word[1] < '1' + LAB_HOSTS && !word[2] ?
		       (u32)(word[1] - '0') :
		       0;
}

struct words {
	const char *text, *next;
	struct lab_error *error;
	char word[LAB_ACTION_TEXT];
};

/* Takes the next word, "" at the end, and sets the error's place to it. */
static const char *take(struct words *w)
{
	size_t len;

	w->next += strspn(w->next, " \t");
	len = strcspn(w->next, " \t");
	w->error->at = (u32)(w->next - w->text);
	w->error->len = len ? (u32)len : 1;
	snprintf(w->word, sizeof(w->word), "%.*s", (int)len, w->next);
	w->next += len;
	return w->word;
}

/* Sets the reason of the error at the last word. Returns false. */
static bool refuse(struct words *w, const char *why)
{
	snprintf(w->error->why, sizeof(w->error->why), "%s", why);
	return false;
}

static bool take_time(struct words *w, u64 *ns, const char *why)
{
	const char *word = take(w);

	return lab_time_parse(word, strlen(word), ns) || refuse(w, why);
}

static bool take_bytes(struct words *w, u32 *bytes)
{
	const char *word = take(w);
	const size_t len = strlen(word);

	if (!len || len > 5 || strspn(word, "0123456789") != len)
		return refuse(w, "mtu takes a number of bytes, 1 to 65535");
	*bytes = (u32)atoi(word);
	return (*bytes && *bytes <= UINT16_MAX) ||
	       refuse(w, "mtu takes a number of bytes, 1 to 65535");
}

bool lab_action_parse(const char *text, u32 hosts, struct lab_action *a, struct lab_error *error)
{
	struct words w = { .text = text, .next = text, .error = error };
	u32 i = 0;

	*a = (struct lab_action){ .text = text };
	*error = (struct lab_error){ 0 };
	if (strlen(text) >= LAB_ACTION_TEXT)
		return refuse(&w, "an action has at most 63 characters");
	if (!take_time(&w, &a->at_ns, "an action begins with a time up to a minute, as 500ms"))
		return false;
	take(&w);
	while (i < ARRAY_SIZE(acts) && strcmp(w.word, acts[i].name))
		i++;
	if (i == ARRAY_SIZE(acts))
		return refuse(&w, "there are kill, stop, link, address, mtu and partition");
	a->act = acts[i].act;
	if (acts[i].has_host) {
		a->host = lab_host_parse(take(&w));
		if (!a->host || a->host > hosts)
			return refuse(&w, "there is no such host; it is h1, h2, ...");
	}
	if (acts[i].has_bytes && !take_bytes(&w, &a->bytes))
		return false;
	if (acts[i].has_time &&
	    !take_time(&w, &a->for_ns,
		       "it takes a time up to a minute, as 500ms, for which it lasts"))
		return false;
	return !*take(&w) || refuse(&w, "the action ends before this word");
}
