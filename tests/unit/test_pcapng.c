/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* pcapng files, byte by byte as the format has it. */
#include "unit.h"

#include "../../user/tools/trace/pcapng.h"

static struct {
	FILE *file;
	char *bytes;
	size_t len;
	struct pcapng p;
} w;

static int open_memory(void **state)
{
	w.file = open_memstream(&w.bytes, &w.len);
	return w.file ? 0 : -1;
}

static int close_memory(void **state)
{
	fclose(w.file);
	free(w.bytes);
	return 0;
}

static u32 word(size_t at)
{
	u32 v;

	fflush(w.file);
	assert_true(at + sizeof(v) <= w.len);
	memcpy(&v, w.bytes + at, sizeof(v));
	return v;
}

static u16 half(size_t at)
{
	u16 v;

	fflush(w.file);
	memcpy(&v, w.bytes + at, sizeof(v));
	return v;
}

/* A whole block of that type begins there; returns where the next one does. */
static size_t block(size_t at, u32 type)
{
	const u32 len = word(at + 4);

	assert_int_equal(word(at), type);
	assert_int_equal(len % 4, 0);
	assert_int_equal(word(at + len - 4), len);
	return at + len;
}

static void pcapng__section(void **state)
{
	assert_int_equal(pcapng_begin(&w.p, w.file, "abcde"), 0);
	assert_int_equal(block(0, 0x0a0d0d0a), w.p.bytes);
	assert_int_equal(word(8), 0x1a2b3c4d);
	assert_int_equal(half(12), 1);
	assert_int_equal(half(14), 0);
	assert_int_equal(word(16), UINT32_MAX);
	assert_int_equal(word(20), UINT32_MAX);
	assert_int_equal(half(24), 4); /* shb_userappl, 5 bytes and 3 of padding */
	assert_int_equal(half(26), 5);
	assert_memory_equal(w.bytes + 28, "abcde\0\0\0", 8);
	assert_int_equal(word(36), 0);
	assert_int_equal(w.p.bytes, 44);
}

static void pcapng__packet(void **state)
{
	static const u8 data[5] = { 1, 2, 3, 4, 5 };
	const struct pcapng_packet packet = { .interface = 0,
					      .time_ns = 0x1122334455667788,
					      .data = data,
					      .captured = 5,
					      .len = 9,
					      .direction = PCAPNG_OUTBOUND,
					      .lost = 7,
					      .comment = "xy" };
	size_t at, end;
	u64 lost;

	pcapng_begin(&w.p, w.file, NULL);
	at = block(0, 0x0a0d0d0a);
	assert_int_equal(pcapng_interface(&w.p, "va", 96), 0);
	end = block(at, 1);
	assert_int_equal(half(at + 8), 1); /* Ethernet */
	assert_int_equal(word(at + 12), 96);
	assert_int_equal(half(at + 16), 2); /* if_name */
	assert_memory_equal(w.bytes + at + 20, "va\0\0", 4);
	assert_int_equal(half(at + 24), 9); /* if_tsresol: ns */
	assert_int_equal(half(at + 26), 1);
	assert_int_equal(w.bytes[at + 28], 9);
	at = end;
	assert_int_equal(pcapng_packet(&w.p, &packet), 0);
	end = block(at, 6);
	assert_int_equal(end, w.p.bytes);
	assert_int_equal(word(at + 8), 0);
	assert_int_equal(word(at + 12), 0x11223344);
	assert_int_equal(word(at + 16), 0x55667788);
	assert_int_equal(word(at + 20), 5);
	assert_int_equal(word(at + 24), 9);
	assert_memory_equal(w.bytes + at + 28, "\1\2\3\4\5\0\0\0", 8);
	assert_int_equal(half(at + 36), 1); /* opt_comment */
	assert_int_equal(half(at + 38), 2);
	assert_memory_equal(w.bytes + at + 40, "xy\0\0", 4);
	assert_int_equal(half(at + 44), 2); /* epb_flags */
	assert_int_equal(word(at + 48), 2);
	assert_int_equal(half(at + 52), 4); /* epb_dropcount */
	memcpy(&lost, w.bytes + at + 56, sizeof(lost));
	assert_int_equal(lost, 7);
	assert_int_equal(word(at + 64), 0); /* opt_endofopt */
	assert_int_equal(end, at + 72);
}

static void pcapng__statistics(void **state)
{
	u64 value;
	size_t at;

	pcapng_begin(&w.p, w.file, NULL);
	at = block(0, 0x0a0d0d0a);
	assert_int_equal(pcapng_statistics(&w.p, 3, 0x100000002, 11, 22), 0);
	block(at, 5);
	assert_int_equal(word(at + 8), 3);
	assert_int_equal(word(at + 12), 1);
	assert_int_equal(word(at + 16), 2);
	assert_int_equal(half(at + 20), 4); /* isb_ifrecv */
	memcpy(&value, w.bytes + at + 24, sizeof(value));
	assert_int_equal(value, 11);
	assert_int_equal(half(at + 32), 5); /* isb_ifdrop */
	memcpy(&value, w.bytes + at + 36, sizeof(value));
	assert_int_equal(value, 22);
}

/* A comment is cut off, and the block stays whole. */
static void pcapng__long_comment(void **state)
{
	static char text[PCAPNG_COMMENT_MAX + 100];
	const struct pcapng_packet packet = { .comment = text };
	size_t at;

	memset(text, 'c', sizeof(text) - 1);
	pcapng_begin(&w.p, w.file, NULL);
	at = block(0, 0x0a0d0d0a);
	assert_int_equal(pcapng_packet(&w.p, &packet), 0);
	assert_int_equal(block(at, 6), w.p.bytes);
	assert_int_equal(half(at + 30), PCAPNG_COMMENT_MAX);
}

/* The first failed write is reported, and nothing is written after it. */
static void pcapng__full(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	u64 bytes;

	assert_non_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	assert_int_equal(pcapng_begin(&w.p, full, NULL), -ENOSPC);
	bytes = w.p.bytes;
	assert_int_equal(pcapng_interface(&w.p, "va", 0), -ENOSPC);
	assert_int_equal(w.p.bytes, bytes);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pcapng__section, open_memory, close_memory),
		cmocka_unit_test_setup_teardown(pcapng__packet, open_memory, close_memory),
		cmocka_unit_test_setup_teardown(pcapng__statistics, open_memory, close_memory),
		cmocka_unit_test_setup_teardown(pcapng__long_comment, open_memory, close_memory),
		cmocka_unit_test(pcapng__full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
