/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * user/os/netdev_route.c against a real kernel, in a network namespace of the test's own: two
 * interfaces with routes over each. Needs root and `ip`.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

#include "../../user/os/netdev_nl.h"

static u32 va, vc; /* their indexes */

static void sh(const char *cmd)
{
	if (system(cmd) != 0)
		fail_msg("failed: %s", cmd);
}

static struct gid gid_of(const char *text)
{
	struct gid g = { { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, text, g.raw + 12) != 1 && inet_pton(AF_INET6, text, g.raw) != 1)
		fail_msg("not an address: %s", text);
	return g;
}

static int setup(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNET)) {
		fprintf(stderr, "test_netdev_route: cannot make network namespaces: run as root\n");
		return -1;
	}
	sh("ip link set lo up");
	sh("ip link add va type veth peer name vb; ip link add vc type veth peer name vd");
	sh("for i in va vb vc vd; do sysctl -qw net.ipv6.conf.$i.addr_gen_mode=1; done");
	sh("for i in va vb vc vd; do ip link set $i up; done");
	sh("ip addr add 10.9.0.1/24 dev va; ip addr add 10.9.0.7/24 dev va");
	sh("ip addr add 2001:db8::a/64 dev va nodad; ip addr add fe80::a/64 dev va nodad");
	sh("ip addr add 10.9.1.1/24 dev vc");
	sh("ip addr add 2001:db8:1::c/64 dev vc nodad; ip addr add fe80::c/64 dev vc nodad");
	/* local when the kernel has seen that the cables are in, a while later if it is busy */
	sh("for i in $(seq 200); do "
	   "[ $(ip -6 route show table local type local | grep -c '::[ac] dev v[ac] ') = 4 ] && "
	   "exit; sleep 0.05; done; exit 1");
	sh("ip addr add 10.9.9.9/32 dev lo");
	sh("ip route add default via 10.9.0.254; ip -6 route add default via fe80::fe dev vc");
	sh("ip route add 192.0.2.0/24 via 10.9.1.254 hoplimit 9");
	sh("ip route add 198.51.100.0/24 via 10.9.0.254 src 10.9.0.7");
	sh("ip route add unreachable 10.66.0.0/24; ip route add prohibit 10.67.0.0/24");
	sh("ip route add blackhole 10.68.0.0/24; ip route add throw 10.69.0.0/24");
	sh("ip -6 route add unreachable 2001:db8:66::/64");
	sh("ip route add 239.1.0.0/16 dev vc");
	sh("sysctl -qw net.ipv4.ip_default_ttl=61 net.ipv6.conf.va.hop_limit=62");
	va = if_nametoindex("va");
	vc = if_nametoindex("vc");
	return 0;
}

/* On a separate socket and in a session, which continues after the kernel's refusals. */
static int route(const struct gid *peer, const struct gid *local, u32 over, struct netdev_route *r)
{
	static struct netdev_session *session;
	struct netdev_route alone;
	int ret, want = netdev_route(NULL, peer, local, over, &alone);

	if (!session)
		assert_int_equal(netdev_session_open(&session), 0);
	ret = netdev_route(session, peer, local, over, r);
	assert_int_equal(ret, want);
	assert_memory_equal(r, &alone, ret ? 0 : sizeof(alone));
	return ret;
}

static void netdev_route__finds(void **state)
{
	const struct {
		const char *peer, *local;
		u32 over, want;
		const char *want_local;
		u8 hop_limit;
		bool is_local;
	} rows[] = {
		{ "10.9.0.2", NULL, 0, va, "10.9.0.1", 61, false },
		{ "10.9.1.2", NULL, 0, vc, "10.9.1.1", 61, false },
		{ "203.0.113.1", NULL, 0, va, "10.9.0.1", 61, false },
		{ "192.0.2.1", NULL, 0, vc, "10.9.1.1", 9, false },
		{ "198.51.100.1", NULL, 0, va, "10.9.0.7", 61, false },
		{ "10.9.0.2", "10.9.0.7", va, va, "10.9.0.7", 61, false },
		{ "2001:db8::5", NULL, 0, va, "2001:db8::a", 62, false },
		{ "2001:db8:77::5", NULL, 0, vc, "2001:db8:1::c", 64, false },
		{ "fe80::5", NULL, va, va, "fe80::a", 62, false },
		{ "fe80::5", NULL, vc, vc, "fe80::c", 64, false },
		/* of this host: the interface is the one with the address */
		{ "10.9.0.1", NULL, 0, va, "10.9.0.1", 61, true },
		{ "10.9.1.1", NULL, 0, vc, "10.9.1.1", 61, true },
		{ "2001:db8:1::c", NULL, 0, vc, "2001:db8:1::c", 64, true },
		{ "fe80::a", NULL, va, va, "fe80::a", 62, true },
		{ "10.9.0.1", "10.9.0.7", va, va, "10.9.0.7", 61, true },
		/* groups: by a route, or over the interface that is named */
		{ "239.1.2.3", NULL, 0, vc, "10.9.1.1", 61, false },
		{ "239.2.2.3", NULL, 0, va, "10.9.0.1", 61, false },
		{ "239.1.2.3", "10.9.0.1", va, va, "10.9.0.1", 61, false },
		{ "ff02::77", NULL, va, va, "fe80::a", 62, false },
	};
	struct netdev_route r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct gid peer = gid_of(rows[i].peer), want = gid_of(rows[i].want_local);
		const struct gid local = gid_of(rows[i].local ? rows[i].local : "::");
		int ret = route(&peer, rows[i].local ? &local : NULL, rows[i].over, &r);

		if (ret || r.ifindex != rows[i].want || !gid_equal(&r.local, &want) ||
		    r.hop_limit != rows[i].hop_limit || r.is_local != rows[i].is_local)
			fail_msg("row %zu: %d, interface %u, hop limit %u, local %d", i, ret,
				 r.ifindex, r.hop_limit, r.is_local);
	}
}

static void netdev_route__errors(void **state)
{
	const struct {
		const char *peer, *local;
		u32 over;
		int want;
	} rows[] = {
		{ "10.66.0.1", NULL, 0, -EHOSTUNREACH },
		{ "10.67.0.1", NULL, 0, -EACCES },
		{ "10.68.0.1", NULL, 0, -EINVAL },
		{ "2001:db8:66::1", NULL, 0, -EHOSTUNREACH },
		/* routes over other interfaces do not count */
		{ "203.0.113.1", "10.9.1.1", vc, -ENETUNREACH },
		{ "2001:db8:77::5", NULL, va, -ENETUNREACH },
		{ "10.9.9.9", NULL, 0, -ENODEV },
		{ "10.9.0.255", NULL, 0, -EINVAL },
		{ "255.255.255.255", NULL, 0, -EINVAL },
		{ "0.0.0.0", NULL, 0, -EINVAL },
		{ "::", NULL, 0, -EINVAL },
		{ "fe80::5", NULL, 0, -EINVAL },
		{ "10.9.0.2", "2001:db8::a", va, -EINVAL },
	};
	struct netdev_route r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct gid peer = gid_of(rows[i].peer);
		const struct gid local = gid_of(rows[i].local ? rows[i].local : "::");
		int ret = route(&peer, rows[i].local ? &local : NULL, rows[i].over, &r);

		if (ret != rows[i].want)
			fail_msg("row %zu: %d, not %d", i, ret, rows[i].want);
	}
}

static void netdev_route__no_route_at_all(void **state)
{
	const struct gid peers[] = { gid_of("203.0.113.1"), gid_of("10.69.0.1"),
				     gid_of("2001:db8:77::5") };
	struct netdev_route r;

	(void)state;
	sh("ip route del default; ip -6 route del default");
	for (size_t i = 0; i < ARRAY_SIZE(peers); i++)
		assert_int_equal(route(&peers[i], NULL, 0, &r), -ENETUNREACH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(netdev_route__finds),
		cmocka_unit_test(netdev_route__errors),
		cmocka_unit_test(netdev_route__no_route_at_all),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
