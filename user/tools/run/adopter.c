/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "adopter.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADOPTER_TEXT 4096

static bool adopter_signals_have(const char *status, const char *line)
{
	const char *at = strstr(status, line);

	return at && strtoull(at + strlen(line), NULL, 16) & 1ull << (SIGCHLD - 1);
}

bool adopter_status_reaps(const char *status)
{
	return adopter_signals_have(status, "\nSigBlk:") ||
	       adopter_signals_have(status, "\nSigIgn:");
}

bool adopter_stat_reaps(const char *stat)
{
	/* proc(5), field 11 (the state is 3): minor faults of children that were waited for */
	unsigned long long faults;

	return sscanf(stat, "%*c %*d %*d %*d %*d %*d %*u %*u %llu", &faults) == 1 && faults;
}

/* Reads a file of /proc and appends a 0. Returns false if unreadable. */
static bool adopter_read(const char *path, char text[ADOPTER_TEXT])
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, ADOPTER_TEXT - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
	return n > 0;
}

/* Returns stat from the state on, as the name before it may have any characters; NULL if none. */
static const char *adopter_state(const char *stat)
{
	const char *end = strrchr(stat, ')');

	return end && end[1] == ' ' ? end + 2 : NULL;
}

/* Returns whether /proc belongs to this process's PID namespace. */
static bool adopter_is_seen(void)
{
	char text[32] = "";

	return readlink("/proc/self", text, sizeof(text) - 1) > 0 && atol(text) == getpid();
}

/* Without CONFIG_PROC_CHILDREN returns false. */
static bool adopter_has_many_dead(void)
{
	FILE *f = fopen("/proc/1/task/1/children", "re");
	char path[64], text[ADOPTER_TEXT];
	const char *state;
	int pid, dead = 0;

	while (f && dead < ADOPTER_DEAD_MAX && fscanf(f, "%d", &pid) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		if (adopter_read(path, text) && strstr(text, "(xroce-")) {
			state = adopter_state(text);
			dead += state && *state == 'Z';
		}
	}
	if (f)
		fclose(f);
	return dead == ADOPTER_DEAD_MAX;
}

bool adopter_reaps(void)
{
	char text[ADOPTER_TEXT];
	const char *state;

	if (!adopter_is_seen())
		return false;
	if (adopter_read("/proc/1/status", text) && adopter_status_reaps(text))
		return true;
	state = adopter_read("/proc/1/stat", text) ? adopter_state(text) : NULL;
	return state && adopter_stat_reaps(state) && !adopter_has_many_dead();
}
