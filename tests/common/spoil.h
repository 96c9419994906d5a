/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that goes bad after it was registered: mapped where nothing else is ever mapped, so that
 * what was unmapped stays so, and then spoiled in each way that a program has.
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
	int fd;			/* of the file behind it, or -1 */
};

/* pages pages to be spoiled so; all bytes are 0xa5. Ends the program if that cannot be. */
void spoil_map(struct spoiled *m, size_t pages, enum spoil how);
/* From this page on. SPOIL_READ_ONLY leaves it readable, the others leave nothing. */
void spoil_from(struct spoiled *m, size_t page);
void spoil_free(struct spoiled *m);

#endif
