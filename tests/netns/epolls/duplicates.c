/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Duplicates of a socket's descriptor: dup(2), fcntl(2). Threads that sleep in a call: signals as
 * in signal(7), "Interruption of system calls", cancellation as in pthreads(7).
 */
#define _GNU_SOURCE
#include "epolls.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>

/* Checks that a byte passes from one descriptor to the other. */
static bool carries(int from, int to)
{
	char byte = 0;

	CHECK(send(from, "7", 1, 0) == 1);
	CHECK(recv(to, &byte, 1, 0) == 1 && byte == '7');
	return true;
}

static bool has_ended(int fd)
{
	char byte;

	CHECK(recv(fd, &byte, 1, 0) == 0);
	return true;
}

static short polled(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) < 0 ? -1 : p.revents;
}

/* The lowest number from fd on that is free: the library has some. */
static int free_from(int fd)
{
	while (fcntl(fd, F_GETFD) >= 0)
		fd++;
	return fd;
}

/* Duplicates in each way; the socket is open until its last descriptor is closed. */
bool last_copy_closes(void)
{
	int copy[5], lowest;

	CHECK(ends_open());
	copy[0] = dup(end.server);
	copy[1] = dup2(end.server, end.server + 200);
	copy[2] = dup3(end.server, end.server + 201, O_CLOEXEC);
	lowest = free_from(300);
	copy[3] = fcntl(end.server, F_DUPFD, 300);
	CHECK(copy[3] == lowest);
	lowest = free_from(300);
	copy[4] = fcntl(end.server, F_DUPFD_CLOEXEC, 300);
	CHECK(copy[4] == lowest);
	CHECK(copy[0] >= 0 && copy[1] == end.server + 200 && copy[2] == end.server + 201);
	for (int i = 0; i < 5; i++) {
		CHECK(!!(fcntl(copy[i], F_GETFD) & FD_CLOEXEC) == (i == 2 || i == 4));
		CHECK(carries(end.client, copy[i]) && carries(copy[i], end.client));
	}
	CHECK(!close(end.server));
	end.server = -1;
	for (int i = 0; i < 5; i++) {
		CHECK(polled(end.client, 0) == 0);
		CHECK(carries(end.client, copy[i]) && carries(copy[i], end.client));
		CHECK(!close(copy[i]));
		CHECK_ERRNO(send(copy[i], "a", 1, 0), EBADF);
	}
	return has_ended(end.client);
}

/* poll(2), select(2) and epoll(7) with several descriptors of one socket. */
bool waits_of_copies(void)
{
	struct pollfd p[2];
	fd_set in, out;
	int copy;

	CHECK(ends_open() && (copy = dup(end.server)) >= 0);
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, copy, EPOLLIN | EPOLLET));
	for (int round = 0; round < 2; round++) {
		CHECK(send(end.client, "a", 1, 0) == 1);
		CHECK(polled(end.server, SOON_MS) == POLLIN);
		p[0] = (struct pollfd){ .fd = end.server, .events = POLLIN | POLLOUT };
		p[1] = (struct pollfd){ .fd = copy, .events = POLLIN };
		CHECK(poll(p, 2, 0) == 2);
		CHECK(p[0].revents == (POLLIN | POLLOUT) && p[1].revents == POLLIN);
		FD_ZERO(&in);
		FD_SET(end.server, &in);
		FD_SET(copy, &in);
		out = in;
		CHECK(select(FD_SETSIZE, &in, &out, NULL, &(struct timeval){ 0 }) == 4);
		CHECK(happens(end.set, copy) == EPOLLIN);
		/* one descriptor reads the byte, which is gone for the other */
		CHECK(drain(round ? copy : end.server, 1));
		CHECK(polled(end.server, 0) == 0 && polled(copy, 0) == 0 && quiet(end.set));
	}
	CHECK(!close(copy));
	return true;
}

/*
 * epoll(7): "even after a file descriptor that is part of an epoll set has been closed, events may
 * be reported for that file descriptor if other file descriptors referring to the same underlying
 * file description remain open"
 */
bool copy_keeps_its_original_in_a_set(void)
{
	int copy, number;

	CHECK(ends_open() && (copy = dup(end.server)) >= 0);
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN));
	number = end.server;
	CHECK(!close(end.server));
	end.server = -1;
	CHECK(send(end.client, "a", 1, 0) == 1);
	CHECK(happens(end.set, number) == EPOLLIN);
	CHECK(!close(copy));
	return quiet(end.set);
}

/* "They refer to the same open file description and thus share ... file status flags" */
bool copies_share_flags(void)
{
	char byte;
	int copy;

	CHECK(ends_open() && (copy = dup(end.server)) >= 0);
	CHECK(nonblocking(copy) && fcntl(end.server, F_GETFL) & O_NONBLOCK);
	CHECK_ERRNO(recv(end.server, &byte, 1, 0), EAGAIN);
	CHECK(!fcntl(end.server, F_SETFL, fcntl(end.server, F_GETFL) & ~O_NONBLOCK));
	CHECK(!(fcntl(copy, F_GETFL) & O_NONBLOCK));
	CHECK(!fcntl(copy, F_SETFD, FD_CLOEXEC) && !fcntl(end.server, F_SETFD, 0));
	CHECK(fcntl(copy, F_GETFD) == FD_CLOEXEC);
	CHECK(!shutdown(copy, SHUT_WR) && has_ended(end.client));
	CHECK_ERRNO(send(end.server, "a", 1, MSG_NOSIGNAL), EPIPE);
	CHECK(carries(end.client, end.server));
	CHECK(!close(copy));
	return true;
}

/* "the file descriptor newfd ... is closed silently before being reused" */
bool copies_over_others(void)
{
	int client, server, pipes[2];
	char byte;

	CHECK(ends_open() && ends_connect(&client, &server) && !pipe(pipes));
	/* a socket over a socket: the second one's peer sees its end */
	CHECK(dup2(end.server, server) == server && has_ended(client));
	CHECK(carries(end.client, server) && carries(server, end.client));
	/* a pipe over a socket with another number */
	CHECK(dup2(pipes[0], server) == server && write(pipes[1], "p", 1) == 1);
	CHECK(polled(server, SOON_MS) == POLLIN && read(server, &byte, 1) == 1 && byte == 'p');
	CHECK(polled(end.client, 0) == 0 && carries(end.client, end.server));
	/* the socket over the pipe's last reader, and the pipe's writer over the socket */
	CHECK(!close(server) && dup2(end.server, pipes[0]) == pipes[0]);
	signal(SIGPIPE, SIG_IGN);
	CHECK_ERRNO(write(pipes[1], "p", 1), EPIPE);
	CHECK(carries(end.client, pipes[0]));
	CHECK(dup2(pipes[1], end.server) == end.server && polled(end.client, 0) == 0);
	CHECK(dup2(pipes[1], pipes[0]) == pipes[0] && has_ended(end.client));
	CHECK(!close(pipes[0]) && !close(pipes[1]) && !close(client));
	return true;
}

bool copies_of_a_listener(void)
{
	int copy, client, server, again;

	CHECK(ends_listen() && (copy = fcntl(end.listener, F_DUPFD_CLOEXEC, 0)) >= 0);
	CHECK(ends_connect(&client, &server));
	CHECK(!close(end.listener));
	end.listener = -1;
	again = socket(at.any.sa_family, SOCK_STREAM, 0);
	CHECK(again >= 0 && nonblocking(again));
	CHECK(!connect(again, &at.any, at_bytes) || errno == EINPROGRESS);
	CHECK(polled(copy, SOON_MS) == POLLIN);
	CHECK((end.server = accept(copy, NULL, NULL)) >= 0);
	CHECK(carries(client, server));
	CHECK(!close(copy) && !close(client) && !close(server) && !close(again));
	return true;
}

/* ---- a thread that sleeps in a call ---- */

enum { ACCEPT, RECV, SEND, POLL, SELECT, EPOLL, CALLS };

struct sleeper {
	pthread_t thread;
	int call, fd;
	ssize_t got;
	int err;
	atomic_bool done;
	sigset_t mask;
};

static ssize_t sleeps_in(int call, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct epoll_event event;
	char byte;
	fd_set in;

	switch (call) {
	case ACCEPT:
		return accept(fd, NULL, NULL);
	case RECV:
		return recv(fd, &byte, 1, 0);
	case SEND:
		return send(fd, "a", 1, MSG_NOSIGNAL);
	case POLL:
		return poll(&p, 1, -1);
	case SELECT:
		FD_ZERO(&in);
		FD_SET(fd, &in);
		return select(fd + 1, &in, NULL, NULL, NULL);
	default:
		return epoll_wait(fd, &event, 1, -1);
	}
}

static void *sleeper_run(void *arg)
{
	struct sleeper *s = arg;

	s->got = sleeps_in(s->call, s->fd);
	s->err = errno;
	atomic_store(&s->done, true);
	return NULL;
}

static bool sleeper_begins(struct sleeper *s, int call, int fd)
{
	*s = (struct sleeper){ .call = call, .fd = fd };
	CHECK(!pthread_create(&s->thread, NULL, sleeper_run, s));
	usleep(20000); /* can only miss the fault, never make one */
	CHECK(!atomic_load(&s->done));
	return true;
}

/* Sends up to `times` signals until the call returns. */
static void sleeper_signal(struct sleeper *s, int times)
{
	for (int i = 0; i < times && !atomic_load(&s->done); i++) {
		pthread_kill(s->thread, SIGUSR1);
		usleep(1000);
	}
}

static void on_signal(int number)
{
}

static bool catch_usr1(int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	return !sigaction(SIGUSR1, &action, NULL);
}

/* Removes the handlers of other cases. */
static bool handlers_forget(void)
{
	struct sigaction action;

	for (int i = 1; i < SIGRTMAX; i++)
		if (!sigaction(i, NULL, &action) && action.sa_handler != SIG_DFL &&
		    action.sa_handler != SIG_IGN)
			signal(i, SIG_DFL);
	return true;
}

/* Returns the descriptor that the call sleeps on; no byte and no connection is ready. */
static bool sleeping_fd(int call, int *fd, size_t *filled)
{
	CHECK(ends_open());
	*fd = call == ACCEPT ? end.listener : call == EPOLL ? end.set : end.server;
	if (call == EPOLL)
		CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN));
	if (call == SEND) {
		struct pollfd p = { .fd = end.server, .events = POLLOUT };
		size_t n;

		CHECK(nonblocking(end.server));
		/* until the peer's queue is full as well */
		*filled = 0;
		do {
			poll(&p, 1, 5 * NOT_MS);
			*filled += n = fill(end.server);
		} while (n);
		CHECK(!fcntl(end.server, F_SETFL, fcntl(end.server, F_GETFL) & ~O_NONBLOCK));
	}
	return true;
}

/* The call gets its byte or connection; nothing is lost or done twice. */
static bool sleeper_is_served(struct sleeper *s, size_t filled)
{
	int client = -1;

	if (s->call == ACCEPT) {
		client = socket(at.any.sa_family, SOCK_STREAM, 0);
		CHECK(client >= 0 && !connect(client, &at.any, at_bytes));
	} else if (s->call == SEND) {
		CHECK(drain(end.client, filled));
	} else {
		CHECK(send(end.client, "a", 1, 0) == 1);
	}
	CHECK(!pthread_join(s->thread, NULL));
	CHECK(s->call == ACCEPT ? s->got >= 0 : s->got == 1);
	if (s->call == ACCEPT) {
		CHECK(carries(client, (int)s->got));
		CHECK(!close((int)s->got) && !close(client));
	} else if (s->call == SEND) {
		CHECK(drain(end.client, 1));
	} else if (s->call != RECV) {
		CHECK(drain(end.server, 1));
	}
	return carries(end.client, end.server) && carries(end.server, end.client);
}

static void ends_forget(void)
{
	int *fds[] = { &end.client, &end.server, &end.listener, &end.set };

	for (size_t i = 0; i < 4; i++) {
		close(*fds[i]);
		*fds[i] = -1;
	}
}

/* Without SA_RESTART each call ends with EINTR, and the socket is unchanged. */
bool signals_end_calls(void)
{
	struct sleeper s;
	size_t filled = 0;
	int fd;

	CHECK(catch_usr1(0));
	for (int call = 0; call < CALLS; call++) {
		CHECK(sleeping_fd(call, &fd, &filled) && sleeper_begins(&s, call, fd));
		sleeper_signal(&s, SOON_MS);
		CHECK(!pthread_join(s.thread, NULL) && s.got == -1 && s.err == EINTR);
		CHECK(sleeper_begins(&s, call, fd) && sleeper_is_served(&s, filled));
		ends_forget();
	}
	signal(SIGUSR1, SIG_DFL);
	return true;
}

/* With SA_RESTART accept(), recv() and send() go on; poll(), select() and epoll_wait() do not. */
bool signals_restart_calls(void)
{
	struct sleeper s;
	size_t filled = 0;
	int fd;

	/* rsockets check for any other handler (docs/rsocket.md) */
	CHECK(handlers_forget() && catch_usr1(SA_RESTART));
	for (int call = 0; call < CALLS; call++) {
		CHECK(sleeping_fd(call, &fd, &filled) && sleeper_begins(&s, call, fd));
		if (call < POLL) {
			sleeper_signal(&s, 30);
			CHECK(!atomic_load(&s.done));
		} else {
			sleeper_signal(&s, SOON_MS);
			CHECK(!pthread_join(s.thread, NULL) && s.got == -1 && s.err == EINTR);
			CHECK(sleeper_begins(&s, call, fd));
		}
		CHECK(sleeper_is_served(&s, filled));
		ends_forget();
	}
	signal(SIGUSR1, SIG_DFL);
	return true;
}

/* signal(7): calls with a time-out (setsockopt(2)) end with EINTR, also with SA_RESTART. */
bool signals_end_calls_with_timeouts(void)
{
	struct timeval long_time = { 1000, 0 };
	struct sleeper s;
	size_t filled = 0;
	int fd;

	CHECK(catch_usr1(SA_RESTART));
	for (int call = 0; call < POLL; call++) {
		CHECK(sleeping_fd(call, &fd, &filled));
		CHECK(!setsockopt(fd, SOL_SOCKET, call == SEND ? SO_SNDTIMEO : SO_RCVTIMEO,
				  &long_time, sizeof(long_time)));
		CHECK(sleeper_begins(&s, call, fd));
		sleeper_signal(&s, SOON_MS);
		CHECK(!pthread_join(s.thread, NULL) && s.got == -1 && s.err == EINTR);
		CHECK(sleeper_begins(&s, call, fd) && sleeper_is_served(&s, filled));
		ends_forget();
	}
	signal(SIGUSR1, SIG_DFL);
	return true;
}

/* A cancelled thread has read nothing, and blocks no other thread. */
bool cancelled_calls(void)
{
	struct sleeper s;
	size_t filled = 0;
	void *how;
	int fd;

	for (int call = 0; call < CALLS; call++) {
		CHECK(sleeping_fd(call, &fd, &filled) && sleeper_begins(&s, call, fd));
		CHECK(!pthread_cancel(s.thread) && !pthread_join(s.thread, &how));
		CHECK(how == PTHREAD_CANCELED && !atomic_load(&s.done));
		CHECK(sleeper_begins(&s, call, fd) && sleeper_is_served(&s, filled));
		ends_forget();
	}
	return true;
}

/* A thread that sleeps on a duplicate sleeps on when the original is closed, and gets its data. */
bool original_is_closed_meanwhile(void)
{
	struct sleeper s;
	size_t filled = 0;
	int fd, copy;

	for (int call = 0; call < CALLS; call++) {
		int *original = call == ACCEPT ? &end.listener : &end.server;

		CHECK(sleeping_fd(call, &fd, &filled) && (copy = dup(*original)) >= 0);
		if (call == EPOLL)
			CHECK(!ctl(end.set, EPOLL_CTL_ADD, copy, EPOLLIN) &&
			      !ctl(end.set, EPOLL_CTL_DEL, end.server, 0));
		CHECK(sleeper_begins(&s, call, call == EPOLL ? fd : copy));
		CHECK(!close(*original));
		*original = copy;
		usleep(1000);
		CHECK(!atomic_load(&s.done));
		CHECK(sleeper_is_served(&s, filled));
		ends_forget();
	}
	return true;
}

/* Without free descriptors a call fails with EMFILE, and open ones work. */
bool no_descriptors(void)
{
	int used[1024], n = 0, client, server;
	struct rlimit before, few;

	CHECK(ends_open());
	CHECK((client = socket(at.any.sa_family, SOCK_STREAM, 0)) >= 0 && nonblocking(client));
	CHECK(!connect(client, &at.any, at_bytes) || errno == EINPROGRESS);
	CHECK(polled(end.listener, SOON_MS) == POLLIN);
	CHECK(!getrlimit(RLIMIT_NOFILE, &before));
	few = (struct rlimit){ 512, before.rlim_max };
	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	while (n < 1024 && (used[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	CHECK(n > 0 && n < 1024 && errno == EMFILE);
	for (int i = 0; i < 100; i++) {
		CHECK_ERRNO(dup(end.server), EMFILE);
		CHECK_ERRNO(fcntl(end.server, F_DUPFD_CLOEXEC, 0), EMFILE);
		CHECK_ERRNO(socket(at.any.sa_family, SOCK_STREAM, 0), EMFILE);
		CHECK_ERRNO(accept(end.listener, NULL, NULL), EMFILE);
	}
	CHECK(dup2(end.server, used[n - 1]) == used[n - 1]);
	CHECK(carries(end.client, used[n - 1]) && carries(end.server, end.client));
	while (n)
		close(used[--n]);
	CHECK(!setrlimit(RLIMIT_NOFILE, &before));
	/* the connection that accept() could not return is still pending */
	CHECK(polled(end.listener, 0) == POLLIN);
	CHECK((server = accept(end.listener, NULL, NULL)) >= 0);
	CHECK(!fcntl(client, F_SETFL, 0) && carries(server, client) && carries(client, server));
	CHECK(!close(client) && !close(server));
	return carries(end.client, end.server);
}
