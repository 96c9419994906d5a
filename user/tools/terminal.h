/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Properties of standard output, and progress lines on standard error. */
#ifndef TOOLS_TERMINAL_H
#define TOOLS_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#include "../engine/types.h"

/* Returns whether out is a terminal with colours and the user has not disabled them (NO_COLOR). */
bool terminal_is_coloured(FILE *out);
/* Sets columns and lines; 0: not a terminal. */
void terminal_size(FILE *out, u32 *columns, u32 *lines);

/*
 * Prints a progress line on standard error if that is a terminal. The next line replaces it, at
 * most ten times a second. NULL removes it.
 */
void terminal_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints a permanent line on standard error if that is a terminal. */
void terminal_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
