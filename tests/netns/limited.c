/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that asks its broker for more than there is:
 *
 *	limited DEVICE qps N		N QPs, and one more
 *	limited DEVICE channels N	N + 1 channels that each have a CQ with a QP
 *	limited DEVICE hold		has a QP; says `holds`, sleeps
 *	limited DEVICE port		has no port: an error
 *
 * A refused QP gives ENOMEM, twice; the existing ones then work, and a destroyed one leaves room
 * for another.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;

static struct ibv_qp *make_qp(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
					 .cap = { 1, 1, 1, 1, 0 } };

	return ibv_create_qp(pd, &init);
}

static struct ibv_cq *make_cq(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, channel, 0);

	must(cq, "ibv_create_cq: %s", strerror(errno));
	return cq;
}

static struct ibv_comp_channel *make_channel(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);

	must(channel, "ibv_create_comp_channel: %s", strerror(errno));
	return channel;
}

static void refused(struct ibv_cq *cq)
{
	for (int i = 0; i < 2; i++)
		must(!make_qp(cq) && errno == ENOMEM, "one more: %s", strerror(errno));
}

static void qps(int n)
{
	struct ibv_cq *cq = make_cq(NULL);
	struct ibv_qp *qp = NULL;

	for (int i = 0; i < n; i++)
		must((qp = make_qp(cq)), "QP %d: %s", i, strerror(errno));
	refused(cq);
	must(!ibv_destroy_qp(qp) && make_qp(cq), "one for another: %s", strerror(errno));
	refused(cq);
}

/* Their rings are limited, they are not. */
static void channels(int n)
{
	struct ibv_cq *cq;

	for (int i = 0; i <= n; i++) {
		cq = make_cq(make_channel());
		must(make_qp(cq), "channel %d: %s", i, strerror(errno));
		must(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	const int n = argc > 3 ? atoi(argv[3]) : 0;

	must(argc > 2, "usage: limited DEVICE qps N|channels N|hold|port");
	ctx = open_device(argv[1]);
	must((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd");
	if (!strcmp(what, "qps")) {
		qps(n);
	} else if (!strcmp(what, "channels")) {
		channels(n);
	} else if (!strcmp(what, "port")) {
		must(!make_qp(make_cq(NULL)) && errno == ENOSPC, "a port: %s", strerror(errno));
	} else {
		must(make_qp(make_cq(NULL)), "ibv_create_qp: %s", strerror(errno));
		puts("holds");
		fflush(stdout);
		pause();
	}
	printf("limited: %s\n", what);
	return 0;
}
