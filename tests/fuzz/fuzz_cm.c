/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=7 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: MADs into the connection manager, raw ones and ones from a peer that has seen
 * the sent ones, between calls of a program, time, and closed connections. Looks for memory errors,
 * and compares the CM with a model: an event is of an existing connection, memory is bounded, sent
 * MADs are valid, and in the end nothing is left.
 *
 * scripts/fuzz.sh BUILD cm SECONDS runs it. An input is a row of struct move, each with a payload.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../user/cm/cm.h"
#include "../sim/rng.h"
#include "golden.h"

#define CAPACITY 12u
#define SERVICE	 cm_service_id(CM_PS_TCP, 7174) /* of the captures */
#define SIDR	 cm_service_id(CM_PS_UDP, 7174)
#define SENT	 32u
#define PAYLOAD	 64u

enum { RAW, CRAFTED, CONNECT, GO_ON, REFUSE, CLOSE, TIME, OTHER };

struct move {
	u8 what, which, kind, argument;
};

struct run {
	struct cm *cm;
	struct rng rng;
	u64 now_ns;
	struct cm_conn *conn[CAPACITY]; /* the model: open connections */
	u32 num;
	struct cm_send sent[SENT]; /* the last ones */
	u32 num_sent;
	struct cm_listener *listener;
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static u64 draw(void *arg)
{
	return rng_next(arg);
}

static bool account_has(const struct run *r, const struct cm_conn *c)
{
	for (u32 i = 0; i < r->num; i++)
		if (r->conn[i] == c)
			return true;
	return false;
}

static void account_add(struct run *r, struct cm_conn *c)
{
	must(r->num < CAPACITY && !account_has(r, c));
	r->conn[r->num++] = c;
}

static void listen_to(struct run *r)
{
	const struct cm_service s = { .id = SERVICE, .families = CM_IPV4, .backlog = 3 };

	must(!cm_listen(r->cm, &s, &r->listener));
}

/* Takes all output, and checks the counts against the model. */
static void turn(struct run *r)
{
	const struct cm_stats *s = cm_stats(r->cm);
	struct cm_event e;
	struct cm_mad m;

	while (cm_next_event(r->cm, &e)) {
		if (e.kind == CM_EVENT_REQUEST || e.kind == CM_EVENT_SIDR_REQUEST)
			account_add(r, e.conn);
		must(account_has(r, e.conn));
		must(e.kind != CM_EVENT_TIMEWAIT_EXIT || cm_conn_state(e.conn) == CM_IDLE);
	}
	while (cm_output(r->cm, &r->sent[r->num_sent % SENT])) {
		must(!cm_mad_decode(&m, r->sent[r->num_sent % SENT].mad, CM_MAD_BYTES));
		r->num_sent++;
	}
	must(s->in_use <= CAPACITY && s->in_use - s->closed == r->num);
	must(s->incoming <= s->in_use && s->half_open <= s->incoming);
}

static struct cm_path path_of(u8 argument)
{
	return (struct cm_path){
		.local = { { [10] = 0xff, 0xff, 10, 9, 0, (u8)(argument & 1 ? 1 : 2) } },
		.remote = { { [10] = 0xff, 0xff, 10, 9, 0, (u8)(argument & 1 ? 2 : 1) } },
		.interface = argument >> 7,
		.life = 10,
	};
}

static void input_raw(struct run *r, const struct move *move, const u8 *payload, size_t len)
{
	const struct cm_path path = path_of(move->argument);
	u8 *exact = malloc(len ? len : 1);

	must(exact);
	memcpy(exact, payload, len);
	cm_input(r->cm, &path, exact, (u32)len, r->now_ns);
	free(exact);
}

/* What the receiver of a MAD could answer: its ids the other way round, its tid. */
static void input_crafted(struct run *r, const struct move *move, const u8 *payload, size_t len)
{
	const struct cm_send *s = &r->sent[move->which % SENT];
	u8 mad[CM_MAD_BYTES] = { 1, 7, 2, 3 };
	struct cm_path path = s->path;
	struct cm_mad m;

	if (move->which % SENT >= r->num_sent || cm_mad_decode(&m, s->mad, CM_MAD_BYTES))
		return;
	memcpy(mad + 8, s->mad + 8, 8);
	mad[17] = (u8)(CM_REQ + move->kind % (CM_KIND_END - CM_REQ));
	if (mad[17] == CM_SIDR_REP) {
		memcpy(mad + 24, s->mad + 24, 4);
	} else {
		memcpy(mad + 24, &move->argument, 1); /* the peer's id: one of a few */
		if (m.remote_id)
			memcpy(mad + 24, s->mad + 28, 4);
		memcpy(mad + 28, s->mad + 24, 4);
	}
	memcpy(mad + 32, payload, len < PAYLOAD ? len : PAYLOAD);
	cm_input(r->cm, &path, mad, sizeof(mad), r->now_ns);
}

static void connect_one(struct run *r, const struct move *move)
{
	const struct cm_path path = path_of(move->argument);
	const struct cm_req req = { .service_id = SERVICE,
				    .qpn = move->which,
				    .remote_response_timeout = move->kind & 31,
				    .local_response_timeout = 10,
				    .max_retries = move->argument >> 4,
				    .mtu = 5,
				    .pkey = 0xffff,
				    .primary.ack_timeout = 10 };
	const struct cm_sidr_req sidr = { SIDR, 0xffff };
	struct cm_conn *c;
	int err;

	if (move->which & 1)
		err = cm_connect(r->cm, &path, &req, NULL, 0, NULL, r->now_ns, &c);
	else
		err = cm_sidr_request(r->cm, &path, &sidr, &(struct cm_times){ 10, 3 }, NULL, 0,
				      NULL, r->now_ns, &c);
	if (!err)
		account_add(r, c);
}

static void go_on(struct run *r, struct cm_conn *c, const struct move *move, const u8 *data,
		  u32 len)
{
	switch (move->kind % 8) {
	case 0:
		cm_accept(r->cm, c, &(struct cm_rep){ .qpn = move->argument }, data, len,
			  r->now_ns);
		break;
	case 1:
		cm_ready(r->cm, c, data, len, r->now_ns);
		break;
	case 2:
		if (len)
			cm_delay(r->cm, c, move->argument, data, len, r->now_ns);
		else
			cm_prepare_delay(r->cm, c, move->argument);
		break;
	case 3:
		cm_establish(r->cm, c, r->now_ns);
		break;
	case 4:
		cm_disconnect(r->cm, c, data, len, r->now_ns);
		break;
	case 5:
		cm_sidr_reply(r->cm, c, &(struct cm_sidr_rep){ .status = move->argument }, data,
			      len, r->now_ns);
		break;
	case 6:
		cm_take(r->cm, c);
		break;
	default:
		cm_reject(r->cm, c, &(struct cm_rej){ .reason = move->argument }, data, len,
			  r->now_ns);
		break;
	}
}

static void close_one(struct run *r, u32 i)
{
	cm_close(r->cm, r->conn[i], r->now_ns);
	r->conn[i] = r->conn[--r->num];
}

static void pass_time(struct run *r, const struct move *move)
{
	const u64 deadline_ns = cm_deadline_ns(r->cm);

	if (move->kind & 1)
		r->now_ns += 4096ull << (move->argument & 31);
	else if (deadline_ns != NSEC_NEVER && deadline_ns > r->now_ns)
		r->now_ns = deadline_ns;
	cm_expire(r->cm, r->now_ns);
}

static void make_move(struct run *r, const struct move *move, const u8 *payload, size_t len)
{
	const u32 i = r->num ? move->which % r->num : 0;

	switch (move->what % 8) {
	case RAW:
		input_raw(r, move, payload, len);
		break;
	case CRAFTED:
		input_crafted(r, move, payload, len);
		break;
	case CONNECT:
		connect_one(r, move);
		break;
	case GO_ON:
	case REFUSE:
		if (r->num)
			go_on(r, r->conn[i], move, payload, (u32)len);
		break;
	case CLOSE:
		if (r->num)
			close_one(r, i);
		break;
	case TIME:
		pass_time(r, move);
		break;
	default:
		cm_unlisten(r->cm, r->listener, r->now_ns);
		listen_to(r);
		break;
	}
	turn(r);
}

/* How many bytes of the input a move has with it. */
static size_t payload_of(const struct move *move)
{
	switch (move->what % 8) {
	case RAW:
		return CM_MAD_BYTES - (move->kind == 1); /* seldom one of another length */
	case CRAFTED:
		return PAYLOAD;
	case GO_ON:
		return move->argument & 7;
	default:
		return 0;
	}
}

static void write_seeds(const char *dir)
{
	static const struct move after[] = {
		{ GO_ON, 0, 0, 4 },    { CRAFTED, 0, CM_RTU - CM_REQ, 0 }, { GO_ON, 0, 4, 0 },
		{ CRAFTED, 1, 6, 0 },  { TIME, 0, 0, 0 },		   { CLOSE, 0, 0, 0 },
		{ CONNECT, 1, 10, 1 }, { CRAFTED, 0, CM_REP - CM_REQ, 9 }, { GO_ON, 0, 1, 0 },
		{ CONNECT, 2, 10, 1 }, { OTHER, 0, 0, 0 },
	};
	static const u8 zero[PAYLOAD];
	struct golden g;
	char path[512];
	u64 qp;

	must(!golden_load(&g));
	for (size_t i = 0; i < g.count; i++) {
		const struct golden_packet *p = &g.packets[i];
		FILE *f;

		if (strncmp(p->file, "v4-cm-", 6) || !golden_field(p, "qp", 16, &qp) || qp != 1)
			continue;
		snprintf(path, sizeof(path), "%s/%zu", dir, i);
		f = fopen(path, "w");
		must(f != NULL);
		fwrite(&(struct move){ RAW, 0, 0, 0 }, sizeof(struct move), 1, f);
		fwrite(p->frame + p->len - 4 - CM_MAD_BYTES, CM_MAD_BYTES, 1, f);
		for (u32 k = 0; k < ARRAY_SIZE(after); k++) {
			fwrite(&after[k], sizeof(after[k]), 1, f);
			fwrite(zero, payload_of(&after[k]), 1, f);
		}
		fclose(f);
	}
	golden_free(&g);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *dir = getenv("XROCE_SEED_DIR");

	if (dir) {
		write_seeds(dir);
		exit(0);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct run r = { .rng = { 7 }, .now_ns = NSEC_PER_SEC };
	const struct cm_options o = { .random = draw,
				      .random_arg = &r.rng,
				      .id_first = 0x100,
				      .id_count = 64,
				      .capacity = CAPACITY,
				      .half_open = 5,
				      .listeners = 2 };
	const struct cm_service sidr = { .id = SIDR, .families = CM_IPV4 };
	struct cm_listener *l;
	struct move move;

	must(!cm_create(&o, &r.cm));
	must(!cm_listen(r.cm, &sidr, &l));
	listen_to(&r);
	while (size >= sizeof(move)) {
		size_t len;

		memcpy(&move, data, sizeof(move));
		data += sizeof(move);
		size -= sizeof(move);
		len = payload_of(&move) < size ? payload_of(&move) : size;
		make_move(&r, &move, data, len);
		data += len;
		size -= len;
	}
	while (r.num)
		close_one(&r, 0);
	turn(&r);
	while (cm_deadline_ns(r.cm) != NSEC_NEVER) {
		cm_expire(r.cm, cm_deadline_ns(r.cm));
		turn(&r);
	}
	must(!cm_stats(r.cm)->in_use);
	cm_destroy(r.cm);
	return 0;
}
