/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Standard output: reserves it, checks that all was written, and cleans names for it. The terminal:
 * its properties, and progress lines on standard error.
 */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "../engine/types.h"

/* Reserves closed standard descriptors. Due before any descriptor is opened. */
void output_begin(void);
/* Returns status, or EXIT_FAILED after an error message if the output was not fully written. */
int output_end(int status);

/* Waits ms milliseconds, or until a signal. Returns true if the reader of stdout has closed it. */
bool output_wait(u32 ms);

/* Replaces all but printable ASCII by '?', since names and arguments may have escape sequences. */
void output_clean(char *text);

#define OUTPUT_NAME 32
/* Copies an interface name, cleaned by output_clean(): the kernel allows control characters. */
const char *output_name(const char *name, char text[OUTPUT_NAME]);

/* ---- the terminal ---- */

/* Returns whether out is a terminal that terminfo(5) knows; then tigetnum(3) describes it. */
bool terminal_is_known(FILE *out);
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
