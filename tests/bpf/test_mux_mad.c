/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * MADs to QP 1 of an interface that several clients share (xroce_mux): each reaches the client that
 * cm_mad_names() gives. An unowned MAD goes to the client that refuses it, or to the broker, and an
 * invalid one to none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "broker.h"
#include "mad_frame.h"

#define PLACE(client)	 XROCE_CM_PLACE_OF((uint32_t)(client))
#define ID(place, n)	 ((uint32_t)(place) << XROCE_CM_ID_BITS | (n))
#define NONE		 (-1)
#define OF_BROKER	 BROKER_CLIENTS /* in place of a client */
#define HTTP		 cm_service_id(CM_PS_TCP, 8080)
#define ECHO		 cm_service_id(CM_PS_TCP, 7)
#define FIRST_PORT	 1024

static const uint8_t any4[16] = { [10] = 0xff, 0xff }, any6[16];
static const uint8_t loopback4[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
static const uint8_t loopback6[16] = { [15] = 1 };

static struct frame f;

/* What came to the broker since the last refused_read(). */
static struct {
	struct ring_buffer *reader;
	uint32_t records, len;
	uint8_t frame[BENCH_BYTES];
} refused;

static int on_refused(void *ctx, void *data, size_t size)
{
	const struct xroce_rx_record *r = data;

	assert_true(size >= sizeof(*r) && r->len <= size - sizeof(*r));
	refused.records++;
	refused.len = r->len;
	memcpy(refused.frame, r->frame, r->len);
	return 0;
}

static void refused_read(void)
{
	if (!refused.reader)
		refused.reader = ring_buffer__new(bpf_map__fd(broker->skel->maps.xroce_unowned),
						  on_refused, NULL, NULL);
	assert_non_null(refused.reader);
	refused.records = 0;
	assert_true(ring_buffer__consume(refused.reader) >= 0);
}

/* ---- what the broker writes ---- */

static void put_place(uint32_t place, int client, uint64_t serial)
{
	const struct xroce_cm_client p = { .client = (uint32_t)client,
					   .serial = serial,
					   .first_port = FIRST_PORT,
					   .by_sockets = place == XROCE_CM_PLACE_MAX };

	if (client == NONE)
		bpf_map_delete_elem(bpf_map__fd(broker->skel->maps.xroce_cm_client), &place);
	else
		broker_put(broker->skel->maps.xroce_cm_client, &place, &p);
}

static void put_service(uint64_t id, const uint8_t address[16], int place)
{
	struct xroce_service_key key = { .id = id };
	const struct xroce_service s = { .place = (uint32_t)place };

	memcpy(key.address, address, sizeof(key.address));
	if (place == NONE)
		bpf_map_delete_elem(bpf_map__fd(broker->skel->maps.xroce_service), &key);
	else
		broker_put(broker->skel->maps.xroce_service, &key, &s);
}

static uint32_t asked_entries(void)
{
	const int fd = bpf_map__fd(broker->skel->maps.xroce_asked);
	struct xroce_asked_key key, *before = NULL;
	uint32_t n = 0;

	for (; bpf_map_get_next_key(fd, before, &key) == 0; before = &key)
		n++;
	return n;
}

/* Both clients have a QP 1; the second gets unowned MADs. */
static int reset(void **state)
{
	broker_reset(bench_peer4);
	broker_clear(broker->skel->maps.xroce_cm_client);
	broker_clear(broker->skel->maps.xroce_service);
	broker_clear(broker->skel->maps.xroce_asked);
	for (int c = 0; c < BROKER_CLIENTS; c++) {
		struct xroce_qp qp = bench_qp(XROCE_UD, NULL, NULL);

		qp.qkey = XROCE_CM_QKEY;
		broker_put_qp(c, XROCE_CM_QPN, &qp);
		put_place(PLACE(c), c, 100 + (uint64_t)c);
	}
	put_place(XROCE_CM_PLACE_NONE, 1, 101);
	return 0;
}

/* ---- one packet ---- */

static int run(uint32_t linear)
{
	static uint8_t out[BENCH_BYTES];
	struct xdp_md ctx = { .data_end = linear ? linear : f.len };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = f.bytes, .data_size_in = f.len,
		    .data_out = out, .data_size_out = sizeof(out), .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = 1);
	int err = bpf_prog_test_run_opts(bpf_program__fd(broker->skel->progs.xroce_mux), &opts);

	return err ? err : (int)opts.retval;
}

/* To this client's ring or the broker's (NONE: to none, for that reason), and counted so. */
static void expect_in(const char *what, int client, enum xroce_drop reason, uint32_t linear)
{
	const struct bench_counts before = broker_count();
	struct bench_counts after;

	refused_read();
	for (int c = 0; c < BROKER_CLIENTS; c++)
		broker_read(c);
	check(run(linear) == XDP_DROP, "%s: verdict", what);
	after = broker_count();
	for (int i = XROCE_DROP_none + 1; i < XROCE_DROP_END; i++)
		check(after.drop[XROCE_DROP_INDEX(i)] - before.drop[XROCE_DROP_INDEX(i)] ==
			      (client == NONE && i == (int)reason),
		      "%s: the broker's counter of %s", what, bench_reason(i));
	for (int c = 0; c < BROKER_CLIENTS; c++) {
		broker_read(c);
		check(broker->client[c].records == (c == client),
		      "%s: client %d got %u, it is for %d", what, c, broker->client[c].records,
		      client);
	}
	refused_read();
	check(refused.records == (client == OF_BROKER), "%s: the broker got %u", what,
	      refused.records);
	check(after.rx.redirected - before.rx.redirected == (client == OF_BROKER),
	      "%s: the broker's counter of what it got", what);
	if (client == OF_BROKER)
		check(refused.len == f.len && !memcmp(refused.frame, f.bytes, f.len),
		      "%s: another frame", what);
	else
		check(client == NONE || (broker->client[client].len == f.len &&
					 !memcmp(broker->client[client].frame, f.bytes, f.len)),
		      "%s: another frame", what);
}

static void expect(const char *what, int client)
{
	expect_in(what, client, XROCE_DROP_none, 0);
}

static void expect_dropped(const char *what, enum xroce_drop reason)
{
	expect_in(what, NONE, reason, 0);
}

static void build(const struct cm_mad *m)
{
	const struct frame_spec s = mad_spec();

	mad_frame(&f, &s, m);
}

static void build_req(uint32_t local_id, uint64_t service_id)
{
	const struct cm_mad m = mad_req(local_id, service_id);

	build(&m);
}

static void build_of(enum cm_kind kind, uint32_t local_id, uint32_t remote_id)
{
	const struct cm_mad m = mad_of(kind, local_id, remote_id);

	build(&m);
}

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

/* ---- the rule in C ---- */

static uint32_t seed;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)seed * below >> 32);
}

#define MODEL_ASKED    64
#define MODEL_SERVICES 16

static const uint8_t *const addresses[] = { bench_local4, bench_local6, any4,
					    any6,	  loopback4,	loopback6 };

static struct {
	int of[BROKER_CLIENTS];	/* has a QP 1 */
	uint32_t place[BROKER_CLIENTS];
	int nobody;
	struct {
		uint64_t id;
		const uint8_t *address;
		int client;	/* NONE: unowned */
	} service[MODEL_SERVICES];
	struct {
		struct gid gid;
		enum cm_kind kind;
		uint32_t id;
		uint64_t tid;
		int client; /* NONE: unowned */
	} asked[MODEL_ASKED];
	uint32_t num_asked;
} model;

static uint64_t model_service_id(void)
{
	static const uint64_t ids[] = { 0x01060000 + 8080, 0x01060000 + 80, 0x00020000 + 2000,
					0x1000000000000007 };

	return ids[draw(ARRAY_SIZE(ids))];
}

static void model_begin(void)
{
	reset(NULL);
	memset(&model, 0, sizeof(model));
	model.nobody = NONE;
	put_place(XROCE_CM_PLACE_NONE, NONE, 0);
	for (int c = 0; c < BROKER_CLIENTS; c++) {
		model.place[c] = c == 0 && draw(2) ? XROCE_CM_PLACE_MAX : PLACE(c);
		model.of[c] = draw(4) > 0;
		put_place(PLACE(c), NONE, 0);
		put_place(model.place[c], model.of[c] ? c : NONE, 1);
		if (model.of[c] && (model.nobody == NONE || draw(2)))
			model.nobody = c;
	}
	put_place(XROCE_CM_PLACE_NONE, model.nobody, 1);
	for (int i = 0; i < MODEL_SERVICES; i++) {
		model.service[i].id = model_service_id();
		model.service[i].address = addresses[draw(ARRAY_SIZE(addresses))];
		model.service[i].client = (int)draw(BROKER_CLIENTS);
		for (int j = 0; j < i; j++)
			if (model.service[j].id == model.service[i].id &&
			    model.service[j].address == model.service[i].address)
				model.service[i].client = NONE;
		if (model.service[i].client != NONE)
			put_service(model.service[i].id, model.service[i].address,
				    (int)model.place[model.service[i].client]);
	}
}

static int model_bound(uint64_t id, const uint8_t *address)
{
	for (int i = 0; i < MODEL_SERVICES; i++)
		if (model.service[i].client != NONE && model.service[i].id == id &&
		    !memcmp(model.service[i].address, address, 16))
			return model.service[i].client;
	return NONE;
}

static int model_find_asked(const struct gid *from, enum cm_kind kind, uint32_t id)
{
	for (uint32_t i = 0; i < model.num_asked; i++)
		if (gid_equal(&model.asked[i].gid, from) && model.asked[i].kind == kind &&
		    model.asked[i].id == id)
			return (int)i;
	return NONE;
}

static void model_note(const struct gid *from, const struct cm_mad *m, int client)
{
	int i = model_find_asked(from, m->kind, m->local_id);

	if (i == NONE) {
		assert_true(model.num_asked < MODEL_ASKED);
		i = (int)model.num_asked++;
		model.asked[i].gid = *from;
		model.asked[i].kind = m->kind;
		model.asked[i].id = m->local_id;
	}
	model.asked[i].tid = m->tid;
	model.asked[i].client = client;
}

/* Finds the requested address like passive_admit() (user/cm/connect.c). */
static int model_listener(const struct cm_path *path, const struct cm_mad *m, uint64_t id)
{
	struct gid address = path->local;
	struct cm_ip_header h;
	int client;

	if (cm_service_is_ip(id) && cm_ip_header_get(&h, m->data) && cm_is_loopback(&h.source) &&
	    cm_is_loopback(&h.destination) && gid_equal(&path->local, &path->remote))
		address = h.destination;
	client = model_bound(id, address.raw);
	return client != NONE ? client : model_bound(id, gid_is_ipv4(&address) ? any4 : any6);
}

static int model_request(const struct cm_path *path, const struct cm_mad *m, uint64_t id)
{
	const int i = model_find_asked(&path->remote, m->kind, m->local_id);
	int client;

	if (i != NONE && model.asked[i].tid == m->tid && model.asked[i].client != NONE)
		return model.asked[i].client;
	client = model_listener(path, m, id);
	if (client == NONE || !model.of[client])
		return NONE;
	model_note(&path->remote, m, client);
	return client;
}

static int model_of_id(uint32_t id)
{
	for (int c = 0; c < BROKER_CLIENTS; c++)
		if (model.of[c] && id >> 21 == model.place[c])
			return c;
	return NONE;
}

/* NONE, and the reason; or the client, or OF_BROKER. */
static int model_find(const struct cm_path *path, const uint8_t *mad, enum xroce_drop *reason)
{
	struct cm_mad m;
	enum cm_drop drop = cm_mad_decode(&m, mad, CM_MAD_BYTES);
	enum cm_names names;
	uint64_t service_id = 0;
	uint32_t id = 0;
	int client, i;

	*reason = XROCE_DROP_mad;
	/* a field with a reserved value is the CM's to refuse */
	if (drop != CM_DROP_none && drop != CM_DROP_field)
		return NONE;
	names = cm_mad_names(&m, &id, (u64 *)&service_id);
	i = model_find_asked(&path->remote, CM_REQ, m.local_id);
	client = names == CM_NAMES_SERVICE ? model_request(path, &m, service_id) :
		 names == CM_NAMES_ID	   ? model_of_id(id) :
		 i == NONE		   ? NONE :
					     model.asked[i].client;
	if (client != NONE)
		return client;
	*reason = XROCE_DROP_mad_port;
	if (model.nobody != NONE && names == CM_NAMES_SERVICE && cm_service_is_ip(service_id) &&
	    (service_id & 0xffff) < FIRST_PORT)
		return NONE;
	if (model.nobody == NONE)
		return OF_BROKER;
	if (names == CM_NAMES_SERVICE)
		model_note(&path->remote, &m, NONE);
	return model.nobody;
}

static uint32_t random_id(void)
{
	static const uint32_t places[] = { 0, PLACE(0), PLACE(1), PLACE(2), XROCE_CM_PLACE_MAX };

	return draw(5) ? ID(places[draw(ARRAY_SIZE(places))], draw(3)) : 0;
}

static void random_address(uint8_t *out, bool ipv6, bool local)
{
	memcpy(out, ipv6 ? local ? bench_local6 : bench_peer6 : local ? bench_local4 : bench_peer4,
	       16);
}

static void random_header(struct cm_mad *m)
{
	struct cm_ip_header h = { .source_port = 5 };
	const bool ipv6 = draw(2);

	memcpy(h.source.raw, draw(4) ? ipv6 ? loopback6 : loopback4 : bench_peer4, 16);
	memcpy(h.destination.raw,
	       draw(4) ? ipv6 ? loopback6 : loopback4 : ipv6 ? bench_local6 : bench_local4, 16);
	cm_ip_header_put(m->data, &h);
	if (!draw(8))
		m->data[draw(CM_IP_HEADER_BYTES)] ^= (u8)(1u << draw(8));
}

static void random_mad(struct cm_mad *m)
{
	memset(m, 0, sizeof(*m));
	m->kind = CM_REQ + draw(CM_KIND_END - CM_REQ);
	m->tid = draw(2);
	m->local_id = random_id();
	m->remote_id = random_id();
	for (uint32_t i = 0; i < sizeof(m->data); i++)
		m->data[i] = (u8)draw(256);
	if (m->kind == CM_REQ)
		m->req.service_id = model_service_id();
	if (m->kind == CM_SIDR_REQ)
		m->sidr_req.service_id = model_service_id();
	if (draw(2))
		random_header(m);
}

static void mad__random(void **state)
{
	uint32_t came[BROKER_CLIENTS + 2] = { 0 };

	for (uint32_t world = 1; world <= 300; world++) {
		seed = world;
		model_begin();
		for (uint32_t n = 0; n < 100; n++) {
			struct frame_spec s = mad_spec();
			struct cm_path path = { 0 };
			enum xroce_drop reason;
			char what[64];
			struct cm_mad m;
			int client;

			snprintf(what, sizeof(what), "world %u, MAD %u", world, n);
			s.ipv6 = draw(2);
			random_address(s.src, s.ipv6, draw(2));
			random_address(s.dst, s.ipv6, true);
			memcpy(path.local.raw, s.dst, 16);
			memcpy(path.remote.raw, s.src, 16);
			random_mad(&m);
			mad_frame(&f, &s, &m);
			if (!draw(10))
				f.bytes[f.payload + draw(20)] ^= (u8)(1u << draw(8));
			client = model_find(&path, f.bytes + f.payload, &reason);
			expect_in(what, client, reason, 0);
			came[client + 1]++;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(came); i++)
		check(came[i] > 1000, "hardly any went to client %d", (int)i - 1);
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
		cmocka_unit_test_setup(mad__random, reset),
	};

	return cmocka_run_group_tests_name("mux_mad", tests, broker_setup, broker_teardown);
}
