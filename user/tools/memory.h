/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory of the commands that read and print once: without it they end. */
#ifndef TOOLS_MEMORY_H
#define TOOLS_MEMORY_H

#include <stdio.h>
#include <stdlib.h>

#include "../engine/types.h"

/* Returns memory, or ends the process after a message if that is NULL. */
static inline void *memory_need(void *memory)
{
	if (memory)
		return memory;
	fprintf(stderr, "xroce: out of memory\n");
	exit(1);
}

/*
 * Returns the list (or NULL) of num elements of `size` bytes with room for one more, which may have
 * moved; *room is the number of elements that it has room for. Ends the process as memory_need().
 */
static inline void *memory_grow(void *list, u32 num, u32 *room, size_t size)
{
	if (num < *room)
		return list;
	*room = *room ? 2 * *room : 16;
	return memory_need(reallocarray(list, *room, size));
}

#endif
