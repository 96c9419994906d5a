/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a message holds, and whether that came; see threads.h. */
#include <errno.h>
#include <string.h>

#include "threads.h"

uint64_t stamp(bool from_client, unsigned int q, uint64_t k)
{
	return (uint64_t)from_client << 63 | (uint64_t)q << 40 | k;
}

static uint64_t word(uint64_t first, uint32_t i)
{
	return i ? (first + i) * 0x9e3779b97f4a7c15ull ^ first >> 7 : first;
}

void fill(uint8_t *p, uint64_t first)
{
	for (uint32_t at = 0; at < config.bytes; at += 8) {
		uint64_t w = word(first, at / 8);

		memcpy(p + at, &w, config.bytes - at < 8 ? config.bytes - at : 8);
	}
}

void check_bytes(const uint8_t *p, uint64_t first, const char *where)
{
	for (uint32_t at = 0; at < config.bytes; at += 8) {
		uint64_t w = word(first, at / 8);

		must(!memcmp(p + at, &w, config.bytes - at < 8 ? config.bytes - at : 8),
		     "%s: byte %u or behind is wrong in message %llu of QP %llu", where, at,
		     (unsigned long long)(first & 0xffffffffff),
		     (unsigned long long)(first >> 40 & 0xffff));
	}
}

void mark(_Atomic uint8_t *bits, uint64_t k, const char *what, unsigned int q)
{
	must(!(atomic_fetch_or(&bits[k / 8], (uint8_t)(1 << k % 8)) & 1 << k % 8),
	     "%s %llu came twice (QP %u)", what, (unsigned long long)k, q);
}

/*
 * The other end has reported by TCP that all data has arrived, and ThreadSanitizer sees no order
 * there: it would report each word that is read, for minutes. The writers here held the locks that
 * registering takes.
 */
static void order_memory(void)
{
	struct ibv_mr *again = ibv_reg_mr(pd, memory, 1, 0);

	must(again && !ibv_dereg_mr(again), "ibv_reg_mr: %s", strerror(errno));
}

void check_memory(void)
{
	order_memory();
	if (config.op == OP_ADD)
		must(*counter == num_qps * config.messages, "the sum is %llu, not %llu",
		     (unsigned long long)*counter, (unsigned long long)(num_qps * config.messages));
	for (unsigned int q = 0; config.op == OP_WRITE && config.check && q < num_qps; q++)
		for (uint64_t k = config.messages > config.depth ? config.messages - config.depth :
								   0;
		     k < config.messages; k++) {
			const uint8_t *p =
				write_area +
				(size_t)(q * config.depth + k % config.depth) * config.bytes;

			check_bytes(p, stamp(!is_client, q, k), "WRITE");
		}
}
