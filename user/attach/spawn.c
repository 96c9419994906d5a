/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The library lies in DIR/xroce or DIR/lib of what was installed or built, and the command in a
 * place that is known from the one or the other. The program that is started leaves its work to a
 * process of another session before it ends: so this one has a child for a moment only.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/privilege.h"
#include "spawn.h"

/* XROCE_BINDIR, from the Makefile: where make install puts the command. */

extern char **environ;

/* Beside the library in the build tree; else where it was installed. */
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

/* The signals that the program blocks or ignores are not for the broker. */
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

static int spawn_files(posix_spawn_file_actions_t *files)
{
	if (posix_spawn_file_actions_init(files))
		return -ENOMEM;
	posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
#ifdef __GLIBC__
	posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
#endif
	return 0;
}

static int spawn_run(const char *path, char *const argv[], pid_t *pid)
{
	posix_spawnattr_t attr;
	posix_spawn_file_actions_t files;
	int err = spawn_attributes(&attr);

	if (err)
		return err;
	err = spawn_files(&files);
	if (!err) {
		err = -posix_spawn(pid, path, &files, &attr, argv, environ);
		posix_spawn_file_actions_destroy(&files);
	}
	posix_spawnattr_destroy(&attr);
	return err;
}

int spawn_broker(const struct netdev *dev)
{
	char path[PATH_MAX], name[IF_NAMESIZE];
	char *const argv[] = { "xroce", "serve", "--background", "--while-used", name, NULL };
	const u64 caps = privilege_caps();
	int status = 0, err;
	pid_t pid;

	if (!privilege_has(caps, CAP_NET_ADMIN) || !privilege_has(caps, CAP_BPF))
		return -EPERM;
	err = spawn_find(path, sizeof(path));
	if (err)
		return err;
	memcpy(name, dev->name, sizeof(name));
	err = spawn_run(path, argv, &pid);
	if (err)
		return err;
	while (waitpid(pid, &status, 0) < 0)
		/* the program's own handler, or its waiting, has had the status: it is tried */
		if (errno != EINTR)
			return 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}
