/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the codec's tests measure it against: a second ICRC, bit by bit from the definition in the
 * protocol sheet, and a small generator of random numbers. Shares no code with user/engine.
 */
#ifndef UNIT_REFERENCE_H
#define UNIT_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* splitmix64: the same sequence for the same seed, everywhere. */
static inline uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static inline void fill_random(uint64_t *state, void *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)next_random(state);
}

static inline uint32_t crc_byte(uint32_t reg, uint8_t byte)
{
	reg ^= byte;
	for (int bit = 0; bit < 8; bit++)
		reg = reg & 1 ? reg >> 1 ^ 0xedb88320u : reg >> 1;
	return reg;
}

/* How many of the 8 bits of byte i of an IP packet the ICRC takes as ones, as a mask. */
static inline uint8_t icrc_masked_bits(bool is_ipv6, size_t i)
{
	size_t udp = is_ipv6 ? 40 : 20;

	if (!is_ipv6 && (i == 1 || i == 8 || i == 10 || i == 11))
		return 0xff;
	if (is_ipv6 && i == 0)
		return 0x0f;
	if (is_ipv6 && (i == 1 || i == 2 || i == 3 || i == 7))
		return 0xff;
	return i == udp + 6 || i == udp + 7 || i == udp + 8 + 4 ? 0xff : 0x00;
}

/*
 * The ICRC of the len bytes from the IP header up to where the ICRC is stored; stored
 * little-endian.
 */
static inline uint32_t reference_icrc(const uint8_t *ip, bool is_ipv6, size_t len)
{
	uint32_t reg = 0xffffffff;

	for (int i = 0; i < 8; i++)
		reg = crc_byte(reg, 0xff);
	for (size_t i = 0; i < len; i++)
		reg = crc_byte(reg, ip[i] | icrc_masked_bits(is_ipv6, i));
	return ~reg;
}

static inline uint32_t load_le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

#endif
