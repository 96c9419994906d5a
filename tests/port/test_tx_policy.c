/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The path that frames leave by, on a TAP device that is not read; AF_XDP is a maker of the test's
 * own. Needs root.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "../unit/packets.h"

#include "../../user/os/clock.h"
#include "../../user/os/netdev.h"
#include "../../user/io/tx.h"
#include "../../user/io/umem.h"

#define WAIT_MS 20000
#define BATCH	12

static u64 seed;
static struct xroce_engine_stats stats;
static u8 slot[BATCH][UMEM_TX_SLOT_BYTES];
static u32 taken, by_xsk;

static u32 fake_room(struct tx *tx, u64 now_ns)
{
	return BATCH;
}

static u8 *fake_frame(struct tx *tx)
{
	return taken < BATCH ? slot[taken++] : NULL;
}

static void fake_give_back(struct tx *tx, u8 *frame)
{
	taken--;
}

static void fake_commit(struct tx *tx, u8 *frame, u32 len)
{
	by_xsk++;
}

static bool fake_flush(struct tx *tx)
{
	taken = 0;
	return true;
}

static void fake_close(struct tx *tx)
{
}

static const struct tx_ops fake_ops = { fake_room,   fake_frame, fake_give_back,
					fake_commit, NULL,	 fake_flush,	 fake_close };
static struct tx fake = { &fake_ops };

/* As many frames between two QPs as make a super-packet, with payloads of len bytes. */
static void send_batch_of(struct tx *tx, const struct path *path, enum xroce_transport transport,
			  u32 len)
{
	u32 room = tx_room(tx, clock_now_ns());

	for (u32 i = 0; i < BATCH && i < room; i++) {
		struct packet p = random_packet(&seed, OPCODE(transport, OP5_SEND_MIDDLE));
		u8 *frame = tx_frame(tx), *payload;

		assert_non_null(frame);
		p.dest_qpn = 7;
		p.pkey = ROCE_DEFAULT_PKEY;
		p.payload_len = len;
		payload = packet_put_headers(frame, path, &p);
		fill_random(&seed, payload, len);
		tx_commit(tx, frame, packet_seal(frame, payload, len));
	}
	tx_flush(tx);
}

static void send_batch(struct tx *tx, const struct path *path, enum xroce_transport transport)
{
	send_batch_of(tx, path, transport, 1024);
}

static int open_tap(void)
{
	struct ifreq ifr = { .ifr_name = "tap0", .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	return fd < 0 || ioctl(fd, TUNSETIFF, &ifr) ? -1 : fd;
}

/* A namespace with tap0 and a queue of `packets` packets; no TAP device for redirection then. */
static int make_tap(const char *packets, struct netdev *dev)
{
	char command[64];
	int fd;

	assert_int_equal(unshare(CLONE_NEWNET | CLONE_NEWNS), 0);
	fd = open_tap();
	assert_true(fd >= 0);
	snprintf(command, sizeof(command), "ip link set tap0 txqueuelen %s up", packets);
	assert_int_equal(system(command), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("tmpfs", "/dev/net", "tmpfs", 0, NULL), 0);
	assert_int_equal(netdev_find("tap0", dev), 0);
	assert_false(dev->is_stacked || dev->is_hardware);
	setenv("XROCE_QUIET", "1", 1);
	unsetenv("XROCE_TX");
	memset(&stats, 0, sizeof(stats));
	by_xsk = 0;
	return fd;
}

/* Its queue holds two packets: super-packets are accepted and dropped, which its counter tells. */
static void tx_policy__what_is_accepted_and_dropped(void **state)
{
	struct path path = random_path(&seed, false, false);
	struct netdev dev;
	int fd = make_tap("2", &dev);
	struct tx *tx = tx_policy_open(&dev, &fake, -1, false, true, &stats);
	u64 sent;

	assert_ptr_not_equal(tx, &fake);
	for (u32 ms = 0; ms < WAIT_MS && !stats.tx_gave_up; ms++) {
		send_batch(tx, &path, XROCE_RC);
		poll(NULL, 0, 1);
	}
	assert_int_equal(stats.tx_gave_up, 1);
	assert_true(stats.tx_gso > 0);
	sent = stats.tx_gso;
	by_xsk = 0;
	for (u32 i = 0; i < 10; i++)
		send_batch(tx, &path, XROCE_RC);
	assert_int_equal(by_xsk, 10 * BATCH);
	assert_int_equal(stats.tx_gso, sent);
	tx_close(tx);
	close(fd);
	umount("/dev/net");
}

/*
 * On an interface of several queues UC leaves by the one of the AF_XDP socket; RC may leave by any.
 */
static void tx_policy__what_keeps_its_order(void **state)
{
	struct path path = random_path(&seed, false, false);
	struct netdev dev;
	int fd = make_tap("1000", &dev);
	struct tx *tx = tx_policy_open(&dev, &fake, 0, false, true, &stats);

	assert_ptr_not_equal(tx, &fake);
	for (u32 i = 0; i < 3; i++)
		send_batch(tx, &path, XROCE_UC);
	assert_int_equal(by_xsk, 3 * BATCH);
	assert_int_equal(stats.tx_gso, 0);
	send_batch(tx, &path, XROCE_RC);
	assert_int_equal(stats.tx_gso, BATCH);
	tx_close(tx);
	close(fd);
	umount("/dev/net");
}

/* The kernel drops what matches on its way out of tap0. */
static void drop(const char *match)
{
	char command[200];

	snprintf(command, sizeof(command),
		 "nft 'table netdev t { chain c { type filter hook egress device tap0 priority 0; "
		 "%s drop; }; }'",
		 match);
	assert_int_equal(system(command), 0);
}

static void drop_no_more(void)
{
	assert_int_equal(system("nft delete table netdev t"), 0);
}

/* Until super-packets are given up, and a while longer: all by the packet socket. */
static void send_past_refusals(struct tx *tx, const struct path *path, const struct path *other,
			       u32 len)
{
	const u64 gave_up = stats.tx_gave_up;

	for (u32 ms = 0; ms < WAIT_MS && stats.tx_gave_up == gave_up; ms++) {
		send_batch_of(tx, path, XROCE_RC, len);
		poll(NULL, 0, 1);
	}
	assert_int_equal(stats.tx_gave_up, gave_up + 1);
	for (u32 i = 0; i < 50; i++) {
		send_batch_of(tx, path, XROCE_RC, len);
		send_batch_of(tx, other, XROCE_RC, 64);
		while (!tx_flush(tx))
			;
	}
	assert_int_equal(by_xsk, 0);
}

/* Whether the kernel takes a batch as a super-packet. */
static bool joins(struct tx *tx, const struct path *path)
{
	const u64 frames = stats.tx_gso, sends = stats.tx_gso_sends;

	send_batch(tx, path, XROCE_RC);
	return stats.tx_gso - frames > stats.tx_gso_sends - sends;
}

static const char *rule_of_host(const struct path *path)
{
	static char match[64];
	const u8 *ip = path->peer.raw + 12;

	snprintf(match, sizeof(match), "ip daddr %u.%u.%u.%u", ip[0], ip[1], ip[2], ip[3]);
	return match;
}

/*
 * A rule that drops frames to one host, or long ones, is met by all of them, though others are
 * taken. When it is deleted, super-packets are back at once.
 */
static void tx_policy__what_a_rule_drops(void **state)
{
	struct path path = random_path(&seed, false, false),
		    other = random_path(&seed, false, false);
	struct netdev dev;
	int fd = make_tap("10000", &dev);
	struct tx *tx = tx_policy_open(&dev, &fake, -1, false, true, &stats);
	const char *const rules[] = { rule_of_host(&path), "meta length > 1000" };

	assert_ptr_not_equal(tx, &fake);
	for (u32 i = 0; i < ARRAY_SIZE(rules); i++) {
		assert_true(joins(tx, &path));
		stats.tx_lost = 0;
		drop(rules[i]);
		send_past_refusals(tx, &path, &other, 1024);
		assert_true(stats.tx_lost >= 50 * BATCH);
		drop_no_more();
		assert_false(joins(tx, &path));
	}
	assert_true(joins(tx, &path));
	assert_int_equal(by_xsk, 0);
	tx_close(tx);
	close(fd);
	umount("/dev/net");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tx_policy__what_is_accepted_and_dropped),
		cmocka_unit_test(tx_policy__what_keeps_its_order),
		cmocka_unit_test(tx_policy__what_a_rule_drops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
