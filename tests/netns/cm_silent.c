/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One thread that accepts connections, and peers that do not answer ARP, or no longer do.
 * mad_peer.c sends the requests of the silent peers.
 *
 *	cm_silent ADDRESS serves [PEER]	prints "asked by ADDRESS" for each request, and accepts it
 *					(with PEER, only a request of that address)
 *	cm_silent ADDRESS holds		the same with one request, accepted by SIGUSR1
 *	cm_silent ADDRESS connects	connects, prints "connected", and exits
 *	cm_silent ADDRESS makes SILENT	makes an address handle of SILENT in another thread, which
 *					fails; at the same time handles of ADDRESS, its own, and of
 *					senders of datagrams with the address SILENT, which fail
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "cm_slow.h"
#include "lib/cm.h"
#include "lib/ctl.h"

static const char *address;
static sigset_t usr1;

static void say(const char *what, const char *of)
{
	printf("%s%s\n", what, of);
	fflush(stdout);
}

/* Prints the peer of a request. Returns whether to accept it. */
static bool is_served(struct rdma_cm_id *id, const char *peer)
{
	const struct sockaddr_in *from = (const struct sockaddr_in *)rdma_get_peer_addr(id);
	char text[INET_ADDRSTRLEN];

	must(inet_ntop(AF_INET, &from->sin_addr, text, sizeof(text)), "no address");
	say("asked by ", text);
	return !peer || !strcmp(peer, text);
}

static void serve(const char *peer, bool holds)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *listener = cm_listener(ch, address, SLOW_PORT, RDMA_PS_TCP, 0);
	struct rdma_cm_event *ev;
	int sig;

	say("listening", "");
	for (;;) {
		must(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event: %s", strerror(errno));
		if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST && is_served(ev->id, peer)) {
			must(ev->listen_id == listener, "another listener");
			must(!holds || !sigwait(&usr1, &sig), "sigwait");
			cm_make_qp(ev->id);
			must(!rdma_accept(ev->id, &param), "rdma_accept: %s", strerror(errno));
			say("accepted", "");
		}
		must(!rdma_ack_cm_event(ev), "rdma_ack_cm_event");
	}
}

static void connects(void)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id = cm_resolved(ch, address, SLOW_PORT, RDMA_PS_TCP);

	cm_make_qp(id);
	must(!rdma_connect(id, &param), "rdma_connect: %s", strerror(errno));
	cm_pass(ch, RDMA_CM_EVENT_ESTABLISHED);
	say("connected", "");
	cm_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* ---- a verb that waits for a neighbour delays no other verb ---- */

static struct {
	struct ibv_pd *pd;
	struct ibv_ah_attr silent;
	atomic_bool is_over;
	int err;
} waiting;

static void *wait_for_silent(void *arg)
{
	(void)arg;
	waiting.err = ibv_create_ah(waiting.pd, &waiting.silent) ? 0 : errno;
	atomic_store(&waiting.is_over, true);
	return NULL;
}

static void set_gid(struct ibv_ah_attr *attr, const char *text)
{
	*attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
	attr->grh.dgid.raw[10] = attr->grh.dgid.raw[11] = 0xff;
	must(inet_pton(AF_INET, text, attr->grh.dgid.raw + 12) == 1, "no address: %s", text);
}

/* The header of a datagram from one IPv4 address to another, as a UD QP receives it. */
static void set_grh(struct ibv_grh *grh, const char *from, const char *to)
{
	uint8_t *ip = (uint8_t *)grh + 20;
	uint32_t sum = 0;

	memset(grh, 0, sizeof(*grh));
	ip[0] = 0x45;
	must(inet_pton(AF_INET, from, ip + 12) == 1, "no address: %s", from);
	must(inet_pton(AF_INET, to, ip + 16) == 1, "no address: %s", to);
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

static void makes(const char *silent)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id = cm_resolved(ch, address, SLOW_PORT, RDMA_PS_TCP);
	struct ibv_ah_attr own;
	struct ibv_grh grh;
	pthread_t thread;

	must((waiting.pd = ibv_alloc_pd(id->verbs)), "ibv_alloc_pd: %s", strerror(errno));
	set_gid(&waiting.silent, silent);
	set_gid(&own, address);
	must(!pthread_create(&thread, NULL, wait_for_silent, NULL), "pthread_create");
	for (int i = 0; i < 100; i++) {
		struct ibv_ah *ah = ibv_create_ah(waiting.pd, &own);

		must(ah, "ibv_create_ah: %s", strerror(errno));
		must(!ibv_destroy_ah(ah), "ibv_destroy_ah");
	}
	must(!atomic_load(&waiting.is_over), "the silent address failed before others were made");
	/* the wait for a sender that may be forged is shorter, and not repeated */
	set_grh(&grh, silent, address);
	for (int i = 0; i < 8; i++)
		must(!ibv_create_ah_from_wc(waiting.pd, &wc, &grh, 1) && errno == EHOSTUNREACH,
		     "a silent sender: %s", strerror(errno));
	must(!atomic_load(&waiting.is_over), "the silent address failed before its datagrams did");
	must(!pthread_join(thread, NULL), "pthread_join");
	must(waiting.err == EHOSTUNREACH, "a silent address: %s", strerror(waiting.err));
	must(!ibv_dealloc_pd(waiting.pd), "ibv_dealloc_pd");
	cm_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

int main(int argc, char **argv)
{
	must(argc == 3 || argc == 4, "usage: cm_silent ADDRESS CASE [PEER]");
	address = argv[1];
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	must(!pthread_sigmask(SIG_BLOCK, &usr1, NULL), "pthread_sigmask");
	if (!strcmp(argv[2], "serves"))
		serve(argc == 4 ? argv[3] : NULL, false);
	else if (!strcmp(argv[2], "holds"))
		serve(NULL, true);
	else if (!strcmp(argv[2], "connects"))
		connects();
	else if (!strcmp(argv[2], "makes") && argc == 4)
		makes(argv[3]);
	else
		die("no case %s", argv[2]);
	return 0;
}
