/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any user at the door of a broker, or of the process that listens in its place:
 *
 *	first_knock SOCKET silent N	N connections that say nothing
 *	first_knock SOCKET half N	N that send a part of a question
 *	first_knock SOCKET garbage N	N that send invalid questions repeatedly
 *	first_knock SOCKET flood N	N that send questions and never read an answer
 *	first_knock SOCKET come N	N one after the other, that hang up at once
 *
 * `knocked`: all N have connected once. Then it reconnects closed ones until SIGTERM. A refused
 * connection is tried again.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../user/os/ask.h"
#include "lib/ctl.h"

#define MOST 1000

static const char *path, *how;
static int sock[MOST];
static volatile sig_atomic_t ends;

static void on_signal(int s)
{
	(void)s;
	ends = 1;
}

/* -1: not now */
static int reach(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	must(fd >= 0, "socket: %s", strerror(errno));
	strncpy(at.sun_path, path, sizeof(at.sun_path) - 1);
	if (!connect(fd, (struct sockaddr *)&at, sizeof(at)))
		return fd;
	must(errno == EAGAIN || errno == ECONNREFUSED || errno == ENOENT || errno == EINTR,
	     "connect: %s", strerror(errno));
	close(fd);
	return -1;
}

/* False: it is hung up. */
static bool speak(int fd)
{
	static const char noise[512] = "what is no question at all";
	const struct ask hello = { .version = ASK_VERSION, .what = ASK_HELLO };
	char end;

	if (recv(fd, &end, 1, MSG_PEEK) == 0 || (errno != EAGAIN && errno != EINTR))
		return !strcmp(how, "flood");
	if (!strcmp(how, "half"))
		send(fd, &hello, sizeof(hello) / 2, MSG_NOSIGNAL);
	else if (!strcmp(how, "garbage"))
		send(fd, noise, 1 + (size_t)rand() % sizeof(noise), MSG_NOSIGNAL);
	else if (!strcmp(how, "flood"))
		return send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) > 0 || errno == EAGAIN;
	return true;
}

int main(int argc, char **argv)
{
	unsigned int n, come = 0;
	bool told = false;

	must(argc == 4 && (n = (unsigned int)atoi(argv[3])) > 0 && n <= MOST,
	     "usage: first_knock SOCKET silent|half|garbage|flood|come N");
	path = argv[1];
	how = argv[2];
	signal(SIGTERM, on_signal);
	for (unsigned int i = 0; i < n; i++)
		sock[i] = -1;
	for (unsigned int i = 0; !ends; i = (i + 1) % n) {
		/* between two rounds, so that an honest process has its turn on a busy machine */
		if (!i)
			poll(NULL, 0, 1);
		if (sock[i] < 0) {
			sock[i] = reach();
			come += sock[i] >= 0;
		}
		if (sock[i] >= 0 && (!strcmp(how, "come") || !speak(sock[i]))) {
			close(sock[i]);
			sock[i] = -1;
		}
		if (!told && come >= n) {
			told = true;
			puts("knocked");
			fflush(stdout);
		}
	}
	return 0;
}
