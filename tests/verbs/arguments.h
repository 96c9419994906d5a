/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls with arguments that no correct program gives, for the man_arguments.c of both libraries. A
 * row names a call and its result. A signal is reported as a failed case, with the call that raised
 * it, and ends the program: a lock may be held.
 */
#ifndef TESTS_VERBS_ARGUMENTS_H
#define TESTS_VERBS_ARGUMENTS_H

#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include "contract.h"

static const char *calling;

static void on_fault(int sig)
{
	char line[400];
	int n = snprintf(line, sizeof(line), "# %s: signal %d\nnot ok crash\n", calling, sig);

	_exit(write(STDOUT_FILENO, line, (size_t)n) == n ? 1 : 2);
}

__attribute__((constructor)) static void catch_faults(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], on_fault);
}

static inline bool row_holds(long long got, long long want, int want_errno)
{
	const int err = errno;

	if (got == want && (!want_errno || err == want_errno))
		return true;
	printf("# %s: %lld, errno %d, not %lld, %d\n", calling, got, err, want, want_errno);
	return false;
}

/* The result, a number or a pointer, must be `want`; errno `want_errno`, unless that is 0. */
#define ROW(call, want, want_errno)                                                             \
	(calling = #call, errno = 0,                                                            \
	 row_holds((long long)(intptr_t)(call), (long long)(intptr_t)(want), want_errno))
/* The call returns nothing, and returns. */
#define RETURNS(call) (calling = #call, (call), true)

#endif
