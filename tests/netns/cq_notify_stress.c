/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Wake-ups: balls bounce on many QPs, each hop after a random delay, and their receiver sleeps on a
 * completion channel. Each channel has a thread and several CQs, and its own way of waiting:
 *
 *	channel 0   blocks in ibv_get_cq_event(3)
 *	channel 1   poll(2) on the descriptor, then ibv_get_cq_event() with O_NONBLOCK: readable
 *		    means that there is an event
 *	channel 2   epoll(7), then ibv_get_cq_event() that blocks
 *
 * After each event: acknowledge, arm, empty the CQ, return the balls. A ball is always somewhere,
 * so a channel that hears nothing for WAIT_MS has lost a wake-up. An event without a completion
 * since the CQ was armed is counted as extra. A packet makes two events at the most: XDP's
 * announcement, if the packet came later than the library waits (docs/events.md), and its own.
 *
 *	cq_notify_stress -d DEVICE -g GID-INDEX -n HOPS [-s SEED] [HOST]	two processes
 *	cq_notify_stress -L ...	both sides in one process, over the same GID
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define CHANNELS	3
#define CQS_PER_CHANNEL 2
#define QPS		(CHANNELS * CQS_PER_CHANNEL)
#define BALLS		2  /* a QP */
#define DEPTH		16 /* WRs a queue */
#define DELAY_MAX_US	40
#define SEND_ID		UINT64_MAX

struct end {
	struct ibv_cq *cq;
	struct ibv_cq *send_cq; /* the same, on every other QP: sends wake as well */
	struct ibv_qp *qp;
	uint64_t events, completions, received;
};

struct address {
	union ibv_gid gid;
	uint32_t qpn[QPS];
};

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel[CHANNELS];
	struct end end[QPS]; /* QP i is on channel i % CHANNELS */
	struct address own, peer;
	int gid_index;
	bool serves;	     /* the first hop of each ball */
	uint64_t hops;	     /* of each ball; even, so that it ends where it began */
	uint64_t seed;
	_Atomic uint64_t last_ms[CHANNELS]; /* when its thread last had an event; 0: it has ended */
	uint64_t extra, again;
	pthread_mutex_t totals;
};

struct player {
	struct side *side;
	unsigned int channel;
	uint64_t random;
	uint64_t extra, again;
};

/* ---- making ---- */

static void open_end(struct side *s, unsigned int i)
{
	struct end *e = &s->end[i];
	struct ibv_comp_channel *ch = s->channel[i % CHANNELS];
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { DEPTH, DEPTH, 1, 1, 0 },
					 .sq_sig_all = 1 };

	e->cq = ibv_create_cq(s->ctx, 2 * DEPTH, e, ch, (int)i % s->ctx->num_comp_vectors);
	e->send_cq = i & 1 ? e->cq : ibv_create_cq(s->ctx, DEPTH, e, NULL, 0);
	must(e->cq && e->send_cq, "ibv_create_cq: %s", strerror(errno));
	init.send_cq = e->send_cq;
	init.recv_cq = e->cq;
	e->qp = ibv_create_qp(s->pd, &init);
	must(e->qp, "ibv_create_qp: %s", strerror(errno));
	s->own.qpn[i] = e->qp->qp_num;
}

static void side_open(struct side *s, const char *device)
{
	s->ctx = open_device(device);
	s->pd = ibv_alloc_pd(s->ctx);
	must(s->pd, "ibv_alloc_pd: %s", strerror(errno));
	for (unsigned int i = 0; i < CHANNELS; i++) {
		s->channel[i] = ibv_create_comp_channel(s->ctx);
		must(s->channel[i], "ibv_create_comp_channel: %s", strerror(errno));
	}
	fcntl(s->channel[1]->fd, F_SETFL, fcntl(s->channel[1]->fd, F_GETFL) | O_NONBLOCK);
	for (unsigned int i = 0; i < QPS; i++)
		open_end(s, i);
	must(!ibv_query_gid(s->ctx, 1, s->gid_index, &s->own.gid), "ibv_query_gid(%d)",
	     s->gid_index);
	pthread_mutex_init(&s->totals, NULL);
}

static void receive(struct end *e)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	must(!ibv_post_recv(e->qp, &wr, &bad), "ibv_post_recv failed");
}

static void side_connect(struct side *s)
{
	const struct rc_options o = { .gid_index = (uint8_t)s->gid_index,
				      .timeout = 14,
				      .retry_cnt = 7,
				      .rnr_retry = 7 };

	for (unsigned int i = 0; i < QPS; i++) {
		const struct rc_address own = { 0 };
		const struct rc_address peer = { .gid = s->peer.gid, .qpn = s->peer.qpn[i] };

		rc_connect(s->end[i].qp, &own, &peer, &o);
		for (int n = 0; n < BALLS; n++)
			receive(&s->end[i]);
	}
}

static void side_close(struct side *s)
{
	for (unsigned int i = 0; i < QPS; i++) {
		struct end *e = &s->end[i];

		must(!ibv_destroy_qp(e->qp), "ibv_destroy_qp");
		must(!ibv_destroy_cq(e->cq), "ibv_destroy_cq");
		must(e->send_cq == e->cq || !ibv_destroy_cq(e->send_cq), "ibv_destroy_cq");
	}
	for (unsigned int i = 0; i < CHANNELS; i++)
		must(!ibv_destroy_comp_channel(s->channel[i]), "ibv_destroy_comp_channel");
	must(!ibv_dealloc_pd(s->pd), "ibv_dealloc_pd");
	must(!ibv_close_device(s->ctx), "ibv_close_device");
}

/* ---- playing ---- */

static uint32_t random_below(struct player *p, uint32_t n)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return (uint32_t)(p->random >> 32) % n;
}

/* Mostly at once or shortly after, at times long enough for the peer to fall asleep. */
static void delay(struct player *p)
{
	uint32_t us = random_below(p, 4) ? random_below(p, 4) : random_below(p, DELAY_MAX_US);
	struct timespec t;
	uint64_t end_ns = 0, now_ns;

	if (!us)
		return;
	do {
		clock_gettime(CLOCK_MONOTONIC, &t);
		now_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
		end_ns = end_ns ? end_ns : now_ns + us * 1000;
	} while (now_ns < end_ns);
}

static void send_hop(struct end *e, uint32_t hop)
{
	struct ibv_send_wr wr = { .wr_id = SEND_ID,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .imm_data = htonl(hop) },
			   *bad;
	struct ibv_wc wc;

	while (e->send_cq != e->cq && ibv_poll_cq(e->send_cq, 1, &wc) == 1)
		must(wc.status == IBV_WC_SUCCESS, "a send ended with status %d", wc.status);
	errno = ibv_post_send(e->qp, &wr, &bad);
	must(!errno, "ibv_post_send: %s", strerror(errno));
}

static void empty_cq(struct player *p, struct end *e)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(e->cq, 1, &wc)) > 0) {
		uint32_t hop;

		must(wc.status == IBV_WC_SUCCESS, "wr_id %llu ended with status %d",
		     (unsigned long long)wc.wr_id, wc.status);
		e->completions++;
		if (wc.wr_id == SEND_ID)
			continue;
		e->received++;
		hop = ntohl(wc.imm_data);
		must(hop % 2 == (p->side->serves ? 0 : 1), "hop %u came to the wrong side", hop);
		if (hop < p->side->hops) {
			receive(e);
			delay(p);
			send_hop(e, hop + 1);
		}
	}
	must(n == 0, "ibv_poll_cq: %d", n);
}

static void take_event(struct player *p)
{
	struct ibv_comp_channel *ch = p->side->channel[p->channel];
	struct ibv_cq *cq;
	struct end *e;
	uint64_t before;
	void *context;

	if (ibv_get_cq_event(ch, &cq, &context)) {
		must(errno == EAGAIN && p->channel == 1, "ibv_get_cq_event: %s", strerror(errno));
		p->again++;
		return;
	}
	e = context;
	must(e->cq == cq && (e - p->side->end) % CHANNELS == p->channel,
	     "the event is of another channel's CQ");
	e->events++;
	before = e->completions;
	ibv_ack_cq_events(cq, 1);
	must(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	empty_cq(p, e);
	p->extra += e->completions == before;
	must(e->events <= 2 * (e->completions + BALLS), "%llu events for %llu completions",
	     (unsigned long long)e->events, (unsigned long long)e->completions);
	atomic_store(&p->side->last_ms[p->channel], now_ms());
}

/* All balls of this channel's QPs have been here for the last time. */
static bool at_end(const struct player *p)
{
	for (unsigned int i = p->channel; i < QPS; i += CHANNELS)
		if (p->side->end[i].received < BALLS * p->side->hops / 2)
			return false;
	return true;
}

static void *play(void *arg)
{
	struct player *p = arg;
	struct side *s = p->side;
	int fd = s->channel[p->channel]->fd, epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN };

	must(epoll_fd >= 0 && !epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event), "epoll: %s",
	     strerror(errno));
	while (!at_end(p)) {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };

		if (p->channel == 1)
			must(poll(&pfd, 1, WAIT_MS) == 1, "wake-up lost: poll(2) on channel 1");
		else if (p->channel == 2)
			must(epoll_wait(epoll_fd, &event, 1, WAIT_MS) == 1,
			     "wake-up lost: epoll_wait(2) on channel 2");
		take_event(p);
	}
	close(epoll_fd);
	pthread_mutex_lock(&s->totals);
	s->extra += p->extra;
	s->again += p->again;
	pthread_mutex_unlock(&s->totals);
	atomic_store(&s->last_ms[p->channel], 0);
	return NULL;
}

struct game {
	struct side *side;
	struct player player[CHANNELS];
	pthread_t thread[CHANNELS];
};

static void game_start(struct game *g, struct side *s)
{
	g->side = s;
	for (unsigned int i = 0; i < CHANNELS; i++) {
		atomic_store(&s->last_ms[i], now_ms());
		g->player[i] = (struct player){
			.side = s,
			.channel = i,
			.random = (s->seed * CHANNELS + i + 1) * 0x9e3779b97f4a7c15ull | 1
		};
	}
	/* Armed before anything is sent. */
	for (unsigned int i = 0; i < QPS; i++)
		must(!ibv_req_notify_cq(s->end[i].cq, 0), "ibv_req_notify_cq");
}

static void game_play(struct game *g)
{
	for (unsigned int i = 0; i < CHANNELS; i++)
		must(!pthread_create(&g->thread[i], NULL, play, &g->player[i]), "pthread_create");
	for (unsigned int i = 0; g->side->serves && i < QPS; i++)
		for (int n = 0; n < BALLS; n++)
			send_hop(&g->side->end[i], 1);
}

/* True while a thread plays; a channel that has heard nothing for too long ends the program. */
static bool game_watch(struct game *g)
{
	bool playing = false;

	for (unsigned int i = 0; i < CHANNELS; i++) {
		uint64_t last = atomic_load(&g->side->last_ms[i]);

		must(!last || now_ms() < last + WAIT_MS,
		     "wake-up lost: nothing on channel %u for %d ms", i, WAIT_MS);
		playing |= last != 0;
	}
	return playing;
}

static void game_end(struct game *g, uint64_t seed)
{
	uint64_t events = 0, completions = 0;

	for (unsigned int i = 0; i < CHANNELS; i++)
		must(!pthread_join(g->thread[i], NULL), "pthread_join");
	for (unsigned int i = 0; i < QPS; i++) {
		events += g->side->end[i].events;
		completions += g->side->end[i].completions;
	}
	printf("cq_notify_stress: seed %llu: %llu events for %llu completions, %llu extra, %llu "
	       "readable without event\n",
	       (unsigned long long)seed, (unsigned long long)events,
	       (unsigned long long)completions, (unsigned long long)g->side->extra,
	       (unsigned long long)g->side->again);
}

int main(int argc, char **argv)
{
	static struct side a, b;
	static struct game ga, gb;
	const char *device = NULL, *port = "18620";
	uint64_t hops = 1000, seed = 1;
	bool loopback = false;
	int gid_index = 0, ctl, c;

	while ((c = getopt(argc, argv, "d:g:n:s:L")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		case 'n': hops = strtoull(optarg, NULL, 0) & ~1ull; break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'L': loopback = true; break;
		default:
			die("cq_notify_stress -d DEVICE [-g GID] [-n HOPS] [-s SEED] [-L | HOST]");
		}
	}
	must(device && hops >= 2 && hops < 1u << 31,
	     "cq_notify_stress -d DEVICE [-g GID-INDEX] [-n HOPS] [-s SEED] [-L | HOST]");
	a.gid_index = b.gid_index = gid_index;
	a.hops = b.hops = hops;
	a.seed = seed;
	b.seed = seed + 1;
	a.serves = loopback || argv[optind];
	side_open(&a, device);
	if (loopback) {
		side_open(&b, device);
		a.peer = b.own;
		b.peer = a.own;
		side_connect(&a);
		side_connect(&b);
		game_start(&ga, &a);
		game_start(&gb, &b);
		game_play(&gb);
		game_play(&ga);
		while ((int)game_watch(&ga) | (int)game_watch(&gb))
			usleep(10000);
		game_end(&ga, seed);
		game_end(&gb, seed);
		side_close(&a);
		side_close(&b);
		return 0;
	}
	ctl = ctl_open(argv[optind], port);
	ctl_swap(ctl, &a.own, &a.peer, sizeof(a.own));
	side_connect(&a);
	game_start(&ga, &a);
	ctl_barrier(ctl, 1);
	game_play(&ga);
	while (game_watch(&ga))
		usleep(10000);
	/* The other side's last hops are acknowledged before anything goes. */
	ctl_barrier(ctl, 2);
	game_end(&ga, seed);
	side_close(&a);
	ctl_barrier(ctl, 3);
	close(ctl);
	return 0;
}
