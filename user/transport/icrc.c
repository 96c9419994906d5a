/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ICRC: which header bytes count as ones, and ISA-L's CRC-32 over the result. It never looks at lengths: the caller vouches for
 * the bytes.
 */
#include "icrc.h"

#include <isa-l/crc.h>

/*
 * crc32_gzip_refl() complements on the way in and out, as zlib does, so a running value is the complement of the CRC register and may be
 * handed from call to call. The register after the 8 leading bytes of ones is 0xdebb20e3 (protocol sheet).
 */
#define ICRC_AFTER_LEADING_ONES (~0xdebb20e3u)

#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES  8

icrc_t icrc_start(const u8 *ip, bool is_ipv6)
{
	u8 masked[IPV6_BYTES + UDP_BYTES + sizeof(struct bth)];
	u8 *udp;

	if (!is_ipv6) {
		memcpy(masked, ip, IPV4_BYTES + UDP_BYTES + sizeof(struct bth));
		masked[1] = 0xff;  /* TOS */
		masked[8] = 0xff;  /* TTL */
		masked[10] = 0xff; /* header checksum */
		masked[11] = 0xff;
		udp = masked + IPV4_BYTES;
	} else {
		memcpy(masked, ip, IPV6_BYTES + UDP_BYTES + sizeof(struct bth));
		masked[0] |= 0x0f; /* traffic class and flow label: all but the version */
		masked[1] = 0xff;
		masked[2] = 0xff;
		masked[3] = 0xff;
		masked[7] = 0xff; /* hop limit */
		udp = masked + IPV6_BYTES;
	}
	udp[6] = 0xff; /* UDP checksum */
	udp[7] = 0xff;
	udp[UDP_BYTES + offsetof(struct bth, ecn_qpn)] = 0xff; /* FECN, BECN, reserved */
	return crc32_gzip_refl(ICRC_AFTER_LEADING_ONES, masked, icrc_start_bytes(is_ipv6));
}

icrc_t icrc_update(icrc_t crc, const void *data, size_t len)
{
	return crc32_gzip_refl(crc, data, len);
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
