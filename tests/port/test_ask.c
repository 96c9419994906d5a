/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * user/client/ask.c, with the test as the broker: the other end of a socket pair holds each kind of
 * invalid answer before the question. A refused answer leaves no descriptor, and hangs up the
 * conversation.
 */
#define _GNU_SOURCE
#include "../unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/client/ask.h"
#include "../common/open_fds.h"

#define MANY_FDS 40 /* more than the asker takes */

struct talk {
	struct asker asker;
	int broker;
};

/* What the broker sends: the first len bytes of more than an answer, and descriptors. */
struct reply {
	struct ask_answer answer;
	u8 more[16];
	size_t len;
	u32 fds;
};

static int setup(void **state)
{
	struct talk *t = calloc(1, sizeof(*t));
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ask_init(&t->asker);
	ask_begin(&t->asker, pair[0]);
	t->asker.has_proved = true;
	t->broker = pair[1];
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct talk *t = *state;

	ask_close(&t->asker);
	if (t->broker >= 0)
		close(t->broker);
	free(t);
	return 0;
}

static struct reply yes(u32 what, u32 fds)
{
	struct reply r = { .answer = { .version = ASK_VERSION, .what = what, .num_fds = fds },
			   .len = sizeof(struct ask_answer),
			   .fds = fds };

	if (what == ASK_HELLO)
		r.answer.port.pkeys = PKEY_TABLE_DEFAULT;
	return r;
}

static void say(struct talk *t, const struct reply *r)
{
	union {
		char room[CMSG_SPACE(MANY_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)r, .iov_len = r->len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[MANY_FDS];

	assert_true(r->fds <= MANY_FDS);
	for (u32 i = 0; i < r->fds; i++)
		assert_true((fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
	if (r->fds) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(r->fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
				       .cmsg_len = CMSG_LEN(r->fds * sizeof(int)) };
		memcpy(CMSG_DATA(c), fds, r->fds * sizeof(int));
	}
	assert_int_equal(sendmsg(t->broker, &msg, 0), (ssize_t)r->len);
	for (u32 i = 0; i < r->fds; i++)
		close(fds[i]);
}

/* Checks what the process asked. */
static void heard(struct talk *t, u32 what, u32 number)
{
	struct ask ask;

	assert_int_equal(recv(t->broker, &ask, sizeof(ask), 0), sizeof(ask));
	assert_int_equal(ask.version, ASK_VERSION);
	assert_int_equal(ask.what, what);
	assert_int_equal(ask.number, number);
	assert_int_equal(ask.pad, 0);
	assert_memory_equal(&ask.service, &(struct ask_service){ 0 }, sizeof(ask.service));
}

/* Checks that both ends see the end, and a thread that watches for it as well. */
static void is_over(struct talk *t)
{
	struct pollfd fds[] = { { .fd = t->asker.fd, .events = POLLRDHUP },
				{ .fd = t->broker, .events = POLLRDHUP } };

	assert_int_equal(poll(fds, t->broker < 0 ? 1 : 2, 0), t->broker < 0 ? 1 : 2);
	assert_true(fds[0].revents & POLLHUP);
	assert_int_equal(ask_claim(&t->asker, 7), -EPIPE);
}

/* Checks the descriptors of a port, and closes them. */
static void takes(const struct talk *t, const int *fds, u32 n)
{
	/* a killed process's descriptors are closed from the highest down */
	assert_int_equal(fcntl(t->asker.fd, F_GETFD), FD_CLOEXEC);
	for (u32 i = 0; i < n; i++) {
		assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
		assert_true(fds[i] < t->asker.fd);
		close(fds[i]);
	}
}

static void ask_hello__takes_port_and_descriptors(void **state)
{
	struct talk *t = *state;
	struct reply r = yes(ASK_HELLO, ASK_FDS);
	const u32 before = open_fds();
	struct ask_port port;
	int fds[ASK_SOCKETS_FDS];

	r.answer.port = (struct ask_port){ .client = 3, .ifindex = 5, .prog_id = 11,
					   .pkeys = { 3, { 0xffff, 0x8001, 0x0002 } } };
	say(t, &r);
	assert_int_equal(ask_hello(&t->asker, false, &port, fds), 0);
	heard(t, ASK_HELLO, 0);
	assert_memory_equal(&port, &r.answer.port, sizeof(port));
	takes(t, fds, ASK_FDS);
	assert_int_equal(open_fds(), before);
	r = yes(ASK_RELEASE, 0);
	say(t, &r);
	assert_int_equal(ask_release(&t->asker, 9), 0);
	heard(t, ASK_RELEASE, 9);
}

static void ask_hello__takes_a_port_with_sockets(void **state)
{
	struct talk *t = *state;
	struct reply r = yes(ASK_HELLO, ASK_SOCKETS_FDS);
	const u32 before = open_fds();
	struct ask_port port;
	int fds[ASK_SOCKETS_FDS];

	r.answer.port.sockets = 1;
	say(t, &r);
	assert_int_equal(ask_hello(&t->asker, true, &port, fds), 0);
	heard(t, ASK_HELLO, 1);
	assert_int_equal(port.sockets, 1);
	takes(t, fds, ASK_SOCKETS_FDS);
	assert_int_equal(open_fds(), before);
}

/* The number of descriptors must fit the kind of port. */
static void ask_hello__refuses_descriptors_of_the_other_kind(void **state)
{
	static const struct {
		u32 sockets, fds;
	} wrong[] = { { 1, ASK_FDS }, { 0, ASK_SOCKETS_FDS }, { 1, ASK_SOCKETS_FDS - 1 },
		      { 0, ASK_FDS + 1 } };

	for (u32 i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct reply r = yes(ASK_HELLO, wrong[i].fds);
		struct ask_port port;
		int fds[ASK_SOCKETS_FDS];
		struct talk *t;
		u32 before;

		teardown(state);
		assert_int_equal(setup(state), 0);
		t = *state;
		before = open_fds();
		r.answer.port.sockets = wrong[i].sockets;
		say(t, &r);
		assert_int_equal(ask_hello(&t->asker, true, &port, fds), -EPROTO);
		assert_int_equal(open_fds(), before);
	}
}

static void ask_others__takes_a_device(void **state)
{
	struct talk *t = *state;
	struct reply r = yes(ASK_OTHERS, 1);
	int fd;

	say(t, &r);
	fd = ask_others(&t->asker);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	heard(t, ASK_OTHERS, 0);
	r = yes(ASK_OTHERS, 0);
	r.answer.err = -ENOENT;
	say(t, &r);
	assert_int_equal(ask_others(&t->asker), -ENOENT);
}

/* Returns the highest of the next n descriptors. */
static int next_fds(u32 n)
{
	int fd = dup(0), last = fd;

	assert_true(fd >= 0);
	if (n > 1)
		last = next_fds(n - 1);
	close(fd);
	return last;
}

/* Without higher descriptors a descriptor keeps its number, and the kernel delivers fewer. */
static void ask_hello__finds_no_room_for_descriptors(void **state)
{
	struct talk *t = *state;
	const struct reply r = yes(ASK_HELLO, ASK_FDS);
	const u32 before = open_fds();
	struct rlimit limit, few;
	struct ask_port port;
	int fds[ASK_SOCKETS_FDS];

	say(t, &r);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = (rlim_t)next_fds(ASK_FDS - 3);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(ask_hello(&t->asker, false, &port, fds), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(open_fds(), before);
}

static void ask_hello__has_no_descriptor_left(void **state)
{
	struct talk *t = *state;
	struct reply r = yes(ASK_HELLO, ASK_FDS);
	struct rlimit before, few;
	struct ask_port port;
	int fds[ASK_SOCKETS_FDS], own = t->asker.fd;

	say(t, &r);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = (rlim_t)next_fds(ASK_FDS) + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(ask_hello(&t->asker, false, &port, fds), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(t->asker.fd, own);
	for (u32 i = 0; i < ASK_FDS; i++)
		close(fds[i]);
}

static void ask_draw__has_a_number(void **state)
{
	static const u32 none[] = { 0, 1, 0xffffff, 0x1000002, ~0u };
	struct talk *t = *state;
	struct reply r = yes(ASK_DRAW, 0);
	u32 qpn = 0;

	r.answer.number = 0xfffffe;
	say(t, &r);
	assert_int_equal(ask_draw(&t->asker, &qpn), 0);
	assert_int_equal(qpn, 0xfffffe);
	heard(t, ASK_DRAW, 0);
	r.answer.err = -EDQUOT;
	r.answer.number = 0;
	say(t, &r);
	assert_int_equal(ask_draw(&t->asker, &qpn), -EDQUOT);
	heard(t, ASK_DRAW, 0);
	/* a number that no QP has is not an answer */
	for (u32 i = 0; i < ARRAY_SIZE(none); i++) {
		teardown(state);
		setup(state);
		t = *state;
		r.answer.err = 0;
		r.answer.number = none[i];
		say(t, &r);
		assert_int_equal(ask_draw(&t->asker, &qpn), -EPROTO);
		is_over(t);
	}
}

/* Sends a challenge, and the answer to its proof. */
static void say_challenge(struct talk *t, s32 err)
{
	struct reply r = yes(ASK_PROVE, 0);

	r.answer.challenge = (struct ask_challenge){ .nonce = 0x12345678, .first_port = 1024 };
	say(t, &r);
	r = yes(ASK_PROOF, 0);
	r.answer.err = err;
	say(t, &r);
}

static void heard_proof(struct talk *t, bool for_port)
{
	struct ask ask;

	heard(t, ASK_PROVE, for_port);
	assert_int_equal(recv(t->broker, &ask, sizeof(ask), 0), sizeof(ask));
	assert_int_equal(ask.what, ASK_PROOF);
	assert_in_range(ask.number, 1, UINT16_MAX);
}

static void ask_question__follows_one_proof(void **state)
{
	struct talk *t = *state;
	struct reply r = yes(ASK_DRAW, 0);
	const u32 before = open_fds();
	u32 qpn;

	t->asker.has_proved = false;
	r.answer.number = 5;
	say_challenge(t, 0);
	say(t, &r);
	assert_int_equal(ask_draw(&t->asker, &qpn), 0);
	say(t, &r);
	assert_int_equal(ask_draw(&t->asker, &qpn), 0);
	heard_proof(t, false);
	heard(t, ASK_DRAW, 0);
	heard(t, ASK_DRAW, 0);
	assert_int_equal(open_fds(), before);
}

static void ask_arrived__waits_for_the_answer(void **state)
{
	struct talk *t = *state;
	struct reply r = yes(ASK_ARRIVED, 0);

	say(t, &r);
	assert_int_equal(ask_arrived(&t->asker), 0);
	heard(t, ASK_ARRIVED, 0);
	r.answer.err = -ENOTCONN;
	say(t, &r);
	assert_int_equal(ask_arrived(&t->asker), -ENOTCONN);
}

/* The time for the answer begins again with each message that it is in progress. */
static void ask_draw__waits_while_in_progress(void **state)
{
	struct talk *t = *state;
	struct reply r = yes(ASK_DRAW, 0);
	u32 qpn;

	r.answer.err = -EINPROGRESS;
	say(t, &r);
	say(t, &r);
	r.answer.err = 0;
	r.answer.number = 5;
	say(t, &r);
	assert_int_equal(ask_draw(&t->asker, &qpn), 0);
	assert_int_equal(qpn, 5);
	heard(t, ASK_DRAW, 0);
	t->asker.max_ns = NSEC_PER_MSEC;
	r.answer.err = -EINPROGRESS;
	say(t, &r);
	assert_int_equal(ask_draw(&t->asker, &qpn), -ETIMEDOUT);
}

/* Of another question, or with descriptors, it is as malformed as an answer. */
static void ask_draw__refuses_other_progress(void **state)
{
	struct talk *t = *state;
	struct reply r = yes(ASK_RING, 0);
	u32 qpn;

	r.answer.err = -EINPROGRESS;
	say(t, &r);
	assert_int_equal(ask_draw(&t->asker, &qpn), -EPROTO);
}

static void ask_kind__takes_no_proof(void **state)
{
	struct talk *t = *state;
	struct reply r = yes(ASK_KIND, 0);
	struct ask_kind kind;

	t->asker.has_proved = false;
	r.answer.kind.pkeys = PKEY_TABLE_DEFAULT;
	say(t, &r);
	assert_int_equal(ask_kind(&t->asker, &kind), 0);
	heard(t, ASK_KIND, 0);
}

/* The question has the whole service, and other questions have none. */
static void ask_bind__names_the_service(void **state)
{
	const struct ask_service s = { .id = 0x0106000000001234, .families = ASK_IPV6,
				       .address = { 0xfd, 0x77, [15] = 1 } };
	static const s32 errs[] = { 0, -EADDRINUSE, -EACCES, -EDQUOT };
	struct talk *t = *state;

	for (u32 i = 0; i < 2 * ARRAY_SIZE(errs); i++) {
		const u32 what = i % 2 ? ASK_UNBIND : ASK_BIND;
		struct ask want = { .version = ASK_VERSION, .what = what, .service = s }, ask;
		struct reply r = yes(what, 0);

		r.answer.err = errs[i / 2];
		say(t, &r);
		assert_int_equal(i % 2 ? ask_unbind(&t->asker, &s) : ask_bind(&t->asker, &s),
				 errs[i / 2]);
		assert_int_equal(recv(t->broker, &ask, sizeof(ask), 0), sizeof(ask));
		assert_memory_equal(&ask, &want, sizeof(ask));
	}
}

static void ask_question__has_the_brokers_answer(void **state)
{
	u32 slot;
	struct talk *t = *state;
	struct reply r = yes(ASK_CLAIM, 0);
	const u32 before = open_fds();
	int fd;

	say(t, &r);
	assert_int_equal(ask_claim(&t->asker, 0x123456), 0);
	heard(t, ASK_CLAIM, 0x123456);
	r.answer.err = -EEXIST;
	say(t, &r);
	assert_int_equal(ask_claim(&t->asker, 8), -EEXIST);
	heard(t, ASK_CLAIM, 8);
	r = yes(ASK_RELEASE, 0);
	r.answer.err = -ENOENT;
	say(t, &r);
	assert_int_equal(ask_release(&t->asker, 9), -ENOENT);
	heard(t, ASK_RELEASE, 9);
	r = yes(ASK_RING, 1);
	r.answer.number = XROCE_MAX_QUEUE + 3;
	say(t, &r);
	fd = ask_ring(&t->asker, &slot);
	assert_true(fd >= 0);
	assert_int_equal(slot, XROCE_MAX_QUEUE + 3);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	heard(t, ASK_RING, 0);
	r = yes(ASK_RING, 0);
	r.answer.err = -ENOSPC;
	say(t, &r);
	assert_int_equal(ask_ring(&t->asker, &slot), -ENOSPC);
	assert_int_equal(open_fds(), before);
}

static void ask_kind__takes_the_table(void **state)
{
	struct talk *t = *state;
	struct reply r = yes(ASK_KIND, 0);
	struct ask_kind kind;

	r.answer.kind = (struct ask_kind){ { 3, { 0xffff, 0x8001, 0x0001 } }, .udp = 1 };
	say(t, &r);
	assert_int_equal(ask_kind(&t->asker, &kind), 0);
	heard(t, ASK_KIND, 0);
	assert_memory_equal(&kind, &r.answer.kind, sizeof(kind));
	for (u32 i = 0; i < XROCE_MAX_PKEY; i++)
		r.answer.kind.pkeys.key[i] = (u16)(0xffff - i);
	r.answer.kind.pkeys.num = XROCE_MAX_PKEY;
	say(t, &r);
	assert_int_equal(ask_kind(&t->asker, &kind), 0);
	heard(t, ASK_KIND, 0);
	assert_int_equal(kind.pkeys.key[XROCE_MAX_PKEY - 1], 0xffff - (XROCE_MAX_PKEY - 1));
}

/* ---- invalid answers ---- */

static void hello_fails(struct talk *t, const struct reply *r, int want)
{
	struct ask_port port = { 0 };
	const u32 before = open_fds();
	int fds[ASK_SOCKETS_FDS];

	say(t, r);
	assert_int_equal(ask_hello(&t->asker, false, &port, fds), want);
	assert_int_equal(open_fds(), before);
	is_over(t);
}

static void ask_check__refuses_what_is_too_short(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS);

	r.len--;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_what_is_too_long(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS);

	r.len++;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_an_empty_message_with_descriptors(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS);

	r.len = 0;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_another_version(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS);

	r.answer.version++;
	hello_fails(*state, &r, -EPROTONOSUPPORT);
}

static void ask_check__refuses_the_answer_to_another_question(void **state)
{
	struct reply r = yes(ASK_RING, ASK_FDS);

	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_a_positive_error(void **state)
{
	struct reply r = yes(ASK_HELLO, 0);

	r.answer.err = ENOSPC;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_an_error_that_is_none(void **state)
{
	struct reply r = yes(ASK_HELLO, 0);

	r.answer.err = INT32_MIN;
	hello_fails(*state, &r, -EPROTO);
}

/* The broker cannot claim the end of the conversation. */
static void ask_check__refuses_an_error_of_our_own(void **state)
{
	struct reply r = yes(ASK_HELLO, 0);

	r.answer.err = -EPIPE;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_fewer_descriptors(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS - 1);

	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_more_descriptors(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS + 1);

	hello_fails(*state, &r, -EPROTO);
}

/* A table is read up to its length, and must have the default P_Key, which QP 1 uses. */
static const struct pkey_table no_pkeys[] = {
	{ 0, { 0 } },
	{ 0, { 0xffff } },
	{ XROCE_MAX_PKEY + 1, { 0xffff } },
	{ ~0u, { 0xffff } },
	{ 1, { 0x8001 } },
	{ 1, { 0x7fff } },
	{ 2, { 0x8001, 0xffff } },
	{ 2, { 0xffff, 0x0000 } },
	{ 2, { 0xffff, 0x8000 } },
	{ 2, { 0xffff, 0xffff } },
	{ 3, { 0xffff, 0x8001, 0x8001 } },
	{ 1, { 0xffff, 0x8001 } },
};

static void ask_check__refuses_what_is_no_table(void **state)
{
	for (u32 i = 0; i < ARRAY_SIZE(no_pkeys); i++) {
		struct talk *t;
		struct reply r = yes(ASK_KIND, 0);
		struct ask_kind kind = { .pkeys.num = 77 };

		assert_int_equal(setup((void **)&t), 0);
		r.answer.kind.pkeys = no_pkeys[i];
		say(t, &r);
		assert_int_equal(ask_kind(&t->asker, &kind), -EPROTO);
		assert_int_equal(kind.pkeys.num, 77);
		is_over(t);
		teardown((void **)&t);

		assert_int_equal(setup((void **)&t), 0);
		r.answer.kind = (struct ask_kind){ PKEY_TABLE_DEFAULT, .udp = 2 };
		say(t, &r);
		assert_int_equal(ask_kind(&t->asker, &kind), -EPROTO);
		teardown((void **)&t);

		assert_int_equal(setup((void **)&t), 0);
		r = yes(ASK_HELLO, ASK_FDS);
		r.answer.port.pkeys = no_pkeys[i];
		hello_fails(t, &r, -EPROTO);
		teardown((void **)&t);
	}
}

static void ask_check__refuses_more_descriptors_than_it_says(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS);

	r.fds++;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_fewer_descriptors_than_it_says(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS);

	r.answer.num_fds++;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_more_descriptors_than_there_is_room_for(void **state)
{
	struct reply r = yes(ASK_HELLO, MANY_FDS);

	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_descriptors_with_an_error(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS);

	r.answer.err = -ENOSPC;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_descriptors_that_nobody_wanted(void **state)
{
	struct talk *t = *state;
	struct reply r = yes(ASK_CLAIM, 1);
	const u32 before = open_fds();

	say(t, &r);
	assert_int_equal(ask_claim(&t->asker, 7), -EPROTO);
	assert_int_equal(open_fds(), before);
	is_over(t);
}

/* ---- no answer at all ---- */

static void ask_question__ends_with_the_broker(void **state)
{
	struct talk *t = *state;

	close(t->broker);
	t->broker = -1;
	assert_int_equal(ask_claim(&t->asker, 7), -EPIPE);
	is_over(t);
}

static void ask_question__ends_with_a_broker_that_hears_and_ends(void **state)
{
	struct talk *t = *state;

	/* the question can be sent, and no answer comes */
	assert_int_equal(shutdown(t->broker, SHUT_WR), 0);
	assert_int_equal(ask_claim(&t->asker, 7), -EPIPE);
	heard(t, ASK_CLAIM, 7);
	is_over(t);
}

static void ask_question__is_bounded_in_time(void **state)
{
	struct talk *t = *state;

	t->asker.max_ns = NSEC_PER_MSEC;
	assert_int_equal(ask_claim(&t->asker, 7), -ETIMEDOUT);
	heard(t, ASK_CLAIM, 7);
	is_over(t);
}

/* The process was stopped until long after the deadline, and the answer arrived in that time. */
static void ask_question__looks_once_more(void **state)
{
	struct talk *t = *state;
	struct reply r = yes(ASK_CLAIM, 0);

	say(t, &r);
	t->asker.max_ns = 0;
	assert_int_equal(ask_claim(&t->asker, 7), 0);
	heard(t, ASK_CLAIM, 7);
}

static void ask_hello__is_bounded_in_time(void **state)
{
	struct talk *t = *state;
	struct ask_port port;
	const u64 begin = clock_now_ns();
	int fds[ASK_SOCKETS_FDS];

	t->asker.max_ns = 5 * NSEC_PER_MSEC;
	assert_int_equal(ask_hello(&t->asker, false, &port, fds), -ETIMEDOUT);
	assert_true(clock_now_ns() - begin >= 5 * NSEC_PER_MSEC);
	heard(t, ASK_HELLO, 0);
	is_over(t);
}

static void ask_question__has_nobody_to_ask(void **state)
{
	struct asker none;
	u32 slot;

	ask_init(&none);
	assert_int_equal(ask_claim(&none, 7), -EPIPE);
	assert_int_equal(ask_ring(&none, &slot), -EPIPE);
	ask_close(&none);
}

/* ---- several threads ---- */

#define THREADS	  4
#define QUESTIONS 500

/* Each number is answered by its own error. */
static int error_of(u32 number)
{
	return -(int)(200 + number);
}

static void *broker_main(void *arg)
{
	struct talk *t = arg;
	struct ask ask;

	while (recv(t->broker, &ask, sizeof(ask), 0) == sizeof(ask)) {
		struct reply r = yes(ask.what, 0);

		r.answer.err = error_of(ask.number);
		say(t, &r);
	}
	return NULL;
}

struct questioner {
	pthread_t thread;
	struct asker *asker;
	u32 number;
	bool ok;
};

static void *questioner_main(void *arg)
{
	struct questioner *q = arg;

	q->ok = true;
	for (u32 i = 0; i < QUESTIONS; i++)
		q->ok &= ask_claim(q->asker, q->number) == error_of(q->number);
	return NULL;
}

static void ask_question__threads_have_each_its_own_answer(void **state)
{
	struct questioner q[THREADS];
	struct talk *t = *state;
	pthread_t broker;

	assert_int_equal(pthread_create(&broker, NULL, broker_main, t), 0);
	for (u32 i = 0; i < THREADS; i++) {
		q[i] = (struct questioner){ .asker = &t->asker, .number = i };
		assert_int_equal(
			pthread_create(&q[i].thread, NULL, questioner_main, &q[i]), 0);
	}
	for (u32 i = 0; i < THREADS; i++)
		pthread_join(q[i].thread, NULL);
	shutdown(t->asker.fd, SHUT_RDWR);
	pthread_join(broker, NULL);
	for (u32 i = 0; i < THREADS; i++)
		assert_true(q[i].ok);
}

/* ---- connecting ---- */

/* No network namespace has this number, so no broker's path is taken. */
#define NO_NETNS 4u
#define QUEUE	 16 /* connections that are not accepted */

/* A socket at the place of the broker's. */
static int serve(u32 ifindex, bool listens)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(sun.sun_path, sizeof(sun.sun_path), ASK_PATH, (unsigned long long)NO_NETNS,
		 ifindex);
	assert_true(mkdir(ASK_DIR, 0755) == 0 || errno == EEXIST);
	unlink(sun.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(chmod(sun.sun_path, 0666), 0);
	if (listens)
		assert_int_equal(listen(fd, QUEUE), 0);
	return fd;
}

static void serve_end(int fd, u32 ifindex)
{
	char path[108];

	close(fd);
	snprintf(path, sizeof(path), ASK_PATH, (unsigned long long)NO_NETNS, ifindex);
	unlink(path);
}

static int try_connect(u32 ifindex)
{
	struct asker a;
	int err;

	ask_init(&a);
	err = ask_connect(&a, NO_NETNS, ifindex);
	assert_true(err || a.fd >= 0);
	assert_true(!err || a.fd == -1);
	ask_close(&a);
	return err;
}

static bool become(uid_t uid)
{
	return !setgroups(0, NULL) && !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid);
}

/* Another user's view: its status is the error. */
static int try_connect_as(uid_t uid, u32 ifindex)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		_exit(become(uid) ? -try_connect(ifindex) : 255);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* Listens as that user, until it is killed. */
static pid_t serve_as(uid_t uid, int fd, int *until)
{
	int ready[2], end[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC) | pipe2(end, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(end[1]);
		if (!become(uid) || listen(fd, QUEUE) || write(ready[1], "", 1) != 1)
			_exit(1);
		_exit(read(end[0], &byte, 1) != 0);
	}
	close(end[0]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*until = end[1];
	return child;
}

/* The kernel refuses a limit with a million microseconds, and takes 0 for no limit. */
static void ask_connect__has_a_limit_that_the_kernel_takes(void **state)
{
	static const struct {
		u64 ns;
		struct timeval is;
	} rows[] = {
		{ 0, { 0, 0 } },
		{ 1, { 0, 1 } },
		{ NSEC_PER_USEC, { 0, 1 } },
		{ NSEC_PER_USEC + 1, { 0, 2 } },
		{ NSEC_PER_SEC - NSEC_PER_USEC, { 0, 999999 } },
		{ NSEC_PER_SEC - NSEC_PER_USEC + 1, { 1, 0 } },
		{ NSEC_PER_SEC - 1, { 1, 0 } },
		{ NSEC_PER_SEC, { 1, 0 } },
		{ 5 * NSEC_PER_SEC - 1, { 5, 0 } },
		{ 5 * NSEC_PER_SEC + 1, { 5, 1 } },
	};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct timeval t = clock_timeval(rows[i].ns);

		assert_int_equal(t.tv_sec, rows[i].is.tv_sec);
		assert_int_equal(t.tv_usec, rows[i].is.tv_usec);
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)), 0);
	}
	close(fd);
}

static void ask_connect__finds_no_broker(void **state)
{
	int fd;

	assert_int_equal(try_connect(1), -ENOENT);
	/* left by a killed one */
	fd = serve(2, false);
	assert_int_equal(try_connect(2), -ENOENT);
	serve_end(fd, 2);
}

static void ask_connect__finds_roots_or_ones_own(void **state)
{
	int fd = serve(3, true), until, status;
	pid_t server;

	assert_int_equal(try_connect(3), 0);
	assert_int_equal(try_connect_as(65534, 3), 0);
	serve_end(fd, 3);
	fd = serve(4, false);
	server = serve_as(65533, fd, &until);
	assert_int_equal(try_connect_as(65533, 4), 0);
	assert_int_equal(try_connect(4), -EPERM);
	assert_int_equal(try_connect_as(65532, 4), -EPERM);
	close(until);
	assert_int_equal(waitpid(server, &status, 0), server);
	assert_int_equal(status, 0);
	serve_end(fd, 4);
}

/* In a user namespace each user without a number there appears as 65534, as a process may be. */
static int try_connect_without_numbers(u32 ifindex)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		_exit(become(65532) && !unshare(CLONE_NEWUSER) && geteuid() == 65534 ?
			      -try_connect(ifindex) :
			      255);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* Root has no number there either: its socket is in a directory that only root can have made. */
static void ask_connect__believes_roots_directory(void **state)
{
	static const struct {
		mode_t dir, parent;
		int want;
	} row[] = {
		{ 0755, 0755, 0 },	{ 0777, 0755, -EPERM }, { 0775, 0755, -EPERM },
		{ 0755, 0777, -EPERM }, { 0755, 0775, -EPERM },
	};
	int fd;

	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("none", "/run", "tmpfs", 0, "mode=755"), 0);
	fd = serve(6, true);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		assert_int_equal(chmod(ASK_DIR, row[i].dir) | chmod("/run", row[i].parent), 0);
		assert_int_equal(try_connect_without_numbers(6), row[i].want);
	}
	assert_int_equal(chmod("/run", 0755), 0);
	serve_end(fd, 6);
}

/* Where all users have numbers, the overflow uid is one of theirs. */
static void ask_connect__is_not_with_a_user_called_overflow(void **state)
{
	int fd = serve(7, false), until, status;
	pid_t server = serve_as(65534, fd, &until);

	assert_int_equal(try_connect_as(65532, 7), -EPERM);
	close(until);
	assert_int_equal(waitpid(server, &status, 0), server);
	assert_int_equal(status, 0);
	serve_end(fd, 7);
}

static void ask_connect__is_not_for_everybody(void **state)
{
	char path[108];
	int fd = serve(5, true);

	snprintf(path, sizeof(path), ASK_PATH, (unsigned long long)NO_NETNS, 5u);
	assert_int_equal(chmod(path, 0660), 0);
	assert_int_equal(try_connect_as(65534, 5), -EACCES);
	serve_end(fd, 5);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(ask_hello__takes_port_and_descriptors),
		TEST(ask_hello__takes_a_port_with_sockets),
		TEST(ask_hello__refuses_descriptors_of_the_other_kind),
		TEST(ask_others__takes_a_device),
		TEST(ask_hello__finds_no_room_for_descriptors),
		TEST(ask_hello__has_no_descriptor_left),
		TEST(ask_draw__has_a_number),
		TEST(ask_question__follows_one_proof),
		TEST(ask_arrived__waits_for_the_answer),
		TEST(ask_draw__waits_while_in_progress),
		TEST(ask_draw__refuses_other_progress),
		TEST(ask_kind__takes_no_proof),
		TEST(ask_bind__names_the_service),
		TEST(ask_question__has_the_brokers_answer),
		TEST(ask_check__refuses_what_is_too_short),
		TEST(ask_check__refuses_what_is_too_long),
		TEST(ask_check__refuses_an_empty_message_with_descriptors),
		TEST(ask_check__refuses_another_version),
		TEST(ask_check__refuses_the_answer_to_another_question),
		TEST(ask_check__refuses_a_positive_error),
		TEST(ask_check__refuses_an_error_that_is_none),
		TEST(ask_check__refuses_an_error_of_our_own),
		TEST(ask_check__refuses_fewer_descriptors),
		TEST(ask_check__refuses_more_descriptors),
		TEST(ask_check__refuses_more_descriptors_than_it_says),
		TEST(ask_check__refuses_fewer_descriptors_than_it_says),
		TEST(ask_check__refuses_more_descriptors_than_there_is_room_for),
		TEST(ask_check__refuses_descriptors_with_an_error),
		TEST(ask_check__refuses_descriptors_that_nobody_wanted),
		TEST(ask_question__ends_with_the_broker),
		TEST(ask_question__ends_with_a_broker_that_hears_and_ends),
		TEST(ask_question__is_bounded_in_time),
		TEST(ask_question__looks_once_more),
		TEST(ask_kind__takes_the_table),
		TEST(ask_check__refuses_what_is_no_table),
		TEST(ask_hello__is_bounded_in_time),
		cmocka_unit_test(ask_question__has_nobody_to_ask),
		TEST(ask_question__threads_have_each_its_own_answer),
		cmocka_unit_test(ask_connect__has_a_limit_that_the_kernel_takes),
		cmocka_unit_test(ask_connect__finds_no_broker),
		cmocka_unit_test(ask_connect__finds_roots_or_ones_own),
		cmocka_unit_test(ask_connect__believes_roots_directory),
		cmocka_unit_test(ask_connect__is_not_with_a_user_called_overflow),
		cmocka_unit_test(ask_connect__is_not_for_everybody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
