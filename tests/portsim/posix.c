/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Locks, threads and freed memory of the simulated machine. The linker (--wrap) substitutes them
 * for the C library's in all code of the simulator.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

/* What the wrapped names stand for. */
int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_join(pthread_t t, void **out);
int __wrap_pthread_setname_np(pthread_t t, const char *name);
int __wrap_pthread_setaffinity_np(pthread_t t, size_t n, const cpu_set_t *set);
void __wrap___pthread_register_cancel(void *buf);
void __wrap___pthread_unregister_cancel(void *buf);
void __wrap_free(void *memory);
void __real_free(void *memory);

/*
 * The address that malloc() returns depends on earlier runs. No access to it may be on record, or
 * the seed would not repeat a run.
 */
void __wrap_free(void *memory)
{
	if (memory)
		sched_forget(memory, malloc_usable_size(memory));
	__real_free(memory);
}

/* ---- locks: the owner's number + 1 lies in the mutex ---- */

/* by the number of the actor that waits for it */
static const void *awaited[ACTORS_MAX];

static u32 *owner_of(pthread_mutex_t *m)
{
	return (u32 *)m;
}

int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	memset(m, 0, sizeof(*m));
	return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *m)
{
	if (*owner_of(m))
		sched_fail("a lock is destroyed that is held");
	memset(m, 0xa5, sizeof(*m));
	return 0;
}

static u32 my_number(void)
{
	return sched_self() ? sched_number(sched_self()) + 1 : UINT32_MAX;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *m)
{
	sched_point("trylock");
	sched_drain();
	if (*owner_of(m))
		return EBUSY;
	*owner_of(m) = my_number();
	return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	sched_point("lock");
	sched_drain();
	while (*owner_of(m)) {
		if (*owner_of(m) == my_number())
			sched_fail("a lock is taken that the caller holds");
		awaited[sched_number(sched_self())] = m;
		sched_block("lock", NSEC_NEVER);
		awaited[sched_number(sched_self())] = NULL;
	}
	*owner_of(m) = my_number();
	return 0;
}

static void wake_for_mutex(struct actor *a, void *m)
{
	if (awaited[sched_number(a)] == m)
		sched_wake(a, 0);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
	sched_drain();
	if (*owner_of(m) != my_number())
		sched_fail("a lock is let go of that the caller does not hold");
	*owner_of(m) = 0;
	sched_each(wake_for_mutex, m);
	sched_point("unlock");
	return 0;
}

/* ---- threads ---- */

struct thread {
	void *(*fn)(void *arg);
	void *arg;
	struct actor *actor;
};

static void thread_main(void *arg)
{
	struct thread *t = arg;

	t->fn(t->arg);
}

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	static const char *const names[] = { "service 0", "service 1", "service 2", "service 3",
					     "service 4", "service 5", "service 6", "service 7" };
	static u32 next;
	struct thread *t = malloc(sizeof(*t));

	sim_check(t);
	if (sched_points() < 100)
		next = 0;
	*t = (struct thread){ fn, arg, NULL };
	t->actor = sched_spawn(names[next++ % 8], thread_main, t);
	*out = (pthread_t)t;
	sched_point("pthread_create");
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **out)
{
	struct thread *t = (struct thread *)thread;

	sched_join(t->actor);
	free(t);
	return 0;
}

int __wrap_pthread_setname_np(pthread_t t, const char *name)
{
	return 0;
}

int __wrap_pthread_setaffinity_np(pthread_t t, size_t n, const cpu_set_t *set)
{
	return 0;
}

/* No thread is cancelled here; pthread_cleanup_push() uses these. */
void __wrap___pthread_register_cancel(void *buf)
{
}

void __wrap___pthread_unregister_cancel(void *buf)
{
}
