/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that exits with its device open, while threads wait for events: as with an adapter,
 * none of them gets an event or an error by that.
 *
 *	exit_waiting -d DEVICE
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"

static struct ibv_context *ctx;
static struct ibv_comp_channel *channel;

/* Does not return. */
static void woken(const char *call, int ret)
{
	fprintf(stderr, "%s returned %d (%s)\n", call, ret, strerror(errno));
	_exit(3);
}

static void *wait_for_completion(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	woken("ibv_get_cq_event", ibv_get_cq_event(channel, &cq, &context));
	return NULL;
}

static void *wait_for_async(void *arg)
{
	struct ibv_async_event event;

	woken("ibv_get_async_event", ibv_get_async_event(ctx, &event));
	return NULL;
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	pthread_t thread;

	must(argc == 3 && !strcmp(argv[1], "-d"), "usage: exit_waiting -d DEVICE");
	ctx = open_device(argv[2]);
	pd = ibv_alloc_pd(ctx);
	channel = ibv_create_comp_channel(ctx);
	cq = channel ? ibv_create_cq(ctx, 4, NULL, channel, 0) : NULL;
	init.send_cq = init.recv_cq = cq;
	must(pd && cq && ibv_create_qp(pd, &init) && !ibv_req_notify_cq(cq, 0), "no QP: %s",
	     strerror(errno));
	must(!pthread_create(&thread, NULL, wait_for_completion, NULL) &&
		     !pthread_create(&thread, NULL, wait_for_async, NULL),
	     "no thread");
	usleep(20 * 1000);
	puts("exits");
	return 0;
}
