/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>

#include "screen.h"
#include "spark.h"

#define SPARK_LEVELS 8 /* the first is of 0 alone */

const char *spark_number(double value, char text[SPARK_TEXT])
{
	static const char prefixes[] = " kMGTPEZY";
	u32 prefix = 0;

	if (!(value >= 0)) {
		snprintf(text, SPARK_TEXT, "-");
		return text;
	}
	/* 999.5 is 1.00k by the rounding of printf() */
	while (value >= 999.5 && prefix < sizeof(prefixes) - 2) {
		value /= 1000;
		prefix++;
	}
	if (value >= 999.5)
		snprintf(text, SPARK_TEXT, ">999Y");
	else if (!prefix && (value >= 9.95 || value == (u32)value))
		snprintf(text, SPARK_TEXT, "%.0f", value);
	else if (!prefix)
		snprintf(text, SPARK_TEXT, "%.1f", value);
	else
		snprintf(text, SPARK_TEXT, "%.*f%c", value < 9.995 ? 2 : value < 99.95 ? 1 : 0,
			 value, prefixes[prefix]);
	return text;
}

void spark_line(const float *values, u32 n, bool is_blocks, u16 *glyphs)
{
	static const char ascii[SPARK_LEVELS + 1] = "_.-:=+*#";
	float most = 0;

	for (u32 i = 0; i < n; i++)
		most = values[i] > most ? values[i] : most;
	for (u32 i = 0; i < n; i++) {
		u32 level = 0;

		if (!(values[i] >= 0)) {
			glyphs[i] = ' ';
			continue;
		}
		if (values[i] > 0) {
			/* infinite by itself is NaN, which is no level */
			const float part = values[i] / most * (SPARK_LEVELS - 1);

			level = part >= 0 && part < SPARK_LEVELS - 1 ? (u32)part + 1 :
								       SPARK_LEVELS - 1;
			level = level < SPARK_LEVELS ? level : SPARK_LEVELS - 1;
		}
		glyphs[i] = is_blocks ? SCREEN_BLOCK(level + 1) : (u16)ascii[level];
	}
}
