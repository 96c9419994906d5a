/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which process holds an interface. The holder listens on an abstract Unix socket named after the
 * interface: the name belongs to the network namespace, as the interface does, is taken by one
 * process at a time, and is gone with it, however it ends.
 *
 * Any user can bind that name first, or fill the queue of the socket behind it. So only a holder
 * that is root or the asking user counts as one; who else holds the interface is the XDP hook's to
 * say, which takes privileges.
 *
 * A holder that lets nobody else in holds a second name, which says so: whoever finds neither that
 * nor a socket to ask at has come while a holder begins or ends.
 */
#define _GNU_SOURCE /* struct ucred */
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "process.h"
#include "netdev.h"

#define HOLDER_NAME "xroce/%u"
#define ALONE_NAME  "xroce/%u/alone"

/* For a holder that has its name and does not listen yet: it is about to. */
#define LISTENS_MS 500

static socklen_t holder_address(const char *name, u32 ifindex, struct sockaddr_un *sun)
{
	int n;

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	n = snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1, name, ifindex);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int holder_socket(void)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* Returns a descriptor or -errno; -EADDRINUSE: another has it. */
static int holder_bind(const char *name, u32 ifindex)
{
	struct sockaddr_un sun;
	const socklen_t len = holder_address(name, ifindex, &sun);
	int fd = holder_socket(), err;

	if (fd < 0)
		return fd;
	/*
	 * Nobody accepts: the credentials are all that is asked for. What is left in the queue is
	 * bounded by its length.
	 */
	if (bind(fd, (struct sockaddr *)&sun, len) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/*
 * Returns a connection and the credentials of the last caller of listen(); -ENOENT: nobody listens;
 * -EAGAIN: its queue is full, so there is one, but it cannot be asked; or -errno.
 */
static int holder_connect(const char *name, u32 ifindex, struct ucred *cred)
{
	struct sockaddr_un sun;
	const socklen_t len = holder_address(name, ifindex, &sun);
	socklen_t cred_len = sizeof(*cred);
	int fd = holder_socket(), err;

	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&sun, len) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, cred, &cred_len) == 0)
		return fd;
	err = errno == ECONNREFUSED ? -ENOENT : -errno;
	close(fd);
	return err;
}

/*
 * Of another user it proves nothing. Root has no number in most user namespaces, and as little has
 * anyone else: there such a user is taken for root, of whom the worst is a vain wait, as nothing in
 * a user namespace has an interface for itself.
 */
static bool holder_counts(const struct ucred *cred)
{
	return cred->uid == 0 || cred->uid == geteuid() || process_is_outside_uid(cred->uid);
}

/* The holder as a process that wants the interface sees it: a connection or -errno, as above. */
static int holder_of(const char *name, u32 ifindex)
{
	struct ucred cred = { 0 };
	const int fd = holder_connect(name, ifindex, &cred);

	if (fd < 0 || holder_counts(&cred))
		return fd;
	close(fd);
	return -EPERM;
}

/*
 * Between a holder's bind() and its listen(), and when it ends between our bind() and connect(),
 * nobody listens: neither says that the name is another user's.
 */
int netdev_hold(u32 ifindex)
{
	int fd, other;

	for (u32 ms = 0;; ms++) {
		fd = holder_bind(HOLDER_NAME, ifindex);
		if (fd != -EADDRINUSE)
			return fd;
		other = holder_of(HOLDER_NAME, ifindex);
		if (other >= 0) {
			close(other);
			return -EBUSY;
		}
		if (other != -ENOENT || ms == LISTENS_MS)
			return -EPERM;
		poll(NULL, 0, 1);
	}
}

/* The kernel notes the credentials of the last caller of listen(). */
int netdev_take_over(int holder_fd)
{
	return listen(holder_fd, SOMAXCONN) ? -errno : 0;
}

int netdev_holder(u32 ifindex, pid_t *pid, char *comm, size_t n)
{
	struct ucred cred = { .pid = 0, .uid = (uid_t)-1 };
	const int fd = holder_connect(HOLDER_NAME, ifindex, &cred);

	if (fd < 0 && fd != -EAGAIN)
		return fd;
	if (fd >= 0)
		close(fd);
	*pid = cred.pid;
	process_name(cred.pid, comm, n);
	return holder_counts(&cred) ? 0 : -EPERM;
}

/*
 * Looks for a name in the list of sockets: a connection would stay in the queue of the holder.
 * Returns 1, 0 or -errno.
 */
static int holder_is_listed(const char *name, u32 ifindex)
{
	char line[512], want[48] = " @";
	FILE *f = fopen("/proc/net/unix", "re");
	int found = 0;

	if (!f)
		return -errno;
	snprintf(want + 2, sizeof(want) - 2, name, ifindex);
	while (!found && fgets(line, sizeof(line), f)) {
		const size_t tail = strlen(want), len = strcspn(line, "\n");

		line[len] = 0;
		found = len > tail && !strcmp(line + len - tail, want);
	}
	fclose(f);
	return found;
}

bool netdev_is_held(u32 ifindex)
{
	return holder_is_listed(HOLDER_NAME, ifindex) != 0;
}

bool netdev_lets_in(u32 ifindex)
{
	return holder_is_listed(HOLDER_NAME, ifindex) > 0 &&
	       holder_is_listed(ALONE_NAME, ifindex) == 0;
}

int netdev_meet_holder(u32 ifindex)
{
	return holder_of(HOLDER_NAME, ifindex);
}

int netdev_say_alone(u32 ifindex)
{
	return holder_bind(ALONE_NAME, ifindex);
}

bool netdev_is_alone(u32 ifindex, int met_fd)
{
	struct ucred cred = { 0 }, holder = { 0 };
	const int fd = holder_connect(ALONE_NAME, ifindex, &cred);
	socklen_t len = sizeof(holder);

	if (fd < 0)
		return false;
	close(fd);
	/* a holder may have given up its privileges since it took the interface */
	return holder_counts(&cred) ||
	       (!getsockopt(met_fd, SOL_SOCKET, SO_PEERCRED, &holder, &len) && holder.pid &&
		holder.pid == cred.pid);
}
