/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../engine/types.h"
#include "last_thread.h"
#include "thread.h"

/* The names of our threads begin so: in libibverbs and librdmacm, and for rsockets. */
static const char *const ours[] = { "xroce/", "rsocket" };

static bool last_thread_is_ours(int tasks_fd, const char *task)
{
	char path[32], name[16] = "";
	int fd;

	snprintf(path, sizeof(path), "%.16s/comm", task);
	fd = openat(tasks_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true; /* it has ended */
	if (read(fd, name, sizeof(name) - 1) < 0)
		name[0] = 0;
	close(fd);
	for (u32 i = 0; i < ARRAY_SIZE(ours); i++)
		if (!strncmp(name, ours[i], strlen(ours[i])))
			return true;
	return false;
}

/* Returns whether all threads are ours, but for the main one, which has ended. */
static bool last_thread_has_ended(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *e;
	bool ended = tasks;

	while (ended && (e = readdir(tasks)))
		ended = e->d_name[0] == '.' || atoi(e->d_name) == (int)getpid() ||
			last_thread_is_ours(dirfd(tasks), e->d_name);
	if (tasks)
		closedir(tasks);
	return ended;
}

static void *last_thread_await(void *arg)
{
	pthread_setname_np(pthread_self(), "xroce/end");
	while (!last_thread_has_ended())
		poll(NULL, 0, LAST_THREAD_LOOK_MS);
	exit(0);
}

/* Runs in the main thread when it exits, and not when main() returns. */
static void last_thread_main_exits(void *arg)
{
	pthread_t thread;

	if (thread_start(&thread, last_thread_await, NULL) == 0)
		pthread_detach(thread);
}

void last_thread_register(void)
{
	pthread_key_t key;

	if (gettid() == getpid() && pthread_key_create(&key, last_thread_main_exits) == 0)
		pthread_setspecific(key, &ours);
}
