/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options of `xroce lab`: their table, their values in struct lab, and checks of the whole. */
#ifndef LAB_OPTIONS_H
#define LAB_OPTIONS_H

#include "../cli.h"
#include "lab_run.h"

extern const struct cli_option lab_options[];

/* Sets the defaults. Returns false if memory runs out. */
bool lab_begin(struct lab *lab);
/* Stores the value of an option. Returns false if the value is not accepted. */
bool lab_set_option(struct lab *lab, int id, char *value);
/* The same for cli_parse(); lab is a struct lab. */
int lab_option(void *lab, int id, char *value);
/* Takes a command from the command line. Returns EXIT_OK, or EXIT_USAGE after a message. */
int lab_take_command(struct lab *lab, int argc, char **argv);
/*
 * Opens a file for the capture of the next run. path NULL: it has none. Returns EXIT_OK, or
 * EXIT_FAILED after a message.
 */
int lab_capture_open(struct lab *lab, const char *path);
/*
 * Checks rules and hosts, and prepares the lab for a run. Returns EXIT_OK, or EXIT_USAGE after a
 * message.
 */
int lab_check(struct lab *lab);
/* Returns the option of that name if cases may set it, or NULL. */
const struct cli_option *lab_case_option(const char *name);
/* Returns the option of that name or id if it says what a run is, or NULL. */
const struct cli_option *lab_run_option(const char *name);
const struct cli_option *lab_option_by_id(int id);
/* Returns whether an option's value is an action. */
bool lab_option_is_action(int id);
/* Returns whether an option can be repeated. */
bool lab_option_is_list(int id);
/* Writes the command line that has these settings and programs, quoted for sh(1). */
void lab_print_command(const struct lab *lab, FILE *out);

#endif
