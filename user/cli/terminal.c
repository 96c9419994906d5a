/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "terminal.h"

bool terminal_is_coloured(FILE *out)
{
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fileno(out)) && !(none && *none) && term && strcmp(term, "dumb") != 0;
}

void terminal_size(FILE *out, u32 *columns, u32 *lines)
{
	struct winsize size = { 0 };

	*columns = *lines = 0;
	if (!isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &size))
		return;
	*columns = size.ws_col;
	*lines = size.ws_row;
}

void terminal_say(const char *fmt, ...)
{
	static bool is_said;
	const char *term = getenv("TERM");
	va_list ap;

	if (!isatty(fileno(stderr)) || (!fmt && !is_said) || !term || !strcmp(term, "dumb"))
		return;
	fputs("\r\033[K", stderr);
	is_said = fmt;
	if (!fmt)
		return;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
}
