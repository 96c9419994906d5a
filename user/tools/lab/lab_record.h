/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files that repeat a run: a table [[run]] of TOML with the version, the command, and all options
 * that say what a run is.
 */
#ifndef LAB_RECORD_H
#define LAB_RECORD_H

#include "lab_options.h"
#include "lab_toml.h"

/* Writes the run to its file. Returns EXIT_OK, or EXIT_FAILED after a message. */
int lab_record(const struct lab *lab);
/*
 * Replaces the lab's settings by those of its file; those of its command line follow, and so
 * prevail. Returns EXIT_OK, or another exit code after a message.
 */
int lab_replay(struct lab *lab);

/* Parses a record, which it changes, into a lab that has its defaults. */
bool lab_record_parse(char *text, size_t len, struct lab *lab, struct lab_toml_error *error);
/* Writes a record. Returns false if a word has a byte that TOML refuses. */
bool lab_record_write(const struct lab *lab, FILE *out);

#endif
