/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the terminal can do, and lines of progress on it. */
#include <curses.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

/* macros of term.h */
#undef columns
#undef lines

#include "../os/clock.h"
#include "output.h"

#define SAY_NS (100 * NSEC_PER_MSEC)

/* Returns whether out is a terminal that terminfo(5) knows; then tigetnum(3) describes it. */
static bool terminal_is_known(FILE *out)
{
	const char *term = getenv("TERM");
	int err;

	return isatty(fileno(out)) && term && *term &&
	       setupterm(NULL, fileno(out), &err) == OK;
}

bool terminal_is_coloured(FILE *out)
{
	const char *none = getenv("NO_COLOR");

	return !(none && *none) && terminal_is_known(out) && tigetnum("colors") > 0;
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

/* Replacing a line needs cursor control. */
static bool terminal_can_replace(void)
{
	static int can = -1;

	if (can < 0)
		can = terminal_is_known(stderr) && tigetstr("el");
	return can;
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
