/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The shipped transmit program, run by BPF_PROG_RUN without live frames: the fate of one frame, by
 * the ring's content; the ring is written by the other side, and may hold anything. The program
 * that cuts a frame out of several is only run by a devmap; here it is loaded as a type that can be
 * run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <xroce/abi.h>

#include "xroce_tx.skel.h"

#define LOOPBACK   1	/* where live frames come from */
#define OUT_MAX	   4096
#define SHORTEST   14	/* the kernel cuts no frame shorter than an Ethernet header */

static struct xroce_tx_bpf *skel;
static struct xroce_tx_ring *ring;
static struct xroce_tx_frame *frames;
static uint32_t tap_ifindex;

static struct {
	int verdict;
	uint32_t len;
	uint8_t bytes[OUT_MAX];
} out;

/* ---- the bench ---- */

/* A device that is not lo: the program only looks at the number. */
static int make_tap(void)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr))
		return -1;
	tap_ifindex = if_nametoindex(ifr.ifr_name);
	return tap_ifindex ? 0 : -1;
}

static void *map_memory(struct bpf_map *map, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return p == MAP_FAILED ? NULL : p;
}

static int setup(void **state)
{
	skel = xroce_tx_bpf__open();
	if (!skel)
		return -1;
	bpf_program__set_expected_attach_type(skel->progs.xroce_tx_cut, BPF_XDP);
	if (xroce_tx_bpf__load(skel)) {
		print_error("cannot load the transmit program: %s (root needed)\n",
			    strerror(errno));
		return -1;
	}
	ring = map_memory(skel->maps.xroce_tx_ring, sizeof(*ring));
	frames = map_memory(skel->maps.xroce_tx_frame, XROCE_TX_FRAMES * sizeof(*frames));
	if (!ring || !frames || make_tap()) {
		print_error("cannot map the ring and the frames, or make a TAP device: %s\n",
			    strerror(errno));
		return -1;
	}
	for (uint32_t i = 0; i < XROCE_TX_FRAMES; i++)
		for (uint32_t j = 0; j < XROCE_TX_FRAME_BYTES; j++)
			frames[i].bytes[j] = (uint8_t)(i * 31 + j * 7 + j / 256);
	return 0;
}

static int teardown(void **state)
{
	xroce_tx_bpf__destroy(skel);
	return 0;
}

static void put_device(bool present)
{
	struct bpf_devmap_val val = { .ifindex = LOOPBACK };
	uint32_t key = 0;

	if (present)
		assert_int_equal(bpf_map_update_elem(bpf_map__fd(skel->maps.xroce_tx_dev), &key,
						     &val, BPF_ANY),
				 0);
	else
		bpf_map_delete_elem(bpf_map__fd(skel->maps.xroce_tx_dev), &key);
}

static void reset(void)
{
	memset(ring, 0, sizeof(*ring));
	put_device(true);
}

static void run(struct bpf_program *prog, uint32_t ifindex, const uint8_t *data, uint32_t len)
{
	struct xdp_md ctx = { .data_end = len, .ingress_ifindex = ifindex };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = data, .data_size_in = len,
		    .data_out = out.bytes, .data_size_out = sizeof(out.bytes), .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(prog), &opts), 0);
	out.verdict = (int)opts.retval;
	out.len = opts.data_size_out;
}

/* A live frame of page bytes, all zero. */
static void run_live(uint32_t page)
{
	static const uint8_t zeroes[OUT_MAX];

	run(skel->progs.xroce_transmit, LOOPBACK, zeroes, page);
}

static void is_frame(uint32_t frame, uint32_t len)
{
	assert_int_equal(out.verdict, XDP_REDIRECT);
	assert_int_equal(out.len, len);
	assert_memory_equal(out.bytes, frames[frame].bytes, len);
}

/* ---- live frames ---- */

static void transmit__fills_the_page_with_the_entrys_frame(void **state)
{
	static const struct {
		uint32_t page, frame, len;
	} row[] = {
		{ 64, 0, 64 },	       { 128, 3, 64 },	  { 2126, 255, 2126 },
		{ 2126, 7, SHORTEST }, { 3408, 9, 3408 }, { 3408, 10, 3407 },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		reset();
		ring->batch[0] = (struct xroce_tx_entry){ row[i].frame, row[i].len };
		run_live(row[i].page);
		is_frame(row[i].frame, row[i].len);
		assert_int_equal(ring->next, 1);
		assert_int_equal(ring->refused, 0);
	}
}

static void transmit__takes_entries_in_turn(void **state)
{
	reset();
	for (uint32_t i = 0; i < XROCE_TX_FRAMES; i++)
		ring->batch[i] = (struct xroce_tx_entry){ XROCE_TX_FRAMES - 1 - i, 60 + i };
	ring->next = 2;
	for (uint32_t i = 2; i < XROCE_TX_FRAMES; i++) {
		run_live(400);
		is_frame(XROCE_TX_FRAMES - 1 - i, 60 + i);
	}
	assert_int_equal(ring->next, XROCE_TX_FRAMES);
	assert_int_equal(ring->refused, 0);
}

static void transmit__refuses_what_is_out_of_range(void **state)
{
	static const struct {
		const char *what;
		uint32_t next, frame, len, page;
	} row[] = {
		{ "next behind the batch", XROCE_TX_FRAMES, 0, 64, 64 },
		{ "next far behind the batch", UINT32_MAX, 0, 64, 64 },
		{ "frame behind the map", 0, XROCE_TX_FRAMES, 64, 64 },
		{ "frame far behind the map", 0, UINT32_MAX, 64, 64 },
		{ "no length", 0, 0, 0, 64 },
		{ "shorter than a header", 0, 0, SHORTEST - 1, 64 },
		{ "longer than the page", 0, 0, 65, 64 },
		{ "longer than a live frame can be", 0, 0, XROCE_TX_LIVE_BYTES + 1,
		  XROCE_TX_LIVE_BYTES + 1 },
		{ "longer than the frame's memory", 0, 0, XROCE_TX_FRAME_BYTES + 1, 64 },
		{ "length that is negative", 0, 0, UINT32_MAX, 64 },
		{ "length that is the least", 0, 0, 0x80000000u, 64 },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		reset();
		ring->next = row[i].next;
		ring->batch[0] = (struct xroce_tx_entry){ row[i].frame, row[i].len };
		run_live(row[i].page);
		if (out.verdict != XDP_DROP || ring->refused != 1)
			fail_msg("%s: verdict %d, refused %llu", row[i].what, out.verdict,
				 (unsigned long long)ring->refused);
		/* an entry is taken even so: the next run is for the next one. None is not. */
		assert_int_equal(ring->next,
				 row[i].next < XROCE_TX_FRAMES ? row[i].next + 1 : row[i].next);
	}
}

/* The thread that runs it is on one CPU; frames are for that one, or for another. */
static void transmit__ends_the_batch_on_another_cpu(void **state)
{
	cpu_set_t set, before;
	int cpu = sched_getcpu();

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	reset();
	ring->batch[0] = ring->batch[1] = (struct xroce_tx_entry){ 1, 64 };
	ring->cpu = (uint32_t)cpu + 1;
	run_live(64);
	is_frame(1, 64);
	assert_int_equal(ring->strayed, 0);
	ring->cpu = (uint32_t)cpu + 2;
	run_live(64);
	assert_int_equal(out.verdict, XDP_DROP);
	assert_int_equal(ring->strayed, 1);
	/* back again: the new frame follows unsent ones */
	ring->cpu = (uint32_t)cpu + 1;
	run_live(64);
	assert_int_equal(out.verdict, XDP_DROP);
	assert_int_equal(ring->next, 1);
	assert_int_equal(ring->refused, 0);
	ring->strayed = 0;
	run_live(64);
	is_frame(1, 64);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void transmit__drops_without_a_device(void **state)
{
	reset();
	put_device(false);
	ring->batch[0].len = 64;
	run_live(64);
	assert_int_equal(out.verdict, XDP_DROP);
}

/* ---- from the TAP device ---- */

static void transmit__sends_what_the_tap_got_to_as_many_devices_as_there_are_pieces(void **state)
{
	static const uint32_t known[] = { 1, 2, 3, 4, 8, 16 };
	static const uint32_t unknown[] = { 0, 5, 6, 7, 9, 15, 17, 32, 0x10001, UINT32_MAX };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		reset();
		ring->pieces = known[i];
		run(skel->progs.xroce_transmit, tap_ifindex, frames[5].bytes, 1000);
		is_frame(5, 1000);
		/* entries are for the program that cuts */
		assert_int_equal(ring->next, 0);
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		reset();
		ring->pieces = unknown[i];
		run(skel->progs.xroce_transmit, tap_ifindex, frames[5].bytes, 1000);
		assert_int_equal(out.verdict, XDP_DROP);
	}
	reset();
	put_device(false);
	ring->pieces = 1;
	run(skel->progs.xroce_transmit, tap_ifindex, frames[5].bytes, 1000);
	assert_int_equal(out.verdict, XDP_DROP);
}

/* ---- cutting ---- */

static void cut__keeps_one_frame_after_the_other(void **state)
{
	static const uint32_t len[] = { 100, SHORTEST, 1000, 60 };
	uint32_t total = 0, begin = 0;

	reset();
	ring->next = 40;
	for (uint32_t i = 0; i < 4; i++) {
		ring->batch[40 + i].len = len[i];
		total += len[i];
	}
	for (uint32_t i = 0; i < 4; i++) {
		run(skel->progs.xroce_tx_cut, LOOPBACK, frames[8].bytes, total);
		assert_int_equal(out.verdict, XDP_PASS);
		assert_int_equal(out.len, len[i]);
		assert_memory_equal(out.bytes, frames[8].bytes + begin, len[i]);
		begin += len[i];
		assert_int_equal(ring->cut, begin);
		assert_int_equal(ring->next, 41 + i);
	}
	assert_int_equal(ring->refused, 0);
}

static void cut__refuses_what_is_out_of_range(void **state)
{
	static const struct {
		const char *what;
		uint32_t next, cut, len;
	} row[] = {
		{ "next behind the batch", XROCE_TX_FRAMES, 0, 64 },
		{ "next far behind the batch", UINT32_MAX, 0, 64 },
		{ "longer than what was written", 0, 0, 501 },
		{ "longer than what is left", 0, 437, 64 },
		{ "behind what was written", 0, 501, 64 },
		{ "nothing left", 0, 500, 0 },
		{ "no length", 0, 100, 0 },
		{ "shorter than a header", 0, 100, SHORTEST - 1 },
		{ "length that is negative", 0, 100, UINT32_MAX },
		/*
		 * the sum wraps to a place within: the frame would begin before the written part
		 */
		{ "begins in the headroom", 0, UINT32_MAX - 63, 128 },
		{ "begins in the headroom, by a little", 0, UINT32_MAX, 65 },
		{ "begins at the other end of memory", 0, 0x80000000u, 0x80000040u },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		reset();
		ring->next = row[i].next;
		ring->cut = row[i].cut;
		ring->batch[0].len = row[i].len;
		run(skel->progs.xroce_tx_cut, LOOPBACK, frames[8].bytes, 500);
		if (out.verdict != XDP_DROP || ring->refused != 1)
			fail_msg("%s: verdict %d, refused %llu", row[i].what, out.verdict,
				 (unsigned long long)ring->refused);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transmit__fills_the_page_with_the_entrys_frame),
		cmocka_unit_test(transmit__takes_entries_in_turn),
		cmocka_unit_test(transmit__refuses_what_is_out_of_range),
		cmocka_unit_test(transmit__ends_the_batch_on_another_cpu),
		cmocka_unit_test(transmit__drops_without_a_device),
		cmocka_unit_test(
			transmit__sends_what_the_tap_got_to_as_many_devices_as_there_are_pieces),
		cmocka_unit_test(cut__keeps_one_frame_after_the_other),
		cmocka_unit_test(cut__refuses_what_is_out_of_range),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
