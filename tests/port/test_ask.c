/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* user/client/ask.c: questions and answers, time-outs and threads. */
#define _GNU_SOURCE
#include "../unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../common/open_fds.h"
#include "ask_talk.h"

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

	r.answer.kind = (struct ask_kind){ { 3, { 0xffff, 0x8001, 0x0001 } }, .udp = 1,
					   .sole = 1 };
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
		TEST(ask_question__ends_with_the_broker),
		TEST(ask_question__ends_with_a_broker_that_hears_and_ends),
		TEST(ask_question__is_bounded_in_time),
		TEST(ask_question__looks_once_more),
		TEST(ask_kind__takes_the_table),
		TEST(ask_hello__is_bounded_in_time),
		cmocka_unit_test(ask_question__has_nobody_to_ask),
		TEST(ask_question__threads_have_each_its_own_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
