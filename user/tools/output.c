/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

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
