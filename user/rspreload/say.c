/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages about unsupported uses of rsockets, each printed once per process: the program's own
 * message would not show the cause.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "preload.h"

void say_once(enum said what, const char *format, ...)
{
	static atomic_uint said;
	int saved = errno;
	char line[256];
	va_list args;

	/* relaxed: nothing else depends on it */
	if (atomic_fetch_or_explicit(&said, 1u << what, memory_order_relaxed) & 1u << what)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	dprintf(2, "librspreload: %s\n", line);
	errno = saved;
}
