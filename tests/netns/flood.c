/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ordinary UDP traffic, in bursts that no ring holds: datagrams of SIZE bytes to the discard port
 * of HOST until TERM. In the pauses between them others have a chance.
 *
 *	flood HOST SIZE
 *
 * Prints a line when it begins and, on TERM, how many it sent.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/ctl.h"

#define BATCH	     64
#define BURST	     1024 /* a veth's ring has 256 places */
#define PAUSE_NS     500000
#define DISCARD_PORT 9

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = 1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(DISCARD_PORT) };
	static struct mmsghdr messages[BATCH];
	static uint8_t payload[65536];
	struct iovec iov = { .iov_base = payload };
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	unsigned long sent = 0;
	int fd, n;

	must(argc == 3 && inet_pton(AF_INET, argv[1], &to.sin_addr) == 1, "flood HOST SIZE");
	iov.iov_len = strtoul(argv[2], NULL, 10);
	must(iov.iov_len > 0 && iov.iov_len < sizeof(payload), "flood: SIZE is %s", argv[2]);
	signal(SIGTERM, on_signal);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	/* not connected: an absent listener must not be reported */
	must(fd >= 0, "flood: no socket");
	for (int i = 0; i < BATCH; i++)
		messages[i].msg_hdr = (struct msghdr){
			.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &iov, .msg_iovlen = 1
		};
	printf("flooding\n");
	fflush(stdout);
	while (!stop) {
		for (int i = 0; i < BURST; i += BATCH) {
			n = sendmmsg(fd, messages, BATCH, 0);
			if (n > 0)
				sent += (unsigned long)n;
		}
		nanosleep(&pause, NULL);
	}
	printf("sent %lu\n", sent);
	return 0;
}
