/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The way out of a process that shares the interface, on a TAP device in a network namespace of the
 * test's own: what a packet socket on the device sees come in; what becomes of frames when the
 * device is down or gone, or when the kernel refuses some. Needs root, for the device.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/pkt_cls.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/os/clock.h"
#include "../../user/os/netdev.h"
#include "../../user/io/tx.h"

#include "frames.h"

#define WAIT_MS 20000
#define NOBODY	65534

static struct xroce_engine_stats stats;
static struct netdev dev;
static struct path path[2];
static int tap_fd, wire_fd;
static struct tx *tx;
static u64 ahead_ns; /* of the clock */

/* ---- the device ---- */

static int make_tap(const char *name, short flags)
{
	struct ifreq ifr = { .ifr_flags = (short)(IFF_TAP | IFF_NO_PI | flags) };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, TUNSETIFF, &ifr), 0);
	return fd;
}

/* A frame from a device, with the kernel's struct virtio_net_hdr. */
static int watch_tap(const char *name)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET,
					.sll_protocol = htobe16(ETH_P_ALL),
					.sll_ifindex = (int)if_nametoindex(name) };
	const int one = 1, room = 8 << 20;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)), 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/*
 * tap0 is the process's device. wire0 is the interface, whose queue holds two packets and which is
 * not read. The maker finds another header size set than its own.
 */
static int setup(void **state)
{
	const int header = 12;

	seed = 0x5ea;
	memset(&stats, 0, sizeof(stats));
	path[0] = random_path(&seed, false, false);
	path[1] = random_path(&seed, false, false);
	unsetenv("XROCE_TX");
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	tap_fd = make_tap("tap0", IFF_VNET_HDR);
	wire_fd = make_tap("wire0", 0);
	assert_int_equal(ioctl(tap_fd, TUNSETVNETHDRSZ, &header), 0);
	assert_int_equal(system("ip link set tap0 addrgenmode none up &&"
				"ip link set wire0 addrgenmode none txqueuelen 2 up"),
			 0);
	far_end = watch_tap("tap0");
	assert_int_equal(netdev_find("wire0", &dev), 0);
	assert_false(dev.is_hardware || dev.is_stacked);
	tx = tx_shared_open(&dev, tap_fd, -1, true, &stats);
	assert_non_null(tx);
	return 0;
}

static int teardown(void **state)
{
	tx_close(tx);
	assert_int_equal(fcntl(tap_fd, F_GETFD), -1);
	close(wire_fd);
	close(far_end);
	return 0;
}

/* Runs fn in a child, which returns the number of the check that failed; 0: none. */
static void run_in_child(int (*fn)(void))
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(fn());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- sending ---- */

static u64 test_now_ns(void)
{
	return clock_now_ns() + ahead_ns;
}

/* Frames first to first + n - 1, as the pump does it. */
static bool send_frames(u32 first, u32 n)
{
	assert_true(tx_room(tx, test_now_ns()) >= n);
	for (u32 i = first; i < first + n; i++) {
		u8 *to = tx_frame(tx);

		assert_non_null(to);
		memcpy(to, buf[i], frame[i].len);
		tx_commit(tx, to, frame[i].len);
	}
	return tx_flush(tx);
}

static void make_all(u32 n, u32 per_path, enum xroce_transport transport)
{
	for (u32 i = 0; i < n; i++)
		make_of(i, &path[i / per_path % 2], 256, transport);
}

/* Single frames and super-packets, each counted as its kind, in order. */
static void tx_shared__groups_and_singles(void **state)
{
	struct path six = random_path(&seed, true, false);
	static const u32 want[] = { 5, 1, 1, 3, 1, 0 };
	u32 first = 0;

	for (u32 i = 0; i < 5; i++)
		make(i, &path[0], 256);
	make(5, &six, 256);
	make(6, &six, 4096);
	for (u32 i = 7; i < 10; i++)
		make(i, &path[1], 4096);
	make(10, &path[0], 64);
	assert_true(send_frames(0, 11));
	for (u32 i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(receive(first), want[i]);
		first += want[i];
	}
	assert_int_equal(stats.tx_tap, 3);
	assert_int_equal(stats.tx_tap_writes, 3);
	assert_int_equal(stats.tx_gso, 8);
	assert_int_equal(stats.tx_gso_sends, 2);
	assert_int_equal(stats.tx_lost, 0);
}

/* A request passes the acknowledgement in front of it, which then ends the super-packet. */
static void tx_shared__order(void **state)
{
	u8 swap[PACKET_FRAME_MAX];
	u32 len;

	make(0, &path[0], 256);
	make(1, &path[0], 0);
	buf[1][GSO_HEADER_BYTES] = OPCODE(XROCE_RC, OP5_ACKNOWLEDGE);
	/* the acknowledgement is committed first */
	memcpy(swap, buf[0], len = frame[0].len);
	memcpy(buf[0], buf[1], frame[0].len = frame[1].len);
	memcpy(buf[1], swap, frame[1].len = len);
	assert_true(send_frames(0, 2));
	assert_int_equal(stats.tx_gso, 2);
	assert_int_equal(stats.tx_gso_sends, 1);
}

/* Every frame comes back to the pool, used or not. */
static void tx_shared__pool(void **state)
{
	u8 *taken[XROCE_TX_FRAMES];

	make_all(FRAMES, 3, XROCE_RC);
	for (u32 round = 0; round < 4 * XROCE_TX_FRAMES / 60; round++)
		assert_true(send_frames(60 * (round % 2), 60));
	for (u32 i = 0; i < XROCE_TX_FRAMES; i++) {
		taken[i] = tx_frame(tx);
		assert_non_null(taken[i]);
	}
	assert_null(tx_frame(tx));
	assert_int_equal(tx_room(tx, test_now_ns()), 0);
	for (u32 i = 0; i < XROCE_TX_FRAMES; i++)
		tx_give_back(tx, taken[i]);
	assert_true(tx_room(tx, test_now_ns()) >= 60);
	assert_true(tx_flush(tx));
}

/* Four frames that may share a super-packet, by a second maker: they do. */
static void expect_with(const char *option, u32 want)
{
	struct tx *first = tx;

	setenv("XROCE_TX", option, 1);
	tx = tx_shared_open(&dev, fcntl(tap_fd, F_DUPFD_CLOEXEC, 0), -1, true, &stats);
	unsetenv("XROCE_TX");
	assert_non_null(tx);
	make_all(4, 4, XROCE_RC);
	assert_true(send_frames(0, 4));
	for (u32 i = 0; i < 4; i += want)
		assert_int_equal(receive(i), want);
	tx_close(tx);
	tx = first;
}

static void tx_shared__options(void **state)
{
	expect_with("auto", 4);
	expect_with("tap", 1);
	/* not used by default there */
	dev.is_hardware = true;
	expect_with("auto", 1);
	expect_with("gso", 4);
}

static int send_unprivileged(void)
{
	if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		return 1;
	tx = tx_shared_open(&dev, fcntl(tap_fd, F_DUPFD_CLOEXEC, 0), -1, true, &stats);
	if (!tx)
		return 2;
	if (!send_frames(0, 8) || stats.tx_gso != 8 || stats.tx_lost || !stats.tx_pacer)
		return 3;
	tx_close(tx);
	return 0;
}

/* A client has no capability at all. */
static void tx_shared__unprivileged(void **state)
{
	make_all(8, 4, XROCE_RC);
	run_in_child(send_unprivileged);
	assert_int_equal(receive(0), 4);
	assert_int_equal(receive(4), 4);
}

/* The descriptor stays its owner's. */
static void tx_shared_open__no_tap(void **state)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	assert_null(tx_shared_open(&dev, pair[0], -1, true, &stats));
	assert_int_equal(close(pair[0]), 0);
	close(pair[1]);
}

/* ---- the device for single frames ---- */

static int many_end; /* tap0's, while far_end is tap1's, the device for single frames */

static void open_with_single(void)
{
	const int single_fd = make_tap("tap1", 0);

	assert_int_equal(system("ip link set tap1 addrgenmode none up"), 0);
	many_end = far_end;
	far_end = watch_tap("tap1");
	tx_close(tx);
	/* a device is gone with its descriptor */
	tap_fd = make_tap("tap0", IFF_VNET_HDR);
	assert_int_equal(system("ip link set tap0 addrgenmode none up"), 0);
	close(many_end);
	many_end = watch_tap("tap0");
	memset(&stats, 0, sizeof(stats));
	tx = tx_shared_open(&dev, tap_fd, single_fd, true, &stats);
	assert_non_null(tx);
}

/* The frame is the next that came by tap1, alone: asks it to be routed? */
static bool single_is_routed(u32 i)
{
	u8 *source = arrived + sizeof(struct virtio_net_hdr) + 6;

	assert_int_equal(receive(i), 1);
	assert_int_equal(source[0] | XROCE_ROUTED, buf[i][6] | XROCE_ROUTED);
	assert_memory_equal(source + 1, buf[i] + 7, 5);
	return source[0] & XROCE_ROUTED;
}

static u32 receive_many(u32 first)
{
	const int single_end = far_end;
	u32 n;

	far_end = many_end;
	n = receive(first);
	far_end = single_end;
	return n;
}

/* Sends frame i until the kernel has said that the interface takes redirected frames. */
static void await_direct(u32 i)
{
	for (u32 ms = 0; ms < WAIT_MS; ms++) {
		assert_true(send_frames(i, 1));
		if (!single_is_routed(i))
			return;
		poll(NULL, 0, 1);
	}
	fail_msg("never redirected");
}

/* Source MACs have no group bit. */
static void make_singles(u32 n, u32 payload_len, enum xroce_transport transport)
{
	path[0].smac[0] &= (u8)~XROCE_ROUTED;
	for (u32 i = 0; i < n; i++)
		make_of(i, &path[0], payload_len, transport);
}

/*
 * Before the kernel reports that frames can be redirected they must be routed. Then they leave as
 * they are, few ones not joined; long or many frames go by the other device.
 */
static void tx_shared__single_device(void **state)
{
	open_with_single();
	make_singles(20, 256, XROCE_RC);
	assert_true(send_frames(0, 1));
	assert_true(single_is_routed(0));
	assert_true(send_frames(1, 4));
	assert_int_equal(receive_many(1), 4);
	assert_int_equal(stats.tx_tap, 1);
	assert_int_equal(stats.tx_gso, 4);
	await_direct(0);
	assert_true(send_frames(0, 11));
	for (u32 i = 0; i < 11; i++)
		assert_false(single_is_routed(i));
	assert_true(send_frames(0, 12));
	assert_int_equal(receive_many(0), 12);
	/* longer than a TAP hands to XDP in one page */
	make_singles(1, 4096, XROCE_RC);
	assert_true(send_frames(0, 1));
	assert_int_equal(receive(0), 0);
	assert_int_equal(receive_many(0), 1);
	assert_int_equal(stats.tx_lost, 0);
	close(many_end);
}

/* On an interface of several queues, what keeps its order leaves by the kernel's choice of one. */
static void tx_shared__single_ordered(void **state)
{
	dev.rx_queues = 2;
	open_with_single();
	make_singles(2, 256, XROCE_RC);
	await_direct(0);
	make_singles(3, 256, XROCE_UC);
	assert_true(send_frames(0, 1));
	assert_true(single_is_routed(0));
	assert_true(send_frames(0, 3));
	assert_int_equal(receive_many(0), 3);
	make_singles(1, 256, XROCE_RC);
	assert_true(send_frames(0, 1));
	assert_false(single_is_routed(0));
	close(many_end);
}

/* ---- when frames do not leave ---- */

/* All sent frames are lost and counted, and free again. */
static void expect_lost(void)
{
	make_all(60, 3, XROCE_RC);
	memset(&stats, 0, sizeof(stats));
	for (u32 i = 0; i < 20; i++) {
		ahead_ns += 2 * NSEC_PER_MSEC;
		assert_true(send_frames(0, 60));
	}
	assert_int_equal(stats.tx_lost, 20 * 60);
	assert_int_equal(stats.tx_gso + stats.tx_tap, 0);
	assert_int_equal(stats.tx_gave_up, 0);
}

static void tx_shared__device_down(void **state)
{
	assert_int_equal(system("ip link set tap0 down"), 0);
	expect_lost();
	assert_int_equal(system("ip link set tap0 up"), 0);
	/* the packet socket reports it, once */
	assert_int_equal(recv(far_end, buf, sizeof(buf), MSG_DONTWAIT), -1);
	make_all(4, 4, XROCE_RC);
	assert_true(send_frames(0, 4));
	assert_int_equal(receive(0), 4);
}

static void tx_shared__device_gone(void **state)
{
	assert_int_equal(system("ip link delete tap0"), 0);
	expect_lost();
}

/*
 * No room for a while, for single frames and super-packets, in whose place a pair of Unix sockets
 * takes a few at a time: flush reports that, nothing is lost, duplicated or reordered.
 */
static void tx_shared__no_room(void **state)
{
	const int some = 8192;
	u32 got = 0, waits = 0, more;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &some, sizeof(some)), 0);
	assert_int_equal(dup2(pair[0], tap_fd), tap_fd);
	close(pair[0]);
	close(far_end);
	far_end = pair[1];
	for (u32 i = 0; i < 60; i++)
		make_of(i, &path[i / 3 % 2], 100 + i / 30 * (i % 3), XROCE_UC);
	assert_false(send_frames(0, 60));
	while (got < 60) {
		bool all = false;

		more = receive(got);
		got += more;
		all = tx_flush(tx);
		waits += !all;
		assert_true(more || !all);
		if (all)
			for (; got < 60 && (more = receive(got)); got += more)
				;
	}
	assert_int_equal(receive(0), 0);
	assert_true(waits > 1);
	assert_true(tx_flush(tx));
	assert_int_equal(stats.tx_gso + stats.tx_tap, 60);
	assert_int_equal(stats.tx_lost, 0);
}

/* From here on, a writev() of more than two pieces, a super-packet, ends with that error. */
static bool refuse_super_packets(u32 err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_writev, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = { ARRAY_SIZE(code), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* A kernel that knows no such super-packets says EINVAL. */
static int send_to_old_kernel(void)
{
	if (!refuse_super_packets(EINVAL))
		return 1;
	if (!send_frames(0, 10) || stats.tx_tap != 10 || stats.tx_gso || stats.tx_lost)
		return 2;
	for (u32 i = 0; i < 10; i++)
		if (receive(i) != 1)
			return 3;
	return 0;
}

static void tx_shared__old_kernel(void **state)
{
	make_all(10, 5, XROCE_RC);
	run_in_child(send_to_old_kernel);
}

/*
 * No memory for a super-packet: a TAP that refuses one has sent no part of it, so that datagrams
 * wait as everything else does. When that goes on for long, frames leave one by one.
 */
static int send_without_memory(void)
{
	if (!refuse_super_packets(ENOBUFS))
		return 1;
	if (send_frames(0, 10) || stats.tx_lost || stats.tx_gso || receive(0))
		return 2;
	for (u32 i = 0; i < 20 && !stats.tx_gave_up; i++) {
		ahead_ns += 2 * NSEC_PER_MSEC;
		tx_room(tx, test_now_ns());
		if (tx_flush(tx))
			return 3;
	}
	tx_room(tx, test_now_ns());
	if (!tx_flush(tx) || stats.tx_gave_up != 1 || stats.tx_tap != 10 || stats.tx_lost)
		return 4;
	for (u32 i = 0; i < 10; i++)
		if (receive(i) != 1)
			return 5;
	return 0;
}

static void tx_shared__no_memory(void **state)
{
	make_all(10, 5, XROCE_UD);
	run_in_child(send_without_memory);
}

/* Frames written to tap0 are sent on to an interface. */
static void redirect_to(const char *name)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 1,
		  .imm = (int)if_nametoindex(name) },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = 0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)if_nametoindex("tap0"),
		    .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts);

	opts.prog_fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, NULL, "Dual BSD/GPL", code,
				     ARRAY_SIZE(code), NULL);
	assert_true(opts.prog_fd >= 0);
	assert_int_equal(bpf_tc_hook_create(&hook), 0);
	assert_int_equal(bpf_tc_attach(&hook, &opts), 0);
	close(opts.prog_fd);
}

/*
 * What the interface drops makes for smaller portions, and super-packets are given up: no call that
 * sends one fails.
 */
static void tx_shared__interface_drops(void **state)
{
	u64 alone, super;

	redirect_to("wire0");
	make_all(12, 12, XROCE_RC);
	for (u32 ms = 0; ms < WAIT_MS && !stats.tx_gave_up; ms++) {
		const u32 room = tx_room(tx, test_now_ns());

		assert_in_range(room, 0, stats.tx_pacer);
		if (room >= 12)
			assert_true(send_frames(0, 12));
		poll(NULL, 0, 1);
	}
	assert_int_equal(stats.tx_gave_up, 1);
	assert_true(stats.tx_slowed > 0);
	assert_in_range(stats.tx_pacer, 16, XROCE_TX_FRAMES - 1);
	assert_int_equal(stats.tx_lost, 0);
	alone = stats.tx_tap;
	super = stats.tx_gso;
	assert_true(super > 0);
	while (tx_room(tx, test_now_ns()) < 12)
		poll(NULL, 0, 1);
	assert_true(send_frames(0, 12));
	assert_int_equal(stats.tx_tap, alone + 12);
	assert_int_equal(stats.tx_gso, super);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(tx_shared__groups_and_singles),
		CASE(tx_shared__order),
		CASE(tx_shared__pool),
		CASE(tx_shared__options),
		CASE(tx_shared__unprivileged),
		CASE(tx_shared_open__no_tap),
		CASE(tx_shared__single_device),
		CASE(tx_shared__single_ordered),
		CASE(tx_shared__device_down),
		CASE(tx_shared__device_gone),
		CASE(tx_shared__no_room),
		CASE(tx_shared__old_kernel),
		CASE(tx_shared__no_memory),
		CASE(tx_shared__interface_drops),
#undef CASE
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
