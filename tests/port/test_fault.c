/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* crashes: test_fault */
/* tier: core */
/*
 * The handler of SIGSEGV and SIGBUS together with the program's own, each case in its own process:
 * guarded accesses fail and the process continues. The program's faults end it, or are handled,
 * exactly as without us. The test controls the clock of fault_watch().
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../user/run/fault.h"
#include "../../user/engine/guard.h"

#define PAGE 4096

/* In the child: a status that no signal and no success has. */
#define MUST(condition)                                                            \
	do {                                                                       \
		if (!(condition)) {                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(99);                                                 \
		}                                                                  \
	} while (0)

static unsigned char *bad;	/* a page without access */
static unsigned char *beyond;	/* a page after the end of its file: SIGBUS */
static u64 now_ns = 1;

/* An engine runs, a while after the last time. */
static void engine_runs(void)
{
	now_ns += 2 * NSEC_PER_MSEC;
	fault_watch(now_ns);
}

static void guarded_accesses_fail(void)
{
	unsigned char buf[64] = { 0 };
	u64 word;

	MUST(!guard_read(buf, bad, sizeof(buf)));
	MUST(!guard_write(bad, buf, sizeof(buf)));
	MUST(!guard_fetch_add((u64 *)bad, 1, &word));
	MUST(!guard_read(buf, beyond, sizeof(buf)));
}

static void own_fault(void)
{
	*(volatile unsigned char *)bad = 1;
}

static void own_bus_error(void)
{
	*(volatile unsigned char *)beyond = 1;
}

/* How the child ended: its exit status, or -signal. */
static int run(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		/* not cmocka's */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		alarm(20);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- without a handler of the program's ---- */

static void survives(void)
{
	engine_runs();
	guarded_accesses_fail();
}

static void dies_by_own_fault(void)
{
	survives();
	own_fault();
}

static void dies_by_own_bus_error(void)
{
	survives();
	own_bus_error();
}

static void dies_by_kill(void)
{
	survives();
	kill(getpid(), SIGSEGV);
	pause();
}

static void dies_by_ignored_fault(void)
{
	signal(SIGSEGV, SIG_IGN);
	survives();
	own_fault();
}

/* The kernel drops a signal that is sent and ignored. */
static void ignores_kill(void)
{
	signal(SIGSEGV, SIG_IGN);
	signal(SIGBUS, SIG_IGN);
	survives();
	kill(getpid(), SIGSEGV);
	raise(SIGBUS);
	guarded_accesses_fail();
}

static void default__as_without_us(void **state)
{
	assert_int_equal(run(survives), 0);
	assert_int_equal(run(dies_by_own_fault), -SIGSEGV);
	assert_int_equal(run(dies_by_own_bus_error), -SIGBUS);
	assert_int_equal(run(dies_by_kill), -SIGSEGV);
	assert_int_equal(run(dies_by_ignored_fault), -SIGSEGV);
	assert_int_equal(run(ignores_kill), 0);
}

/*
 * A core has the registers of the faulting instruction: it is executed again, and a repair in that
 * time is noticed.
 */
static void *mend(void *arg)
{
	struct sigaction action;

	do {
		sigaction(SIGSEGV, NULL, &action);
	} while (action.sa_handler != SIG_DFL);
	mprotect(bad, PAGE, PROT_READ | PROT_WRITE);
	return NULL;
}

static void default_is_restored(void)
{
	pthread_t thread;
	struct sigaction action;

	survives();
	sigaction(SIGSEGV, NULL, &action);
	MUST(action.sa_handler != SIG_DFL);
	MUST(!pthread_create(&thread, NULL, mend, NULL));
	/*
	 * ends the process by SIGSEGV if it is faster than the thread, else goes on: never by
	 * anything else
	 */
	own_fault();
}

static void default__instruction_again(void **state)
{
	const int how = run(default_is_restored);

	assert_true(how == -SIGSEGV || how == 0);
}

/* ---- a handler of the program's, installed before us or after ---- */

static bool after;
static sigjmp_buf back;
static volatile sig_atomic_t handled;
static struct sigaction saved;

static void install(int sig, void (*fn)(int, siginfo_t *, void *), int flags, int blocked)
{
	struct sigaction action = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags };

	sigemptyset(&action.sa_mask);
	if (blocked)
		sigaddset(&action.sa_mask, blocked);
	if (after)
		engine_runs();
	MUST(!sigaction(sig, &action, &saved));
	engine_runs();
}

static bool is_blocked(int sig)
{
	sigset_t set;

	sigprocmask(SIG_SETMASK, NULL, &set);
	return sigismember(&set, sig);
}

static void jump(int sig, siginfo_t *info, void *context)
{
	handled++;
	MUST(info->si_signo == sig && info->si_addr == bad && info->si_code == SEGV_ACCERR);
	siglongjmp(back, 1);
}

/* Faults on purpose, and comes back: garbage collectors and interpreters do. */
static void jumping(void)
{
	install(SIGSEGV, jump, 0, 0);
	for (int i = 0; i < 5; i++) {
		guarded_accesses_fail();
		if (!sigsetjmp(back, 1))
			own_fault();
		engine_runs();
	}
	MUST(handled == 5);
	MUST(!is_blocked(SIGSEGV));
}

static void mending(int sig, siginfo_t *info, void *context)
{
	handled++;
	mprotect(bad, PAGE, PROT_READ | PROT_WRITE);
}

static void mended(void)
{
	install(SIGSEGV, mending, SA_RESTART, 0);
	guarded_accesses_fail();
	MUST(!handled);
	own_fault();
	MUST(handled == 1 && bad[0] == 1);
}

static unsigned char alternate[65536];

static void on_alternate(int sig, siginfo_t *info, void *context)
{
	unsigned char here;

	MUST(&here >= alternate && &here < alternate + sizeof(alternate));
	MUST(is_blocked(SIGUSR1) && is_blocked(SIGSEGV) && !is_blocked(SIGUSR2));
	_exit(7);
}

static void alternate_stack(void)
{
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	MUST(!sigaltstack(&stack, NULL));
	install(SIGSEGV, on_alternate, SA_ONSTACK, SIGUSR1);
	guarded_accesses_fail();
	own_fault();
}

static void on_own_stack(int sig, siginfo_t *info, void *context)
{
	unsigned char here;

	MUST(&here < alternate || &here >= alternate + sizeof(alternate));
	MUST(!is_blocked(SIGSEGV));
	_exit(8);
}

/*
 * The thread has an alternate stack, the handler has not asked for it, nor for the signal to be
 * blocked.
 */
static void own_stack(void)
{
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	MUST(!sigaltstack(&stack, NULL));
	install(SIGSEGV, on_own_stack, SA_NODEFER, 0);
	guarded_accesses_fail();
	own_fault();
}

static bool exits_once;

static void once(int sig, siginfo_t *info, void *context)
{
	struct sigaction action;

	handled++;
	sigaction(sig, NULL, &action);
	MUST(action.sa_handler == SIG_DFL);
	if (exits_once)
		_exit(6);
}

/*
 * One shot. Faults of ours do not use it up; when it returns without a repair, the second fault
 * ends the process.
 */
static void one_shot(void)
{
	install(SIGSEGV, once, (int)SA_RESETHAND, 0);
	guarded_accesses_fail();
	own_fault();
}

static void one_shot_called(void)
{
	exits_once = true;
	one_shot();
}

static void chained(int sig, siginfo_t *info, void *context)
{
	handled++;
	if (handled > 3)
		_exit(98); /* round in a circle */
	if (saved.sa_flags & SA_SIGINFO) {
		saved.sa_sigaction(sig, info, context);
	} else {
		signal(sig, SIG_DFL);
	}
}

/* A handler that passes unknown faults to the previous handler, as crash reporters do. */
static void chaining(void)
{
	install(SIGSEGV, chained, 0, 0);
	guarded_accesses_fail();
	MUST(!handled);
	own_fault();
}

/* It removes itself, by restoring the previous handler. */
static void restoring(void)
{
	install(SIGSEGV, chained, 0, 0);
	guarded_accesses_fail();
	MUST(!sigaction(SIGSEGV, &saved, NULL));
	engine_runs();
	guarded_accesses_fail();
	handled = 97; /* the handler is not called any more: it would say 98 */
	own_fault();
}

/*
 * faulthandler(3) of Python: prints a message, restores the previous handler, and raises the signal
 * again.
 */
static void reporting_handler(int sig, siginfo_t *info, void *context)
{
	sigaction(sig, &saved, NULL);
	raise(sig);
}

static void reporting(void)
{
	install(SIGSEGV, reporting_handler, SA_NODEFER, 0);
	guarded_accesses_fail();
	own_fault();
}

static void handler__before_us_and_after(void **state)
{
	for (int i = 0; i < 2; i++) {
		after = i;
		assert_int_equal(run(jumping), 0);
		assert_int_equal(run(mended), 0);
		assert_int_equal(run(alternate_stack), 7);
		assert_int_equal(run(own_stack), 8);
		assert_int_equal(run(one_shot), -SIGSEGV);
		assert_int_equal(run(one_shot_called), 6);
		assert_int_equal(run(chaining), -SIGSEGV);
		assert_int_equal(run(restoring), -SIGSEGV);
		assert_int_equal(run(reporting), -SIGSEGV);
	}
}

/* Handlers change often: two take turns, and each gets its own faults. */
static void other_jump(int sig, siginfo_t *info, void *context)
{
	handled += 100;
	siglongjmp(back, 1);
}

static void taking_turns(void)
{
	static volatile int passed;

	after = true;
	for (int i = 0; i < 100; i++)
		engine_runs(); /* nothing has changed: nothing is used up */
	for (volatile int i = 0; i < 100; i++) {
		install(SIGSEGV, i % 2 ? other_jump : jump, 0, 0);
		guarded_accesses_fail();
		passed++;
		if (!sigsetjmp(back, 1))
			own_fault();
	}
	MUST(passed == 100 && handled == 50 + 50 * 100);
}

static void handler__two_take_turns(void **state)
{
	assert_int_equal(run(taking_turns), 0);
}

/* ---- threads ---- */

static void *blocking_thread(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	MUST(!pthread_sigmask(SIG_SETMASK, &all, NULL));
	engine_runs();
	guarded_accesses_fail();
	MUST(is_blocked(SIGTERM) && is_blocked(SIGUSR1));
	return NULL;
}

/*
 * Worker threads often block all signals: a fault in one would end the process, whatever the
 * handler.
 */
static void blocked(void)
{
	pthread_t thread;

	engine_runs();
	MUST(!pthread_create(&thread, NULL, blocking_thread, NULL));
	MUST(!pthread_join(thread, NULL));
}

static void *faulting_thread(void *arg)
{
	fault_watch(1); /* a new thread looks at once */
	for (int i = 0; i < 2000; i++)
		guarded_accesses_fail();
	return NULL;
}

static void many_threads(void)
{
	pthread_t thread[8];

	for (int i = 0; i < 8; i++)
		MUST(!pthread_create(&thread[i], NULL, faulting_thread, NULL));
	for (int i = 0; i < 8; i++)
		MUST(!pthread_join(thread[i], NULL));
}

static void in_a_child(void)
{
	int status;
	pid_t pid;

	engine_runs();
	pid = fork();
	if (pid == 0) {
		fault_after_fork();
		guarded_accesses_fail();
		own_fault();
	}
	MUST(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	guarded_accesses_fail();
}

static void threads__each_of_them(void **state)
{
	assert_int_equal(run(blocked), 0);
	assert_int_equal(run(many_threads), 0);
	assert_int_equal(run(in_a_child), 0);
}

/*
 * The handler, as the kernel would call it in the middle of a guarded access. True if that goes on
 * where it fails.
 */
static bool handler_takes(int code)
{
	siginfo_t info = { .si_signo = SIGSEGV, .si_code = code };
	struct sigaction action;
	ucontext_t context = { 0 };

	info.si_addr = bad;
	context.uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)guard_read;
	sigaction(SIGSEGV, NULL, &action);
	action.sa_sigaction(SIGSEGV, &info, &context);
	return context.uc_mcontext.gregs[REG_RIP] != (greg_t)(uintptr_t)guard_read;
}

/*
 * Sent while a guarded access was under way, but not raised by it: the instruction cannot be
 * blamed.
 */
static void sent_signal_is_not_ours(void)
{
	survives();
	MUST(handler_takes(SEGV_MAPERR));
	handler_takes(SI_USER);
}

static void sent__ends_the_program(void **state)
{
	assert_int_equal(run(sent_signal_is_not_ours), -SIGSEGV);
}

static int make_memory(void **state)
{
	int fd = memfd_create("beyond", MFD_CLOEXEC);

	bad = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	beyond = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return bad == MAP_FAILED || beyond == MAP_FAILED;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(default__as_without_us),
		cmocka_unit_test(default__instruction_again),
		cmocka_unit_test(handler__before_us_and_after),
		cmocka_unit_test(handler__two_take_turns),
		cmocka_unit_test(threads__each_of_them),
		cmocka_unit_test(sent__ends_the_program),
	};

	return cmocka_run_group_tests(tests, make_memory, NULL);
}
