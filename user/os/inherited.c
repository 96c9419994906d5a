/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "inherited.h"

#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"

#define SLACK_NS 50000ul /* the first process's timer slack (prctl(2), PR_SET_TIMERSLACK) */

static void inherited_reset_scheduling(void)
{
	const struct sched_param none = { .sched_priority = 0 };
	cpu_set_t all;

	sched_setscheduler(0, SCHED_OTHER, &none);
	setpriority(PRIO_PROCESS, 0, 0);
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 0);
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	/* after the policy: real-time threads have no slack */
	prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0);
}

static void inherited_reset_oom_score(void)
{
	const int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";

	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) > 0 && atoi(text) > 0)
		dprintf(fd, "0");
	close(fd);
}

void inherited_reset(void)
{
	inherited_reset_scheduling();
	inherited_reset_oom_score();
	kernel_raise_limit(RLIMIT_CPU);
	kernel_raise_limit(RLIMIT_AS);
	kernel_raise_limit(RLIMIT_DATA);
	umask(022);
}
