/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of the program's descriptors and their entries. Entries are reused and never freed: a
 * thread may read one while another closes it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "../rsocket/xroce_rsocket.h"
#include "preload.h"

enum { ENTRIES = 1 << 16 };

static struct entry *_Atomic table[ENTRIES];
static pid_t process; /* the process that owns the table */
static int numbers; /* one more than the highest number that ever had an entry; under the lock */
static struct entry *unused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct real_calls calls;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void real_find(void)
{
#define REAL_FIND(type, name, arguments) calls.name = (type(*) arguments)dlsym(RTLD_NEXT, #name);
	REAL_CALLS(REAL_FIND)
#undef REAL_FIND
}

const struct real_calls *real_calls(void)
{
	pthread_once(&once, real_find);
	return &calls;
}

struct entry *entry_of(int fd)
{
	/* acquire: pairs with the release of an entry that was filled in */
	return fd >= 0 && fd < ENTRIES ?
		       atomic_load_explicit(&table[fd], memory_order_acquire) : NULL;
}

/* A signal handler that uses the entry meanwhile gets an error from the lock. */
static void entry_init_settling(struct entry *entry)
{
	entry->settling = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
}

/* Caller holds the lock. */
static struct entry *entry_get(void)
{
	struct entry *entry = unused;

	if (entry) {
		unused = entry->free;
		return entry;
	}
	entry = calloc(1, sizeof(*entry));
	if (entry)
		entry_init_settling(entry);
	return entry;
}

/* Caller holds the lock. */
static void entry_number(int number, struct entry *entry)
{
	if (number >= numbers)
		numbers = number + 1;
	/* release: pairs with the acquire in entry_of() */
	atomic_store_explicit(&table[number], entry, memory_order_release);
}

/*
 * In a forked child the parent's rsockets are closed, and /dev/null replaces their descriptors: a
 * copy of the stand-in would stay in the parent's epoll sets after the parent closes it.
 */
static void entries_forked(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), number, flags;
	struct entry *entry;

	process = getpid();
	pthread_mutex_init(&lock, NULL);
	watches_forked();
	for (entry = unused; entry; entry = entry->free)
		entry_init_settling(entry);
	for (number = 0; number < numbers; number++) {
		entry = entry_of(number);
		if (!entry)
			continue;
		entry_init_settling(entry);
		/* The epoll sets are shared with the parent: nothing is removed from them here. */
		entry->watches = NULL;
		if (entry->kind != ENTRY_RSOCKET)
			continue;
		entry->inherited = true;
		flags = real.fcntl(number, F_GETFD);
		if (null >= 0 && flags >= 0)
			real.dup3(null, number, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
	}
	if (null >= 0)
		real.close(null);
}

static void entries_once(void)
{
	process = getpid();
	pthread_atfork(NULL, NULL, entries_forked);
}

struct entry *entry_owned(int fd)
{
	struct entry *entry = entry_of(fd);

	return entry && getpid() == process ? entry : NULL;
}

/* Returns a new descriptor of the program, or -1 and errno. */
static int stand_in(int fd, enum entry_kind kind)
{
	return kind == ENTRY_RSOCKET ? xroce_rsocket_stand_in(fd) : real.dup(fd);
}

static int close_either(int fd, enum entry_kind kind)
{
	return kind == ENTRY_RSOCKET ? rclose(fd) : real.close(fd);
}

int entry_open(int fd, enum entry_kind kind)
{
	static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
	int number = stand_in(fd, kind), saved;
	struct entry *entry = NULL;

	pthread_once(&fork_once, entries_once);
	if (number >= ENTRIES) {
		real.close(number);
		number = -1;
		errno = EMFILE;
	}
	if (number >= 0) {
		pthread_mutex_lock(&lock);
		entry = entry_get();
		if (entry) {
			entry->kind = kind;
			entry->fd = fd;
			entry->left = -1;
			entry->references = 1;
			entry->inherited = false;
			entry->bound = false;
			entry->watches = NULL;
			entry_number(number, entry);
		}
		pthread_mutex_unlock(&lock);
	}
	if (entry)
		return number;
	saved = errno;
	if (number >= 0)
		real.close(number);
	close_either(fd, kind);
	errno = saved;
	return -1;
}

void entry_share(int fd, struct entry *entry)
{
	if (fd >= ENTRIES)
		return;
	pthread_mutex_lock(&lock);
	entry->references++;
	entry_number(fd, entry);
	pthread_mutex_unlock(&lock);
}

/* Closes the rsocket or socket of an entry. */
static int entry_end(struct entry *entry)
{
	int ret, saved;

	watches_end(entry);
	ret = close_either(entry->fd, entry->kind);
	saved = errno;
	if (entry->left >= 0)
		rclose(entry->left);
	pthread_mutex_lock(&lock);
	entry->free = unused;
	unused = entry;
	pthread_mutex_unlock(&lock);
	errno = saved;
	return ret;
}

int entry_close(int fd)
{
	struct entry *entry;
	bool last = false;

	pthread_mutex_lock(&lock);
	entry = table[fd];
	table[fd] = NULL;
	if (entry)
		last = --entry->references == 0;
	pthread_mutex_unlock(&lock);
	return last ? entry_end(entry) : 0;
}

void entry_become(struct entry *entry, int fd, enum entry_kind kind)
{
	int copy, number, flags;

	watches_check(entry);
	copy = stand_in(fd, kind);
	pthread_mutex_lock(&lock);
	/* Calls that already have the old descriptor get EBADF or ENOTSOCK. */
	atomic_store(&entry->fd, fd);
	atomic_store(&entry->kind, kind);
	for (number = 0; copy >= 0 && number < numbers; number++) {
		if (table[number] != entry)
			continue;
		flags = real.fcntl(number, F_GETFD);
		real.dup3(copy, number, flags > 0 && (flags & FD_CLOEXEC) ? O_CLOEXEC : 0);
	}
	pthread_mutex_unlock(&lock);
	if (copy >= 0)
		real.close(copy);
	watches_restore(entry);
}

void entry_say_inherited(int fd)
{
	say_once(SAY_FORK,
		 "cannot use descriptor %d: it is an rsocket of the parent process, and rsockets "
		 "do not survive fork(); set RDMAV_FORK_SAFE=1 for the server and for its "
		 "clients", fd);
}

int entry_watch(int fd, struct entry *entry)
{
	if (entry->inherited)
		entry_say_inherited(fd);
	return entry->kind == ENTRY_RSOCKET ? xroce_rsocket_watch(entry->fd) : 0;
}

void entry_close_range(unsigned int first, unsigned int last)
{
	unsigned int number;

	for (number = first; number <= last && number < ENTRIES; number++) {
		if (!entry_owned((int)number))
			continue;
		entry_close((int)number);
		real.close((int)number);
	}
}

/* ---- options ---- */

/* The values are numbers, but for two times and SO_LINGER. */
static const struct {
	int level, name;
	socklen_t bytes;
} options[] = {
	{ SOL_SOCKET, SO_REUSEADDR, sizeof(int) },
	{ SOL_SOCKET, SO_OOBINLINE, sizeof(int) },
	{ SOL_SOCKET, SO_LINGER, sizeof(struct linger) },
	{ SOL_SOCKET, SO_RCVTIMEO, sizeof(struct timeval) },
	{ SOL_SOCKET, SO_SNDTIMEO, sizeof(struct timeval) },
	{ IPPROTO_IP, IP_TOS, sizeof(int) },
	{ IPPROTO_IPV6, IPV6_V6ONLY, sizeof(int) },
	{ IPPROTO_TCP, TCP_NODELAY, sizeof(int) },
	{ IPPROTO_TCP, TCP_KEEPIDLE, sizeof(int) },
	{ SOL_SOCKET, SO_KEEPALIVE, sizeof(int) },
};

void options_copy(int from, int (*get)(int, int, int, void *, socklen_t *), int to,
		  int (*set)(int, int, int, const void *, socklen_t))
{
	static const char zero[sizeof(struct timeval)];
	char value[sizeof(struct timeval)];
	size_t i;

	_Static_assert(sizeof(struct timeval) >= sizeof(struct linger), "the longest value");
	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		socklen_t n = options[i].bytes;

		if (!get(from, options[i].level, options[i].name, value, &n) &&
		    memcmp(value, zero, n))
			set(to, options[i].level, options[i].name, value, n);
	}
}

/* ---- fork ---- */

/*
 * Programs that fork between accept() and the first byte. An RDMA connection belongs to the process
 * that created it. So the first process that sends or receives creates it; until then both sides
 * use a TCP connection.
 *
 * The accepting side listens with an rsocket on the port of the TCP connection, and announces that
 * by four bytes of 0 on it. The connecting side waits for the bytes and connects there. Only one
 * process can listen on a port at a time: others retry.
 */

enum { WAIT_MS = 30000, AGAIN_MS = 10, CLOSED_MS = 5000 };

/* Copies flags and options from a kernel socket to its rsocket. */
static void fork_copy_options(int kernel, int rsocket)
{
	int flags = real.fcntl(kernel, F_GETFL);

	if (flags > 0 && (flags & O_NONBLOCK))
		rfcntl(rsocket, F_SETFL, flags);
	options_copy(kernel, real.getsockopt, rsocket, rsetsockopt);
}

/* Waits for the announcement, and takes it from the stream; other data stays there. */
static bool fork_is_announced(int kernel)
{
	struct pollfd ready = { .fd = kernel, .events = POLLIN };
	const int peek = MSG_PEEK | MSG_WAITALL;
	uint32_t said = 1;
	const ssize_t n = sizeof(said);

	return real.poll(&ready, 1, WAIT_MS) == 1 &&
	       real.recvfrom(kernel, &said, sizeof(said), peek, NULL, NULL) == n && !said &&
	       real.recvfrom(kernel, &said, sizeof(said), 0, NULL, NULL) == n;
}

static int fork_connect(int kernel)
{
	struct sockaddr_storage peer;
	socklen_t n = sizeof(peer);
	int fd;

	if (!fork_is_announced(kernel) || real.getpeername(kernel, (struct sockaddr *)&peer, &n))
		return -1;
	fd = rsocket(peer.ss_family, SOCK_STREAM, 0);
	if (fd < 0)
		return -1;
	config_apply(fd);
	if (!rconnect(fd, (struct sockaddr *)&peer, n))
		return fd;
	rclose(fd);
	return -1;
}

/*
 * Listens on the TCP connection's local port; retries while another process or thread of this
 * program does.
 */
static int fork_listen(int kernel)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} own;
	socklen_t n = sizeof(own);
	bool is_used;
	int fd, tries;

	if (real.getsockname(kernel, &own.any, &n))
		return -1;
	if (own.any.sa_family == AF_INET6)
		own.v6.sin6_addr = in6addr_any;
	else
		own.v4.sin_addr.s_addr = INADDR_ANY;
	for (tries = 0; tries < WAIT_MS / AGAIN_MS; tries++) {
		fd = rsocket(own.any.sa_family, SOCK_STREAM, 0);
		if (fd < 0)
			return -1;
		config_apply(fd);
		if (!rbind(fd, &own.any, n) && !rlisten(fd, 1))
			return fd;
		/* the second one: by another connection of this process */
		is_used = errno == EADDRINUSE || errno == EADDRNOTAVAIL;
		rclose(fd);
		if (!is_used)
			return -1;
		real.poll(NULL, 0, AGAIN_MS);
	}
	return -1;
}

static bool fork_has_data(int kernel)
{
	char byte;

	return real.recvfrom(kernel, &byte, 1, MSG_PEEK | MSG_DONTWAIT, NULL, NULL) == 1;
}

/*
 * Data on the TCP connection means that the peer uses it. Otherwise the peer closes it after it
 * connected. The close may be seen before the new connection, whose third handshake message may
 * also be lost: wait for it a little longer.
 */
static bool fork_is_asked(int listener, int kernel)
{
	struct pollfd fds[2] = {
		{ .fd = listener, .events = POLLIN },
		{ .fd = kernel, .events = POLLIN | POLLRDHUP },
	};

	if (rpoll(fds, 2, WAIT_MS) <= 0)
		return false;
	if (fds[0].revents & POLLIN)
		return true;
	return !fork_has_data(kernel) && rpoll(fds, 1, CLOSED_MS) > 0;
}

static int fork_accept(int kernel)
{
	int listener = fork_listen(kernel), fd = -1;
	uint32_t said = 0;

	if (listener < 0)
		return -1;
	if (real.write(kernel, &said, sizeof(said)) == sizeof(said) &&
	    fork_is_asked(listener, kernel))
		fd = raccept(listener, NULL, NULL);
	rclose(listener);
	return fd;
}

static bool fork_is_unsettled(const struct entry *entry)
{
	return entry->kind == ENTRY_FORK_ACTIVE || entry->kind == ENTRY_FORK_PASSIVE;
}

/* Caller holds the entry's lock. */
static void fork_settle_locked(struct entry *entry)
{
	int kernel = entry->fd, kind = entry->kind, fd;

	if (!fork_is_unsettled(entry))
		return;
	fd = kind == ENTRY_FORK_ACTIVE ? fork_connect(kernel) : fork_accept(kernel);
	if (fd < 0) {
		entry->kind = ENTRY_KERNEL;
		return;
	}
	fork_copy_options(kernel, fd);
	entry_become(entry, fd, ENTRY_RSOCKET);
	real.shutdown(kernel, SHUT_RDWR);
	real.close(kernel);
}

static void fork_settled(void *of)
{
	struct entry *entry = of;

	pthread_mutex_unlock(&entry->settling);
}

/* The first thread settles the entry, others wait for it. Cancelling the thread frees the lock. */
void fork_settle(struct entry *entry)
{
	if (!fork_is_unsettled(entry) || pthread_mutex_lock(&entry->settling))
		return;
	pthread_cleanup_push(fork_settled, entry);
	fork_settle_locked(entry);
	pthread_cleanup_pop(1);
}
