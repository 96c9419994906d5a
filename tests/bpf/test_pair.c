/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The path across a veth pair between two network namespaces (bpf/pair.h): a frame that crosses
 * keeps the client's Ethernet header, a frame that the kernel sends has another. If either end has
 * a hook that a crossing frame would bypass, the kernel sends it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/pkt_cls.h>
#include <linux/virtio_net.h>
#include <net/if.h>

#include "broker.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#define CLIENT	    1u
#define WAIT_MS	    10000
#define MACS	    12	/* bytes of both */
#define UDP_PORT_AT 36u /* of IPv4 */
#define SUPER_COUNT 20u

/* What the client writes; and what the kernel does, to the next hop that it knows. */
static const uint8_t client_macs[MACS] = { 2, 0, 0, 0, 0, 0x0c, 2, 0, 0, 0, 0, 0x0a };
static const uint8_t kernel_macs[MACS] = { 2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a };

static struct {
	int near_ns, far_ns, tap, wire, tc_prog, xdp_prog;
	uint32_t ifindex, far_ifindex;
} dev;

static struct frame f;
static struct frame_spec s;
static struct virtio_net_hdr vnet;
static uint8_t bytes[BENCH_BYTES], got[BENCH_BYTES];
static uint32_t len;

/* ---- devices ---- */

__attribute__((format(printf, 1, 2))) static void shell(const char *format, ...)
{
	char command[256];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (system(command))
		fail_msg("%s", command);
}

static void enter(int ns)
{
	assert_int_equal(setns(ns, CLONE_NEWNET), 0);
}

static int make_netns(void)
{
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

static void make_far_end(void)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };

	shell("ip link set vb addrgenmode none arp off mtu 4200 up");
	dev.far_ifindex = if_nametoindex("vb");
	at.sll_ifindex = (int)dev.far_ifindex;
	dev.wire = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(dev.wire, (const struct sockaddr *)&at, sizeof(at)), 0);
}

static void make_near_end(void)
{
	shell("ip link add va address 02:00:00:00:00:0a mtu 4200 type veth peer name vb address "
	      "02:00:00:00:00:0c netns /proc/%d/fd/%d",
	      (int)getpid(), dev.far_ns);
	shell("ip link set va addrgenmode none up && ip addr add 10.9.0.2/24 dev va && ip -6 addr "
	      "add fd00:9::2/64 dev va nodad");
	shell("ip neigh add 10.9.0.1 lladdr 02:00:00:00:00:0b dev va");
	shell("ip -6 neigh add fd00:9::1 lladdr 02:00:00:00:00:0b dev va");
}

static int make_tap(uint32_t *ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts,
		    .prog_fd = bpf_program__fd(broker->skel->progs.xroce_egress));
	struct ifreq ifr = { .ifr_name = "xrt0",
			     .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	assert_true(fd >= 0 && ioctl(fd, TUNSETIFF, &ifr) == 0);
	shell("ip link set xrt0 addrgenmode none arp off mtu 65521 up");
	*ifindex = if_nametoindex("xrt0");
	hook.ifindex = (int)*ifindex;
	assert_int_equal(bpf_tc_hook_create(&hook), 0);
	assert_int_equal(bpf_tc_attach(&hook, &opts), 0);
	return fd;
}

/* A program that passes everything. */
static int make_prog(enum bpf_prog_type type, int verdict, uint32_t flags)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = flags);
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = verdict },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(type, NULL, "GPL", insns, 2, &opts);

	assert_true(fd >= 0);
	return fd;
}

static int setup(void **state)
{
	if (broker_setup(state))
		return -1;
	dev.far_ns = make_netns();
	dev.near_ns = make_netns();
	make_near_end();
	enter(dev.far_ns);
	make_far_end();
	enter(dev.near_ns);
	dev.tap = make_tap(&dev.ifindex);
	dev.tc_prog = make_prog(BPF_PROG_TYPE_SCHED_CLS, TC_ACT_UNSPEC, 0);
	dev.xdp_prog = make_prog(BPF_PROG_TYPE_XDP, XDP_PASS, BPF_F_XDP_HAS_FRAGS);
	return 0;
}

static int teardown(void **state)
{
	const int fds[] = { dev.near_ns, dev.far_ns, dev.tap, dev.wire, dev.tc_prog, dev.xdp_prog };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		close(fds[i]);
	return broker_teardown(state);
}

static void put_pair(bool is_pair)
{
	const uint32_t zero = 0, ifindex = if_nametoindex("va");

	if (is_pair)
		broker_put(broker->skel->maps.xroce_pair, &zero, &ifindex);
	else
		bpf_map_delete_elem(bpf_map__fd(broker->skel->maps.xroce_pair), &zero);
}

/* ---- frames ---- */

/* The bytes of the next RoCEv2 frame at the other end; 0: there is none. */
static uint32_t read_frame(int timeout_ms, struct sockaddr_ll *from)
{
	struct pollfd pollfd = { .fd = dev.wire, .events = POLLIN };

	for (;;) {
		socklen_t from_len = sizeof(*from);
		ssize_t n = recvfrom(dev.wire, got, sizeof(got), 0, (struct sockaddr *)from,
				     &from_len);
		const uint32_t port_at =
			n > 20 && frame_get16(got + 12) == ETH_P_IPV6 ? UDP_PORT_AT + 20 :
									UDP_PORT_AT;

		if (n < 0 && poll(&pollfd, 1, timeout_ms) != 1)
			return 0;
		if (n >= 58 && from->sll_pkttype != PACKET_OUTGOING &&
		    frame_get16(got + port_at) == ROCE_UDP_PORT)
			return (uint32_t)n;
	}
}

static bool read_wire(int timeout_ms, struct sockaddr_ll *from)
{
	return read_frame(timeout_ms, from) == len;
}

/* The client's frame is one of s. */
static void make(void)
{
	frame_build(&f, &s);
	len = f.len;
	memcpy(bytes, f.bytes, len);
	memcpy(bytes, client_macs, MACS);
	vnet = (struct virtio_net_hdr){ 0 };
}

static void make_super(void)
{
	struct frame sum = { .l3 = 14, .l4 = 34 };
	const uint32_t size = f.len - f.bth;

	make();
	for (uint32_t i = 1; i < SUPER_COUNT; i++, len += size)
		memcpy(bytes + len, f.bytes + f.bth, size);
	memcpy(sum.bytes, bytes, 64);
	sum.len = len;
	frame_put16(sum.bytes + 18, (uint16_t)size);
	frame_put16(sum.bytes + 16, (uint16_t)(len - 14));
	frame_put16(sum.bytes + 38, (uint16_t)(len - 34));
	bench_sum_super(&sum);
	memcpy(bytes, sum.bytes, 64);
	vnet = (struct virtio_net_hdr){ .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
					.hdr_len = 42,
					.gso_size = (uint16_t)size,
					.csum_start = 34,
					.csum_offset = 6 };
}

/* Before each test: an RC packet, and a pair. */
static int reset(void **state)
{
	struct xroce_wire wire = { .ifindex = if_nametoindex("va"), .hairpin = dev.ifindex };
	const struct xroce_tap tap = { .client = CLIENT };
	const uint32_t zero = 0;
	struct sockaddr_ll from;

	broker_reset(bench_peer4);
	memcpy(wire.mac, client_macs + 6, sizeof(wire.mac));
	broker_put(broker->skel->maps.xroce_wire, &zero, &wire);
	broker_put(broker->skel->maps.xroce_tap, &dev.ifindex, &tap);
	put_pair(true);
	s = bench_spec();
	memcpy(s.src, bench_local4, 16);
	memcpy(s.dst, bench_peer4, 16);
	s.ecn_qpn = 0x4321;
	make();
	while (read_wire(0, &from))
		;
	return 0;
}

static bool sent(void)
{
	struct iovec piece[2] = { { &vnet, sizeof(vnet) }, { bytes, len } };

	return writev(dev.tap, piece, 2) == (ssize_t)(sizeof(vnet) + len);
}

static struct xroce_tap count(void)
{
	struct xroce_tap tap;

	bpf_map_lookup_elem(bpf_map__fd(broker->skel->maps.xroce_tap), &dev.ifindex, &tap);
	return tap;
}

/* It arrives, whole, with these MACs, and counts once. */
static void expect(const char *what, const uint8_t macs[MACS])
{
	const struct xroce_tap before = count();
	struct xroce_tap after;
	struct sockaddr_ll from;

	check(sent(), "%s: not written: %s", what, strerror(errno));
	check(read_wire(WAIT_MS, &from), "%s: did not arrive", what);
	check(memcmp(got, macs, MACS) == 0, "%s: came the other way", what);
	check(memcmp(got + MACS, bytes + MACS, len - MACS) == 0, "%s: another frame", what);
	if (macs == client_macs)
		check(from.sll_pkttype == PACKET_HOST, "%s: is not for the other end", what);
	check(!read_wire(0, &from), "%s: came twice", what);
	after = count();
	check(after.frames == before.frames + 1 && after.bytes == before.bytes + len &&
		      after.refused == before.refused,
	      "%s: counted otherwise", what);
}

static void expect_refused(const char *what)
{
	const struct xroce_tap before = count();
	struct sockaddr_ll from;

	check(sent(), "%s: not written: %s", what, strerror(errno));
	check(!read_wire(0, &from), "%s: arrived", what);
	check(count().refused == before.refused + 1, "%s: not refused", what);
}

/* ---- tests ---- */

static void pair__crosses(void **state)
{
	expect("a frame", client_macs);
	bytes[6] |= XROCE_ROUTED;
	expect("one that is not to be redirected", client_macs);
	s.payload_len = 4096;
	make();
	expect("a long one", client_macs);
	memcpy(s.src, bench_local6, 16);
	memcpy(s.dst, bench_peer6, 16);
	s.ipv6 = true;
	make();
	expect("IPv6", client_macs);
}

static void pair__crosses_whole(void **state)
{
	make_super();
	if (!sent())
		skip(); /* before 6.2 */
	reset(state);
	make_super();
	expect("a super-packet", client_macs);
	frame_put32(bytes + f.bth + 19 * (f.len - f.bth) + 4, 1);
	expect_refused("its last packet to QP 1");
}

/* An interface that takes no super-packets: the kernel cuts them; a single frame crosses. */
static void pair__interface_without_segmentation(void **state)
{
	const uint32_t size = f.len - f.bth;
	struct sockaddr_ll from;

	make_super();
	if (!sent())
		skip(); /* before 6.2 */
	reset(state);
	shell("ethtool -K va tx-udp-segmentation off >/dev/null");
	expect("a frame", client_macs);
	make_super();
	assert_true(sent());
	for (uint32_t i = 0; i < SUPER_COUNT; i++) {
		const uint32_t n = read_frame(WAIT_MS, &from);

		check(n == f.bth + size, "packet %u has %u bytes", i, n);
		check(memcmp(got, kernel_macs, MACS) == 0, "packet %u crossed", i);
	}
	check(!read_frame(0, &from), "more came");
	shell("ethtool -K va tx-udp-segmentation on >/dev/null");
	expect("a super-packet", client_macs);
}

/* The kernel writes an Ethernet header, where the client's is not one neighbour's from us. */
static void pair__addresses(void **state)
{
	struct sockaddr_ll from;

	/* which the kernel does not send either */
	bytes[0] |= 1;
	assert_true(sent());
	assert_false(read_wire(0, &from));
	make();
	bytes[11]++;
	expect("from another", kernel_macs);
	make();
	bytes[6] ^= 4;
	expect("from yet another", kernel_macs);
	make();
	memset(bytes, 0, 6);
	expect("to none, as the broker's own MADs", kernel_macs);
	make();
	expect("as it should be", client_macs);
}

static void pair__is_checked_as_all(void **state)
{
	memcpy(s.src, bench_peer4, 16);
	make();
	expect_refused("from another's address");
	memcpy(s.src, bench_local4, 16);
	s.ecn_qpn = 1;
	make();
	expect_refused("to QP 1");
	s.ecn_qpn = 0x4321;
	s.payload_len = 4200;
	make();
	expect_refused("longer than the interface's MTU allows");
}

static void pair__is_none(void **state)
{
	put_pair(false);
	expect("not in the map", kernel_macs);
	put_pair(true);
	expect("in the map", client_macs);
}

/* It would miss the program. */
static void pair__native_xdp_at_the_other_end(void **state)
{
	enter(dev.far_ns);
	assert_int_equal(bpf_xdp_attach((int)dev.far_ifindex, dev.xdp_prog, XDP_FLAGS_DRV_MODE,
					NULL),
			 0);
	enter(dev.near_ns);
	expect("native", kernel_macs);
	enter(dev.far_ns);
	assert_int_equal(bpf_xdp_detach((int)dev.far_ifindex, XDP_FLAGS_DRV_MODE, NULL), 0);
	assert_int_equal(bpf_xdp_attach((int)dev.far_ifindex, dev.xdp_prog, XDP_FLAGS_SKB_MODE,
					NULL),
			 0);
	enter(dev.near_ns);
	expect("generic", client_macs);
	enter(dev.far_ns);
	assert_int_equal(bpf_xdp_detach((int)dev.far_ifindex, XDP_FLAGS_SKB_MODE, NULL), 0);
	enter(dev.near_ns);
}

static void pair__filter_on_the_way_out(void **state)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)if_nametoindex("va"),
		    .attach_point = BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = dev.tc_prog);

	assert_int_equal(bpf_tc_hook_create(&hook), 0);
	assert_int_equal(bpf_tc_attach(&hook, &opts), 0);
	expect("a filter", kernel_macs);
	hook.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS;
	assert_int_equal(bpf_tc_hook_destroy(&hook), 0);
	expect("no filter", client_macs);
}

/* Of nftables, which not every kernel has. */
static void pair__netfilter_on_the_way_out(void **state)
{
	if (system("nft add table netdev t 2>/dev/null && nft add chain netdev t c '{ type filter "
		   "hook egress device va priority 0; }' 2>/dev/null"))
		skip();
	expect("a chain", kernel_macs);
	shell("nft delete table netdev t");
	expect("no chain", client_macs);
}

static void pair__queue_on_the_way_out(void **state)
{
	shell("tc qdisc add dev va root pfifo");
	expect("a queue", kernel_macs);
	shell("tc qdisc del dev va root");
	expect("no queue", client_macs);
}

/* A down interface sends nothing, and so nothing crosses. */
static void pair__is_down(void **state)
{
	struct sockaddr_ll from;

	shell("ip link set va down");
	assert_true(sent());
	assert_false(read_wire(0, &from));
	shell("ip link set va up && ip neigh replace 10.9.0.1 lladdr 02:00:00:00:00:0b dev va");
	expect("up again", client_macs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(pair__crosses, reset),
		cmocka_unit_test_setup(pair__crosses_whole, reset),
		cmocka_unit_test_setup(pair__interface_without_segmentation, reset),
		cmocka_unit_test_setup(pair__addresses, reset),
		cmocka_unit_test_setup(pair__is_checked_as_all, reset),
		cmocka_unit_test_setup(pair__is_none, reset),
		cmocka_unit_test_setup(pair__native_xdp_at_the_other_end, reset),
		cmocka_unit_test_setup(pair__filter_on_the_way_out, reset),
		cmocka_unit_test_setup(pair__netfilter_on_the_way_out, reset),
		cmocka_unit_test_setup(pair__queue_on_the_way_out, reset),
		cmocka_unit_test_setup(pair__is_down, reset),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
