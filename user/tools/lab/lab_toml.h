/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads the part of TOML 1.0 that files of the lab need, strictly: [[TABLE]] headers, and in each
 * table KEY = VALUE with bare keys and values that are strings of one line, decimal numbers,
 * booleans, or lists of strings. All else is refused with its place. Pure: no system call.
 */
#ifndef LAB_TOML_H
#define LAB_TOML_H

#include <stdbool.h>
#include <stddef.h>

#include "../../engine/types.h"

enum { TOML_WORD = 32, TOML_KEYS = 48 }; /* bytes of a key with its end; most keys of a table */

enum lab_toml_type { TOML_STRING, TOML_NUMBER, TOML_BOOLEAN };

struct lab_toml_value {
	const char *key;
	const char *text; /* decoded; of a number or boolean as it is written */
	enum lab_toml_type type;
	bool in_list;
	u32 line, column; /* from 1 */
};

struct lab_toml_error {
	u32 line, column; /* from 1 */
	char why[200];
};

/*
 * What the reader calls, for each header and for each value; a list's values come one by one. They
 * return false to refuse it, with the reason in why (of WHY bytes). Texts are valid until the
 * return.
 */
struct lab_toml_reader {
	bool (*table)(void *arg, const char *name, u32 line, char *why, size_t bytes);
	bool (*value)(void *arg, const struct lab_toml_value *value, char *why, size_t bytes);
	void *arg;
};

/* Reads len bytes, which it changes. Returns false with *error set where the first fault is. */
bool lab_toml_read(char *text, size_t len, const struct lab_toml_reader *reader,
		   struct lab_toml_error *error);

#endif
