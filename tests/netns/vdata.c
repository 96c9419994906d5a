/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Transfers planned data both ways at once by SEND, WRITE and READ over RC, UC or UD and checks
 * every byte and every completion.
 *
 *	vdata [options]			server: waits for one client
 *	vdata [options] HOST		client
 *	vdata -L [options]		both sides in this process, over the same GID
 *
 * Both sides must be given the same -t, -n, -s, -m, -x and -k. The last line has the transferred
 * amount; exit status 1 and one line on standard error if anything was wrong, with the seed that
 * replays it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/side.h"

struct options {
	struct side_options side;
	struct plan plan;
	const char *transport;
	const char *port;
	const char *host;
	const char *keep;
	const char *rest;
	uint32_t rounds;
	uint32_t sleep_ms;
	bool loopback;
};

static const char *const usage_text =
	"vdata [-d DEVICE] [-g GID-INDEX] [-t rc|uc|ud] [-m PATH-MTU] [-n ROUNDS] [-s SEED] [-x "
	"LONGEST] [-e] [-o] [-D] [-A] [-k FILE] [-w MS] [-T TIMEOUT] [-y RETRIES] [-p PORT] "
	"[-q FIFO] [-i MS] [-L | HOST]\n"
	"  -e  sleep on completion events   -o  one CQ for sends and receives   -k FILE  more "
	"rounds while there is FILE\n"
	"  -w MS  also: sleep until the peer sends after MS, CPU time measured\n"
	"  -i MS  idle between two rounds, until SIGUSR1: from then on none\n"
	"  -q FIFO  when all is done, rest until it is opened\n"
	"  -D  regions that page on demand   -A  of the whole address space\n";

static volatile sig_atomic_t idle_ms;

static void on_signal(int s)
{
	(void)s;
	idle_ms = 0;
}

static void be_idle(void)
{
	const struct timespec t = { idle_ms / 1000, idle_ms % 1000 * 1000000l };

	nanosleep(&t, NULL);
}

static uint32_t number(const char *text, uint32_t least, uint32_t most)
{
	char *end;
	unsigned long v = strtoul(text, &end, 0);

	must(*text && !*end && v >= least && v <= most,
	     "vdata: '%s' is not a number between %u and %u", text, least, most);
	return v;
}

static void parse(int argc, char **argv, struct options *o)
{
	int c;

	while ((c = getopt(argc, argv, "d:g:t:m:n:s:x:eoDAk:w:T:y:p:q:i:L")) != -1) {
		switch (c) {
		case 'd': o->side.device = optarg; break;
		case 'g': o->side.gid_index = number(optarg, 0, 255); break;
		case 't': o->transport = optarg; break;
		case 'm': o->side.path_mtu = number(optarg, 256, 4096); break;
		case 'n': o->rounds = number(optarg, 1, 1000000); break;
		case 's': o->plan.seed = number(optarg, 0, UINT32_MAX); break;
		case 'x': o->plan.max_len = number(optarg, 256, PLAN_LEN_MAX); break;
		case 'e': o->side.events = true; break;
		case 'o': o->side.one_cq = true; break;
		case 'D': o->side.paging = SIDE_ON_DEMAND; break;
		case 'A': o->side.paging = SIDE_WHOLE_SPACE; break;
		case 'k': o->keep = optarg; break;
		case 'w': o->sleep_ms = number(optarg, 1, 5000); break;
		case 'T': o->side.timeout = number(optarg, 0, 31); break;
		case 'y': o->side.retry_cnt = number(optarg, 0, 7); break;
		case 'p': o->port = optarg; break;
		case 'q': o->rest = optarg; break;
		case 'i': idle_ms = (sig_atomic_t)number(optarg, 1, 5000); break;
		case 'L': o->loopback = true; break;
		default: die("%s", usage_text);
		}
	}
	o->host = argv[optind];
	if (strcmp(o->transport, "rc") == 0)
		o->plan.transport = PLAN_RC;
	else if (strcmp(o->transport, "uc") == 0)
		o->plan.transport = PLAN_UC;
	else if (strcmp(o->transport, "ud") == 0)
		o->plan.transport = PLAN_UD;
	else
		die("%s", usage_text);
	o->plan.path_mtu = o->side.path_mtu;
	if (o->plan.transport == PLAN_UD && o->plan.max_len > o->side.path_mtu)
		o->plan.max_len = o->side.path_mtu;
	/*
	 * Without retransmission a packet too many is a packet lost: keep well below what any ring
	 * of the path holds.
	 */
	o->plan.max_packets = o->plan.transport == PLAN_RC ? 0 : 96;
}

/*
 * Whether there is a round of this number: said by the options, or by either side, which may see
 * the file go before the other does.
 */
static bool has_round(const struct options *o, uint32_t round, int ctl)
{
	uint32_t more = o->keep && access(o->keep, F_OK) == 0, peer_more;

	if (round < o->rounds || !o->keep)
		return round < o->rounds;
	ctl_swap(ctl, &more, &peer_more, sizeof(more));
	return more || peer_more;
}

static void run_pair(const struct options *o, struct side *s, int ctl)
{
	uint32_t round;

	ctl_swap(ctl, &s->own, &s->peer, sizeof(s->own));
	side_connect(s);
	for (round = 0; has_round(o, round, ctl); round++) {
		side_prepare(s, round);
		ctl_barrier(ctl, round << 2 | 0);
		side_post(s);
		side_complete(s);
		ctl_barrier(ctl, round << 2 | 1);
		side_verify(s);
		ctl_barrier(ctl, round << 2 | 2);
		if (idle_ms)
			be_idle();
	}
}

static void run_loopback(const struct options *o, struct side *a, struct side *b)
{
	uint32_t round;

	a->peer = b->own;
	b->peer = a->own;
	side_connect(a);
	side_connect(b);
	for (round = 0; round < o->rounds; round++) {
		side_prepare(a, round);
		side_prepare(b, round);
		side_post(a);
		side_post(b);
		side_complete(a);
		side_complete(b);
		side_verify(a);
		side_verify(b);
	}
}

/*
 * The server sleeps in ibv_get_cq_event(3) while the client lets time pass on purpose, then sends.
 */
static void run_sleep(const struct options *o, struct side *s, int ctl)
{
	uint64_t wall, cpu;

	if (s->number == 0)
		side_sleep_prepare(s);
	ctl_barrier(ctl, 0x51ee9);
	if (s->number == 0) {
		side_sleep(s, &wall, &cpu);
		printf("slept %llu us, CPU time meanwhile %llu us\n", (unsigned long long)wall,
		       (unsigned long long)cpu);
		/* Generous: spinning uses as much as has passed. */
		must(cpu * 2 < wall, "used %llu us of CPU time in %llu us of sleep",
		     (unsigned long long)cpu, (unsigned long long)wall);
	} else {
		struct timespec pause = { o->sleep_ms / 1000, o->sleep_ms % 1000 * 1000000l };

		nanosleep(&pause, NULL);
		side_wake(s);
	}
	ctl_barrier(ctl, 0x51eea);
}

static void report(const struct options *o, const struct side *s)
{
	printf("vdata: %s seed %llu side %u: %llu messages, %llu bytes right, %llu events\n",
	       o->transport, (unsigned long long)o->plan.seed, s->number,
	       (unsigned long long)s->messages, (unsigned long long)s->bytes,
	       (unsigned long long)s->events_taken);
	must(!o->side.events || s->events_taken >= o->rounds,
	     "too few completion events for %u rounds", o->rounds);
}

int main(int argc, char **argv)
{
	struct options o = {
		.side = { .path_mtu = 1024, .timeout = 14, .retry_cnt = 7 },
		.plan = { .seed = 1, .max_len = PLAN_LEN_MAX },
		.transport = "rc",
		.port = "18600",
		.rounds = 100,
	};
	static struct side a, b;
	int ctl;

	parse(argc, argv, &o);
	if (idle_ms)
		signal(SIGUSR1, on_signal);
	if (o.loopback) {
		side_open(&a, &o.plan, 0, &o.side);
		side_open(&b, &o.plan, 1, &o.side);
		run_loopback(&o, &a, &b);
		report(&o, &a);
		report(&o, &b);
		side_close(&a);
		side_close(&b);
		return 0;
	}
	side_open(&a, &o.plan, o.host ? 1 : 0, &o.side);
	ctl = ctl_open(o.host, o.port);
	run_pair(&o, &a, ctl);
	if (o.sleep_ms)
		run_sleep(&o, &a, ctl);
	report(&o, &a);
	if (o.rest)
		ctl_rest(o.rest);
	side_close(&a);
	/*
	 * Neither leaves before the other has taken its resources down: nothing of ours is on the
	 * wire after this.
	 */
	ctl_barrier(ctl, 0xe0d);
	close(ctl);
	return 0;
}
