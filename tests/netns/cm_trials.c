/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All connections of cm_trials.h at once, between two processes. Each end compares the events of
 * each connection with its row: kind, status, state of the QP, private data.
 *
 *	cm_trials serve SET ADDRESS [PATIENCE [COUNT [FIRST]]]
 *		until TERM, and then until each row is complete
 *	cm_trials connect SET ADDRESS [PATIENCE [COUNT [FIRST]]]
 *
 * SET: c, l or cl, the rows that are run. PATIENCE: a factor of their seconds. COUNT: connections
 * of each row, numbered from FIRST on; several clients may share a server's. Ids move to another
 * channel after each event.
 * Exits with 1 if a row differs, after a line for it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm_trials.h"
#include "lib/cm.h"
#include "lib/ctl.h"

#define BYTES		 32
#define SETTLE_MS	 1000 /* further events would be there by then */
#define REQ_BYTES	 56
#define REP_BYTES	 196
#define REJ_BYTES	 148
#define SIDR_BYTES	 136
#define LEAVE_MS	 500
#define WR_RECEIVED(row) ((row)*2)
#define WR_SENT(row)	 ((row)*2 + 1)

struct trial {
	const struct row *row;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_qp *stranger; /* of one that HESITATES; librdmacm does not know it */
	uint64_t due_ms; /* when step() is to be called; 0: not */
	uint64_t begun_ms, last_ms;
	bool established, received, over; /* over: the id is destroyed, or is as good as that */
	char events[200];
	char in[BYTES], out[BYTES];
};

static struct trial *trials;	  /* NUM_ROWS of each instance */
static uint32_t first, count = 1; /* instances */
static struct rdma_event_channel *channels[2];
static struct ibv_cq *cq;
static const char *address, *sets;
static bool serves;
static uint32_t patience = 1;
static volatile sig_atomic_t is_told;

static void on_term(int sig)
{
	is_told = sig;
}

static bool is_run(const struct row *row)
{
	return strchr(sets, row->set);
}

static uint32_t num_trials(void)
{
	return (uint32_t)NUM_ROWS * count;
}

/* The same number at both ends. */
static uint32_t number_of(const struct trial *t)
{
	return (uint32_t)(t - trials) + first * (uint32_t)NUM_ROWS;
}

static uint32_t index_of(const struct trial *t)
{
	return (uint32_t)(t - trials);
}

/* The first two bytes are the number. */
static void fill(void *at, uint8_t bytes, uint32_t number)
{
	uint8_t *b = at;

	b[0] = (uint8_t)(number >> 8);
	b[1] = (uint8_t)number;
	for (uint32_t i = 2; i < bytes; i++)
		b[i] = (uint8_t)(i * 7 + number);
}

/* ---- records ---- */

static const char *state_name(enum ibv_qp_state state)
{
	static const char *names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return state < 7 ? names[state] : "UNKNOWN";
}

/*
 * With this much patience the cable is bad: the DREPs may be lost until the peer's program, which
 * has seen all its events, has ended. Then DISCONNECTED has the status of an unanswered DREQ.
 */
#define BAD_CABLE 12

static bool may_be_unanswered(enum rdma_cm_event_type type, int status)
{
	return patience >= BAD_CABLE && type == RDMA_CM_EVENT_DISCONNECTED && status == -ETIMEDOUT;
}

static void note(struct trial *t, enum rdma_cm_event_type type, int status)
{
	const size_t used = strlen(t->events);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	char number[16] = "", state[16] = "";

	if (status && !may_be_unanswered(type, status))
		snprintf(number, sizeof(number), "(%d)", status);
	if (t->id->qp && t->row->active != LOOKS_UP && type != RDMA_CM_EVENT_TIMEWAIT_EXIT &&
	    type != RDMA_CM_EVENT_UNREACHABLE) {
		must(!ibv_query_qp(t->id->qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
		snprintf(state, sizeof(state), " %s", state_name(attr.qp_state));
	}
	snprintf(t->events + used, sizeof(t->events) - used, "%s%s%s%s", used ? ", " : "",
		 rdma_event_str(type) + sizeof("RDMA_CM_EVENT_") - 1, number,
		 t->row->active == LOOKS_UP && type == RDMA_CM_EVENT_ESTABLISHED ? " RTS" : state);
	t->last_ms = now_ms();
}

static const char *expected(const struct trial *t)
{
	return serves ? t->row->passive_events : t->row->active_events;
}

static bool is_as_expected(const struct trial *t)
{
	const size_t len = strlen(t->events);
	const char *at = expected(t);

	for (;;) {
		const size_t n = strcspn(at, "|");

		if (n == len && !memcmp(at, t->events, n))
			return true;
		if (!at[n])
			return false;
		at += n + 1;
	}
}

static void check_data(const struct trial *t, const void *data, uint8_t len, uint8_t bytes)
{
	uint8_t want[256];

	fill(want, bytes, number_of(t));
	must(len >= bytes && !memcmp(data, want, bytes), "%s: %u bytes of private data",
	     t->row->name, len);
}

/* ---- actions ---- */

/* One for all trials. */
static void make_cq(const struct trial *t)
{
	if (!cq)
		cq = ibv_create_cq(t->id->verbs, (int)(4 * num_trials()), NULL, NULL, 0);
	must(cq, "ibv_create_cq: %s", strerror(errno));
}

static void make_qp(struct trial *t)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = t->id->qp_type,
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	struct ibv_sge sge = { .addr = (uintptr_t)t->in, .length = BYTES };
	struct ibv_recv_wr wr = { .wr_id = WR_RECEIVED(index_of(t)),
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;

	make_cq(t);
	attr.send_cq = attr.recv_cq = cq;
	must(!rdma_create_qp(t->id, NULL, &attr), "rdma_create_qp: %s", strerror(errno));
	if (t->row->active == LOOKS_UP)
		return;
	t->mr = ibv_reg_mr(t->id->pd, t, sizeof(*t), IBV_ACCESS_LOCAL_WRITE);
	must(t->mr, "ibv_reg_mr: %s", strerror(errno));
	sge.lkey = t->mr->lkey;
	must(!ibv_post_recv(t->id->qp, &wr, &bad), "ibv_post_recv");
}

/* Makes a QP for its number alone, which no other connection has. */
static void make_stranger(struct trial *t)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };
	static struct ibv_pd *pd;

	make_cq(t);
	if (!pd)
		pd = ibv_alloc_pd(t->id->verbs);
	attr.send_cq = attr.recv_cq = cq;
	must(pd && (t->stranger = ibv_create_qp(pd, &attr)), "ibv_create_qp: %s",
	     strerror(errno));
}

static void post(struct trial *t)
{
	struct ibv_sge sge = { (uintptr_t)t->out, BYTES, t->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = WR_SENT(index_of(t)),
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND },
			   *bad;

	fill(t->out, BYTES, number_of(t) + serves);
	must(!ibv_post_send(t->id->qp, &wr, &bad), "%s: ibv_post_send", t->row->name);
}

static void finish(struct trial *t)
{
	if (t->over)
		return;
	t->over = true;
	t->due_ms = 0;
	cm_destroy_id(t->id);
	t->id = NULL;
	if (t->mr)
		must(!ibv_dereg_mr(t->mr), "ibv_dereg_mr");
	if (t->stranger)
		must(!ibv_destroy_qp(t->stranger), "ibv_destroy_qp");
}

/* The peer may have left meanwhile: then the call fails, or its event comes. */
static void accept_it(struct trial *t)
{
	uint8_t data[REP_BYTES];
	const bool is_ud = t->row->active == LOOKS_UP;
	struct rdma_conn_param param = { .private_data = data,
					 .responder_resources = 1,
					 .private_data_len = is_ud ? SIDR_BYTES : REP_BYTES,
					 .initiator_depth = 1,
					 .rnr_retry_count = 7 };

	fill(data, REP_BYTES, number_of(t));
	make_qp(t);
	param.qp_num = t->id->qp->qp_num;
	must(!rdma_accept(t->id, &param) || t->row->active == LEAVES, "%s: rdma_accept: %s",
	     t->row->name, strerror(errno));
}

static void reject_it(struct trial *t)
{
	uint8_t data[REJ_BYTES];

	fill(data, REJ_BYTES, number_of(t));
	must(!rdma_reject(t->id, data, t->row->active == LOOKS_UP ? SIDR_BYTES : REJ_BYTES),
	     "%s: rdma_reject: %s", t->row->name, strerror(errno));
}

static void answer(struct trial *t)
{
	switch (t->row->passive) {
	case REJECTS:
	case REJECTS_LATE:
		reject_it(t);
		break;
	case DROPS:
		finish(t);
		break;
	default:
		accept_it(t);
	}
}

static void connect_it(struct trial *t)
{
	uint8_t data[REQ_BYTES];
	struct rdma_conn_param param = { .private_data = data,
					 .private_data_len = REQ_BYTES,
					 .responder_resources = 1,
					 .initiator_depth = 1,
					 .retry_count = 7,
					 .rnr_retry_count = 7 };

	fill(data, REQ_BYTES, number_of(t));
	if (t->row->active == HESITATES) {
		make_stranger(t);
		param.qp_num = t->stranger->qp_num;
	} else {
		make_qp(t);
	}
	t->begun_ms = now_ms();
	must(!rdma_connect(t->id, &param), "%s: rdma_connect: %s", t->row->name, strerror(errno));
	if (t->row->active == LEAVES)
		t->due_ms = t->begun_ms + LEAVE_MS;
}

static void disconnect(struct trial *t)
{
	must(!rdma_disconnect(t->id), "%s: rdma_disconnect: %s", t->row->name, strerror(errno));
}

/* A step that is due. */
static void step(struct trial *t)
{
	t->due_ms = 0;
	if (serves) {
		answer(t);
	} else if (t->row->active == LEAVES) {
		finish(t);
	} else if (!t->established) {
		must(!rdma_establish(t->id), "%s: rdma_establish: %s", t->row->name,
		     strerror(errno));
		t->established = true;
		t->due_ms = now_ms() + LEAVE_MS;
	} else {
		disconnect(t);
	}
}

static void reply_if_complete(struct trial *t)
{
	if (t->received && (t->established || t->row->passive == ACCEPTS_EARLY))
		post(t);
}

/* ---- events ---- */

static void take_established(struct trial *t)
{
	t->established = true;
	if (serves)
		reply_if_complete(t);
	else if (t->row->active != LOOKS_UP)
		post(t);
}

static void take_event(struct trial *t, enum rdma_cm_event_type type, int status)
{
	if (type == RDMA_CM_EVENT_DISCONNECTED)
		disconnect(t);
	note(t, type, status);
	if (type == RDMA_CM_EVENT_ESTABLISHED)
		take_established(t);
	else if (type == RDMA_CM_EVENT_CONNECT_RESPONSE)
		t->due_ms = now_ms() + LATE_MS;
	else
		t->due_ms = 0;
	if (t->id && type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
		must(!rdma_migrate_id(t->id, channels[t->id->channel == channels[0]]),
		     "%s: rdma_migrate_id: %s", t->row->name, strerror(errno));
}

static void check_event_data(const struct trial *t, const struct rdma_cm_event *ev)
{
	const bool is_ud = t->row->active == LOOKS_UP;
	const struct rdma_conn_param *c = &ev->param.conn;

	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST && is_ud)
		check_data(t, ev->param.ud.private_data, ev->param.ud.private_data_len, REQ_BYTES);
	else if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		check_data(t, c->private_data, c->private_data_len, REQ_BYTES);
	else if (serves)
		return;
	else if (ev->event == RDMA_CM_EVENT_ESTABLISHED && is_ud)
		check_data(t, ev->param.ud.private_data, ev->param.ud.private_data_len, SIDR_BYTES);
	else if (ev->event == RDMA_CM_EVENT_ESTABLISHED ||
		 ev->event == RDMA_CM_EVENT_CONNECT_RESPONSE)
		check_data(t, c->private_data, c->private_data_len, REP_BYTES);
	else if (ev->event == RDMA_CM_EVENT_REJECTED &&
		 (t->row->passive == REJECTS || t->row->passive == REJECTS_LATE))
		check_data(t, c->private_data, c->private_data_len, REJ_BYTES);
}

static struct trial *trial_of_request(const struct rdma_cm_event *ev)
{
	const uint32_t row = ntohs(rdma_get_src_port(ev->id)) - TRIALS_PORT;
	/* of a datagram service as well: the data are at the same place */
	const uint8_t *data = ev->param.conn.private_data;
	const uint32_t number = (uint32_t)data[0] << 8 | data[1];

	must(number / NUM_ROWS - first < count && number % NUM_ROWS == row,
	     "%s: a request with other data", rows[row].name);
	return &trials[number - first * NUM_ROWS];
}

static void take_request(struct trial *t, struct rdma_cm_id *id)
{
	must(!t->id && !t->over, "%s: a second request", t->row->name);
	t->id = id;
	id->context = t;
	if (index_of(t) % 2)
		must(!rdma_migrate_id(id, channels[1]), "rdma_migrate_id: %s", strerror(errno));
	if (t->row->passive == ACCEPTS_LATE || t->row->passive == REJECTS_LATE)
		t->due_ms = now_ms() + LATE_MS;
	else
		answer(t);
}

static void take_channel(struct rdma_event_channel *ch)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	struct trial *t;
	int status;

	must(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event: %s", strerror(errno));
	type = ev->event;
	status = ev->status;
	id = ev->id;
	t = type == RDMA_CM_EVENT_CONNECT_REQUEST ? trial_of_request(ev) : id->context;
	check_event_data(t, ev);
	must(!rdma_ack_cm_event(ev), "rdma_ack_cm_event");
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		take_request(t, id);
	else if (type == RDMA_CM_EVENT_ADDR_RESOLVED)
		must(!rdma_resolve_route(id, WAIT_MS), "rdma_resolve_route");
	else if (type == RDMA_CM_EVENT_ROUTE_RESOLVED)
		connect_it(t);
	else
		take_event(t, type, status);
}

static void take_received(struct trial *t)
{
	char want[BYTES];

	fill(want, BYTES, number_of(t) + !serves);
	must(!memcmp(t->in, want, BYTES), "%s: the message differs", t->row->name);
	t->received = true;
	if (serves)
		reply_if_complete(t);
	else if (t->row->active == TALKS)
		disconnect(t);
	else if (t->row->active == DESTROYS)
		finish(t);
}

static void take_sent(struct trial *t)
{
	if (!serves)
		return;
	if (t->row->passive == DISCONNECTS)
		disconnect(t);
	else if (t->row->passive == IS_DESTROYED)
		finish(t);
}

/*
 * The peer's QP may be in the error state before its acknowledgement, which a bad cable loses, has
 * arrived here: then the retries of the request run out.
 */
static bool may_run_out(const struct row *row)
{
	if (serves)
		return row->active != IS_LEFT;
	return row->passive == DISCONNECTS || row->passive == IS_DESTROYED;
}

/* A request is flushed if the connection ends before it is complete. */
static void take_completions(void)
{
	struct ibv_wc wc;

	while (cq && ibv_poll_cq(cq, 1, &wc) == 1) {
		struct trial *t = &trials[wc.wr_id / 2];

		if (wc.status == IBV_WC_WR_FLUSH_ERR)
			continue;
		if (wc.status == IBV_WC_RETRY_EXC_ERR && may_run_out(t->row))
			continue;
		must(wc.status == IBV_WC_SUCCESS, "%s: a request ends with %s", t->row->name,
		     ibv_wc_status_str(wc.status));
		if (wc.wr_id % 2)
			take_sent(t);
		else
			take_received(t);
	}
}

/* ---- all of them ---- */

static void begin(struct trial *t)
{
	const enum rdma_port_space ps = t->row->active == LOOKS_UP ? RDMA_PS_UDP : RDMA_PS_TCP;
	const uint16_t port = (uint16_t)(TRIALS_PORT + (t->row - rows));

	if (serves) {
		if (t->row->passive != ABSENT && index_of(t) < NUM_ROWS)
			cm_listener(channels[0], address, port, ps, 256);
		return;
	}
	must(!rdma_create_id(channels[0], &t->id, t, ps), "rdma_create_id: %s", strerror(errno));
	must(!rdma_resolve_addr(t->id, NULL, cm_address(address, port), WAIT_MS),
	     "rdma_resolve_addr: %s", strerror(errno));
}

static bool is_late(const struct trial *t, uint64_t since_ms)
{
	return now_ms() - since_ms > (uint64_t)t->row->seconds * patience * 1000;
}

static bool all_are_complete(uint64_t since_ms)
{
	for (uint32_t i = 0; i < num_trials(); i++)
		if (is_run(trials[i].row) && !is_as_expected(&trials[i]) &&
		    !is_late(&trials[i], since_ms))
			return false;
	return true;
}

static void take_steps(void)
{
	struct pollfd p[2] = { { .fd = channels[0]->fd, .events = POLLIN },
			       { .fd = channels[1]->fd, .events = POLLIN } };

	poll(p, 2, 5);
	for (int i = 0; i < 2; i++)
		if (p[i].revents)
			take_channel(channels[i]);
	take_completions();
	for (uint32_t i = 0; i < num_trials(); i++)
		if (trials[i].due_ms && now_ms() >= trials[i].due_ms)
			step(&trials[i]);
}

static int judge(uint64_t since_ms)
{
	uint32_t good = 0;
	int failed = 0;

	for (uint32_t i = 0; i < num_trials(); i++) {
		const struct trial *t = &trials[i];

		if (!is_run(t->row))
			continue;
		if (is_as_expected(t)) {
			good++;
			continue;
		}
		printf("bad %s: '%s' instead of '%s', the last after %lld ms\n", t->row->name,
		       t->events, expected(t),
		       t->last_ms ? (long long)(t->last_ms - since_ms) : 0ll);
		failed = 1;
	}
	printf("good %u\n", good);
	return failed;
}

int main(int argc, char **argv)
{
	const struct sigaction sa = { .sa_handler = on_term };
	uint64_t since_ms, complete_ms = 0;

	must(argc >= 4 && argc <= 7,
	     "usage: cm_trials serve|connect SET ADDRESS [PATIENCE [COUNT [FIRST]]]");
	serves = !strcmp(argv[1], "serve");
	sets = argv[2];
	address = argv[3];
	if (argc > 4)
		patience = (uint32_t)atoi(argv[4]);
	if (argc > 5)
		count = (uint32_t)atoi(argv[5]);
	if (argc > 6)
		first = (uint32_t)atoi(argv[6]);
	must((trials = calloc(num_trials(), sizeof(*trials))), "no memory");
	sigaction(SIGTERM, &sa, NULL);
	channels[0] = cm_channel();
	channels[1] = cm_channel();
	for (uint32_t i = 0; i < num_trials(); i++)
		trials[i].row = &rows[i % NUM_ROWS];
	since_ms = now_ms();
	for (uint32_t i = 0; i < num_trials(); i++)
		if (is_run(trials[i].row))
			begin(&trials[i]);
	printf("ready\n");
	fflush(stdout);
	while (serves && !is_told)
		take_steps();
	/* to their ends, and a moment more for unexpected events */
	while (!complete_ms || now_ms() - complete_ms < SETTLE_MS) {
		take_steps();
		if (!complete_ms && all_are_complete(since_ms))
			complete_ms = now_ms();
	}
	return judge(since_ms);
}
