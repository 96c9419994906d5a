/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What standard output is: a terminal with colours and a width, or a pipe or file with neither. */
#ifndef TOOLS_TERMINAL_H
#define TOOLS_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#include "../engine/types.h"

/* A terminal that can show colours, and whose user has not asked for none (NO_COLOR). */
bool terminal_is_coloured(FILE *out);
/* In columns and lines; 0: it is no terminal. */
void terminal_size(FILE *out, u32 *columns, u32 *lines);

/*
 * What is being done, for what takes long: a line on standard error if that is a terminal, which
 * the next one replaces, ten times a second at most; NULL: none any more.
 */
void terminal_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same as a line of its own, which stays. */
void terminal_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
