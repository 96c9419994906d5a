/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See spoil.h. */
#define _GNU_SOURCE
#include "spoil.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Far from the addresses that the kernel picks for mappings; each mapping gets the next place.
 */
static _Atomic uintptr_t next_place = 0x200000000000;

const char *const spoil_names[SPOILS] = {
	[SPOIL_UNMAP] = "unmapped",
	[SPOIL_PROTECT] = "protected",
	[SPOIL_READ_ONLY] = "read_only",
	[SPOIL_TRUNCATE] = "truncated",
};

static void spoil_must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

void spoil_map(struct spoiled *m, size_t pages, enum spoil how)
{
	const bool is_file = how == SPOIL_TRUNCATE;

	*m = (struct spoiled){ .len = pages * SPOIL_PAGE, .how = how, .fd = -1 };
	if (is_file) {
		m->fd = memfd_create("spoiled", MFD_CLOEXEC);
		spoil_must(m->fd >= 0 && !ftruncate(m->fd, (off_t)m->len), "memfd_create");
	}
	m->bytes = mmap((void *)atomic_fetch_add(&next_place, m->len + 16 * SPOIL_PAGE), m->len,
			PROT_READ | PROT_WRITE,
			MAP_FIXED_NOREPLACE | (is_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS),
			m->fd, 0);
	spoil_must(m->bytes != MAP_FAILED, "mmap");
	memset(m->bytes, 0xa5, m->len);
}

void spoil_from(struct spoiled *m, size_t page)
{
	unsigned char *from = m->bytes + page * SPOIL_PAGE;
	const size_t len = m->len - page * SPOIL_PAGE;

	switch (m->how) {
	case SPOIL_UNMAP:
		spoil_must(!munmap(from, len), "munmap");
		break;
	case SPOIL_TRUNCATE:
		spoil_must(!ftruncate(m->fd, (off_t)(page * SPOIL_PAGE)), "ftruncate");
		break;
	default:
		spoil_must(!mprotect(from, len, m->how == SPOIL_READ_ONLY ? PROT_READ : PROT_NONE),
			   "mprotect");
	}
}

void spoil_free(struct spoiled *m)
{
	munmap(m->bytes, m->len);
	if (m->fd >= 0)
		close(m->fd);
}
