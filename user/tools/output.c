/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../os/clock.h"
#include "cli.h"

/*
 * Opens /dev/null on closed standard descriptors. Otherwise the first file or socket opened would
 * take that descriptor, and receive the output. The access mode makes reads and writes fail.
 * O_CLOEXEC closes it in a program that this process executes.
 */
void output_begin(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null",
				    (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

/* Returns true if the reader of the pipe or socket has closed it, which is not an error. */
bool output_wait(u32 ms)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	/* a pipe has POLLERR, a socket POLLHUP */
	return poll(&out, 1, (int)ms) == 1 && out.revents & (POLLERR | POLLHUP);
}

int output_end(int status)
{
	bool failed = ferror(stdout);
	int err = 0;

	errno = 0;
	if (fflush(stdout)) {
		failed = true;
		err = errno;
	}
	if (!failed || output_wait(0) || status != EXIT_OK)
		return status;
	fprintf(stderr, "xroce: cannot write to standard output%s%s\n", err ? ": " : "",
		err ? strerror(err) : "");
	return EXIT_FAILED;
}

void output_clean(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
			*text = '?';
}

const char *output_name(const char *name, char text[OUTPUT_NAME])
{
	snprintf(text, OUTPUT_NAME, "%s", name);
	output_clean(text);
	return text;
}

/* ---- the terminal ---- */

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
