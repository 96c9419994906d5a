/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ids that end at any time: threads connect to this process itself and destroy their ids after a
 * random step, while others take requests, accept, reject or drop them, and every id of theirs is
 * destroyed by a thread that did not take its event. It must run to its end: it finds
 * deadlocks, and with a sanitizer races. cm_stress ADDRESS ROUNDS [SEED]
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cm.h"
#include "lib/ctl.h"

#define PORT	 7471
#define CLIENTS	 4
#define TAKERS	 2
#define DROPPERS 2
#define EVENT_MS 300

static const char *address;
static int rounds;
static unsigned int seed;
static struct rdma_event_channel *requests;
static atomic_int clients_left = CLIENTS;
static int to_drop[2]; /* a pipe of ids that are to be destroyed */

/* ---- the passive side ---- */

static void *dropper_main(void *arg)
{
	struct rdma_cm_id *id;

	while (read(to_drop[0], &id, sizeof(id)) == sizeof(id))
		cm_destroy_id(id);
	return arg;
}

static void taker_answer(struct rdma_cm_id *id, unsigned int how)
{
	struct rdma_conn_param param = { .qp_num = 77 };

	if (how % 4 == 0) {
		rdma_reject(id, "no", 2);
	} else if (how % 4 > 1) {
		cm_make_qp(id);
		rdma_accept(id, &param); /* fails if the peer has exited */
	}
	must(write(to_drop[1], &id, sizeof(id)) == sizeof(id), "no pipe");
}

/* An event of an id that is in the pipe holds its end back: it is acknowledged at once. */
static void *taker_main(void *arg)
{
	unsigned int mine = seed + (unsigned int)(uintptr_t)arg;

	while (clients_left) {
		struct pollfd p = { .fd = requests->fd, .events = POLLIN };
		struct rdma_cm_event *ev;

		if (poll(&p, 1, 20) != 1)
			continue;
		if (rdma_get_cm_event(requests, &ev)) {
			must(errno == EAGAIN, "rdma_get_cm_event: %s", strerror(errno));
			continue;
		}
		if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			struct rdma_cm_id *id = ev->id;

			rdma_ack_cm_event(ev);
			taker_answer(id, (unsigned int)rand_r(&mine) >> 4);
		} else {
			rdma_ack_cm_event(ev);
		}
	}
	return NULL;
}

/* ---- the active side ---- */

/* Takes an event if one comes soon. */
static int client_event(struct rdma_event_channel *ch, enum rdma_cm_event_type *type)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };
	struct rdma_cm_event *ev;

	if (poll(&p, 1, EVENT_MS) != 1)
		return 0;
	must(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event: %s", strerror(errno));
	*type = ev->event;
	rdma_ack_cm_event(ev);
	return 1;
}

/* Steps until its time is over or no step makes progress. */
static void client_round(struct rdma_event_channel *ch, unsigned int steps)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	int err = 0;

	must(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), "rdma_create_id: %s", strerror(errno));
	if (steps--)
		err = rdma_resolve_addr(id, NULL, cm_address(address, PORT), WAIT_MS);
	while (!err && steps-- && client_event(ch, &type)) {
		if (type == RDMA_CM_EVENT_ADDR_RESOLVED) {
			err = rdma_resolve_route(id, WAIT_MS);
		} else if (type == RDMA_CM_EVENT_ROUTE_RESOLVED) {
			cm_make_qp(id);
			err = rdma_connect(id, &param);
		} else if (type == RDMA_CM_EVENT_ESTABLISHED) {
			err = rdma_disconnect(id);
		} else {
			break;
		}
	}
	must(!err, "a call failed: %s", strerror(errno));
	cm_destroy_id(id);
}

static void *client_main(void *arg)
{
	unsigned int mine = seed * 7 + (unsigned int)(uintptr_t)arg;
	struct rdma_event_channel *ch = cm_channel();

	for (int i = 0; i < rounds; i++)
		client_round(ch, (unsigned int)rand_r(&mine) / 16 % 7);
	rdma_destroy_event_channel(ch);
	clients_left--;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t client[CLIENTS], taker[TAKERS], dropper[DROPPERS];
	struct rdma_cm_id *listener;

	must(argc >= 3, "usage: cm_stress ADDRESS ROUNDS [SEED]");
	address = argv[1];
	rounds = atoi(argv[2]);
	seed = argc > 3 ? (unsigned int)atoi(argv[3]) : 1;
	must(!pipe(to_drop), "pipe");
	requests = cm_channel();
	fcntl(requests->fd, F_SETFL, O_NONBLOCK);
	listener = cm_listener(requests, address, PORT, RDMA_PS_TCP, 0);
	for (uintptr_t i = 0; i < DROPPERS; i++)
		pthread_create(&dropper[i], NULL, dropper_main, NULL);
	for (uintptr_t i = 0; i < TAKERS; i++)
		pthread_create(&taker[i], NULL, taker_main, (void *)(i + 100));
	for (uintptr_t i = 0; i < CLIENTS; i++)
		pthread_create(&client[i], NULL, client_main, (void *)i);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(client[i], NULL);
	for (int i = 0; i < TAKERS; i++)
		pthread_join(taker[i], NULL);
	close(to_drop[1]);
	for (int i = 0; i < DROPPERS; i++)
		pthread_join(dropper[i], NULL);
	cm_destroy_id(listener);
	rdma_destroy_event_channel(requests);
	return 0;
}
