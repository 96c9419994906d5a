/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ip_service.h"

/* Annex A11: 0x00000000_01PP_pppp, PP the protocol; the kernel's IPoIB space is 0x0002. */
bool cm_service_is_ip(u64 service_id)
{
	return service_id >> 24 == 1 || service_id >> 16 == CM_PS_IPOIB;
}

static void gid_set_ipv4(struct gid *g, const u8 *last4)
{
	*g = (struct gid){ .raw = { [10] = 0xff, [11] = 0xff } };
	memcpy(g->raw + 12, last4, 4);
}

bool cm_ip_header_get(struct cm_ip_header *h, const u8 *data)
{
	static const u8 zero[12];
	const u8 *source = data + 4, *destination = data + 20;

	if (data[0] != 0)
		return false;
	h->source_port = (u16)(data[2] << 8 | data[3]);
	switch (data[1] >> 4) {
	case 4:
		if (memcmp(source, zero, sizeof(zero)) || memcmp(destination, zero, sizeof(zero)))
			return false;
		gid_set_ipv4(&h->source, source + 12);
		gid_set_ipv4(&h->destination, destination + 12);
		return true;
	case 6:
		memcpy(h->source.raw, source, 16);
		memcpy(h->destination.raw, destination, 16);
		return !gid_is_ipv4(&h->source) && !gid_is_ipv4(&h->destination);
	default:
		return false;
	}
}

void cm_ip_header_put(u8 *data, const struct cm_ip_header *h)
{
	const bool v4 = gid_is_ipv4(&h->destination);

	memset(data, 0, CM_IP_HEADER_BYTES);
	data[1] = v4 ? 0x40 : 0x60;
	data[2] = (u8)(h->source_port >> 8);
	data[3] = (u8)h->source_port;
	if (v4) {
		memcpy(data + 16, h->source.raw + 12, 4);
		memcpy(data + 32, h->destination.raw + 12, 4);
	} else {
		memcpy(data + 4, h->source.raw, 16);
		memcpy(data + 20, h->destination.raw, 16);
	}
}

bool cm_is_loopback(const struct gid *address)
{
	static const struct gid v6 = { .raw = { [15] = 1 } };

	return gid_is_ipv4(address) ? address->raw[12] == 127 : gid_equal(address, &v6);
}

bool cm_is_any(const struct gid *address)
{
	static const struct gid v4 = { .raw = { [10] = 0xff, [11] = 0xff } }, v6;

	return gid_equal(address, &v4) || gid_equal(address, &v6);
}
