/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What happens to a lab's hosts and links at times: the grammar. Pure. */
#ifndef LAB_ACTION_H
#define LAB_ACTION_H

#include "../../fault/lab_rule.h"

enum { LAB_ACTIONS = 32, LAB_ACTION_TEXT = 64 };

enum lab_act { LAB_KILL, LAB_STOP, LAB_LINK, LAB_ADDRESS, LAB_PATH_MTU, LAB_PARTITION };

/* What happens at a time, and what ends it, for_ns later. */
struct lab_action {
	u64 at_ns;  /* since the programs' start */
	u64 for_ns; /* 0: at once, or for ever */
	u32 host;   /* from 1; 0: none */
	u32 bytes;  /* of LAB_PATH_MTU */
	enum lab_act act;
	bool is_begun, is_over;
	const char *text;
};

/* Parses a host's name; word may be NULL. Returns its number, or 0. */
u32 lab_host_parse(const char *word);
/*
 * Parses "2s stop h2 500ms" for `hosts` hosts; the text stays the caller's. Returns false with
 * *error set.
 */
bool lab_action_parse(const char *text, u32 hosts, struct lab_action *action,
		      struct lab_error *error);

#endif
