/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For arch.sh: does a handler of SIGBUS get the faulting address? Here a page after the end of a
 * file. Exit status 0 if so. Guarded accesses (docs/memory.md) need it to tell their own faults
 * from others.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static sigjmp_buf back;
static char *touched;

static void on_sigbus(int signal, siginfo_t *info, void *context)
{
	touched = info->si_addr;
	siglongjmp(back, 1);
}

int main(void)
{
	const struct sigaction ours = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int fd = memfd_create("file", 0);
	volatile char *file;

	if (fd < 0 || ftruncate(fd, (off_t)page) || sigaction(SIGBUS, &ours, NULL))
		return 2;
	file = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		return 2;
	if (!sigsetjmp(back, 1)) {
		(void)file[page];
		puts("no SIGBUS");
		return 2;
	}
	printf("touched %p, told %p\n", (void *)&file[page], (void *)touched);
	return touched != &file[page];
}
