/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Standard output: that there is one, that all of it was written, and what of names goes there. */
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "cli.h"

/*
 * A descriptor that the caller has closed would be that of the first file or socket that is opened,
 * and what is printed would go there. It is taken such that reading or writing it fails, and is
 * closed again in a command that this process becomes.
 */
void output_begin(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null",
				    (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

/* A reader of a pipe that has gone has had what it wanted. */
bool output_wait(u32 ms)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	return poll(&out, 1, (int)ms) == 1 && out.revents & POLLERR;
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
	fprintf(stderr, "xroce: standard output is not written%s%s\n", err ? ": " : "",
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
