/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions that glibc has had since 2.30 and 2.33, made of those of 2.28. Part of each object of
 * the portable build, and exported by none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* On 64-bit machines struct stat64 is the same. */
struct stat;

int __xstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __xmknod(int version, const char *path, mode_t mode, dev_t *dev);

/* The version of struct stat and of mknod's device that the kernel has. */
#ifdef __x86_64__
enum { STAT_VERSION = 1, MKNOD_VERSION = 0 };
#else
enum { STAT_VERSION = 0, MKNOD_VERSION = 0 };
#endif

int stat(const char *path, struct stat *st);
int lstat(const char *path, struct stat *st);
int fstat(int fd, struct stat *st);
int fstatat(int dir, const char *path, struct stat *st, int flags);
int stat64(const char *path, struct stat *st) __attribute__((alias("stat")));
int lstat64(const char *path, struct stat *st) __attribute__((alias("lstat")));
int fstat64(int fd, struct stat *st) __attribute__((alias("fstat")));
int fstatat64(int dir, const char *path, struct stat *st, int flags)
	__attribute__((alias("fstatat")));
int mknod(const char *path, mode_t mode, dev_t dev);

int stat(const char *path, struct stat *st)
{
	return __xstat(STAT_VERSION, path, st);
}

int lstat(const char *path, struct stat *st)
{
	return __lxstat(STAT_VERSION, path, st);
}

int fstat(int fd, struct stat *st)
{
	return __fxstat(STAT_VERSION, fd, st);
}

int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return __fxstatat(STAT_VERSION, dir, path, st, flags);
}

int mknod(const char *path, mode_t mode, dev_t dev)
{
	return __xmknod(MKNOD_VERSION, path, mode, &dev);
}

pid_t gettid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/*
 * Waits by the real-time clock in slices: if that clock is set, a wait ends at most a slice late.
 * Sets *slice to its end. Returns false if `until` of the given clock is over.
 */
#define SLICE_NS 100000000LL
#define SECOND_NS 1000000000LL

static long long ns_of(const struct timespec *t)
{
	return t->tv_sec * SECOND_NS + t->tv_nsec;
}

static int next_slice(clockid_t clock, const struct timespec *until, struct timespec *slice)
{
	struct timespec now;
	long long left;

	clock_gettime(clock, &now);
	left = ns_of(until) - ns_of(&now);
	clock_gettime(CLOCK_REALTIME, slice);
	if (left > SLICE_NS)
		left = SLICE_NS;
	if (left > 0) {
		slice->tv_nsec += left;
		slice->tv_sec += slice->tv_nsec / SECOND_NS;
		slice->tv_nsec %= SECOND_NS;
	}
	return left > 0;
}

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
	struct timespec slice;
	int more, err;

	do {
		more = next_slice(clock, until, &slice);
		err = pthread_mutex_timedlock(mutex, &slice);
	} while (err == ETIMEDOUT && more);
	return err;
}

/* A slice that ends early is a spurious wake-up, which callers expect. */
int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			   const struct timespec *until)
{
	struct timespec slice;
	const int more = next_slice(clock, until, &slice);
	const int err = pthread_cond_timedwait(cond, mutex, &slice);

	return err == ETIMEDOUT && more ? 0 : err;
}
