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
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../os/options.h"
#include "../os/privilege.h"
#include "spawn.h"

/* XROCE_BINDIR, from the Makefile: where make install puts the command. */

/*
 * A broker starts within a tenth of a second; on a loaded machine within seconds. It waits longest
 * for another one (IFACE_LOCK_MAX_NS).
 */
#define SPAWN_MAX_S 30
#define SPAWN_NOT_LOADED 127 /* exit status */

extern char **environ;

#define INSTALLED "/xroce" /* the end of the library's directory after `make install` */

/*
 * Finds the command from the library's directory: in the build tree, or where `make install` has
 * put both; else the one for which the library was built.
 */
static int spawn_find(char *path, size_t n)
{
	const size_t end = strlen(INSTALLED);
	const char *slash = NULL;
	Dl_info info;
	int len;

	if (dladdr(&spawn_find, &info) && info.dli_fname)
		slash = strrchr(info.dli_fname, '/');
	if (slash) {
		len = (int)(slash - info.dli_fname);
		if ((size_t)snprintf(path, n, "%.*s/%s", len, info.dli_fname,
				     (size_t)len > end && !strncmp(slash - end, INSTALLED, end) ?
					     "../../bin/xroce" :
					     "../bin/xroce") < n &&
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

/* ---- the helper ---- */

/*
 * The helper shares the memory of a program, and has other descriptors. In a program that
 * librspreload.so serves, a number that is a descriptor of the helper can be an rsocket of the
 * program. poll(), close(), dup2() and fcntl() would act on the rsocket: the helper uses syscall().
 */

/* Kills the command if it does not exit in time, as others wait for it. Returns true then. */
static bool spawn_is_late(pid_t pid)
{
	struct timespec left = { .tv_sec = SPAWN_MAX_S };
	struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	int n;

	if (p.fd < 0)
		return false;
	/* the kernel writes the time that remains, so a signal does not prolong the wait */
	do
		n = (int)syscall(SYS_ppoll, &p, 1, &left, NULL, 0);
	while (n < 0 && errno == EINTR);
	if (!n)
		kill(pid, SIGKILL);
	syscall(SYS_close, p.fd);
	return !n;
}

/*
 * Waits for the command, which exits with 0 once its background process listens, or with an errno.
 * That process ends by itself if no client asks it for anything.
 */
static int spawn_await(pid_t pid)
{
	const bool is_late = spawn_is_late(pid);
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (is_late)
		return -ETIMEDOUT;
	/* the loader's, not an errno: a library of the command cannot be loaded */
	if (WIFEXITED(status) && WEXITSTATUS(status) == SPAWN_NOT_LOADED)
		return -ENOENT;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

#define SPAWN_STACK (256u << 10)

struct spawn {
	const char *path;
	char *const *argv;
	char **environment;
	int client_fd; /* inherited by the command as SPAWN_CLIENT_FD */
	posix_spawnattr_t attr;
	pid_t parent;
};

/* Makes `to` a copy of fd; returns false with errno set. */
static bool spawn_copy(int fd, int to)
{
	return fd == to || syscall(SYS_dup3, fd, to, 0) >= 0;
}

/*
 * Sets up the helper's descriptors. Closes all others except standard error, as they would stay
 * open after the process's end.
 */
static int spawn_files(const struct spawn *s)
{
	/* above SPAWN_CLIENT_FD, so that it is not overwritten before it is copied */
	const int client_fd =
		(int)syscall(SYS_fcntl, s->client_fd, F_DUPFD, SPAWN_CLIENT_FD + 1);
	const int null_fd = open("/dev/null", O_RDWR);
	const bool failed = client_fd < 0 || null_fd < 0 || !spawn_copy(null_fd, STDIN_FILENO) ||
			    !spawn_copy(null_fd, STDOUT_FILENO) ||
			    !spawn_copy(client_fd, SPAWN_CLIENT_FD);

	return failed || syscall(SYS_close_range, SPAWN_CLIENT_FD + 1, UINT_MAX, 0) ? -errno : 0;
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
		err = posix_spawn(&pid, s->path, NULL, &s->attr, s->argv, s->environment);
	return err ? err : -spawn_await(pid);
}

/*
 * ThreadSanitizer's clone() expects that the child has a copy of the memory. The helper shares it,
 * and ThreadSanitizer would ignore all later synchronization of this thread.
 */
#ifdef __SANITIZE_THREAD__
int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);
#define clone __clone
#endif

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

/*
 * Returns the environment without LD_PRELOAD, for free(); NULL: no memory. A preloaded library is
 * the program's, as librspreload.so, which would make rsockets of the broker's sockets. Of a
 * set-user-ID program the broker gets no variables, as its caller has chosen them. The kernel
 * tells the broker nothing if the program has changed its real user ID.
 */
static char **spawn_environment(void)
{
	static const char without[] = "LD_PRELOAD=";
	char **copy;
	size_t n = 0, kept = 0;

	while (!getauxval(AT_SECURE) && environ && environ[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++)
		if (strncmp(environ[i], without, sizeof(without) - 1) &&
		    options_are_inherited(environ[i]))
			copy[kept++] = environ[i];
	return copy;
}

static int spawn_run(const char *path, char *const argv[], int client_fd)
{
	struct spawn s = { .path = path, .argv = argv, .client_fd = client_fd,
			   .parent = getpid() };
	int err = spawn_attributes(&s.attr);

	if (err)
		return err;
	s.environment = spawn_environment();
	err = s.environment ? spawn_by_helper(&s) : -ENOMEM;
	free(s.environment);
	posix_spawnattr_destroy(&s.attr);
	return err;
}

bool spawn_may(void)
{
	const u64 caps = privilege_caps();

	return privilege_may_attach() && privilege_has(caps, CAP_NET_ADMIN) &&
	       privilege_has(caps, CAP_BPF);
}

#define PKEYS_BYTES (XROCE_MAX_PKEY * sizeof("0xffff,"))

/* Formats the keys for --pkey; text has PKEYS_BYTES. */
static void spawn_print_pkeys(char *text, const struct pkey_table *pkeys)
{
	for (u32 i = 0; i < pkeys->num && i < XROCE_MAX_PKEY; i++)
		text += sprintf(text, "%s0x%04x", i ? "," : "", pkeys->key[i]);
}

/* Passes the P_Key table, as the process read its environment only once. */
static int spawn_serve(const struct netdev *dev, const struct pkey_table *pkeys,
		       enum port_choice port, bool with_sockets, int client_fd)
{
	static char *const ports[] = { [PORT_AUTO] = "--port=auto",
				       [PORT_XDP] = "--port=xdp",
				       [PORT_SOCKETS] = "--port=sockets" };
	char path[PATH_MAX], name[IF_NAMESIZE], keys[PKEYS_BYTES] = "";
	char *const argv[] = { "xroce", "serve", "--background", "--while-used", "--first",
			       "--pkey", keys, name, ports[port],
			       with_sockets ? "--sockets" : NULL, NULL };
	int err;

	err = spawn_find(path, sizeof(path));
	if (err)
		return err;
	memcpy(name, dev->name, sizeof(name));
	spawn_print_pkeys(keys, pkeys);
	return spawn_run(path, argv, client_fd);
}

int spawn_broker(const struct netdev *dev, const struct pkey_table *pkeys, enum port_choice port,
		 bool with_sockets)
{
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	err = spawn_serve(dev, pkeys, port, with_sockets, pair[1]);
	close(pair[1]);
	if (!err)
		return pair[0];
	close(pair[0]);
	return err;
}
