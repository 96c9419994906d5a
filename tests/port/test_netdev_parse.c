/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The netlink parsers of user/os against messages that the kernel would not send: real ones,
 * cut at every length and with
 * bytes changed, before a page that must not be touched. The sources are included, for their static
 * functions.
 */
#define _GNU_SOURCE
#include "../../user/os/netdev.c"
#include "../../user/os/netdev_route.c"

#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

#define MUTATIONS 4000 /* of each message */
#define MAX_MESSAGES 64

static struct nlmsghdr *message[MAX_MESSAGES];
static u32 num_messages;
static u8 *guard; /* the page that must not be touched */

static int collect_cb(const struct nlmsghdr *nlh, void *arg)
{
	if (num_messages < MAX_MESSAGES) {
		message[num_messages] = malloc(nlh->nlmsg_len);
		memcpy(message[num_messages++], nlh, nlh->nlmsg_len);
	}
	return MNL_CB_OK;
}

static void collect(u16 type, size_t header_bytes)
{
	char buf[NL_REQUEST_BYTES] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	u32 before = num_messages;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_DUMP;
	mnl_nlmsg_put_extra_header(nlh, header_bytes);
	assert_int_equal(nl_request(NETLINK_ROUTE, nlh, collect_cb, NULL), 0);
	assert_true(num_messages > before);
}

static int setup(void **state)
{
	const long page = sysconf(_SC_PAGESIZE);
	u8 *area =
		mmap(NULL, 17 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		return -1;
	guard = area + 16 * page;
	if (mprotect(guard, page, PROT_NONE) || unshare(CLONE_NEWNET)) {
		fprintf(stderr,
			"test_netdev_parse: cannot make a network namespace: run as root\n");
		return -1;
	}
	if (system("ip link set lo up && ip link add va type veth peer name vb && ip link set va "
		   "up && ip link set vb up && "
		   "ip addr add 10.9.0.1/24 dev va && ip addr add 10.9.1.1 peer 10.9.1.2/32 dev va "
		   "&& "
		   "ip addr add 2001:db8::a/64 dev va nodad && ip route add 192.0.2.0/24 via "
		   "10.9.0.2 && "
		   "ip route add 198.51.100.0/24 via inet6 fe80::b dev va && ip -6 route add "
		   "2001:db8:77::/64 via 2001:db8::b && "
		   "ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:0b dev va && ip neigh add "
		   "2001:db8::b lladdr 02:00:00:00:00:0b dev va"))
		return -1;
	collect(RTM_GETLINK, sizeof(struct ifinfomsg));
	collect(RTM_GETADDR, sizeof(struct ifaddrmsg));
	collect(RTM_GETROUTE, sizeof(struct rtmsg));
	collect(RTM_GETNEIGH, sizeof(struct ndmsg));
	return 0;
}

static int teardown(void **state)
{
	while (num_messages)
		free(message[--num_messages]);
	return 0;
}

/* The first len bytes of m, right before the guard page, saying that they are all. */
static struct nlmsghdr *place(const struct nlmsghdr *m, u32 len)
{
	struct nlmsghdr *at = (void *)(guard - MNL_ALIGN(len));

	memcpy(at, m, len);
	at->nlmsg_len = len;
	return at;
}

/* Feeds every parser with it; accepted data must be consistent. Returns how many accepted it. */
static int feed(const struct nlmsghdr *nlh)
{
	struct route_answer r = { 0 };
	struct neighbour n = { 0 };
	struct netdev dev;
	struct address a;
	int taken = 0;
	u32 queues;

	if (link_parse(nlh, &dev, &queues)) {
		taken++;
		assert_true(dev.ifindex > 0);
		assert_in_range(strnlen(dev.name, sizeof(dev.name)), 1, sizeof(dev.name) - 1);
	}
	if (address_parse(nlh, &a)) {
		taken++;
		assert_in_range(a.class, 0, ADDR_CLASSES - 1);
	}
	assert_int_equal(route_cb(nlh, &r), MNL_CB_OK);
	if (r.answered && !r.malformed) {
		taken++;
		assert_true(r.gateway.len <= sizeof(r.gateway.addr));
	}
	assert_int_equal(neighbour_cb(nlh, &n), MNL_CB_OK);
	taken += n.has_mac;
	return taken;
}

static void parsers__take_what_the_kernel_sends(void **state)
{
	int taken = 0;

	for (u32 i = 0; i < num_messages; i++)
		taken += feed(place(message[i], message[i]->nlmsg_len));
	/* va, vb and lo; six addresses at least; the routes; two neighbours. */
	assert_true(taken >= 15);
}

static void parsers__cut_at_every_length(void **state)
{
	for (u32 i = 0; i < num_messages; i++)
		for (u32 len = MNL_NLMSG_HDRLEN; len < message[i]->nlmsg_len; len++)
			feed(place(message[i], len));
}

static void parsers__bytes_changed(void **state)
{
	u64 x = 0x9e3779b97f4a7c15; /* xorshift64: the same run each time */

	for (u32 i = 0; i < num_messages; i++) {
		for (u32 k = 0; k < MUTATIONS; k++) {
			struct nlmsghdr *m = place(message[i], message[i]->nlmsg_len);
			u8 *body = mnl_nlmsg_get_payload(m);
			u32 n = m->nlmsg_len - MNL_NLMSG_HDRLEN;

			for (u32 changes = 1 + k % 4; changes; changes--) {
				x ^= x << 13;
				x ^= x >> 7;
				x ^= x << 17;
				body[(x >> 16) % n] = (u8)x;
			}
			feed(m);
		}
	}
}

/*
 * A message as a driver of hardware has it: with the name of the device that the interface is of.
 */
static void link_parse__is_hardware(void **state)
{
	u8 buf[8192] __attribute__((aligned(4)));
	struct nlmsghdr *nlh = (void *)buf;
	struct netdev dev;
	u32 queues, links = 0;

	for (u32 i = 0; i < num_messages; i++) {
		if (message[i]->nlmsg_type != RTM_NEWLINK)
			continue;
		assert_true(message[i]->nlmsg_len < sizeof(buf) - 64);
		memcpy(buf, message[i], message[i]->nlmsg_len);
		if (!link_parse(nlh, &dev, &queues))
			continue;
		links++;
		assert_false(dev.is_hardware);
		mnl_attr_put_strz(nlh, IFLA_PARENT_DEV_NAME, "0000:01:00.0");
		assert_true(link_parse(nlh, &dev, &queues));
		assert_true(dev.is_hardware);
	}
	assert_int_equal(links, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parsers__take_what_the_kernel_sends),
		cmocka_unit_test(parsers__cut_at_every_length),
		cmocka_unit_test(parsers__bytes_changed),
		cmocka_unit_test(link_parse__is_hardware),
	};

	return cmocka_run_group_tests_name("netdev_parse", tests, setup, teardown);
}
