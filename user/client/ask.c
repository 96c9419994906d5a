/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Questions to the broker. An answer is one message. Its length, version, question, error and
 * number of descriptors are checked before its content is used. Descriptors of a rejected answer
 * are closed.
 */
#define _GNU_SOURCE /* struct ucred */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <xroce/trace.h>
#include <xroce/wire.h>

#include "../os/close_fd.h"
#include "../os/process.h"
#include "../os/thread.h"
#include "ask.h"
#include "broker_socket.h"
#include "prove.h"

#define ERRNO_MAX 4095
/* More than any answer has: the kernel truncates a message with more, which is then rejected. */
#define FDS_MAX	  32

void ask_init(struct asker *a)
{
	a->fd = -1;
	a->max_ns = ASK_MAX_NS;
	a->has_proved = false;
	pthread_mutex_init(&a->lock, NULL);
}

void ask_begin(struct asker *a, int fd)
{
	a->fd = fd;
	a->id = fd_id_of(fd);
}

/*
 * Returns whether a broker of this user is trusted: root, or the process's own user. In a
 * container's user namespace the host's root has no number. There a user without a number is taken
 * for root if only root can write to the socket's directory and its parent.
 */
static bool ask_may_serve(uid_t uid)
{
	return uid == 0 || process_is_own_uid(uid) ||
	       (process_is_outside_uid(uid) && process_is_roots_dir(ASK_DIR) &&
		process_is_roots_dir(ASK_PARENT));
}

static int ask_check_server(int fd)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	return ask_may_serve(cred.uid) ? 0 : -EPERM;
}

static int ask_try_connect(int fd, const struct sockaddr_un *sun, socklen_t len, u64 max_ns)
{
	/* limits connect() if the broker's queue of connections is full */
	const struct timeval most = clock_timeval(max_ns);

	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)))
		return -errno;
	if (connect(fd, (const struct sockaddr *)sun, len) == 0)
		return ask_check_server(fd);
	/* no process listens; a part of the path is no directory; a socket of another type */
	return errno == ECONNREFUSED || errno == ENOTDIR || errno == EPROTOTYPE ? -ENOENT :
	       errno == EAGAIN						       ? -ETIMEDOUT :
										 -errno;
}

static int ask_connect_to(struct asker *a, const struct sockaddr_un *sun, socklen_t len)
{
	const u64 until_ns = clock_now_ns() + a->max_ns;
	u64 now_ns;
	int fd, err;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	do {
		now_ns = clock_now_ns();
		err = now_ns >= until_ns ? -ETIMEDOUT :
					   ask_try_connect(fd, sun, len, until_ns - now_ns);
	} while (err == -EINTR);
	if (err) {
		close(fd);
		return err;
	}
	ask_begin(a, fd);
	return 0;
}

/*
 * Connects to the broker of this process's user. Any user can listen at that address, so only a
 * process of this very user counts, and nothing there can delay or fail this one: -ENOENT then.
 */
static int ask_connect_to_own(struct asker *a, u32 ifindex)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t cred_len = sizeof(cred);
	struct sockaddr_un sun;
	const socklen_t len = broker_socket_abstract(ifindex, geteuid(), &sun);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&sun, len) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) ||
	    !process_is_own_uid(cred.uid) || fcntl(fd, F_SETFL, O_RDWR)) {
		close(fd);
		return -ENOENT;
	}
	ask_begin(a, fd);
	return 0;
}

/* A broker that may write to ASK_DIR is preferred: it serves all users. */
int ask_connect(struct asker *a, u64 netns, u32 ifindex)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int err;

	if (!netns)
		return -ENOENT;
	snprintf(sun.sun_path, sizeof(sun.sun_path), ASK_PATH, (unsigned long long)netns, ifindex);
	err = ask_connect_to(a, &sun, sizeof(sun));
	return err == -ENOENT ? ask_connect_to_own(a, ifindex) : err;
}

void ask_close(struct asker *a)
{
	close_fd(&a->fd);
	pthread_mutex_destroy(&a->lock);
}

void ask_abandon(struct asker *a)
{
	if (a->fd >= 0)
		close(a->fd);
	ask_init(a);
}

/* ---- a question and its answer ---- */

/* Properties and descriptors of a received message. */
struct ask_came {
	ssize_t len;
	bool cut; /* the message or its list of descriptors was truncated */
	u32 num_fds;
	int fds[FDS_MAX];
};

static void ask_close_fds(const int *fds, u32 n)
{
	for (u32 i = 0; i < n; i++)
		close(fds[i]);
}

static void ask_take_fds(struct msghdr *msg, struct ask_came *came)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);

	/* no other control message was requested, and the kernel fits this one to the buffer */
	came->num_fds = c ? (u32)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)) : 0;
	if (c)
		memcpy(came->fds, CMSG_DATA(c), came->num_fds * sizeof(int));
}

/*
 * Waits for input until the deadline. A process that was stopped may pass the deadline while an
 * answer waits, so it polls once more. Returns 0, -ETIMEDOUT or -errno.
 */
static int ask_await(int fd, u64 until_ns)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (;;) {
		const u64 now_ns = clock_now_ns();
		const bool is_late = now_ns >= until_ns;
		const int n = poll(
			&p, 1, is_late ? 0 : (int)((until_ns - now_ns) / NSEC_PER_MSEC) + 1);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 && is_late)
			return -ETIMEDOUT;
	}
}

/* Returns 0, -ETIMEDOUT, -EPIPE or -errno. After 0 the caller owns the descriptors in *came. */
static int ask_receive(int fd, u64 until_ns, struct ask_answer *answer, struct ask_came *came)
{
	char control[CMSG_SPACE(FDS_MAX * sizeof(int))] __attribute__((aligned(8)));
	struct iovec iov = { .iov_base = answer, .iov_len = sizeof(*answer) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = control, .msg_controllen = sizeof(control) };
	int err;

	do {
		err = ask_await(fd, until_ns);
		if (err)
			return err;
		came->len = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (came->len < 0 && (errno == EINTR || errno == EAGAIN));
	if (came->len < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	came->cut = msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
	ask_take_fds(&msg, came);
	/* an empty message is invalid: it counts as a hang-up */
	return came->len == 0 && !came->num_fds ? -EPIPE : 0;
}

/* Excludes the management QPs, 0 and 1, and the number for multicast. */
static bool ask_is_number(u32 qpn)
{
	return qpn > 1 && qpn < ROCE_MULTICAST_QPN;
}

/* Validates the content of an answer without error. */
static bool ask_is_plausible(const struct ask_answer *answer)
{
	switch (answer->what) {
	case ASK_DRAW:
		return ask_is_number(answer->number);
	case ASK_HELLO:
		return pkey_table_valid(&answer->port.pkeys) &&
		       answer->num_fds == (answer->port.sockets ? ASK_SOCKETS_FDS : ASK_FDS);
	case ASK_KIND:
		return pkey_table_valid(&answer->kind.pkeys) && answer->kind.udp <= 1 &&
		       answer->kind.sole <= 1;
	case ASK_RING:
		return answer->number >= XROCE_MAX_QUEUE && answer->number < XROCE_MAX_CHANNEL;
	case ASK_TRACE:
		return answer->traced.place < XROCE_TRACERS;
	default:
		return true;
	}
}

#define ASK_SOME    (~0u)     /* any number of descriptors up to ASK_FDS, as the answer states */
#define ASK_OF_PORT (~0u - 1) /* ASK_FDS or ASK_SOCKETS_FDS */

static bool ask_is_as_many(u32 num_fds, u32 want)
{
	return want == ASK_SOME	   ? num_fds <= ASK_FDS :
	       want == ASK_OF_PORT ? num_fds == ASK_FDS || num_fds == ASK_SOCKETS_FDS :
				     num_fds == want;
}

static u32 ask_fewest(const struct ask_answer *answer, u32 want)
{
	return want == ASK_OF_PORT ? min_u32(answer->num_fds, ASK_SOCKETS_FDS) : want;
}

/* Validates an answer to question `what`, which has `want` descriptors unless it is an error. */
static int ask_check(const struct ask_answer *answer, const struct ask_came *came, u32 what,
		     u32 want)
{
	/* descriptors are missing: the process has reached its limit */
	if (came->len == sizeof(*answer) && came->cut && came->num_fds < ask_fewest(answer, want))
		return -EMFILE;
	if (came->len != sizeof(*answer) || came->cut)
		return -EPROTO;
	if (answer->version != ASK_VERSION)
		return -EPROTONOSUPPORT;
	if (!answer->err && !ask_is_plausible(answer))
		return -EPROTO;
	if (answer->what != what || answer->err > 0 || answer->err < -ERRNO_MAX ||
	    ask_is_over(answer->err) || answer->num_fds != came->num_fds ||
	    !ask_is_as_many(came->num_fds, answer->err ? 0 : want))
		return -EPROTO;
	return 0;
}

/* Caller holds a->lock. Returns the broker's answer, or the reason why the conversation is over. */
static int ask_exchange(const struct asker *a, const struct ask *ask, struct ask_answer *answer,
			int *fds, u32 want)
{
	struct ask_came came = { 0 };
	int err;

	/* the last question was answered, so the socket has room */
	if (send(a->fd, ask, sizeof(*ask), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(*ask))
		return -EPIPE;
	do {
		err = ask_receive(a->fd, clock_now_ns() + a->max_ns, answer, &came);
		if (err)
			return ask_is_over(err) ? err : -EPIPE;
		err = ask_check(answer, &came, ask->what, want);
	} while (!err && answer->err == -EINPROGRESS);
	if (err || answer->err) {
		ask_close_fds(came.fds, came.num_fds);
		return err ? err : answer->err;
	}
	if (came.num_fds)
		memcpy(fds, came.fds, came.num_fds * sizeof(*fds));
	return 0;
}

/* Proves this process's rights before its first question. Caller holds a->lock. */
static int ask_prove(struct asker *a)
{
	struct ask ask = { .version = ASK_VERSION, .what = ASK_PROVE };
	struct ask_answer answer;
	int fd, err = ask_exchange(a, &ask, &answer, NULL, 0);

	if (err)
		return err;
	fd = prove_open(&answer.challenge, &ask.number);
	if (fd < 0)
		return fd;
	ask.what = ASK_PROOF;
	err = ask_exchange(a, &ask, &answer, NULL, 0);
	close(fd);
	a->has_proved = !err;
	return err;
}

static int ask_in_turn(struct asker *a, const struct ask *ask, struct ask_answer *answer, int *fds,
		       u32 want)
{
	int err = a->has_proved || ask->what == ASK_KIND ? 0 : ask_prove(a);

	return err ? err : ask_exchange(a, ask, answer, fds, want);
}

static int ask_whole(struct asker *a, const struct ask *ask, struct ask_answer *answer, int *fds,
		     u32 want)
{
	/* a thread cancelled in between would leave its answer for the next question */
	const int cancel = thread_disable_cancel();
	bool is_whole;
	int err;

	pthread_mutex_lock(&a->lock);
	is_whole = ask_is_whole(a);
	err = is_whole ? ask_in_turn(a, ask, answer, fds, want) : -EPIPE;
	/* our poller sees a hang-up; so does the broker, at once or when it next answers */
	if (ask_is_over(err) && is_whole)
		shutdown(a->fd, SHUT_RDWR);
	pthread_mutex_unlock(&a->lock);
	thread_restore_cancel(cancel);
	return err;
}

static int ask_question(struct asker *a, u32 what, u32 number, struct ask_answer *answer, int *fds,
			u32 want)
{
	const struct ask ask = { .version = ASK_VERSION, .what = what, .number = number };

	return ask_whole(a, &ask, answer, fds, want);
}

static int ask_of_service(struct asker *a, u32 what, const struct ask_service *service)
{
	const struct ask ask = { .version = ASK_VERSION, .what = what, .service = *service };
	struct ask_answer answer;

	return ask_whole(a, &ask, &answer, NULL, 0);
}

/*
 * Moves the connection above the descriptors from the broker, so that the broker notices a kill
 * sooner. The kernel closes from the highest down, and a TAP device takes tens of milliseconds.
 */
static void ask_move_up(struct asker *a, const int *fds, u32 n)
{
	int fd, most = a->fd;

	for (u32 i = 0; i < n; i++)
		most = fds[i] > most ? fds[i] : most;
	fd = most > a->fd ? fcntl(a->fd, F_DUPFD_CLOEXEC, most + 1) : -1;
	if (fd < 0)
		return; /* already the highest, or none is free: the broker notices later */
	close(a->fd);
	a->fd = fd;
}

int ask_hello(struct asker *a, u32 how, struct ask_port *port, int fds[ASK_SOCKETS_FDS])
{
	struct ask_answer answer;
	int err = ask_question(a, ASK_HELLO, how, &answer, fds, ASK_OF_PORT);

	if (err)
		return err;
	*port = answer.port;
	ask_move_up(a, fds, answer.num_fds);
	return 0;
}

int ask_others(struct asker *a)
{
	struct ask_answer answer;
	int fd, err = ask_question(a, ASK_OTHERS, 0, &answer, &fd, 1);

	return err ? err : fd;
}

int ask_draw(struct asker *a, u32 *qpn)
{
	struct ask_answer answer;
	int err = ask_question(a, ASK_DRAW, 0, &answer, NULL, 0);

	if (!err)
		*qpn = answer.number;
	return err;
}

int ask_claim(struct asker *a, u32 qpn)
{
	struct ask_answer answer;

	return ask_question(a, ASK_CLAIM, qpn, &answer, NULL, 0);
}

int ask_release(struct asker *a, u32 qpn)
{
	struct ask_answer answer;

	return ask_question(a, ASK_RELEASE, qpn, &answer, NULL, 0);
}

int ask_ring(struct asker *a, u32 *slot)
{
	struct ask_answer answer;
	int fd, err = ask_question(a, ASK_RING, 0, &answer, &fd, 1);

	*slot = err ? 0 : answer.number;
	return err ? err : fd;
}

int ask_bind(struct asker *a, const struct ask_service *service)
{
	return ask_of_service(a, ASK_BIND, service);
}

int ask_unbind(struct asker *a, const struct ask_service *service)
{
	return ask_of_service(a, ASK_UNBIND, service);
}

static int ask_of_group(struct asker *a, u32 what, const struct gid *group)
{
	struct ask_service service = { 0 };

	memcpy(service.address, group->raw, sizeof(service.address));
	return ask_of_service(a, what, &service);
}

int ask_attach(struct asker *a, const struct gid *group)
{
	return ask_of_group(a, ASK_ATTACH, group);
}

int ask_detach(struct asker *a, const struct gid *group)
{
	return ask_of_group(a, ASK_DETACH, group);
}

int ask_arrived(struct asker *a)
{
	struct ask_answer answer;

	return ask_question(a, ASK_ARRIVED, 0, &answer, NULL, 0);
}

void ask_leave(struct asker *a)
{
	const struct ask ask = { .version = ASK_VERSION, .what = ASK_LEAVE };

	if (ask_is_whole(a))
		send(a->fd, &ask, sizeof(ask), MSG_NOSIGNAL | MSG_DONTWAIT);
}

int ask_kind(struct asker *a, struct ask_kind *kind)
{
	struct ask_answer answer;
	int err = ask_question(a, ASK_KIND, 0, &answer, NULL, 0);

	if (!err)
		*kind = answer.kind;
	return err;
}

#define KIND_TRIES 5

/* Sets *there to whether a process listens. Returns 0 or -errno. */
static int ask_kind_once(u64 netns, u32 ifindex, struct ask_kind *kind, bool *there)
{
	struct asker asker;
	int err;

	ask_init(&asker);
	asker.max_ns = ASK_KIND_NS;
	err = ask_connect(&asker, netns, ifindex);
	*there = err != -ENOENT;
	if (!err)
		err = ask_kind(&asker, kind);
	ask_close(&asker);
	return err;
}

bool ask_kind_of(u64 netns, u32 ifindex, struct ask_kind *kind)
{
	bool there;
	int err;

	/* a broker that is ending hangs up */
	for (u32 i = 0; i < KIND_TRIES; i++) {
		err = ask_kind_once(netns, ifindex, kind, &there);
		if (!ask_is_over(err) || err == -ETIMEDOUT)
			break;
	}
	if (err && there)
		*kind = (struct ask_kind){ .pkeys = PKEY_TABLE_DEFAULT };
	return there;
}

int ask_list(struct asker *a, u32 from, struct ask_client *client)
{
	struct ask_answer answer;
	int err = ask_question(a, ASK_LIST, from, &answer, NULL, 0);

	if (!err && (answer.client.client < from || answer.client.client >= XROCE_MAX_CLIENT))
		err = -EPROTO;
	if (!err)
		*client = answer.client;
	a->withholds = err == -ENOENT && answer.number;
	return err;
}

int ask_maps(struct asker *a, u32 number, u32 first, struct ask_client *client, int fds[ASK_FDS])
{
	struct ask_answer answer;
	int err = ask_question(a, ASK_MAPS, ASK_MAPS_OF(number, first), &answer, fds, ASK_SOME);

	if (err)
		return err;
	*client = answer.client;
	return (int)answer.num_fds;
}

int ask_stop(struct asker *a)
{
	struct ask_answer answer;

	return ask_question(a, ASK_STOP, 0, &answer, NULL, 0);
}

int ask_trace(struct asker *a, u32 number, const struct ask_trace *want, struct ask_traced *traced,
	      int fds[ASK_TRACE_FDS])
{
	const struct ask ask = {
		.version = ASK_VERSION, .what = ASK_TRACE, .number = number, .trace = *want
	};
	struct ask_answer answer;
	int err = ask_whole(a, &ask, &answer, fds, ASK_TRACE_FDS);

	if (!err)
		*traced = answer.traced;
	return err;
}

int ask_untrace(struct asker *a, u32 prog_id, u64 *lost)
{
	struct ask_answer answer;
	int err = ask_question(a, ASK_UNTRACE, prog_id, &answer, NULL, 0);

	if (!err)
		*lost = answer.traced.lost;
	return err;
}


pid_t ask_server(const struct asker *a)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	return getsockopt(a->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ? 0 : cred.pid;
}
