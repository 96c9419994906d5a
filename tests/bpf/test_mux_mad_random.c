/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * MADs to QP 1 of an interface that several clients share (xroce_mux): the rule of cm_mad_names()
 * once more in C, and random MADs that both judge.
 */
#include "mux_mad.h"

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
		cmocka_unit_test_setup(mad__random, reset),
	};

	return cmocka_run_group_tests_name("mux_mad_random", tests, broker_setup, broker_teardown);
}
