/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One thread that accepts connections, and peers that do not answer ARP or neighbour discovery, or
 * no longer do.
 * mad_peer.c sends the requests of the silent peers.
 *
 *	cm_silent ADDRESS serves [PEER]	prints "asked by ADDRESS" for each request, and accepts it
 *					(with PEER, only a request of that address)
 *	cm_silent ADDRESS holds		the same with one request, accepted by SIGUSR1
 *					within ACCEPT_MS
 *	cm_silent ADDRESS connects	connects, prints "connected", and exits
 *	cm_silent ADDRESS makes SILENT	makes an address handle of SILENT in another thread, which
 *					fails; at the same time handles of ADDRESS, its own, and of
 *					senders of datagrams with the address SILENT, which fail
 *	cm_silent ADDRESS repeats SILENT OTHER HONEST	makes address handles of two silent
 *					addresses, twice each, and moves a QP to RTR; the first
 *					attempt waits for the neighbour. HONEST, whose MAC the
 *					kernel does not know, works then
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

#define ACCEPT_MS 1000
#define AGAIN_MS  100

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
	const struct sockaddr *from = rdma_get_peer_addr(id);
	const void *bytes = from->sa_family == AF_INET ?
				    (const void *)&((const struct sockaddr_in *)from)->sin_addr :
				    &((const struct sockaddr_in6 *)from)->sin6_addr;
	char text[INET6_ADDRSTRLEN];

	must(inet_ntop(from->sa_family, bytes, text, sizeof(text)), "no address");
	say("asked by ", text);
	return !peer || !strcmp(peer, text);
}

/* Accepts a request: no call waits for a peer, silent or not. */
static void accept_in_time(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	const uint64_t began_ms = now_ms();
	uint64_t took_ms;

	must(!rdma_accept(id, &param), "rdma_accept: %s", strerror(errno));
	took_ms = now_ms() - began_ms;
	must(took_ms < ACCEPT_MS, "rdma_accept took %d ms", (int)took_ms);
}

static void serve(const char *peer, bool holds)
{
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
			accept_in_time(ev->id);
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
	if (inet_pton(AF_INET6, text, attr->grh.dgid.raw) == 1)
		return;
	attr->grh.dgid.raw[10] = attr->grh.dgid.raw[11] = 0xff;
	must(inet_pton(AF_INET, text, attr->grh.dgid.raw + 12) == 1, "no address: %s", text);
}

/* The header of a datagram from one address to another, as a UD QP receives it. */
static void set_grh(struct ibv_grh *grh, const char *from, const char *to)
{
	uint8_t *ip = (uint8_t *)grh + 20;
	uint32_t sum = 0;

	memset(grh, 0, sizeof(*grh));
	if (inet_pton(AF_INET6, from, grh->sgid.raw) == 1) {
		grh->version_tclass_flow = htonl(6u << 28);
		must(inet_pton(AF_INET6, to, grh->dgid.raw) == 1, "no address: %s", to);
		return;
	}
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

/* Fails to make a handle of the sender of a datagram. */
static void fail_sender(struct ibv_pd *pd, const char *silent)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_grh grh;

	set_grh(&grh, silent, address);
	must(!ibv_create_ah_from_wc(pd, &wc, &grh, 1) && errno == EHOSTUNREACH,
	     "a silent sender: %s", strerror(errno));
}

static void makes(const char *silent)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id = cm_resolved(ch, address, SLOW_PORT, RDMA_PS_TCP);
	struct ibv_ah_attr own;
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
	for (int i = 0; i < 8; i++)
		fail_sender(waiting.pd, silent);
	must(!atomic_load(&waiting.is_over), "the silent address failed before its datagrams did");
	must(!pthread_join(thread, NULL), "pthread_join");
	must(waiting.err == EHOSTUNREACH, "a silent address: %s", strerror(waiting.err));
	must(!ibv_dealloc_pd(waiting.pd), "ibv_dealloc_pd");
	cm_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* ---- a silent neighbour is not waited for again ---- */

/* Returns the index of the GID that an address is. */
static uint8_t gid_index_of(struct ibv_context *context, const char *text)
{
	struct ibv_ah_attr own;
	union ibv_gid gid;

	set_gid(&own, text);
	for (int i = 0; i < 256 && !ibv_query_gid(context, 1, i, &gid); i++)
		if (!memcmp(gid.raw, own.grh.dgid.raw, sizeof(gid.raw)))
			return (uint8_t)i;
	die("no GID of %s", text);
}

/* Fails to make a handle of a silent address. Returns the milliseconds that this took. */
static uint64_t fail_ah(struct ibv_pd *pd, const char *silent, uint8_t sgid_index)
{
	const uint64_t began_ms = now_ms();
	struct ibv_ah_attr attr;

	set_gid(&attr, silent);
	attr.grh.sgid_index = sgid_index;
	must(!ibv_create_ah(pd, &attr) && errno == EHOSTUNREACH, "a handle of %s: %s", silent,
	     strerror(errno));
	return now_ms() - began_ms;
}

/* The same by ibv_modify_qp() to RTR. */
static uint64_t fail_rtr(struct ibv_qp *qp, const char *silent, uint8_t sgid_index)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	const int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	uint64_t began_ms;
	int err;

	must(!ibv_modify_qp(qp, &attr, to_init), "to INIT");
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = IBV_MTU_1024,
				     .dest_qp_num = 0x1234,
				     .max_dest_rd_atomic = 1 };
	set_gid(&attr.ah_attr, silent);
	attr.ah_attr.grh.sgid_index = sgid_index;
	began_ms = now_ms();
	err = ibv_modify_qp(qp, &attr, to_rtr);
	must(err == EHOSTUNREACH, "a QP of %s: %s", silent, strerror(err));
	return now_ms() - began_ms;
}

static void make_ah(struct ibv_pd *pd, const char *honest, uint8_t sgid_index)
{
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	set_gid(&attr, honest);
	attr.grh.sgid_index = sgid_index;
	ah = ibv_create_ah(pd, &attr);
	must(ah, "a handle of %s: %s", honest, strerror(errno));
	must(!ibv_destroy_ah(ah), "ibv_destroy_ah");
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq **cq)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp;

	*cq = ibv_create_cq(pd->context, 2, NULL, NULL, 0);
	must(*cq, "ibv_create_cq: %s", strerror(errno));
	attr.send_cq = attr.recv_cq = *cq;
	qp = ibv_create_qp(pd, &attr);
	must(qp, "ibv_create_qp: %s", strerror(errno));
	return qp;
}

static void repeats(const char *silent, const char *other, const char *honest)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id = cm_resolved(ch, address, SLOW_PORT, RDMA_PS_TCP);
	const uint8_t index = gid_index_of(id->verbs, address);
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint64_t ms;

	must(pd, "ibv_alloc_pd: %s", strerror(errno));
	qp = make_qp(pd, &cq);
	/* a datagram, which may be forged, does not shorten the wait */
	fail_sender(pd, silent);
	ms = fail_ah(pd, silent, index);
	must(ms >= AGAIN_MS, "the neighbour was waited for %d ms only", (int)ms);
	ms = fail_ah(pd, silent, index);
	must(ms < AGAIN_MS, "the same neighbour took %d ms", (int)ms);
	ms = fail_rtr(qp, silent, index);
	must(ms < AGAIN_MS, "the same neighbour took a QP %d ms", (int)ms);
	/* of another one it is not known: a tenth of a second, and the kernel's answer */
	ms = fail_ah(pd, other, index);
	must(ms < 10 * AGAIN_MS, "another neighbour took %d ms", (int)ms);
	ms = fail_ah(pd, other, index);
	must(ms < AGAIN_MS, "another neighbour took %d ms the second time", (int)ms);
	make_ah(pd, honest, index);
	must(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd), "destroying");
	cm_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

int main(int argc, char **argv)
{
	must(argc >= 3 && argc <= 6, "usage: cm_silent ADDRESS CASE [PEER...]");
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
	else if (!strcmp(argv[2], "repeats") && argc == 6)
		repeats(argv[3], argv[4], argv[5]);
	else
		die("no case %s", argv[2]);
	return 0;
}
