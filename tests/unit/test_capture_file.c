/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* The files of a capture: interfaces without a bound, what of the losses each says, a full disk. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "../../user/tools/trace/capture.h"

enum { BLOCK_INTERFACE = 1, BLOCK_STATISTICS = 5, BLOCK_PACKET = 6 };

static char dir[] = "/tmp/test_capture_file-XXXXXX", path[sizeof(dir) + 2];
static const u8 data[64];

static int make_dir(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/f", dir);
	return 0;
}

static int remove_dir(void **state)
{
	char name[sizeof(path) + 8];

	for (u32 i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), i ? "%s%u" : "%s", path, i);
		unlink(name);
	}
	return rmdir(dir);
}

static void put(struct capture_file *f, const char *iface, u64 lost)
{
	struct pcapng_packet packet = {
		.data = data, .captured = sizeof(data), .len = sizeof(data), .comment = ""
	};

	assert_int_equal(capture_file_put(f, iface, &packet, lost), 0);
}

/* Blocks of that type in the nth file; *lost: the losses of all statistics. */
static u32 blocks(u32 nth, u32 type, u64 *lost)
{
	static u8 bytes[1 << 20];
	char name[sizeof(path) + 8];
	u32 n = 0, head[2];
	size_t len;
	FILE *in;

	snprintf(name, sizeof(name), nth ? "%s%u" : "%s", path, nth);
	in = fopen(name, "r");
	assert_non_null(in);
	len = fread(bytes, 1, sizeof(bytes), in);
	fclose(in);
	*lost = 0;
	for (size_t at = 0; at < len; at += head[1]) {
		u64 value;

		memcpy(head, bytes + at, sizeof(head));
		assert_true(head[1] >= 12 && head[1] % 4 == 0 && head[1] <= len - at);
		n += head[0] == type;
		if (head[0] != BLOCK_STATISTICS)
			continue;
		/* after the time: isb_ifrecv, isb_ifdrop */
		memcpy(&value, bytes + at + 20 + 12 + 4, sizeof(value));
		*lost += value;
	}
	return n;
}

/* More interfaces than hosts of containers have. */
static void capture_file_put__interfaces(void **state)
{
	struct capture_file f = { .path = path, .snaplen = 64 };
	char name[IF_NAMESIZE];
	u64 lost;

	assert_int_equal(capture_file_open(&f), 0);
	for (u32 i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "v%u", i % 300);
		put(&f, name, 0);
	}
	assert_int_equal(capture_file_close(&f, 0), 0);
	assert_int_equal(blocks(0, BLOCK_INTERFACE, &lost), 300);
	assert_int_equal(blocks(0, BLOCK_PACKET, &lost), 600);
	assert_int_equal(blocks(0, BLOCK_STATISTICS, &lost), 300);
}

/* Each file has the losses of its period: the sum is all of them. */
static void capture_file_close__losses(void **state)
{
	static const u64 expected[] = { 30, 12, 0, 8 };
	struct capture_file f = { .path = path, .snaplen = 64, .max_bytes = 1 };
	u64 lost;

	assert_int_equal(capture_file_open(&f), 0);
	put(&f, "va", 7);
	put(&f, "va", 30);
	put(&f, "va", 42);
	put(&f, "va", 42);
	assert_int_equal(capture_file_close(&f, 50), 0);
	for (u32 i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_int_equal(blocks(i, BLOCK_STATISTICS, &lost), 1);
		assert_int_equal(lost, expected[i]);
	}
}

/* A full disk: the file has whole blocks, as many as were flushed. */
static void capture_file_close__full(void **state)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct capture_file f = { .path = path, .snaplen = 64 };
	struct pcapng_packet packet = {
		.data = data, .captured = sizeof(data), .len = sizeof(data), .comment = "a comment"
	};
	u32 flushed = 0;
	u64 lost;
	int err = 0;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 20000, RLIM_INFINITY }), 0);
	assert_int_equal(capture_file_open(&f), 0);
	for (u32 i = 1; !err && i < 1000; i++) {
		err = capture_file_put(&f, "va", &packet, 0);
		if (!err && i % 50 == 0) {
			err = capture_file_flush(&f);
			flushed = err ? flushed : i;
		}
	}
	assert_int_equal(err, -EFBIG);
	assert_int_equal(capture_file_close(&f, 0), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(blocks(0, BLOCK_PACKET, &lost), flushed);
	assert_true(flushed > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capture_file_put__interfaces),
		cmocka_unit_test(capture_file_close__losses),
		cmocka_unit_test(capture_file_close__full),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
