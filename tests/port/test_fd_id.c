/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* What the library does to descriptors that the program has closed: nothing. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/unit.h"

#include "../../user/client/ask.h"
#include "../../user/os/fd_id.h"

/* In the place of the C library's. */
static bool is_refused;

int fstat(int fd, struct stat *st)
{
	if (is_refused) {
		errno = EPERM;
		return -1;
	}
	return fstatat(fd, "", st, AT_EMPTY_PATH);
}

static int socket_of_program(void)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

static void fd_id_is__only_the_same_socket(void **state)
{
	const int fd = socket_of_program(), other = socket_of_program();
	const struct fd_id id = fd_id_of(fd);

	assert_true(fd_id_is(fd, id));
	assert_false(fd_id_is(other, id));
	/* another number of the same socket, as ask_hello() may move the connection */
	assert_int_equal(dup2(fd, other), other);
	assert_true(fd_id_is(other, id));
	close(other);
	assert_false(fd_id_is(other, id));
	assert_false(fd_id_is(-1, fd_id_of(-1)));
	/* a filter that refuses fstat(2) does not end the conversation */
	is_refused = true;
	assert_true(fd_id_is(fd, id));
	assert_true(fd_id_is(fd, fd_id_of(fd)));
	is_refused = false;
	assert_true(fd_id_is(fd, (struct fd_id){ 0 }));
	close(fd);
}

/* A question to a number that has become the program's socket sends nothing there. */
static void ask__leaves_the_programs_socket(void **state)
{
	struct asker a;
	int pair[2], programs[2];
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, programs), 0);
	ask_init(&a);
	ask_begin(&a, pair[0]);
	assert_true(ask_is_whole(&a));
	assert_int_equal(dup2(programs[0], pair[0]), pair[0]);
	assert_false(ask_is_whole(&a));
	assert_int_equal(ask_arrived(&a), -EPIPE);
	ask_leave(&a);
	assert_int_equal(recv(programs[1], &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	/* it was not shut down */
	assert_int_equal(send(pair[0], "", 1, 0), 1);
	assert_int_equal(recv(programs[1], &byte, 1, MSG_DONTWAIT), 1);
	for (u32 i = 0; i < 2; i++) {
		close(pair[i]);
		close(programs[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fd_id_is__only_the_same_socket),
		cmocka_unit_test(ask__leaves_the_programs_socket),
	};

	return cmocka_run_group_tests_name("fd_id", tests, NULL, NULL);
}
