/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that has links (lib/link.h) with any number of partners at once:
 *
 *	first_traffic -d DEVICE [-g GID-INDEX] [OPTION...] [HOST:PORT[/MESSAGES]...]
 *
 *	-p PORT		partners that come are served
 *	-k FILE		until FILE is removed; without it until its own links have ended, and if it
 *			has none, until all others' have
 *	-m MESSAGES	own links end after MESSAGES on each of their three streams
 *	HOST:PORT/N	a link that ends after N messages, and is made again: so QPs are made and
 *			destroyed all the time
 *	-x		partners may die: a link that breaks, and whose partner hangs up, is dropped
 *	-u UID		becomes that user when it has its device
 *	-P		polls, and sleeps on no event
 *
 * SIGUSR1: a line `at MESSAGES held QPN...`, its present QPs, and a line `destroyed QPN...`.
 * SIGUSR2: makes 200 QPs, destroys them, and a line `drawn QPN...`. SIGTERM: as if the file was
 * removed, and no others are served. A last line has the number of right messages. Exit status: 0;
 * 1 on any error; 3, and a line `lost`, after the event that the device is lost.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/link.h"

#define LINKS	  64
#define HOSTS	  8
#define DRAWN	  200
#define DESTROYED 12
#define STALL	  25 /* seconds without any message, while the process ran */
#define BATCHES	  3
/* Between batches: what counts is that messages are under way at every moment, not how many. */
#define PACE_MS 5

struct host {
	struct sockaddr_in at;
	uint64_t messages;
	bool again;
};

struct place {
	struct link *link;
	const struct host *host; /* NULL: the partner came */
	uint64_t progress;
	uint32_t still; /* seconds */
};

static const char *device, *keep;
static int gid_index, listener = -1;
static bool may_die, polls;
static uint64_t own_messages;
static struct host host[HOSTS];
static unsigned int num_hosts, num_accepted, num_lost, num_ended;

static struct link_port port;
static struct place place[LINKS];
static uint32_t destroyed[DESTROYED];
static unsigned int num_destroyed;
static volatile sig_atomic_t asked_list, asked_draw, asked_term;
static bool asked_end;

static void on_signal(int s)
{
	*(s == SIGUSR1 ? &asked_list : s == SIGUSR2 ? &asked_draw : &asked_term) = 1;
}

/* ---- links ---- */

static void add(int fd, const struct host *h)
{
	unsigned int i = 0;

	while (i < LINKS && place[i].link)
		i++;
	must(i < LINKS, "more than %d links", LINKS);
	place[i] = (struct place){ .link = link_open(&port, fd, h ? h->messages : 0), .host = h };
}

/* connect(2) that no signal interrupts. */
static bool connects(int fd, const struct host *h)
{
	sigset_t all, before;
	bool ok;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	ok = !connect(fd, (const struct sockaddr *)&h->at, sizeof(h->at));
	sigprocmask(SIG_SETMASK, &before, NULL);
	return ok;
}

static void reach(const struct host *h)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connects(fd, h)) {
		add(fd, h);
		return;
	}
	must(fd >= 0 && may_die, "connect to port %u: %s", ntohs(h->at.sin_port),
	     strerror(errno));
	close(fd);
	num_lost++;
}

static void end_place(struct place *p)
{
	const struct host *h = p->host;
	const bool again = link_is_over(p->link) && h && h->again && !asked_end;

	num_ended += link_is_over(p->link);
	for (unsigned int s = 0; s < LINK_STREAMS; s++)
		destroyed[num_destroyed++ % DESTROYED] = p->link->stream[s].qp->qp_num;
	link_close(p->link);
	p->link = NULL;
	if (again)
		reach(h);
}

static void partner_has_gone(struct place *p)
{
	must(may_die, "a partner hung up%s%s", p->link->broken ? "; " : "",
	     p->link->broken ? p->link->broken : "");
	num_lost++;
	end_place(p);
}

static uint64_t progress(const struct link *l)
{
	uint64_t n = l->connected + l->word_bytes;

	for (unsigned int s = 0; s < LINK_STREAMS; s++)
		n += l->stream[s].received + l->stream[s].completed;
	return n;
}

/* Once a second. A process that was stopped meanwhile has had one second. */
static void watch(void)
{
	for (struct place *p = place; p < place + LINKS; p++) {
		if (!p->link)
			continue;
		p->still = progress(p->link) == p->progress ? p->still + 1 : 0;
		p->progress = progress(p->link);
		must(p->still < STALL,
		     "a link stands still; RC has sent %llu, completed %llu, received %llu, UC "
		     "%llu %llu %llu, UD %llu %llu %llu; %s",
		     (unsigned long long)p->link->stream[0].sent,
		     (unsigned long long)p->link->stream[0].completed,
		     (unsigned long long)p->link->stream[0].received,
		     (unsigned long long)p->link->stream[1].sent,
		     (unsigned long long)p->link->stream[1].completed,
		     (unsigned long long)p->link->stream[1].received,
		     (unsigned long long)p->link->stream[2].sent,
		     (unsigned long long)p->link->stream[2].completed,
		     (unsigned long long)p->link->stream[2].received,
		     p->link->broken ? p->link->broken : "no error");
	}
}

/* ---- completions and events ---- */

static struct place *place_of(uint64_t wr_id)
{
	for (struct place *p = place; p < place + LINKS; p++)
		if (p->link && p->link->number == link_of(wr_id))
			return p;
	return NULL;
}

/* Returns how many, or -1: the device is lost. */
static int take_batch(void)
{
	struct ibv_wc wc[32];
	int n = ibv_poll_cq(port.cq, 32, wc);

	for (int i = 0; i < n; i++) {
		/* of a link that was closed: a QP's completions go with it, unless they have been
		 * taken before */
		struct place *p = place_of(wc[i].wr_id);

		if (!p)
			continue;
		link_complete(p->link, &wc[i]);
		must(!p->link->broken || may_die ||
			     wc[i].status == IBV_WC_WR_FLUSH_ERR,
		     "a completion with status %d: %s", wc[i].status, p->link->broken);
	}
	return n;
}

/* Not without an end: a link with itself always has more. */
static bool take_completions(void)
{
	int n = 1;
	unsigned int i;

	for (i = 0; i < BATCHES && n > 0; i++)
		n = take_batch();
	if (n < 0)
		port.lost = true;
	return i > 1 || n > 0;
}

static void take_event(void)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(port.channel, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	/* refused where the device is lost, of which an event tells */
	if (ibv_req_notify_cq(cq, 0))
		port.lost = true;
}

static void take_async_event(void)
{
	struct ibv_async_event e;

	if (ibv_get_async_event(port.ctx, &e))
		return;
	ibv_ack_async_event(&e);
	if (e.event_type == IBV_EVENT_DEVICE_FATAL) {
		printf("lost after %llu messages\n", (unsigned long long)port.messages);
		exit(3);
	}
	must(e.event_type == IBV_EVENT_COMM_EST, "an event: %s",
	     ibv_event_type_str(e.event_type));
}

/* ---- what signals ask for ---- */

static void list_numbers(void)
{
	printf("at %llu held", (unsigned long long)port.messages);
	for (struct place *p = place; p < place + LINKS; p++)
		for (unsigned int s = 0; p->link && s < LINK_STREAMS; s++)
			printf(" %u", p->link->stream[s].qp->qp_num);
	printf("\ndestroyed");
	for (unsigned int i = 0; i < num_destroyed && i < DESTROYED; i++)
		printf(" %u", destroyed[i]);
	puts("");
	fflush(stdout);
}

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .send_cq = port.cq,
					 .recv_cq = port.cq,
					 .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(port.pd, &init);

	must(qp, "ibv_create_qp: %s", strerror(errno));
	return qp;
}

/* Before it announces itself. */
static void take_interface(void)
{
	must(!ibv_destroy_qp(make_qp()), "ibv_destroy_qp");
}

static void draw_numbers(void)
{
	struct ibv_qp *qp[DRAWN];

	for (unsigned int i = 0; i < DRAWN; i++)
		qp[i] = make_qp();
	printf("drawn");
	for (unsigned int i = 0; i < DRAWN; i++) {
		printf(" %u", qp[i]->qp_num);
		must(!ibv_destroy_qp(qp[i]), "ibv_destroy_qp");
	}
	puts("");
	fflush(stdout);
}

static void serve_signals(void)
{
	if (asked_list) {
		asked_list = 0;
		list_numbers();
	}
	if (asked_draw) {
		asked_draw = 0;
		draw_numbers();
	}
	if (asked_term || (keep && access(keep, F_OK)))
		asked_end = true;
	/* partners that were not asked to end would come again and again */
	if (asked_term && listener >= 0) {
		close(listener);
		listener = -1;
	}
	for (struct place *p = place; asked_end && p < place + LINKS; p++)
		if (p->link)
			link_stop(p->link);
}

/* ---- the loop ---- */

/* What says that the device is lost is true: the event comes. */
static void wait_until_lost(void)
{
	const uint64_t end = now_ms() + WAIT_MS;

	for (;;) {
		take_async_event();
		must(now_ms() < end, "EIO, but the device is not lost");
		poll(NULL, 0, 1);
	}
}

/* Returns how many links there are. */
static unsigned int serve_partners(int timeout_ms)
{
	struct pollfd p[LINKS + 3] = { { .fd = port.channel->fd, .events = POLLIN },
				       { .fd = port.ctx->async_fd, .events = POLLIN },
				       { .fd = listener, .events = POLLIN } };
	unsigned int links = 0, i;
	int fd;

	for (i = 0; i < LINKS; i++)
		p[i + 3] = (struct pollfd){ .fd = place[i].link ? place[i].link->fd : -1,
					    .events = POLLIN };
	if (poll(p, LINKS + 3, timeout_ms) < 0)
		return LINKS;
	if (p[0].revents)
		take_event();
	if (p[1].revents)
		take_async_event();
	for (i = 0; i < LINKS; i++) {
		if (!place[i].link)
			continue;
		links++;
		if (p[i + 3].revents && !link_read(place[i].link) && !link_is_over(place[i].link))
			partner_has_gone(&place[i]);
		else if (link_is_over(place[i].link))
			end_place(&place[i]);
	}
	if (p[2].revents && (fd = accept(listener, NULL, NULL)) >= 0) {
		num_accepted++;
		links++;
		add(fd, NULL);
	}
	return links;
}

static void run(void)
{
	uint64_t second = now_ms();
	unsigned int links = 1;

	while (links || port.lost || (keep && !asked_end) ||
	       (listener >= 0 && !num_hosts && !num_accepted && !asked_end)) {
		const bool found = take_completions();

		if (port.lost)
			wait_until_lost();
		links = serve_partners(found || polls ? 0 : 200);
		if (!found && polls)
			sched_yield();
		if (found && !polls)
			poll(NULL, 0, PACE_MS);
		serve_signals();
		if (now_ms() >= second + 1000) {
			second = now_ms();
			watch();
		}
	}
}

/* ---- arguments ---- */

static void parse_host(char *text)
{
	struct host *h = &host[num_hosts++];
	char *colon = strchr(text, ':'), *slash = strchr(text, '/');

	must(num_hosts <= HOSTS && colon, "%s: not HOST:PORT[/MESSAGES]", text);
	*colon = '\0';
	*h = (struct host){ .at = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)atoi(colon + 1)) },
			    .messages = slash ? strtoull(slash + 1, NULL, 10) : own_messages,
			    .again = slash };
	must(inet_pton(AF_INET, text, &h->at.sin_addr) == 1, "%s: not an address", text);
}

static void listen_on(const char *number)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)atoi(number)) };
	const uint64_t end = now_ms() + WAIT_MS;
	int one = 1;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	while (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 64)) {
		must(errno == EADDRINUSE && now_ms() < end, "listen on port %s: %s", number,
		     strerror(errno));
		poll(NULL, 0, 10);
	}
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_signal };
	const char *serves = NULL;
	uid_t user = 0;
	int c;

	while ((c = getopt(argc, argv, "d:g:p:k:m:u:xP")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		case 'p': serves = optarg; break;
		case 'k': keep = optarg; break;
		case 'm': own_messages = strtoull(optarg, NULL, 10); break;
		case 'u': user = (uid_t)atoi(optarg); break;
		case 'x': may_die = true; break;
		case 'P': polls = true; break;
		default: die("see the head of first_traffic.c");
		}
	}
	for (; optind < argc; optind++)
		parse_host(argv[optind]);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	link_port_open(&port, device, gid_index);
	take_interface();
	if (serves)
		listen_on(serves);
	must(!user || !setuid(user), "become user %u: %m", user);
	puts("ready");
	fflush(stdout);
	for (unsigned int i = 0; i < num_hosts; i++)
		reach(&host[i]);
	run();
	take_async_event();
	must(!num_hosts || num_ended || may_die, "no link has come to its end");
	printf("first_traffic: %llu messages right, %llu bytes, %u links ended, %u lost\n",
	       (unsigned long long)port.messages, (unsigned long long)port.bytes, num_ended,
	       num_lost);
	link_port_close(&port);
	return 0;
}
