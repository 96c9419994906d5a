/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files of cases: what a program has to survive, one case a table [[case]]. Its keys are name,
 * description, expect, and the names of the lab's options that a run may have.
 */
#ifndef LAB_CASES_H
#define LAB_CASES_H

#include "lab_options.h"
#include "lab_toml.h"

enum { LAB_CASES = 256, LAB_CASE_SETTINGS = 64, LAB_CASE_NAME = 48 };

enum lab_expect {
	LAB_EXPECT_SUCCESS, /* exit status 0 */
	LAB_EXPECT_FAILURE, /* another status, before the deadline */
	LAB_EXPECT_END,	    /* any status, before the deadline */
};

enum lab_result { LAB_NOT_RUN, LAB_SURVIVED, LAB_FAILED, LAB_NOT_REACHED };

struct lab_case {
	char name[LAB_CASE_NAME];
	char *description; /* or NULL */
	enum lab_expect expect;
	u32 line; /* of its header */
	struct lab_setting settings[LAB_CASE_SETTINGS];
	u32 num_settings;
	/* of its run */
	enum lab_result result;
	int status;
	u32 hits; /* packets that its rules hit, and actions */
	u64 time_ns;
	char why[80];
	char *replay; /* a command line */
	char *output; /* the last bytes; NULL: survived */
};

struct lab_cases {
	char name[64]; /* of the file, without directory and ending */
	u32 num;
	struct lab_case *list;
};

/* Parses a file's text, which it changes. Returns false with *error set. */
bool lab_cases_parse(char *text, size_t len, struct lab_cases *cases, struct lab_toml_error *error);

void lab_cases_free(struct lab_cases *cases);
/* Reads a file into memory that the caller frees in any case. Returns its length, or -errno. */
ssize_t lab_file_read(const char *path, char **text);
/*
 * Reads the file of that path, or the library's of that name. Returns EXIT_OK, or another exit code
 * after a message.
 */
int lab_cases_load(const char *file, const char *self, struct lab_cases *cases);

/*
 * Returns what a run has shown. missed: a rule has never hit; may_miss: that is no failure. Sets
 * why unless it has survived.
 */
enum lab_result lab_case_judge(const struct lab_case *c, int status, bool missed, bool may_miss,
			       char *why, size_t bytes);

#endif
