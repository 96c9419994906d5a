/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The start of the portable command. Before glibc 2.34 the C library relied on a function of each
 * program to run its constructors; programs linked since do not have it. Linked with --wrap=main.
 */
#include <stdbool.h>

typedef void constructor(int argc, char **argv, char **env);

extern constructor *const __init_array_start[], *const __init_array_end[];

int __real_main(int argc, char **argv, char **env);
int __wrap_main(int argc, char **argv, char **env);

static bool constructed;

__attribute__((constructor)) static void mark(void)
{
	constructed = true;
}

int __wrap_main(int argc, char **argv, char **env)
{
	if (!constructed)
		for (constructor *const *c = __init_array_start; c < __init_array_end; c++)
			(*c)(argc, argv, env);
	return __real_main(argc, argv, env);
}
