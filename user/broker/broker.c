/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/rtnetlink.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../client/ask.h"
#include "../client/attach_error.h"
#include "../client/spawn.h"
#include "iface_lock.h"
#include "../os/clock.h"
#include "../os/close_fd.h"
#include "../os/kernel.h"
#include "../os/options.h"
#include "../os/process.h"
#include "client.h"
#include "client_trace.h"
#include "dead_peers.h"
#include "held.h"
#include "pinned.h"
#include "unread.h"

/* How long a broker with while_used runs without a client: after its start, */
#define UNUSED_FIRST_NS (10 * NSEC_PER_SEC)
#define UNUSED_NS	(1 * NSEC_PER_SEC) /* and after its last client */

#define FOLLOW_NS (200 * NSEC_PER_MSEC) /* until a failed update of the addresses is tried again */
#define RIVAL_NS (1 * NSEC_PER_SEC) /* between two looks for another broker */

#define SLOW_NS (20 * NSEC_PER_MSEC) /* between pieces of slow work while there are questions */

struct brokers {
	struct loop loop;
	struct broker *first;
	struct source end_source;
	bool ending;
};

/* ---- the interface ---- */

static void broker_follow(struct broker *b)
{
	const bool is_first = b->follow_ns == NSEC_NEVER;
	struct netdev now = b->dev;
	int err = netdev_refresh(&now);

	b->follow_ns = NSEC_NEVER;
	if (err == -ENODEV) {
		attach_complain(&b->dev, "the interface was removed; its broker exits");
		b->ended = true;
		return;
	}
	if (!err && now.xdp_program != b->dev.xdp_program)
		hook_follow(&now, &b->mux.hook);
	if (!err) {
		b->dev = now;
		err = mux_publish(&b->mux, &now);
	}
	if (!err)
		return;
	/* descriptors are short, or another broker still has an address that has moved here */
	b->follow_ns = clock_now_ns() + FOLLOW_NS;
	if (is_first)
		attach_failed(&now, "update the addresses", err);
}

static void broker_follow_neighbours(struct broker *b)
{
	int err = mux_follow_neighbours(&b->mux);

	if (err)
		attach_failed(&b->dev, "update the addresses of this machine", err);
}

static void broker_hear(void *arg, enum link_events_kind kind, u32 ifindex,
			const struct nlmsghdr *nlh)
{
	struct broker *b = arg;

	/* the other end of a veth pair may have entered or left this network namespace */
	b->link_changed |= kind == LINK_EVENTS_LOST || ifindex == b->dev.ifindex ||
			   (b->dev.is_veth && nlh &&
			    (nlh->nlmsg_type == RTM_NEWLINK || nlh->nlmsg_type == RTM_DELLINK));
	b->neighbours_changed |= neighbours_concerns(nlh);
}

static void broker_take_events(struct source *s, u32 events)
{
	struct broker *b = container_of(s, struct broker, events_source);

	link_events_take(&b->link_events, broker_hear, b);
	if (b->link_changed)
		broker_follow(b);
	if (b->neighbours_changed && !b->ended)
		broker_follow_neighbours(b);
	b->link_changed = b->neighbours_changed = false;
}

static void broker_packets(struct source *s, u32 events)
{
	struct broker *b = container_of(s, struct broker, packets_source);

	mad_refuser_begin_turn(b);
	host_receive_take(&b->mux.receive);
}

static void broker_accept(struct source *s, u32 events)
{
	client_welcome(container_of(s, struct broker, socket_source));
}

/* ---- start and end ---- */

/* Returns whether the interface has a broker that is not about to end. */
static bool broker_ask(const struct netdev *dev, pid_t *pid)
{
	struct ask_client client;
	struct asker asker;
	int err;

	ask_init(&asker);
	err = ask_connect(&asker, netdev_netns(), dev->ifindex);
	if (err) {
		ask_close(&asker);
		return false;
	}
	*pid = ask_server(&asker);
	err = ask_list(&asker, 0, &client);
	ask_close(&asker);
	return !err || err == -ENOENT || err == -ETIMEDOUT;
}

static int broker_complain_of_broker(const struct netdev *dev, pid_t pid)
{
	char comm[32];

	process_name(pid, comm, sizeof(comm));
	attach_complain(dev,
			"process %d (%s) is already the broker of this interface; `xroce "
			"stop %s` ends it",
			(int)pid, comm, dev->name);
	return -EBUSY;
}

static int broker_complain_of_holder(const struct netdev *dev)
{
	char comm[32] = "?";
	pid_t pid = 0;

	if (attach_complain_of_mount(dev))
		return -EBUSY;
	netdev_holder(dev->ifindex, &pid, comm, sizeof(comm));
	attach_complain(dev,
			"in use by process %d (%s), a broker that does not listen in " ASK_DIR
			"; end its client, and start it again under `xroce serve %s`",
			(int)pid, comm, dev->name);
	return -EBUSY;
}

/* Takes the interface's name; waits for a broker that starts or ends. */
static int broker_lock_after(struct broker *b, struct iface_lock *lock)
{
	const struct netdev *dev = &b->dev;
	pid_t pid = 0;

	for (;;) {
		if (broker_ask(dev, &pid))
			return b->options.client_fd >= 0 ? -EALREADY :
							   broker_complain_of_broker(dev, pid);
		b->holder_fd = iface_lock_take(lock);
		/* EPERM: any process can take a name. The XDP hook decides: it needs privileges. */
		if (b->holder_fd >= 0 || b->holder_fd == -EPERM)
			return 0;
		if (b->holder_fd == -EBUSY)
			return broker_complain_of_holder(dev);
		if (b->holder_fd != -EAGAIN)
			return attach_failed(dev, "claim the interface", b->holder_fd);
		iface_lock_await(lock);
	}
}

static int broker_lock(struct broker *b)
{
	struct iface_lock lock;
	int err;

	iface_lock_begin(&lock, b->dev.ifindex, b->options.udp);
	err = broker_lock_after(b, &lock);
	iface_lock_end(&lock);
	return err;
}

/* A broker that is started for its first client serves that one, even if it cannot listen. */
static int broker_open_socket(struct broker *b)
{
	int err = broker_socket_open(&b->broker_socket, b->dev.ifindex, b->options.mode,
				     b->options.group);
	const char *at = b->broker_socket.at.sun_path;

	if (err && b->options.udp)
		err = broker_socket_open_abstract(&b->broker_socket, b->dev.ifindex);
	if (err && b->options.client_fd >= 0) {
		b->alone_fd = netdev_say_alone(b->dev.ifindex);
		return 0;
	}
	if (err == -EPERM)
		attach_complain(&b->dev, ASK_DIR
				" belongs to another user, is writable by other users, or is not "
				"writable by this process");
	else if (err)
		attach_complain(&b->dev, "cannot listen on %s%s: %s", *at ? "" : "@",
				*at ? at : at + 1, strerror(-err));
	return err;
}

/* Returns 0, or -errno after a line on standard error. */
static int broker_make_books(struct broker *b)
{
	const u32 max_qps = mux_max_qps(&b->mux);
	const struct quota_limits limits = {
		.user = { [QUOTA_CONNECTIONS] = min_u32(b->options.max_clients, XROCE_MAX_CLIENT) +
						QUOTA_SPARE,
			  [QUOTA_CLIENTS] = b->options.max_clients,
			  [QUOTA_QPS] = b->options.max_qps,
			  [QUOTA_RINGS] = b->options.max_rings,
			  [QUOTA_SERVICES] = b->options.max_services,
			  [QUOTA_GROUPS] = b->options.udp ? HOST_GROUPS_OF_USER : GROUPS_OF_USER,
			  [QUOTA_TRACES] = CLIENT_TRACE_OF_USER,
			  [QUOTA_MEMORY] = b->options.max_memory_mib << 10 },
		.all = { [QUOTA_CONNECTIONS] = QUOTA_CONNECTIONS_MAX,
			 [QUOTA_CLIENTS] = XROCE_MAX_CLIENT,
			 [QUOTA_QPS] = max_qps,
			 [QUOTA_RINGS] = UINT_MAX,
			 [QUOTA_SERVICES] = BROKER_SERVICES,
			 [QUOTA_GROUPS] = XROCE_MAX_MEMBERS * XROCE_GROUP_CLIENTS,
			 [QUOTA_TRACES] = CLIENT_TRACE_OF_ALL,
			 [QUOTA_MEMORY] = UINT_MAX },
	};
	u64 seed[2];
	int err = kernel_random(seed, sizeof(seed));

	if (!err)
		err = kernel_random(b->random, sizeof(b->random));
	if (err)
		return attach_failed_random(&b->dev, err);
	b->random_left = ARRAY_SIZE(b->random);
	quota_init(&b->quota, &limits);
	err = numbers_make(&b->numbers, max_qps, (u32)seed[0]);
	if (!err)
		err = bindings_make(&b->bindings, BROKER_SERVICES, seed[1]);
	return err ? attach_failed(&b->dev, "allocate memory", err) : 0;
}

/* The pool of a broker with UDP sockets stays empty: an instance takes little time. */
static int broker_make_udp_pool(struct broker *b)
{
	const struct instance_plan plan = { .ifindex = b->dev.ifindex,
					    .ring_bytes = XROCE_RX_RING_BYTES,
					    .by_udp = true };

	client_pool_init(&b->client_pool, &plan);
	mad_sender_init(&b->mad_sender, &b->mux, &b->client_pool.plan);
	return 0;
}

static int broker_make_pool(struct broker *b)
{
	const struct instance_plan plan = {
		.ifindex = b->dev.ifindex,
		.ring_bytes = XROCE_RX_RING_BYTES,
		.clients_fd = mux_clients_fd(&b->mux),
		.turn_fd = mux_turn_fd(&b->mux),
		.gids_fd = mux_gids_fd(&b->mux),
		.tap_ingress_fd = mux_tap_ingress_fd(&b->mux),
		.tap_egress_fd = mux_tap_egress_fd(&b->mux),
	};
	const char *step;
	int err;

	client_pool_init(&b->client_pool, &plan);
	mad_sender_init(&b->mad_sender, &b->mux, &b->client_pool.plan);
	if (b->options.sockets)
		return sole_begin(b);
	client_pool_start(&b->client_pool, mux_tap_single_fd(&b->mux));
	/* detects now any failure that the first client would meet */
	err = instance_make(&b->client_pool.spare[0], &b->client_pool.plan, &step);
	if (err)
		return attach_failed(&b->dev, step, err);
	b->client_pool.spares = 1;
	return 0;
}

static int broker_listen(struct broker *b)
{
	int err = link_events_open(&b->link_events);

	b->socket_source = (struct source){ .ready = broker_accept, .fd = b->broker_socket.fd };
	b->events_source = (struct source){ .ready = broker_take_events, .fd = b->link_events.fd };
	b->packets_source =
		(struct source){ .ready = broker_packets, .fd = b->mux.receive.set_fd };
	if (!err)
		err = loop_add(b->loop, &b->events_source);
	if (!err)
		err = mad_refuser_open(b);
	if (!err && b->mux.host)
		err = loop_add(b->loop, &b->packets_source);
	if (!err && b->broker_socket.fd >= 0)
		err = loop_add(b->loop, &b->socket_source);
	if (!err && b->holder_fd >= 0)
		err = visitors_begin(&b->of_holder, b->loop, b->holder_fd);
	if (!err && b->alone_fd >= 0)
		err = visitors_begin(&b->of_alone, b->loop, b->alone_fd);
	/* after the subscription: no change is missed */
	if (!err)
		broker_follow(b);
	if (!err && !b->ended)
		broker_follow_neighbours(b);
	return err ? attach_failed(&b->dev, "watch the interface", err) : b->ended ? -ENODEV : 0;
}

/* Serves the process that started the broker. */
static int broker_welcome_first(struct broker *b)
{
	struct visitor v;
	int err = broker_socket_visitor(b->options.client_fd, &v);

	if (!err)
		err = client_make(b, &v);
	return err ? attach_failed(&b->dev, "serve the process that started it", err) : 0;
}

static int broker_receive_by_udp(struct broker *b)
{
	int err = mux_make_udp(&b->mux, &b->dev);

	if (!err)
		err = broker_make_books(b);
	return err ? err : broker_make_udp_pool(b);
}

static int broker_receive_by_xdp(struct broker *b)
{
	int err = mux_make(&b->mux, &b->dev, &b->options.pkeys);

	if (!err && !b->options.sockets)
		err = mux_put_on(&b->mux);
	if (!err)
		err = broker_make_books(b);
	if (!err)
		err = broker_make_pool(b);
	b->lacks_xdp = err;
	return err;
}

/* Of processes that start at the same time one has the interface: the others print no line. */
static void broker_say_udp(const struct broker *b)
{
	if (b->options.why_udp && !options_is_set(OPTION_QUIET))
		attach_complain(&b->dev,
				"%susing UDP sockets, which are slower (XROCE_PORT, xroce(7))",
				b->options.why_udp);
}

/* Starts a broker. After an error the caller calls broker_end(), which undoes each step done. */
static int broker_begin(struct broker *b)
{
	int err = proof_find_way();

	if (err < 0)
		return attach_failed(&b->dev, "check the privileges of clients (a UDP "
					      "socket)",
				     err);
	b->proof_way = (enum proof_way)err;
	err = broker_lock(b);
	if (!err)
		broker_say_udp(b);
	if (!err)
		err = b->options.udp ? broker_receive_by_udp(b) : broker_receive_by_xdp(b);
	if (!err)
		err = pinned_begin(b);
	if (!err)
		err = broker_open_socket(b);
	if (!err && b->options.client_fd >= 0)
		err = broker_welcome_first(b);
	return err ? err : broker_listen(b);
}

/* Stops new connections, then packets, ends all clients, and frees their resources. */
static void broker_end(struct broker *b)
{
	broker_socket_close(&b->broker_socket);
	if (b->mux.bpf || b->mux.host)
		mux_detach(&b->mux);
	if (b->options.ends)
		b->options.ends(b->options.ends_arg, &b->dev);
	while (b->clients)
		client_end(b->clients);
	unread_end(b);
	held_end(b);
	while (client_trace_bury(b))
		;
	dead_peers_free(b);
	mad_refuser_close(b);
	mad_sender_close(&b->mad_sender);
	sole_drop(b);
	client_pool_empty(&b->client_pool);
	pinned_end(b);
	mux_unmake(&b->mux);
	numbers_unmake(&b->numbers);
	bindings_unmake(&b->bindings);
	groups_free(&b->groups);
	link_events_close(&b->link_events);
	close_fd(&b->reserve_fd);
	close_fd(&b->alone_fd);
	close_fd(&b->holder_fd);
	/* after the names: a process that waits for the hang-up takes one at once */
	visitors_end(&b->of_alone);
	visitors_end(&b->of_holder);
	/* last: when the sender of ASK_STOP sees the hang-up, everything is removed */
	close_fd(&b->stopper_fd);
	free(b);
}

/*
 * Serves an interface. Returns 0, or -errno as brokers_add(); *lacks_xdp: it would work with UDP
 * sockets.
 */
static int brokers_try(struct brokers *all, const struct netdev *dev,
		       const struct broker_options *o, bool *lacks_xdp)
{
	struct broker *b = calloc(1, sizeof(*b));
	int err;

	*lacks_xdp = false;
	if (!b)
		return attach_failed(dev, "allocate memory", -ENOMEM);
	b->loop = &all->loop;
	b->options = *o;
	b->dev = *dev;
	b->holder_fd = b->stopper_fd = b->broker_socket.fd = b->link_events.fd = b->alone_fd = -1;
	b->follow_ns = b->held_ns = NSEC_NEVER;
	visitors_init(&b->of_holder);
	visitors_init(&b->of_alone);
	b->mux = (struct mux){ .hook = HOOK_NONE, .hairpin_fd = -1, .hairpin_link_fd = -1 };
	b->mad_sender.fd = -1;
	b->pins = PINS_NONE;
	b->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	err = broker_begin(b);
	if (err) {
		*lacks_xdp = b->lacks_xdp && err != -ENODEV;
		broker_end(b);
		/* a program of another broker would take the packets */
		*lacks_xdp &= !hook_has_ours(dev);
		return err;
	}
	b->unused_ns = o->while_used ? clock_now_ns() + UNUSED_FIRST_NS : NSEC_NEVER;
	b->rival_ns = o->udp && !b->broker_socket.at.sun_path[0] ? 0 : NSEC_NEVER;
	b->next = all->first;
	all->first = b;
	return 0;
}

/* Options that choose a kind of XDP are requests for XDP. */
static bool brokers_may_use_udp(const struct broker_options *o)
{
	return o->or_udp && options_xdp() == XDP_CHOICE_AUTO && options_attach() == ATTACH_AUTO;
}

int brokers_add(struct brokers *all, const struct netdev *dev, const struct broker_options *o)
{
	const bool may_attach = spawn_may(), may_use_udp = brokers_may_use_udp(o);
	struct broker_options by_udp = *o;
	bool lacks_xdp;
	int err;

	by_udp.udp = true;
	by_udp.sockets = false;
	if (o->udp || (may_use_udp && !may_attach)) {
		if (!o->udp)
			by_udp.why_udp = "no privileges for XDP: ";
		return brokers_try(all, dev, &by_udp, &lacks_xdp);
	}
	err = brokers_try(all, dev, o, &lacks_xdp);
	if (!err || !lacks_xdp || !may_use_udp)
		return err;
	by_udp.why_udp = "";
	return brokers_try(all, dev, &by_udp, &lacks_xdp);
}

/* ---- work ---- */

static void broker_look_at_use(struct broker *b, u64 now_ns)
{
	if (!b->options.while_used)
		return;
	if (b->quota.used[QUOTA_CLIENTS])
		b->unused_ns = NSEC_NEVER;
	else if (b->unused_ns == NSEC_NEVER)
		b->unused_ns = now_ns + UNUSED_NS;
	else if (now_ns >= b->unused_ns)
		b->ended = true;
}

/*
 * Ends a broker with UDP sockets of a user if a broker of root's has taken the interface: an XDP
 * program gets the packets then.
 */
static void broker_look_for_rival(struct broker *b, u64 now_ns)
{
	pid_t pid;

	if (now_ns < b->rival_ns)
		return;
	b->rival_ns = now_ns + RIVAL_NS;
	b->ended |= !broker_socket_holder(b->dev.ifindex, &pid);
}

/* Does one piece of slow work that is due. Returns false if there is none. */
static bool broker_work_slowly(struct broker *b, u64 now_ns, bool idle)
{
	struct client *c;

	/* first: an observer that reconnects gets no new rings before its old ones are freed */
	if (client_trace_bury(b))
		return true;
	if (held_work(b, now_ns))
		return true;
	c = client_waiting(b, false);
	if (c)
		client_serve(c);
	else if (client_pool_is_due(&b->client_pool, now_ns))
		client_pool_reap(&b->client_pool);
	else if (idle && client_pool_is_short(&b->client_pool, now_ns))
		client_pool_fill(&b->client_pool, now_ns);
	else
		return false;
	return true;
}

/*
 * Does the work that is due. idle: there are no questions. Slow work waits for that, but only until
 * slow_ns, so that a client that asks all the time does not keep others from a port.
 */
static void broker_work(struct broker *b, u64 now_ns, bool idle)
{
	struct client *c;

	unread_end_silent(b, now_ns);
	sole_work(b, now_ns);
	c = client_waiting(b, true);
	if (c)
		client_serve(c);
	else if ((idle || now_ns >= b->slow_ns) && broker_work_slowly(b, now_ns, idle))
		b->slow_ns = clock_now_ns() + SLOW_NS;
	client_note_waiting(b, now_ns);
	dead_peers_tell(b, now_ns);
	client_trace_renew(b, now_ns);
	broker_look_at_use(b, now_ns);
	broker_look_for_rival(b, now_ns);
	if (now_ns >= b->follow_ns)
		broker_follow(b);
}

static u64 broker_next_ns(struct broker *b)
{
	u64 next_ns = min_u64(dead_peers_next_ns(b), b->unused_ns);

	next_ns = min_u64(next_ns, client_trace_next_ns(b));
	next_ns = min_u64(next_ns, unread_next_ns(b));
	next_ns = min_u64(next_ns, client_next_note_ns(b));
	next_ns = min_u64(next_ns, held_next_ns(b));
	next_ns = min_u64(next_ns, client_pool_next_ns(&b->client_pool));
	next_ns = min_u64(next_ns, sole_next_ns(b));
	next_ns = min_u64(next_ns, b->rival_ns);
	next_ns = min_u64(next_ns, b->follow_ns);
	return b->dead_traces || client_waiting(b, false) ? 0 : next_ns;
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
		const int turn = loop_turn(&all->loop, brokers_timeout_ms(all));
		const bool idle = turn <= 0;
		const u64 now_ns = clock_now_ns();

		if (turn < 0 && turn != -EINTR)
			err = turn;
		for (struct broker *b = all->first; b; b = b->next)
			broker_work(b, now_ns, idle);
		brokers_sweep(all);
	}
	loop_remove(&all->loop, &all->end_source);
	return err;
}

/*
 * Raises the limits of descriptors, of which each connection takes one, of locked memory, and of a
 * file's size: a client's memory is a file at a broker with UDP sockets. A file that is too long
 * is then an error, and not the broker's end.
 */
static void brokers_raise_limits(void)
{
	kernel_raise_limit(RLIMIT_NOFILE);
	kernel_raise_limit(RLIMIT_MEMLOCK);
	kernel_raise_limit(RLIMIT_FSIZE);
	signal(SIGXFSZ, SIG_IGN);
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
