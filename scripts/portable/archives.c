/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parts of archives that cannot be linked into a shared library as they are: the errors of libelf,
 * whose numbers and texts libbpf uses for messages alone, and a variable of the C library.
 */
#include <stdio.h>

FILE *portable_stderr;

__attribute__((constructor(101))) static void archives_begin(void)
{
	portable_stderr = stderr;
}

static __thread int error;

void __libelf_seterrno(int value);
int elf_errno(void);
const char *elf_errmsg(int value);

void __libelf_seterrno(int value)
{
	error = value;
}

int elf_errno(void)
{
	const int value = error;

	error = 0;
	return value;
}

const char *elf_errmsg(int value)
{
	return value ? "an error of libelf" : 0;
}
