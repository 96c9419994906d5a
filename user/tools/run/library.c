/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds our libibverbs.so.1 relative to this program, in the build tree and installed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../cli.h"

#define LIBRARY "libibverbs.so.1"
/* The Makefile sets XROCE_LIBDIR: the install directory, relative to the command's. */
/* Name of a BPF map, present in our library only. */
#define MARK XROCE_MAP_ENGINE

/*
 * Returns whether the file is our library: under a prefix like /usr, the system's library may have
 * this name.
 */
static bool library_is_ours(const char *path)
{
	struct stat st;
	void *map;
	bool found;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	map = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ?
		      mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) :
		      MAP_FAILED;
	close(fd);
	if (map == MAP_FAILED)
		return false;
	found = memmem(map, (size_t)st.st_size, MARK, sizeof(MARK)) != NULL;
	munmap(map, (size_t)st.st_size);
	return found;
}

int library_dir(char *dir, size_t n)
{
	/* the installed path first, since PREFIX/lib of an installation is not ours */
	static const char *const place[] = { XROCE_LIBDIR, "../lib" };
	char self[PATH_MAX], path[2 * PATH_MAX], *real;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		return -errno;
	self[len] = 0;
	*strrchr(self, '/') = 0;
	for (size_t i = 0; i < ARRAY_SIZE(place); i++) {
		const char *base = place[i][0] == '/' ? "" : self;

		snprintf(path, sizeof(path), "%s/%s/" LIBRARY, base, place[i]);
		if (!library_is_ours(path))
			continue;
		snprintf(path, sizeof(path), "%s/%s", base, place[i]);
		real = realpath(path, NULL);
		if (!real)
			return -errno;
		len = snprintf(dir, n, "%s", real);
		free(real);
		return (size_t)len < n ? 0 : -ENAMETOOLONG;
	}
	snprintf(dir, n, "%s/%s nor in %s/%s", XROCE_LIBDIR[0] == '/' ? "" : self, place[0], self,
		 place[1]);
	return -ENOENT;
}
