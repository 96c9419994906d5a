/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * user/os against a real kernel, in two network namespaces of the test's own: this process's,
 * and a child's at the other end
 * of a veth pair. Needs root and `ip`, `ethtool`, `nsenter`; all of it goes away with the
 * processes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

#include "../../user/os/netdev_nl.h"

/* far more than an answer takes; without an answer RESOLVE_NONE_MS passes */
#define RESOLVE_MS 5000
#define RESOLVE_NONE_MS 100

static pid_t far;

__attribute__((format(printf, 1, 2))) static void sh(const char *fmt, ...)
{
	char cmd[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
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

static void assert_gid(const struct netdev *dev, u32 index, const char *text, u8 prefix_len)
{
	struct gid want = gid_of(text);

	assert_true(index < dev->num_gids);
	assert_memory_equal(dev->gid[index].gid.raw, want.raw, 16);
	assert_int_equal(dev->gid[index].prefix_len, prefix_len);
}

static struct netdev get(const char *name)
{
	struct netdev dev;

	assert_int_equal(netdev_find(name, &dev), 0);
	return dev;
}

/* The other end's namespace: a child that does nothing but hold it, and dies with us. */
static int far_start(void)
{
	int ready[2];
	char c;

	if (pipe(ready))
		return -1;
	far = fork();
	if (far == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET) || write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (far < 0 || read(ready[0], &c, 1) != 1)
		return -1;
	close(ready[0]);
	return 0;
}

static int setup(void **state)
{
	if (unshare(CLONE_NEWNET) || far_start()) {
		fprintf(stderr, "test_netdev: cannot make network namespaces: run as root\n");
		return -1;
	}
	unsetenv(NETDEV_ENV);
	sh("ip link set lo up");
	sh("ip link add va address 02:00:00:00:00:0a numrxqueues 4 numtxqueues 4 type veth "
	   "peer name vb address 02:00:00:00:00:0b netns %d", far);
	sh("ethtool -L va rx 2 tx 2");
	sh("sysctl -qw net.ipv6.conf.va.addr_gen_mode=1");
	sh("nsenter -t %d -n sysctl -qw net.ipv6.conf.vb.addr_gen_mode=1", far);
	sh("ip addr add fe80::a/64 dev va nodad");
	sh("ip addr add 2001:db8:2::a/64 dev va nodad preferred_lft 0");
	sh("ip addr add 2001:db8::a/64 dev va nodad");
	sh("ip addr add 10.9.0.1/24 dev va");
	sh("ip addr add 10.9.8.1/30 dev va");
	sh("ip addr add 10.9.8.1/28 dev va");
	sh("ip addr add 10.9.7.1 peer 10.9.7.2/32 dev va");
	sh("nsenter -t %d -n ip addr add 10.9.0.2/24 dev vb", far);
	sh("nsenter -t %d -n ip addr add 2001:db8::b/64 dev vb nodad", far);
	sh("nsenter -t %d -n ip addr add fe80::b/64 dev vb nodad", far);
	sh("nsenter -t %d -n ip link set vb up", far);
	sh("ip link set va mtu 4500 up");
	/* Without carrier, and so for ever tentative. */
	sh("ip link add vc type veth peer name vd");
	sh("ip link set vc up");
	sh("ip addr add 10.9.1.1/24 dev vc");
	sh("ip addr add 2001:db8:1::1/64 dev vc");
	sh("ip addr add 2001:db8:1::2/64 dev vc nodad");
	return 0;
}

static int teardown(void **state)
{
	kill(far, SIGKILL);
	waitpid(far, NULL, 0);
	return 0;
}

/* ---- netdev.c ---- */

static void netdev_list__usable_first_no_lo(void **state)
{
	struct netdev *list;
	int n = netdev_list(&list);

	assert_true(n >= 3); /* a kernel may add its own devices to each namespace */
	assert_string_equal(list[0].name, "va");
	for (int i = 0; i < n; i++)
		assert_false(list[i].is_loopback);
	free(list);
}

static void netdev_list__environment(void **state)
{
	struct netdev *list;

	setenv(NETDEV_ENV, "vc", 1);
	assert_int_equal(netdev_list(&list), 1);
	assert_string_equal(list[0].name, "vc");
	free(list);
	setenv(NETDEV_ENV, "nonesuch", 1);
	assert_int_equal(netdev_list(&list), 0);
	free(list);
	setenv(NETDEV_ENV, "", 1);
	assert_true(netdev_list(&list) >= 3);
	free(list);
	unsetenv(NETDEV_ENV);
}

static void netdev_find__errors(void **state)
{
	struct netdev dev;

	assert_int_equal(netdev_find("nonesuch", &dev), -ENODEV);
	assert_int_equal(netdev_find("a-name-longer-than-any-interface", &dev), -ENODEV);
	sh("ip tuntap add mode tun name tun9");
	assert_int_equal(netdev_find("tun9", &dev), -EOPNOTSUPP);
	sh("ip link del tun9");
}

static void netdev_find__fields(void **state)
{
	static const u8 mac[6] = { 2, 0, 0, 0, 0, 0x0a }, none[6];
	struct netdev dev = get("va");

	assert_int_equal(dev.ifindex, if_nametoindex("va"));
	assert_memory_equal(dev.mac, mac, 6);
	assert_int_equal(dev.mtu, 4500);
	assert_true(dev.is_up);
	assert_false(dev.is_loopback);
	assert_int_equal(dev.rx_queues, 2);
	assert_int_equal(dev.speed_mbps, 10000);

	dev = get("vc");
	assert_false(dev.is_up);
	dev = get("lo");
	assert_true(dev.is_up);
	assert_int_equal(dev.speed_mbps, 0);
	assert_int_equal(dev.rx_queues, 1);
	assert_memory_equal(dev.mac, none, 6);
}

static void netdev_find__gid_order(void **state)
{
	struct netdev dev = get("va");

	assert_int_equal(dev.num_gids, 6);
	assert_gid(&dev, 0, "10.9.0.1", 24);
	assert_gid(&dev, 1, "10.9.8.1", 30);
	assert_gid(&dev, 2, "10.9.7.1", 32);
	assert_gid(&dev, 3, "2001:db8::a", 64);
	assert_gid(&dev, 4, "2001:db8:2::a", 64);
	assert_gid(&dev, 5, "fe80::a", 64);

	dev = get("lo");
	assert_int_equal(dev.num_gids, 2);
	assert_gid(&dev, 0, "127.0.0.1", 8);
	assert_gid(&dev, 1, "::1", 128);
}

static void netdev_find__tentative_is_no_gid(void **state)
{
	struct netdev dev = get("vc");

	/* The link-local address that the kernel makes itself is tentative as well. */
	assert_int_equal(dev.num_gids, 2);
	assert_gid(&dev, 0, "10.9.1.1", 24);
	assert_gid(&dev, 1, "2001:db8:1::2", 64);
}

static void netdev_find__gid_table_is_bounded(void **state)
{
	struct netdev dev;

	sh("ip link add vmany type veth peer name vmany2");
	sh("for i in $(seq 1 80); do echo addr add 10.8.$i.1/24 dev vmany; done | ip -batch -");
	dev = get("vmany");
	assert_int_equal(dev.num_gids, XROCE_MAX_GID);
	assert_gid(&dev, 0, "10.8.1.1", 24);
	assert_gid(&dev, XROCE_MAX_GID - 1, "10.8.64.1", 24);
	sh("ip link del vmany");
}

static void netdev_refresh__follows(void **state)
{
	struct netdev dev;

	sh("ip link add vr type veth peer name vs");
	sh("ip addr add 10.7.0.1/24 dev vr");
	dev = get("vr");
	assert_int_equal(dev.num_gids, 1);
	assert_false(dev.is_up);
	sh("ip link set vs up; ip link set vr mtu 3000 up");
	sh("ip addr del 10.7.0.1/24 dev vr; ip addr add 10.7.0.5/24 dev vr");
	sh("ip link set vr down; ip link set vr name vr2; ip link set vr2 up");
	assert_int_equal(netdev_refresh(&dev), 0);
	assert_string_equal(dev.name, "vr2");
	assert_int_equal(dev.mtu, 3000);
	assert_gid(&dev, 0, "10.7.0.5", 24);
	sh("ip link del vr2");
	assert_int_equal(netdev_refresh(&dev), -ENODEV);
}

static void netdev_path_mtu__table(void **state)
{
	static const struct {
		u32 link_mtu;
		bool multibuffer;
		u32 want;
	} row[] = {
		{ 0, true, 0 },	       { 343, true, 0 },	   { 344, true, 256 },
		{ 1280, true, 1024 },  { 1500, true, 1024 },	   { 2135, true, 1024 },
		{ 2136, true, 2048 },  { 4183, true, 2048 },	   { 4184, true, 4096 },
		{ 65536, true, 4096 }, { UINT32_MAX, true, 4096 }, { 4500, false, 2048 },
		{ 9000, false, 2048 }, { 600, false, 512 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		assert_int_equal(netdev_path_mtu(row[i].link_mtu, row[i].multibuffer), row[i].want);
	for (u32 pmtu = 256; pmtu <= 4096; pmtu *= 2) {
		assert_int_equal(netdev_path_mtu(netdev_link_mtu_for(pmtu), true), pmtu);
		assert_int_equal(netdev_path_mtu(netdev_link_mtu_for(pmtu) - 1, true),
				 pmtu == 256 ? 0 : pmtu / 2);
	}
}

/* ---- netdev_route.c ---- */

static int resolve(const char *dev_name, const char *local, const char *peer, int timeout_ms,
		   struct path *out)
{
	static struct netdev_session *session;
	struct netdev dev = get(dev_name);
	struct gid l = gid_of(local), p = gid_of(peer);

	if (!session)
		assert_int_equal(netdev_session_open(&session), 0);
	memset(out, 0x5a, sizeof(*out));
	return netdev_resolve(session, &dev, &l, &p, timeout_ms, NULL, out);
}

static void netdev_resolve__reaches(void **state)
{
	static const u8 a[6] = { 2, 0, 0, 0, 0, 0x0a }, b[6] = { 2, 0, 0, 0, 0, 0x0b };
	static const struct {
		const char *local, *peer;
	} row[] = {
		{ "10.9.0.1", "10.9.0.2" },	    /* on link */
		{ "10.9.0.1", "10.9.0.2" },	    /* again: the entry exists */
		{ "10.9.0.1", "192.0.2.5" },	    /* by a gateway */
		{ "10.9.0.1", "198.51.100.5" },	    /* by an IPv6 gateway */
		{ "2001:db8::a", "2001:db8::b" },
		{ "2001:db8::a", "2001:db8:77::5" }, /* by a gateway that is link-local */
		{ "fe80::a", "fe80::b" },
		{ "10.9.0.1", "10.9.0.40" },	    /* static entry */
	};
	struct path path;

	sh("ip route add 192.0.2.0/24 via 10.9.0.2");
	sh("ip route add 198.51.100.0/24 via inet6 fe80::b dev va");
	sh("ip route add 2001:db8:77::/64 via fe80::b dev va");
	sh("ip neigh add 10.9.0.40 lladdr 02:00:00:00:00:0b dev va nud permanent");
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct gid l = gid_of(row[i].local), p = gid_of(row[i].peer);

		assert_int_equal(resolve("va", row[i].local, row[i].peer, RESOLVE_MS, &path), 0);
		assert_memory_equal(path.dmac, b, 6);
		assert_memory_equal(path.smac, a, 6);
		assert_true(gid_equal(&path.local, &l) && gid_equal(&path.peer, &p));
		assert_int_equal(path.is_ipv6, !gid_is_ipv4(&p));
		assert_false(path.has_vlan);
		/* Fields that the verbs layer chooses are left alone. */
		assert_int_equal(path.hop_limit, 0x5a);
		assert_int_equal(path.tos, 0x5a);
	}
}

/* Asks once, without waiting; the MAC that was heard is for a neighbour that is not known. */
static void netdev_resolve__heard(void **state)
{
	static const u8 heard[6] = { 2, 0, 0, 0, 0, 0x77 }, b[6] = { 2, 0, 0, 0, 0, 0x0b };
	const struct gid local = gid_of("10.9.0.1"), silent = gid_of("10.9.0.78"),
			 known = gid_of("10.9.0.41"), nowhere = gid_of("203.0.113.1");
	struct netdev dev = get("va");
	struct path path;

	sh("ip neigh add 10.9.0.41 lladdr 02:00:00:00:00:0b dev va nud permanent");
	/* a lookup sends no ARP request */
	assert_int_equal(netdev_resolve(NULL, &dev, &local, &silent, NETDEV_LOOK, NULL, &path),
			 -EHOSTUNREACH);
	sh("! ip neigh show dev va | grep -q '^10.9.0.78 '");
	assert_int_equal(netdev_resolve(NULL, &dev, &local, &silent, 0, NULL, &path),
			 -EHOSTUNREACH);
	sh("ip neigh show dev va | grep -q '^10.9.0.78 '");
	assert_int_equal(netdev_resolve(NULL, &dev, &local, &silent, RESOLVE_MS, heard, &path), 0);
	assert_memory_equal(path.dmac, heard, 6);
	/* the kernel's knowledge comes first, and its refusals are passed on */
	assert_int_equal(netdev_resolve(NULL, &dev, &local, &known, RESOLVE_MS, heard, &path), 0);
	assert_memory_equal(path.dmac, b, 6);
	assert_int_equal(netdev_resolve(NULL, &dev, &local, &known, NETDEV_LOOK, NULL, &path), 0);
	assert_memory_equal(path.dmac, b, 6);
	assert_int_equal(netdev_resolve(NULL, &dev, &local, &nowhere, 0, heard, &path),
			 -ENETUNREACH);
}

/* The result of an unprivileged process without a kernel entry; the last address is unused. */
static int resolve_unprivileged(void)
{
	static const struct {
		const char *local, *peer;
		int timeout_ms, want;
	} row[] = {
		{ "10.9.0.1", "10.9.0.2", RESOLVE_MS, 0 },
		{ "10.9.0.1", "192.0.2.5", RESOLVE_MS, 0 },
		{ "2001:db8::a", "2001:db8::b", RESOLVE_MS, 0 },
		{ "2001:db8::a", "2001:db8:77::5", RESOLVE_MS, 0 },
		{ "fe80::a", "fe80::b", RESOLVE_MS, 0 },
		{ "10.9.0.1", "10.9.0.77", RESOLVE_NONE_MS, -EHOSTUNREACH },
		{ "2001:db8::a", "2001:db8::77", RESOLVE_NONE_MS, -EHOSTUNREACH },
	};
	static const u8 b[6] = { 2, 0, 0, 0, 0, 0x0b };
	struct path path;

	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
	    setresuid(65534, 65534, 65534))
		return 100;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (resolve("va", row[i].local, row[i].peer, row[i].timeout_ms, &path) !=
			    row[i].want ||
		    (!row[i].want && memcmp(path.dmac, b, 6)))
			return (int)i + 1;
	return 0;
}

static void netdev_resolve__needs_no_privilege(void **state)
{
	int status;
	pid_t child;

	sh("ip neigh flush dev va");
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(resolve_unprivileged());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void netdev_resolve__own_gid_is_own_mac(void **state)
{
	static const u8 a[6] = { 2, 0, 0, 0, 0, 0x0a }, none[6];
	struct path path;

	assert_int_equal(resolve("va", "10.9.0.1", "10.9.8.1", 0, &path), 0);
	assert_memory_equal(path.dmac, a, 6);
	assert_memory_equal(path.smac, a, 6);
	assert_int_equal(resolve("lo", "::1", "::1", 0, &path), 0);
	assert_memory_equal(path.dmac, none, 6);
	assert_true(path.is_ipv6);
	/* Without a link, too. */
	assert_int_equal(resolve("vc", "10.9.1.1", "10.9.1.1", 0, &path), 0);
}

/*
 * The other end of a veth that is in the same namespace; over IPv4 the kernel does not resolve its
 * own address.
 */
static void netdev_resolve__another_interface(void **state)
{
	static const u8 d[6] = { 2, 0, 0, 0, 0, 0x0d };
	struct path path;

	sh("ip link add vx address 02:00:00:00:00:0c type veth peer name vy address "
	   "02:00:00:00:00:0d");
	/* no address is tentative: neighbour discovery needs a link-local one to ask from */
	sh("sysctl -qw net.ipv6.conf.vx.addr_gen_mode=1 net.ipv6.conf.vy.addr_gen_mode=1");
	sh("ip addr add fe80::c/64 dev vx nodad; ip addr add fe80::d/64 dev vy nodad");
	sh("ip link set vx up; ip addr add 10.9.20.1/24 dev vx; ip addr add 2001:db8:20::c/64 dev "
	   "vx nodad");
	sh("ip addr add 10.9.20.2/24 dev vy; ip addr add 10.9.21.2/24 dev vy");
	/* it is down, and does not answer */
	assert_int_equal(resolve("vx", "10.9.20.1", "10.9.20.2", RESOLVE_NONE_MS, &path),
			 -EHOSTUNREACH);
	sh("ip link set vy up; ip addr add 2001:db8:20::d/64 dev vy nodad");
	/* they send nothing until the kernel has handled the new carrier */
	sh("for i in vx vy; do until ip link show $i | grep -q 'state UP'; do :; done; done");
	assert_int_equal(resolve("vx", "10.9.20.1", "10.9.20.2", RESOLVE_MS, &path), 0);
	assert_memory_equal(path.dmac, d, 6);
	assert_int_equal(resolve("vx", "2001:db8:20::c", "2001:db8:20::d", RESOLVE_MS, &path), 0);
	assert_memory_equal(path.dmac, d, 6);
	/* as a router */
	sh("ip route add 192.0.2.128/25 via 10.9.20.2 dev vx");
	assert_int_equal(resolve("vx", "10.9.20.1", "192.0.2.130", RESOLVE_MS, &path), 0);
	assert_memory_equal(path.dmac, d, 6);
	/* no route leads to it over this interface; the address is unused */
	assert_int_equal(resolve("vx", "10.9.20.1", "10.9.21.2", RESOLVE_NONE_MS, &path),
			 -ENETUNREACH);
	assert_int_equal(resolve("vx", "10.9.20.1", "10.9.20.3", RESOLVE_NONE_MS, &path),
			 -EHOSTUNREACH);
	sh("ip link del vx");
}

static void netdev_resolve__multicast(void **state)
{
	static const u8 four[6] = { 0x01, 0x00, 0x5e, 0x01, 0x02, 0x03 },
			six[6] = { 0x33, 0x33, 0x12, 0x34, 0x56, 0x78 };
	struct path path;

	assert_int_equal(resolve("va", "10.9.0.1", "239.129.2.3", 0, &path), 0);
	assert_memory_equal(path.dmac, four, 6);
	assert_int_equal(resolve("va", "2001:db8::a", "ff0e::1234:5678", 0, &path), 0);
	assert_memory_equal(path.dmac, six, 6);
}

static void netdev_resolve__errors(void **state)
{
	static const struct {
		const char *dev, *local, *peer;
		int want;
	} row[] = {
		{ "va", "10.9.0.9", "10.9.0.2", -EINVAL },	  /* not ours */
		{ "va", "10.9.1.1", "10.9.0.2", -EINVAL },	  /* another interface's */
		{ "va", "10.9.0.1", "2001:db8::b", -EINVAL },	  /* families differ */
		{ "va", "2001:db8::a", "10.9.0.2", -EINVAL },
		{ "va", "10.9.0.1", "255.255.255.255", -EINVAL },
		{ "va", "10.9.0.1", "10.9.0.255", -EINVAL },	  /* broadcast of the subnet */
		{ "va", "10.9.0.1", "0.0.0.0", -EINVAL },
		{ "va", "2001:db8::a", "::", -EINVAL },
		{ "va", "10.9.0.1", "203.0.113.1", -ENETUNREACH }, /* no route */
		{ "va", "2001:db8::a", "2001:db8:99::1", -ENETUNREACH },
		{ "va", "10.9.0.1", "10.66.0.1", -ENETUNREACH },   /* route of type unreachable */
		{ "va", "10.9.0.1", "10.67.0.1", -ENETUNREACH },   /* blackhole */
		{ "va", "10.9.0.1", "10.68.0.1", -ENETUNREACH },   /* prohibit */
		{ "va", "2001:db8::a", "2001:db8:66::1", -ENETUNREACH },
		{ "lo", "127.0.0.1", "10.9.0.2", -ENETUNREACH },
		{ "lo", "127.0.0.1", "127.0.0.9", -ENETUNREACH },
		{ "va", "10.9.0.1", "10.9.0.77", -EHOSTUNREACH },  /* no neighbour there */
		{ "va", "2001:db8::a", "2001:db8::77", -EHOSTUNREACH },
		{ "va", "fe80::a", "fe80::77", -EHOSTUNREACH },
	};
	struct path path;

	sh("ip route add unreachable 10.66.0.0/24; ip route add blackhole 10.67.0.0/24; ip route "
	   "add prohibit 10.68.0.0/24");
	sh("ip route add unreachable 2001:db8:66::/64");
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		int ret = resolve(row[i].dev, row[i].local, row[i].peer, RESOLVE_NONE_MS, &path);

		if (ret != row[i].want)
			fail_msg("%s: %s to %s: %d, want %d", row[i].dev, row[i].local, row[i].peer,
				 ret, row[i].want);
	}
}

/*
 * A failure that the kernel remembers from before is no answer to a new question: the peer may be
 * there by now.
 */
static void netdev_resolve__after_failure(void **state)
{
	struct path path;

	sh("sysctl -qw net.ipv4.neigh.va.retrans_time_ms=20");
	assert_int_equal(resolve("va", "10.9.0.1", "10.9.0.50", RESOLVE_MS, &path), -EHOSTUNREACH);
	sh("ip neigh show dev va 10.9.0.50 | grep -q FAILED");
	sh("nsenter -t %d -n ip addr add 10.9.0.50/24 dev vb", far);
	assert_int_equal(resolve("va", "10.9.0.1", "10.9.0.50", RESOLVE_MS, &path), 0);
}

/* ---- netdev_holder.c ---- */

static void netdev_hold__one_at_a_time(void **state)
{
	u32 ifindex = if_nametoindex("va");
	char comm[32];
	pid_t pid = 1;
	int fd;

	assert_int_equal(netdev_holder(ifindex, &pid, comm, sizeof(comm)), -ENOENT);
	fd = netdev_hold(ifindex);
	assert_true(fd >= 0);
	assert_int_equal(netdev_hold(ifindex), -EBUSY);
	prctl(PR_SET_NAME, "a\033[2Jname");
	assert_int_equal(netdev_holder(ifindex, &pid, comm, sizeof(comm)), 0);
	assert_int_equal(pid, getpid());
	assert_string_equal(comm, "a?[2Jname");
	assert_int_equal(netdev_holder(ifindex + 1, &pid, comm, sizeof(comm)), -ENOENT);
	close(fd);
	assert_int_equal(netdev_holder(ifindex, &pid, comm, sizeof(comm)), -ENOENT);
	fd = netdev_hold(ifindex);
	assert_true(fd >= 0);
	close(fd);
}

/* Another user's process has the name: that neither keeps us off nor passes for the holder. */
static void netdev_hold__a_name_is_no_proof(void **state)
{
	u32 ifindex = if_nametoindex("va");
	int up[2], down[2], status;
	char comm[32], byte;
	pid_t pid = 1, child;

	assert_int_equal(pipe(up), 0);
	assert_int_equal(pipe(down), 0);
	child = fork();
	if (child == 0) {
		close(down[1]);
		if (setresuid(65534, 65534, 65534) || netdev_hold(ifindex) < 0 ||
		    write(up[1], "", 1) != 1)
			_exit(1);
		_exit(read(down[0], &byte, 1) != 0);
	}
	close(up[1]);
	assert_int_equal(read(up[0], &byte, 1), 1);
	assert_int_equal(netdev_hold(ifindex), -EPERM);
	assert_int_equal(netdev_holder(ifindex, &pid, comm, sizeof(comm)), -EPERM);
	assert_int_equal(pid, child);
	close(down[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(netdev_holder(ifindex, &pid, comm, sizeof(comm)), -ENOENT);
	close(up[0]);
	close(down[0]);
}

/* The errno of netdev_holder() for the user nobody. holds: the owner is that user. */
static int holder_to_nobody(u32 ifindex, bool holds)
{
	const pid_t child = fork();
	char comm[32];
	int status;
	pid_t pid;

	if (child == 0) {
		if (setresuid(65534, 65534, 65534) || (holds && netdev_hold(ifindex) < 0))
			_exit(255);
		_exit(-netdev_holder(ifindex, &pid, comm, sizeof(comm)));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void netdev_hold__roots_and_ones_own_count(void **state)
{
	const u32 ifindex = if_nametoindex("va");
	int fd;

	assert_int_equal(holder_to_nobody(ifindex, true), 0);
	fd = netdev_hold(ifindex);
	assert_true(fd >= 0);
	assert_int_equal(holder_to_nobody(ifindex, false), 0);
	close(fd);
	assert_int_equal(holder_to_nobody(ifindex, false), ENOENT);
}

/* ---- netdev_link.c ---- */

static void netdev_xdp_features__veth_and_lo(void **state)
{
	u64 features;
	int ret = netdev_xdp_features(if_nametoindex("va"), &features);

	if (ret == -ENOENT)
		skip(); /* a kernel before 6.3 */
	assert_int_equal(ret, 0);
	assert_true(features & NETDEV_XDP_BASIC);
	assert_true(features & NETDEV_XDP_REDIRECT);
	assert_int_equal(netdev_xdp_features(if_nametoindex("lo"), &features), 0);
	assert_false(features & NETDEV_XDP_BASIC);
	assert_int_equal(netdev_xdp_features(0x7ffffff, &features), -ENODEV);
}

static void netdev_driver__names(void **state)
{
	char driver[32];

	assert_int_equal(netdev_driver("va", driver, sizeof(driver)), 0);
	assert_string_equal(driver, "veth");
	assert_int_equal(netdev_driver("nonesuch", driver, sizeof(driver)), -ENODEV);
}

/* ---- netdev_nl.c ---- */

static void nl_parse__lengths(void **state)
{
	const struct nlattr *tb[4];
	_Alignas(8) char buf[64] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nlattr *attr;
	char text[4];
	u32 v = 7;

	mnl_attr_put_u32(nlh, 1, 42);
	mnl_attr_put_u16(nlh, 2, 43);
	mnl_attr_put_u32(nlh, 3, 44);
	mnl_attr_put_u32(nlh, 4, 45); /* beyond the table */
	nl_parse(nlh, 0, tb, 3);
	assert_true(nl_get(tb[1], &v, sizeof(v)));
	assert_int_equal(v, 42);
	assert_false(nl_get(tb[2], &v, sizeof(v)));
	assert_int_equal(v, 42);
	assert_false(nl_get(tb[0], &v, sizeof(v)));

	/*
	 * An attribute that claims more than the message has, one shorter than its own header, a
	 * message shorter than its family header.
	 */
	attr = (struct nlattr *)tb[3];
	attr->nla_len = 60;
	nl_parse(nlh, 0, tb, 3);
	assert_non_null(tb[2]);
	assert_null(tb[3]);
	attr->nla_len = 3;
	nl_parse(nlh, 0, tb, 3);
	assert_null(tb[3]);
	nl_parse(nlh, 1000, tb, 3);
	assert_null(tb[1]);

	nlh = mnl_nlmsg_put_header(buf);
	mnl_attr_put(nlh, 1, 3, "abc"); /* no NUL */
	mnl_attr_put(nlh, 2, 4, "abcd");
	mnl_attr_put(nlh, 3, 1, "");
	nl_parse(nlh, 0, tb, 3);
	assert_true(nl_get_string(tb[1], text, sizeof(text)));
	assert_string_equal(text, "abc");
	assert_false(nl_get_string(tb[2], text, sizeof(text)));
	assert_false(nl_get_string(tb[3], text, sizeof(text)));
	assert_false(nl_get_string(NULL, text, sizeof(text)));
}

/* A process that has used a device keeps the namespace's number where there is no /proc. */
static void netdev_netns__without_proc(void **state)
{
	char dir[] = "/tmp/xroce-test-XXXXXX";
	const u64 before = netdev_netns();
	int status = -1;
	pid_t pid;

	assert_true(before);
	assert_non_null(mkdtemp(dir));
	pid = fork();
	if (!pid)
		_exit(chroot(dir) || chdir("/") || !access("/proc", F_OK) ||
		      netdev_netns() != before);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	rmdir(dir);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(netdev_list__usable_first_no_lo),
		cmocka_unit_test(netdev_list__environment),
		cmocka_unit_test(netdev_find__errors),
		cmocka_unit_test(netdev_find__fields),
		cmocka_unit_test(netdev_find__gid_order),
		cmocka_unit_test(netdev_find__tentative_is_no_gid),
		cmocka_unit_test(netdev_find__gid_table_is_bounded),
		cmocka_unit_test(netdev_refresh__follows),
		cmocka_unit_test(netdev_netns__without_proc),
		cmocka_unit_test(netdev_path_mtu__table),
		cmocka_unit_test(netdev_resolve__reaches),
		cmocka_unit_test(netdev_resolve__heard),
		cmocka_unit_test(netdev_resolve__needs_no_privilege),
		cmocka_unit_test(netdev_resolve__own_gid_is_own_mac),
		cmocka_unit_test(netdev_resolve__another_interface),
		cmocka_unit_test(netdev_resolve__multicast),
		cmocka_unit_test(netdev_resolve__errors),
		cmocka_unit_test(netdev_resolve__after_failure),
		cmocka_unit_test(netdev_hold__one_at_a_time),
		cmocka_unit_test(netdev_hold__a_name_is_no_proof),
		cmocka_unit_test(netdev_hold__roots_and_ones_own_count),
		cmocka_unit_test(netdev_xdp_features__veth_and_lo),
		cmocka_unit_test(netdev_driver__names),
		cmocka_unit_test(nl_parse__lengths),
	};

	return cmocka_run_group_tests_name("netdev", tests, setup, teardown);
}
