/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * By which socket a port by UDP sends (user/io/udp_sockets.c), with functions in the place of the C
 * library's that hold the packets to some addresses, as the kernel does for neighbours that do not
 * answer. No packet leaves. tests/port/test_udp.c has the same with the kernel's neighbours.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../unit/packets.h"

#include "../../user/engine/gso.h"
#include "../../user/io/tx_udp.h"
#include "../../user/io/udp_sockets.h"
#include "../../user/os/clock.h"

#define FDS	   1024
#define PEERS	   200u
#define ROUNDS	   60u
#define BLOCKED_MS 20u /* less than a replacement of a full socket takes */
#define STUCK_MS   400u
#define OVERHEAD   512 /* the kernel's memory for a packet */
#define MIDDLE	   OPCODE(XROCE_RC, OP5_SEND_MIDDLE)

static u64 seed = 0x0d9;
static struct xroce_engine_stats stats;

/* ---- the kernel ---- */

static bool is_silent[256]; /* by the last byte of the address */
static u64 answers_ns;	    /* when all answer */
static struct {
	int held;
	bool is_used; /* it has sent packets */
} socket_of[FDS];
static u32 sent_to[256], sockets_used, most_open;
static int last_fd;

static void *next_of(const char *name)
{
	void *next = dlsym(RTLD_NEXT, name);

	assert_non_null(next);
	return next;
}

static void socket_forget(int fd)
{
	if (fd >= 0 && fd < FDS)
		socket_of[fd].held = socket_of[fd].is_used = 0;
}

int close(int fd)
{
	socket_forget(fd);
	return ((int (*)(int))next_of("close"))(fd);
}

int dup3(int fd, int to, int flags)
{
	socket_forget(to);
	return ((int (*)(int, int, int))next_of("dup3"))(fd, to, flags);
}

/* The packets that were held leave. */
static void let_answer(void)
{
	memset(is_silent, 0, sizeof(is_silent));
	for (u32 i = 0; i < FDS; i++)
		socket_of[i].held = 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	int *bytes;

	va_start(args, request);
	bytes = va_arg(args, int *);
	va_end(args);
	assert_int_equal(request, SIOCOUTQ);
	assert_in_range(fd, 0, FDS - 1);
	if (answers_ns && clock_now_ns() >= answers_ns)
		let_answer();
	*bytes = socket_of[fd].held;
	return 0;
}

static u16 port_of(int fd)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	return ntohs(at.sin_port);
}

/* Takes a datagram. Each frame has the port of the socket before its payload. */
static bool take(int fd, const struct msghdr *m)
{
	const struct sockaddr_in *to = m->msg_name;
	const u32 peer = ntohl(to->sin_addr.s_addr) & 0xff;
	int room = 0, bytes = OVERHEAD;
	socklen_t len = sizeof(room);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &len), 0);
	if (socket_of[fd].held >= room)
		return false;
	for (u32 i = 0; i < m->msg_iovlen; i++) {
		assert_int_equal(get16((const u8 *)m->msg_iov[i].iov_base - 8), port_of(fd));
		bytes += (int)m->msg_iov[i].iov_len;
	}
	socket_of[fd].held += is_silent[peer] ? bytes : 0;
	sent_to[peer] += (u32)m->msg_iovlen;
	sockets_used += !socket_of[fd].is_used;
	socket_of[fd].is_used = true;
	last_fd = fd;
	return true;
}

static long take_all(int fd, const struct mmsghdr *m, u32 n)
{
	u32 open = 0;
	long sent = 0;

	assert_in_range(fd, 0, FDS - 1);
	while (sent < (long)n && take(fd, &m[sent].msg_hdr))
		sent++;
	for (u32 i = 0; i < FDS; i++)
		open += socket_of[i].is_used;
	most_open = open > most_open ? open : most_open;
	errno = EAGAIN;
	return sent ? sent : -1;
}

long syscall(long number, ...)
{
	long (*next)(long, ...) = (long (*)(long, ...))next_of("syscall");
	va_list args;
	long a[6];

	va_start(args, number);
	for (size_t i = 0; i < ARRAY_SIZE(a); i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_close || number == SYS_dup3)
		socket_forget((int)a[number == SYS_dup3]);
	return number == SYS_sendmmsg ? take_all((int)a[0], (const struct mmsghdr *)a[1],
						 (u32)a[2]) :
					next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- the sender ---- */

#define ALIVE 250u

static int setup(void **state)
{
	const struct netdev dev = { .ifindex = 1 };
	struct tx *tx = NULL;

	memset(socket_of, 0, sizeof(socket_of));
	memset(is_silent, 0, sizeof(is_silent));
	memset(sent_to, 0, sizeof(sent_to));
	memset(&stats, 0, sizeof(stats));
	sockets_used = most_open = 0;
	answers_ns = 0;
	assert_int_equal(tx_udp_open(&dev, &stats, &tx), 0);
	*state = tx;
	return 0;
}

static int teardown(void **state)
{
	tx_close(*state);
	return 0;
}

static void commit(struct tx *tx, u32 to, u32 payload_len)
{
	const struct gid local = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 } };
	struct path path = { .hop_limit = 9, .udp_sport = 0xc123, .local = local, .peer = local };
	struct packet p = random_packet(&seed, MIDDLE);
	u8 *frame = tx_frame(tx), *payload;

	assert_non_null(frame);
	path.peer.raw[15] = (u8)to;
	p.ip_id = 0;
	p.payload_len = payload_len;
	payload = packet_put_headers(frame, &path, &p);
	fill_random(&seed, payload, payload_len);
	tx_commit(tx, frame, packet_seal(frame, payload, payload_len));
}

static void flush_within(struct tx *tx, u32 ms)
{
	const u64 until_ns = clock_now_ns() + ms * NSEC_PER_MSEC;

	while (!tx_flush(tx)) {
		assert_true(clock_now_ns() < until_ns);
		poll(NULL, 0, 1);
	}
}

/* Sends some frames to each of the peers, and after each one to the peer that is alive. */
static void send_round(struct tx *tx, u32 ms)
{
	for (u32 i = 0; i < PEERS; i++) {
		for (u32 k = 0; k < 3; k++)
			commit(tx, i, 1024);
		commit(tx, ALIVE, 64);
		flush_within(tx, ms);
	}
}

static void silence_peers(void)
{
	memset(is_silent, 1, PEERS);
}

/* ---- tests ---- */

/* An address has a socket of its own until a packet has left, and then one with others. */
static void udp_sockets__one_trial_each(void **state)
{
	struct tx *tx = *state;
	int shared_fd;

	commit(tx, ALIVE, 64);
	flush_within(tx, 0);
	commit(tx, ALIVE, 64);
	flush_within(tx, 0);
	shared_fd = last_fd;
	assert_int_equal(sockets_used, 2);
	for (u32 i = 0; i < PEERS; i++) {
		commit(tx, i, 64);
		flush_within(tx, 0);
		assert_int_not_equal(last_fd, shared_fd);
		commit(tx, i, 64);
		flush_within(tx, 0);
		assert_int_equal(last_fd, shared_fd);
	}
	assert_int_equal(sockets_used, 2 + PEERS);
	assert_int_equal(stats.tx_lost, 0);
	/* several addresses in one flush, each of its own socket or of the shared one */
	is_silent[PEERS] = true;
	commit(tx, PEERS, 64);
	commit(tx, ALIVE, 64);
	commit(tx, 0, 64);
	commit(tx, PEERS + 1, 64);
	commit(tx, PEERS, 64);
	flush_within(tx, 0);
	assert_int_equal(sent_to[PEERS], 2);
	assert_int_equal(sockets_used, 4 + PEERS);
}

/* Neighbours that never answered delay none, and lose what has no room. */
static void udp_sockets__silent_from_the_start(void **state)
{
	struct tx *tx = *state;

	silence_peers();
	for (u32 i = 0; i < ROUNDS; i++)
		send_round(tx, BLOCKED_MS);
	assert_int_equal(sent_to[ALIVE], ROUNDS * PEERS);
	assert_true(most_open <= UDP_TRIALS + 2);
}

/* A single one, whose socket stays full. */
static void udp_sockets__one_is_silent(void **state)
{
	struct tx *tx = *state;

	is_silent[0] = true;
	for (u32 i = 0; i < 2000; i++) {
		commit(tx, 0, 4096);
		commit(tx, ALIVE, 64);
		flush_within(tx, BLOCKED_MS);
	}
	assert_int_equal(sent_to[ALIVE], 2000);
	assert_true(stats.tx_lost > 1000);
	/* its packets leave once it answers */
	let_answer();
	stats.tx_lost = 0;
	for (u32 i = 0; i < 2000; i++) {
		commit(tx, 0, 4096);
		flush_within(tx, 0);
	}
	assert_int_equal(stats.tx_lost, 0);
}

/* Neighbours that answered before fill the shared socket once; then they delay none. */
static void udp_sockets__fall_silent(void **state)
{
	struct tx *tx = *state;
	u32 alive;

	send_round(tx, 0);
	silence_peers();
	for (u32 i = 0; i < ROUNDS; i++)
		send_round(tx, STUCK_MS);
	alive = sent_to[ALIVE];
	for (u32 i = 0; i < ROUNDS; i++)
		send_round(tx, BLOCKED_MS);
	assert_int_equal(sent_to[ALIVE], alive + ROUNDS * PEERS);
	let_answer();
	send_round(tx, 0);
	stats.tx_lost = 0;
	send_round(tx, 0);
	assert_int_equal(stats.tx_lost, 0);
}

/* If a neighbour answers, or a card reports, after a millisecond, a burst loses nothing. */
static void udp_sockets__waits_for_the_first_answer(void **state)
{
	struct tx *tx = *state;

	is_silent[0] = true;
	answers_ns = clock_now_ns() + NSEC_PER_MSEC;
	for (u32 i = 0; i < 200; i++) {
		commit(tx, 0, 4096);
		flush_within(tx, BLOCKED_MS);
	}
	assert_int_equal(stats.tx_lost, 0);
	assert_int_equal(sent_to[0], 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(udp_sockets__one_trial_each, setup, teardown),
		cmocka_unit_test_setup_teardown(udp_sockets__silent_from_the_start, setup,
						teardown),
		cmocka_unit_test_setup_teardown(udp_sockets__one_is_silent, setup, teardown),
		cmocka_unit_test_setup_teardown(udp_sockets__fall_silent, setup, teardown),
		cmocka_unit_test_setup_teardown(udp_sockets__waits_for_the_first_answer, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("udp_sockets", tests, NULL, NULL);
}
