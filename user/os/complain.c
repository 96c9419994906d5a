/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../engine/types.h"
#include "complain.h"

void complain(const char *format, ...)
{
	static const char begin[] = "xroce: ";
	const int saved = errno;
	char line[1024] = "xroce: ";
	const size_t at = sizeof(begin) - 1, room = sizeof(line) - at - 1;
	va_list args;
	size_t n;
	int len;

	va_start(args, format);
	len = vsnprintf(line + at, room, format, args);
	va_end(args);
	n = at + (len < 0 ? 0 : (size_t)len < room ? (size_t)len : room - 1);
	line[n++] = '\n';
	/* write(2) of the C library is a cancellation point */
	syscall(SYS_write, STDERR_FILENO, line, n);
	errno = saved;
}
