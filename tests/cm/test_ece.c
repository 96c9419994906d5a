/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * The enhanced connection establishment on the wire, where the kernel has it: the options are the
 * MAD header's attribute modifier; the vendor is bytes 29 to 31 of a REQ, and 39, 43 and 47 of a
 * REP. No other MAD has an attribute modifier.
 */
#include "bench.h"

#define PEER	0x7700u
#define OPTIONS 0x89abcdefu
#define VENDOR	0x123456u

/* The next MAD that it sends, as it is on the wire. */
static void sent_bytes(struct bench *b, u8 mad[CM_MAD_BYTES])
{
	struct cm_send send;

	assert_true(cm_output(b->cm, &send));
	memcpy(mad, send.mad, CM_MAD_BYTES);
	bench_sent_nothing(b);
}

static void cm_connect__ece(void **state)
{
	const struct cm_req req = { .service_id = BENCH_SERVICE,
				    .vendor_id = VENDOR,
				    .ece_options = OPTIONS };
	struct cm_mad rep;
	u8 mad[CM_MAD_BYTES];
	struct cm_event e;
	struct cm_conn *c;
	struct bench b;

	bench_make(&b, 4, 0);
	assert_int_equal(cm_connect(b.cm, &b.path, &req, NULL, 0, NULL, b.now_ns, &c), 0);
	sent_bytes(&b, mad);
	assert_memory_equal(mad + 20, "\x89\xab\xcd\xef", 4);
	assert_memory_equal(mad + 29, "\x12\x34\x56", 3);
	assert_int_equal(mad[28], 0);
	assert_int_equal(cm_mad_decode(&rep, mad, sizeof(mad)), CM_DROP_none);
	rep = bench_mad(CM_REP, rep.tid, PEER, cm_conn_id(c));
	cm_mad_encode(mad, &rep);
	memcpy(mad + 20, "\x01\x02\x03\x04", 4);
	mad[39] = 0xab;
	mad[43] = 0xcd;
	mad[47] = 0xef;
	assert_int_equal(cm_input(b.cm, &b.path, mad, sizeof(mad), b.now_ns), CM_DROP_none);
	e = bench_event(&b, CM_EVENT_REPLY);
	assert_int_equal(e.mad.attr_mod, 0x01020304);
	assert_int_equal(e.mad.rep.vendor_id, 0xabcdef);
	assert_int_equal(cm_ready(b.cm, c, NULL, 0, b.now_ns), 0);
	sent_bytes(&b, mad);
	assert_memory_equal(mad + 20, "\0\0\0\0", 4);
	bench_unmake(&b);
}

static void cm_accept__ece(void **state)
{
	const struct cm_rep rep = { .qpn = 1, .vendor_id = VENDOR, .ece_options = OPTIONS };
	u8 mad[CM_MAD_BYTES];
	struct cm_event e;
	struct cm_mad req;
	struct bench b;

	bench_make(&b, 4, 0);
	bench_listen(&b, 0);
	req = bench_req(&b, PEER);
	cm_mad_encode(mad, &req);
	memcpy(mad + 20, "\x01\x02\x03\x04", 4);
	memcpy(mad + 29, "\xab\xcd\xef", 3);
	assert_int_equal(cm_input(b.cm, &b.path, mad, sizeof(mad), b.now_ns), CM_DROP_none);
	e = bench_event(&b, CM_EVENT_REQUEST);
	assert_int_equal(e.mad.attr_mod, 0x01020304);
	assert_int_equal(e.mad.req.vendor_id, 0xabcdef);
	assert_int_equal(cm_accept(b.cm, e.conn, &rep, NULL, 0, b.now_ns), 0);
	sent_bytes(&b, mad);
	assert_memory_equal(mad + 20, "\x89\xab\xcd\xef", 4);
	assert_int_equal(mad[39], 0x12);
	assert_int_equal(mad[43], 0x34);
	assert_int_equal(mad[47], 0x56);
	bench_unmake(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cm_connect__ece),
		cmocka_unit_test(cm_accept__ece),
	};

	return cmocka_run_group_tests_name("ece", tests, NULL, NULL);
}
