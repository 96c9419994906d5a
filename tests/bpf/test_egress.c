/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program behind a client's TAP device (xroce_egress), with devices as a broker makes them.
 * What a client writes comes out of the interface or into the ring of the process here that it is
 * to, or is refused for the one right reason. A client writes what it likes: frames, and what the
 * kernel is to do to them.
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
#include <linux/virtio_net.h>
#include <net/if.h>

#include "broker.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#define UDP_AT	   34
#define MTU	   4200
#define WAIT_MS	   10000
#define FRAME_IP   14 /* where it is in all frames that are not refused */
#define ME	   0  /* the client that sends */
#define OTHER	   1
#define PRIVILEGED OTHER

static struct {
	int tap[BROKER_CLIENTS], hairpin_fd, wire;
	uint32_t ifindex[BROKER_CLIENTS], hairpin;
} dev;

static struct frame f;
/* A frame that is longer than struct frame's, and what came out. */
static struct {
	uint8_t bytes[BENCH_BYTES];
	uint32_t len;
} big, out;

/* ---- the devices ---- */

static void shell(const char *command)
{
	if (system(command))
		fail_msg("%s", command);
}

static int make_tap(const char *name, uint32_t *ifindex)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	char command[128];

	strcpy(ifr.ifr_name, name);
	assert_true(fd >= 0 && ioctl(fd, TUNSETIFF, &ifr) == 0);
	snprintf(command, sizeof(command),
		 "ip link set %s addrgenmode none arp off mtu 65521 up", name);
	shell(command);
	*ifindex = if_nametoindex(name);
	return fd;
}

static void attach(uint32_t ifindex, enum bpf_tc_attach_point point, const struct bpf_program *prog)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = point);
	LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = bpf_program__fd(prog));

	assert_int_equal(bpf_tc_attach(&hook, &opts), 0);
}

/* Behind a TAP device and, if it is not NULL, on the way to it. */
static void guard(uint32_t ifindex, const struct bpf_program *in, const struct bpf_program *to)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);

	assert_int_equal(bpf_tc_hook_create(&hook), 0);
	attach(ifindex, BPF_TC_INGRESS, in);
	if (to)
		attach(ifindex, BPF_TC_EGRESS, to);
}

static void put_wire(void)
{
	const struct xroce_wire wire = { .ifindex = if_nametoindex("va"), .hairpin = dev.hairpin };
	const uint32_t zero = 0;

	assert_int_equal(bpf_map_update_elem(bpf_map__fd(broker->skel->maps.xroce_wire), &zero,
					     &wire, BPF_ANY),
			 0);
}

static void put_alive(bool alive)
{
	const int map = bpf_map__fd(broker->skel->maps.xroce_alive);
	const int fd = bpf_program__fd(broker->skel->progs.xroce_egress);
	const uint32_t zero = 0;

	if (alive)
		assert_int_equal(bpf_map_update_elem(map, &zero, &fd, BPF_ANY), 0);
	else
		assert_int_equal(bpf_map_delete_elem(map, &zero), 0);
}

static int open_wire(void)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET,
					.sll_protocol = htons(ETH_P_ALL),
					.sll_ifindex = (int)if_nametoindex("vb") };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int bytes = 8 << 20;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static int setup(void **state)
{
	if (broker_setup(state) || unshare(CLONE_NEWNET))
		return -1;
	shell("ip link set lo up");
	shell("ip link add va address 02:00:00:00:00:0a type veth peer name vb address "
	      "02:00:00:00:00:0b");
	shell("ip link set va mtu 4200 up");
	shell("ip link set vb addrgenmode none arp off mtu 4200 up");
	shell("ip addr add 10.9.0.2/24 dev va");
	shell("ip -6 addr add fd00:9::2/64 dev va nodad");
	shell("ip neigh add 10.9.0.1 lladdr 02:00:00:00:00:0b dev va");
	shell("ip -6 neigh add fd00:9::1 lladdr 02:00:00:00:00:0b dev va");
	dev.tap[0] = make_tap("xrt0", &dev.ifindex[0]);
	dev.tap[1] = make_tap("xrt1", &dev.ifindex[1]);
	dev.hairpin_fd = make_tap("xrh", &dev.hairpin);
	for (int c = 0; c < BROKER_CLIENTS; c++)
		guard(dev.ifindex[c], broker->skel->progs.xroce_tap_in,
		      broker->skel->progs.xroce_shut);
	guard(dev.hairpin, broker->skel->progs.xroce_shut, NULL);
	assert_int_equal(bpf_xdp_attach((int)dev.hairpin,
					bpf_program__fd(broker->skel->progs.xroce_mux),
					XDP_FLAGS_SKB_MODE, NULL),
			 0);
	put_wire();
	put_alive(true);
	dev.wire = open_wire();
	return dev.wire < 0;
}

static int teardown(void **state)
{
	for (int c = 0; c < BROKER_CLIENTS; c++)
		close(dev.tap[c]);
	close(dev.hairpin_fd);
	close(dev.wire);
	return broker_teardown(state);
}

static void put_tap(int client)
{
	const struct xroce_tap tap = { .client = (uint32_t)client,
				       .privileged = client == PRIVILEGED };

	assert_int_equal(bpf_map_update_elem(bpf_map__fd(broker->skel->maps.xroce_tap),
					     &dev.ifindex[client], &tap, BPF_ANY),
			 0);
}

static uint32_t udp_port_at(void)
{
	return (frame_get16(out.bytes + 12) == ETH_P_IP ? UDP_AT : UDP_AT + 20) + 2;
}

/*
 * A frame that has come out of the interface, into out; false: none in this time. The kernel has
 * some of its own to send.
 */
static bool read_wire(int timeout_ms)
{
	struct pollfd pollfd = { .fd = dev.wire, .events = POLLIN };

	for (;;) {
		ssize_t n = recv(dev.wire, out.bytes, sizeof(out.bytes), 0);

		if (n < 0 && poll(&pollfd, 1, timeout_ms) != 1)
			return false;
		if (n >= 58 && frame_get16(out.bytes + udp_port_at()) == ROCE_UDP_PORT) {
			out.len = (uint32_t)n;
			return true;
		}
	}
}

static void reset(void)
{
	broker_reset(bench_local4);
	put_tap(ME);
	put_tap(OTHER);
	while (read_wire(0))
		;
}

/* ---- sending, and what has become of it ---- */

struct counts {
	union {
		struct xroce_refused refused;
		uint64_t of[XROCE_EGRESS_COUNT];
	};
	struct xroce_tap tap;
};

static const char *reason_name(int reason)
{
	static const char *const name[] = {
#define X(reason_name, text) #reason_name,
		XROCE_EGRESS_REASONS(X)
#undef X
	};

	return reason == XROCE_EGRESS_none ? "none" : name[reason - 1];
}

static struct counts count(int client)
{
	struct counts c = { 0 };

	bench_sum_percpu(bpf_map__fd(broker->skel->maps.xroce_refused), c.of, sizeof(c.refused));
	bpf_map_lookup_elem(bpf_map__fd(broker->skel->maps.xroce_tap), &dev.ifindex[client],
			    &c.tap);
	return c;
}

static bool sent(int client, const struct virtio_net_hdr *vnet, const uint8_t *bytes, uint32_t len)
{
	/* as `ip tuntap` has it: 10 bytes */
	struct iovec piece[2] = { { (void *)vnet, sizeof(*vnet) }, { (void *)bytes, len } };

	return writev(dev.tap[client], piece, 2) == (ssize_t)(sizeof(*vnet) + len);
}

/* Counters: for one reason, or none, and with that to the wire or round. */
static void check_counts(const char *what, int client, const struct counts *before, int reason,
			 uint32_t frames, uint32_t hairpin, uint32_t bytes)
{
	const struct counts after = count(client);

	for (int i = XROCE_EGRESS_none + 1; i < XROCE_EGRESS_END; i++)
		check(after.of[i - 1] - before->of[i - 1] == (i == reason),
		      "%s: the counter of %s moved by %llu, wanted %s", what, reason_name(i),
		      (unsigned long long)(after.of[i - 1] - before->of[i - 1]),
		      reason_name(reason));
	if (reason == XROCE_EGRESS_unknown_tap)
		return;
	check(after.tap.refused - before->tap.refused == (reason != XROCE_EGRESS_none),
	      "%s: tap.refused", what);
	check(after.tap.frames - before->tap.frames == frames, "%s: tap.frames", what);
	check(after.tap.hairpin - before->tap.hairpin == hairpin, "%s: tap.hairpin", what);
	check(after.tap.bytes - before->tap.bytes == bytes, "%s: tap.bytes", what);
}

static void expect_refused_by(int client, const char *what, enum xroce_egress_reason reason,
			      const struct virtio_net_hdr *vnet, const uint8_t *bytes, uint32_t len)
{
	const struct counts before = count(client);

	check(sent(client, vnet, bytes, len), "%s: not written: %s", what, strerror(errno));
	check_counts(what, client, &before, reason, 0, 0, 0);
	check(!read_wire(0), "%s: came out", what);
	for (int c = 0; c < BROKER_CLIENTS; c++) {
		broker_read(c);
		check(!broker->client[c].records, "%s: came to client %d", what, c);
	}
}

static const struct virtio_net_hdr plain;

static void expect_refused(const char *what, enum xroce_egress_reason reason)
{
	expect_refused_by(ME, what, reason, &plain, f.bytes, f.len);
}

static void expect_wire_by(int client, const char *what, const struct virtio_net_hdr *vnet,
			   const uint8_t *bytes, uint32_t len)
{
	static const uint8_t macs[12] = { 2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a };
	const struct counts before = count(client);

	check(sent(client, vnet, bytes, len), "%s: not written: %s", what, strerror(errno));
	check_counts(what, client, &before, XROCE_EGRESS_none, 1, 0, len);
	check(read_wire(WAIT_MS), "%s: did not come out", what);
	check(out.len == len, "%s: %u bytes came out, want %u", what, out.len, len);
	check(memcmp(out.bytes, macs, sizeof(macs)) == 0, "%s: other MACs", what);
	check(memcmp(out.bytes + sizeof(macs), bytes + sizeof(macs), len - sizeof(macs)) == 0,
	      "%s: another frame came out", what);
}

static void expect_wire(const char *what)
{
	expect_wire_by(ME, what, &plain, f.bytes, f.len);
}

/* To a QP of client `to`. */
static void expect_round(const char *what, int to, const struct virtio_net_hdr *vnet,
			 const uint8_t *bytes, uint32_t len)
{
	const struct counts before = count(ME);
	struct broker_client *c = &broker->client[to];

	broker_read(to);
	check(sent(ME, vnet, bytes, len), "%s: not written: %s", what, strerror(errno));
	check_counts(what, ME, &before, XROCE_EGRESS_none, 0, 1, len);
	/* it comes by the CPU's backlog */
	for (int ms = 0; ms < WAIT_MS && !c->records; ms++) {
		broker_read(to);
		if (!c->records)
			usleep(1000);
	}
	check(c->records == 1 && c->len == len, "%s: %u records, the last of %u bytes", what,
	      c->records, c->len);
	check(memcmp(c->frame, bytes, len) == 0, "%s: another frame", what);
	check(!read_wire(0), "%s: came out", what);
}

/* ---- frames ---- */

/* From this interface's address to the peer's, an RC SEND_ONLY. */
static struct frame_spec spec(void)
{
	struct frame_spec s = bench_spec();

	memcpy(s.src, bench_local4, 16);
	memcpy(s.dst, bench_peer4, 16);
	s.ecn_qpn = 0x4321;
	return s;
}

static void ipv6(struct frame_spec *s)
{
	s->ipv6 = true;
	memcpy(s->src, bench_local6, 16);
	memcpy(s->dst, bench_peer6, 16);
}

static void ud(struct frame_spec *s)
{
	s->opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY);
	s->ext_len = 8;
	frame_put32(s->ext, BROKER_QKEY);
	frame_put32(s->ext + 4, BROKER_UD(ME));
}

static void arp(void)
{
	frame_put16(f.bytes + 12, ETH_P_ARP);
}

static void ethertype_ipv6(void)
{
	frame_put16(f.bytes + 12, ETH_P_IPV6);
}

static void ethertype_ipv4(void)
{
	frame_put16(f.bytes + 12, ETH_P_IP);
}

static void tag(struct frame_spec *s)
{
	s->tags = 1;
	s->tag_proto[0] = ETH_P_8021Q;
	s->tag_tci[0] = 5;
}

static void priority_tag(struct frame_spec *s)
{
	tag(s);
	s->tag_tci[0] = 0;
}

static void provider_tag(struct frame_spec *s)
{
	tag(s);
	s->tag_proto[0] = ETH_P_8021AD;
}

static void two_tags(struct frame_spec *s)
{
	tag(s);
	s->tags = 2;
	s->tag_proto[1] = ETH_P_8021Q;
}

static void options(struct frame_spec *s)
{
	s->option_bytes = 4;
}

static void most_options(struct frame_spec *s)
{
	s->option_bytes = 40;
}

static void tcp(struct frame_spec *s)
{
	s->protocol = 6;
}

static void another_port(struct frame_spec *s)
{
	s->dport = 4790;
}

static void version_5(void)
{
	f.bytes[FRAME_IP] = 0x55;
}

static void version_6(void)
{
	f.bytes[FRAME_IP] = 0x65;
}

static void header_of_16(void)
{
	f.bytes[FRAME_IP] = 0x44;
}

static void first_fragment(void)
{
	frame_put16(f.bytes + FRAME_IP + 6, 0x2000);
}

static void last_fragment(void)
{
	frame_put16(f.bytes + FRAME_IP + 6, 0x0001);
}

static void evil_bit(void)
{
	frame_put16(f.bytes + FRAME_IP + 6, 0x8000);
}

static void ip_length(int more)
{
	frame_put16(f.bytes + FRAME_IP + 2, (uint16_t)(f.len - FRAME_IP + (uint32_t)more));
}

static void ip_length_more(void)
{
	ip_length(1);
}

static void both_lengths_more(void)
{
	ip_length(4);
	frame_put16(f.bytes + f.l4 + 4, (uint16_t)(f.len - f.l4 + 4));
}

static void ip_length_less(void)
{
	ip_length(-4);
}

static void ip_length_0(void)
{
	frame_put16(f.bytes + FRAME_IP + 2, 0);
}

static void udp_length_more(void)
{
	frame_put16(f.bytes + f.l4 + 4, (uint16_t)(f.len - f.l4 + 1));
}

static void udp_length_less(void)
{
	frame_put16(f.bytes + f.l4 + 4, (uint16_t)(f.len - f.l4 - 4));
}

static void udp_length_0(void)
{
	frame_put16(f.bytes + f.l4 + 4, 0);
}

static void padding(void)
{
	f.len += 4;
}

static void cut_to(uint32_t len)
{
	f.len = len;
	frame_fix_lengths(&f);
}

static void no_bth(void)
{
	cut_to(f.bth);
}

static void bth_and_no_icrc(void)
{
	cut_to(f.bth + 12);
}

static void no_deth(void)
{
	cut_to(f.bth + 16);
}

static void cut_in_ip(void)
{
	f.len = FRAME_IP + 19;
}

static void cut_in_udp(void)
{
	f.len = f.l4 + 7;
}

static void ethernet_alone(void)
{
	f.len = 14;
}

static void ipv6_cut(void)
{
	f.len = FRAME_IP + 39;
}

static void ipv6_version_4(void)
{
	f.bytes[FRAME_IP] = 0x40;
}

static void ipv6_another_header(void)
{
	f.bytes[FRAME_IP + 6] = 136; /* UDP-Lite */
}

static void ipv6_length_0(void)
{
	frame_put16(f.bytes + FRAME_IP + 4, 0);
}

static void ipv6_length_more(void)
{
	frame_put16(f.bytes + FRAME_IP + 4, (uint16_t)(f.len - f.l4 + 1));
}

/* An extension header of 8 bytes before UDP. */
static void ipv6_extension(uint8_t kind)
{
	uint8_t *ext = f.bytes + f.l4;

	memmove(ext + 8, ext, f.len - f.l4);
	memset(ext, 0, 8);
	ext[0] = 17;
	f.bytes[FRAME_IP + 6] = kind;
	f.len += 8;
	frame_put16(f.bytes + FRAME_IP + 4, (uint16_t)(f.len - f.l4));
}

static void hop_by_hop(void)
{
	ipv6_extension(0);
}

static void ipv6_fragment(void)
{
	ipv6_extension(44);
}

static void destination_options(void)
{
	ipv6_extension(60);
}

static void opcode_reserved(struct frame_spec *s)
{
	s->opcode = 0x1f;
}

static void opcode_rd(struct frame_spec *s)
{
	s->opcode = 0x44;
}

static void another_source(struct frame_spec *s)
{
	s->src[15] ^= 4;
}

static void no_source(struct frame_spec *s)
{
	memset(s->src + 12, 0, 4);
}

static void peers_source(struct frame_spec *s)
{
	memcpy(s->src, bench_peer4, 16);
}

static void another_ipv6_source(struct frame_spec *s)
{
	ipv6(s);
	s->src[6] ^= 1;
}

static void multicast(struct frame_spec *s)
{
	memcpy(s->dst + 12, (uint8_t[]){ 224, 0, 0, 1 }, 4);
}

static void broadcast(struct frame_spec *s)
{
	memset(s->dst + 12, 0xff, 4);
}

/* A group's, but to one QP; to all members of what is no group. */
static void ud_multicast(struct frame_spec *s)
{
	ud(s);
	multicast(s);
}

static void ud_broadcast(struct frame_spec *s)
{
	ud(s);
	broadcast(s);
	s->ecn_qpn = ROCE_MULTICAST_QPN;
}

static void rc_to_group(struct frame_spec *s)
{
	multicast(s);
	s->ecn_qpn = ROCE_MULTICAST_QPN;
}

static void ipv6_multicast(struct frame_spec *s)
{
	ipv6(s);
	s->dst[0] = 0xff;
}

static void to_loopback(struct frame_spec *s)
{
	memcpy(s->dst + 12, (uint8_t[]){ 127, 0, 0, 1 }, 4);
}

static void to_this_network(struct frame_spec *s)
{
	memset(s->dst + 12, 0, 4);
}

/* Bytes of an IPv6 header that parse as the GID of an IPv4 address. */
static void ipv4_source_in_ipv6(void)
{
	memcpy(f.bytes + FRAME_IP + 8, bench_local4, 16);
}

static void ipv6_to_loopback(struct frame_spec *s)
{
	ipv6(s);
	memset(s->dst, 0, 15);
	s->dst[15] = 1;
}

static void qp1(struct frame_spec *s)
{
	s->ecn_qpn = 1;
}

static void qp1_reserved_bits(struct frame_spec *s)
{
	s->ecn_qpn = 0xff000001;
}

static void ud_qp1(struct frame_spec *s)
{
	ud(s);
	s->ecn_qpn = 1;
}

static void privileged_qkey(struct frame_spec *s)
{
	ud(s);
	frame_put32(s->ext, 0x80010000);
}

static void another_pkey(struct frame_spec *s)
{
	s->pkey = BROKER_PKEY ^ 3;
}

/* Of a partition that the table has, as the member that it does not have. */
static void pkey_not_limited(struct frame_spec *s)
{
	s->pkey = BROKER_PKEY & 0x7fff;
}

static void pkey_not_full(struct frame_spec *s)
{
	s->pkey = BROKER_PKEY_LIMITED | 0x8000;
}

static void default_limited(struct frame_spec *s)
{
	s->pkey = 0x7fff;
}

static void no_pkey(struct frame_spec *s)
{
	s->pkey = 0;
}

static void ud_pkey(struct frame_spec *s)
{
	ud(s);
	another_pkey(s);
}

static void src_of_other(struct frame_spec *s)
{
	ud(s);
	frame_put32(s->ext + 4, BROKER_UD(OTHER));
}

static void src_of_nobody(struct frame_spec *s)
{
	ud(s);
	frame_put32(s->ext + 4, 0x777);
}

static void src_1(struct frame_spec *s)
{
	ud(s);
	frame_put32(s->ext + 4, 1);
}

static void flow_of_other(struct frame_spec *s)
{
	src_of_other(s);
	s->opcode = OPCODE_FLOW_PROBE;
}

static void too_long(struct frame_spec *s)
{
	s->payload_len = MTU;
}

/* One packet, that its receiver would cut in two and more. */
static void looks_like_super(void)
{
	frame_put16(f.bytes + FRAME_IP + 4, 20);
	bench_sum_super(&f);
}

static const struct row {
	const char *what;
	enum xroce_egress_reason reason;
	void (*before)(struct frame_spec *);
	void (*after)(void);
	bool right_of_other; /* whose QP 0x202 is, and who is privileged */
} rows[] = {
	{ "ARP", XROCE_EGRESS_not_roce, .after = arp },
	{ "IPv4 as IPv6", XROCE_EGRESS_not_roce, .after = ethertype_ipv6 },
	{ "IPv6 as IPv4", XROCE_EGRESS_not_roce, .before = ipv6, .after = ethertype_ipv4 },
	{ "VLAN tag", XROCE_EGRESS_not_roce, .before = tag },
	{ "priority tag", XROCE_EGRESS_not_roce, .before = priority_tag },
	{ "provider's tag", XROCE_EGRESS_not_roce, .before = provider_tag },
	{ "two tags", XROCE_EGRESS_not_roce, .before = two_tags },
	{ "options", XROCE_EGRESS_not_roce, .before = options },
	{ "40 bytes of options", XROCE_EGRESS_not_roce, .before = most_options },
	{ "TCP", XROCE_EGRESS_not_roce, .before = tcp },
	{ "another port", XROCE_EGRESS_not_roce, .before = another_port },
	{ "version 5", XROCE_EGRESS_not_roce, .after = version_5 },
	{ "version 6", XROCE_EGRESS_not_roce, .after = version_6 },
	{ "IP header of 16 bytes", XROCE_EGRESS_not_roce, .after = header_of_16 },
	{ "first fragment", XROCE_EGRESS_not_roce, .after = first_fragment },
	{ "last fragment", XROCE_EGRESS_not_roce, .after = last_fragment },
	{ "reserved bit", XROCE_EGRESS_not_roce, .after = evil_bit },
	{ "IP length too long", XROCE_EGRESS_not_roce, .after = ip_length_more },
	{ "IP and UDP length too long", XROCE_EGRESS_not_roce, .after = both_lengths_more },
	{ "IP length too short", XROCE_EGRESS_not_roce, .after = ip_length_less },
	{ "IP length 0", XROCE_EGRESS_not_roce, .after = ip_length_0 },
	{ "UDP length too long", XROCE_EGRESS_not_roce, .after = udp_length_more },
	{ "UDP length too short", XROCE_EGRESS_not_roce, .after = udp_length_less },
	{ "UDP length 0", XROCE_EGRESS_not_roce, .after = udp_length_0 },
	{ "padding", XROCE_EGRESS_not_roce, .after = padding },
	{ "no BTH", XROCE_EGRESS_not_roce, .after = no_bth },
	{ "BTH and no ICRC", XROCE_EGRESS_not_roce, .after = bth_and_no_icrc },
	{ "no DETH", XROCE_EGRESS_not_roce, .before = ud, .after = no_deth },
	{ "cut in the IP header", XROCE_EGRESS_not_roce, .after = cut_in_ip },
	{ "cut in the UDP header", XROCE_EGRESS_not_roce, .after = cut_in_udp },
	{ "Ethernet alone", XROCE_EGRESS_not_roce, .after = ethernet_alone },
	{ "cut in the IPv6 header", XROCE_EGRESS_not_roce, .before = ipv6, .after = ipv6_cut },
	{ "IPv6 of version 4", XROCE_EGRESS_not_roce, .before = ipv6, .after = ipv6_version_4 },
	{ "UDP-Lite over IPv6", XROCE_EGRESS_not_roce, .before = ipv6,
	  .after = ipv6_another_header },
	{ "IPv6 length 0", XROCE_EGRESS_not_roce, .before = ipv6, .after = ipv6_length_0 },
	{ "IPv6 length too long", XROCE_EGRESS_not_roce,
	  .before = ipv6, .after = ipv6_length_more },
	{ "hop-by-hop options", XROCE_EGRESS_not_roce, .before = ipv6, .after = hop_by_hop },
	{ "IPv6 fragment", XROCE_EGRESS_not_roce, .before = ipv6, .after = ipv6_fragment },
	{ "destination options", XROCE_EGRESS_not_roce,
	  .before = ipv6, .after = destination_options },
	{ "reserved opcode", XROCE_EGRESS_not_roce, .before = opcode_reserved },
	{ "RD", XROCE_EGRESS_not_roce, .before = opcode_rd },
	{ "another source", XROCE_EGRESS_source, .before = another_source },
	{ "source 0.0.0.0", XROCE_EGRESS_source, .before = no_source },
	{ "the peer's source", XROCE_EGRESS_source, .before = peers_source },
	{ "another IPv6 source", XROCE_EGRESS_source, .before = another_ipv6_source },
	{ "multicast", XROCE_EGRESS_multicast, .before = multicast },
	{ "broadcast", XROCE_EGRESS_multicast, .before = broadcast },
	{ "IPv6 multicast", XROCE_EGRESS_multicast, .before = ipv6_multicast },
	{ "a datagram to a group's address", XROCE_EGRESS_multicast, .before = ud_multicast },
	{ "a datagram to all by broadcast", XROCE_EGRESS_multicast, .before = ud_broadcast },
	{ "RC to a group", XROCE_EGRESS_multicast, .before = rc_to_group },
	{ "to 127.0.0.1", XROCE_EGRESS_not_roce, .before = to_loopback },
	{ "to 0.0.0.0", XROCE_EGRESS_not_roce, .before = to_this_network },
	{ "to ::1", XROCE_EGRESS_not_roce, .before = ipv6_to_loopback },
	{ "the own IPv4 address in an IPv6 header", XROCE_EGRESS_not_roce,
	  .before = ipv6, .after = ipv4_source_in_ipv6 },
	{ "marked as a super-packet", XROCE_EGRESS_segments, .after = looks_like_super },
	{ "QP 1", XROCE_EGRESS_qp1, .before = qp1, .right_of_other = true },
	{ "QP 1, reserved bits set", XROCE_EGRESS_qp1, .before = qp1_reserved_bits,
	  .right_of_other = true },
	{ "a datagram to QP 1", XROCE_EGRESS_qp1, .before = ud_qp1 },
	{ "privileged Q_Key", XROCE_EGRESS_qkey, .before = privileged_qkey },
	{ "another P_Key", XROCE_EGRESS_pkey, .before = another_pkey },
	{ "the P_Key of a limited member", XROCE_EGRESS_pkey, .before = pkey_not_limited },
	{ "the P_Key of a full member", XROCE_EGRESS_pkey, .before = pkey_not_full },
	{ "the default P_Key, limited", XROCE_EGRESS_pkey, .before = default_limited },
	{ "no P_Key", XROCE_EGRESS_pkey, .before = no_pkey },
	{ "a datagram with another P_Key", XROCE_EGRESS_pkey, .before = ud_pkey },
	{ "another client's source QPN", XROCE_EGRESS_src_qpn, .before = src_of_other,
	  .right_of_other = true },
	{ "nobody's source QPN", XROCE_EGRESS_src_qpn, .before = src_of_nobody },
	{ "source QPN 1", XROCE_EGRESS_src_qpn, .before = src_1 },
	{ "another client's flow probe", XROCE_EGRESS_src_qpn, .before = flow_of_other,
	  .right_of_other = true },
	{ "longer than the interface takes", XROCE_EGRESS_mtu, .before = too_long },
};

static void build(const struct row *row)
{
	struct frame_spec s = spec();

	if (row && row->before)
		row->before(&s);
	frame_build(&f, &s);
	if (row && row->after)
		row->after();
}

static void egress__row(void **state)
{
	const struct row *row = *state;

	reset();
	build(row);
	expect_refused(row->what, row->reason);
	if (row->right_of_other)
		expect_wire_by(PRIVILEGED, row->what, &plain, f.bytes, f.len);
	/* what the row spoiled was what it was refused for */
	build(NULL);
	expect_wire("the packet unspoiled");
}

static void egress__every_reason_has_a_test(void **state)
{
	for (int reason = XROCE_EGRESS_none + 1; reason < XROCE_EGRESS_END; reason++) {
		/* of devices and of what else is written with a frame, below; test_egress_mad.c */
		bool found = reason == XROCE_EGRESS_unknown_tap ||
			     reason == XROCE_EGRESS_offload || reason == XROCE_EGRESS_mad ||
			     reason == XROCE_EGRESS_mad_id;

		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			found |= (int)rows[i].reason == reason;
		check(found, "no test of %s", reason_name(reason));
	}
}

/* ---- what goes out ---- */

static void egress__to_the_wire(void **state)
{
	static const uint32_t payloads[] = { 0, 4, 64, 1024, 4096 };
	struct frame_spec s;

	reset();
	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		s = spec();
		s.payload_len = payloads[i];
		frame_build(&f, &s);
		expect_wire("IPv4");
		frame_put16(f.bytes + FRAME_IP + 6, 0x4000);
		expect_wire("IPv4, not to be fragmented");
		ipv6(&s);
		frame_build(&f, &s);
		expect_wire("IPv6");
		ud(&s);
		frame_build(&f, &s);
		expect_wire("a datagram over IPv6");
	}
	s = spec();
	ud(&s);
	s.opcode = OPCODE_FLOW_PROBE;
	s.payload_len = 0;
	s.ext_len = 16;
	frame_build(&f, &s);
	expect_wire("flow control");
}

static void egress__pkeys_of_the_table(void **state)
{
	struct frame_spec s = spec();

	reset();
	s.pkey = BROKER_PKEY;
	frame_build(&f, &s);
	expect_wire("a full member's");
	s.pkey = BROKER_PKEY_LIMITED;
	frame_build(&f, &s);
	expect_wire("a limited member's");
	ud(&s);
	frame_build(&f, &s);
	expect_wire("a limited member's datagram");
	/* nobody is above the table */
	s = spec();
	another_pkey(&s);
	frame_build(&f, &s);
	expect_refused_by(PRIVILEGED, "a privileged client's", XROCE_EGRESS_pkey, &plain, f.bytes,
			  f.len);
}

/* The headers need not lie where the kernel reads them: the client says how much does. */
static void egress__headers_in_pieces(void **state)
{
	const struct virtio_net_hdr vnet = { .hdr_len = 14 };
	struct frame_spec s = spec();

	reset();
	s.payload_len = 4096;
	frame_build(&f, &s);
	expect_wire_by(ME, "IPv4", &vnet, f.bytes, f.len);
	ipv6(&s);
	frame_build(&f, &s);
	expect_wire_by(ME, "IPv6", &vnet, f.bytes, f.len);
	another_ipv6_source(&s);
	frame_build(&f, &s);
	expect_refused_by(ME, "another source", XROCE_EGRESS_source, &vnet, f.bytes, f.len);
}

static void egress__round(void **state)
{
	struct frame_spec s = spec();

	reset();
	memcpy(s.dst, bench_local4, 16);
	s.ecn_qpn = BROKER_RC(OTHER);
	frame_build(&f, &s);
	expect_round("RC", OTHER, &plain, f.bytes, f.len);
	s.payload_len = 4096;
	frame_build(&f, &s);
	expect_round("RC of 4 KiB", OTHER, &plain, f.bytes, f.len);
	s.payload_len = 64;
	ud(&s);
	s.ecn_qpn = BROKER_UD(OTHER);
	frame_build(&f, &s);
	expect_round("UD", OTHER, &plain, f.bytes, f.len);
	ipv6(&s);
	memcpy(s.dst, bench_local6, 16);
	frame_build(&f, &s);
	expect_round("UD over IPv6", OTHER, &plain, f.bytes, f.len);
	s.ecn_qpn = BROKER_UD(ME);
	frame_build(&f, &s);
	expect_round("to itself", ME, &plain, f.bytes, f.len);
}

/*
 * To the address of another interface here: to that one's hairpin, whatever the routes say. Here
 * that is the same device, whose program knows the address for another's and passes the frame.
 */
static void egress__near(void **state)
{
	const int near = bpf_map__fd(broker->skel->maps.xroce_near);
	const struct xroce_near way = { .hairpin = dev.hairpin };
	struct bench_counts seen = broker_count();
	struct counts before;

	reset();
	build(NULL);
	assert_int_equal(bpf_map_update_elem(near, bench_peer4, &way, BPF_ANY), 0);
	before = count(ME);
	assert_true(sent(ME, &plain, f.bytes, f.len));
	check_counts("near", ME, &before, XROCE_EGRESS_none, 0, 1, f.len);
	for (int ms = 0; ms < WAIT_MS && broker_count().rx.passed == seen.rx.passed; ms++)
		usleep(1000);
	assert_int_equal(broker_count().rx.passed, seen.rx.passed + 1);
	assert_false(read_wire(0));
	assert_int_equal(bpf_map_delete_elem(near, bench_peer4), 0);
	expect_wire("near no more");
}

/* To another interface here, by the wire: the kernel resolves the next hop that is told it. */
static void egress__next_hop(void **state)
{
	const int near = bpf_map__fd(broker->skel->maps.xroce_near);
	struct xroce_near way = { 0 };

	assert_int_equal(inet_pton(AF_INET6, "fd00:9::1", way.next_hop), 1);
	shell("ip neigh del 10.9.0.1 dev va");
	reset();
	build(NULL);
	assert_int_equal(bpf_map_update_elem(near, bench_peer4, &way, BPF_ANY), 0);
	expect_wire("an IPv6 next hop");
	assert_int_equal(bpf_map_delete_elem(near, bench_peer4), 0);
	shell("ip neigh add 10.9.0.1 lladdr 02:00:00:00:00:0b dev va");
	expect_wire("near no more");
}

/* One frame goes out, to the group's MAC, and so many clients have a copy of it. */
static void expect_group(const char *what, const uint8_t mac[6], uint32_t copies)
{
	static const uint8_t own[6] = { 2, 0, 0, 0, 0, 0x0a };
	const struct counts before = count(ME);
	struct broker_client *c = broker->client;
	uint32_t have = 0;

	for (int i = 0; i < BROKER_CLIENTS; i++)
		broker_read(i);
	check(sent(ME, &plain, f.bytes, f.len), "%s: not written: %s", what, strerror(errno));
	check_counts(what, ME, &before, XROCE_EGRESS_none, 1, copies != 0, f.len);
	check(read_wire(WAIT_MS), "%s: did not come out", what);
	check(out.len == f.len && !memcmp(out.bytes, mac, 6) && !memcmp(out.bytes + 6, own, 6) &&
		      !memcmp(out.bytes + 12, f.bytes + 12, f.len - 12),
	      "%s: another frame came out", what);
	for (int ms = 0; ms < WAIT_MS && have < copies; ms++) {
		have = 0;
		for (int i = 0; i < BROKER_CLIENTS; i++) {
			const uint32_t before_read = c[i].records;

			broker_read(i);
			c[i].records += before_read;
			have += c[i].records;
		}
		if (have < copies)
			usleep(1000);
	}
	check(have == copies, "%s: %u copies, want %u", what, have, copies);
	for (int i = 0; i < BROKER_CLIENTS && copies; i++)
		check(c[i].records == 1 && c[i].len == f.len &&
			      !memcmp(c[i].frame + 12, f.bytes + 12, f.len - 12),
		      "%s: client %d has another", what, i);
	check(!read_wire(0), "%s: came out twice", what);
}

/* A datagram to a group leaves, and comes round to members here, the sender's among them. */
static void egress__to_a_group(void **state)
{
	static const uint8_t mac4[6] = { 1, 0, 0x5e, 1, 2, 3 };
	static const uint8_t mac6[6] = { 0x33, 0x33, 0, 0, 1, 9 };
	const int groups = bpf_map__fd(broker->skel->maps.xroce_members);
	const struct xroce_members both = { .num = 2, .client = { ME, OTHER } };
	struct frame_spec s = spec();

	reset();
	ud(&s);
	s.ecn_qpn = ROCE_MULTICAST_QPN;
	memcpy(s.dst + 12, (uint8_t[]){ 239, 129, 2, 3 }, 4);
	frame_build(&f, &s);
	f.bytes[0] = 1; /* the client's own sender has the group's, too */
	expect_group("IPv4, nobody here", mac4, 0);
	assert_int_equal(bpf_map_update_elem(groups, s.dst, &both, BPF_ANY), 0);
	expect_group("IPv4", mac4, 2);
	assert_int_equal(bpf_map_delete_elem(groups, s.dst), 0);
	ipv6(&s);
	memset(s.dst, 0, 16);
	s.dst[0] = 0xff;
	s.dst[1] = 0x15;
	s.dst[14] = 1;
	s.dst[15] = 9;
	frame_build(&f, &s);
	expect_group("IPv6, nobody here", mac6, 0);
	assert_int_equal(bpf_map_update_elem(groups, s.dst, &both, BPF_ANY), 0);
	expect_group("IPv6", mac6, 2);
	s.payload_len = MTU;
	frame_build(&f, &s);
	expect_refused_by(ME, "too long", XROCE_EGRESS_mtu, &plain, f.bytes, f.len);
	assert_int_equal(bpf_map_delete_elem(groups, s.dst), 0);
}

static void egress__unknown_tap(void **state)
{
	reset();
	build(NULL);
	assert_int_equal(bpf_map_delete_elem(bpf_map__fd(broker->skel->maps.xroce_tap),
					     &dev.ifindex[ME]),
			 0);
	expect_refused("no client's", XROCE_EGRESS_unknown_tap);
	put_tap(ME);
	expect_wire("a client's again");
}

/* The filter stays when the broker is gone. */
static void egress__without_broker(void **state)
{
	struct counts before;

	reset();
	build(NULL);
	before = count(ME);
	put_alive(false);
	assert_true(sent(ME, &plain, f.bytes, f.len));
	check_counts("no broker", ME, &before, XROCE_EGRESS_none, 0, 0, 0);
	assert_false(read_wire(0));
	put_alive(true);
	expect_wire("a broker");
}

/* ---- super-packets ---- */

static struct virtio_net_hdr super_vnet(uint32_t size)
{
	return (struct virtio_net_hdr){ .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
					.hdr_len = 42,
					.gso_size = (uint16_t)size,
					.csum_start = UDP_AT,
					.csum_offset = 6 };
}

/* The checksum and lengths of big, as a super-packet's. */
static void super_fix(uint32_t size)
{
	struct frame sum = { .l3 = FRAME_IP, .l4 = UDP_AT, .len = 64 };

	memcpy(sum.bytes, big.bytes, 64);
	frame_put16(sum.bytes + FRAME_IP + 4, (uint16_t)size);
	sum.len = big.len;
	frame_put16(sum.bytes + FRAME_IP + 2, (uint16_t)(big.len - FRAME_IP));
	frame_put16(sum.bytes + UDP_AT + 4, (uint16_t)(big.len - UDP_AT));
	bench_sum_super(&sum);
	memcpy(big.bytes, sum.bytes, 64);
}

/* n packets, whose last has `last` bytes of UDP payload. Returns the size of the others. */
static uint32_t super_build(const struct frame_spec *s, uint32_t n, uint32_t last)
{
	uint32_t size;

	frame_build(&f, s);
	size = f.len - f.bth;
	memcpy(big.bytes, f.bytes, f.bth);
	big.len = f.bth;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t bytes = last && i + 1 == n ? last : size;

		memcpy(big.bytes + big.len, f.bytes + f.bth, bytes);
		big.len += bytes;
	}
	super_fix(size);
	return size;
}

/* Packet i's BTH. */
static uint8_t *super_bth(uint32_t i, uint32_t size)
{
	return big.bytes + f.bth + i * size;
}

static void expect_super_refused(const char *what, enum xroce_egress_reason reason, uint32_t size)
{
	const struct virtio_net_hdr vnet = super_vnet(size);

	expect_refused_by(ME, what, reason, &vnet, big.bytes, big.len);
}

/* The kernel may refuse it itself, then it is not our matter. */
static void expect_not_sent(const char *what, enum xroce_egress_reason reason,
			    const struct virtio_net_hdr *vnet, const uint8_t *bytes, uint32_t len)
{
	if (sent(ME, vnet, bytes, len)) {
		check(!read_wire(0), "%s: came out", what);
		expect_refused_by(ME, what, reason, vnet, bytes, len);
	} else {
		check(errno == EINVAL, "%s: %s", what, strerror(errno));
	}
}

/* Before 6.2 a TAP device takes none. */
static void super_reset(void)
{
	const struct frame_spec s = spec();
	const struct virtio_net_hdr vnet = super_vnet(super_build(&s, 2, 0));

	if (!sent(ME, &vnet, big.bytes, big.len))
		skip();
	read_wire(WAIT_MS);
	reset();
}

static void super__whole(void **state)
{
	struct frame_spec s = spec();
	struct virtio_net_hdr vnet;
	uint32_t size;

	super_reset();
	size = super_build(&s, 2, 0);
	vnet = super_vnet(size);
	expect_wire_by(ME, "two", &vnet, big.bytes, big.len);
	size = super_build(&s, 10, 16);
	vnet = super_vnet(size);
	expect_wire_by(ME, "ten, the last without payload", &vnet, big.bytes, big.len);
	s.payload_len = 1024;
	size = super_build(&s, 62, 0);
	vnet = super_vnet(size);
	expect_wire_by(ME, "62 of 1 KiB", &vnet, big.bytes, big.len);
	vnet.hdr_len = 14;
	expect_wire_by(ME, "with headers in pieces", &vnet, big.bytes, big.len);
	s.payload_len = 4096;
	size = super_build(&s, 15, 0);
	vnet = super_vnet(size);
	expect_wire_by(ME, "15 of 4 KiB", &vnet, big.bytes, big.len);
	s = spec();
	ud(&s);
	size = super_build(&s, 12, 24);
	vnet = super_vnet(size);
	expect_wire_by(ME, "datagrams", &vnet, big.bytes, big.len);

	s = spec();
	s.payload_len = 1024;
	memcpy(s.dst, bench_local4, 16);
	s.ecn_qpn = BROKER_RC(OTHER);
	size = super_build(&s, 62, 0);
	vnet = super_vnet(size);
	expect_round("62 of 1 KiB", OTHER, &vnet, big.bytes, big.len);
}

/* The first is right, another is not: the second, and the last of many. */
static void super__others_are_checked(void **state)
{
	static const uint32_t spoiled[] = { 1, 49 };
	struct frame_spec s;
	uint32_t size;

	super_reset();
	for (size_t i = 0; i < sizeof(spoiled) / sizeof(spoiled[0]); i++) {
		const uint32_t at = spoiled[i];

		s = spec();
		size = super_build(&s, 50, 0);
		frame_put32(super_bth(at, size) + 4, 0x4322);
		expect_super_refused("another QP", XROCE_EGRESS_segments, size);
		size = super_build(&s, 50, 0);
		frame_put32(super_bth(at, size) + 4, 1);
		expect_super_refused("to QP 1", XROCE_EGRESS_segments, size);
		size = super_build(&s, 50, 0);
		frame_put16(super_bth(at, size) + 2, 0x8001);
		expect_super_refused("another P_Key", XROCE_EGRESS_segments, size);
		size = super_build(&s, 50, 0);
		*super_bth(at, size) = OPCODE(XROCE_UC, OP5_SEND_ONLY);
		expect_super_refused("another transport", XROCE_EGRESS_segments, size);
		size = super_build(&s, 50, 0);
		*super_bth(at, size) = 0x1f;
		expect_super_refused("no opcode", XROCE_EGRESS_not_roce, size);
		ud(&s);
		size = super_build(&s, 50, 0);
		frame_put32(super_bth(at, size) + 12, 0x80010000);
		expect_super_refused("a privileged Q_Key", XROCE_EGRESS_qkey, size);
		size = super_build(&s, 50, 0);
		frame_put32(super_bth(at, size) + 16, BROKER_UD(OTHER));
		expect_super_refused("another client's source QPN", XROCE_EGRESS_src_qpn, size);
	}
	s.ecn_qpn = 1;
	size = super_build(&s, 50, 0);
	expect_super_refused("all to QP 1", XROCE_EGRESS_qp1, size);
	s = spec();
	another_pkey(&s);
	size = super_build(&s, 50, 0);
	expect_super_refused("all with another P_Key", XROCE_EGRESS_pkey, size);
	s = spec();
	size = super_build(&s, 5, 12);
	expect_super_refused("the last is no packet", XROCE_EGRESS_segments, size);
	ud(&s);
	size = super_build(&s, 5, 16);
	expect_super_refused("the last has no DETH", XROCE_EGRESS_not_roce, size);
}

/*
 * A hostile packet at each place of one super-packet, whose linear part ends before it, in its
 * headers, and behind it: none is let through, wherever the kernel has put it.
 */
static void check_each_place(const char *what, uint32_t payload, uint32_t n)
{
	/* the ends of a linear part, from the beginning of a packet's BTH on */
	static const uint32_t ends[] = { 0, 1, 8, 12, 20, 28 };
	struct frame_spec s = spec();
	struct virtio_net_hdr vnet;
	uint32_t size;

	ud(&s);
	s.payload_len = payload;
	size = super_build(&s, n, 0);
	for (uint32_t i = 0; i < n; i++)
		for (size_t end = 0; end <= sizeof(ends) / sizeof(ends[0]); end++) {
			uint8_t *bth = super_bth(i, size), kept[24];

			vnet = super_vnet(size);
			vnet.hdr_len = (uint16_t)(end ? f.bth + i * size + ends[end - 1] : big.len);
			expect_wire_by(ME, what, &vnet, big.bytes, big.len);
			memcpy(kept, bth, sizeof(kept));
			frame_put32(bth + 4, i ? 0x4322 : 1);
			expect_refused_by(ME, what, i ? XROCE_EGRESS_segments : XROCE_EGRESS_qp1,
					  &vnet, big.bytes, big.len);
			memcpy(bth, kept, sizeof(kept));
			frame_put32(bth + 16, BROKER_UD(OTHER));
			expect_refused_by(ME, what, XROCE_EGRESS_src_qpn, &vnet, big.bytes,
					  big.len);
			memcpy(bth, kept, sizeof(kept));
		}
}

static void super__each_place_is_checked(void **state)
{
	super_reset();
	check_each_place("64 small ones", 64, 64);
	check_each_place("short ones", 1024, 40);
	check_each_place("long ones", 4096, 15);
}

/* The kernel, the receiver and the check must cut it alike. */
static void super__cut_alike(void **state)
{
	struct frame_spec s = spec();
	struct virtio_net_hdr vnet;
	uint32_t size;

	super_reset();
	size = super_build(&s, 10, 0);
	super_fix(size - 4);
	expect_super_refused("another identification", XROCE_EGRESS_segments, size);
	super_build(&s, 10, 0);
	big.bytes[UDP_AT + 7]++;
	expect_super_refused("another checksum", XROCE_EGRESS_segments, size);
	super_build(&s, 10, 0);
	frame_put16(big.bytes + UDP_AT + 6, 0);
	expect_super_refused("no checksum", XROCE_EGRESS_segments, size);
	/* to the kernel two packets, the second of which would be checked nowhere */
	super_build(&s, 10, 0);
	expect_super_refused("another size", XROCE_EGRESS_segments, 9 * size);
	super_build(&s, 1, 0);
	vnet = super_vnet(size);
	expect_not_sent("one packet", XROCE_EGRESS_offload, &vnet, big.bytes, big.len);
	s.payload_len = 0;
	size = super_build(&s, XROCE_SEGMENTS_MAX + 1, 0);
	vnet = super_vnet(size);
	expect_not_sent("too many", XROCE_EGRESS_segments, &vnet, big.bytes, big.len);
	s = spec();
	ipv6(&s);
	frame_build(&f, &s);
	vnet = super_vnet(40);
	vnet.csum_start = 54;
	expect_not_sent("IPv6", XROCE_EGRESS_segments, &vnet, f.bytes, f.len);
}

/* Only its receiver would cut it: the packets that one would see are checked. */
static void super__without_the_kernel(void **state)
{
	struct frame_spec s = spec();
	uint32_t size;

	reset();
	ud(&s);
	size = super_build(&s, 10, 0);
	expect_wire_by(ME, "right ones", &plain, big.bytes, big.len);
	frame_put32(super_bth(9, size) + 16, BROKER_UD(OTHER));
	expect_refused_by(ME, "another client's source QPN", XROCE_EGRESS_src_qpn, &plain,
			  big.bytes, big.len);
	super_build(&s, 10, 0);
	frame_put32(super_bth(1, size) + 12, 0x80010000);
	expect_refused_by(ME, "a privileged Q_Key", XROCE_EGRESS_qkey, &plain, big.bytes, big.len);
}

/* Each packet in it is as long as the interface takes, or it is refused. */
static void super__longer_than_the_interface_takes(void **state)
{
	struct frame_spec s = spec();
	struct virtio_net_hdr vnet;
	uint32_t size;

	super_reset();
	s.payload_len = MTU - 44;
	size = super_build(&s, 4, 0);
	vnet = super_vnet(size);
	expect_wire_by(ME, "just as long", &vnet, big.bytes, big.len);
	s.payload_len = MTU - 40;
	size = super_build(&s, 4, 0);
	expect_super_refused("longer", XROCE_EGRESS_mtu, size);
}

/* ---- what the kernel is asked to do ---- */

/* Where it would write is the client's word: into what was checked. */
static void offload__single(void **state)
{
	static const uint16_t at[][2] = { { 34, 6 }, { 34, 12 }, { 14, 10 }, { 26, 0 }, { 42, 4 } };
	struct frame_spec s = spec();

	reset();
	ud(&s);
	frame_build(&f, &s);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		const struct virtio_net_hdr vnet = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
						     .csum_start = at[i][0],
						     .csum_offset = at[i][1] };

		expect_not_sent("a checksum", XROCE_EGRESS_offload, &vnet, f.bytes, f.len);
	}
	expect_wire("without");
}

static void offload__super(void **state)
{
	static const uint8_t types[] = { VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_UDP,
					 VIRTIO_NET_HDR_GSO_TCPV6,
					 VIRTIO_NET_HDR_GSO_UDP_L4 | VIRTIO_NET_HDR_GSO_ECN };
	struct frame_spec s = spec();
	struct virtio_net_hdr vnet;
	uint32_t size;

	super_reset();
	ud(&s);
	size = super_build(&s, 10, 0);
	for (size_t i = 0; i < sizeof(types); i++) {
		vnet = super_vnet(size);
		vnet.gso_type = types[i];
		expect_not_sent("another kind", XROCE_EGRESS_offload, &vnet, big.bytes, big.len);
	}
	vnet = super_vnet(size);
	vnet.flags = 0;
	expect_not_sent("no checksum", XROCE_EGRESS_offload, &vnet, big.bytes, big.len);
	for (uint16_t start = 14; start < 60; start += 2) {
		vnet = super_vnet(size);
		vnet.csum_start = start;
		if (start != UDP_AT)
			expect_not_sent("from elsewhere", XROCE_EGRESS_offload, &vnet, big.bytes,
					big.len);
	}
	vnet = super_vnet(size);
	vnet.csum_offset = 16;
	expect_not_sent("to elsewhere", XROCE_EGRESS_offload, &vnet, big.bytes, big.len);
	vnet = super_vnet(size);
	expect_wire_by(ME, "as it ought to be", &vnet, big.bytes, big.len);
}

int main(void)
{
	const struct CMUnitTest single[] = {
		cmocka_unit_test(egress__every_reason_has_a_test),
		cmocka_unit_test(egress__to_the_wire),
		cmocka_unit_test(egress__pkeys_of_the_table),
		cmocka_unit_test(egress__headers_in_pieces),
		cmocka_unit_test(egress__round),
		cmocka_unit_test(egress__near),
		cmocka_unit_test(egress__next_hop),
		cmocka_unit_test(egress__to_a_group),
		cmocka_unit_test(egress__unknown_tap),
		cmocka_unit_test(egress__without_broker),
		cmocka_unit_test(super__whole),
		cmocka_unit_test(super__others_are_checked),
		cmocka_unit_test(super__each_place_is_checked),
		cmocka_unit_test(super__cut_alike),
		cmocka_unit_test(super__without_the_kernel),
		cmocka_unit_test(super__longer_than_the_interface_takes),
		cmocka_unit_test(offload__single),
		cmocka_unit_test(offload__super),
	};
	enum { ROWS = sizeof(rows) / sizeof(rows[0]), SINGLE = sizeof(single) / sizeof(single[0]) };
	static struct CMUnitTest tests[ROWS + SINGLE];
	static char names[ROWS][96];

	for (size_t i = 0; i < ROWS; i++) {
		snprintf(names[i], sizeof(names[i]), "egress__%s(%s)", reason_name(rows[i].reason),
			 rows[i].what);
		tests[i] = (struct CMUnitTest){ .name = names[i],
						.test_func = egress__row,
						.initial_state = (void *)&rows[i] };
	}
	memcpy(tests + ROWS, single, sizeof(single));
	return _cmocka_run_group_tests("egress", tests, ROWS + SINGLE, setup, teardown);
}
