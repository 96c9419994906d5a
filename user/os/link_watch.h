/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Following interfaces: a thread of the process hears from the kernel what changes on those that
 * somebody watches, and calls back. It sleeps while nothing changes. Nothing is changed on any
 * interface.
 */
#ifndef OS_LINK_WATCH_H
#define OS_LINK_WATCH_H

#include "netdev.h"

struct link_watch;

/*
 * The interface was as before says (NULL at the first call) and is now as now says (NULL: it has
 * gone; that is the last call). One call at a time in the whole process; it may take the port's
 * lock, and must not start or stop a watch.
 */
typedef void link_watch_fn(void *arg, const struct netdev *before, const struct netdev *now);

/*
 * Watch dev's interface, in the calling thread's network namespace. fn is called once before this
 * returns, with what the interface is then, and after each change. Of several watches of an
 * interface the urgent ones are called before the others. Returns 0, -ENODEV or -errno; fn was not
 * called then.
 */
int link_watch_start(const struct netdev *dev, bool urgent, link_watch_fn *fn, void *arg,
		     struct link_watch **out);
/*
 * The interface is this process's for as long as the other end of that socket lives: when it hangs
 * up, the watch's last call comes as if the interface had gone, of several watches that were given
 * the same socket in their order. It is not read from, and is kept open until the watch is stopped.
 * Returns 0 or -errno. Once a watch; not from fn.
 */
int link_watch_until_hangup(struct link_watch *watch, int fd);
/*
 * One more descriptor that the thread of an interface's watches sleeps on. fn is called while it is
 * readable, or only when the other end has hung up: what is written to it is for others to read
 * then. It may change which descriptor that is, and when it is slept on next.
 */
struct link_watch_input {
	void (*fn)(void *arg);
	void *arg;
	int fd;		/* -1: none */
	bool until_hangup;
	u64 resume_ns;	/* not before that; 0: now */
};

/*
 * Of a watch, until that is stopped; once. Its calls come as those of the watch's fn, with which
 * they take turns, and are bound to the same. Returns 0 or -errno.
 */
int link_watch_also(struct link_watch *watch, struct link_watch_input *input);
/* From its fn: it is as next says from here on. Returns 0 or -errno: then there is none. */
int link_watch_input_change(struct link_watch *watch, const struct link_watch_input *next);
/* fn is not running when this returns, and is not called again. NULL is allowed. */
void link_watch_stop(struct link_watch *watch);

/*
 * Work that may wait for the kernel, such as a netlink request, for callers that must not: the
 * thread of the network namespace in which the job was started does it when it is asked to.
 */
struct link_watch_job {
	struct link_watch_job *next;
	struct watcher *watcher;
	void (*fn)(void *arg);
	void *arg;
	_Atomic bool asked;
};

/* Returns 0 or -errno. fn must not start or stop watches and jobs, and takes no lock of a port. */
int link_watch_job_start(struct link_watch_job *job, void (*fn)(void *arg), void *arg);
/*
 * fn runs once after this. Never waits; any thread, under any lock. Asking again before that adds
 * nothing.
 */
void link_watch_job_ask(struct link_watch_job *job);
/*
 * fn is not running when this returns, and does not run again. A job that was not started is
 * ignored.
 */
void link_watch_job_stop(struct link_watch_job *job);

/*
 * For pthread_atfork(), by the one caller who knows which locks come before and behind (port/).
 * link_watch_after_fork_child(): there is no thread, and what the parent watches is not the
 * child's.
 */
void link_watch_before_fork(void);
void link_watch_after_fork_parent(void);
void link_watch_after_fork_child(void);

#endif
