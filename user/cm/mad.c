/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The layout as one table: the first byte of each field, its first bit there (0 is the most
 * significant) and its width. The architecture's tables are the same, with their byte 0 at byte 24
 * here. The same rows decode and encode.
 */
#include "mad.h"

#define MAD_BASE_VERSION  1
#define MAD_CLASS_CM	  7
#define MAD_CLASS_VERSION 2
#define MAD_METHOD_SEND	  3

struct field {
	u8 byte, bit;
	u16 bits; /* more than 64: copied as bytes */
	u16 member, size;
};

#define FIELD(m, byte, bit, bits)                                                        \
	{                                                                                \
		byte, bit, bits, offsetof(struct cm_mad, m), sizeof(((struct cm_mad *)0)->m) \
	}
#define FIELD_BYTES(m, byte) FIELD(m, byte, 0, 8 * sizeof(((struct cm_mad *)0)->m))

static const struct field header[] = {
	FIELD(tid, 8, 0, 64),
	FIELD(attr_mod, 20, 0, 32),
};

/* The first fields of all but SIDR. */
#define IDS FIELD(local_id, 24, 0, 32), FIELD(remote_id, 28, 0, 32)

/* A path of a REQ, from byte `at` on. */
#define REQ_PATH(p, at)                                                                  \
	FIELD(p.local_lid, at, 0, 16), FIELD(p.remote_lid, at + 2, 0, 16),               \
		FIELD_BYTES(p.local, at + 4), FIELD_BYTES(p.remote, at + 20),            \
		FIELD(p.flow_label, at + 36, 0, 20), FIELD(p.rate, at + 39, 2, 6),       \
		FIELD(p.traffic_class, at + 40, 0, 8), FIELD(p.hop_limit, at + 41, 0, 8), \
		FIELD(p.sl, at + 42, 0, 4), FIELD(p.subnet_local, at + 42, 4, 1),        \
		FIELD(p.ack_timeout, at + 43, 0, 5)

static const struct field req[] = {
	FIELD(local_id, 24, 0, 32),
	FIELD(req.vendor_id, 29, 0, 24),
	FIELD(req.service_id, 32, 0, 64),
	FIELD(req.ca_guid, 40, 0, 64),
	FIELD(req.qkey, 52, 0, 32),
	FIELD(req.qpn, 56, 0, 24),
	FIELD(req.responder_resources, 59, 0, 8),
	FIELD(req.eecn, 60, 0, 24),
	FIELD(req.initiator_depth, 63, 0, 8),
	FIELD(req.remote_eecn, 64, 0, 24),
	FIELD(req.remote_response_timeout, 67, 0, 5),
	FIELD(req.transport, 67, 5, 2),
	FIELD(req.flow_control, 67, 7, 1),
	FIELD(req.starting_psn, 68, 0, 24),
	FIELD(req.local_response_timeout, 71, 0, 5),
	FIELD(req.retry_count, 71, 5, 3),
	FIELD(req.pkey, 72, 0, 16),
	FIELD(req.mtu, 74, 0, 4),
	FIELD(req.rdc_exists, 74, 4, 1),
	FIELD(req.rnr_retry_count, 74, 5, 3),
	FIELD(req.max_retries, 75, 0, 4),
	FIELD(req.srq, 75, 4, 1),
	FIELD(req.extended_transport, 75, 5, 3),
	REQ_PATH(req.primary, 76),
	REQ_PATH(req.alternate, 120),
};

static const struct field mra[] = {
	IDS,
	FIELD(mra.about, 32, 0, 2),
	FIELD(mra.service_timeout, 33, 0, 5),
};

static const struct field rej[] = {
	IDS,
	FIELD(rej.about, 32, 0, 2),
	FIELD(rej.info_len, 33, 0, 7),
	FIELD(rej.reason, 34, 0, 16),
	FIELD_BYTES(rej.info, 36),
};

static const struct field rep[] = {
	IDS,
	FIELD(rep.qkey, 32, 0, 32),
	FIELD(rep.qpn, 36, 0, 24),
	FIELD(rep.eecn, 40, 0, 24),
	FIELD(rep.starting_psn, 44, 0, 24),
	FIELD(rep.responder_resources, 48, 0, 8),
	FIELD(rep.initiator_depth, 49, 0, 8),
	FIELD(rep.target_ack_delay, 50, 0, 5),
	FIELD(rep.failover, 50, 5, 2),
	FIELD(rep.flow_control, 50, 7, 1),
	FIELD(rep.rnr_retry_count, 51, 0, 3),
	FIELD(rep.srq, 51, 3, 1),
	FIELD(rep.ca_guid, 52, 0, 64),
};

static const struct field ids[] = { IDS };

static const struct field dreq[] = { IDS, FIELD(dreq.qpn, 32, 0, 24) };

static const struct field sidr_req[] = {
	FIELD(local_id, 24, 0, 32),
	FIELD(sidr_req.pkey, 28, 0, 16),
	FIELD(sidr_req.service_id, 32, 0, 64),
};

static const struct field sidr_rep[] = {
	FIELD(local_id, 24, 0, 32),
	FIELD(sidr_rep.status, 28, 0, 8),
	FIELD(sidr_rep.info_len, 29, 0, 8),
	FIELD(sidr_rep.qpn, 32, 0, 24),
	FIELD(sidr_rep.service_id, 36, 0, 64),
	FIELD(sidr_rep.qkey, 44, 0, 32),
	FIELD_BYTES(sidr_rep.info, 48),
};

static const struct field lap[] = {
	IDS,
	FIELD(lap.qpn, 36, 0, 24),
	FIELD(lap.remote_response_timeout, 39, 0, 5),
	FIELD(lap.alternate.local_lid, 44, 0, 16),
	FIELD(lap.alternate.remote_lid, 46, 0, 16),
	FIELD_BYTES(lap.alternate.local, 48),
	FIELD_BYTES(lap.alternate.remote, 64),
	FIELD(lap.alternate.flow_label, 80, 0, 20),
	FIELD(lap.alternate.traffic_class, 83, 0, 8),
	FIELD(lap.alternate.hop_limit, 84, 0, 8),
	FIELD(lap.alternate.rate, 85, 2, 6),
	FIELD(lap.alternate.sl, 86, 0, 4),
	FIELD(lap.alternate.subnet_local, 86, 4, 1),
	FIELD(lap.alternate.ack_timeout, 87, 0, 5),
};

static const struct field apr[] = {
	IDS,
	FIELD(apr.info_len, 32, 0, 8),
	FIELD(apr.status, 33, 0, 8),
	FIELD_BYTES(apr.info, 36),
};

/* The fields of a kind, and the start of its private data, which extends to the end. */
static const struct layout {
	const struct field *fields;
	u8 num, data;
} layouts[CM_KIND_END] = {
#define LAYOUT(kind, fields, data) [kind] = { fields, ARRAY_SIZE(fields), data }
	LAYOUT(CM_REQ, req, 164),	    LAYOUT(CM_MRA, mra, 34),
	LAYOUT(CM_REJ, rej, 108),	    LAYOUT(CM_REP, rep, 60),
	LAYOUT(CM_RTU, ids, 32),	    LAYOUT(CM_DREQ, dreq, 36),
	LAYOUT(CM_DREP, ids, 32),	    LAYOUT(CM_SIDR_REQ, sidr_req, 40),
	LAYOUT(CM_SIDR_REP, sidr_rep, 120), LAYOUT(CM_LAP, lap, 88),
	LAYOUT(CM_APR, apr, 108),
};

/* A vendor id is spread over gaps after other fields of REP and SIDR_REP. */
static const u8 vendor_bytes[CM_KIND_END][3] = {
	[CM_REP] = { 39, 43, 47 },
	[CM_SIDR_REP] = { 30, 31, 35 },
};

u32 cm_data_room(u32 kind)
{
	return kind < CM_KIND_END && layouts[kind].fields ? CM_MAD_BYTES - layouts[kind].data : 0;
}

static u64 field_load(const struct field *f, const u8 *mad)
{
	const u32 last = (f->bit + f->bits + 7u) / 8;
	u64 v = 0;

	for (u32 i = 0; i < last; i++)
		v = v << 8 | mad[f->byte + i];
	v >>= 8 * last - f->bit - f->bits;
	return f->bits == 64 ? v : v & ((1ull << f->bits) - 1);
}

/* The field's bits in mad must be 0. */
static void field_store(const struct field *f, u8 *mad, u64 v)
{
	const u32 last = (f->bit + f->bits + 7u) / 8;

	if (f->bits < 64)
		v &= (1ull << f->bits) - 1;
	v <<= 8 * last - f->bit - f->bits;
	for (u32 i = last; i-- > 0; v >>= 8)
		mad[f->byte + i] |= (u8)v;
}

static u64 member_get(const struct cm_mad *m, const struct field *f)
{
	const void *at = (const char *)m + f->member;

	switch (f->size) {
	case 1:
		return *(const u8 *)at;
	case 2:
		return *(const u16 *)at;
	case 4:
		return *(const u32 *)at;
	default:
		return *(const u64 *)at;
	}
}

static void member_set(struct cm_mad *m, const struct field *f, u64 v)
{
	void *at = (char *)m + f->member;

	switch (f->size) {
	case 1:
		*(u8 *)at = (u8)v;
		break;
	case 2:
		*(u16 *)at = (u16)v;
		break;
	case 4:
		*(u32 *)at = (u32)v;
		break;
	default:
		*(u64 *)at = v;
	}
}

static void fields_decode(struct cm_mad *m, const struct field *f, u32 num, const u8 *mad)
{
	for (; num--; f++)
		if (f->bits > 64)
			memcpy((char *)m + f->member, mad + f->byte, f->size);
		else
			member_set(m, f, field_load(f, mad));
}

static void fields_encode(u8 *mad, const struct field *f, u32 num, const struct cm_mad *m)
{
	for (; num--; f++)
		if (f->bits > 64)
			memcpy(mad + f->byte, (const char *)m + f->member, f->size);
		else
			field_store(f, mad, member_get(m, f));
}

static u32 *vendor_id(struct cm_mad *m)
{
	return m->kind == CM_REP ? &m->rep.vendor_id : &m->sidr_rep.vendor_id;
}

/* Returns false for lengths beyond their array, and undefined values. */
static bool mad_is_sound(const struct cm_mad *m)
{
	switch (m->kind) {
	case CM_MRA:
		return m->mra.about <= CM_ABOUT_OTHER;
	case CM_REJ:
		return m->rej.about <= CM_ABOUT_OTHER && m->rej.info_len <= CM_ARI_MAX;
	case CM_APR:
		return m->apr.info_len <= CM_ARI_MAX;
	case CM_SIDR_REP:
		return m->sidr_rep.info_len <= CM_ARI_MAX &&
		       m->sidr_rep.status < CM_SIDR_STATUS_END;
	default:
		return true;
	}
}

enum cm_drop cm_mad_decode(struct cm_mad *m, const void *data, u32 len)
{
	const u8 *mad = data;
	const struct layout *l;
	u32 kind;

	if (len != CM_MAD_BYTES)
		return CM_DROP_length;
	if (mad[0] != MAD_BASE_VERSION)
		return CM_DROP_base_version;
	if (mad[1] != MAD_CLASS_CM)
		return CM_DROP_class;
	if (mad[2] != MAD_CLASS_VERSION)
		return CM_DROP_class_version;
	if (mad[3] != MAD_METHOD_SEND)
		return CM_DROP_method;
	kind = (u32)mad[16] << 8 | mad[17];
	if (!cm_data_room(kind))
		return CM_DROP_attribute;
	memset(m, 0, sizeof(*m));
	m->kind = kind;
	l = &layouts[kind];
	fields_decode(m, header, ARRAY_SIZE(header), mad);
	fields_decode(m, l->fields, l->num, mad);
	if (vendor_bytes[kind][0])
		for (u32 i = 0; i < 3; i++)
			*vendor_id(m) = *vendor_id(m) << 8 | mad[vendor_bytes[kind][i]];
	memcpy(m->data, mad + l->data, CM_MAD_BYTES - l->data);
	return mad_is_sound(m) ? CM_DROP_none : CM_DROP_field;
}

void cm_mad_encode(u8 mad[CM_MAD_BYTES], const struct cm_mad *m)
{
	const struct layout *l = &layouts[m->kind];

	memset(mad, 0, CM_MAD_BYTES);
	mad[0] = MAD_BASE_VERSION;
	mad[1] = MAD_CLASS_CM;
	mad[2] = MAD_CLASS_VERSION;
	mad[3] = MAD_METHOD_SEND;
	mad[17] = (u8)m->kind;
	fields_encode(mad, header, ARRAY_SIZE(header), m);
	fields_encode(mad, l->fields, l->num, m);
	if (vendor_bytes[m->kind][0])
		for (u32 i = 0; i < 3; i++)
			mad[vendor_bytes[m->kind][i]] =
				(u8)(*vendor_id((struct cm_mad *)m) >> (16 - 8 * i));
	memcpy(mad + l->data, m->data, CM_MAD_BYTES - l->data);
}

/* ---- ip service ---- */

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
