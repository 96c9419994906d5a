/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The devices of a client, and the fate of a frame that it writes: egress_side.h. */
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
#include <net/if.h>

#include "egress_side.h"

struct egress egress;
const struct virtio_net_hdr egress_plain;
const uint8_t egress_peer_mac[6] = { 2, 0, 0, 0, 0, 0x0b };

/* A frame that came out of the interface. */
static struct {
	uint8_t bytes[BENCH_BYTES];
	uint32_t len;
} out;

/* ---- the devices ---- */

void egress_shell(const char *command)
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
	snprintf(command, sizeof(command), "ip link set %s addrgenmode none arp off mtu 65521 up",
		 name);
	egress_shell(command);
	*ifindex = if_nametoindex(name);
	return fd;
}

static void attach(uint32_t ifindex, enum bpf_tc_attach_point point, const struct bpf_program *prog)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = point);
	LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = bpf_program__fd(prog));

	assert_int_equal(bpf_tc_attach(&hook, &opts), 0);
}

/* After a TAP device and, if it is not NULL, on the way to it. */
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
	const struct xroce_wire wire = { .ifindex = if_nametoindex("va"),
					 .hairpin = egress.hairpin };
	const uint32_t zero = 0;

	assert_int_equal(bpf_map_update_elem(bpf_map__fd(broker->skel->maps.xroce_wire), &zero,
					     &wire, BPF_ANY),
			 0);
}

void egress_put_alive(bool alive)
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

int egress_setup(void **state)
{
	if (broker_setup(state) || unshare(CLONE_NEWNET))
		return -1;
	egress_shell("ip link set lo up");
	egress_shell("ip link add va address 02:00:00:00:00:0a type veth peer name vb address "
		     "02:00:00:00:00:0b");
	egress_shell("ip link set va mtu 4200 up");
	egress_shell("ip link set vb addrgenmode none arp off mtu 4200 up");
	egress_shell("ip addr add 10.9.0.2/24 dev va");
	egress_shell("ip -6 addr add fd00:9::2/64 dev va nodad");
	egress_shell("ip neigh add 10.9.0.1 lladdr 02:00:00:00:00:0b dev va");
	egress_shell("ip -6 neigh add fd00:9::1 lladdr 02:00:00:00:00:0b dev va");
	egress.tap[0] = make_tap("xrt0", &egress.ifindex[0]);
	egress.tap[1] = make_tap("xrt1", &egress.ifindex[1]);
	egress.hairpin_fd = make_tap("xrh", &egress.hairpin);
	for (int c = 0; c < BROKER_CLIENTS; c++)
		guard(egress.ifindex[c], broker->skel->progs.xroce_tap_in,
		      broker->skel->progs.xroce_shut);
	guard(egress.hairpin, broker->skel->progs.xroce_shut, NULL);
	assert_int_equal(bpf_xdp_attach((int)egress.hairpin,
					bpf_program__fd(broker->skel->progs.xroce_mux),
					XDP_FLAGS_SKB_MODE, NULL),
			 0);
	put_wire();
	egress_put_alive(true);
	egress.wire = open_wire();
	return egress.wire < 0;
}

int egress_teardown(void **state)
{
	for (int c = 0; c < BROKER_CLIENTS; c++)
		close(egress.tap[c]);
	close(egress.hairpin_fd);
	close(egress.wire);
	return broker_teardown(state);
}

void egress_put_tap(int client)
{
	const struct xroce_tap tap = { .client = (uint32_t)client,
				       .privileged = client == EGRESS_PRIVILEGED };

	assert_int_equal(bpf_map_update_elem(bpf_map__fd(broker->skel->maps.xroce_tap),
					     &egress.ifindex[client], &tap, BPF_ANY),
			 0);
}

static uint32_t udp_port_at(void)
{
	return (frame_get16(out.bytes + 12) == ETH_P_IP ? EGRESS_UDP_AT : EGRESS_UDP_AT + 20) + 2;
}

/*
 * Reads a frame from the interface into out; false: none in this time. The kernel sends some of its
 * own.
 */
static bool read_wire(int timeout_ms)
{
	struct pollfd pollfd = { .fd = egress.wire, .events = POLLIN };

	for (;;) {
		ssize_t n = recv(egress.wire, out.bytes, sizeof(out.bytes), 0);

		if (n < 0 && poll(&pollfd, 1, timeout_ms) != 1)
			return false;
		if (n >= 58 && frame_get16(out.bytes + udp_port_at()) == ROCE_UDP_PORT) {
			out.len = (uint32_t)n;
			return true;
		}
	}
}

void egress_reset(void)
{
	broker_reset(bench_local4);
	egress_put_tap(EGRESS_ME);
	egress_put_tap(EGRESS_OTHER);
	while (read_wire(0))
		;
}

/* ---- sending, and its result ---- */

const char *egress_reason_name(int reason)
{
	static const char *const name[] = {
#define X(reason_name, text) #reason_name,
		XROCE_EGRESS_REASONS(X)
#undef X
	};

	return reason == XROCE_EGRESS_none ? "none" : name[reason - 1];
}

struct egress_counts egress_count(int client)
{
	struct egress_counts c = { 0 };

	bench_sum_percpu(bpf_map__fd(broker->skel->maps.xroce_refused), c.of, sizeof(c.refused));
	bpf_map_lookup_elem(bpf_map__fd(broker->skel->maps.xroce_tap), &egress.ifindex[client],
			    &c.tap);
	return c;
}

bool egress_sent(int client, const struct virtio_net_hdr *vnet, const uint8_t *bytes, uint32_t len)
{
	/* as `ip tuntap` has it: 10 bytes */
	struct iovec piece[2] = { { (void *)vnet, sizeof(*vnet) }, { (void *)bytes, len } };

	return writev(egress.tap[client], piece, 2) == (ssize_t)(sizeof(*vnet) + len);
}

void egress_check_counts(const char *what, int client, const struct egress_counts *before,
			 int reason, uint32_t frames, uint32_t hairpin, uint32_t bytes)
{
	const struct egress_counts after = egress_count(client);

	for (int i = XROCE_EGRESS_none + 1; i < XROCE_EGRESS_END; i++)
		check(after.of[i - 1] - before->of[i - 1] == (i == reason),
		      "%s: the counter of %s moved by %llu, wanted %s", what, egress_reason_name(i),
		      (unsigned long long)(after.of[i - 1] - before->of[i - 1]),
		      egress_reason_name(reason));
	if (reason == XROCE_EGRESS_unknown_tap)
		return;
	check(after.tap.refused - before->tap.refused == (reason != XROCE_EGRESS_none),
	      "%s: tap.refused", what);
	check(after.tap.frames - before->tap.frames == frames, "%s: tap.frames", what);
	check(after.tap.hairpin - before->tap.hairpin == hairpin, "%s: tap.hairpin", what);
	check(after.tap.bytes - before->tap.bytes == bytes, "%s: tap.bytes", what);
}

void egress_check_out(const char *what, const uint8_t mac[6], const uint8_t *bytes, uint32_t len)
{
	static const uint8_t own[6] = { 2, 0, 0, 0, 0, 0x0a };

	check(read_wire(EGRESS_WAIT_MS), "%s: did not come out", what);
	check(out.len == len, "%s: %u bytes came out, want %u", what, out.len, len);
	check(!memcmp(out.bytes, mac, 6) && !memcmp(out.bytes + 6, own, 6), "%s: other MACs", what);
	check(!memcmp(out.bytes + 12, bytes + 12, len - 12), "%s: another frame came out", what);
}

void egress_check_nothing_out(const char *what)
{
	check(!read_wire(0), "%s: came out", what);
}

void egress_expect_refused(int client, const char *what, enum xroce_egress_reason reason,
			   const struct virtio_net_hdr *vnet, const uint8_t *bytes, uint32_t len)
{
	const struct egress_counts before = egress_count(client);

	check(egress_sent(client, vnet, bytes, len), "%s: not written: %s", what, strerror(errno));
	egress_check_counts(what, client, &before, reason, 0, 0, 0);
	egress_check_nothing_out(what);
	for (int c = 0; c < BROKER_CLIENTS; c++) {
		broker_read(c);
		check(!broker->client[c].records, "%s: came to client %d", what, c);
	}
}

void egress_expect_wire(int client, const char *what, const struct virtio_net_hdr *vnet,
			const uint8_t *bytes, uint32_t len)
{
	const struct egress_counts before = egress_count(client);

	check(egress_sent(client, vnet, bytes, len), "%s: not written: %s", what, strerror(errno));
	egress_check_counts(what, client, &before, XROCE_EGRESS_none, 1, 0, len);
	egress_check_out(what, egress_peer_mac, bytes, len);
}

void egress_expect_round(const char *what, int to, const struct virtio_net_hdr *vnet,
			 const uint8_t *bytes, uint32_t len)
{
	const struct egress_counts before = egress_count(EGRESS_ME);
	struct broker_client *c = &broker->client[to];

	broker_read(to);
	check(egress_sent(EGRESS_ME, vnet, bytes, len), "%s: not written: %s", what,
	      strerror(errno));
	egress_check_counts(what, EGRESS_ME, &before, XROCE_EGRESS_none, 0, 1, len);
	/* it comes by the CPU's backlog */
	for (int ms = 0; ms < EGRESS_WAIT_MS && !c->records; ms++) {
		broker_read(to);
		if (!c->records)
			usleep(1000);
	}
	check(c->records == 1 && c->len == len, "%s: %u records, the last of %u bytes", what,
	      c->records, c->len);
	check(memcmp(c->frame, bytes, len) == 0, "%s: another frame", what);
	egress_check_nothing_out(what);
}

/* ---- frames ---- */

struct frame_spec egress_spec(void)
{
	struct frame_spec s = bench_spec();

	memcpy(s.src, bench_local4, 16);
	memcpy(s.dst, bench_peer4, 16);
	s.ecn_qpn = 0x4321;
	return s;
}

void egress_ipv6(struct frame_spec *s)
{
	s->ipv6 = true;
	memcpy(s->src, bench_local6, 16);
	memcpy(s->dst, bench_peer6, 16);
}

void egress_ud(struct frame_spec *s)
{
	s->opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY);
	s->ext_len = 8;
	frame_put32(s->ext, BROKER_QKEY);
	frame_put32(s->ext + 4, BROKER_UD(EGRESS_ME));
}
