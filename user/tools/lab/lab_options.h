/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options of `xroce lab`: their table, their values in struct lab, and checks of the whole. */
#ifndef LAB_OPTIONS_H
#define LAB_OPTIONS_H

#include "../cli.h"
#include "lab_run.h"

extern const struct cli_option lab_options[];

/* Sets the defaults. Returns false if memory runs out. */
bool lab_begin(struct lab *lab);
/* Stores the value of an option, for cli_parse(); lab is a struct lab. */
int lab_option(void *lab, int id, char *value);
/*
 * Takes the words of the command line that are a command, and checks all options together. Returns
 * EXIT_OK, or EXIT_USAGE after a message.
 */
int lab_check(struct lab *lab, int argc, char **argv);

#endif
