/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port on every device but lo at once, opened and closed ROUNDS times: no descriptor may stay.
 * Then once more, with a child by fork() that does nothing; prints how many ports there are and the
 * child's pid, and both stay until they are ended.
 *
 *	many_ports ROUNDS
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/open_fds.h"
#include "lib/ctl.h"

#define DEVICES_MAX   32
#define CHILD_SECONDS 120 /* no other process ends it if the test is cut short */

struct opened {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct opened opened[DEVICES_MAX];
static unsigned int count;

/* The first object that needs packets makes the port. */
static void open_one(struct opened *o, struct ibv_device *device)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 2, 1, 1, 1, 0 } };

	o->ctx = ibv_open_device(device);
	must(o->ctx, "cannot open %s: %s", ibv_get_device_name(device), strerror(errno));
	o->pd = ibv_alloc_pd(o->ctx);
	o->cq = ibv_create_cq(o->ctx, 4, NULL, NULL, 0);
	must(o->pd && o->cq, "%s: no PD or CQ: %s", ibv_get_device_name(device), strerror(errno));
	init.send_cq = init.recv_cq = o->cq;
	o->qp = ibv_create_qp(o->pd, &init);
	must(o->qp, "%s: no QP: %s", ibv_get_device_name(device), strerror(errno));
}

static void open_all(void)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	must(list && n <= DEVICES_MAX, "ibv_get_device_list: %s", strerror(errno));
	for (count = 0; *list; list++)
		if (strcmp(ibv_get_device_name(*list), "xroce_lo"))
			open_one(&opened[count++], *list);
	ibv_free_device_list(list - n);
}

static void close_all(void)
{
	while (count--)
		must(!ibv_destroy_qp(opened[count].qp) && !ibv_destroy_cq(opened[count].cq) &&
			     !ibv_dealloc_pd(opened[count].pd) &&
			     !ibv_close_device(opened[count].ctx),
		     "cannot close device %u: %s", count, strerror(errno));
}

int main(int argc, char **argv)
{
	unsigned int before = 0, after = 0;
	pid_t child;

	must(argc == 2, "many_ports ROUNDS");
	/* the first leaves what the process keeps for good */
	for (int i = atoi(argv[1]); i > 0; i--) {
		open_all();
		close_all();
		after = open_fds();
		before = before ? before : after;
	}
	must(after == before, "%u descriptors, %u after the first round", after, before);
	open_all();
	child = fork();
	must(child >= 0, "fork: %s", strerror(errno));
	if (child == 0) {
		alarm(CHILD_SECONDS);
		for (;;)
			pause();
	}
	printf("%u ports, child %d\n", count, (int)child);
	fflush(stdout);
	for (;;)
		pause();
}
