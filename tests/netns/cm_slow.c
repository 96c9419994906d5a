/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program on librdmacm that takes its time, with mad_peer.c at the other end:
 *
 *	cm_slow ADDRESS accepts		gets a request, prints "asked", and accepts on SIGUSR1
 *	cm_slow ADDRESS establishes	sends one, prints "answered", and establishes on SIGUSR1
 *	cm_slow ADDRESS serves		accepts all requests, and prints "connected" for each
 *	cm_slow ADDRESS hesitates	gets a request, prints "asked", and exits on SIGUSR1
 *
 * or with a separate service, unknown to mad_peer.c:
 *
 *	cm_slow ADDRESS is_left		accepts one, says "connected", and ends when it is
 *					disconnected
 *	cm_slow ADDRESS stays		connects, says "connected", and ends when it is disconnected
 *
 * librdmacm does not know its QPs, so it exchanges their parameters itself.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cm_slow.h"
#include "lib/cm.h"
#include "lib/ctl.h"

static const char *address;
static sigset_t usr1;

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static void wait_for_usr1(void)
{
	int sig;

	must(!sigwait(&usr1, &sig), "sigwait");
}

static void set_ece(struct rdma_cm_id *id)
{
	struct ibv_ece ece = { .vendor_id = SLOW_ECE_VENDOR, .options = SLOW_OWN_ECE_OPTIONS };

	must(!rdma_set_local_ece(id, &ece), "rdma_set_local_ece: %s", strerror(errno));
}

static void check_ece(struct rdma_cm_id *id)
{
	struct ibv_ece ece = { 0 };

	must(!rdma_get_remote_ece(id, &ece), "rdma_get_remote_ece: %s", strerror(errno));
	must(ece.vendor_id == SLOW_ECE_VENDOR && ece.options == SLOW_ECE_OPTIONS,
	     "ECE of vendor %#x, options %#x", ece.vendor_id, ece.options);
}

static struct rdma_cm_id *wait_for_request(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *ev = cm_expect(ch, CONNECT_REQUEST);
	struct rdma_cm_id *id = ev->id;

	must(ev->param.conn.qp_num == SLOW_PEER_QPN, "QPN %#x", ev->param.conn.qp_num);
	must(!rdma_ack_cm_event(ev), "rdma_ack_cm_event");
	return id;
}

static void accepts(void)
{
	struct rdma_conn_param param = { .qp_num = SLOW_QPN };
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *listener = cm_listener(ch, address, SLOW_PORT, RDMA_PS_TCP, 0), *id;

	say("listening");
	id = wait_for_request(ch);
	check_ece(id);
	set_ece(id);
	say("asked");
	wait_for_usr1();
	must(!rdma_accept(id, &param), "rdma_accept: %s", strerror(errno));
	cm_pass(ch, RDMA_CM_EVENT_ESTABLISHED);
	cm_pass(ch, RDMA_CM_EVENT_DISCONNECTED);
	cm_destroy_id(id);
	cm_destroy_id(listener);
	rdma_destroy_event_channel(ch);
}

static void establishes(void)
{
	struct rdma_conn_param param = { .qp_num = SLOW_QPN };
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id = cm_resolved(ch, address, SLOW_PORT, RDMA_PS_TCP);

	set_ece(id);
	must(!rdma_connect(id, &param), "rdma_connect: %s", strerror(errno));
	must(cm_pass(ch, RDMA_CM_EVENT_CONNECT_RESPONSE) == id, "another's response");
	check_ece(id);
	say("answered");
	wait_for_usr1();
	must(!rdma_establish(id), "rdma_establish: %s", strerror(errno));
	cm_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

static void serves(void)
{
	struct rdma_conn_param param = { .qp_num = SLOW_QPN };
	struct rdma_event_channel *ch = cm_channel();

	cm_listener(ch, address, SLOW_PORT, RDMA_PS_TCP, 0);
	say("listening");
	for (;;) {
		must(!rdma_accept(wait_for_request(ch), &param), "rdma_accept: %s",
		     strerror(errno));
		cm_pass(ch, RDMA_CM_EVENT_ESTABLISHED);
		say("connected");
	}
}

static void is_left(void)
{
	struct rdma_conn_param param = { .qp_num = SLOW_QPN };
	struct rdma_event_channel *ch = cm_channel();

	cm_listener(ch, address, SLOW_PORT, RDMA_PS_TCP, 0);
	say("listening");
	must(!rdma_accept(wait_for_request(ch), &param), "rdma_accept: %s", strerror(errno));
	cm_pass(ch, RDMA_CM_EVENT_ESTABLISHED);
	say("connected");
	cm_pass(ch, RDMA_CM_EVENT_DISCONNECTED);
}

static void stays(void)
{
	struct rdma_conn_param param = { .qp_num = SLOW_PEER_QPN };
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id = cm_resolved(ch, address, SLOW_PORT, RDMA_PS_TCP);

	must(!rdma_connect(id, &param), "rdma_connect: %s", strerror(errno));
	cm_pass(ch, RDMA_CM_EVENT_CONNECT_RESPONSE);
	must(!rdma_establish(id), "rdma_establish: %s", strerror(errno));
	say("connected");
	cm_pass(ch, RDMA_CM_EVENT_DISCONNECTED);
}

static void hesitates(void)
{
	struct rdma_event_channel *ch = cm_channel();

	cm_listener(ch, address, SLOW_PORT, RDMA_PS_TCP, 0);
	say("listening");
	wait_for_request(ch);
	say("asked");
	wait_for_usr1();
}

int main(int argc, char **argv)
{
	must(argc == 3, "usage: cm_slow ADDRESS CASE");
	address = argv[1];
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	must(!pthread_sigmask(SIG_BLOCK, &usr1, NULL), "pthread_sigmask");
	if (!strcmp(argv[2], "accepts"))
		accepts();
	else if (!strcmp(argv[2], "establishes"))
		establishes();
	else if (!strcmp(argv[2], "serves"))
		serves();
	else if (!strcmp(argv[2], "hesitates"))
		hesitates();
	else if (!strcmp(argv[2], "is_left"))
		is_left();
	else if (!strcmp(argv[2], "stays"))
		stays();
	else
		die("no case %s", argv[2]);
	return 0;
}
