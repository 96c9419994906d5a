/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Removes the sockets of killed processes from ASK_DIR. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../os/process.h"
#include "broker_socket.h"

/* A younger socket may belong to a process that has just started. */
#define DEAD_AGE_S 60

#define NETNS_NAMES "/run/netns"

static bool netns_has_name(u64 netns)
{
	DIR *names = opendir(NETNS_NAMES);
	struct dirent *e;
	struct stat st;
	bool has = false;

	while (!has && names && (e = readdir(names)))
		has = !fstatat(dirfd(names), e->d_name, &st, 0) && st.st_ino == netns;
	if (names)
		closedir(names);
	return has;
}

static bool netns_lives(u64 netns)
{
	return process_in_namespace("net", netns) || netns_has_name(netns);
}

static bool dead_listens(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool listens;

	snprintf(at.sun_path, sizeof(at.sun_path), ASK_DIR "/%.64s", name);
	listens = fd < 0 || !connect(fd, (const struct sockaddr *)&at, sizeof(at)) ||
		  errno != ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return listens;
}

static bool dead_is_old(int dir, const char *name)
{
	struct stat st;

	return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISSOCK(st.st_mode) &&
	       time(NULL) - st.st_mtime >= DEAD_AGE_S;
}

void broker_socket_bury_dead(void)
{
	DIR *dir = opendir(ASK_DIR);
	unsigned long long netns;
	struct dirent *e;
	u32 ifindex;
	int end;

	while (dir && (e = readdir(dir))) {
		end = 0;
		if (sscanf(e->d_name, "%llu-%u.sock%n", &netns, &ifindex, &end) != 2 || !end ||
		    e->d_name[end])
			continue;
		if (dead_is_old(dirfd(dir), e->d_name) && !netns_lives(netns) &&
		    !dead_listens(e->d_name))
			unlinkat(dirfd(dir), e->d_name, 0);
	}
	if (dir)
		closedir(dir);
}
