/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* Addresses of programs, and the functions that compute with them. */
#include <setjmp.h>
#include <stdarg.h>

#include <arpa/inet.h>
#include <infiniband/ib.h>

#include <cmocka.h>

#include "../../user/rdmacm/address.h"

static struct sockaddr_storage sockaddr_of(const char *text, u16 port, u32 scope)
{
	struct sockaddr_storage out = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&out;

	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		in6->sin6_scope_id = scope;
	}
	return out;
}

static bool get(struct address *a, const char *text, u16 port, u32 scope)
{
	const struct sockaddr_storage sa = sockaddr_of(text, port, scope);

	return address_get(a, (const struct sockaddr *)&sa);
}

static void address_get__kinds(void **state)
{
	const struct {
		const char *text;
		bool ipv4, any, link_local, multicast;
	} rows[] = {
		{ "10.1.2.3", true, false, false, false },
		{ "0.0.0.0", true, true, false, false },
		{ "127.0.0.1", true, true, false, false },
		{ "127.9.9.9", true, true, false, false },
		{ "223.255.255.255", true, false, false, false },
		{ "224.0.0.1", true, false, false, true },
		{ "239.255.255.255", true, false, false, true },
		{ "240.0.0.1", true, false, false, false },
		{ "2001:db8::1", false, false, false, false },
		{ "::", false, true, false, false },
		{ "::1", false, true, false, false },
		{ "fe80::1", false, false, true, false },
		{ "febf::1", false, false, true, false },
		{ "fec0::1", false, false, false, false },
		{ "ff02::1", false, false, false, true },
	};
	struct address a;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_true(get(&a, rows[i].text, 7471, 3));
		if (address_is_ipv4(&a) != rows[i].ipv4 || address_is_any(&a) != rows[i].any ||
		    address_is_link_local(&a) != rows[i].link_local ||
		    address_is_multicast(&a) != rows[i].multicast)
			fail_msg("%s", rows[i].text);
		assert_int_equal(a.port, 7471);
		assert_int_equal(a.scope, rows[i].link_local ? 3 :
					  rows[i].multicast && !rows[i].ipv4 ? 3 : 0);
	}
}

static void address_get__none_of_ours(void **state)
{
	struct sockaddr_ib ib = { .sib_family = AF_IB };
	struct address a;

	(void)state;
	assert_false(get(&a, "::ffff:10.1.2.3", 1, 0));
	assert_false(address_get(&a, (const struct sockaddr *)&ib));
}

static void address_put__keeps_the_rest(void **state)
{
	struct sockaddr_storage sa = sockaddr_of("fe80::1", 7, 2);
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&sa;
	struct address a, b;

	(void)state;
	in6->sin6_flowinfo = htonl(0x12345);
	assert_true(get(&a, "fe80::2", 8, 5));
	address_put(&a, (struct sockaddr *)&sa);
	assert_true(address_get(&b, (struct sockaddr *)&sa));
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(in6->sin6_flowinfo, htonl(0x12345));
	sa = sockaddr_of("10.0.0.1", 7, 0);
	assert_true(get(&a, "10.0.0.2", 8, 0));
	address_put(&a, (struct sockaddr *)&sa);
	assert_true(address_get(&b, (struct sockaddr *)&sa));
	assert_memory_equal(&a, &b, sizeof(a));
}

static void address_equal__scopes(void **state)
{
	struct address a, b;

	(void)state;
	assert_true(get(&a, "fe80::1", 1, 2) && get(&b, "fe80::1", 9, 2));
	assert_true(address_equal(&a, &b));
	assert_true(get(&b, "fe80::1", 1, 3));
	assert_false(address_equal(&a, &b));
	assert_true(get(&b, "fe80::2", 1, 2));
	assert_false(address_equal(&a, &b));
}

static void address_bytes__families(void **state)
{
	struct sockaddr sa = { .sa_family = AF_INET };

	(void)state;
	assert_int_equal(address_bytes(&sa), sizeof(struct sockaddr_in));
	sa.sa_family = AF_INET6;
	assert_int_equal(address_bytes(&sa), sizeof(struct sockaddr_in6));
	sa.sa_family = AF_IB;
	assert_int_equal(address_bytes(&sa), sizeof(struct sockaddr_ib));
	sa.sa_family = AF_UNIX;
	assert_int_equal(address_bytes(&sa), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_bytes__families),
		cmocka_unit_test(address_get__kinds),
		cmocka_unit_test(address_get__none_of_ours),
		cmocka_unit_test(address_put__keeps_the_rest),
		cmocka_unit_test(address_equal__scopes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
