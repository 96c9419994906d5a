/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * A channel's records while XDP writes them, with the test as the kernel: the functions of libbpf
 * and the C library below take the place of theirs, and the ring buffer's memory is the test's. A
 * ring is readable from the moment that a record is reserved; its records are given to the reader
 * once they are whole.
 */
#define _GNU_SOURCE
#include "../unit/unit.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../user/os/kernel.h"
#include "../../user/run/cq_notify.h"

#define PAGE 4096
#define SETS 32 /* channels with a set, at 1024 descriptors */

/* The consumer's page, the producer's, the data. */
static struct {
	_Alignas(PAGE) unsigned long consumer[PAGE / sizeof(long)];
	unsigned long producer[PAGE / sizeof(long)];
	u8 data[2 * XROCE_RING_BYTES];
} memory;

static struct {
	int fd;
	u32 yields;
	u32 whole_after; /* of these, the record is not whole yet */
} ring;

static struct cq_notify cq_notify;
static struct cq cq;

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size, __u32 value_size,
		   __u32 max_entries, const struct bpf_map_create_opts *opts)
{
	ring.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return ring.fd;
}

#define MAP_FD 1000

static int put_err;

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	return put_err;
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (fd >= 0 && fd == ring.fd)
		return (u8 *)&memory + offset;
	return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

int munmap(void *at, size_t len)
{
	if ((u8 *)at >= (u8 *)&memory && (u8 *)at < (u8 *)(&memory + 1))
		return 0;
	return (int)syscall(SYS_munmap, at, len);
}

static u32 *header(void)
{
	return (u32 *)(memory.data + (*memory.producer - 16) % XROCE_RING_BYTES);
}

int sched_yield(void)
{
	if (++ring.yields == ring.whole_after)
		*header() &= ~BPF_RINGBUF_BUSY_BIT;
	return 0;
}

/* XDP reserves a record, which is complete at once or after `whole_after` polls. */
static void reserve(u32 number, u32 whole_after)
{
	const struct xroce_wakeup record = { .cq = number };
	const u64 one = 1;

	*memory.producer += 16;
	header()[0] = sizeof(record) | (whole_after ? BPF_RINGBUF_BUSY_BIT : 0);
	memcpy(header() + 2, &record, sizeof(record));
	ring.yields = 0;
	ring.whole_after = whole_after;
	assert_int_equal(write(ring.fd, &one, sizeof(one)), sizeof(one));
}

static bool is_readable(const struct port_channel *ch)
{
	struct pollfd p = { .fd = port_channel_fd(ch), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static int make_ring(void *arg, struct ring_slot *out)
{
	out->slot = XROCE_MAX_QUEUE + cq_notify.rings.num;
	out->fd = kernel_ring_insert(MAP_FD, out->slot);
	return out->fd < 0 ? out->fd : 0;
}

static int setup(void **state)
{
	struct port_channel *ch;

	memset(&memory, 0, sizeof(memory));
	put_err = 0;
	channel_rings_init(&cq_notify.rings);
	cq_notify.rings.make = make_ring;
	assert_int_equal(port_channel_create(&ch), 0);
	assert_int_equal(channel_join(ch, &cq_notify, &cq), 0);
	*state = ch;
	return 0;
}

static int teardown(void **state)
{
	channel_leave(*state, &cq);
	port_channel_destroy(*state);
	channel_rings_close(&cq_notify.rings);
	return 0;
}

static void channel_consume__round_the_ring(void **state)
{
	struct port_channel *ch = *state;
	u32 record[RECORDS_MAX];

	assert_int_equal(channel_slot(ch), XROCE_MAX_QUEUE);
	for (u32 i = 0; i < 3 * RECORDS_MAX; i++) {
		reserve(i, 0);
		if (i % 7 == 3) { /* discarded */
			*header() |= BPF_RINGBUF_DISCARD_BIT;
			assert_int_equal(channel_consume(ch, record), 0);
		} else {
			assert_int_equal(channel_consume(ch, record), 1);
			assert_int_equal(record[0], i);
		}
		assert_int_equal(*memory.consumer, *memory.producer);
	}
}

/* A channel without a ring, whatever the reason, has its events from the worker. */
static void channel_join__without_a_ring(void **state)
{
	static struct port_channel *ch[SETS + 1];
	struct port_channel *first = *state;

	channel_leave(first, &cq);
	channel_rings_close(&cq_notify.rings);
	channel_rings_init(&cq_notify.rings);
	cq_notify.rings.make = make_ring;
	put_err = -EPERM;
	assert_int_equal(channel_join(first, &cq_notify, &cq), 0);
	assert_int_equal(channel_slot(first), XROCE_CHANNEL_WORKER);
	assert_false(is_readable(first));
	port_channel_raise(first);
	assert_true(is_readable(first));
	port_channel_clear(first);
	assert_false(is_readable(first));
	put_err = 0;
	/* with the first, as many as there are rings, and two more */
	for (u32 i = 0; i <= SETS; i++) {
		assert_int_equal(port_channel_create(&ch[i]), 0);
		assert_int_equal(channel_join(ch[i], &cq_notify, &cq), 0);
		assert_int_equal(channel_slot(ch[i]),
				 i < SETS - 1 ? XROCE_MAX_QUEUE + i : XROCE_CHANNEL_WORKER);
		assert_false(is_readable(ch[i]));
		port_channel_raise(ch[i]);
		assert_true(is_readable(ch[i]));
	}
	for (u32 i = 0; i <= SETS; i++) {
		channel_leave(ch[i], &cq);
		port_channel_destroy(ch[i]);
	}
}

static void channel_await_record__being_written(void **state)
{
	struct port_channel *ch = *state;
	u32 record[RECORDS_MAX];

	reserve(7, 5);
	assert_int_equal(channel_consume(ch, record), 0);
	channel_await_record(ch);
	assert_int_equal(channel_consume(ch, record), 1);
	assert_int_equal(record[0], 7);
	assert_int_equal(ch->last, 7);
}

static void channel_await_record__whole(void **state)
{
	struct port_channel *ch = *state;
	u32 record[RECORDS_MAX];

	reserve(9, 0);
	channel_await_record(ch);
	assert_int_equal(ring.yields, 0);
	assert_int_equal(channel_consume(ch, record), 1);
	assert_int_equal(record[0], 9);
}

/* Nothing is waited for. */
static void channel_await_record__none(void **state)
{
	struct port_channel *ch = *state;
	u32 record[RECORDS_MAX];

	ring.yields = 0;
	channel_await_record(ch);
	assert_int_equal(ring.yields, 0);
	assert_int_equal(channel_consume(ch, record), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(channel_consume__round_the_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(channel_join__without_a_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(channel_await_record__being_written, setup,
						teardown),
		cmocka_unit_test_setup_teardown(channel_await_record__whole, setup, teardown),
		cmocka_unit_test_setup_teardown(channel_await_record__none, setup, teardown),
	};
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 1;
	limit.rlim_cur = 1024;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
