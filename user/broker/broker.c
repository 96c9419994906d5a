/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../attach/complain.h"
#include "../base/clock.h"
#include "../base/kernel.h"
#include "../base/process.h"
#include "client.h"

/* A broker that is wanted while it is used: from its start to its first client, */
#define UNUSED_FIRST_NS (10 * NSEC_PER_SEC)
#define UNUSED_NS	(1 * NSEC_PER_SEC) /* and from its last one to its end */

#define SLOW_NS (20 * NSEC_PER_MSEC) /* between two pieces of slow work while others ask */

struct brokers {
	struct loop loop;
	struct broker *first;
	struct source end_source;
	bool ending;
};

/* ---- the interface ---- */

static void broker_follow(struct broker *b)
{
	struct netdev now = b->dev;
	int err = netdev_refresh(&now);

	if (err == -ENODEV) {
		attach_complain(&b->dev, "the interface has gone: its broker ends");
		b->ended = true;
		return;
	}
	if (err)
		return; /* no memory now: with the next message */
	b->dev = now;
	err = mux_publish(&b->mux, &now);
	if (err)
		attach_failed(&now, "publish the addresses", err);
}

static void broker_follow_near(struct broker *b)
{
	int err = mux_follow_near(&b->mux);

	if (err)
		attach_failed(&b->dev, "publish the addresses of this machine", err);
}

static void broker_hear(void *arg, enum news_kind kind, u32 ifindex, const struct nlmsghdr *nlh)
{
	struct broker *b = arg;

	b->has_news |= kind == NEWS_LOST || ifindex == b->dev.ifindex;
	b->has_near_news |= near_concerns(nlh);
}

static void broker_news(struct source *s, u32 events)
{
	struct broker *b = container_of(s, struct broker, news_source);

	news_take(&b->news, broker_hear, b);
	if (b->has_news)
		broker_follow(b);
	if (b->has_near_news && !b->ended)
		broker_follow_near(b);
	b->has_news = b->has_near_news = false;
}

static void broker_knock(struct source *s, u32 events)
{
	client_welcome(container_of(s, struct broker, door_source));
}

/* ---- beginning ---- */

static int broker_hold(struct broker *b)
{
	char comm[32] = "?";
	pid_t pid = 0;

	if (!door_holder(b->dev.ifindex, &pid)) {
		process_name(pid, comm, sizeof(comm));
		attach_complain(&b->dev,
				"process %d (%s) is its broker already; `xroce stop %s` ends it",
				(int)pid, comm, b->dev.name);
		return -EBUSY;
	}
	b->holder_fd = netdev_hold(b->dev.ifindex);
	/* EPERM: anyone can take a name. The XDP hook, which takes privileges, decides. */
	if (b->holder_fd >= 0 || b->holder_fd == -EPERM)
		return 0;
	if (b->holder_fd != -EBUSY)
		return attach_failed(&b->dev, "take the interface", b->holder_fd);
	netdev_holder(b->dev.ifindex, &pid, comm, sizeof(comm));
	attach_complain(&b->dev,
			"in use by process %d (%s), which has it alone; end it, and start it again "
			"under the broker",
			(int)pid, comm);
	return -EBUSY;
}

static int broker_open_door(struct broker *b)
{
	int err = door_open(&b->door, b->dev.ifindex, b->options.mode, b->options.group);

	if (err == -EPERM)
		attach_complain(&b->dev,
				"cannot listen: " ASK_DIR " is another user's, or others may write "
				"to it, or this one may not");
	else if (err)
		attach_complain(&b->dev, "cannot listen on %s: %s", b->door.at.sun_path,
				strerror(-err));
	return err;
}

static int broker_make_books(struct broker *b)
{
	const u32 max_qps = mux_max_qps(&b->mux);
	const struct quota_limits limits = {
		.user = { [QUOTA_CONNECTIONS] = min_u32(b->options.max_clients, XROCE_MAX_CLIENT) +
						QUOTA_SPARE,
			  [QUOTA_CLIENTS] = b->options.max_clients,
			  [QUOTA_QPS] = b->options.max_qps,
			  [QUOTA_RINGS] = b->options.max_rings },
		.all = { [QUOTA_CONNECTIONS] = QUOTA_CONNECTIONS_MAX,
			 [QUOTA_CLIENTS] = XROCE_MAX_CLIENT,
			 [QUOTA_QPS] = max_qps,
			 [QUOTA_RINGS] = UINT_MAX },
	};
	u32 seed;

	kernel_random(&seed, sizeof(seed));
	quota_init(&b->quota, &limits);
	return numbers_make(&b->numbers, max_qps, seed);
}

static int broker_make_stock(struct broker *b)
{
	const struct instance_plan plan = {
		.ifindex = b->dev.ifindex,
		.ring_bytes = XROCE_RX_RING_BYTES,
		.tap_ingress_fd = mux_tap_ingress_fd(&b->mux),
		.tap_egress_fd = mux_tap_egress_fd(&b->mux),
		.tap_single_fd = mux_tap_single_fd(&b->mux),
	};
	const char *step;
	int err;

	stock_init(&b->stock, &plan);
	/* what a client would be refused is found out now */
	err = instance_make(&b->stock.spare[0], &plan, &step);
	if (err)
		return attach_failed(&b->dev, step, err);
	b->stock.spares = 1;
	return 0;
}

static int broker_listen(struct broker *b)
{
	int err = news_open(&b->news);

	b->door_source = (struct source){ .ready = broker_knock, .fd = b->door.fd };
	b->news_source = (struct source){ .ready = broker_news, .fd = b->news.fd };
	if (!err)
		err = loop_add(b->loop, &b->news_source);
	if (!err)
		err = loop_add(b->loop, &b->door_source);
	/* after the subscription: what changes from here on is heard of */
	if (!err)
		broker_follow(b);
	if (!err && !b->ended)
		broker_follow_near(b);
	return err ? attach_failed(&b->dev, "follow the interface", err) : b->ended ? -ENODEV : 0;
}

/* Undone by broker_end(), however far it has come. */
static int broker_begin(struct broker *b)
{
	int err = broker_hold(b);

	if (!err)
		err = mux_make(&b->mux, &b->dev);
	if (!err) {
		err = broker_make_books(b);
		if (err)
			return attach_failed(&b->dev, "get memory", err);
		err = broker_make_stock(b);
	}
	if (!err)
		err = broker_open_door(b);
	return err ? err : broker_listen(b);
}

static void broker_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Nobody new comes; no packet comes; all clients end; what was made for them goes. */
static void broker_end(struct broker *b)
{
	door_close(&b->door);
	if (b->mux.bpf)
		mux_detach(&b->mux);
	while (b->clients)
		client_end(b->clients);
	stock_empty(&b->stock);
	mux_unmake(&b->mux);
	numbers_unmake(&b->numbers);
	news_close(&b->news);
	broker_close(&b->reserve_fd);
	broker_close(&b->holder_fd);
	/* last: whoever asked for the end finds everything gone */
	broker_close(&b->stopper_fd);
	free(b);
}

int brokers_add(struct brokers *all, const struct netdev *dev, const struct broker_options *o)
{
	struct broker *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return attach_failed(dev, "get memory", -ENOMEM);
	b->loop = &all->loop;
	b->options = *o;
	b->dev = *dev;
	b->holder_fd = b->stopper_fd = b->door.fd = b->news.fd = b->mux.link_fd = -1;
	b->mux.hairpin_fd = b->mux.hairpin_link_fd = -1;
	b->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	err = broker_begin(b);
	if (err) {
		broker_end(b);
		return err;
	}
	b->unused_ns = o->while_used ? clock_now_ns() + UNUSED_FIRST_NS : NSEC_NEVER;
	b->next = all->first;
	all->first = b;
	return 0;
}

/* ---- work ---- */

static void broker_look_at_use(struct broker *b, u64 now_ns)
{
	if (!b->options.while_used)
		return;
	if (b->clients)
		b->unused_ns = NSEC_NEVER;
	else if (b->unused_ns == NSEC_NEVER)
		b->unused_ns = now_ns + UNUSED_NS;
	else if (now_ns >= b->unused_ns)
		b->ended = true;
}

/* One thing that takes its time, and that is due. False: there is none. */
static bool broker_work_slowly(struct broker *b, u64 now_ns, bool idle)
{
	struct client *c = client_waiting(b);

	if (c)
		client_serve(c);
	else if (stock_is_due(&b->stock, now_ns))
		stock_reap(&b->stock);
	else if (idle && stock_is_short(&b->stock, now_ns))
		stock_fill(&b->stock, now_ns);
	else
		return false;
	return true;
}

/*
 * What is due; idle: nobody asks for anything. Slow work waits for that, but not for ever: whoever
 * asks all the time leaves others their ports.
 */
static void broker_work(struct broker *b, u64 now_ns, bool idle)
{
	struct client *c = b->stock.spares ? client_waiting(b) : NULL;

	if (c)
		client_serve(c);
	else if ((idle || now_ns >= b->slow_ns) && broker_work_slowly(b, now_ns, idle))
		b->slow_ns = clock_now_ns() + SLOW_NS;
	broker_look_at_use(b, now_ns);
}

static u64 broker_next_ns(struct broker *b)
{
	return client_waiting(b) ? 0 : min_u64(stock_next_ns(&b->stock), b->unused_ns);
}

static int brokers_timeout_ms(const struct brokers *all)
{
	u64 next_ns = NSEC_NEVER, now_ns;

	for (struct broker *b = all->first; b; b = b->next)
		next_ns = min_u64(next_ns, broker_next_ns(b));
	if (next_ns == NSEC_NEVER)
		return -1;
	now_ns = clock_now_ns();
	return next_ns <= now_ns ? 0 : (int)((next_ns - now_ns) / NSEC_PER_MSEC) + 1;
}

static void brokers_sweep(struct brokers *all)
{
	for (struct broker **at = &all->first; *at;) {
		struct broker *b = *at;

		if (!b->ended) {
			at = &b->next;
			continue;
		}
		*at = b->next;
		broker_end(b);
	}
}

static void brokers_end_ready(struct source *s, u32 events)
{
	container_of(s, struct brokers, end_source)->ending = true;
}

int brokers_run(struct brokers *all, int end_fd)
{
	int err;

	all->end_source = (struct source){ .ready = brokers_end_ready, .fd = end_fd };
	err = loop_add(&all->loop, &all->end_source);
	while (!err && all->first && !all->ending) {
		const bool idle = !loop_turn(&all->loop, brokers_timeout_ms(all));
		const u64 now_ns = clock_now_ns();

		for (struct broker *b = all->first; b; b = b->next)
			broker_work(b, now_ns, idle);
		brokers_sweep(all);
	}
	loop_remove(&all->loop, &all->end_source);
	return err;
}

/* As many descriptors as are allowed: each connection is one. */
static void brokers_raise_limits(void)
{
	struct rlimit lim;

	if (!getrlimit(RLIMIT_NOFILE, &lim)) {
		lim.rlim_cur = lim.rlim_max;
		setrlimit(RLIMIT_NOFILE, &lim);
	}
	lim = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	setrlimit(RLIMIT_MEMLOCK, &lim);
}

int brokers_make(struct brokers **out)
{
	struct brokers *all = calloc(1, sizeof(*all));
	int err;

	if (!all)
		return -ENOMEM;
	brokers_raise_limits();
	err = loop_make(&all->loop);
	if (err) {
		free(all);
		return err;
	}
	*out = all;
	return 0;
}

void brokers_unmake(struct brokers *all)
{
	for (struct broker *b = all->first; b; b = b->next)
		b->ended = true;
	brokers_sweep(all);
	loop_unmake(&all->loop);
	free(all);
}
