/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The client of xroce ping: sends at an interval, receives answers, and finally finds the path MTU.
 */
#include <stdlib.h>
#include <sys/random.h>

#include "../../os/clock.h"
#include "../output.h"
#include "ping.h"

/* Outstanding round trips with a known send time; answers to older ones count as lost. */
#define WINDOW 8192u
/* Attempts, and time between them, to find the server and to try a size. */
#define TRIES  5u
#define TRY_NS (200 * NSEC_PER_MSEC)

struct ping {
	const struct ping_options *options;
	struct peer peer;
	struct device dev;
	struct datagrams mads, data;
	struct ibv_ah *ah;
	u32 first_id, num_ids; /* communication IDs of this process */
	u64 session;	       /* first transaction ID, and the session of datagrams */
	u32 server_qpn;	       /* 0: no server has answered */
	bool is_refused;       /* a CM has rejected the service */
	u64 sent_ns[WINDOW];   /* send times; 0: answered */
	u8 buffer[DATAGRAM_MOST];
	struct ping_result result;
	bool is_printed; /* result */
};

/* ---- sending ---- */

/* The transaction ID identifies a MAD; communication IDs are reused in turn. */
static int ping_send_mad(struct ping *p, u64 seq)
{
	const struct cm_mad m = {
		.kind = CM_SIDR_REQ,
		.tid = p->session + seq,
		.local_id = p->first_id + (u32)((p->session + seq) % p->num_ids),
		.sidr_req = { .service_id = PING_SERVICE, .pkey = ROCE_DEFAULT_PKEY },
	};
	u8 mad[CM_MAD_BYTES];

	cm_mad_encode(mad, &m);
	return datagrams_send(&p->mads, p->ah, 1, mad, sizeof(mad));
}

static int ping_send_datagram(struct ping *p, u64 seq, u32 bytes)
{
	ping_fill(p->buffer, bytes, PING_REQUEST, p->session, seq);
	return datagrams_send(&p->data, p->ah, p->server_qpn, p->buffer, bytes);
}

/* ---- answers ---- */

/* Rejects requests, as this process owns QP 1: pings by the peer, or to the local address. */
static void ping_refuse(struct ping *p, const struct cm_mad *m)
{
	u8 mad[CM_MAD_BYTES];
	struct cm_mad reply;

	if (!cm_refuse(m, &reply))
		return;
	cm_mad_encode(mad, &reply);
	datagrams_send(&p->mads, p->ah, 1, mad, sizeof(mad));
}

/* Returns false if the datagram does not answer a request of this process. */
static bool ping_read_mad(struct ping *p, const struct datagram *d, u64 *seq)
{
	struct cm_mad m;

	if (d->wc.src_qp != 1 || cm_mad_decode(&m, d->data, d->len) != CM_DROP_none)
		return false;
	if (m.kind != CM_SIDR_REP) {
		ping_refuse(p, &m);
		return false;
	}
	*seq = m.tid - p->session;
	if (m.sidr_rep.status == CM_SIDR_VALID && m.sidr_rep.service_id == PING_SERVICE)
		p->server_qpn = m.sidr_rep.qpn;
	else
		p->is_refused = true;
	return true;
}

static bool ping_read_datagram(struct ping *p, const struct datagram *d, u64 *seq)
{
	u64 session;

	if (ping_check(d->data, d->len, PING_REPLY, &session, seq) && session == p->session)
		return true;
	p->result.damaged++;
	return false;
}

/*
 * Takes the next answer from the queue pair. Returns 1 with its *seq, 0: none, or -EIO. Datagrams
 * from other addresses are ignored.
 */
static int ping_next(struct ping *p, bool by_mads, u64 *seq, u32 *bytes)
{
	struct datagrams *q = by_mads ? &p->mads : &p->data;
	struct datagram d = { .data = NULL };
	bool mine = false;
	int n;

	while (!mine && (n = datagrams_take(q, &d)) > 0) {
		*bytes = d.len;
		mine = gid_equal(&d.from, &p->peer.gid) &&
		       (by_mads ? ping_read_mad(p, &d, seq) : ping_read_datagram(p, &d, seq));
	}
	/* return the slot of the answer */
	if (mine)
		n = datagrams_give_back(q, &d);
	return n < 0 ? n : mine;
}

static void ping_answered(struct ping *p, u64 seq, u32 bytes)
{
	const u64 now_ns = clock_now_ns();
	u64 *sent_ns = &p->sent_ns[seq % WINDOW];

	if (seq >= p->result.sent || p->result.sent - seq > WINDOW)
		return;
	if (!*sent_ns) {
		p->result.duplicates++;
	} else {
		p->result.received++;
		histogram_add(&p->result.rtt, now_ns - *sent_ns);
	}
	if (!p->options->quiet) {
		printf("%u bytes from %s: seq=%llu", bytes, p->peer.text,
		       (unsigned long long)seq + 1);
		if (*sent_ns)
			printf(" time=%.3f ms\n", (double)(now_ns - *sent_ns) / 1e6);
		else
			printf(" (DUP!)\n");
		fflush(stdout);
	}
	*sent_ns = 0;
}

/* ---- round trips ---- */

static int ping_send_one(struct ping *p, bool by_mads)
{
	const u64 seq = p->result.sent;
	int err;

	p->sent_ns[seq % WINDOW] = clock_now_ns();
	err = by_mads ? ping_send_mad(p, seq) : ping_send_datagram(p, seq, p->options->size);
	/* a full send queue counts as a loss, like a full queue on the path */
	if (err && err != -EAGAIN)
		return err;
	p->result.sent++;
	return 0;
}

/* Returns whether the run is over: stopped, past its deadline, all answered or timed out. */
static bool ping_is_over(const struct ping *p, u64 begun_ns, u64 last_ns, u64 now_ns)
{
	const struct ping_options *o = p->options;

	if (stop_requested() || (o->deadline_ns && now_ns - begun_ns >= o->deadline_ns))
		return true;
	return o->count && p->result.sent == o->count &&
	       (p->result.received >= o->count || now_ns - last_ns >= o->timeout_ns);
}

static int ping_round_trips(struct ping *p, bool by_mads)
{
	const struct ping_options *o = p->options;
	const u64 begun_ns = clock_now_ns();
	u64 now_ns = begun_ns, next_ns = begun_ns, last_ns = begun_ns, seq;
	u32 bytes;
	int n = 0;

	while (n >= 0 && !ping_is_over(p, begun_ns, last_ns, now_ns)) {
		const bool more = !o->count || p->result.sent < o->count;

		if (o->quiet)
			terminal_say("xroce ping: %llu sent, %llu received",
				     (unsigned long long)p->result.sent,
				     (unsigned long long)p->result.received);
		if (more && now_ns >= next_ns) {
			last_ns = now_ns;
			next_ns = max_u64(next_ns + o->interval_ns, now_ns);
			n = ping_send_one(p, by_mads);
			continue;
		}
		while ((n = ping_next(p, by_mads, &seq, &bytes)) > 0)
			ping_answered(p, seq, bytes);
		now_ns = clock_now_ns();
		if (!n && !ping_is_over(p, begun_ns, last_ns, now_ns)) {
			u64 until_ns = more ? next_ns : last_ns + o->timeout_ns;

			if (o->deadline_ns)
				until_ns = min_u64(until_ns, begun_ns + o->deadline_ns);
			if (until_ns > now_ns)
				datagrams_wait(by_mads ? &p->mads : &p->data, until_ns - now_ns);
		}
		now_ns = clock_now_ns();
	}
	p->result.elapsed_ns = clock_now_ns() - begun_ns;
	return n < 0 ? n : 0;
}

/* ---- the server's queue pair, and datagram sizes ---- */

/*
 * Waits TRY_NS at most for the answer with number want. Returns 1, 0 or -EIO. A MAD answer with
 * another number also sets server_qpn or is_refused.
 */
static int ping_await(struct ping *p, bool by_mads, u64 want)
{
	const u64 end_ns = clock_now_ns() + TRY_NS;
	u64 seq, now_ns;
	u32 bytes;
	int n;

	while ((now_ns = clock_now_ns()) < end_ns && !stop_requested()) {
		while ((n = ping_next(p, by_mads, &seq, &bytes)) > 0)
			if (seq == want)
				return 1;
		if (n < 0)
			return n;
		datagrams_wait(by_mads ? &p->mads : &p->data, end_ns - now_ns);
	}
	return 0;
}

/* Sequence numbers outside the round trips', so that late answers are not confused with these. */
#define ASIDE (1ull << 40)

/* Asks for a server. Sets server_qpn or is_refused, or neither without an answer. */
static int ping_find_server(struct ping *p)
{
	int n = 0;

	for (u32 i = 0; i < TRIES && n == 0 && !stop_requested(); i++) {
		n = ping_send_mad(p, ASIDE + i);
		if (!n)
			n = ping_await(p, true, ASIDE + i);
	}
	return n < 0 ? n : 0;
}

/* Returns whether a datagram of that size is echoed: 1, 0 or -EIO. */
static int ping_try(struct ping *p, u32 bytes, u64 *seq)
{
	int n = 0;

	for (u32 i = 0; i < TRIES && n == 0 && !stop_requested(); i++) {
		n = ping_send_datagram(p, ++*seq, bytes);
		if (!n)
			n = ping_await(p, false, *seq);
	}
	return n;
}

/* Tries path MTUs upwards to the device's; a size too large for the path is lost and costs 1 s. */
static int ping_find_mtu(struct ping *p)
{
	u64 seq = ASIDE;
	int n = 1;

	for (u32 mtu = 256; mtu <= p->dev.mtu && n > 0; mtu *= 2) {
		terminal_say("xroce ping: trying datagrams of %u bytes", mtu);
		n = ping_try(p, mtu, &seq);
		if (n > 0)
			p->result.path_mtu = mtu;
	}
	terminal_say(NULL);
	p->result.mtu_is_measured = n > 0 || (!n && !stop_requested());
	return n < 0 ? n : 0;
}

/* ---- the whole run ---- */

/* Reports that the verb and object `what` failed. Returns PING_ERROR. */
static int ping_failed(const struct ping *p, const char *what, int err)
{
	char name[OUTPUT_NAME];

	fprintf(stderr, "xroce ping: cannot %s on %s: %s\n", what, output_name(p->dev.name, name),
		strerror(-err));
	return PING_ERROR;
}

static int ping_open(struct ping *p)
{
	char name[OUTPUT_NAME];
	int err;

	err = datagrams_make(&p->dev, true, XROCE_CM_QKEY, CM_MAD_BYTES, &p->mads);
	if (err)
		return ping_failed(p, "create QP 1", err);
	err = -verbs.cm_place(p->dev.ctx, &p->first_id, &p->num_ids);
	if (err)
		return ping_failed(p, "allocate communication IDs", err);
	err = datagrams_make(&p->dev, false, PING_QKEY, DATAGRAM_MOST, &p->data);
	if (err)
		return ping_failed(p, "create a queue pair", err);
	p->ah = device_create_ah(&p->dev, &p->peer.gid);
	if (p->ah)
		return PING_ANSWERED;
	err = -errno;
	fprintf(stderr, "xroce ping: cannot reach %s through %s: %s\n", p->peer.text,
		output_name(p->dev.name, name), strerror(-err));
	return err == -EHOSTUNREACH || err == -ETIMEDOUT ? PING_SILENT : PING_ERROR;
}

static void ping_close(struct ping *p)
{
	if (p->mads.qp)
		datagrams_settle(&p->mads);
	if (p->data.qp)
		datagrams_settle(&p->data);
	if (p->ah)
		verbs.destroy_ah(p->ah);
	datagrams_free(&p->data);
	datagrams_free(&p->mads);
	device_close(&p->dev);
}

/* Finds the server, since nothing else echoes datagrams. */
static int ping_need_server(struct ping *p)
{
	int err = ping_find_server(p);

	if (err)
		return ping_failed(p, "look for a server", err);
	if (p->server_qpn)
		return PING_ANSWERED;
	if (!p->is_refused) {
		fprintf(stderr, "xroce ping: no answer from %s\n", p->peer.text);
		return PING_SILENT;
	}
	fprintf(stderr,
		"xroce ping: %s does not run 'xroce ping --server', which -s needs; without -s its "
		"connection manager answers\n",
		p->peer.text);
	return PING_ERROR;
}

static int ping_run(struct ping *p)
{
	struct ping_result *r = &p->result;
	char name[OUTPUT_NAME];
	int ret, err;

	r->by_mads = !p->options->size;
	r->bytes = r->by_mads ? CM_MAD_BYTES : p->options->size;
	if (r->bytes > p->dev.mtu) {
		fprintf(stderr,
			"xroce ping: a datagram can have at most %u bytes on %s, because its MTU "
			"is %u\n",
			p->dev.mtu, output_name(p->dev.name, name), p->peer.dev.mtu);
		return PING_ERROR;
	}
	ret = r->by_mads ? PING_ANSWERED : ping_need_server(p);
	if (ret)
		return ret;
	if (!p->options->json) {
		printf("xroce ping %s from %s (%s): %u bytes%s\n", p->peer.text, p->peer.local_text,
		       output_name(p->dev.name, name), r->bytes,
		       r->by_mads ? ", to its connection manager" : ", to 'xroce ping --server'");
		fflush(stdout);
	}
	err = ping_round_trips(p, r->by_mads);
	r->has_server = p->server_qpn;
	terminal_say(NULL);
	r->link_mtu = p->peer.dev.mtu;
	r->route_mtu = peer_route_mtu(&p->peer);
	r->path_mtu_most = min_u32(p->dev.mtu, netdev_path_mtu(r->route_mtu ? r->route_mtu : 65535,
							       true));
	if (!err && r->received && r->has_server)
		err = ping_find_mtu(p);
	ping_print(p->options, &p->peer, r);
	p->is_printed = true;
	if (err)
		return ping_failed(p, "measure round trips", err);
	return r->received ? PING_ANSWERED : PING_SILENT;
}

int ping_client(const struct ping_options *options)
{
	struct ping *p = calloc(1, sizeof(*p));
	int ret = PING_ERROR;

	if (!p || getrandom(&p->session, sizeof(p->session), 0) != sizeof(p->session)) {
		fprintf(stderr, "xroce ping: cannot begin a session: %s\n", strerror(errno));
		free(p);
		return ret;
	}
	stop_catch_signals();
	p->options = options;
	if (!peer_find(&command_ping, options->peer, options->family, options->iface, &p->peer) &&
	    !setenv(NETDEV_ENV, p->peer.dev.name, 1) && !verbs_load(&command_ping) &&
	    !device_open(&command_ping, p->peer.dev.name, &p->peer.local, &p->dev)) {
		ret = ping_open(p);
		if (!ret)
			ret = ping_run(p);
	}
	/* a reader of JSON gets a document after an error too */
	if (options->json && !p->is_printed)
		ping_print(options, &p->peer, &p->result);
	ping_close(p);
	free(p);
	return ret;
}
