/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../os/clock.h"
#include "terminal.h"

#define SAY_NS (100 * NSEC_PER_MSEC)

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

/* Replacing a line needs cursor control, so TERM=dumb does not qualify. */
static bool terminal_can_replace(void)
{
	const char *term = getenv("TERM");

	return isatty(fileno(stderr)) && term && *term && strcmp(term, "dumb") != 0;
}

void terminal_say(const char *fmt, ...)
{
	static bool is_said;
	static u64 last_ns;
	const u64 now_ns = clock_now_ns();
	va_list ap;

	if (!fmt && is_said)
		fputs("\r\033[K", stderr);
	if (!fmt)
		is_said = false;
	if (!fmt || (is_said && now_ns - last_ns < SAY_NS) || !terminal_can_replace())
		return;
	is_said = true;
	last_ns = now_ns;
	fputs("\r\033[K", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
}

void terminal_note(const char *fmt, ...)
{
	va_list ap;

	if (!isatty(fileno(stderr)))
		return;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}
