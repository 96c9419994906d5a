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

/* setupterm(3) allocates a description at each call, so there is one call. */
bool terminal_is_known(FILE *out)
{
	static int known = -1;
	const char *term = getenv("TERM");
	int err;

	if (!isatty(fileno(out)) || !term || !*term)
		return false;
	if (known < 0)
		known = setupterm(NULL, fileno(out), &err) == OK;
	return known;
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
