/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers in few columns: with a prefix of three digits, and as spark lines. Pure. */
#ifndef CLI_SPARK_H
#define CLI_SPARK_H

#include "../../engine/types.h"

/* A value that is not known. */
#define SPARK_NONE (-1.0)

#define SPARK_TEXT 12

/* "0", "7", "0.5", "941", "9.41k", "12.3G"; "-" of SPARK_NONE. At most 5 columns. */
const char *spark_number(double value, char text[SPARK_TEXT]);

/*
 * The characters of so many values, each of them relative to the largest: a block of 1 to 8
 * eighths, or without is_blocks a character of ASCII. A value above 0 is never drawn as 0, and
 * SPARK_NONE is a blank.
 */
void spark_line(const float *values, u32 n, bool is_blocks, u16 *glyphs);

#endif
