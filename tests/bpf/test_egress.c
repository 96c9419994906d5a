/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The program after a client's TAP device (xroce_egress), with devices as a broker makes them. A
 * client's frame leaves by the interface or reaches the ring of a local process.
 * test_egress_refused.c has refused frames, test_egress_super.c super-packets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "egress_side.h"

static struct frame f;

/* The packet of egress_spec(). */
static void build(void)
{
	const struct frame_spec s = egress_spec();

	frame_build(&f, &s);
}

static void expect_wire(const char *what)
{
	egress_expect_wire(EGRESS_ME, what, &egress_plain, f.bytes, f.len);
}

static void egress__to_the_wire(void **state)
{
	static const uint32_t payloads[] = { 0, 4, 64, 1024, 4096 };
	struct frame_spec s;

	egress_reset();
	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		s = egress_spec();
		s.payload_len = payloads[i];
		frame_build(&f, &s);
		expect_wire("IPv4");
		frame_put16(f.bytes + EGRESS_IP_AT + 6, 0x4000);
		expect_wire("IPv4, not to be fragmented");
		egress_ipv6(&s);
		frame_build(&f, &s);
		expect_wire("IPv6");
		egress_ud(&s);
		frame_build(&f, &s);
		expect_wire("a datagram over IPv6");
	}
	s = egress_spec();
	egress_ud(&s);
	s.opcode = OPCODE_CREDIT_PROBE;
	s.payload_len = 0;
	s.ext_len = 16;
	frame_build(&f, &s);
	expect_wire("flow control");
}

static void egress__pkeys_of_the_table(void **state)
{
	struct frame_spec s = egress_spec();

	egress_reset();
	s.pkey = BROKER_PKEY;
	frame_build(&f, &s);
	expect_wire("a full member's");
	s.pkey = BROKER_PKEY_LIMITED;
	frame_build(&f, &s);
	expect_wire("a limited member's");
	egress_ud(&s);
	frame_build(&f, &s);
	expect_wire("a limited member's datagram");
	/* no client has a number above the table */
	s = egress_spec();
	s.pkey = EGRESS_PKEY_OF_NOBODY;
	frame_build(&f, &s);
	egress_expect_refused(EGRESS_PRIVILEGED, "a privileged client's", XROCE_EGRESS_pkey,
			      &egress_plain, f.bytes, f.len);
}

/* The headers need not lie where the kernel reads them: the client sets the linear length. */
static void egress__headers_in_pieces(void **state)
{
	const struct virtio_net_hdr vnet = { .hdr_len = 14 };
	struct frame_spec s = egress_spec();

	egress_reset();
	s.payload_len = 4096;
	frame_build(&f, &s);
	egress_expect_wire(EGRESS_ME, "IPv4", &vnet, f.bytes, f.len);
	egress_ipv6(&s);
	frame_build(&f, &s);
	egress_expect_wire(EGRESS_ME, "IPv6", &vnet, f.bytes, f.len);
	s.src[6] ^= 1;
	frame_build(&f, &s);
	egress_expect_refused(EGRESS_ME, "another source", XROCE_EGRESS_source, &vnet, f.bytes,
			      f.len);
}

static void egress__round(void **state)
{
	struct frame_spec s = egress_spec();

	egress_reset();
	memcpy(s.dst, bench_local4, 16);
	s.ecn_qpn = BROKER_RC(EGRESS_OTHER);
	frame_build(&f, &s);
	egress_expect_round("RC", EGRESS_OTHER, &egress_plain, f.bytes, f.len);
	s.payload_len = 4096;
	frame_build(&f, &s);
	egress_expect_round("RC of 4 KiB", EGRESS_OTHER, &egress_plain, f.bytes, f.len);
	s.payload_len = 64;
	egress_ud(&s);
	s.ecn_qpn = BROKER_UD(EGRESS_OTHER);
	frame_build(&f, &s);
	egress_expect_round("UD", EGRESS_OTHER, &egress_plain, f.bytes, f.len);
	egress_ipv6(&s);
	memcpy(s.dst, bench_local6, 16);
	frame_build(&f, &s);
	egress_expect_round("UD over IPv6", EGRESS_OTHER, &egress_plain, f.bytes, f.len);
	s.ecn_qpn = BROKER_UD(EGRESS_ME);
	frame_build(&f, &s);
	egress_expect_round("to itself", EGRESS_ME, &egress_plain, f.bytes, f.len);
}

/*
 * To the address of another interface here: to that one's hairpin, whatever the routes say. Here
 * that is the same device, whose program knows the address for another's and passes the frame.
 */
static void egress__near(void **state)
{
	const int near = bpf_map__fd(broker->skel->maps.xroce_neighbour);
	const struct xroce_neighbour way = { .hairpin = egress.hairpin };
	struct bench_counts seen = broker_count();
	struct egress_counts before;

	egress_reset();
	build();
	assert_int_equal(bpf_map_update_elem(near, bench_peer4, &way, BPF_ANY), 0);
	before = egress_count(EGRESS_ME);
	assert_true(egress_sent(EGRESS_ME, &egress_plain, f.bytes, f.len));
	egress_check_counts("near", EGRESS_ME, &before, XROCE_EGRESS_none, 0, 1, f.len);
	for (int ms = 0; ms < EGRESS_WAIT_MS && broker_count().rx.passed == seen.rx.passed; ms++)
		usleep(1000);
	assert_int_equal(broker_count().rx.passed, seen.rx.passed + 1);
	egress_check_nothing_out("not to the wire");
	assert_int_equal(bpf_map_delete_elem(near, bench_peer4), 0);
	expect_wire("near no more");
}

/* To another interface here, by the wire: the kernel resolves the given next hop. */
static void egress__next_hop(void **state)
{
	const int near = bpf_map__fd(broker->skel->maps.xroce_neighbour);
	struct xroce_neighbour way = { 0 };

	assert_int_equal(inet_pton(AF_INET6, "fd00:9::1", way.next_hop), 1);
	egress_shell("ip neigh del 10.9.0.1 dev va");
	egress_reset();
	build();
	assert_int_equal(bpf_map_update_elem(near, bench_peer4, &way, BPF_ANY), 0);
	expect_wire("an IPv6 next hop");
	assert_int_equal(bpf_map_delete_elem(near, bench_peer4), 0);
	egress_shell("ip neigh add 10.9.0.1 lladdr 02:00:00:00:00:0b dev va");
	expect_wire("near no more");
}

/* One frame goes out, to the group's MAC, and this number of clients gets a copy. */
static void expect_group(const char *what, const uint8_t mac[6], uint32_t copies)
{
	const struct egress_counts before = egress_count(EGRESS_ME);
	struct broker_client *c = broker->client;
	uint32_t have = 0;

	for (int i = 0; i < BROKER_CLIENTS; i++)
		broker_read(i);
	check(egress_sent(EGRESS_ME, &egress_plain, f.bytes, f.len), "%s: not written: %s", what,
	      strerror(errno));
	egress_check_counts(what, EGRESS_ME, &before, XROCE_EGRESS_none, 1, copies != 0, f.len);
	egress_check_out(what, mac, f.bytes, f.len);
	for (int ms = 0; ms < EGRESS_WAIT_MS && have < copies; ms++) {
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
	egress_check_nothing_out(what);
}

/* A datagram to a group leaves, and comes round to members here, the sender's among them. */
static void egress__to_a_group(void **state)
{
	static const uint8_t mac4[6] = { 1, 0, 0x5e, 1, 2, 3 };
	static const uint8_t mac6[6] = { 0x33, 0x33, 0, 0, 1, 9 };
	const int groups = bpf_map__fd(broker->skel->maps.xroce_members);
	const struct xroce_members both = { .num = 2, .client = { EGRESS_ME, EGRESS_OTHER } };
	struct frame_spec s = egress_spec();

	egress_reset();
	egress_ud(&s);
	s.ecn_qpn = ROCE_MULTICAST_QPN;
	memcpy(s.dst + 12, (uint8_t[]){ 239, 129, 2, 3 }, 4);
	frame_build(&f, &s);
	f.bytes[0] = 1; /* the client's own sender has the group's, too */
	expect_group("IPv4, nobody here", mac4, 0);
	assert_int_equal(bpf_map_update_elem(groups, s.dst, &both, BPF_ANY), 0);
	expect_group("IPv4", mac4, 2);
	assert_int_equal(bpf_map_delete_elem(groups, s.dst), 0);
	egress_ipv6(&s);
	memset(s.dst, 0, 16);
	s.dst[0] = 0xff;
	s.dst[1] = 0x15;
	s.dst[14] = 1;
	s.dst[15] = 9;
	frame_build(&f, &s);
	expect_group("IPv6, nobody here", mac6, 0);
	assert_int_equal(bpf_map_update_elem(groups, s.dst, &both, BPF_ANY), 0);
	expect_group("IPv6", mac6, 2);
	s.payload_len = EGRESS_MTU;
	frame_build(&f, &s);
	egress_expect_refused(EGRESS_ME, "too long", XROCE_EGRESS_mtu, &egress_plain, f.bytes,
			      f.len);
	assert_int_equal(bpf_map_delete_elem(groups, s.dst), 0);
}

static void egress__unknown_tap(void **state)
{
	egress_reset();
	build();
	assert_int_equal(bpf_map_delete_elem(bpf_map__fd(broker->skel->maps.xroce_tap),
					     &egress.ifindex[EGRESS_ME]),
			 0);
	egress_expect_refused(EGRESS_ME, "no client's", XROCE_EGRESS_unknown_tap, &egress_plain,
			      f.bytes, f.len);
	egress_put_tap(EGRESS_ME);
	expect_wire("a client's again");
}

/* The filter stays when the broker is gone. */
static void egress__without_broker(void **state)
{
	struct egress_counts before;

	egress_reset();
	build();
	before = egress_count(EGRESS_ME);
	egress_put_alive(false);
	assert_true(egress_sent(EGRESS_ME, &egress_plain, f.bytes, f.len));
	egress_check_counts("no broker", EGRESS_ME, &before, XROCE_EGRESS_none, 0, 0, 0);
	egress_check_nothing_out("not to the wire");
	egress_put_alive(true);
	expect_wire("a broker");
}

static void put_lo(bool is_loopback)
{
	static const uint8_t lo4[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 }, lo6[16] = { [15] = 1 };
	const int wires = bpf_map__fd(broker->skel->maps.xroce_wire);
	const int gids = bpf_map__fd(broker->skel->maps.xroce_gid);
	const int clients_gids =
		bpf_map__fd(broker->client[EGRESS_OTHER].skel->maps.xroce_gid);
	const uint32_t zero = 0;
	struct xroce_wire wire;

	assert_int_equal(bpf_map_lookup_elem(wires, &zero, &wire), 0);
	wire.is_loopback = is_loopback;
	assert_int_equal(bpf_map_update_elem(wires, &zero, &wire, BPF_ANY), 0);
	for (int i = 0; i < 4; i++) {
		const int fd = i & 1 ? gids : clients_gids;
		const uint8_t *gid = i & 2 ? lo4 : lo6;

		if (is_loopback)
			assert_int_equal(bpf_map_update_elem(fd, gid, &zero, BPF_ANY), 0);
		else
			assert_int_equal(bpf_map_delete_elem(fd, gid), 0);
	}
}

/* Frames between addresses of lo turn round, all others are on no wire of lo's. */
static void egress__on_lo(void **state)
{
	struct frame_spec s = egress_spec();

	egress_reset();
	put_lo(true);
	egress_ud(&s);
	s.ecn_qpn = BROKER_UD(EGRESS_OTHER);
	memcpy(s.src + 12, (uint8_t[]){ 127, 0, 0, 1 }, 4);
	memcpy(s.dst + 12, (uint8_t[]){ 127, 0, 0, 1 }, 4);
	frame_build(&f, &s);
	egress_expect_round("127.0.0.1 to itself", EGRESS_OTHER, &egress_plain, f.bytes, f.len);
	s.dst[15] = 2;
	frame_build(&f, &s);
	egress_expect_refused(EGRESS_ME, "to 127.0.0.2", XROCE_EGRESS_not_roce, &egress_plain,
			      f.bytes, f.len);
	memcpy(s.dst, bench_peer4, 16);
	frame_build(&f, &s);
	egress_expect_refused(EGRESS_ME, "from 127.0.0.1 to another host", XROCE_EGRESS_not_roce,
			      &egress_plain, f.bytes, f.len);
	memcpy(s.src, bench_local4, 16);
	frame_build(&f, &s);
	egress_expect_refused(EGRESS_ME, "to another host", XROCE_EGRESS_no_wire, &egress_plain,
			      f.bytes, f.len);
	egress_ipv6(&s);
	memset(s.src, 0, 16);
	memset(s.dst, 0, 16);
	s.src[15] = s.dst[15] = 1;
	frame_build(&f, &s);
	egress_expect_round("::1 to itself", EGRESS_OTHER, &egress_plain, f.bytes, f.len);
	memcpy(s.src, bench_local6, 16);
	frame_build(&f, &s);
	egress_expect_round("another address to ::1", EGRESS_OTHER, &egress_plain, f.bytes, f.len);
	put_lo(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(egress__to_the_wire),
		cmocka_unit_test(egress__pkeys_of_the_table),
		cmocka_unit_test(egress__headers_in_pieces),
		cmocka_unit_test(egress__round),
		cmocka_unit_test(egress__near),
		cmocka_unit_test(egress__next_hop),
		cmocka_unit_test(egress__to_a_group),
		cmocka_unit_test(egress__on_lo),
		cmocka_unit_test(egress__unknown_tap),
		cmocka_unit_test(egress__without_broker),
	};

	return cmocka_run_group_tests_name("egress", tests, egress_setup, egress_teardown);
}
