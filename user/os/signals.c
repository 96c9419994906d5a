/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_get_cq_event(), ibv_get_async_event() and rdma_get_cm_event() are system calls in rdma-core:
 * a signal ends them with EINTR unless its handler was installed with SA_RESTART (as by signal(3)).
 * Here they wait in poll(2), which every handler ends.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../engine/types.h"

#include "kernel.h"
#include "signals.h"
#include "thread.h"

/*
 * The signal is no longer known. It does not matter while all handlers of the process agree. If one
 * is without SA_RESTART, the wait ends, as a program that installs one relies on it.
 */
bool signals_restart(void)
{
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction action;

		if (sigaction(sig, NULL, &action) || action.sa_handler == SIG_DFL ||
		    action.sa_handler == SIG_IGN)
			continue;
		if (!(action.sa_flags & SA_RESTART))
			return false;
	}
	return true;
}

/* Descriptors for whose events the kernel sends signals; see signals.h. */

struct sigio {
	int in;		/* the program's descriptor is a copy of it, which it may have closed */
	int out;	/* data sent here is readable at `in` */
	pthread_t thread;
	pthread_mutex_t lock; /* guards the fields below; held while the thread sends */
	pthread_cond_t news;
	pthread_cond_t sent;
	u32 raised;	/* signals to send */
	bool cleared;	/* they leave nothing to read */
	bool ending;
};

bool sigio_is_asked(int fd)
{
	struct f_owner_ex owner;

	return !fcntl(fd, F_GETOWN_EX, &owner) && owner.pid;
}

/* Locked. Also in the program's threads, where recv(2) and send(2) are cancellation points. */
static void sigio_drain(struct sigio *s)
{
	char unread[256];

	while (syscall(SYS_recvfrom, s->in, unread, sizeof(unread), MSG_DONTWAIT, NULL, NULL) > 0)
		;
}

/* Locked. If the program never reads, the socket fills up: then this event replaces the others. */
static void sigio_send(struct sigio *s)
{
	const char event = 0;

	if (!kernel_send(s->out, &event, 1))
		return;
	sigio_drain(s);
	kernel_send(s->out, &event, 1);
}

static void *sigio_main(void *arg)
{
	struct sigio *s = arg;

	pthread_setname_np(pthread_self(), "xroce/sigio");
	pthread_mutex_lock(&s->lock);
	while (!s->ending) {
		if (!s->raised) {
			pthread_cond_wait(&s->news, &s->lock);
			continue;
		}
		s->raised--;
		sigio_send(s);
		if (s->raised)
			continue;
		if (s->cleared)
			sigio_drain(s);
		pthread_cond_broadcast(&s->sent);
	}
	pthread_cond_broadcast(&s->sent);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* A descriptor's settings that affect signals and waits. */
struct settings {
	int flags, signal;
	struct f_owner_ex owner;
};

static struct settings settings_of(int fd)
{
	struct settings a = { .flags = fcntl(fd, F_GETFL), .signal = fcntl(fd, F_GETSIG) };

	fcntl(fd, F_GETOWN_EX, &a.owner);
	return a;
}

/* Applies changed settings, with one call each, as the program may change the others. */
static void settings_apply(int fd, const struct settings *before, const struct settings *a)
{
	const int nonblock = !!(a->flags & O_NONBLOCK);

	if (a->signal != before->signal)
		fcntl(fd, F_SETSIG, a->signal);
	if (a->owner.type != before->owner.type || a->owner.pid != before->owner.pid)
		fcntl(fd, F_SETOWN_EX, &a->owner);
	if ((a->flags ^ before->flags) & O_NONBLOCK)
		ioctl(fd, FIONBIO, &nonblock);
}

/*
 * The program may change settings at the same time: on the old file until dup3(), after which they
 * are read again, and on the new file from then on.
 */
static int sigio_replace(const struct sigio *s, int fd, int kept)
{
	const struct settings none = { 0 }, first = settings_of(kept);
	const int on = 1, stays = fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
	struct settings last;

	settings_apply(s->in, &none, &first);
	if (dup3(s->in, fd, stays) < 0)
		return -errno;
	last = settings_of(kept);
	settings_apply(fd, &first, &last);
	/* on the program's number, which is the signal's si_fd */
	ioctl(fd, FIOASYNC, &on);
	return 0;
}

static void sigio_free(struct sigio *s)
{
	kernel_close(s->in);
	kernel_close(s->out);
	free(s);
}

struct sigio *sigio_start(int fd, int kept)
{
	struct sigio *s = calloc(1, sizeof(*s));
	int pair[2];

	if (!s || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		free(s);
		return NULL;
	}
	s->in = pair[0];
	s->out = pair[1];
	/*
	 * Readable from the start: the old file wakes threads in poll(2), which then poll the new
	 * file under this number, and would sleep on otherwise.
	 */
	sigio_send(s);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->news, NULL);
	pthread_cond_init(&s->sent, NULL);
	if (thread_start(&s->thread, sigio_main, s)) {
		sigio_free(s);
		return NULL;
	}
	if (sigio_replace(s, fd, kept)) {
		sigio_stop(s);
		return NULL;
	}
	return s;
}

void sigio_raise(struct sigio *s)
{
	pthread_mutex_lock(&s->lock);
	s->raised++;
	s->cleared = false;
	pthread_cond_signal(&s->news);
	pthread_mutex_unlock(&s->lock);
}

void sigio_clear(struct sigio *s)
{
	pthread_mutex_lock(&s->lock);
	s->cleared = true;
	sigio_drain(s);
	pthread_mutex_unlock(&s->lock);
}

void sigio_settle(struct sigio *s)
{
	int cancel;

	if (!s)
		return;
	cancel = thread_disable_cancel();
	pthread_mutex_lock(&s->lock);
	while (s->raised && s->cleared && !s->ending)
		pthread_cond_wait(&s->sent, &s->lock);
	pthread_mutex_unlock(&s->lock);
	thread_restore_cancel(cancel);
}

void sigio_stop(struct sigio *s)
{
	const int cancel = thread_disable_cancel();

	pthread_mutex_lock(&s->lock);
	s->ending = true;
	pthread_cond_signal(&s->news);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	thread_restore_cancel(cancel);
	pthread_cond_destroy(&s->news);
	pthread_cond_destroy(&s->sent);
	pthread_mutex_destroy(&s->lock);
	/* otherwise the end of the pair would be an event */
	fcntl(s->in, F_SETFL, 0);
	sigio_free(s);
}

void sigio_abandon(struct sigio *s)
{
	sigio_free(s);
}
