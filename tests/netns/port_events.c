/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asynchronous events of the port and of the device, ibv_get_async_event(3), caused by an
 * administrator with ip(8): every open context must get each event, with or without objects, and
 * the queries must agree with it.
 *
 *	port_events link|gid|fatal|churn DEVICE INTERFACE PEER-NAMESPACE PEER-INTERFACE
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define QUIET_MS 100 /* to find an unexpected event; no test relies on its absence */
#define GIDS_MAX 16

static const char *device, *interface, *peer_ns, *peer;
static struct ibv_context *used, *idle; /* with a QP, so with a port; with nothing */

/* ---- helpers ---- */

__attribute__((format(printf, 1, 2))) static void ip(const char *format, ...)
{
	char command[256] = "ip ";
	va_list args;

	va_start(args, format);
	vsnprintf(command + 3, sizeof(command) - 3, format, args);
	va_end(args);
	must(system(command) == 0, "failed: %s", command);
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1 && p.revents == POLLIN;
}

static enum ibv_event_type next_event(struct ibv_context *ctx)
{
	struct ibv_async_event event;

	must(readable(ctx->async_fd, WAIT_MS), "no event on the %s context",
	     ctx == used ? "used" : "idle");
	must(!ibv_get_async_event(ctx, &event), "ibv_get_async_event: %s", strerror(errno));
	must(event.event_type == IBV_EVENT_DEVICE_FATAL || event.element.port_num == 1,
	     "%s is of port %d", ibv_event_type_str(event.event_type), event.element.port_num);
	ibv_ack_async_event(&event);
	return event.event_type;
}

/* A link being deleted first goes down and loses its addresses, with or without events. */
static bool may_come_before_fatal(enum ibv_event_type type)
{
	return type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_GID_CHANGE;
}

static void expect_fatal(struct ibv_context *ctx)
{
	enum ibv_event_type got;

	while ((got = next_event(ctx)) != IBV_EVENT_DEVICE_FATAL)
		must(may_come_before_fatal(got), "the event is '%s'", ibv_event_type_str(got));
}

static void expect(enum ibv_event_type want)
{
	struct ibv_context *each[] = { used, idle };

	for (int i = 0; i < 2; i++) {
		enum ibv_event_type got = next_event(each[i]);

		must(got == want, "the event is '%s', not '%s'", ibv_event_type_str(got),
		     ibv_event_type_str(want));
	}
}

static void expect_none(void)
{
	must(!readable(used->async_fd, QUIET_MS) && !readable(idle->async_fd, 0),
	     "an event that nothing caused: %s",
	     ibv_event_type_str(next_event(readable(used->async_fd, 0) ? used : idle)));
}

static void port_is(enum ibv_port_state state, int phys_state)
{
	struct ibv_port_attr a;

	must(!ibv_query_port(used, 1, &a), "ibv_query_port: %s", strerror(errno));
	must(a.state == state && a.phys_state == phys_state,
	     "the port is in state %d, %d, not %d, %d", a.state, a.phys_state, state, phys_state);
}

/* Reads the current table; returns its length. */
static int gids(union ibv_gid table[GIDS_MAX])
{
	static const union ibv_gid none;
	int n = 0;

	while (n < GIDS_MAX && !ibv_query_gid(idle, 1, n, &table[n]) &&
	       memcmp(&table[n], &none, sizeof(none)))
		n++;
	return n;
}

/* ---- objects ---- */

struct objects {
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel, *lonely; /* of a CQ with a QP; of nothing */
	struct ibv_cq *cq;
	struct ibv_cq_ex *cq_ex;
	struct ibv_srq *srq;
	struct ibv_qp *qp, *plain; /* connected to itself; RESET */
	struct ibv_mr *mr;
	char byte;
};

static void receive(struct ibv_qp *qp, int want)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	int err = ibv_post_recv(qp, &wr, &bad);

	must(err == want, "ibv_post_recv: %s, not %s", strerror(err), strerror(want));
}

static void send(struct ibv_qp *qp, int want)
{
	struct ibv_send_wr wr = { .wr_id = 2,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	int err = ibv_post_send(qp, &wr, &bad);

	must(err == want, "ibv_post_send: %s, not %s", strerror(err), strerror(want));
}

/* Connects the QP to itself. */
static void connect_qp(struct ibv_qp *qp)
{
	const struct rc_options o = { .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	struct rc_address self = { .qpn = qp->qp_num };

	must(!ibv_query_gid(used, 1, 0, &self.gid), "ibv_query_gid: %s", strerror(errno));
	rc_connect(qp, &self, &self, &o);
}

static void make(struct objects *o)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_cq_init_attr_ex ex = { .cqe = 16 };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };

	must((o->pd = ibv_alloc_pd(used)), "ibv_alloc_pd");
	must((o->channel = ibv_create_comp_channel(used)) &&
		     (o->lonely = ibv_create_comp_channel(used)),
	     "ibv_create_comp_channel");
	must((o->cq = ibv_create_cq(used, 16, NULL, o->channel, 0)) &&
		     (o->cq_ex = ibv_create_cq_ex(used, &ex)),
	     "ibv_create_cq");
	must((o->srq = ibv_create_srq(o->pd, &srq)), "ibv_create_srq");
	must((o->mr = ibv_reg_mr(o->pd, &o->byte, 1, IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr: %s",
	     strerror(errno));
	init.send_cq = init.recv_cq = o->cq;
	must((o->qp = ibv_create_qp(o->pd, &init)), "ibv_create_qp: %s", strerror(errno));
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(o->cq_ex);
	must((o->plain = ibv_create_qp(o->pd, &init)), "ibv_create_qp: %s", strerror(errno));
	connect_qp(o->qp);
}

static void unmake(struct objects *o)
{
	must(!ibv_destroy_qp(o->qp) && !ibv_destroy_qp(o->plain), "ibv_destroy_qp");
	must(!ibv_destroy_cq(o->cq) && !ibv_destroy_cq(ibv_cq_ex_to_cq(o->cq_ex)),
	     "ibv_destroy_cq");
	must(!ibv_destroy_srq(o->srq), "ibv_destroy_srq");
	must(!ibv_destroy_comp_channel(o->channel) && !ibv_destroy_comp_channel(o->lonely),
	     "ibv_destroy_comp_channel");
	must(!ibv_dereg_mr(o->mr), "ibv_dereg_mr");
	must(!ibv_dealloc_pd(o->pd), "ibv_dealloc_pd");
}

static void take_wc(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	const struct ibv_wc wc = rc_wait(cq, "the QP connected to itself");

	must(wc.wr_id == wr_id && wc.status == status, "wr_id %d, %s", (int)wc.wr_id,
	     ibv_wc_status_str(wc.status));
}

/* ---- the cases ---- */

/* "Link became unavailable on a port", "Link became active on a port" */
static void link_case(struct objects *o)
{
	struct ibv_device_attr d;

	must(!ibv_query_device(used, &d) && d.device_cap_flags & IBV_DEVICE_PORT_ACTIVE_EVENT,
	     "PORT_ACTIVE_EVENT is not claimed");
	port_is(IBV_PORT_ACTIVE, 5);
	/* The carrier: the peer's end goes down. */
	ip("-n %s link set %s down", peer_ns, peer);
	expect(IBV_EVENT_PORT_ERR);
	port_is(IBV_PORT_DOWN, 2);
	ip("-n %s link set %s up", peer_ns, peer);
	expect(IBV_EVENT_PORT_ACTIVE);
	port_is(IBV_PORT_ACTIVE, 5);
	/* This end; it has only an IPv4 address, so that no GID is removed. */
	ip("link set %s down", interface);
	expect(IBV_EVENT_PORT_ERR);
	port_is(IBV_PORT_DOWN, 3);
	ip("link set %s up", interface);
	expect(IBV_EVENT_PORT_ACTIVE);
	port_is(IBV_PORT_ACTIVE, 5);
	expect_none();
	/* The QP still works. */
	receive(o->qp, 0);
	send(o->qp, 0);
	take_wc(o->cq, 1, IBV_WC_SUCCESS);
	take_wc(o->cq, 2, IBV_WC_SUCCESS);
}

/* "GID table was changed on a port" */
static void gid_case(struct objects *o)
{
	static const uint8_t added[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, 78, 0, 1 };
	union ibv_gid before[GIDS_MAX], now[GIDS_MAX];
	const int n = gids(before);

	ip("addr add 10.78.0.1/24 dev %s", interface);
	expect(IBV_EVENT_GID_CHANGE);
	must(gids(now) == n + 1, "%d GIDs, not %d", gids(now), n + 1);
	must(!memcmp(&now[1], added, sizeof(added)), "the new GID is not the second");
	ip("addr del 10.78.0.1/24 dev %s", interface);
	expect(IBV_EVENT_GID_CHANGE);
	must(gids(now) == n && !memcmp(now, before, (size_t)n * sizeof(*now)),
	     "the GID is not gone");
	ip("addr add fd78::1/64 dev %s nodad", interface);
	expect(IBV_EVENT_GID_CHANGE);
	must(gids(now) == n + 1, "%d GIDs, not %d", gids(now), n + 1);
	ip("addr del fd78::1/64 dev %s", interface);
	expect(IBV_EVENT_GID_CHANGE);
	must(gids(now) == n, "%d GIDs, not %d", gids(now), n);
	/* Changes without a GID cause no event: another interface's address, the MTU. */
	ip("addr add 10.79.0.1/24 dev lo");
	ip("addr del 10.79.0.1/24 dev lo");
	ip("link set %s mtu 4400", interface);
	expect_none();
	/* A program that does not read gets one event. */
	for (int i = 0; i < 20; i++) {
		ip("addr add 10.78.0.1/24 dev %s", interface);
		ip("addr del 10.78.0.1/24 dev %s", interface);
	}
	ip("addr add 10.78.0.1/24 dev %s", interface);
	for (const uint64_t end = now_ms() + WAIT_MS; gids(now) != n + 1;)
		must(now_ms() < end, "%d GIDs, not %d", gids(now), n + 1);
	expect(IBV_EVENT_GID_CHANGE);
	/* of changes after the first was taken, not of all 41 */
	for (int more = 1; readable(used->async_fd, QUIET_MS); more++)
		must(next_event(used) == IBV_EVENT_GID_CHANGE && more < 20, "%d times more", more);
}

/* A thread that waits for an event that will never come. */
struct waiter {
	pthread_t thread;
	struct ibv_comp_channel *channel; /* NULL: asynchronous events, of idle */
	int err;
};

static void *wait_for_nothing(void *arg)
{
	struct waiter *w = arg;
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	if (!w->channel) {
		while (!ibv_get_async_event(idle, &event)) {
			ibv_ack_async_event(&event);
			w->err += event.event_type == IBV_EVENT_DEVICE_FATAL;
		}
		w->err = w->err == 1 ? errno : -w->err;
		return NULL;
	}
	while (!ibv_get_cq_event(w->channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	w->err = errno;
	return NULL;
}

/* For a call that returns a pointer. */
#define must_eio(call)                                                                      \
	do {                                                                                \
		errno = 0;                                                                  \
		must(!(call) && errno == EIO, #call ": %s, not EIO", strerror(errno)); \
	} while (0)

/* "CA is in FATAL state": the interface is deleted. */
static void fatal_case(struct objects *o)
{
	struct waiter waiter[] = { { .channel = o->channel },
				   { .channel = o->lonely },
				   { .channel = NULL } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .send_cq = o->cq,
					 .recv_cq = o->cq,
					 .cap = { 4, 4, 1, 1, 0 } },
				init_now;
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } };
	struct ibv_alloc_dm_attr dm = { .length = 8 };
	struct ibv_recv_wr rr = { .wr_id = 3 }, *bad;
	struct ibv_poll_cq_attr poll_attr = { 0 };
	struct ibv_qp_attr a;
	struct ibv_async_event event;
	struct ibv_device_attr d;
	struct ibv_port_attr p;
	union ibv_gid gid;
	struct ibv_wc wc;

	receive(o->qp, 0);
	receive(o->qp, 0);
	must(!ibv_req_notify_cq(o->cq, 0), "ibv_req_notify_cq");
	must(!ibv_query_gid(used, 1, 0, &ah.grh.dgid), "ibv_query_gid");
	for (unsigned int i = 0; i < sizeof(waiter) / sizeof(*waiter); i++)
		must(!pthread_create(&waiter[i].thread, NULL, wait_for_nothing, &waiter[i]),
		     "pthread_create");
	ip("link del %s", interface);

	expect_fatal(used);
	must(ibv_get_async_event(used, &event) == -1 && errno == EIO, "another event");
	must(readable(used->async_fd, 0), "who polls the descriptor sleeps for ever");
	for (unsigned int i = 0; i < sizeof(waiter) / sizeof(*waiter); i++) {
		must(!pthread_join(waiter[i].thread, NULL), "pthread_join");
		must(waiter[i].err == EIO, "waiter %u: %d (%s), not EIO", i, waiter[i].err,
		     strerror(waiter[i].err));
	}
	must(readable(o->channel->fd, 0) && readable(o->lonely->fd, 0),
	     "who polls a channel's descriptor sleeps for ever");

	/* The QP is in error, its receives are flushed, then arming and polling fail. */
	must(!ibv_query_qp(o->qp, &a, IBV_QP_STATE, &init_now) && a.qp_state == IBV_QPS_ERR,
	     "the QP is in state %d", a.qp_state);
	must(!ibv_req_notify_cq(o->cq, 0), "arming says that the flushed receives are lost");
	take_wc(o->cq, 1, IBV_WC_WR_FLUSH_ERR);
	take_wc(o->cq, 1, IBV_WC_WR_FLUSH_ERR);
	must(ibv_poll_cq(o->cq, 1, &wc) == -EIO, "an empty CQ can still be polled");
	must(ibv_start_poll(o->cq_ex, &poll_attr) == EIO, "an empty CQ can still be polled");
	must(ibv_req_notify_cq(o->cq, 0) == EIO, "ibv_req_notify_cq");

	send(o->qp, EIO);
	send(o->plain, EIO);
	receive(o->qp, EIO);
	must(ibv_post_srq_recv(o->srq, &rr, &bad) == EIO, "ibv_post_srq_recv");
	a.qp_state = IBV_QPS_RESET;
	must(ibv_modify_qp(o->qp, &a, IBV_QP_STATE) == EIO, "ibv_modify_qp");
	must(ibv_query_device(used, &d) == EIO && ibv_query_port(idle, 1, &p) == EIO,
	     "ibv_query_*");
	must(ibv_query_gid(idle, 1, 0, &gid) == -1 && errno == EIO, "ibv_query_gid");
	must(ibv_resize_cq(o->cq, 32) == EIO &&
		     ibv_modify_srq(o->srq, &srq.attr, IBV_SRQ_LIMIT) == EIO,
	     "resizing");
	must_eio(ibv_alloc_pd(idle));
	must_eio(ibv_create_comp_channel(idle));
	must_eio(ibv_create_cq(idle, 4, NULL, NULL, 0));
	must_eio(ibv_create_srq(o->pd, &srq));
	must_eio(ibv_create_qp(o->pd, &init));
	must_eio(ibv_reg_mr(o->pd, &o->byte, 1, 0));
	must_eio(ibv_alloc_dm(idle, &dm));
	must_eio(ibv_import_dm(idle, 1));
	must_eio(ibv_create_ah(o->pd, &ah));
	/* Everything can be destroyed: main() does so. */
}

/*
 * Addresses change during traffic, while devices are opened and closed; then the interface is
 * deleted during traffic.
 */
static void *open_and_close(void *arg)
{
	_Atomic bool *stop = arg;

	while (!*stop)
		ibv_close_device(open_device(device));
	return NULL;
}

/* A receive and a send, as far as there is room; returns how many were posted. */
static int post_both(struct ibv_qp *qp)
{
	struct ibv_send_wr wr = { .wr_id = 2,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_recv_wr rr = { .wr_id = 1 }, *bad_rr;

	return ibv_post_recv(qp, &rr, &bad_rr) ? 0 : 1 + !ibv_post_send(qp, &wr, &bad);
}

static void churn_case(struct objects *o)
{
	static _Atomic bool stop;
	pthread_t thread;
	struct ibv_wc wc;
	int n, posted = 0, completed = 0;

	must(!pthread_create(&thread, NULL, open_and_close, &stop), "pthread_create");
	while (completed < 10000) {
		ip("addr add 10.78.0.1/24 dev %s", interface);
		ip("addr del 10.78.0.1/24 dev %s", interface);
		for (int i = 0; i < 1000; i++) {
			posted += post_both(o->qp);
			while ((n = ibv_poll_cq(o->cq, 1, &wc)) > 0)
				completed++;
		}
	}
	stop = true;
	must(!pthread_join(thread, NULL), "pthread_join");
	ip("link del %s &", interface);
	/* Until polling fails. Posting continues at the same time; each accepted request
	 * completes. */
	for (const uint64_t end = now_ms() + WAIT_MS; (n = ibv_poll_cq(o->cq, 1, &wc)) >= 0;) {
		must(now_ms() < end, "the CQ does not fail");
		completed += n;
		if (n == 0)
			posted += post_both(o->qp);
	}
	must(n == -EIO && posted == completed, "ibv_poll_cq: %d after %d completions of %d", n,
	     completed, posted);
	expect_fatal(used);
	expect_fatal(idle);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(struct objects *o);
	} cases[] = { { "link", link_case },
		      { "gid", gid_case },
		      { "fatal", fatal_case },
		      { "churn", churn_case } };
	struct objects o = { 0 };
	unsigned int i = 0;

	must(argc == 6,
	     "port_events link|gid|fatal|churn DEVICE INTERFACE PEER-NAMESPACE PEER-INTERFACE");
	device = argv[2];
	interface = argv[3];
	peer_ns = argv[4];
	peer = argv[5];
	while (i < sizeof(cases) / sizeof(*cases) && strcmp(cases[i].name, argv[1]))
		i++;
	must(i < sizeof(cases) / sizeof(*cases), "no case %s", argv[1]);
	idle = open_device(device);
	used = open_device(device);
	make(&o);
	cases[i].run(&o);
	unmake(&o);
	must(!ibv_close_device(used) && !ibv_close_device(idle), "ibv_close_device");
	printf("port_events: %s\n", argv[1]);
	return 0;
}
