/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "rsocket_wire.h"

#include <string.h>

enum { CONN_VERSION = 1, CONN_BIG_ENDIAN = 1, CONN_IOMAP = 2 };

#define UDP_TAG 0x55555555u

static void wire_put(u8 *at, u64 value, u32 bytes)
{
	while (bytes--) {
		at[bytes] = (u8)value;
		value >>= 8;
	}
}

static u64 wire_get(const u8 *at, u32 bytes)
{
	u64 value = 0;

	while (bytes--)
		value = value << 8 | *at++;
	return value;
}

static void wire_put_sge(u8 *at, const struct wire_sge *sge)
{
	wire_put(at, sge->address, 8);
	wire_put(at + 8, sge->key, 4);
	wire_put(at + 12, sge->length, 4);
}

static struct wire_sge wire_get_sge(const u8 *at)
{
	return (struct wire_sge){
		.address = wire_get(at, 8),
		.key = (u32)wire_get(at + 8, 4),
		.length = (u32)wire_get(at + 12, 4),
	};
}

struct wire_sge wire_swap_sge(struct wire_sge sge)
{
	return (struct wire_sge){
		.address = __builtin_bswap64(sge.address),
		.key = __builtin_bswap32(sge.key),
		.length = __builtin_bswap32(sge.length),
	};
}

/*
 * Encodes a table's size in 8 bits: as it is up to 128, else in units of 256 with the top bit set.
 */
static u8 wire_scale(u32 n)
{
	if (n <= 128)
		return (u8)n;
	return (u8)(0x80 | ((n < 0x7fff ? n : 0x7fff) >> 8));
}

static u32 wire_unscale(u8 scaled)
{
	return scaled <= 128 ? scaled : (scaled & 0x7fu) << 8;
}

u32 wire_iomap_size(u32 n)
{
	return wire_unscale(wire_scale(n));
}

void wire_put_conn(u8 bytes[WIRE_CONN_BYTES], const struct wire_conn *conn)
{
	memset(bytes, 0, WIRE_CONN_BYTES);
	bytes[0] = CONN_VERSION;
	bytes[1] = (conn->big_endian ? CONN_BIG_ENDIAN : 0) | (conn->iomap ? CONN_IOMAP : 0);
	wire_put(bytes + 2, conn->credits, 2);
	bytes[7] = wire_scale(conn->iomap_size);
	wire_put_sge(bytes + 8, &conn->list);
	wire_put_sge(bytes + 24, &conn->buffer);
}

bool wire_get_conn(struct wire_conn *conn, const void *data, size_t n)
{
	const u8 *bytes = data;

	if (n < WIRE_CONN_BYTES || bytes[0] != CONN_VERSION)
		return false;
	conn->big_endian = bytes[1] & CONN_BIG_ENDIAN;
	conn->iomap = bytes[1] & CONN_IOMAP;
	conn->credits = (u16)wire_get(bytes + 2, 2);
	conn->iomap_size = conn->iomap ? wire_unscale(bytes[7]) : 0;
	conn->list = wire_get_sge(bytes + 8);
	conn->buffer = wire_get_sge(bytes + 24);
	return conn->list.length != 0;
}

u32 wire_put_dgram(u8 bytes[WIRE_DGRAM_MAX_BYTES], const struct wire_address *from)
{
	u32 n = from->version == 4 ? 8 : 24;

	bytes[0] = from->version;
	bytes[1] = (u8)n;
	wire_put(bytes + 2, from->port, 2);
	if (from->version == 4) {
		memcpy(bytes + 4, from->bytes, 4);
	} else {
		wire_put(bytes + 4, from->flow, 4);
		memcpy(bytes + 8, from->bytes, 16);
	}
	return n;
}

u32 wire_get_dgram(struct wire_address *from, const void *data, size_t n)
{
	const u8 *bytes = data;
	u32 want;

	memset(from, 0, sizeof(*from));
	if (n < 8)
		return 0;
	want = bytes[0] == 4 ? 8 : bytes[0] == 6 ? 24 : 0;
	if (!want || bytes[1] != want || n < want)
		return 0;
	from->version = bytes[0];
	from->port = (u16)wire_get(bytes + 2, 2);
	if (from->version == 4) {
		memcpy(from->bytes, bytes + 4, 4);
	} else {
		from->flow = (u32)wire_get(bytes + 4, 4);
		memcpy(from->bytes, bytes + 8, 16);
	}
	return want;
}

u32 wire_put_udp(u8 bytes[WIRE_UDP_MAX_BYTES], const struct wire_udp *udp)
{
	u32 address = udp->address.version == 4 ? 4 : 16;

	wire_put(bytes, UDP_TAG, 4);
	bytes[4] = udp->address.version;
	bytes[5] = udp->op;
	bytes[6] = (u8)(12 + address);
	bytes[7] = 0;
	wire_put(bytes + 8, udp->qpn & 0xffffff, 4);
	memcpy(bytes + 12, udp->address.bytes, address);
	return 12 + address;
}

u32 wire_get_udp(struct wire_udp *udp, const void *data, size_t n)
{
	const u8 *bytes = data;
	u32 want;

	memset(udp, 0, sizeof(*udp));
	if (n < 16 || wire_get(bytes, 4) != UDP_TAG)
		return 0;
	want = bytes[4] == 4 ? 16 : bytes[4] == 6 ? 28 : 0;
	if (!want || bytes[6] != want || n < want)
		return 0;
	if (bytes[5] != WIRE_DATA && bytes[5] != WIRE_CTRL)
		return 0;
	udp->address.version = bytes[4];
	udp->op = bytes[5];
	udp->qpn = (u32)wire_get(bytes + 8, 4) & 0xffffff;
	memcpy(udp->address.bytes, bytes + 12, want - 12);
	return want;
}
