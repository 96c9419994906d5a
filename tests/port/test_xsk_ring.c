/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * xsk_open_ring() on a ring buffer of the kernel's: what a program writes to it comes out once, in
 * its order, and the kernel gets its places back.
 */
#include "../unit/unit.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../user/io/xsk.h"
#include "../unit/reference.h"

#define RING	  (256u << 10)
#define FRAME_MAX 65535u
#define SMALLEST  14u /* no frame is shorter */

/* What the program below copies to the ring. */
struct input {
	u32 len, pad;
	u8 bytes[sizeof(struct xroce_rx_record) + FRAME_MAX];
};

static int ring_fd, input_fd, write_fd, discard_fd;
static struct input *input;
static u64 seed;
static struct xsk_set set;
static struct xroce_sock stats;

/* ---- the programs that write to the ring ---- */

#define INSN(op, d, s, o, i)                                                      \
	{                                                                         \
		.code = (op), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) \
	}
#define LOAD_MAP(reg, fd) INSN(BPF_LD | BPF_DW | BPF_IMM, reg, BPF_PSEUDO_MAP_FD, 0, fd), { 0 }
#define CALL(function)	  INSN(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define EXIT		  INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define MOVE(to, from)	  INSN(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0)
#define SET(reg, value)	  INSN(BPF_ALU64 | BPF_MOV | BPF_K, reg, 0, 0, value)
#define ADD(reg, value)	  INSN(BPF_ALU64 | BPF_ADD | BPF_K, reg, 0, 0, value)

static int load(const struct bpf_insn *insns, size_t n)
{
	const int fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "test", "GPL", insns, n, NULL);

	assert_true(fd >= 0);
	return fd;
}

/* bpf_ringbuf_output() of the input; returns 0 if it did. */
static int load_write(void)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, 0),
		MOVE(BPF_REG_2, BPF_REG_10),
		ADD(BPF_REG_2, -4),
		LOAD_MAP(BPF_REG_1, input_fd),
		CALL(BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 8, 0),
		INSN(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_3, BPF_REG_0, offsetof(struct input, len),
		     0),
		INSN(BPF_JMP | BPF_JGT | BPF_K, BPF_REG_3, 0, 6,
		     sizeof(struct input) - offsetof(struct input, bytes)),
		MOVE(BPF_REG_2, BPF_REG_0),
		ADD(BPF_REG_2, offsetof(struct input, bytes)),
		LOAD_MAP(BPF_REG_1, ring_fd),
		SET(BPF_REG_4, BPF_RB_NO_WAKEUP),
		CALL(BPF_FUNC_ringbuf_output),
		EXIT,
	};

	return load(insns, ARRAY_SIZE(insns));
}

/* Reserves a record, and does not want it any more. */
static int load_discard(void)
{
	const struct bpf_insn insns[] = {
		LOAD_MAP(BPF_REG_1, ring_fd),
		SET(BPF_REG_2, 100),
		SET(BPF_REG_3, 0),
		CALL(BPF_FUNC_ringbuf_reserve),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 4, 0),
		MOVE(BPF_REG_1, BPF_REG_0),
		SET(BPF_REG_2, BPF_RB_NO_WAKEUP),
		CALL(BPF_FUNC_ringbuf_discard),
		SET(BPF_REG_0, 0),
		EXIT,
	};

	return load(insns, ARRAY_SIZE(insns));
}

static u32 run(int prog_fd)
{
	const u8 packet[64] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet));

	assert_int_equal(bpf_prog_test_run_opts(prog_fd, &opts), 0);
	return opts.retval;
}

/* Puts a frame of that number and length, in a record with `more` more room. False: no room. */
static bool put(u32 number, u32 len, u32 more, u8 flags)
{
	struct xroce_rx_record *record = (void *)input->bytes;
	u64 random = number;

	input->len = sizeof(*record) + len + more;
	record->cqe = (struct xroce_rx_cqe){ .qpn = number, .flags = flags };
	record->len = len;
	fill_random(&random, record->frame, len);
	return run(write_fd) == 0;
}

static void expect(u32 number, const struct xroce_rx_cqe *hint, const u8 *data, u32 len)
{
	static u8 bytes[FRAME_MAX];
	u64 random = number;

	assert_int_equal(hint->qpn, number);
	fill_random(&random, bytes, len);
	assert_memory_equal(data, bytes, len);
}

/* The next batch, whose first frame is that. Returns the number of the next. */
static u32 take(u32 number)
{
	struct xsk_batch b;

	if (!xsk_peek(&set, set.xsk, &b))
		return number;
	for (u32 i = 0; i < b.n; i++, number++) {
		const struct engine_frame *f = &b.frame[i];
		const struct segment_part *part = &b.part[b.odd_first[i]];

		if (b.odd >> i & 1) {
			assert_int_equal(b.odd_parts[i], 1);
			expect(number, f->hint, part->data, part->len);
		} else {
			expect(number, f->hint, f->frame.data, f->frame.len);
		}
	}
	xsk_release(&set, set.xsk, &b);
	return number;
}

static bool is_readable(void)
{
	struct pollfd fd = { .fd = set.xsk->fd, .events = POLLIN };

	return kernel_await(&fd, 1, 0) == 1;
}

static int setup(void **state)
{
	LIBBPF_OPTS(bpf_map_create_opts, mappable, .map_flags = BPF_F_MMAPABLE);

	seed = 0x5eed;
	memset(&stats, 0, sizeof(stats));
	ring_fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "test_ring", 0, 0, RING, NULL);
	input_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "test_input", sizeof(u32), sizeof(*input), 1,
				  &mappable);
	assert_true(ring_fd >= 0 && input_fd >= 0);
	input = mmap(NULL, sizeof(*input), PROT_READ | PROT_WRITE, MAP_SHARED, input_fd, 0);
	assert_ptr_not_equal(input, MAP_FAILED);
	write_fd = load_write();
	discard_fd = load_discard();
	assert_int_equal(xsk_open_ring(&set, ring_fd, RING, &stats), 0);
	return 0;
}

static int teardown(void **state)
{
	xsk_close(&set);
	munmap(input, sizeof(*input));
	close(write_fd);
	close(discard_fd);
	close(input_fd);
	close(ring_fd);
	return 0;
}

/* ---- the tests ---- */

static void xsk_open_ring__refused(void **state)
{
	struct xsk_set other;

	assert_int_equal(xsk_open_ring(&other, ring_fd, 0, &stats), -EINVAL);
	assert_int_equal(xsk_open_ring(&other, ring_fd, 2048, &stats), -EINVAL);
	assert_int_equal(xsk_open_ring(&other, ring_fd, 3 * RING / 4, &stats), -EINVAL);
	assert_int_equal(xsk_open_ring(&other, ring_fd, 1u << 31, &stats), -EINVAL);
	/* more than it has */
	assert_int_equal(xsk_open_ring(&other, ring_fd, 2 * RING, &stats), -EINVAL);
	assert_in_range(-xsk_open_ring(&other, write_fd, RING, &stats), 1, 4095);
	assert_int_equal(xsk_open_ring(&other, -1, RING, &stats), -EBADF);
	assert_null(other.xsk);
}

/* Impossible positions, left by the ring's last owner. */
static void xsk_open_ring__bad_position(void **state)
{
	unsigned long *consumer = set.ring.memory.consumer;
	struct xsk_set other;

	*consumer = 4;
	assert_int_equal(xsk_open_ring(&other, ring_fd, RING, &stats), -EINVAL);
	*consumer = 1ul << 20;
	assert_int_equal(xsk_open_ring(&other, ring_fd, RING, &stats), -EINVAL);
	*consumer = 0;
}

/* Of every size, round the ring many times. */
static void xsk_peek__records(void **state)
{
	u32 taken = 0, number = 0;

	for (u32 round = 0; round < 300; round++) {
		const u32 most = round % 8 ? 5000 : FRAME_MAX;
		const u32 n = 1 + (u32)(next_random(&seed) % 20);

		assert_false(xsk_has_input(&set));
		assert_false(is_readable());
		for (u32 i = 0; i < n; i++) {
			const u32 len = SMALLEST +
					(u32)(next_random(&seed) % (most - SMALLEST + 1));

			if (!put(number, len, (u32)(next_random(&seed) % (FRAME_MAX - len + 1)) / 8,
				 next_random(&seed) % 8 ? 0 : XROCE_RX_GSO))
				break;
			number++;
			assert_true(xsk_has_input(&set));
			assert_true(is_readable());
			if (next_random(&seed) % 4 == 0)
				run(discard_fd);
		}
		while (xsk_has_input(&set))
			taken = take(taken);
		assert_int_equal(taken, number);
	}
	assert_int_equal(stats.rx_frames, number);
}

/* It takes up to its size; once a batch is released there is room for others. */
static void xsk_release__makes_room(void **state)
{
	const u32 frames = xsk_receive_frames(&set);
	u32 number = 0, taken;

	for (u32 round = 0; round < 20; round++) {
		const u32 first = number;

		while (put(number, PACKET_FRAME_MAX, 0, 0))
			number++;
		assert_in_range(number - first, frames, RING / PACKET_FRAME_MAX);
		for (taken = first; xsk_has_input(&set);)
			taken = take(taken);
		assert_int_equal(taken, number);
	}
}

/* Untaken packets are counted, and the positions stay: they may be another process's. */
static void xsk_close__left(void **state)
{
	for (u32 i = 0; i < 5; i++)
		put(i, 200, 0, 0);
	run(discard_fd);
	xsk_close(&set);
	assert_int_equal(stats.rx_left, 5);
	assert_int_equal(xsk_open_ring(&set, ring_fd, RING, &stats), 0);
	assert_true(xsk_has_input(&set));
	assert_int_equal(take(0), 5);
	assert_false(xsk_has_input(&set));
	assert_int_equal(stats.rx_frames, 5);
	/* again, with a position that is not 0 */
	xsk_close(&set);
	assert_int_equal(stats.rx_left, 5);
	assert_int_equal(xsk_open_ring(&set, ring_fd, RING, &stats), 0);
	assert_false(xsk_has_input(&set));
	put(5, 200, 0, 0);
	assert_int_equal(take(5), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(xsk_open_ring__refused, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_open_ring__bad_position, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_peek__records, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_release__makes_room, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_close__left, setup, teardown),
	};

	return cmocka_run_group_tests_name("xsk_ring", tests, NULL, NULL);
}
