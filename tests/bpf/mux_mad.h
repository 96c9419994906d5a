/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MADs to QP 1 of an interface that several clients share (xroce_mux): the broker's entries, one
 * packet, and the client that gets it.
 */
#ifndef BPF_MUX_MAD_H
#define BPF_MUX_MAD_H

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

static inline int on_refused(void *ctx, void *data, size_t size)
{
	const struct xroce_rx_record *r = data;

	assert_true(size >= sizeof(*r) && r->len <= size - sizeof(*r));
	refused.records++;
	refused.len = r->len;
	memcpy(refused.frame, r->frame, r->len);
	return 0;
}

static inline void refused_read(void)
{
	if (!refused.reader)
		refused.reader = ring_buffer__new(bpf_map__fd(broker->skel->maps.xroce_unowned),
						  on_refused, NULL, NULL);
	assert_non_null(refused.reader);
	refused.records = 0;
	assert_true(ring_buffer__consume(refused.reader) >= 0);
}

/* ---- what the broker writes ---- */

static inline void put_place(uint32_t place, int client, uint64_t serial)
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

static inline void put_service(uint64_t id, const uint8_t address[16], int place)
{
	struct xroce_service_key key = { .id = id };
	const struct xroce_service s = { .place = (uint32_t)place };

	memcpy(key.address, address, sizeof(key.address));
	if (place == NONE)
		bpf_map_delete_elem(bpf_map__fd(broker->skel->maps.xroce_service), &key);
	else
		broker_put(broker->skel->maps.xroce_service, &key, &s);
}

static inline uint32_t asked_entries(void)
{
	const int fd = bpf_map__fd(broker->skel->maps.xroce_asked);
	struct xroce_asked_key key, *before = NULL;
	uint32_t n = 0;

	for (; bpf_map_get_next_key(fd, before, &key) == 0; before = &key)
		n++;
	return n;
}

/* Both clients have a QP 1; the second gets unowned MADs. */
static inline int reset(void **state)
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

static inline int run(uint32_t linear)
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
static inline void expect_in(const char *what, int client, enum xroce_drop reason, uint32_t linear)
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

static inline void expect(const char *what, int client)
{
	expect_in(what, client, XROCE_DROP_none, 0);
}

static inline void expect_dropped(const char *what, enum xroce_drop reason)
{
	expect_in(what, NONE, reason, 0);
}

static inline void build(const struct cm_mad *m)
{
	const struct frame_spec s = mad_spec();

	mad_frame(&f, &s, m);
}

static inline void build_req(uint32_t local_id, uint64_t service_id)
{
	const struct cm_mad m = mad_req(local_id, service_id);

	build(&m);
}

static inline void build_of(enum cm_kind kind, uint32_t local_id, uint32_t remote_id)
{
	const struct cm_mad m = mad_of(kind, local_id, remote_id);

	build(&m);
}

#endif
