/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For musl.sh: functions that musl lacks, called by Debian's cmocka and isa-l, which are built
 * against glibc with _FORTIFY_SOURCE. musl's loader takes itself for libc.so.6; musl has the rest
 * of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void *__memset_chk(void *to, int c, size_t n, size_t room);
int __vsnprintf_chk(char *to, size_t n, int flag, size_t room, const char *format, va_list args);
int __snprintf_chk(char *to, size_t n, int flag, size_t room, const char *format, ...);
int __fprintf_chk(FILE *f, int flag, const char *format, ...);
int __printf_chk(int flag, const char *format, ...);
_Noreturn void __longjmp_chk(jmp_buf env, int value);

void *__memset_chk(void *to, int c, size_t n, size_t room)
{
	return memset(to, c, n);
}

int __vsnprintf_chk(char *to, size_t n, int flag, size_t room, const char *format, va_list args)
{
	return vsnprintf(to, n, format, args);
}

int __snprintf_chk(char *to, size_t n, int flag, size_t room, const char *format, ...)
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = vsnprintf(to, n, format, args);
	va_end(args);
	return ret;
}

int __fprintf_chk(FILE *f, int flag, const char *format, ...)
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = vfprintf(f, format, args);
	va_end(args);
	return ret;
}

int __printf_chk(int flag, const char *format, ...)
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = vprintf(format, args);
	va_end(args);
	return ret;
}

_Noreturn void __longjmp_chk(jmp_buf env, int value)
{
	siglongjmp(env, value);
}
