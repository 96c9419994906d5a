/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See landing.h. */
#define _GNU_SOURCE
#include "landing.h"

#include <signal.h>
#include <ucontext.h>

#include "../../user/engine/guard.h"

static volatile sig_atomic_t landings;

static void landing_handle(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
#if defined(__x86_64__)
	uintptr_t *pc = (uintptr_t *)&uc->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	uintptr_t *pc = (uintptr_t *)&uc->uc_mcontext.pc;
#elif defined(__s390x__)
	uintptr_t *pc = (uintptr_t *)&uc->uc_mcontext.psw.addr;
#endif
	uintptr_t landing = guard_landing(*pc, (uintptr_t)info->si_addr);

	if (!landing) {
		signal(sig, SIG_DFL); /* executed again on return */
		return;
	}
	landings++;
	*pc = landing;
}

void landing_install(void)
{
	struct sigaction action = { .sa_sigaction = landing_handle, .sa_flags = SA_SIGINFO };

	sigemptyset(&action.sa_mask);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	landings = 0;
}

unsigned int landing_count(void)
{
	return (unsigned int)landings;
}
