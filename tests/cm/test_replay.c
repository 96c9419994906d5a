/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * The state machine against the kernel's CM: one side's MADs of each golden capture go in, with its
 * program's calls, and the output must be the other side's, byte for byte. Both sides are played in
 * turn. Ids and transaction ids are random: the draws are replaced by the kernel's. Nothing else
 * differs.
 */
#include "../unit/unit.h"

#include "../../user/cm/cm.h"
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

struct side {
	struct cm *cm;
	bool client;
	struct cm_conn *conn;
	u64 random; /* the next draw */
};

static u64 draw(void *arg)
{
	return ((struct side *)arg)->random;
}

static struct cm_mad decoded(const struct capture_mad *c)
{
	struct cm_mad m;

	assert_int_equal(cm_mad_decode(&m, c->mad, CM_MAD_BYTES), CM_DROP_none);
	return m;
}

/* The id that the side itself has in this capture, and its GUID. */
static void side_make(struct side *s, const struct capture_mad *first, u32 num, bool client)
{
	struct cm_options o = { .random = draw,
				.random_arg = s,
				.id_count = 2,
				.id_first = 1,
				.capacity = 1,
				.listeners = 1 };

	*s = (struct side){ .client = client };
	for (u32 i = 0; i < num; i++) {
		const struct cm_mad m = decoded(&first[i]);

		if (first[i].from_client != client)
			continue;
		if (m.local_id && m.kind != CM_SIDR_REP)
			o.id_first = m.local_id;
		if (m.kind == CM_REQ)
			o.ca_guid = m.req.ca_guid;
		if (m.kind == CM_REP)
			o.ca_guid = m.rep.ca_guid;
	}
	assert_int_equal(cm_create(&o, &s->cm), 0);
}

static const struct gid client_gid = { { [10] = 0xff, 0xff, 10, 9, 0, 1 } },
			server_gid = { { [10] = 0xff, 0xff, 10, 9, 0, 2 } };

static struct cm_path side_path(const struct side *s)
{
	return (struct cm_path){ .local = s->client ? client_gid : server_gid,
				 .remote = s->client ? server_gid : client_gid,
				 .hop_limit = 64 };
}

/*
 * The program's call, or the CM's own action, when the kernel sent that MAD. The draw is the
 * kernel's tid; it also draws the first id of two.
 */
static void side_calls(struct side *s, const struct cm_mad *m)
{
	const u32 room = cm_data_room(m->kind);
	struct cm_path path = side_path(s);
	int err = 0;

	s->random = m->tid;
	switch (m->kind) {
	case CM_REQ:
		path.flow_label = m->req.primary.flow_label;
		err = cm_connect(s->cm, &path, &m->req, m->data, room, NULL, 0, &s->conn);
		break;
	case CM_REP:
		err = cm_accept(s->cm, s->conn, &m->rep, m->data, room, 0);
		break;
	case CM_RTU:
		err = cm_ready(s->cm, s->conn, m->data, room, 0);
		break;
	case CM_DREQ:
	case CM_DREP:
		err = cm_disconnect(s->cm, s->conn, m->data, room, 0);
		break;
	case CM_SIDR_REQ:
		err = cm_sidr_request(s->cm, &path, &m->sidr_req, &(struct cm_times){ 20, 15 },
				      m->data, room, NULL, 0, &s->conn);
		break;
	case CM_SIDR_REP:
		err = cm_sidr_reply(s->cm, s->conn, &m->sidr_rep, m->data, room, 0);
		break;
	default: /* a REJ that the CM itself makes */
		break;
	}
	assert_int_equal(err, 0);
}

static void side_sends(struct side *s, const struct capture_mad *c)
{
	struct cm_send send;

	assert_true(cm_output(s->cm, &send));
	for (u32 i = 0; i < CM_MAD_BYTES; i++)
		if (c->mad[i] != send.mad[i])
			fail_msg("%s %u: byte %u is %#x, not %#x", c->file, c->index, i,
				 send.mad[i], c->mad[i]);
	assert_false(cm_output(s->cm, &send));
}

static void side_hears(struct side *s, const struct capture_mad *c)
{
	const struct cm_path path = side_path(s);
	struct cm_event e;

	s->random = 0;
	if (cm_input(s->cm, &path, c->mad, CM_MAD_BYTES, 0) == CM_DROP_refused)
		return;
	assert_true(cm_next_event(s->cm, &e));
	s->conn = e.conn;
	assert_false(cm_next_event(s->cm, &e));
}

/* The state in which each side is at the end. */
static enum cm_state state_after(const struct capture_mad *last)
{
	switch (decoded(last).kind) {
	case CM_DREP:
		return CM_TIMEWAIT;
	case CM_SIDR_REP:
		return last->from_client ? CM_STATE_END : CM_REFUSED;
	default:
		return CM_IDLE;
	}
}

static void play(const struct capture_mad *first, u32 num, bool client)
{
	const struct cm_mad opening = decoded(first);
	const struct cm_service service = { .id = opening.kind == CM_REQ ?
							  opening.req.service_id :
							  opening.sidr_req.service_id,
					    .families = CM_IPV4 };
	const bool refused = decoded(&first[num - 1]).kind == CM_REJ;
	struct cm_listener *l;
	struct side s;

	side_make(&s, first, num, client);
	if (!client && !refused)
		assert_int_equal(cm_listen(s.cm, &service, &l), 0);
	for (u32 i = 0; i < num; i++) {
		const struct cm_mad m = decoded(&first[i]);

		if (first[i].from_client != client) {
			side_hears(&s, &first[i]);
			continue;
		}
		side_calls(&s, &m);
		side_sends(&s, &first[i]);
	}
	if (client && opening.kind == CM_SIDR_REQ)
		assert_int_equal(cm_conn_state(s.conn), CM_IDLE);
	else if (s.conn)
		assert_int_equal(cm_conn_state(s.conn), state_after(&first[num - 1]));
	cm_destroy(s.cm);
}

static void replay__both_sides(void **state)
{
	u32 first = 0, played = 0;

	while (first < capture.num) {
		u32 num = 1;

		while (first + num < capture.num &&
		       !strcmp(capture.mad[first + num].file, capture.mad[first].file))
			num++;
		play(&capture.mad[first], num, true);
		play(&capture.mad[first], num, false);
		first += num;
		played++;
	}
	assert_int_equal(played, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replay__both_sides),
	};

	return cmocka_run_group_tests_name("replay", tests, load, unload);
}
