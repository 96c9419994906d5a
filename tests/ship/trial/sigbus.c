/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For arch.sh: does a handler get the faulting address of a SIGBUS? Here a page after the end of a
 * file; with an argument, of the SIGSEGV at an address that no process has. Exit status 0 if so.
 * Guarded accesses (docs/memory.md) need it to tell their own faults from others.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define WILD (1ull << 52)

static sigjmp_buf back;
static char *volatile touched;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	touched = info->si_addr;
	siglongjmp(back, 1);
}

/* Returns memory beyond the end of a file, or NULL. */
static char *beyond_file(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int fd = memfd_create("file", 0);
	char *file;

	if (fd < 0 || ftruncate(fd, (off_t)page))
		return NULL;
	file = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fd, 0);
	return file == MAP_FAILED ? NULL : file + page;
}

int main(int argc, char **argv)
{
	const struct sigaction ours = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	char *const at = argc > 1 ? (char *)WILD : beyond_file();

	if (!at || sigaction(SIGBUS, &ours, NULL) || sigaction(SIGSEGV, &ours, NULL))
		return 2;
	if (!sigsetjmp(back, 1)) {
		(void)*(volatile char *)at;
		puts("no signal");
		return 2;
	}
	printf("touched %p, told %p\n", (void *)at, (void *)touched);
	return touched != at;
}
