/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=1 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: messages of fixed layout from a peer (rsockets, xroce ping, xroce bench). Looks
 * for reads after the message's end. An accepted message holds its documented bounds and encodes to
 * the bytes that were decoded. A ping is accepted if and only if it equals the ping that a sender
 * fills.
 *
 * scripts/fuzz.sh BUILD wire SECONDS runs it. An input is enum kind in one byte, then the message.
 */
#include "../../user/tools/bench/bench.h"
#include "../../user/tools/bench/ping.h"
#include "../../user/rsocket/rsocket_protocol.h"
#include "fuzz.h"

enum kind { CONN, DGRAM, UDP, PING, BENCH, KINDS };

static void check_conn(const u8 *data, size_t size)
{
	struct wire_conn conn, again;
	u8 bytes[WIRE_CONN_BYTES];

	memset(&conn, 0, sizeof(conn));
	memset(&again, 0, sizeof(again));
	if (!wire_get_conn(&conn, data, size))
		return;
	REQUIRE(size >= WIRE_CONN_BYTES && conn.list.length);
	REQUIRE(conn.iomap || !conn.iomap_size);
	REQUIRE(wire_iomap_size(conn.iomap_size) == conn.iomap_size);
	wire_put_conn(bytes, &conn);
	REQUIRE(!memcmp(bytes + 2, data + 2, 2) && !memcmp(bytes + 8, data + 8, 32));
	REQUIRE(wire_get_conn(&again, bytes, sizeof(bytes)));
	REQUIRE(!memcmp(&conn, &again, sizeof(conn)));
}

static void check_dgram(const u8 *data, size_t size)
{
	u8 bytes[WIRE_DGRAM_MAX_BYTES];
	struct wire_address from;
	const u32 n = wire_get_dgram(&from, data, size);

	REQUIRE(n <= size);
	if (n)
		REQUIRE(wire_put_dgram(bytes, &from) == n && !memcmp(bytes, data, n));
}

static void check_udp(const u8 *data, size_t size)
{
	u8 bytes[WIRE_UDP_MAX_BYTES];
	struct wire_udp udp;
	const u32 n = wire_get_udp(&udp, data, size);

	REQUIRE(n <= size);
	if (!n)
		return;
	REQUIRE(udp.qpn <= 0xffffff);
	REQUIRE(wire_put_udp(bytes, &udp) == n);
	/* reserved bytes */
	bytes[7] = data[7];
	bytes[8] = data[8];
	REQUIRE(!memcmp(bytes, data, n));
}

static void check_ping(const u8 *data, u32 size, enum ping_kind kind)
{
	u64 session = 0, seq = 0;
	const bool accepted = ping_check(data, size, kind, &session, &seq);
	struct ping_header head;
	u8 *filled;

	REQUIRE(!accepted || size >= sizeof(head));
	if (size < sizeof(head))
		return;
	memcpy(&head, data, sizeof(head));
	filled = malloc(size);
	REQUIRE(filled);
	ping_fill(filled, size, kind, be64toh(head.session), be64toh(head.seq));
	REQUIRE(accepted == !memcmp(filled, data, size));
	REQUIRE(!accepted || (session == be64toh(head.session) && seq == be64toh(head.seq)));
	free(filled);
}

/* Bounds of the memory and time that a server spends on a test. */
static void check_test(const struct bench_test *t)
{
	REQUIRE(t->size >= BENCH_LEAST_SIZE && t->size <= BENCH_MOST_SIZE);
	REQUIRE(t->depth >= 1 && t->depth <= BENCH_MOST_DEPTH);
	REQUIRE((u64)t->size * t->depth <= 2 * BENCH_MOST_SIZE);
	REQUIRE(t->duration_ns >= 1 && t->duration_ns <= BENCH_MOST_NS);
	REQUIRE(t->size <= bench_way_most(t->way, t->path_mtu));
}

static bool is_path_mtu(u32 mtu)
{
	return mtu == 256 || mtu == 512 || mtu == 1024 || mtu == 2048 || mtu == 4096;
}

static void check_bench(const u8 *data, size_t size)
{
	u8 bytes[BENCH_WIRE_BYTES], again[BENCH_WIRE_BYTES];
	struct bench_message m, second;
	const char *wrong;

	if (size < sizeof(bytes))
		return;
	wrong = bench_decode(&m, data);
	if (wrong) {
		REQUIRE(*wrong);
		return;
	}
	REQUIRE(m.type < BENCH_TYPE_END && m.test.way < BENCH_WAY_END);
	REQUIRE(m.test.measure < BENCH_MEASURE_END);
	REQUIRE(m.qpn <= 0xffffff && m.psn <= 0xffffff);
	REQUIRE(m.type != BENCH_FAILED || (m.status >= 1 && m.status <= 4095));
	if (m.type == BENCH_SETUP)
		check_test(&m.test);
	if (m.type == BENCH_SETUP || (m.type == BENCH_HELLO && m.path_mtu))
		REQUIRE(is_path_mtu(m.path_mtu));
	bench_encode(bytes, &m);
	/* all but the reserved bytes at the end */
	REQUIRE(!memcmp(bytes, data, sizeof(bytes) - 56));
	REQUIRE(!bench_decode(&second, bytes));
	bench_encode(again, &second);
	REQUIRE(!memcmp(bytes, again, sizeof(bytes)));
}

/* ---- seeds ---- */

static void seed(enum kind kind, size_t number, const void *data, size_t bytes)
{
	const u8 head = (u8)kind;

	fuzz_seed("wire", kind * 100u + number, &head, 1, data, bytes);
}

static void seed_rsocket(void)
{
	const struct wire_conn conn = { .iomap = true,
					.credits = 384,
					.iomap_size = 512,
					.list = { 0x10000, 7, WIRE_SLOTS },
					.buffer = { 0x20000, 8, 65536 } };
	u8 bytes[WIRE_CONN_BYTES];

	wire_put_conn(bytes, &conn);
	seed(CONN, 0, bytes, sizeof(bytes));
	for (u8 version = 4; version <= 6; version += 2) {
		const struct wire_address from = { .version = version, .port = 7, .flowinfo = 9 };
		struct wire_udp udp = { .op = WIRE_DATA, .qpn = 17, .address = from };

		seed(DGRAM, version, bytes, wire_put_dgram(bytes, &from));
		seed(UDP, version, bytes, wire_put_udp(bytes, &udp));
		udp.op = WIRE_CTRL;
		seed(UDP, 10u + version, bytes, wire_put_udp(bytes, &udp));
	}
}

static void seed_bench(void)
{
	u8 bytes[BENCH_WIRE_BYTES];

	for (u32 type = 0; type < BENCH_TYPE_END; type++)
		for (u32 way = 0; way < BENCH_WAY_END; way++) {
			const struct bench_message m = { .type = type,
							 .test = { .way = way,
								   .size = 64,
								   .depth = 16,
								   .path_mtu = 1024,
								   .duration_ns = 1000 },
							 .path_mtu = 1024,
							 .status = EIO };

			bench_encode(bytes, &m);
			seed(BENCH, 10 * type + way, bytes, sizeof(bytes));
		}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	u8 ping[100];

	if (!fuzz_seed_dir())
		return 0;
	for (u32 size = sizeof(struct ping_header); size <= sizeof(ping); size += 38) {
		ping_fill(ping, size, PING_REQUEST, 1, 250);
		seed(PING, size, ping, size);
		ping_fill(ping, size, PING_REPLY, 1, 2);
		seed(PING, size + 1, ping, size);
	}
	seed_rsocket();
	seed_bench();
	exit(0);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	if (!size)
		return 0;
	/* libFuzzer's buffer ends with the message: a read after it is found */
	switch (data[0] % KINDS) {
	case CONN:
		check_conn(data + 1, size - 1);
		break;
	case DGRAM:
		check_dgram(data + 1, size - 1);
		break;
	case UDP:
		check_udp(data + 1, size - 1);
		break;
	case PING:
		check_ping(data + 1, (u32)size - 1, PING_REQUEST);
		check_ping(data + 1, (u32)size - 1, PING_REPLY);
		break;
	case BENCH:
		check_bench(data + 1, size - 1);
		break;
	}
	return 0;
}
