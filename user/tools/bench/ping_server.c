/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce ping --server: owns QP 1 of an interface, or shares it as a broker's client. It answers
 * pings with its echo QP, rejects all other CM messages like a host without listeners, and echoes
 * datagrams. It answers requests only, so that two servers cannot loop.
 */
#include <stdlib.h>

#include "../../os/clock.h"
#include "ping.h"

/* Number of cached address handles, and their lifetime: a neighbour's MAC may change. */
#define HANDLES	  64u
#define HANDLE_NS (2 * NSEC_PER_SEC)
#define WAIT_NS	  (500 * NSEC_PER_MSEC)

struct ping_handle {
	struct gid peer;
	struct ibv_ah *ah;
	u64 made_ns;
};

struct ping_server {
	struct netdev netdev;
	struct device dev;
	struct datagrams mads, data;
	/* shared by both queue pairs */
	struct ping_handle handle[HANDLES];
	u32 next_handle;
	u64 answered, refused, echoed;
	u8 buffer[DATAGRAM_MOST];
};

static void ping_drop_handle(struct ping_server *s, struct ping_handle *h)
{
	if (!h->ah)
		return;
	datagrams_settle(&s->mads);
	datagrams_settle(&s->data);
	verbs.destroy_ah(h->ah);
	h->ah = NULL;
}

/* Returns the address handle to answer a datagram, or NULL without a route. */
static struct ibv_ah *ping_answer_handle(struct ping_server *s, struct datagram *d)
{
	const u64 now_ns = clock_now_ns();
	struct ping_handle *h = NULL;

	for (u32 i = 0; i < HANDLES && !h; i++)
		if (s->handle[i].ah && gid_equal(&s->handle[i].peer, &d->from))
			h = &s->handle[i];
	if (h && now_ns - h->made_ns < HANDLE_NS)
		return h->ah;
	if (!h)
		h = &s->handle[s->next_handle++ % HANDLES];
	ping_drop_handle(s, h);
	h->peer = d->from;
	h->made_ns = now_ns;
	h->ah = verbs.create_ah_from_wc(s->dev.pd, &d->wc,
					(struct ibv_grh *)(d->data - DATAGRAM_GRH), 1);
	return h->ah;
}

/* ---- received messages ---- */

static void ping_take_mad(struct ping_server *s, struct datagram *d)
{
	u8 answer[CM_MAD_BYTES];
	struct cm_mad m, reply;
	struct ibv_ah *ah;

	if (d->wc.src_qp != 1 || cm_mad_decode(&m, d->data, d->len) != CM_DROP_none ||
	    !cm_refuse(&m, &reply))
		return;
	if (m.kind == CM_SIDR_REQ && m.sidr_req.service_id == PING_SERVICE) {
		reply.sidr_rep.status = CM_SIDR_VALID;
		reply.sidr_rep.qpn = s->data.qp->qp_num;
		reply.sidr_rep.qkey = PING_QKEY;
		s->answered++;
	} else {
		s->refused++;
	}
	ah = ping_answer_handle(s, d);
	cm_mad_encode(answer, &reply);
	if (ah)
		datagrams_send(&s->mads, ah, 1, answer, sizeof(answer));
}

static void ping_take_datagram(struct ping_server *s, struct datagram *d)
{
	struct ibv_ah *ah;
	u64 session, seq;

	if (d->len > sizeof(s->buffer) ||
	    !ping_check(d->data, d->len, PING_REQUEST, &session, &seq))
		return;
	ah = ping_answer_handle(s, d);
	if (!ah)
		return;
	ping_fill(s->buffer, d->len, PING_REPLY, session, seq);
	if (!datagrams_send(&s->data, ah, d->wc.src_qp, s->buffer, d->len))
		s->echoed++;
}

static int ping_serve(struct ping_server *s)
{
	struct datagram mad = { .data = NULL }, data = { .data = NULL };
	int n = 0, m = 0;

	while (!stop_requested()) {
		n = datagrams_take(&s->mads, &mad);
		if (n > 0)
			ping_take_mad(s, &mad);
		m = datagrams_take(&s->data, &data);
		if (m > 0)
			ping_take_datagram(s, &data);
		if (n < 0 || m < 0)
			return -EIO;
		if (!n && !m)
			datagrams_wait_both(&s->mads, &s->data, WAIT_NS);
	}
	return 0;
}

/* ---- setup and end ---- */

/* Chooses the named interface, or the first that is up and has an address. */
static int ping_choose(const struct ping_options *options, struct netdev *out)
{
	struct netdev *all;
	int n;

	if (options->iface)
		return find_device(&command_ping, options->iface, out);
	n = netdev_list(&all);
	if (n > 0 && all[0].is_up && all[0].num_gids) {
		*out = all[0];
		free(all);
		return EXIT_OK;
	}
	if (n >= 0)
		free(all);
	fprintf(stderr, "xroce ping: no interface is up and has an address\n");
	return EXIT_FAILED;
}

static int ping_server_open(struct ping_server *s)
{
	const struct xroce_cm_service service = {
		.id = PING_SERVICE,
		.families = XROCE_CM_IPV4 | XROCE_CM_IPV6,
	};
	int err = datagrams_make(&s->dev, true, XROCE_CM_QKEY, CM_MAD_BYTES, &s->mads);
	char name[OUTPUT_NAME];

	if (!err)
		err = datagrams_make(&s->dev, false, PING_QKEY, DATAGRAM_MOST, &s->data);
	if (!err)
		err = -verbs.cm_bind(s->dev.ctx, &service);
	if (err)
		fprintf(stderr, "xroce ping: cannot serve %s: %s\n",
			output_name(s->dev.name, name),
			err == -EADDRINUSE ? "another 'xroce ping --server' is running" :
					     strerror(-err));
	return err;
}

static void ping_server_close(struct ping_server *s)
{
	for (u32 i = 0; i < HANDLES; i++)
		ping_drop_handle(s, &s->handle[i]);
	datagrams_free(&s->data);
	datagrams_free(&s->mads);
	device_close(&s->dev);
}

int ping_server(const struct ping_options *options)
{
	struct ping_server *s = calloc(1, sizeof(*s));
	int ret = PING_ERROR, err;
	char name[OUTPUT_NAME];

	if (!s)
		return ret;
	stop_catch_signals();
	if (!ping_choose(options, &s->netdev) && !setenv(NETDEV_ENV, s->netdev.name, 1) &&
	    !verbs_load(&command_ping) &&
	    !device_open(&command_ping, s->netdev.name, &s->netdev.gid[0].gid, &s->dev) &&
	    !ping_server_open(s)) {
		printf("xroce ping: answering on %s\n", output_name(s->dev.name, name));
		fflush(stdout);
		err = ping_serve(s);
		printf("%llu answered, %llu others refused, %llu datagrams echoed\n",
		       (unsigned long long)s->answered, (unsigned long long)s->refused,
		       (unsigned long long)s->echoed);
		if (err)
			fprintf(stderr, "xroce ping: cannot receive on %s: %s\n",
				output_name(s->dev.name, name), strerror(-err));
		ret = err ? PING_ERROR : PING_ANSWERED;
	}
	ping_server_close(s);
	free(s);
	return ret;
}
