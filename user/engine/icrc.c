/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ICRC: the header bytes that count as ones, and ISA-L's CRC-32 over the result. Lengths are
 * not checked: the caller guarantees the bytes.
 */
#include "icrc.h"

#include <isa-l/crc.h>

/*
 * crc32_gzip_refl() complements on the way in and out, as zlib does, so a running value is the
 * complement of the CRC register and may be handed from call to call. The register after the 8
 * leading bytes of ones is 0xdebb20e3 (protocol sheet).
 */
#define ICRC_AFTER_LEADING_ONES (~0xdebb20e3u)

#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES  8

/*
 * Up to this length, a copy of the packet and one call of ISA-L are faster than two calls: a call
 * takes 17 ns for 8 bytes and 21 ns for 256.
 */
#define ONE_CALL_BYTES 256

/* Ethernet's, reflected. */
#define CRC32_POLYNOMIAL 0xedb88320u

/*
 * Sets the fields that routers may change to ones; b is a copy of the packet from the IP header
 * through the BTH.
 */
static inline void icrc_mask(u8 *b, bool is_ipv6)
{
	u8 *udp;

	if (!is_ipv6) {
		b[1] = 0xff;  /* TOS */
		b[8] = 0xff;  /* TTL */
		b[10] = 0xff; /* header checksum */
		b[11] = 0xff;
		udp = b + IPV4_BYTES;
	} else {
		b[0] |= 0x0f; /* traffic class and flow label: all but the version */
		b[1] = 0xff;
		b[2] = 0xff;
		b[3] = 0xff;
		b[7] = 0xff; /* hop limit */
		udp = b + IPV6_BYTES;
	}
	udp[6] = 0xff; /* checksum */
	udp[7] = 0xff;
	udp[UDP_BYTES + offsetof(struct bth, ecn_qpn)] = 0xff; /* FECN, BECN, reserved */
}

icrc_t icrc_start(const u8 *ip, bool is_ipv6)
{
	u8 masked[IPV6_BYTES + UDP_BYTES + sizeof(struct bth)];
	u32 bytes = icrc_start_bytes(is_ipv6);

	memcpy(masked, ip, bytes);
	icrc_mask(masked, is_ipv6);
	return crc32_gzip_refl(ICRC_AFTER_LEADING_ONES, masked, bytes);
}

icrc_t icrc_common(const u8 *ip, bool is_ipv6)
{
	u8 masked[IPV6_BYTES + UDP_BYTES + sizeof(struct bth)];
	u32 bytes = icrc_start_bytes(is_ipv6) - sizeof(__be32);

	memcpy(masked, ip, bytes);
	icrc_mask(masked, is_ipv6);
	return crc32_gzip_refl(ICRC_AFTER_LEADING_ONES, masked, bytes);
}

icrc_t icrc_packet(const u8 *ip, bool is_ipv6, size_t len)
{
	u8 masked[ONE_CALL_BYTES];
	u32 bytes = icrc_start_bytes(is_ipv6);

	if (len > sizeof(masked))
		return crc32_gzip_refl(icrc_start(ip, is_ipv6), ip + bytes, len - bytes);
	memcpy(masked, ip, len);
	icrc_mask(masked, is_ipv6);
	return crc32_gzip_refl(ICRC_AFTER_LEADING_ONES, masked, len);
}

icrc_t icrc_update(icrc_t crc, const void *data, size_t len)
{
	return crc32_gzip_refl(crc, data, len);
}

void icrc_table_init(struct icrc_table *t)
{
	for (u32 b = 0; b < 256; b++) {
		u32 r = b;

		for (u32 k = 0; k < ARRAY_SIZE(t->entry); k++) {
			for (u32 bit = 0; bit < 8; bit++)
				r = r >> 1 ^ (r & 1 ? CRC32_POLYNOMIAL : 0);
			t->entry[k][b] = r;
		}
	}
}

/*
 * XORs the CRCs of two packets that differ only in the identification, with zeros elsewhere: other
 * contents would cancel out.
 */
u32 icrc_id_change_once(u32 tail, u16 flipped)
{
	static const u8 zeroes[ICRC_ID_TAIL_MAX];
	const __be16 before = 0, after = htobe16(flipped);

	return htole32(crc32_gzip_refl(crc32_gzip_refl(0, (const u8 *)&before, sizeof(before)),
				       zeroes, tail) ^
		       crc32_gzip_refl(crc32_gzip_refl(0, (const u8 *)&after, sizeof(after)),
				       zeroes, tail));
}

void icrc_id_init(struct icrc_id *c, u32 tail)
{
	c->tail = tail;
	for (u32 i = 0; i < ARRAY_SIZE(c->bit); i++)
		c->bit[i] = le32toh(icrc_id_change_once(tail, (u16)(1u << i)));
}

#define IPV4_DF	  0x4000 /* in the 16 bits after the identification */
#define DF_BYTES  2u	 /* of the tail */

/* Adds a row to the first n, which are in echelon form. from: the bit that it is the effect of. */
static void icrc_add_row(u32 *rows, u32 *made_of, u32 n, u32 row, u32 from)
{
	for (u32 k = 0; k < n; k++)
		if ((row ^ rows[k]) < row) {
			row ^= rows[k];
			from ^= made_of[k];
		}
	for (; n && rows[n - 1] < row; n--) {
		rows[n] = rows[n - 1];
		made_of[n] = made_of[n - 1];
	}
	rows[n] = row;
	made_of[n] = from;
}

/* The rows are independent: the fields are less than 32 bits apart, and the CRC has 32. */
void icrc_unknown_init(struct icrc_unknown *u, u32 tail)
{
	u32 made_of[ICRC_LOW_BITS];

	u->tail = tail;
	for (u32 i = 0; i < ICRC_UNKNOWN_BITS; i++) {
		u32 row = le32toh(i < 16 ? icrc_id_change_once(tail, (u16)(1u << i)) :
					   icrc_id_change_once(tail - DF_BYTES, IPV4_DF));

		icrc_add_row(u->row, u->made_of, i, row, 1u << i);
		if (i < ICRC_LOW_BITS)
			icrc_add_row(u->low, made_of, i, row, 1u << i);
	}
}

bool icrc_unknown_solve(const struct icrc_unknown *u, u32 difference, u16 *id, bool *may_fragment)
{
	u32 bits = 0;

	for (u32 i = 0; i < ICRC_UNKNOWN_BITS; i++)
		if ((difference ^ u->row[i]) < difference) {
			difference ^= u->row[i];
			bits ^= u->made_of[i];
		}
	*id = (u16)bits;
	*may_fragment = bits >> 16;
	return !difference;
}

bool icrc_peer_accepts(struct icrc_peer *peer, const struct icrc_unknown *u, u32 psn,
		       u32 difference)
{
	const bool is_low = icrc_unknown_is_low(u, difference);
	const bool moved = psn != peer->psn;

	if (!is_low && !icrc_unknown_explains(u, difference))
		return false;
	if (moved) {
		peer->psn = psn;
		peer->refusals = 0;
	}
	if (is_low) {
		if (!difference && moved && peer->zeroes < ICRC_PEER_ZEROES)
			peer->zeroes++;
		return true;
	}
	if (peer->is_other || peer->zeroes < ICRC_PEER_ZEROES) {
		peer->zeroes = 0;
		return true;
	}
	if (!peer->refusals || difference != peer->refused)
		peer->refusals++;
	peer->refused = difference;
	peer->is_other = peer->refusals >= ICRC_PEER_REFUSALS;
	return peer->is_other;
}

void icrc_store(icrc_t crc, u8 out[4])
{
	u32 le = htole32(crc);

	memcpy(out, &le, sizeof(le));
}

bool icrc_equal(icrc_t crc, const u8 stored[4])
{
	u32 le;

	memcpy(&le, stored, sizeof(le));
	return le32toh(le) == crc;
}
