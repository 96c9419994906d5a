/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process that holds an interface listens on an abstract Unix socket named after the interface.
 * The name belongs to the network namespace, as the interface does. One process at a time can take
 * it, and it is free when the process ends for any reason.
 *
 * Any user can bind that name first, or fill the queue of its socket. So only root or the asking
 * user counts as a holder. Whether others hold the interface shows at the XDP hook, which needs
 * privileges, or for brokers by UDP sockets at port 4791.
 *
 * A holder that admits no other process has a second name for that. A process that finds neither
 * that name nor a socket to ask at arrived while a holder starts or ends.
 */
#define _GNU_SOURCE /* struct ucred */
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ask.h"
#include "clock.h"
#include "process.h"
#include "netdev.h"

#define HOLDER_NAME "xroce/%u"
#define ALONE_NAME  "xroce/%u/alone"

/*
 * Connections that the holder has not accepted yet. What their processes have sent waits in the
 * kernel until then: each has its own socket's buffer, also after its end.
 */
#define HOLDER_QUEUE 256

/* For a holder that has the name but does not listen yet. */
#define LISTENS_MS 500

/* For a holder without a number in this user namespace. Any user can cause this wait. */
#define SIGN_MS	     2000
#define SIGN_LOOK_MS 10

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

/* Returns a descriptor or -errno; -EADDRINUSE: another process has the name. */
static int holder_bind(const char *name, u32 ifindex)
{
	struct sockaddr_un sun;
	const socklen_t len = holder_address(name, ifindex, &sun);
	int fd = holder_socket(), err;

	if (fd < 0)
		return fd;
	ask_refuse_descriptors(fd);
	if (bind(fd, (struct sockaddr *)&sun, len) == 0 && listen(fd, HOLDER_QUEUE) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/*
 * Returns a connection and the credentials of the last caller of listen(). -ENOENT: no listener;
 * -EAGAIN: its queue is full, so it exists but cannot be asked; or -errno.
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
 * Returns whether a process listens at the interface's socket in ASK_DIR, which only root can make:
 * a sign that root holds the interface. A killed holder's socket has no listener.
 */
static bool holder_serves_for_root(u32 ifindex)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	bool serves;
	int fd;

	if (!process_is_roots_dir(ASK_DIR) || !process_is_roots_dir(ASK_PARENT))
		return false;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	snprintf(at.sun_path, sizeof(at.sun_path), ASK_PATH, (unsigned long long)netdev_netns(),
		 ifindex);
	serves = !connect(fd, (const struct sockaddr *)&at, sizeof(at)) || errno == EAGAIN;
	close(fd);
	return serves;
}

/*
 * Returns whether the holder counts: another user proves nothing. In most user namespaces root has
 * no number, like many other users, and needs another sign.
 */
static bool holder_counts(const struct ucred *cred, u32 ifindex)
{
	return cred->uid == 0 || process_is_own_uid(cred->uid) ||
	       (process_is_outside_uid(cred->uid) && holder_serves_for_root(ifindex));
}

/*
 * Waits for the sign of a holder that may be root, and starts or ends. Returns 0, -ENOENT (the
 * holder has ended) or -EPERM.
 */
static int holder_prove(int fd, const struct ucred *cred, u32 ifindex)
{
	const u64 until_ns = clock_now_ns() + SIGN_MS * NSEC_PER_MSEC;
	struct pollfd p = { .fd = fd };

	while (!holder_counts(cred, ifindex)) {
		if (!process_is_outside_uid(cred->uid) || clock_now_ns() >= until_ns)
			return -EPERM;
		if (poll(&p, 1, SIGN_LOOK_MS) > 0)
			return -ENOENT;
	}
	return 0;
}

/* Returns a connection to a holder that counts, or -errno as above, or -EPERM. */
static int holder_of(const char *name, u32 ifindex)
{
	struct ucred cred = { 0 };
	const int fd = holder_connect(name, ifindex, &cred);
	int err;

	if (fd < 0)
		return fd;
	err = holder_prove(fd, &cred, ifindex);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/*
 * Between a holder's bind() and listen(), or if it ends between our bind() and connect(), there is
 * no listener: that does not mean that another user has the name.
 */
int netdev_hold(u32 ifindex)
{
	const u64 until_ns = clock_now_ns() + LISTENS_MS * NSEC_PER_MSEC;
	int fd, other;

	for (;;) {
		fd = holder_bind(HOLDER_NAME, ifindex);
		if (fd != -EADDRINUSE)
			return fd;
		other = holder_of(HOLDER_NAME, ifindex);
		if (other >= 0) {
			close(other);
			return -EBUSY;
		}
		if (other != -ENOENT || clock_now_ns() >= until_ns)
			return -EPERM;
		poll(NULL, 0, 1);
	}
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
	return holder_counts(&cred, ifindex) ? 0 : -EPERM;
}

/* Looks for a name in the list of sockets: a connection would stay queued. Returns 1, 0, -errno. */
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
	/* a holder may have dropped its privileges since it took the interface */
	return holder_counts(&cred, ifindex) ||
	       (!getsockopt(met_fd, SOL_SOCKET, SO_PEERCRED, &holder, &len) && holder.pid &&
		holder.pid == cred.pid);
}
