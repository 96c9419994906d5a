/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every unit test includes: cmocka with the headers that it wants before it, and one
 * shorthand.
 */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A copy of exactly len bytes, so that a sanitizer sees any read beyond them. */
static inline void *exact_copy(const void *from, size_t len)
{
	void *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	if (len)
		memcpy(copy, from, len);
	return copy;
}

#endif
