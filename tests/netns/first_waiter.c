/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program with an open device that waits in epoll_wait(2) without events:
 *
 *	first_waiter DEVICE default|handler|ignore
 *
 * selects how SIGCHLD is handled. `ready` once it waits; `interrupted` if the wait ends before
 * SIGTERM; at the end `signals N` (SIGCHLD that its handler had) and `no child`.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "lib/ctl.h"
#include "lib/device.h"

static volatile sig_atomic_t signals;

static void on_child(int s)
{
	(void)s;
	signals++;
}

int main(int argc, char **argv)
{
	static char buffer[64];
	struct epoll_event event = { .events = EPOLLIN };
	struct sigaction action = { .sa_handler = SIG_DFL };
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	sigset_t term;
	int fd, poller;

	must(argc == 3, "usage: first_waiter DEVICE default|handler|ignore");
	if (!strcmp(argv[2], "handler"))
		action.sa_handler = on_child;
	else if (!strcmp(argv[2], "ignore"))
		action.sa_handler = SIG_IGN;
	sigaction(SIGCHLD, &action, NULL);
	ctx = open_device(argv[1]);
	pd = ibv_alloc_pd(ctx);
	/* the first that makes a port */
	must(pd && ibv_reg_mr(pd, buffer, sizeof(buffer), 0), "ibv_reg_mr: %s", strerror(errno));

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	fd = signalfd(-1, &term, 0);
	poller = epoll_create1(0);
	must(fd >= 0 && poller >= 0 && !epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event), "epoll: %s",
	     strerror(errno));
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (epoll_wait(poller, &event, 1, -1) < 0) {
		must(errno == EINTR, "epoll_wait: %s", strerror(errno));
		puts("interrupted");
	}
	printf("signals %d\n", (int)signals);
	if (waitpid(-1, NULL, 0) < 0 && errno == ECHILD)
		puts("no child");
	return 0;
}
