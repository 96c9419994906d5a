/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sigaction(2) of a program that uses verbs: its SIGSEGV and SIGBUS handlers work as requested,
 * though the library has its own handlers for memory that goes bad. Each case in its own process:
 *
 *	own_faults -d DEVICE
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"

#define PAGE	  4096
#define ALT_BYTES 65536

enum disposition { DEFAULT, HANDLER_BEFORE, HANDLER_AFTER, RESETHAND, ONSTACK, IGNORED, SENT };

static const struct expectation {
	const char *name;
	enum disposition disposition;
	bool dies;
} expectations[] = {
	{ "default action", DEFAULT, true },
	{ "handler installed before the device is used", HANDLER_BEFORE, false },
	{ "handler installed afterwards", HANDLER_AFTER, false },
	{ "SA_RESETHAND: the second one ends it", RESETHAND, true },
	{ "SA_ONSTACK", ONSTACK, false },
	{ "SIG_IGN: an instruction's cannot be ignored", IGNORED, true },
	{ "sent by raise(3)", SENT, true },
};

static const char *device;
static char alt_stack[ALT_BYTES];
static sigjmp_buf back;
static volatile int hits;
static void *volatile address, *volatile stack;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	char here;

	hits++;
	address = info->si_addr;
	stack = &here;
	siglongjmp(back, 1);
}

/* Attached, with a QP: the library's own handlers are in place. */
static void device_use(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_context *ctx = open_device(device);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	must(pd, "ibv_alloc_pd: %s", strerror(errno));
	init.send_cq = init.recv_cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	must(init.send_cq && ibv_create_qp(pd, &init), "no QP: %s", strerror(errno));
}

static void handler_install(int sig, enum disposition d)
{
	struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	stack_t alt = { .ss_sp = alt_stack, .ss_size = sizeof(alt_stack) };

	if (d == RESETHAND)
		act.sa_flags |= SA_RESETHAND;
	if (d == ONSTACK) {
		must(!sigaltstack(&alt, NULL), "sigaltstack: %s", strerror(errno));
		act.sa_flags |= SA_ONSTACK;
	}
	must(!sigaction(sig, &act, NULL), "sigaction: %s", strerror(errno));
}

/* An access of it raises the signal. */
static volatile char *bad_memory(int sig)
{
	int fd = sig == SIGBUS ? memfd_create("empty", 0) : -1;
	char *mem = mmap(NULL, PAGE, sig == SIGBUS ? PROT_READ | PROT_WRITE : PROT_NONE,
			 fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	must(mem != MAP_FAILED, "mmap: %s", strerror(errno));
	return mem;
}

static void child_run(int sig, enum disposition d)
{
	volatile char *bad = bad_memory(sig);
	const int faults = d == RESETHAND ? 2 : 1;

	if (d == HANDLER_BEFORE || d == RESETHAND || d == ONSTACK)
		handler_install(sig, d);
	if (d == IGNORED)
		signal(sig, SIG_IGN);
	device_use();
	if (d == HANDLER_AFTER)
		handler_install(sig, d);
	if (d == SENT)
		raise(sig);
	for (volatile int i = 0; i < faults; i++)
		if (!sigsetjmp(back, 1))
			*bad = 1;
	must(hits == 1 && address == bad, "%d signals, the last for %p", hits, address);
	must(d != ONSTACK || ((char *)stack >= alt_stack && (char *)stack < alt_stack + ALT_BYTES),
	     "not on the alternate stack");
}

static void expectation_hold(const struct expectation *e, int sig)
{
	const struct rlimit none = { 0, 0 };
	int status;
	pid_t pid = fork();

	must(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		setrlimit(RLIMIT_CORE, &none);
		child_run(sig, e->disposition);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	if (e->dies)
		must(WIFSIGNALED(status) && WTERMSIG(status) == sig, "%s, %s: wait status %#x",
		     e->name, strsignal(sig), status);
	else
		must(WIFEXITED(status) && !WEXITSTATUS(status), "%s, %s: wait status %#x", e->name,
		     strsignal(sig), status);
}

int main(int argc, char **argv)
{
	const size_t n = sizeof(expectations) / sizeof(expectations[0]);

	must(argc == 3 && !strcmp(argv[1], "-d"), "own_faults -d DEVICE");
	device = argv[2];
	for (size_t i = 0; i < n; i++) {
		expectation_hold(&expectations[i], SIGSEGV);
		expectation_hold(&expectations[i], SIGBUS);
	}
	printf("own_faults: %zu signals as asked for\n", 2 * n);
	return 0;
}
