/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fills and checks datagrams of xroce ping. Pure. */
#include "ping.h"

void ping_fill(u8 *data, u32 len, enum ping_kind kind, u64 session, u64 seq)
{
	const struct ping_header h = {
		.magic = htobe32(PING_MAGIC),
		.kind = (u8)kind,
		.session = htobe64(session),
		.seq = htobe64(seq),
	};

	memcpy(data, &h, sizeof(h));
	for (u32 i = sizeof(h); i < len; i++)
		data[i] = (u8)(seq + i);
}

bool ping_check(const u8 *data, u32 len, enum ping_kind kind, u64 *session, u64 *seq)
{
	struct ping_header h;

	if (len < sizeof(h))
		return false;
	memcpy(&h, data, sizeof(h));
	if (be32toh(h.magic) != PING_MAGIC || h.kind != kind || h.zero[0] || h.zero[1] || h.zero[2])
		return false;
	*session = be64toh(h.session);
	*seq = be64toh(h.seq);
	for (u32 i = sizeof(h); i < len; i++)
		if (data[i] != (u8)(*seq + i))
			return false;
	return true;
}
