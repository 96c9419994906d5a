/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Watches interfaces: a thread of the process gets the kernel's notifications about watched
 * interfaces, and calls back. It sleeps while nothing changes, and changes nothing on any
 * interface.
 */
#ifndef OS_LINK_WATCH_H
#define OS_LINK_WATCH_H

#include "netdev.h"

struct link_watch;

/*
 * Called with the state before a change (NULL at the first call) and after it (NULL if the
 * interface is gone, at the last call). One call at a time in the whole process. It may take the
 * port's lock, and must not start or stop a watch.
 */
typedef void link_watch_fn(void *arg, const struct netdev *before, const struct netdev *now);

/*
 * Watches dev's interface, in the calling thread's network namespace. Calls fn once before it
 * returns, with the current state, and after each change. Urgent watches of an interface are called
 * before others. Returns 0, -ENODEV or -errno; in case of an error fn was not called.
 */
int link_watch_start(const struct netdev *dev, bool urgent, link_watch_fn *fn, void *arg,
		     struct link_watch **out);
/*
 * Binds the watch to the other end of a socket: its hang-up causes the last call, as if the
 * interface were gone; watches with the same socket are called in their order. The socket is not
 * read, and must stay open until the watch is stopped. Returns 0 or -errno. Once a watch; not from
 * fn.
 */
int link_watch_until_hangup(struct link_watch *watch, int fd);
/*
 * One more descriptor for the thread of an interface's watches. fn is called while it is readable,
 * or only when the other end has hung up, if others read it. fn may replace the descriptor and set
 * when to resume.
 */
struct link_watch_input {
	void (*fn)(void *arg);
	void *arg;
	int fd;		/* -1: none */
	bool until_hangup;
	u64 resume_ns;	/* ignored before that time; 0: no pause */
};

/*
 * Adds an input to a watch until it is stopped; once. Its calls never run concurrently with the
 * watch's fn, and have the same restrictions. Returns 0 or -errno.
 */
int link_watch_also(struct link_watch *watch, struct link_watch_input *input);
/* Replaces the input by *next; only from its fn. Returns 0, or -errno without an input any more. */
int link_watch_input_change(struct link_watch *watch, const struct link_watch_input *next);
/* After it returns, fn is not running and is not called again. NULL is allowed. */
void link_watch_stop(struct link_watch *watch);

/*
 * Work that may wait for the kernel, such as a netlink request, for callers that must not wait. The
 * thread of the network namespace in which the job was started runs it on request.
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
 * Requests one run of fn; requests before it add nothing. Never waits; any thread, any lock held.
 */
void link_watch_job_ask(struct link_watch_job *job);
/* After it returns, fn is not running and does not run again. Ignores an unstarted job. */
void link_watch_job_stop(struct link_watch_job *job);

/*
 * Handlers for pthread_atfork(), called by port/, which orders the locks. In the child there is no
 * watch thread, and the parent's watches do not exist.
 */
void link_watch_before_fork(void);
void link_watch_after_fork_parent(void);
void link_watch_after_fork_child(void);

#endif
