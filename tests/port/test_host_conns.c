/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The connections that a broker with UDP sockets notes, by the MADs that its clients receive: what
 * forged ones can change.
 */
#include <arpa/inet.h>

#include "../unit/packets.h"

#include "../../user/cm/mad.h"
#include "../../user/engine/gso.h"
#include "../../user/host/receive.h"

#define RING_BYTES (1u << 20)
#define CLIENT	   3u
#define SERIAL	   77u
#define OWN_ID	   (XROCE_CM_PLACE_OF(CLIENT) << XROCE_CM_ID_BITS | 5)

static struct host *host;
static const struct gid own = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 } };
static const struct gid peer = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 } };
static const struct gid forger = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 3 } };

static int setup(void **state)
{
	const struct xroce_cm_client place = { .client = CLIENT, .serial = SERIAL,
					       .by_sockets = 1 };
	const u32 at = XROCE_CM_PLACE_OF(CLIENT), index = 0;

	assert_int_equal(host_make(&host), 0);
	assert_int_equal(host_client_make(RING_BYTES, &host->client[CLIENT]), 0);
	assert_int_equal(host_map_put(&host->map[HOST_CM_CLIENT], &at, &place), 0);
	assert_int_equal(host_map_put(&host->map[HOST_GID], &own, &index), 0);
	return 0;
}

static int teardown(void **state)
{
	host_client_free(host->client[CLIENT]);
	host_free(host);
	return 0;
}

static void hear(const struct gid *from, const struct cm_mad *m)
{
	static u8 memory[HOST_HEADROOM + PACKET_FRAME_MAX] __attribute__((aligned(64)));
	struct host_datagram d = { .payload = memory + HOST_HEADROOM, .src = *from, .dst = own,
				   .sport = 0xc123, .ttl = 9 };
	const struct packet p = { .opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY), .migreq = true,
				  .pkey = 0xffff, .dest_qpn = XROCE_CM_QPN, .src_qpn = XROCE_CM_QPN,
				  .qkey = XROCE_CM_QKEY, .payload_len = CM_MAD_BYTES };
	const struct path path = { .hop_limit = 9, .local = *from, .peer = own };
	u8 frame[PACKET_FRAME_MAX], *payload = packet_put_headers(frame, &path, &p);

	cm_mad_encode(payload, m);
	d.len = packet_seal(frame, payload, CM_MAD_BYTES) - GSO_HEADER_BYTES;
	memcpy(d.payload, frame + GSO_HEADER_BYTES, d.len);
	host_receive_datagram(host, &d);
}

static const struct xroce_conn *noted(void)
{
	const u32 id = OWN_ID;

	return host_map_find(&host->map[HOST_CONN], &id);
}

static void is_with(const struct gid *gid, u32 id, u32 qpn)
{
	assert_non_null(noted());
	assert_memory_equal(noted()->gid, gid->raw, sizeof(gid->raw));
	assert_int_equal(noted()->id, id);
	assert_int_equal(noted()->qpn, qpn);
}

/* A REP to the client's id from another address than the peer's does not replace the peer. */
static void conn_heard__the_first_reply_counts(void **state)
{
	struct cm_mad rep = { .kind = CM_REP, .local_id = 9, .remote_id = OWN_ID, .rep.qpn = 0x99 };
	struct cm_mad dreq = { .kind = CM_DREQ, .local_id = 9, .remote_id = OWN_ID };

	hear(&peer, &rep);
	is_with(&peer, 9, 0x99);
	rep.rep.qpn = 0x66;
	rep.local_id = 6;
	hear(&forger, &rep);
	is_with(&peer, 9, 0x99);
	/* nor does it end by its DREQ */
	hear(&forger, &dreq);
	is_with(&peer, 9, 0x99);
	hear(&peer, &dreq);
	assert_null(noted());
	hear(&forger, &rep);
	is_with(&forger, 6, 0x66);
}

/* The next QP 1 with the place has the ids anew. */
static void conn_heard__of_an_earlier_qp_1(void **state)
{
	const struct cm_mad rep = { .kind = CM_REP, .local_id = 9, .remote_id = OWN_ID,
				    .rep.qpn = 0x99 };
	const struct xroce_cm_client place = { .client = CLIENT, .serial = SERIAL + 1,
					       .by_sockets = 1 };
	const u32 at = XROCE_CM_PLACE_OF(CLIENT);

	hear(&forger, &rep);
	assert_int_equal(host_map_put(&host->map[HOST_CM_CLIENT], &at, &place), 0);
	hear(&peer, &rep);
	is_with(&peer, 9, 0x99);
	assert_int_equal(noted()->serial, SERIAL + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(conn_heard__the_first_reply_counts, setup,
						teardown),
		cmocka_unit_test_setup_teardown(conn_heard__of_an_earlier_qp_1, setup, teardown),
	};

	return cmocka_run_group_tests_name("host_conns", tests, NULL, NULL);
}
