/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The handler of SIGSEGV and SIGBUS. It handles only faults of guarded accesses (engine/guard.h),
 * which it recognizes by the program counter: execution continues where the access fails. All other
 * signals are passed on to the previous action, so the program's own faults behave as if this file
 * did not exist.
 *
 * Getting called. A process has one handler for a signal, so three things can prevent it:
 *
 *   - The program, or its run-time, installs a handler later. Interposing sigaction() would miss
 *     callers inside the C library, callers bound to it already (dlopen), and direct system calls.
 *     So each thread that runs an engine checks the actions once a millisecond, and each that makes
 *     or changes an object at once, and puts ours in front again. A fault less than a millisecond
 *     after the program installed a handler is the program's affair.
 *   - The thread blocks the signals, as worker threads often block all: the kernel then ends the
 *     process whatever the handler. The same check unblocks these two in the thread. (A service
 *     thread is started without them blocked.) A blocked SIGSEGV raised by an instruction has
 *     always been fatal, so nothing is lost, except for a program that takes a SIGSEGV or SIGBUS
 *     from kill(2) by sigwait(3).
 *   - The stack has no room for a signal frame: nothing can be done.
 *
 * Passing on. Ours is installed with the flags and the mask of the action that it precedes, so the
 * kernel sets up the same stack and blocks the same signals as for that action. Only SA_SIGINFO is
 * added, and SA_RESETHAND is emulated, as our own faults must not use it up. A default action is
 * restored and the instruction executed again, so that the process ends with the right signal and
 * its core shows the right registers.
 *
 * Each action that ours preceded has its own entry, a function with a distinct address. A program
 * that saves the old action when it installs a handler, and calls or restores it, gets the action
 * in force at that time, not a later one; so no two handlers pass a fault back and forth. There are
 * ENTRIES for each signal, and equal actions share one. If a program installs more different
 * actions, its last one stays in front.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "../engine/guard.h"
#include "fault.h"

#define LOOK_NS NSEC_PER_MSEC
#define ENTRIES 16

_Thread_local u64 fault_due_ns;

struct chain {
	int sig;
	_Atomic u32 num;
	struct sigaction next[ENTRIES]; /* written before its entry is installed, then constant */
};
static struct chain chains[] = { { .sig = SIGSEGV }, { .sig = SIGBUS } };

/* One thread at a time installs handlers. */
static atomic_flag claiming = ATOMIC_FLAG_INIT;

static struct chain *chain_of(int sig)
{
	return &chains[sig == SIGBUS];
}

/* ---- the handler ---- */

/*
 * Returns whether an instruction raised the signal, and would raise it again: not kill(2), and not
 * a notice about a corrupt page that was not accessed.
 */
static bool is_fault(int sig, const siginfo_t *info)
{
	return info->si_code > 0 && !(sig == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

/* Returns where the thread continues. NULL: unknown on this CPU, so nothing is guarded. */
static uintptr_t *program_counter(ucontext_t *context)
{
#if defined(__x86_64__)
	return (uintptr_t *)&context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t *)&context->uc_mcontext.pc;
#elif defined(__s390x__)
	return (uintptr_t *)&context->uc_mcontext.psw.addr;
#else
	return NULL;
#endif
}

static bool fault_resume(int sig, const siginfo_t *info, ucontext_t *context)
{
	uintptr_t *pc = program_counter(context), landing;

	if (!pc || !is_fault(sig, info))
		return false;
	landing = guard_landing(*pc, (uintptr_t)info->si_addr);
	if (!landing)
		return false;
	*pc = landing;
	return true;
}

static void set_default(int sig)
{
	const struct sigaction action = { .sa_handler = SIG_DFL };

	sigaction(sig, &action, NULL);
}

/*
 * Restores the default action, which takes effect on return: an instruction is executed again, a
 * sent signal is sent again.
 */
static void take_default(int sig, siginfo_t *info)
{
	set_default(sig);
	if (!is_fault(sig, info) &&
	    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), sig, info))
		raise(sig);
}

static void pass_on(const struct sigaction *next, int sig, siginfo_t *info, void *context)
{
	if (next->sa_handler == SIG_IGN && !is_fault(sig, info))
		return;
	/* the kernel never ignores a fault */
	if (next->sa_handler == SIG_DFL || next->sa_handler == SIG_IGN) {
		take_default(sig, info);
		return;
	}
	if (next->sa_flags & (int)SA_RESETHAND)
		set_default(sig);
	/* all three arguments, as the kernel passes them to every handler */
	next->sa_sigaction(sig, info, context);
}

static void fault_handle(u32 entry, int sig, siginfo_t *info, void *context)
{
	const int saved = errno;

	if (!fault_resume(sig, info, context))
		pass_on(&chain_of(sig)->next[entry], sig, info, context);
	errno = saved;
}

#define ENTRY(n)                                                                                   \
	static void fault_entry_##n(int sig, siginfo_t *info, void *context)                       \
	{                                                                                          \
		fault_handle(n, sig, info, context);                                               \
	}
ENTRY(0)
ENTRY(1) ENTRY(2) ENTRY(3) ENTRY(4) ENTRY(5) ENTRY(6) ENTRY(7) ENTRY(8) ENTRY(9) ENTRY(10) ENTRY(11)
	ENTRY(12) ENTRY(13) ENTRY(14)
		ENTRY(15) static void (*const entries[ENTRIES])(int, siginfo_t *, void *) = {
			fault_entry_0,	fault_entry_1,	fault_entry_2,	fault_entry_3,
			fault_entry_4,	fault_entry_5,	fault_entry_6,	fault_entry_7,
			fault_entry_8,	fault_entry_9,	fault_entry_10, fault_entry_11,
			fault_entry_12, fault_entry_13, fault_entry_14, fault_entry_15,
		};

/* ---- putting it in front ---- */

static bool fault_is_ours(const struct sigaction *action)
{
	for (u32 i = 0; i < ENTRIES; i++)
		if (action->sa_flags & SA_SIGINFO && action->sa_sigaction == entries[i])
			return true;
	return false;
}

/* Compares only mask bits of known signals, as the C library leaves the others undefined. */
static bool fault_is_same(const struct sigaction *a, const struct sigaction *b)
{
	if (a->sa_sigaction != b->sa_sigaction || a->sa_flags != b->sa_flags)
		return false;
	for (int sig = 1; sig < NSIG; sig++)
		if (sigismember(&a->sa_mask, sig) != sigismember(&b->sa_mask, sig))
			return false;
	return true;
}

/* Returns the entry for the current action, or ENTRIES if there is none left. */
static u32 entry_for(struct chain *chain, const struct sigaction *now)
{
	u32 num = atomic_load_explicit(&chain->num, memory_order_relaxed);

	for (u32 i = 0; i < num; i++)
		if (fault_is_same(&chain->next[i], now))
			return i;
	if (num < ENTRIES) {
		chain->next[num] = *now;
		atomic_store_explicit(&chain->num, num + 1, memory_order_relaxed);
	}
	return num;
}

static struct sigaction action_before(const struct sigaction *next, u32 entry)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART,
				    .sa_sigaction = entries[entry] };

	sigemptyset(&action.sa_mask);
	if (next->sa_handler != SIG_DFL && next->sa_handler != SIG_IGN) {
		action.sa_flags = (next->sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO;
		action.sa_mask = next->sa_mask;
	}
	return action;
}

static void fault_claim(struct chain *chain)
{
	struct sigaction now, action, was;
	u32 entry;

	if (sigaction(chain->sig, NULL, &now) || fault_is_ours(&now))
		return;
	entry = entry_for(chain, &now);
	if (entry == ENTRIES)
		return;
	action = action_before(&now, entry);
	if (sigaction(chain->sig, &action, &was))
		return;
	/* the program has changed it since: keep that action until the next check */
	if (!fault_is_same(&was, &now))
		sigaction(chain->sig, &was, NULL);
}

static void fault_unblock(void)
{
	sigset_t set;

	if (pthread_sigmask(SIG_SETMASK, NULL, &set) ||
	    !(sigismember(&set, SIGSEGV) || sigismember(&set, SIGBUS)))
		return;
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigaddset(&set, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void fault_look(u64 now_ns)
{
	fault_due_ns = now_ns + LOOK_NS;
	fault_unblock();
	/*
	 * If another thread is installing, an access may find no handler until it is done. acquire:
	 * pairs with the release below, by the previous thread
	 */
	while (atomic_flag_test_and_set_explicit(&claiming, memory_order_acquire))
		sched_yield();
	for (u32 i = 0; i < ARRAY_SIZE(chains); i++)
		fault_claim(&chains[i]);
	atomic_flag_clear_explicit(&claiming, memory_order_release);
}

void fault_after_fork(void)
{
	atomic_flag_clear_explicit(&claiming, memory_order_relaxed); /* the only thread */
}
