/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * The codec of the connection manager's MADs: the kernel's captured MADs decode to the right values
 * and encode to the same bytes; every field has its own bits and takes all of them; hostile MADs
 * are refused for the right reason.
 */
#include "../unit/unit.h"

#include "../../user/cm/mad.h"
#include "capture.h"

static struct capture capture;

static int load(void **state)
{
	return capture_load(&capture);
}

static int unload(void **state)
{
	capture_free(&capture);
	return 0;
}

static const u8 *captured(const char *file, u32 index)
{
	const u8 *mad = capture_mad(&capture, file, index);

	assert_non_null(mad);
	return mad;
}

static struct cm_mad decoded(const u8 *mad)
{
	struct cm_mad m;

	assert_int_equal(cm_mad_decode(&m, mad, CM_MAD_BYTES), CM_DROP_none);
	return m;
}

static void cm_mad_encode__captures_to_the_same_bytes(void **state)
{
	u8 again[CM_MAD_BYTES];

	assert_int_equal(capture.num, 2 + 5 + 5 + 2);
	for (u32 i = 0; i < capture.num; i++) {
		struct cm_mad m = decoded(capture.mad[i].mad);

		cm_mad_encode(again, &m);
		if (memcmp(again, capture.mad[i].mad, CM_MAD_BYTES))
			fail_msg("%s %u: not the same bytes", capture.mad[i].file,
				 capture.mad[i].index);
	}
}

static void ends(const struct gid *local, const struct gid *remote)
{
	static const struct gid a = { { [10] = 0xff, 0xff, 10, 9, 0, 1 } },
				b = { { [10] = 0xff, 0xff, 10, 9, 0, 2 } };

	assert_memory_equal(local, &a, sizeof(a));
	assert_memory_equal(remote, &b, sizeof(b));
}

static void cm_mad_decode__captured_req(void **state)
{
	struct cm_mad m = decoded(captured("v4-cm-rping.pcap", 0));
	struct cm_ip_header ip;

	assert_int_equal(m.kind, CM_REQ);
	assert_int_equal(m.tid, 0x000000020b83467d);
	assert_int_equal(m.attr_mod, 0);
	assert_int_equal(m.local_id, 0x7d46830b);
	assert_int_equal(m.remote_id, 0);
	assert_int_equal(m.req.service_id, cm_service_id(CM_PS_TCP, 7174));
	assert_int_equal(m.req.ca_guid, 0x4c16a0fffe94bac0);
	assert_int_equal(m.req.vendor_id, 0);
	assert_int_equal(m.req.qkey, 0);
	assert_int_equal(m.req.qpn, 0x3a);
	assert_int_equal(m.req.responder_resources, 1);
	assert_int_equal(m.req.initiator_depth, 1);
	assert_int_equal(m.req.remote_response_timeout, 20);
	assert_int_equal(m.req.local_response_timeout, 20);
	assert_int_equal(m.req.transport, CM_TRANSPORT_RC);
	assert_int_equal(m.req.flow_control, 0);
	assert_int_equal(m.req.starting_psn, 0x7c83c2);
	assert_int_equal(m.req.retry_count, 7);
	assert_int_equal(m.req.rnr_retry_count, 7);
	assert_int_equal(m.req.pkey, 0xffff);
	assert_int_equal(m.req.mtu, 5);
	assert_int_equal(m.req.rdc_exists, 0);
	assert_int_equal(m.req.max_retries, 15);
	assert_int_equal(m.req.srq, 0);
	assert_int_equal(m.req.extended_transport, 0);
	assert_int_equal(m.req.primary.local_lid, 0xffff);
	assert_int_equal(m.req.primary.remote_lid, 0xffff);
	ends(&m.req.primary.local, &m.req.primary.remote);
	assert_int_equal(m.req.primary.flow_label, 0x26889);
	assert_int_equal(m.req.primary.hop_limit, 64);
	assert_int_equal(m.req.primary.traffic_class, 0);
	assert_int_equal(m.req.primary.rate, 0);
	assert_int_equal(m.req.primary.sl, 0);
	assert_int_equal(m.req.primary.ack_timeout, 19);
	assert_int_equal(m.req.alternate.local_lid, 0);
	assert_true(cm_service_is_ip(m.req.service_id));
	assert_true(cm_ip_header_get(&ip, m.data));
	assert_int_equal(ip.source_port, 0x971d);
	ends(&ip.source, &ip.destination);
}

static void cm_mad_decode__captured_rep(void **state)
{
	struct cm_mad m = decoded(captured("v4-cm-ucmatose.pcap", 1));

	assert_int_equal(m.kind, CM_REP);
	assert_int_equal(m.tid, 0x000000020b834678);
	assert_int_equal(m.local_id, 0x7946830b);
	assert_int_equal(m.remote_id, 0x7846830b);
	assert_int_equal(m.rep.qpn, 0x66);
	assert_int_equal(m.rep.starting_psn, 0x60b9f3);
	assert_int_equal(m.rep.responder_resources, 1);
	assert_int_equal(m.rep.initiator_depth, 1);
	assert_int_equal(m.rep.target_ack_delay, 15);
	assert_int_equal(m.rep.failover, 0);
	assert_int_equal(m.rep.flow_control, 0);
	assert_int_equal(m.rep.rnr_retry_count, 7);
	assert_int_equal(m.rep.srq, 0);
	assert_int_equal(m.rep.vendor_id, 0);
	assert_int_equal(m.rep.ca_guid, 0xe8f0b0fffed2c063);
}

static void cm_mad_decode__captured_others(void **state)
{
	struct cm_ip_header ip;
	struct cm_mad m = decoded(captured("v4-cm-refused.pcap", 1));

	assert_int_equal(m.kind, CM_REJ);
	assert_int_equal(m.local_id, 0);
	assert_int_equal(m.remote_id, 0x7546830b);
	assert_int_equal(m.rej.about, CM_ABOUT_REQ);
	assert_int_equal(m.rej.reason, CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(m.rej.info_len, 0);
	m = decoded(captured("v4-cm-rping.pcap", 2));
	assert_int_equal(m.kind, CM_RTU);
	assert_int_equal(m.local_id, 0x7d46830b);
	assert_int_equal(m.remote_id, 0x7e46830b);
	m = decoded(captured("v4-cm-rping.pcap", 15));
	assert_int_equal(m.kind, CM_DREQ);
	assert_int_equal(m.dreq.qpn, 0x65);
	m = decoded(captured("v4-cm-rping.pcap", 16));
	assert_int_equal(m.kind, CM_DREP);
	assert_int_equal(m.local_id, 0x7e46830b);
	m = decoded(captured("v4-cm-udaddy.pcap", 0));
	assert_int_equal(m.kind, CM_SIDR_REQ);
	assert_int_equal(m.local_id, 0x7b46830b);
	assert_int_equal(m.sidr_req.pkey, 0xffff);
	assert_int_equal(m.sidr_req.service_id, cm_service_id(CM_PS_UDP, 7174));
	assert_true(cm_ip_header_get(&ip, m.data));
	assert_int_equal(ip.source_port, 0x922c);
	ends(&ip.source, &ip.destination);
	m = decoded(captured("v4-cm-udaddy.pcap", 1));
	assert_int_equal(m.kind, CM_SIDR_REP);
	assert_int_equal(m.local_id, 0x7b46830b);
	assert_int_equal(m.sidr_rep.status, CM_SIDR_VALID);
	assert_int_equal(m.sidr_rep.qpn, 0x68);
	assert_int_equal(m.sidr_rep.qkey, 0x01234567);
	assert_int_equal(m.sidr_rep.service_id, cm_service_id(CM_PS_UDP, 7174));
}

/*
 * The bytes of each kind that the architecture reserves, and the header's that are the same in all:
 * all other bits come back as they were, these come back as in an empty MAD.
 */
struct reserved {
	u8 byte, bits;
};
static const struct reserved none_reserved[1];
static const struct reserved in_req[] = {
	{ 28, 0xff }, { 48, 0xff }, { 49, 0xff }, { 50, 0xff }, { 51, 0xff }, { 114, 0x0f },
	{ 115, 0xc0 }, { 118, 0x07 }, { 119, 0x07 }, { 158, 0x0f }, { 159, 0xc0 }, { 162, 0x07 },
	{ 163, 0x07 }, { 0 },
};
static const struct reserved in_mra[] = { { 32, 0x3f }, { 33, 0x07 }, { 0 } };
static const struct reserved in_rej[] = { { 32, 0x3f }, { 33, 0x01 }, { 0 } };
static const struct reserved in_rep[] = { { 51, 0x0f }, { 0 } };
static const struct reserved in_dreq[] = { { 35, 0xff }, { 0 } };
static const struct reserved in_sidr_req[] = { { 30, 0xff }, { 31, 0xff }, { 0 } };
static const struct reserved in_lap[] = {
	{ 32, 0xff }, { 33, 0xff }, { 34, 0xff }, { 35, 0xff }, { 39, 0x07 }, { 40, 0xff },
	{ 41, 0xff }, { 42, 0xff }, { 43, 0xff }, { 82, 0x0f }, { 85, 0xc0 }, { 86, 0x07 },
	{ 87, 0x07 }, { 0 },
};
static const struct reserved in_apr[] = { { 34, 0xff }, { 35, 0xff }, { 0 } };

static const struct {
	enum cm_kind kind;
	u32 room;
	const struct reserved *reserved;
} kinds[] = {
	{ CM_REQ, 92, in_req },		 { CM_MRA, 222, in_mra },	{ CM_REJ, 148, in_rej },
	{ CM_REP, 196, in_rep },	 { CM_RTU, 224, none_reserved }, { CM_DREQ, 220, in_dreq },
	{ CM_DREP, 224, none_reserved }, { CM_SIDR_REQ, 216, in_sidr_req },
	{ CM_SIDR_REP, 136, none_reserved }, { CM_LAP, 168, in_lap },	{ CM_APR, 148, in_apr },
};

static u8 reserved_bits(const struct reserved *r, u32 byte)
{
	/* of the header: status, class specific, after the attribute */
	if (byte < 24 && !(byte >= 8 && byte < 16) && !(byte >= 20))
		return 0xff;
	for (; r->byte; r++)
		if (r->byte == byte)
			return r->bits;
	return 0;
}

static void cm_mad_decode__every_bit_but_reserved_ones_comes_back(void **state)
{
	for (u32 k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct cm_mad m = { .kind = kinds[k].kind };
		u8 empty[CM_MAD_BYTES], one[CM_MAD_BYTES], again[CM_MAD_BYTES];

		assert_int_equal(cm_data_room(kinds[k].kind), kinds[k].room);
		cm_mad_encode(empty, &m);
		for (u32 bit = 8 * 4; bit < 8 * CM_MAD_BYTES; bit++) {
			const u32 byte = bit / 8;
			const u8 mask = (u8)(0x80 >> bit % 8);
			const bool reserved = reserved_bits(kinds[k].reserved, byte) & mask;

			if (byte == 16 || byte == 17)
				continue;
			memcpy(one, empty, sizeof(one));
			one[byte] |= mask;
			if (cm_mad_decode(&m, one, sizeof(one)) == CM_DROP_field)
				continue;
			cm_mad_encode(again, &m);
			if (memcmp(again, reserved ? empty : one, sizeof(again)))
				fail_msg("attribute %#x, byte %u, bits %#x", kinds[k].kind, byte,
					 mask);
		}
	}
}

static void cm_mad_encode__wider_values_stay_in_their_field(void **state)
{
	struct cm_mad m = { .kind = CM_REQ }, n;
	u8 mad[CM_MAD_BYTES];

	m.req.qpn = ~0u;
	m.req.retry_count = 0xff;
	m.req.primary.flow_label = ~0u;
	cm_mad_encode(mad, &m);
	n = decoded(mad);
	assert_int_equal(n.req.qpn, 0xffffff);
	assert_int_equal(n.req.responder_resources, 0);
	assert_int_equal(n.req.retry_count, 7);
	assert_int_equal(n.req.local_response_timeout, 0);
	assert_int_equal(n.req.primary.flow_label, 0xfffff);
	assert_int_equal(n.req.primary.rate, 0);
}

static void cm_mad_decode__vendor_ids_in_parts(void **state)
{
	struct cm_mad m = { .kind = CM_REP, .rep.vendor_id = 0x123456 };
	u8 mad[CM_MAD_BYTES];

	cm_mad_encode(mad, &m);
	assert_int_equal(mad[39], 0x12);
	assert_int_equal(mad[43], 0x34);
	assert_int_equal(mad[47], 0x56);
	assert_int_equal(decoded(mad).rep.vendor_id, 0x123456);
	m = (struct cm_mad){ .kind = CM_SIDR_REP, .sidr_rep.vendor_id = 0x123456 };
	cm_mad_encode(mad, &m);
	assert_int_equal(mad[30], 0x12);
	assert_int_equal(mad[31], 0x34);
	assert_int_equal(mad[35], 0x56);
	assert_int_equal(decoded(mad).sidr_rep.vendor_id, 0x123456);
}

static void cm_mad_decode__hostile(void **state)
{
	static const struct {
		u8 byte, value;
		enum cm_drop drop;
	} rows[] = {
		{ 0, 0, CM_DROP_base_version },	   { 0, 2, CM_DROP_base_version },
		{ 1, 3, CM_DROP_class },	   { 1, 0x87, CM_DROP_class },
		{ 2, 1, CM_DROP_class_version },   { 2, 3, CM_DROP_class_version },
		{ 3, 1, CM_DROP_method },	   { 3, 0x83, CM_DROP_method },
		{ 17, 0x0f, CM_DROP_attribute },   { 17, 0x1b, CM_DROP_attribute },
		{ 17, 0xff, CM_DROP_attribute },   { 16, 1, CM_DROP_attribute },
		{ 16, 0xff, CM_DROP_attribute },
	};
	static const struct {
		enum cm_kind kind;
		u8 byte, value;
		enum cm_drop drop;
	} fields[] = {
		{ CM_MRA, 32, 0x80, CM_DROP_none },	 { CM_MRA, 32, 0xc0, CM_DROP_field },
		{ CM_REJ, 32, 0x80, CM_DROP_none },	 { CM_REJ, 32, 0xc0, CM_DROP_field },
		{ CM_REJ, 33, 72 << 1, CM_DROP_none },	 { CM_REJ, 33, 73 << 1, CM_DROP_field },
		{ CM_APR, 32, 72, CM_DROP_none },	 { CM_APR, 32, 73, CM_DROP_field },
		{ CM_SIDR_REP, 29, 72, CM_DROP_none },	 { CM_SIDR_REP, 29, 73, CM_DROP_field },
		{ CM_SIDR_REP, 28, 5, CM_DROP_none },	 { CM_SIDR_REP, 28, 6, CM_DROP_field },
	};
	const u8 *sound = captured("v4-cm-rping.pcap", 0);
	struct cm_mad m = { .kind = CM_REQ };
	u8 mad[CM_MAD_BYTES];

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		memcpy(mad, sound, sizeof(mad));
		mad[rows[i].byte] = rows[i].value;
		assert_int_equal(cm_mad_decode(&m, mad, sizeof(mad)), rows[i].drop);
	}
	for (u32 i = 0; i < ARRAY_SIZE(fields); i++) {
		m = (struct cm_mad){ .kind = fields[i].kind };
		cm_mad_encode(mad, &m);
		mad[fields[i].byte] = fields[i].value;
		assert_int_equal(cm_mad_decode(&m, mad, sizeof(mad)), fields[i].drop);
	}
	/* a copy of that length, so that a sanitizer sees reads beyond it */
	for (u32 len = 0; len < CM_MAD_BYTES; len++) {
		void *part = exact_copy(sound, len);

		assert_int_equal(cm_mad_decode(&m, part, len), CM_DROP_length);
		free(part);
	}
	memcpy(mad, sound, sizeof(mad));
	assert_int_equal(cm_mad_decode(&m, mad, sizeof(mad) + 1), CM_DROP_length);
}

static void cm_data_room__of_no_kind(void **state)
{
	assert_int_equal(cm_data_room(0), 0);
	assert_int_equal(cm_data_room(CM_REQ - 1), 0);
	assert_int_equal(cm_data_room(CM_KIND_END), 0);
	assert_int_equal(cm_data_room(~0u), 0);
}

static void cm_service_is_ip__ranges(void **state)
{
	assert_true(cm_service_is_ip(cm_service_id(CM_PS_TCP, 0)));
	assert_true(cm_service_is_ip(cm_service_id(CM_PS_UDP, 65535)));
	assert_true(cm_service_is_ip(cm_service_id(CM_PS_IB, 1)));
	assert_true(cm_service_is_ip(cm_service_id(CM_PS_IPOIB, 1)));
	assert_false(cm_service_is_ip(0));
	assert_false(cm_service_is_ip(0x0200000000000000));
	assert_false(cm_service_is_ip(0x0000000002000000));
	assert_false(cm_service_is_ip(0x0000010001060000));
	assert_false(cm_service_is_ip(0x0000000000030001));
}

static void cm_ip_header_get__versions(void **state)
{
	struct cm_ip_header h = {
		.source_port = 0x1234,
		.source = { { 0xfd, [15] = 1 } },
		.destination = { { 0xfd, [15] = 2 } },
	};
	struct cm_ip_header g;
	u8 data[CM_IP_HEADER_BYTES];

	cm_ip_header_put(data, &h);
	assert_int_equal(data[0], 0);
	assert_int_equal(data[1], 0x60);
	assert_int_equal(data[4], 0xfd);
	assert_int_equal(data[35], 2);
	assert_true(cm_ip_header_get(&g, data));
	assert_memory_equal(&g.source, &h.source, sizeof(g.source));
	assert_memory_equal(&g.destination, &h.destination, sizeof(g.destination));
	assert_int_equal(g.source_port, 0x1234);
	data[1] = 0x50;
	assert_false(cm_ip_header_get(&g, data));
	data[1] = 0x6f; /* the lower half is reserved */
	assert_true(cm_ip_header_get(&g, data));
	data[0] = 0x10;
	assert_false(cm_ip_header_get(&g, data));
	data[0] = 0;
	/* an IPv6 address that would pass for IPv4 */
	memset(data + 4, 0, 16);
	data[14] = data[15] = 0xff;
	assert_false(cm_ip_header_get(&g, data));
	data[1] = 0x40; /* and IPv4 with more than 4 bytes */
	assert_false(cm_ip_header_get(&g, data));
}

static void cm_is_loopback__and_any(void **state)
{
	const struct gid local4 = { { [10] = 0xff, 0xff, 127, 9, 9, 9 } },
			 local6 = { { [15] = 1 } }, any4 = { { [10] = 0xff, 0xff } },
			 any6 = { { 0 } }, other = { { [10] = 0xff, 0xff, 128, 0, 0, 1 } };

	assert_true(cm_is_loopback(&local4));
	assert_true(cm_is_loopback(&local6));
	assert_false(cm_is_loopback(&other));
	assert_false(cm_is_loopback(&any6));
	assert_true(cm_is_any(&any4));
	assert_true(cm_is_any(&any6));
	assert_false(cm_is_any(&local6));
	assert_false(cm_is_any(&other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cm_mad_encode__captures_to_the_same_bytes),
		cmocka_unit_test(cm_mad_decode__captured_req),
		cmocka_unit_test(cm_mad_decode__captured_rep),
		cmocka_unit_test(cm_mad_decode__captured_others),
		cmocka_unit_test(cm_mad_decode__every_bit_but_reserved_ones_comes_back),
		cmocka_unit_test(cm_mad_encode__wider_values_stay_in_their_field),
		cmocka_unit_test(cm_mad_decode__vendor_ids_in_parts),
		cmocka_unit_test(cm_mad_decode__hostile),
		cmocka_unit_test(cm_data_room__of_no_kind),
		cmocka_unit_test(cm_service_is_ip__ranges),
		cmocka_unit_test(cm_ip_header_get__versions),
		cmocka_unit_test(cm_is_loopback__and_any),
	};

	return cmocka_run_group_tests_name("mad", tests, load, unload);
}
