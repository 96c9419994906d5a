/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The packets that tx_gso.c hands to its packet socket, which a pair of Unix sockets replaces to
 * show each packet unchanged: its offload header, the order, and the fate of frames without room,
 * or without a reader. Needs root, for the packet socket that is made first.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frames.h"

#include "../../user/io/tx_gso.h"

#define LOOPBACK 1

static struct tx_gso gso;
static struct xroce_engine_stats stats;

static int setup(void **state)
{
	const char *why;
	int pair[2];

	seed = 0x1e0;
	memset(&stats, 0, sizeof(stats));
	assert_int_equal(tx_gso_open(&gso, LOOPBACK, &why), 0);
	assert_true(tx_gso_is_idle(&gso));
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	close(gso.fd);
	gso.fd = pair[0];
	far_end = pair[1];
	return 0;
}

static int teardown(void **state)
{
	tx_gso_close(&gso);
	if (far_end >= 0)
		close(far_end);
	return 0;
}

static void tx_gso_send__groups_and_singles(void **state)
{
	struct path a = random_path(&seed, false, false), b = random_path(&seed, false, false),
		    six = random_path(&seed, true, false);
	static const u32 want[] = { 5, 1, 1, 3, 1, 2, 0 };
	u32 n = 0, first = 0;

	for (u32 i = 0; i < 5; i++)
		make(n++, &a, 256);
	make(n++, &six, 256);
	make(n++, &six, 256);
	for (u32 i = 0; i < 3; i++)
		make(n++, &b, 4096);
	make(n++, &a, 64);
	make(n++, &a, 512);
	make(n++, &a, 64);
	assert_int_equal(tx_gso_send(&gso, frame, n, &stats), n);
	for (u32 i = 0; i < ARRAY_SIZE(want); i++) {
		u32 got = receive(first);

		assert_int_equal(got, want[i]);
		first += got;
	}
	assert_int_equal(first, n);
	assert_int_equal(stats.tx_gso, n);
	assert_int_equal(stats.tx_gso_sends, 6);
	assert_int_equal(stats.tx_lost, 0);
}

/*
 * More of each than one system call takes, and a receiver that has room for a few at a time:
 * nothing is lost, doubled or overtaken.
 */
static void tx_gso_send__no_room(void **state)
{
	struct path path[2] = { random_path(&seed, false, false),
				random_path(&seed, false, false) };
	const int some = 8192;

	assert_int_equal(setsockopt(gso.fd, SOL_SOCKET, SO_SNDBUF, &some, sizeof(some)), 0);
	for (u32 run = 1; run < 8; run++) {
		u32 sent = 0, got = 0, waits = 0;

		memset(&stats, 0, sizeof(stats));
		for (u32 i = 0; i < FRAMES; i++)
			make(i, &path[i / run % 2], 100 + i % 3);
		while (got < FRAMES) {
			u32 done = tx_gso_send(&gso, frame + sent, FRAMES - sent, &stats), more;

			assert_in_range(done, 0, FRAMES - sent);
			sent += done;
			waits += sent < FRAMES;
			/* one is taken or all are */
			for (u32 i = 0; (i == 0 || waits % 2) && (more = receive(got)); i++)
				got += more;
		}
		assert_int_equal(sent, FRAMES);
		assert_int_equal(receive(0), 0);
		assert_int_equal(stats.tx_gso, FRAMES);
		assert_int_equal(stats.tx_lost, 0);
		assert_true(waits > 0);
	}
}

/* Kernels that know no such super-packets get frames. */
static void tx_gso_send__refused(void **state)
{
	struct path path = random_path(&seed, false, false);

	for (u32 i = 0; i < 8; i++)
		make(i, &path, 256);
	gso.refused = true;
	assert_int_equal(tx_gso_send(&gso, frame, 8, &stats), 8);
	for (u32 i = 0; i < 8; i++)
		assert_int_equal(receive(i), 1);
	assert_int_equal(stats.tx_gso_sends, 8);
}

static void tx_gso_send__nobody_there(void **state)
{
	struct path path[2] = { random_path(&seed, false, false),
				random_path(&seed, false, false) };

	for (u32 i = 0; i < FRAMES; i++)
		make(i, &path[i / 3 % 2], 256);
	close(far_end);
	far_end = -1;
	assert_int_equal(tx_gso_send(&gso, frame, FRAMES, &stats), FRAMES);
	assert_int_equal(stats.tx_lost, FRAMES);
	assert_int_equal(stats.tx_gso, 0);
}

/*
 * From here on, a sendmmsg() of one packet ends with ENOBUFS: so the kernel reports that the last
 * of the cut frames was dropped.
 */
static bool refuse_lone_packets(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendmmsg, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOBUFS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = { ARRAY_SIZE(code), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/*
 * Returns the number of the check that failed; 0: none. Frames 0 to 4 and 5 to 7 are a super-packet
 * each.
 */
static int send_refused(void)
{
	if (!refuse_lone_packets())
		return 1;
	/* two of a reliable service share a call; one alone is refused, and to be tried again */
	if (tx_gso_send(&gso, frame, 8, &stats) != 8 || stats.tx_lost || receive(0) != 5 ||
	    receive(5) != 3)
		return 2;
	if (tx_gso_send(&gso, frame, 5, &stats) != 0 || stats.tx_lost)
		return 3;
	/* frames of another service go one by one, and each once at most */
	for (u32 i = 0; i < 8; i++) {
		buf[i][GSO_HEADER_BYTES] =
			i < 5 ? OPCODE(XROCE_UD, OP5_SEND_ONLY) : OPCODE(XROCE_UC, OP5_SEND_ONLY);
		/* one Q_Key */
		memset(buf[i] + GSO_HEADER_BYTES + sizeof(struct bth), 0, sizeof(__be32));
	}
	if (tx_gso_send(&gso, frame, 8, &stats) != 5 || stats.tx_lost != 5)
		return 4;
	if (tx_gso_send(&gso, frame + 5, 3, &stats) != 3 || stats.tx_lost != 8)
		return 5;
	return stats.tx_gso == 8 ? 0 : 6;
}

static void tx_gso_send__unreliable_once_at_most(void **state)
{
	struct path path[2] = { random_path(&seed, false, false),
				random_path(&seed, false, false) };
	int status;
	pid_t child;

	for (u32 i = 0; i < 8; i++)
		make(i, &path[i / 5], 256);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(send_refused());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void tx_gso_open__no_such_interface(void **state)
{
	struct tx_gso none;
	const char *why = NULL;

	assert_int_equal(tx_gso_open(&none, INT32_MAX, &why), -ENODEV);
	assert_string_equal(why, "binding a packet socket");
	tx_gso_close(&none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tx_gso_send__groups_and_singles, setup, teardown),
		cmocka_unit_test_setup_teardown(tx_gso_send__no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(tx_gso_send__refused, setup, teardown),
		cmocka_unit_test_setup_teardown(tx_gso_send__nobody_there, setup, teardown),
		cmocka_unit_test_setup_teardown(tx_gso_send__unreliable_once_at_most, setup,
						teardown),
		cmocka_unit_test(tx_gso_open__no_such_interface),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
