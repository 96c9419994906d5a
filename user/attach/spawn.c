/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Starts `xroce serve --background`, which passes its work to a process of another session and
 * exits. In the build tree the command is found relative to the library, else in XROCE_BINDIR.
 *
 * The command must not be a child of the process that uses this library. That process may wait for
 * any child, or be interrupted by SIGCHLD: in a handler, or in epoll_wait(2) even without one, as
 * the kernel sends the signal to any thread if the thread that made the child blocks it. So a
 * helper is between them: a child that sends no signal when it exits, and that only a wait with
 * __WCLONE finds (clone(2)). A child that executes a program sends SIGCHLD again, so the helper
 * executes none: it starts the command, waits for it, and exits with the result.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../os/privilege.h"
#include "spawn.h"

/* XROCE_BINDIR, from the Makefile: where make install puts the command. */

/* A broker starts within a tenth of a second; on a loaded machine within seconds. */
#define SPAWN_MAX_MS 20000

extern char **environ;

/* Finds the command: ../bin/xroce from the library's directory, else the installed one. */
static int spawn_find(char *path, size_t n)
{
	Dl_info info;
	const char *slash;

	if (dladdr(&spawn_find, &info) && info.dli_fname) {
		slash = strrchr(info.dli_fname, '/');
		if (slash &&
		    (size_t)snprintf(path, n, "%.*s/../bin/xroce", (int)(slash - info.dli_fname),
				     info.dli_fname) < n &&
		    access(path, X_OK) == 0)
			return 0;
	}
	snprintf(path, n, "%s/xroce", XROCE_BINDIR);
	return access(path, X_OK) ? -ENOENT : 0;
}

/* The broker does not inherit the process's blocked and ignored signals. */
static int spawn_attributes(posix_spawnattr_t *attr)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	if (posix_spawnattr_init(attr))
		return -ENOMEM;
	posix_spawnattr_setsigmask(attr, &none);
	posix_spawnattr_setsigdefault(attr, &all);
	posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return 0;
}

/* Kills the command if it does not exit in time, as others wait for it. Returns true then. */
static bool spawn_is_late(pid_t pid)
{
	struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	int n;

	if (p.fd < 0)
		return false;
	do
		n = poll(&p, 1, SPAWN_MAX_MS);
	while (n < 0 && errno == EINTR);
	if (!n)
		kill(pid, SIGKILL);
	close(p.fd);
	return !n;
}

/*
 * Waits for the command, which exits with 0 once its background process listens. That process ends
 * by itself if no client asks it for anything.
 */
static int spawn_await(pid_t pid)
{
	const bool is_late = spawn_is_late(pid);
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return is_late ? -ETIMEDOUT : WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

/* ---- the helper ---- */

#define SPAWN_STACK (256u << 10)

struct spawn {
	const char *path;
	char *const *argv;
	const int *fd; /* inherited by the command */
	u32 n;
	posix_spawnattr_t attr;
	pid_t parent;
};

/*
 * Makes `to` a copy of fd; returns false with errno set. dup2() may be librspreload.so's, which
 * would mark the program's rsocket at `to` as closed, in the memory that the helper shares.
 */
static bool spawn_copy(int fd, int to)
{
	return fd == to || syscall(SYS_dup3, fd, to, 0) >= 0;
}

/*
 * Sets up the helper's descriptors: s->fd from INHERIT_AT on. Closes all others except standard
 * error, as they would stay open after the process's end.
 */
static int spawn_files(const struct spawn *s)
{
	const int null_fd = open("/dev/null", O_RDWR);
	bool failed = null_fd < 0 || !spawn_copy(null_fd, STDIN_FILENO) ||
		      !spawn_copy(null_fd, STDOUT_FILENO);

	for (u32 i = 0; !failed && i < s->n; i++)
		failed = !spawn_copy(s->fd[i], INHERIT_AT + (int)i);
	return failed || syscall(SYS_close_range, INHERIT_AT + s->n, UINT_MAX, 0) ? -errno : 0;
}

/*
 * Runs in the process's memory, with separate descriptors and signal handlers. Returns an errno. Is
 * killed if the process ends, as it would keep the process's sockets and mappings.
 */
static int spawn_help(void *arg)
{
	const struct spawn *s = arg;
	pid_t pid;
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != s->parent)
		return ESRCH;
	/* if SIGCHLD is ignored, the kernel discards the exit status */
	signal(SIGCHLD, SIG_DFL);
	err = -spawn_files(s);
	if (!err)
		err = posix_spawn(&pid, s->path, NULL, &s->attr, s->argv, environ);
	return err ? err : -spawn_await(pid);
}

static int spawn_await_helper(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, __WCLONE) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

/*
 * Runs the helper. CLONE_VFORK suspends this thread until the helper exits, as the helper uses the
 * thread's memory, including errno. Signals are blocked, as handlers would run in that memory.
 */
static int spawn_by_helper(struct spawn *s)
{
	char *stack = mmap(NULL, SPAWN_STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	sigset_t all, before;
	int err;

	if (stack == MAP_FAILED)
		return -ENOMEM;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = clone(spawn_help, stack + SPAWN_STACK, CLONE_VM | CLONE_VFORK, s);
	err = err < 0 ? -errno : spawn_await_helper(err);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	munmap(stack, SPAWN_STACK);
	return err;
}

/* ---- the command ---- */

static int spawn_run(const char *path, char *const argv[], const int *fd, u32 n)
{
	struct spawn s = { .path = path, .argv = argv, .fd = fd, .n = n, .parent = getpid() };
	int err = spawn_attributes(&s.attr);

	if (err)
		return err;
	err = spawn_by_helper(&s);
	posix_spawnattr_destroy(&s.attr);
	return err;
}

bool spawn_may(void)
{
	const u64 caps = privilege_caps();

	return privilege_has(caps, CAP_NET_ADMIN) && privilege_has(caps, CAP_BPF);
}

#define PKEYS_BYTES (XROCE_MAX_PKEY * sizeof("0xffff,"))

/* Formats the keys for --pkey; text has PKEYS_BYTES. */
static void spawn_print_pkeys(char *text, const struct pkey_table *pkeys)
{
	for (u32 i = 0; i < pkeys->num && i < XROCE_MAX_PKEY; i++)
		text += sprintf(text, "%s0x%04x", i ? "," : "", pkeys->key[i]);
}

/* Passes the P_Key table, as the process read its environment only once. */
static int spawn_serve(const struct netdev *dev, const struct pkey_table *pkeys, const int *fd,
		       u32 n)
{
	char path[PATH_MAX], name[IF_NAMESIZE], number[12], keys[PKEYS_BYTES] = "";
	char *const argv[] = { "xroce", "serve", "--background", "--while-used", "--pkey", keys,
			       "--inherit", number, name, NULL };
	int err;

	if (!spawn_may())
		return -EPERM;
	err = spawn_find(path, sizeof(path));
	if (err)
		return err;
	memcpy(name, dev->name, sizeof(name));
	snprintf(number, sizeof(number), "%u", n);
	spawn_print_pkeys(keys, pkeys);
	return spawn_run(path, argv, fd, n);
}

int spawn_broker(const struct netdev *dev, const struct pkey_table *pkeys)
{
	return spawn_serve(dev, pkeys, NULL, 0);
}

/* Passes copies with higher numbers, so that none is overwritten before it is copied. */
int spawn_heir(const struct netdev *dev, const struct pkey_table *pkeys, const int *fd, u32 n)
{
	int copy[INHERITS] = { 0 }, err = 0;
	u32 made = 0;

	for (; !err && made < n; made++) {
		copy[made] = fcntl(fd[made], F_DUPFD_CLOEXEC, INHERIT_AT + INHERITS);
		if (copy[made] < 0)
			err = -errno;
	}
	if (!err)
		err = spawn_serve(dev, pkeys, copy, n);
	while (made--)
		if (copy[made] >= 0)
			close(copy[made]);
	return err;
}
