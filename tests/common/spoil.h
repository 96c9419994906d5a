/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that goes bad after it was registered. Mapped at addresses that are used for nothing else,
 * so that unmapped memory stays unmapped, and then invalidated in each way that a program can.
 */
#ifndef TESTS_SPOIL_H
#define TESTS_SPOIL_H

#include <stdbool.h>
#include <stddef.h>

enum spoil { SPOIL_UNMAP, SPOIL_PROTECT, SPOIL_READ_ONLY, SPOIL_TRUNCATE, SPOILS };
extern const char *const spoil_names[SPOILS];

#define SPOIL_PAGE 4096u

struct spoiled {
	unsigned char *bytes;
	size_t len;		/* whole pages */
	enum spoil how;
	int fd;			/* of the backing file, or -1 */
};

/* Maps `pages` pages that can be invalidated by `how`, filled with 0xa5. Exits on failure. */
void spoil_map(struct spoiled *m, size_t pages, enum spoil how);
/* Invalidates from this page on. SPOIL_READ_ONLY leaves the pages readable, other modes do not. */
void spoil_from(struct spoiled *m, size_t page);
void spoil_free(struct spoiled *m);

#endif
