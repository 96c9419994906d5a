/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sets: their members and waiters; signals; other calls of event loops. */
#define _GNU_SOURCE
#include "epolls.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

bool ctl_errors(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	unsigned int exclusive = EPOLLIN | EPOLLEXCLUSIVE;
	int other = epoll_create1(0);

	CHECK(ends_open());
	CHECK_ERRNO(ctl(end.set, EPOLL_CTL_MOD, end.server, EPOLLIN), ENOENT);
	CHECK_ERRNO(ctl(end.set, EPOLL_CTL_DEL, end.server, 0), ENOENT);
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN));
	CHECK_ERRNO(ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN), EEXIST);
	CHECK_ERRNO(epoll_ctl(end.set, EPOLL_CTL_ADD, end.client, NULL), EFAULT);
	CHECK_ERRNO(ctl(end.server, EPOLL_CTL_ADD, end.client, EPOLLIN), EINVAL);
	CHECK_ERRNO(ctl(end.set, EPOLL_CTL_ADD, end.set, EPOLLIN), EINVAL);
	CHECK_ERRNO(ctl(end.set, 77, end.client, EPOLLIN), EINVAL);
	CHECK_ERRNO(ctl(-1, EPOLL_CTL_ADD, end.client, EPOLLIN), EBADF);
	CHECK_ERRNO(ctl(end.set, EPOLL_CTL_ADD, -1, EPOLLIN), EBADF);
	CHECK_ERRNO(ctl(end.set, EPOLL_CTL_ADD, end.client, exclusive | EPOLLONESHOT), EINVAL);
	CHECK_ERRNO(ctl(end.set, EPOLL_CTL_MOD, end.server, exclusive), EINVAL);
	CHECK_ERRNO(epoll_wait(end.set, &event, 0, 0), EINVAL);
	CHECK_ERRNO(epoll_wait(end.server, &event, 1, 0), EINVAL);
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, other, EPOLLIN));
	CHECK_ERRNO(ctl(other, EPOLL_CTL_ADD, end.set, EPOLLIN), ELOOP);
	CHECK(!ctl(end.set, EPOLL_CTL_DEL, end.server, 0));
	CHECK_ERRNO(ctl(end.set, EPOLL_CTL_DEL, end.server, 0), ENOENT);
	close(other);
	return true;
}

/* With a socket: a pipe, an event counter, a timer, signals. */
bool other_descriptors(void)
{
	struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	int pipes[2], counter = eventfd(0, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0), signals;
	struct signalfd_siginfo info;
	unsigned long long n = 1;
	sigset_t mask;

	CHECK(ends_open() && !pipe(pipes));
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &mask, NULL);
	signals = signalfd(-1, &mask, 0);
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, pipes[0], EPOLLIN));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, counter, EPOLLIN));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, timer, EPOLLIN));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, signals, EPOLLIN | EPOLLONESHOT));
	CHECK(quiet(end.set));
	CHECK(send(end.client, "a", 1, 0) == 1);
	CHECK(happens(end.set, end.server) == EPOLLIN && drain(end.server, 1));
	CHECK(write(pipes[1], "a", 1) == 1);
	CHECK(happens(end.set, pipes[0]) == EPOLLIN && read(pipes[0], &(char){ 0 }, 1) == 1);
	CHECK(write(counter, &n, sizeof(n)) == sizeof(n));
	CHECK(happens(end.set, counter) == EPOLLIN && read(counter, &n, sizeof(n)) == sizeof(n));
	CHECK(!timerfd_settime(timer, 0, &soon, NULL));
	CHECK(happens(end.set, timer) == EPOLLIN && read(timer, &n, sizeof(n)) == sizeof(n));
	CHECK(!kill(getpid(), SIGUSR1));
	CHECK(happens(end.set, signals) == EPOLLIN);
	CHECK(quiet(end.set));
	CHECK(read(signals, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR1);
	CHECK(!pthread_sigmask(SIG_UNBLOCK, &mask, NULL));
	for (int i = 0; i < 5; i++)
		close((int[]){ pipes[0], pipes[1], counter, timer, signals }[i]);
	return true;
}

bool closed_is_taken_out(void)
{
	int reused;

	CHECK(ends_open());
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN | EPOLLOUT));
	CHECK(happens(end.set, end.server) == EPOLLOUT);
	CHECK(!close(end.server));
	CHECK(quiet(end.set));
	reused = dup2(end.set, end.server);
	CHECK(reused == end.server);
	CHECK_ERRNO(ctl(end.set, EPOLL_CTL_DEL, reused, 0), EINVAL);
	return true;
}

/* A copy has its own place in a set, which stays while there is one of them. */
bool copies(void)
{
	struct epoll_event events[4];
	int copy, twice;

	CHECK(ends_open());
	copy = dup(end.server);
	CHECK(copy >= 0);
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, copy, EPOLLIN));
	CHECK(send(end.client, "a", 1, 0) == 1);
	CHECK(epoll_wait(end.set, events, 1, SOON_MS) == 1);
	CHECK(epoll_wait(end.set, events, 4, 0) == 2);
	CHECK(!ctl(end.set, EPOLL_CTL_DEL, end.server, 0));
	CHECK(happens(end.set, copy) == EPOLLIN);
	CHECK(drain(end.server, 1));
	CHECK(!close(end.server));
	end.server = -1;
	CHECK(send(end.client, "a", 1, 0) == 1);
	CHECK(happens(end.set, copy) == EPOLLIN);
	twice = dup2(copy, copy + 20);
	CHECK(twice == copy + 20);
	CHECK(!close(twice));
	CHECK(happens(end.set, copy) == EPOLLIN);
	CHECK(!close(copy));
	CHECK(quiet(end.set));
	return true;
}

bool nested(void)
{
	struct timeval none = { 0 };
	int outer = epoll_create1(0);
	struct pollfd p = { .fd = outer, .events = POLLIN };
	struct pollfd both[2] = { { .events = POLLIN }, { .events = POLLIN } };
	fd_set reads;

	CHECK(ends_open());
	CHECK(!ctl(outer, EPOLL_CTL_ADD, end.set, EPOLLIN));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN));
	CHECK(quiet(outer) && poll(&p, 1, NOT_MS) == 0);
	CHECK(send(end.client, "a", 1, 0) == 1);
	CHECK(happens(outer, end.set) == EPOLLIN);
	CHECK(poll(&p, 1, SOON_MS) == 1 && p.revents == POLLIN);
	/* a set and an rsocket */
	both[0].fd = end.client;
	both[1].fd = outer;
	CHECK(poll(both, 2, SOON_MS) == 1 && !both[0].revents && both[1].revents == POLLIN);
	FD_ZERO(&reads);
	FD_SET(end.set, &reads);
	CHECK(select(end.set + 1, &reads, NULL, NULL, &none) == 1);
	CHECK(happens(end.set, end.server) == EPOLLIN);
	CHECK(drain(end.server, 1));
	CHECK(quiet(outer) && poll(&p, 1, 0) == 0);
	close(outer);
	return true;
}

/* One socket in two sets: both get the event; with EPOLLEXCLUSIVE at least one does. */
bool several_sets(void)
{
	int other = epoll_create1(0);
	struct epoll_event event;

	CHECK(ends_open());
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN | EPOLLET));
	CHECK(!ctl(other, EPOLL_CTL_ADD, end.server, EPOLLIN));
	CHECK(send(end.client, "a", 1, 0) == 1);
	CHECK(happens(end.set, end.server) == EPOLLIN);
	CHECK(happens(other, end.server) == EPOLLIN);
	CHECK(drain(end.server, 1));
	CHECK(quiet(end.set) && quiet(other));
	CHECK(!ctl(end.set, EPOLL_CTL_DEL, end.server, 0));
	CHECK(!ctl(other, EPOLL_CTL_DEL, end.server, 0));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN | EPOLLEXCLUSIVE));
	CHECK(!ctl(other, EPOLL_CTL_ADD, end.server, EPOLLIN | EPOLLEXCLUSIVE));
	CHECK(send(end.client, "a", 1, 0) == 1);
	CHECK(epoll_wait(end.set, &event, 1, 1000) + epoll_wait(other, &event, 1, 1000) >= 1);
	close(other);
	return true;
}

/* ---- threads ---- */

static void *wait_for_one(void *of)
{
	struct epoll_event *event = of;

	return epoll_wait(end.set, event, 1, SOON_MS) == 1 ? of : NULL;
}

static bool is_asleep(void)
{
	return !usleep(50000);
}

bool added_while_waiting(void)
{
	struct epoll_event event = { 0 };
	pthread_t thread;
	void *got;

	CHECK(ends_open());
	CHECK(!pthread_create(&thread, NULL, wait_for_one, &event));
	CHECK(is_asleep());
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN));
	CHECK(is_asleep());
	CHECK(send(end.client, "a", 1, 0) == 1);
	CHECK(!pthread_join(thread, &got));
	CHECK(got && event.data.fd == end.server && event.events == EPOLLIN);
	return true;
}

enum { WAITERS = 4, TURNS = 200 };
static atomic_int turns;

/* Takes the reported data, one byte a turn, until the peer has closed. */
static void *take_turns(void *of)
{
	struct epoll_event event;
	char byte;

	while (epoll_wait(end.set, &event, 1, SOON_MS) == 1) {
		ssize_t n = recv(event.data.fd, &byte, 1, MSG_DONTWAIT);

		if (n == 0)
			return ctl(end.set, EPOLL_CTL_MOD, event.data.fd, EPOLLIN) ? NULL : of;
		if (n == 1)
			atomic_fetch_add(&turns, 1);
		if (ctl(end.set, EPOLL_CTL_MOD, event.data.fd, EPOLLIN | EPOLLONESHOT))
			return NULL;
	}
	return NULL;
}

bool threads_of_one_set(void)
{
	pthread_t threads[WAITERS];
	void *got;

	CHECK(ends_open());
	atomic_store(&turns, 0);
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN | EPOLLONESHOT));
	for (int i = 0; i < WAITERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, take_turns, &turns));
	for (int i = 0; i < TURNS; i++)
		CHECK(send(end.client, "a", 1, 0) == 1);
	CHECK(!shutdown(end.client, SHUT_WR));
	for (int i = 0; i < WAITERS; i++)
		CHECK(!pthread_join(threads[i], &got) && got);
	CHECK(atomic_load(&turns) == TURNS);
	return true;
}

/* Echoes all data, as an edge triggered loop does, until the peer has closed. */
static void *echo(void *of)
{
	int fd = *(int *)of, set = epoll_create1(0);
	struct epoll_event event;
	char bytes[64];
	ssize_t n = -1;

	if (ctl(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT | EPOLLET))
		return NULL;
	while (n && epoll_wait(set, &event, 1, SOON_MS) == 1)
		while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
			if (send(fd, bytes, (size_t)n, 0) != n)
				return NULL;
	close(set);
	return n ? NULL : of;
}

bool ping_pong(void)
{
	pthread_t thread;
	char byte;
	void *got;

	CHECK(ends_open() && nonblocking(end.server) && nonblocking(end.client));
	CHECK(!pthread_create(&thread, NULL, echo, &end.server));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.client, EPOLLIN | EPOLLET));
	for (int i = 0; i < 2000; i++) {
		CHECK(send(end.client, "a", 1, 0) == 1);
		CHECK(happens(end.set, end.client) == EPOLLIN);
		CHECK(recv(end.client, &byte, 1, 0) == 1);
		CHECK_ERRNO(recv(end.client, &byte, 1, 0), EAGAIN);
	}
	CHECK(!shutdown(end.client, SHUT_WR));
	CHECK(!pthread_join(thread, &got) && got);
	return true;
}

bool many(void)
{
	enum { MANY = 40 };
	int clients[MANY], servers[MANY];

	CHECK(ends_listen());
	for (int i = 0; i < MANY; i++) {
		CHECK(ends_connect(&clients[i], &servers[i]));
		CHECK(!ctl(end.set, EPOLL_CTL_ADD, servers[i], EPOLLIN | EPOLLRDHUP));
	}
	for (int i = 0; i < 5 * MANY; i++) {
		int n = i * 7 % MANY;

		CHECK(send(clients[n], "a", 1, 0) == 1);
		CHECK(happens(end.set, servers[n]) == EPOLLIN);
		CHECK(drain(servers[n], 1));
	}
	for (int i = 0; i < MANY; i++) {
		close(clients[i]);
		CHECK(happens(end.set, servers[i]) & EPOLLRDHUP);
		close(servers[i]);
	}
	CHECK(quiet(end.set));
	return true;
}

/* ---- time and signals ---- */

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

bool timeouts(void)
{
	struct timespec t = { .tv_nsec = 30500000 };
	struct epoll_event event;
	long long start;

	CHECK(ends_open());
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN));
	start = now_ms();
	CHECK(epoll_wait(end.set, &event, 1, 0) == 0);
	CHECK(now_ms() - start < 20);
	CHECK(epoll_wait(end.set, &event, 1, 40) == 0);
	CHECK(now_ms() - start >= 39);
	start = now_ms();
	CHECK(epoll_pwait2(end.set, &event, 1, &t, NULL) == 0);
	CHECK(now_ms() - start >= 29);
	CHECK(send(end.client, "a", 1, 0) == 1);
	CHECK(epoll_pwait2(end.set, &event, 1, NULL, NULL) == 1);
	return true;
}

static volatile sig_atomic_t signalled, signalled_fd;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)context;
	signalled = signal;
	signalled_fd = info->si_fd;
}

static bool catch(int signal)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	signalled = 0;
	return !sigaction(signal, &action, NULL);
}

/* Catches SIGUSR2 and blocks it: *blocked has only that signal, *none has no signal. */
static bool catch_blocked(sigset_t *blocked, sigset_t *none)
{
	sigemptyset(none);
	sigemptyset(blocked);
	sigaddset(blocked, SIGUSR2);
	return catch(SIGUSR2) && !pthread_sigmask(SIG_BLOCK, blocked, NULL);
}

/* A signal that is blocked but in the wait ends it. */
bool signal_masks(void)
{
	struct epoll_event event;
	sigset_t blocked, none;

	CHECK(ends_open() && catch_blocked(&blocked, &none));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN));
	CHECK(!kill(getpid(), SIGUSR2));
	CHECK(epoll_pwait(end.set, &event, 1, NOT_MS, &blocked) == 0 && !signalled);
	CHECK_ERRNO(epoll_pwait(end.set, &event, 1, SOON_MS, &none), EINTR);
	CHECK(signalled == SIGUSR2);
	CHECK(!pthread_sigmask(SIG_UNBLOCK, &blocked, NULL));
	return true;
}

/* Raises SIGUSR2, which is blocked, and waits with `mask` for one of both ends. */
static int poll_with_mask(bool selects, int ms, const sigset_t *mask)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000l };
	struct pollfd p = { .fd = end.server, .events = POLLIN };
	fd_set set;

	signalled = 0;
	FD_ZERO(&set);
	FD_SET(end.server, &set);
	pthread_kill(pthread_self(), SIGUSR2);
	return selects ? pselect(end.server + 1, &set, NULL, NULL, &t, mask) :
			 ppoll(&p, 1, &t, mask);
}

/* Pending signals: ppoll() and pselect() that find no event end with EINTR, also without a wait. */
bool signal_masks_of_poll(void)
{
	sigset_t blocked, none;

	CHECK(ends_open() && catch_blocked(&blocked, &none));
	for (int i = 0; i < 2; i++) {
		CHECK(poll_with_mask(i, NOT_MS, &blocked) == 0 && !signalled);
		CHECK_ERRNO(poll_with_mask(i, SOON_MS, &none), EINTR);
		CHECK(signalled == SIGUSR2);
		CHECK_ERRNO(poll_with_mask(i, 0, &none), EINTR);
		CHECK(signalled == SIGUSR2);
	}
	CHECK(send(end.client, "a", 1, 0) == 1);
	CHECK(poll(&(struct pollfd){ .fd = end.server, .events = POLLIN }, 1, SOON_MS) == 1);
	CHECK(poll_with_mask(false, SOON_MS, &none) == 1 && !signalled);
	CHECK(!pthread_sigmask(SIG_UNBLOCK, &blocked, NULL) && signalled == SIGUSR2);
	return true;
}

/* O_ASYNC: SIGIO, and another signal that carries the descriptor. */
bool sigio(void)
{
	struct f_owner_ex owner = { .type = F_OWNER_PID, .pid = getpid() }, told = { 0 };
	long long until;

	CHECK(ends_open() && catch(SIGIO) && catch(SIGRTMIN));
	CHECK(!fcntl(end.server, F_SETOWN, getpid()));
	CHECK(fcntl(end.server, F_GETOWN) == getpid());
	CHECK(!fcntl(end.server, F_SETFL, fcntl(end.server, F_GETFL) | O_ASYNC));
	CHECK(fcntl(end.server, F_GETFL) & O_ASYNC);
	CHECK(send(end.client, "a", 1, 0) == 1);
	for (until = now_ms() + SOON_MS; !signalled && now_ms() < until;)
		usleep(1000);
	CHECK(signalled == SIGIO);
	CHECK(drain(end.server, 1));
	CHECK(!fcntl(end.server, F_SETOWN_EX, &owner));
	CHECK(!fcntl(end.server, F_GETOWN_EX, &told) && told.pid == owner.pid);
	CHECK(!fcntl(end.server, F_SETSIG, SIGRTMIN));
	signalled = 0;
	CHECK(send(end.client, "a", 1, 0) == 1);
	for (until = now_ms() + SOON_MS; !signalled && now_ms() < until;)
		usleep(1000);
	CHECK(signalled == SIGRTMIN && signalled_fd == end.server);
	CHECK(!ioctl(end.server, FIOASYNC, &(int){ 0 }));
	CHECK(!(fcntl(end.server, F_GETFL) & O_ASYNC));
	usleep(20000);
	signalled = 0;
	CHECK(send(end.client, "a", 1, 0) == 1);
	usleep(NOT_MS * 1000);
	CHECK(!signalled);
	return true;
}

/* A child that holds copies does not keep what the parent closes in the parent's set. */
bool forked(void)
{
	int wakes[2];
	pid_t child;

	CHECK(ends_open() && !pipe(wakes));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.server, EPOLLIN));
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.client, EPOLLIN));
	child = fork();
	CHECK(child >= 0);
	if (!child)
		_exit(read(wakes[0], &(char){ 0 }, 1) != 1);
	CHECK(send(end.client, "a", 1, 0) == 1);
	CHECK(happens(end.set, end.server) == EPOLLIN);
	CHECK(drain(end.server, 1));
	CHECK(!ctl(end.set, EPOLL_CTL_DEL, end.client, 0));
	CHECK(!close(end.server));
	end.server = -1;
	CHECK(quiet(end.set));
	CHECK(write(wakes[1], "a", 1) == 1);
	CHECK(waitpid(child, &(int){ 0 }, 0) == child);
	close(wakes[0]);
	close(wakes[1]);
	return true;
}

/* So does a program that was started meanwhile, and never knew of sockets. */
bool started(void)
{
	char *const args[] = { "sleep", "60", NULL };
	pid_t child;

	CHECK(ends_open());
	CHECK(!ctl(end.set, EPOLL_CTL_ADD, end.client, EPOLLIN | EPOLLRDHUP));
	CHECK(!posix_spawnp(&child, args[0], NULL, NULL, args, NULL));
	CHECK(!close(end.client));
	end.client = -1;
	CHECK(quiet(end.set));
	CHECK(!kill(child, SIGKILL) && waitpid(child, &(int){ 0 }, 0) == child);
	return true;
}

/* ---- other calls of event loops ---- */

bool other_calls(void)
{
	struct iovec iov[2] = { { "ab", 2 }, { "cde", 3 } };
	struct mmsghdr msgs[2] = { { .msg_hdr = { .msg_iov = &iov[0], .msg_iovlen = 1 } },
				   { .msg_hdr = { .msg_iov = &iov[1], .msg_iovlen = 1 } } };
	char bytes[16] = "";
	FILE *file = tmpfile();
	struct stat stat;
	int n = 0;

	CHECK(ends_open() && file);
	CHECK(!fstat(end.server, &stat) && S_ISSOCK(stat.st_mode));
	CHECK(writev(end.client, iov, 2) == 5);
	CHECK(sendmmsg(end.client, msgs, 2, 0) == 2);
	CHECK(write(fileno(file), "0123456789", 10) == 10);
	CHECK(lseek(fileno(file), 2, SEEK_SET) == 2);
	CHECK(sendfile(end.client, fileno(file), NULL, 3) == 3);
	for (long long until = now_ms() + SOON_MS; n != 13 && now_ms() < until; usleep(1000))
		CHECK(!ioctl(end.server, FIONREAD, &n));
	CHECK(n == 13);
	CHECK(recv(end.server, bytes, 13, MSG_WAITALL) == 13 && !strcmp(bytes, "abcdeabcde234"));
	CHECK(!ioctl(end.server, FIONREAD, &n) && n == 0);
	CHECK(!ioctl(end.server, FIONBIO, &(int){ 1 }));
	CHECK(fcntl(end.server, F_GETFL) & O_NONBLOCK);
	CHECK_ERRNO(recv(end.server, bytes, 1, 0), EAGAIN);
	CHECK(!ioctl(end.server, FIONBIO, &(int){ 0 }));
	CHECK(!(fcntl(end.server, F_GETFL) & O_NONBLOCK));
	fclose(file);
	CHECK(!close_range((unsigned int)end.server, (unsigned int)end.server, 0));
	CHECK(recv(end.client, bytes, 1, 0) == 0);
	end.server = -1;
	return true;
}
