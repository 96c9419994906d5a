/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads that wait, and many rsockets. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rsockets.h"

/* ---- waiting ---- */

static void *receive_one(void *of)
{
	char byte;

	*(ssize_t *)of = rrecv(pair.server, &byte, 1, 0);
	return NULL;
}

static void wait_a_moment(void)
{
	/* Not needed for the result: it makes the other thread likely to sleep. */
	rpoll(NULL, 0, 20);
}

bool closed_while_waiting(void)
{
	ssize_t got = 5;
	pthread_t reader;

	CHECK(pair_open());
	pthread_create(&reader, NULL, receive_one, &got);
	wait_a_moment();
	CHECK(!rclose(pair.server));
	pair.server = -1;
	pthread_join(reader, NULL);
	CHECK(got <= 0);
	return true;
}

static void *poll_one(void *of)
{
	*(short *)of = ready(pair.server, POLLIN, 10000);
	return NULL;
}

bool several_wait(void)
{
	short told[3] = { 0 };
	pthread_t threads[3];
	char byte;

	CHECK(pair_open());
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, poll_one, &told[i]);
	wait_a_moment();
	CHECK(rsend(pair.client, "x", 1, 0) == 1);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(told[0] == POLLIN && told[1] == POLLIN && told[2] == POLLIN);
	CHECK(rrecv(pair.server, &byte, 1, 0) == 1);
	return true;
}

bool poll_of_both_kinds(void)
{
	struct timeval none = { 0 };
	struct pollfd p[3];
	fd_set reads, writes;
	int pipes[2];
	char byte;

	CHECK(pair_open() && !pipe(pipes));
	p[0] = (struct pollfd){ .fd = pair.server, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = pipes[0], .events = POLLIN };
	p[2] = (struct pollfd){ .fd = -1, .events = POLLIN };
	CHECK(rpoll(p, 3, 0) == 0);
	CHECK(write(pipes[1], "x", 1) == 1);
	CHECK(rpoll(p, 3, 10000) == 1 && p[1].revents == POLLIN && !p[0].revents);
	CHECK(rsend(pair.client, "x", 1, 0) == 1);
	CHECK(ready(pair.server, POLLIN, 10000));
	CHECK(rpoll(p, 3, -1) == 2 && p[0].revents == POLLIN);
	FD_ZERO(&reads);
	FD_ZERO(&writes);
	FD_SET(pair.server, &reads);
	FD_SET(pipes[0], &reads);
	FD_SET(pair.client, &reads);
	FD_SET(pair.client, &writes);
	CHECK(rselect(FD_SETSIZE, &reads, &writes, NULL, &none) == 3);
	CHECK(FD_ISSET(pair.server, &reads) && FD_ISSET(pipes[0], &reads) &&
	      FD_ISSET(pair.client, &writes) && !FD_ISSET(pair.client, &reads));
	CHECK(rrecv(pair.server, &byte, 1, 0) == 1);
	close(pipes[0]);
	close(pipes[1]);
	return true;
}

static void on_signal(int number)
{
}

static void *signal_later(void *of)
{
	wait_a_moment();
	pthread_kill(*(pthread_t *)of, SIGUSR1);
	return NULL;
}

bool interrupted(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t self = pthread_self(), other;
	char byte;

	CHECK(pair_open());
	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&other, NULL, signal_later, &self);
	CHECK_ERRNO(rrecv(pair.server, &byte, 1, 0), EINTR);
	pthread_join(other, NULL);
	signal(SIGUSR1, SIG_DFL);
	return true;
}

/* ---- many ---- */

bool many_connections(void)
{
	enum { MANY = 24 };
	int clients[MANY], servers[MANY];
	char byte;

	CHECK(pair_listen(MANY));
	for (int i = 0; i < MANY; i++) {
		clients[i] = rsocket(at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
		CHECK(clients[i] >= 0);
		CHECK_ERRNO(rconnect(clients[i], &at.any, at_bytes), EINPROGRESS);
	}
	for (int i = 0; i < MANY; i++) {
		servers[i] = raccept(pair.listener, NULL, NULL);
		CHECK(servers[i] >= 0 && rsend(servers[i], "x", 1, 0) == 1);
	}
	for (int i = 0; i < MANY; i++) {
		CHECK(ready(clients[i], POLLIN, 20000) == POLLIN);
		CHECK(rrecv(clients[i], &byte, 1, 0) == 1);
	}
	for (int i = 0; i < MANY; i++) {
		CHECK(!rclose(clients[i]));
		CHECK(!rclose(servers[i]));
	}
	return true;
}

/* More than the backlog: they wait for raccept(), none is refused. */
bool more_than_the_backlog(void)
{
	enum { MANY = 8 };
	int clients[MANY], servers[MANY];

	CHECK(pair_listen(1));
	for (int i = 0; i < MANY; i++) {
		clients[i] = rsocket(at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
		CHECK_ERRNO(rconnect(clients[i], &at.any, at_bytes), EINPROGRESS);
	}
	for (int i = 0; i < MANY; i++)
		CHECK((servers[i] = raccept(pair.listener, NULL, NULL)) >= 0);
	for (int i = 0; i < MANY; i++) {
		short events = ready(clients[i], POLLOUT, 20000);

		if (events != POLLOUT)
			printf("# client %d: events %x\n", i, events);
		CHECK(events == POLLOUT);
	}
	for (int i = 0; i < MANY; i++) {
		rclose(clients[i]);
		rclose(servers[i]);
	}
	return true;
}

bool forked(void)
{
	char byte;
	int status;
	pid_t child;

	CHECK(pair_open());
	child = fork();
	if (!child) {
		bool closed = rsend(pair.client, "c", 1, 0) == -1 && errno == EBADF &&
			      !rclose(pair.client);
		_exit(closed ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(rsend(pair.client, "p", 1, 0) == 1);
	CHECK(rrecv(pair.server, &byte, 1, 0) == 1 && byte == 'p');
	return true;
}
