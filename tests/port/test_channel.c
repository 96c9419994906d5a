/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * A channel's records while XDP writes them, with the test as the ring buffer: libbpf's functions
 * below take the place of the library's. A ring is readable from the moment that a record is
 * reserved; what it holds is given to the reader once it is whole.
 */
#include "../unit/unit.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../../user/wake/channel_object.h"

static struct {
	int fd;
	ring_buffer_sample_fn fn;
	void *arg;
	u32 consumed;	 /* times */
	u32 whole_after; /* of these, the record is not whole yet */
	struct xroce_wakeup record;
	bool holds_one;
} ring;

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size, __u32 value_size,
		   __u32 max_entries, const struct bpf_map_create_opts *opts)
{
	ring.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return ring.fd;
}

struct ring_buffer *ring_buffer__new(int map_fd, ring_buffer_sample_fn fn, void *arg,
				     const struct ring_buffer_opts *opts)
{
	assert_int_equal(map_fd, ring.fd);
	ring.fn = fn;
	ring.arg = arg;
	return (struct ring_buffer *)&ring;
}

void ring_buffer__free(struct ring_buffer *rb)
{
}

int ring_buffer__consume(struct ring_buffer *rb)
{
	u64 count;

	ring.consumed++;
	if (!ring.holds_one || ring.consumed <= ring.whole_after)
		return 0;
	ring.holds_one = false;
	assert_int_equal(read(ring.fd, &count, sizeof(count)), sizeof(count));
	return ring.fn(ring.arg, &ring.record, sizeof(ring.record)) ? : 1;
}

/* XDP reserves a record. */
static void reserve(u32 cq, u32 whole_after)
{
	const u64 one = 1;

	ring.record = (struct xroce_wakeup){ .cq = cq };
	ring.holds_one = true;
	ring.consumed = 0;
	ring.whole_after = whole_after;
	assert_int_equal(write(ring.fd, &one, sizeof(one)), sizeof(one));
}

static int setup(void **state)
{
	struct port_channel *ch;

	assert_int_equal(port_channel_create(&ch), 0);
	assert_int_equal(port_channel_prepare(ch), 0);
	*state = ch;
	return 0;
}

static int teardown(void **state)
{
	port_channel_destroy(*state);
	return 0;
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
	assert_int_equal(ring.consumed, 1);
	assert_int_equal(channel_consume(ch, record), 1);
	assert_int_equal(record[0], 9);
}

/* Nothing is waited for. */
static void channel_await_record__none(void **state)
{
	struct port_channel *ch = *state;
	u32 record[RECORDS_MAX];

	ring.consumed = 0;
	channel_await_record(ch);
	assert_int_equal(ring.consumed, 1);
	assert_int_equal(channel_consume(ch, record), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(channel_await_record__being_written),
		cmocka_unit_test(channel_await_record__whole),
		cmocka_unit_test(channel_await_record__none),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
