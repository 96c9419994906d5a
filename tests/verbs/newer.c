/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the verbs of newer.h in their version nodes when the program starts. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "newer.h"

#define X(node, symbol, result, name, arguments) result(*name) arguments;
NEWER_VERBS(X)
#undef X

static const char *missing;

static void *find(const char *symbol, const char *node)
{
	void *at = dlvsym(RTLD_DEFAULT, symbol, node);

	if (!at && !missing)
		missing = symbol;
	return at;
}

__attribute__((constructor)) static void find_all(void)
{
#define X(node, symbol, result, name, arguments) \
	name = (result(*) arguments)find(#symbol, "IBVERBS_" #node);
	NEWER_VERBS(X)
#undef X
}

const char *newer_missing(void)
{
	return missing;
}
