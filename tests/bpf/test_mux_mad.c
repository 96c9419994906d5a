/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * MADs to QP 1 of an interface that several clients share (xroce_mux): each reaches the client that
 * cm_mad_names() gives. An unowned MAD goes to the client that refuses it, or to the broker, and an
 * invalid one to none.
 */
#include "mux_mad.h"

/* ---- whose it is ---- */

static void mad__by_id(void **state)
{
	static const enum cm_kind kinds[] = { CM_MRA, CM_REJ, CM_REP, CM_RTU,
					      CM_DREQ, CM_DREP, CM_LAP, CM_APR };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (int c = 0; c < BROKER_CLIENTS; c++) {
			build_of(kinds[i], ID(PLACE(1 - c), 7), ID(PLACE(c), 7));
			expect("the receiver's id", c);
			build_of(kinds[i], 5, ID(PLACE(c), 0x1fffff));
			expect("the last one of a place", c);
			build_of(kinds[i], 5, ID(PLACE(c), 0));
			expect("the first one of a place", c);
		}
	for (int c = 0; c < BROKER_CLIENTS; c++) {
		build_of(CM_SIDR_REP, ID(PLACE(c), 9), ID(PLACE(1 - c), 9));
		expect("what answers a SIDR_REQ has its id", c);
	}
	put_place(XROCE_CM_PLACE_MAX, 0, 5);
	build_of(CM_RTU, 5, ~0u);
	expect("the last place", 0);
}

static void mad__by_service(void **state)
{
	for (int c = 0; c < BROKER_CLIENTS; c++) {
		const uint32_t id = 0x100u * (uint32_t)c;
		struct frame_spec s = mad_spec();
		struct cm_mad m = mad_req(id + 5, HTTP);

		put_service(HTTP, bench_local4, (int)PLACE(c));
		put_service(HTTP, any4, (int)PLACE(1 - c));
		put_service(HTTP, any6, (int)PLACE(c));
		build(&m);
		expect("REQ to an address", c);
		m.local_id = id + 6;
		m.kind = CM_SIDR_REQ;
		m.sidr_req = (struct cm_sidr_req){ .service_id = HTTP };
		build(&m);
		expect("SIDR_REQ to an address", c);
		put_service(HTTP, bench_local4, NONE);
		build_req(id + 7, HTTP);
		expect("to all IPv4 addresses", 1 - c);
		s.ipv6 = true;
		memcpy(s.src, bench_peer6, 16);
		memcpy(s.dst, bench_local6, 16);
		m = mad_req(id + 8, HTTP);
		mad_frame(&f, &s, &m);
		expect("to all IPv6 addresses", c);
		put_service(HTTP, bench_local6, (int)PLACE(1 - c));
		m.local_id++;
		mad_frame(&f, &s, &m);
		expect("to an IPv6 address", 1 - c);
		put_service(HTTP, bench_local6, NONE);
	}
	put_place(XROCE_CM_PLACE_NONE, 0, 100);
	put_service(HTTP, any4, (int)PLACE(1));
	build_req(0x300, HTTP + 1);
	expect("another port is nobody's", 0);
	build_req(0x301, cm_service_id(CM_PS_UDP, 8080));
	expect("another port space is nobody's", 0);
	build_req(0x302, HTTP | 1ull << 63);
	expect("the upper bits count", 0);
}

/* A connection to 127.0.0.1 is sent to its own address; the IP header has the intended one. */
static void mad__by_loopback(void **state)
{
	struct frame_spec s = mad_spec();
	struct cm_ip_header h = { .source_port = 99 };
	struct cm_mad m = mad_req(50, HTTP);

	put_service(HTTP, bench_local4, (int)PLACE(0));
	put_service(HTTP, loopback4, (int)PLACE(1));
	put_place(XROCE_CM_PLACE_NONE, 0, 100);
	memcpy(s.src, bench_local4, 16);
	memcpy(h.source.raw, loopback4, 16);
	memcpy(h.destination.raw, loopback4, 16);
	cm_ip_header_put(m.data, &h);
	mad_frame(&f, &s, &m);
	expect("127.0.0.1", 1);
	memcpy(s.src, bench_peer4, 16);
	mad_frame(&f, &s, &m);
	expect("from elsewhere nothing is loopback", 0);
	memcpy(s.src, bench_local4, 16);
	m.local_id++;
	memcpy(h.source.raw, bench_local4, 16);
	cm_ip_header_put(m.data, &h);
	mad_frame(&f, &s, &m);
	expect("from another address", 0);
	m.local_id++;
	memcpy(h.source.raw, loopback6, 16);
	memcpy(h.destination.raw, loopback6, 16);
	put_service(HTTP, loopback6, (int)PLACE(1));
	cm_ip_header_put(m.data, &h);
	mad_frame(&f, &s, &m);
	expect("::1", 1);
	m.local_id++;
	mad_frame(&f, &s, &m);
	f.bytes[f.payload + 165] = 0x50;
	expect("IP version 5", 0);
	m.local_id++;
	mad_frame(&f, &s, &m);
	f.bytes[f.payload + 164] = 1;
	expect("header version 1", 0);
	m.local_id++;
	m.req.service_id |= 1ull << 40;
	put_service(m.req.service_id, bench_local4, (int)PLACE(0));
	put_service(m.req.service_id, loopback6, (int)PLACE(1));
	mad_frame(&f, &s, &m);
	expect("a service without an IP header", 0);
}

/* A request that comes again is for the client that had it, also if another is bound by now. */
static void mad__again(void **state)
{
	struct cm_mad m = mad_req(77, HTTP);
	struct frame_spec s = mad_spec();

	put_service(HTTP, any4, (int)PLACE(0));
	build(&m);
	expect("first", 0);
	put_service(HTTP, any4, (int)PLACE(1));
	expect("again", 0);
	build_of(CM_REJ, 77, 0);
	expect("a REJ that names the peer's id alone", 0);
	s.src[15] ^= 1;
	mad_frame(&f, &s, &m);
	expect("of another peer", 1);
	m.tid++;
	build(&m);
	expect("another request with that id", 1);
	build_of(CM_REJ, 77, 0);
	expect("and its REJ", 1);
	put_place(XROCE_CM_PLACE_NONE, 0, 100);
	build_of(CM_REJ, 78, 0);
	expect("a REJ of nobody's request", 0);
}

/* A client's place that another has taken: the old client's requests are not the new one's. */
static void mad__of_one_who_has_gone(void **state)
{
	put_service(HTTP, any4, (int)PLACE(0));
	build_req(77, HTTP);
	expect("first", 0);
	put_place(PLACE(0), 0, 200);
	build_of(CM_REJ, 77, 0);
	expect("another has its place", 1);
	put_place(PLACE(0), NONE, 0);
	expect("nobody has its place", 1);
	build_req(77, HTTP);
	expect("bound, and without a QP 1", 1);
	build_of(CM_DREQ, 77, ID(PLACE(0), 3));
	expect("an id of nobody's", 1);
	build_of(CM_DREQ, 77, ID(XROCE_CM_PLACE_NONE, 3));
	expect("an id that no CM draws", 1);
	put_place(XROCE_CM_PLACE_NONE, NONE, 0);
	expect("nobody has a QP 1", OF_BROKER);
	build_of(CM_DREQ, 77, ID(PLACE(1), 3));
	expect("but this one", 1);
	broker_put_program(1, false);
	expect_dropped("it has just gone", XROCE_DROP_qp_unknown);
}

/* What finds no room in the broker's ring is dropped, and all else comes. */
static void mad__more_than_the_broker_reads(void **state)
{
	const uint64_t before = broker_count().drop[XROCE_DROP_INDEX(XROCE_DROP_ring_full)];
	uint64_t full;

	put_place(XROCE_CM_PLACE_NONE, NONE, 0);
	build_of(CM_DREQ, 77, ID(XROCE_CM_PLACE_NONE, 3));
	refused_read();
	for (uint32_t i = 0; i < 100; i++)
		check(run(0) == XDP_DROP, "verdict");
	refused_read();
	full = broker_count().drop[XROCE_DROP_INDEX(XROCE_DROP_ring_full)] - before;
	check(refused.records >= 16 && refused.records + full == 100, "%u came, %llu did not",
	      refused.records, (unsigned long long)full);
	expect("read again", OF_BROKER);
}

/* Only a client bound to it answers for a port that takes privileges to have. */
static void mad__privileged_ports(void **state)
{
	struct cm_mad m = mad_req(3, ECHO);

	build(&m);
	expect_dropped("a low port", XROCE_DROP_mad_port);
	m.kind = CM_SIDR_REQ;
	m.sidr_req = (struct cm_sidr_req){ .service_id = cm_service_id(CM_PS_IPOIB, 1023) };
	build(&m);
	expect_dropped("a low port of IPoIB", XROCE_DROP_mad_port);
	m.sidr_req.service_id++;
	build(&m);
	expect("the first that is not", 1);
	build_req(4, ECHO | 1ull << 33);
	expect("no port", 1);
	build_of(CM_LAP, 4, 0);
	frame_put32(f.bytes + f.payload + 36, (uint32_t)ECHO);
	expect("no request", 1);
	put_service(ECHO, any4, (int)PLACE(0));
	build_req(5, ECHO);
	expect("bound", 0);
}

/* ---- invalid MADs ---- */

static void edit(uint32_t at, uint8_t value)
{
	f.bytes[f.payload + at] = value;
}

static void mad__dropped(void **state)
{
	static const struct {
		const char *what;
		uint32_t at;
		uint8_t value;
	} rows[] = {
		{ "base version", 0, 2 },
		{ "class", 1, 3 },
		{ "class version", 2, 1 },
		{ "method", 3, 0x81 },
		{ "attribute 0x0f", 17, 0x0f },
		{ "attribute 0x1b", 17, 0x1b },
		{ "attribute 0x110", 16, 1 },
	};
	struct frame_spec s;
	struct cm_mad m = mad_req(3, HTTP);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		build(&m);
		edit(rows[i].at, rows[i].value);
		expect_dropped(rows[i].what, XROCE_DROP_mad);
	}
	for (uint32_t len = 0; len <= 260; len += 4) {
		s = mad_spec();
		s.payload_len = len;
		frame_build(&f, &s);
		cm_mad_encode(f.bytes + f.payload, &m);
		frame_put32(f.bytes + f.payload + len, 0);
		if (len == CM_MAD_BYTES)
			expect("256 bytes", 1);
		else
			expect_dropped("another length", XROCE_DROP_mad);
	}
	s = mad_spec();
	s.payload_len = 255;
	mad_frame(&f, &s, &m);
	expect_dropped("a pad", XROCE_DROP_mad);
	s = mad_spec();
	s.opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY_IMM);
	s.ext_len = 12;
	mad_frame(&f, &s, &m);
	/* where the field of a datagram without it would be */
	cm_mad_encode(f.bytes + f.ext + 8, &m);
	expect_dropped("with immediate data", XROCE_DROP_mad);
	s = mad_spec();
	s.opcode = OPCODE(XROCE_RC, OP5_SEND_ONLY);
	s.ext_len = 0;
	mad_frame(&f, &s, &m);
	cm_mad_encode(f.bytes + f.ext + 8, &m);
	expect_dropped("no datagram", XROCE_DROP_mad);
	build(&m);
	f.bytes[f.bth + 1] |= 1;
	expect_dropped("another version of BTH", XROCE_DROP_bth_version);
	s = mad_spec();
	s.opcode = OPCODE_CREDIT_PROBE;
	s.ext_len = 16;
	s.payload_len = 0;
	frame_build(&f, &s);
	expect_dropped("a flow probe", XROCE_DROP_mad);
	s = mad_spec();
	frame_put32(s.ext, BROKER_QKEY);
	mad_frame(&f, &s, &m);
	expect_dropped("another Q_Key", XROCE_DROP_qkey);
	build(&m);
	f.len -= 4;
	expect_dropped("cut short", XROCE_DROP_ip_length);
	build(&m);
	frame_put16(f.bytes + f.l3 + 6, 0x2000);
	expect_dropped("a first fragment", XROCE_DROP_ip_fragment);
	check(asked_entries() == 1, "more was noted than the whole MAD");
}

/* Two in one super-packet may be for two clients; half of one in each is none. */
static void mad__super_packet(void **state)
{
	static const uint32_t payloads[] = { CM_MAD_BYTES, CM_MAD_BYTES / 2 };
	const struct cm_mad m = mad_req(3, HTTP);

	for (size_t i = 0; i < ARRAY_SIZE(payloads); i++) {
		struct frame_spec s = mad_spec();
		uint32_t size;

		s.payload_len = payloads[i];
		mad_frame(&f, &s, &m);
		size = f.len - f.bth;
		memcpy(f.bytes + f.len, f.bytes + f.bth, size);
		f.len += size;
		frame_put16(f.bytes + f.l3 + 4, (uint16_t)size);
		frame_fix_lengths(&f);
		bench_sum_super(&f);
		expect_dropped("a super-packet", XROCE_DROP_mad);
	}
}

/* The fields are found after tags and IPv6, and where the first buffer ends before them. */
static void mad__wherever_it_lies(void **state)
{
	const struct cm_mad m = mad_of(CM_RTU, 1, ID(PLACE(0), 1));
	struct frame_spec s = mad_spec();

	put_place(XROCE_CM_PLACE_NONE, 1, 101);
	for (unsigned int tags = 0; tags <= 2; tags++) {
		s.tags = tags;
		s.tag_proto[0] = tags == 2 ? 0x88a8 : 0x8100;
		s.tag_proto[1] = 0x8100;
		mad_frame(&f, &s, &m);
		expect("tags", 0);
	}
	s.ipv6 = true;
	memcpy(s.src, bench_peer6, 16);
	memcpy(s.dst, bench_local6, 16);
	mad_frame(&f, &s, &m);
	expect("tags and IPv6", 0);
	build(&m);
	for (uint32_t linear = f.payload; linear < f.len; linear += 9)
		expect_in("in two buffers", 0, XROCE_DROP_none, linear);
}

/* ---- floods ---- */

/* Requests without number cost others nothing but places in the table of requests. */
static void mad__flood(void **state)
{
	put_service(HTTP, any4, (int)PLACE(0));
	for (uint32_t id = 1; id <= 3 * XROCE_MAX_ASKED; id++) {
		build_req(id, HTTP);
		assert_int_equal(run(0), XDP_DROP);
		if (id % 512 == 0)
			broker_read(0);
	}
	check(asked_entries() <= XROCE_MAX_ASKED, "more than there is room for");
	check(asked_entries() > XROCE_MAX_ASKED / 2, "hardly any is kept");
	build_of(CM_RTU, 1, ID(PLACE(1), 1));
	expect("a connection", 1);
	build_req(1, HTTP);
	expect("a request", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(mad__by_id, reset),
		cmocka_unit_test_setup(mad__by_service, reset),
		cmocka_unit_test_setup(mad__by_loopback, reset),
		cmocka_unit_test_setup(mad__again, reset),
		cmocka_unit_test_setup(mad__of_one_who_has_gone, reset),
		cmocka_unit_test_setup(mad__more_than_the_broker_reads, reset),
		cmocka_unit_test_setup(mad__privileged_ports, reset),
		cmocka_unit_test_setup(mad__dropped, reset),
		cmocka_unit_test_setup(mad__super_packet, reset),
		cmocka_unit_test_setup(mad__wherever_it_lies, reset),
		cmocka_unit_test_setup(mad__flood, reset),
	};

	return cmocka_run_group_tests_name("mux_mad", tests, broker_setup, broker_teardown);
}
