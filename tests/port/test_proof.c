/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* What a socket proves to a broker, with sock_diag(7) and on a kernel without it. */
#define _GNU_SOURCE
#include "../unit/unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../user/client/prove.h"
#include "../../user/broker/proof.h"

#define NONCE 0x89abcdefu
#define USER  1234

static const struct ask_challenge challenge = { .nonce = NONCE, .first_port = 1024 };

static void assert_rights(enum proof_way way, u32 port, struct rights want)
{
	struct rights rights;

	assert_int_equal(proof_read(way, &challenge, port, &rights), 0);
	assert_int_equal(rights.here, want.here);
	assert_int_equal(rights.admin, want.admin);
	assert_int_equal(rights.raw, want.raw);
	assert_int_equal(rights.low_ports, want.low_ports);
}

static void proof_find_way__this_kernel_has_sock_diag(void **state)
{
	assert_int_equal(proof_find_way(), PROOF_BY_DIAG);
}

static void proof_read__of_root(void **state)
{
	u32 port;
	const int fd = prove_open(&challenge, &port);

	assert_true(fd >= 0);
	assert_true(port < 1024);
	assert_rights(PROOF_BY_DIAG, port, (struct rights){ true, true, true, true });
	assert_rights(PROOF_BY_BIND, port, (struct rights){ true, false, false, true });
	close(fd);
	assert_rights(PROOF_BY_DIAG, port, (struct rights){ 0 });
	assert_rights(PROOF_BY_BIND, port, (struct rights){ 0 });
}

static void proof_read__of_a_user(void **state)
{
	u32 port;
	int fd;

	assert_int_equal(seteuid(USER), 0);
	fd = prove_open(&challenge, &port);
	assert_int_equal(seteuid(0), 0);
	assert_true(fd >= 0);
	assert_true(port >= 1024);
	assert_rights(PROOF_BY_DIAG, port, (struct rights){ .here = true });
	assert_rights(PROOF_BY_BIND, port, (struct rights){ .here = true });
	close(fd);
}

static void allow_ports(const char *range)
{
	const int fd = open("/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, range, strlen(range)), strlen(range));
	close(fd);
}

/* A user has bound all ports that the kernel chooses from. */
static void prove_open__takes_a_port_outside_a_full_range(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int taken[4], fd;
	u32 port;

	allow_ports("40000 40003");
	for (u32 i = 0; i < 4; i++) {
		taken[i] = socket(AF_INET, SOCK_DGRAM, 0);
		at.sin_port = htons((u16)(40000 + i));
		assert_int_equal(bind(taken[i], (struct sockaddr *)&at, sizeof(at)), 0);
	}
	assert_int_equal(seteuid(USER), 0);
	fd = prove_open(&challenge, &port);
	assert_int_equal(seteuid(0), 0);
	assert_true(fd >= 0);
	assert_rights(PROOF_BY_DIAG, port, (struct rights){ .here = true });
	close(fd);
	for (u32 i = 0; i < 4; i++)
		close(taken[i]);
	allow_ports("32768 60999");
}

static void proof_read__no_other_port_or_address(void **state)
{
	const struct ask_challenge other = { .nonce = NONCE ^ 1, .first_port = 1024 };
	static const u32 wrong[] = { 0, 1 << 16, UINT32_MAX };
	struct rights rights;
	u32 port;
	const int fd = prove_open(&challenge, &port);

	assert_true(fd >= 0);
	for (enum proof_way way = PROOF_BY_DIAG; way <= PROOF_BY_BIND; way++) {
		assert_rights(way, port ^ 1, (struct rights){ 0 });
		assert_rights(way, port | 1 << 16, (struct rights){ 0 });
		for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
			assert_rights(way, wrong[i], (struct rights){ 0 });
		assert_int_equal(proof_read(way, &other, port, &rights), 0);
		assert_false(rights.here);
	}
	close(fd);
}

static void proof_read__not_of_another_network_namespace(void **state)
{
	const int before = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	u32 port;
	int fd;

	assert_true(before >= 0);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	fd = prove_open(&challenge, &port);
	assert_true(fd >= 0);
	assert_rights(PROOF_BY_BIND, port, (struct rights){ true, false, false, true });
	assert_int_equal(setns(before, CLONE_NEWNET), 0);
	assert_rights(PROOF_BY_DIAG, port, (struct rights){ 0 });
	assert_rights(PROOF_BY_BIND, port, (struct rights){ 0 });
	close(fd);
	close(before);
}

/* A socket at all addresses takes the port of the proof's address, and proves nothing. */
static void proof_read__not_by_a_socket_of_all_addresses(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	assert_rights(PROOF_BY_DIAG, ntohs(at.sin_port), (struct rights){ 0 });
	assert_rights(PROOF_BY_BIND, ntohs(at.sin_port), (struct rights){ 0 });
	close(fd);
}

/* A broker that may not bind low ports asks for none. */
static void proof_first_port__without_the_capability(void **state)
{
	assert_int_equal(proof_first_port(PROOF_BY_BIND, 1024), 1024);
	assert_int_equal(seteuid(USER), 0);
	assert_int_equal(proof_first_port(PROOF_BY_BIND, 1024), 0);
	assert_int_equal(proof_first_port(PROOF_BY_DIAG, 1024), 1024);
	assert_int_equal(seteuid(0), 0);
}

static void assert_starter(bool all)
{
	struct rights rights;

	assert_int_equal(proof_of_starter(&rights), 0);
	assert_true(rights.here);
	assert_int_equal(rights.admin, all);
	assert_int_equal(rights.raw, all);
	assert_false(rights.low_ports);
}

static void proof_of_starter__has_this_threads_rights(void **state)
{
	assert_starter(true);
	assert_int_equal(seteuid(USER), 0);
	assert_starter(false);
	assert_int_equal(seteuid(0), 0);
	assert_starter(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proof_find_way__this_kernel_has_sock_diag),
		cmocka_unit_test(proof_read__of_root),
		cmocka_unit_test(proof_read__of_a_user),
		cmocka_unit_test(prove_open__takes_a_port_outside_a_full_range),
		cmocka_unit_test(proof_read__no_other_port_or_address),
		cmocka_unit_test(proof_read__not_of_another_network_namespace),
		cmocka_unit_test(proof_read__not_by_a_socket_of_all_addresses),
		cmocka_unit_test(proof_first_port__without_the_capability),
		cmocka_unit_test(proof_of_starter__has_this_threads_rights),
	};

	if (unshare(CLONE_NEWNET)) {
		perror("unshare");
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
