/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* Which ids may share a port, which may listen, which ports are drawn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../user/rdmacm/address.h"

static const struct ports_rules root = { .low = 32768, .high = 60999, .privileged = true };

struct bed {
	struct ports ports;
	struct port_use use[8];
};

static int bed_setup(void **state)
{
	*state = calloc(1, sizeof(struct bed));
	return *state ? 0 : -1;
}

static int bed_teardown(void **state)
{
	free(*state);
	return 0;
}

static struct address ipv4(u8 last, u16 port)
{
	return (struct address){ .ip = { { [10] = 0xff, 0xff, 10, 0, 0, last } }, .port = port };
}

static struct address ipv6(u8 last, u16 port)
{
	return (struct address){ .ip = { { 0xfd, [15] = last } }, .port = port };
}

static struct address any4(u16 port)
{
	return (struct address){ .ip = { { [10] = 0xff, 0xff } }, .port = port };
}

static struct address any6(u16 port)
{
	return (struct address){ .port = port };
}

static struct address loopback4(u16 port)
{
	return (struct address){ .ip = { { [10] = 0xff, 0xff, 127, 0, 0, 1 } }, .port = port };
}

static struct address link_local(u32 scope, u16 port)
{
	return (struct address){ .ip = { { 0xfe, 0x80, [15] = 1 } }, .scope = scope, .port = port };
}

enum { REUSE = 1, ONLY = 2 };

static int bind_in(struct bed *b, u32 i, enum cm_port_space space, struct address local, int flags)
{
	b->use[i] = (struct port_use){ .space = space,
				       .local = local,
				       .reuse = flags & REUSE,
				       .family_only = (flags & ONLY) || address_is_ipv4(&local) };
	return ports_bind(&b->ports, &b->use[i], &root);
}

static int bind_tcp(struct bed *b, u32 i, struct address local, int flags)
{
	return bind_in(b, i, CM_PS_TCP, local, flags);
}

static void ports_bind__two_at_one_port(void **state)
{
	const struct {
		struct address first, second;
		int first_flags, second_flags, want;
	} rows[] = {
		{ ipv4(1, 7), ipv4(1, 7), 0, 0, -EADDRINUSE },
		{ ipv4(1, 7), ipv4(1, 8), 0, 0, 0 },
		{ ipv4(1, 7), ipv4(2, 7), 0, 0, 0 },
		{ ipv4(1, 7), any4(7), 0, 0, -EADDRNOTAVAIL },
		{ any4(7), ipv4(1, 7), 0, 0, -EADDRNOTAVAIL },
		{ any4(7), any4(7), 0, 0, -EADDRNOTAVAIL },
		{ any4(7), any4(8), 0, 0, 0 },
		/* a loopback address is no interface's */
		{ loopback4(7), ipv4(1, 7), 0, 0, -EADDRNOTAVAIL },
		{ ipv6(1, 7), ipv6(1, 7), 0, 0, -EADDRINUSE },
		{ ipv6(1, 7), ipv6(2, 7), 0, 0, 0 },
		{ ipv6(1, 7), any6(7), 0, 0, -EADDRNOTAVAIL },
		{ link_local(1, 7), link_local(1, 7), 0, 0, -EADDRINUSE },
		{ link_local(1, 7), link_local(2, 7), 0, 0, 0 },
		/* both families */
		{ ipv4(1, 7), ipv6(1, 7), 0, 0, 0 },
		{ any4(7), any6(7), 0, 0, -EADDRNOTAVAIL },
		{ any6(7), any4(7), 0, 0, -EADDRNOTAVAIL },
		{ any6(7), ipv4(1, 7), 0, 0, -EADDRNOTAVAIL },
		{ any4(7), any6(7), 0, ONLY, 0 },
		{ any6(7), any4(7), ONLY, 0, 0 },
		{ any6(7), ipv6(1, 7), ONLY, ONLY, -EADDRNOTAVAIL },
		/* both must allow it */
		{ ipv4(1, 7), ipv4(1, 7), REUSE, REUSE, 0 },
		{ any4(7), any4(7), REUSE, REUSE, 0 },
		{ any4(7), ipv4(1, 7), REUSE, REUSE, 0 },
		{ ipv4(1, 7), ipv4(1, 7), REUSE, 0, -EADDRINUSE },
		{ ipv4(1, 7), ipv4(1, 7), 0, REUSE, -EADDRINUSE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bed *b = calloc(1, sizeof(*b));

		assert_int_equal(bind_tcp(b, 0, rows[i].first, rows[i].first_flags), 0);
		if (bind_tcp(b, 1, rows[i].second, rows[i].second_flags) != rows[i].want)
			fail_msg("row %zu", i);
		assert_int_equal(b->use[1].bound, rows[i].want == 0);
		free(b);
	}
	(void)state;
}

static void ports_bind__port_spaces_are_apart(void **state)
{
	const enum cm_port_space spaces[] = { CM_PS_TCP, CM_PS_UDP, CM_PS_IPOIB, CM_PS_IB };
	struct bed *b = *state;

	for (u32 i = 0; i < 4; i++)
		assert_int_equal(bind_in(b, i, spaces[i], any4(7), 0), 0);
	for (u32 i = 0; i < 4; i++)
		assert_int_equal(bind_in(b, 4 + i, spaces[i], any4(7), 0), -EADDRNOTAVAIL);
}

static void ports_bind__no_such_port_space(void **state)
{
	assert_int_equal(bind_in(*state, 0, (enum cm_port_space)0x107, any4(7), 0),
			 -EPROTONOSUPPORT);
}

static void ports_bind__privileged(void **state)
{
	struct ports_rules user = root;
	struct bed *b = *state;

	user.privileged = false;
	b->use[0].space = CM_PS_TCP;
	b->use[0].local = any4(1023);
	assert_int_equal(ports_bind(&b->ports, &b->use[0], &user), -EACCES);
	assert_int_equal(ports_bind(&b->ports, &b->use[0], &root), 0);
	b->use[1].space = CM_PS_TCP;
	b->use[1].local = any4(1024);
	assert_int_equal(ports_bind(&b->ports, &b->use[1], &user), 0);
}

static void ports_bind__draws_all_of_the_range_once(void **state)
{
	const u32 count = 5;
	struct bed *b = *state;
	u32 seen = 0;

	for (u32 i = 0; i < count; i++) {
		const struct ports_rules rules = { 65531, 65535, .random = 2 };

		b->use[i] = (struct port_use){ .space = CM_PS_TCP, .local = any4(0) };
		assert_int_equal(ports_bind(&b->ports, &b->use[i], &rules), 0);
		assert_in_range(b->use[i].local.port, 65531, 65535);
		if (!i)
			assert_int_equal(b->use[i].local.port, 65533);
		seen |= 1u << (b->use[i].local.port - 65531);
	}
	assert_int_equal(seen, 0x1f);
	b->use[5] = (struct port_use){ .space = CM_PS_TCP, .local = any4(0) };
	assert_int_equal(ports_bind(&b->ports, &b->use[5],
				    &(struct ports_rules){ .low = 65531, .high = 65535 }),
			 -EADDRNOTAVAIL);
	assert_false(b->use[5].bound);
}

static void ports_bind__draws_none_of_an_empty_range(void **state)
{
	struct bed *b = *state;

	b->use[0] = (struct port_use){ .space = CM_PS_TCP, .local = any4(0) };
	assert_int_equal(ports_bind(&b->ports, &b->use[0],
				    &(struct ports_rules){ .low = 5001, .high = 5000 }),
			 -EADDRNOTAVAIL);
}

static void ports_bind__draws_not_the_one_just_released(void **state)
{
	const struct ports_rules rules = { 5000, 5001, .random = 0 };
	struct bed *b = *state;

	for (u32 i = 0; i < 4; i++) {
		b->use[0] = (struct port_use){ .space = CM_PS_TCP, .local = any4(0) };
		assert_int_equal(ports_bind(&b->ports, &b->use[0], &rules), 0);
		assert_int_equal(b->use[0].local.port, 5000 + i % 2);
		ports_release(&b->ports, &b->use[0]);
	}
}

/* Two that draw from a range of one port. */
static void ports_bind__drawn_ports_of_different_connections(void **state)
{
	const struct {
		struct address local[2], remote[2];
		int want;
	} rows[] = {
		{ { ipv4(1, 0), ipv4(1, 0) }, { ipv4(8, 5), ipv4(8, 5) }, -EADDRNOTAVAIL },
		{ { ipv4(1, 0), ipv4(1, 0) }, { ipv4(8, 5), ipv4(8, 6) }, 0 },
		{ { ipv4(1, 0), ipv4(1, 0) }, { ipv4(8, 5), ipv4(9, 5) }, 0 },
		{ { ipv4(1, 0), ipv4(2, 0) }, { ipv4(8, 5), ipv4(8, 5) }, 0 },
		{ { any4(0), ipv4(2, 0) }, { ipv4(8, 5), ipv4(8, 5) }, -EADDRNOTAVAIL },
		{ { ipv4(1, 0), ipv4(1, 0) }, { ipv4(8, 5), any4(0) }, -EADDRNOTAVAIL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bed *b = calloc(1, sizeof(*b));
		int ret = 0;

		for (u32 j = 0; j < 2; j++) {
			b->use[j] = (struct port_use){ .space = CM_PS_TCP,
						       .local = rows[i].local[j],
						       .remote = rows[i].remote[j] };
			b->ports.last_drawn = 0;
			ret = ports_bind(&b->ports, &b->use[j],
					 &(struct ports_rules){ .low = 5000, .high = 5000 });
			if (!j)
				assert_int_equal(ret, 0);
		}
		if (ret != rows[i].want)
			fail_msg("row %zu: %d", i, ret);
		free(b);
	}
}

static void ports_bind__a_named_port_keeps_others_from_drawing_it(void **state)
{
	struct bed *b = *state;

	assert_int_equal(bind_tcp(b, 0, any4(5000), 0), 0);
	b->use[1] = (struct port_use){ .space = CM_PS_TCP, .local = any4(0) };
	assert_int_equal(ports_bind(&b->ports, &b->use[1],
				    &(struct ports_rules){ .low = 5000, .high = 5001 }),
			 0);
	assert_int_equal(b->use[1].local.port, 5001);
}

static void ports_listen__not_while_shared(void **state)
{
	struct bed *b = *state;

	assert_int_equal(bind_tcp(b, 0, ipv4(1, 7), REUSE), 0);
	assert_int_equal(bind_tcp(b, 1, ipv4(1, 7), REUSE), 0);
	assert_int_equal(ports_listen(&b->ports, &b->use[0]), -EADDRINUSE);
	assert_true(b->use[0].reuse);
	ports_release(&b->ports, &b->use[1]);
	assert_int_equal(ports_listen(&b->ports, &b->use[0]), 0);
	assert_int_equal(bind_tcp(b, 1, ipv4(1, 7), REUSE), -EADDRINUSE);
}

static void ports_listen__not_beside_a_wildcard(void **state)
{
	struct bed *b = *state;

	assert_int_equal(bind_tcp(b, 0, any4(7), REUSE), 0);
	assert_int_equal(bind_tcp(b, 1, ipv4(1, 7), REUSE), 0);
	assert_int_equal(ports_listen(&b->ports, &b->use[1]), -EADDRNOTAVAIL);
	assert_int_equal(bind_tcp(b, 2, ipv4(1, 8), 0), 0);
	assert_int_equal(ports_listen(&b->ports, &b->use[2]), 0);
}

static void ports_release__gives_the_port_back(void **state)
{
	struct bed *b = *state;

	/* of one bucket: the same port of several addresses, and another port */
	for (u8 i = 0; i < 4; i++)
		assert_int_equal(bind_tcp(b, i, ipv4(i + 1, 7), 0), 0);
	assert_int_equal(bind_tcp(b, 4, ipv4(1, 7 + PORTS_BUCKETS), 0), 0);
	ports_release(&b->ports, &b->use[1]);
	ports_release(&b->ports, &b->use[1]);
	assert_int_equal(bind_tcp(b, 1, ipv4(2, 7), 0), 0);
	for (u8 i = 0; i < 4; i++)
		assert_int_equal(bind_tcp(b, 5, ipv4(i + 1, 7), 0), -EADDRINUSE);
	assert_int_equal(bind_tcp(b, 6, ipv4(1, 7 + PORTS_BUCKETS), 0), -EADDRINUSE);
}

/* The range as it is by default: 28,232 connections to one address and port, and no more. */
static void ports_bind__as_many_as_the_range_has(void **state)
{
	const u32 count = 60999 - 32768 + 1;
	struct port_use *use = calloc(count + 1, sizeof(*use));
	struct bed *b = *state;

	for (u32 i = 0; i <= count; i++) {
		struct ports_rules rules = root;

		rules.random = i * 2654435761u;
		use[i] = (struct port_use){ .space = CM_PS_TCP,
					    .local = ipv4(1, 0),
					    .remote = ipv4(2, 5) };
		assert_int_equal(ports_bind(&b->ports, &use[i], &rules),
				 i < count ? 0 : -EADDRNOTAVAIL);
	}
	for (u32 i = 0; i < count; i++)
		ports_release(&b->ports, &use[i]);
	for (u32 i = 0; i < PORTS_BUCKETS; i++)
		assert_null(b->ports.bucket[i]);
	free(use);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(ports_bind__two_at_one_port),
		CASE(ports_bind__port_spaces_are_apart),
		CASE(ports_bind__no_such_port_space),
		CASE(ports_bind__privileged),
		CASE(ports_bind__draws_all_of_the_range_once),
		CASE(ports_bind__draws_none_of_an_empty_range),
		CASE(ports_bind__draws_not_the_one_just_released),
		CASE(ports_bind__drawn_ports_of_different_connections),
		CASE(ports_bind__a_named_port_keeps_others_from_drawing_it),
		CASE(ports_bind__as_many_as_the_range_has),
		CASE(ports_listen__not_while_shared),
		CASE(ports_listen__not_beside_a_wildcard),
		CASE(ports_release__gives_the_port_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
