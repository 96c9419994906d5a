/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Conversion of a port that owns its interface to a shared port, when another process asks for one,
 * and back (attach/first.h has the steps). The watch thread does both:
 *
 *   alone    A process asks for a port: start a broker and join it. Under port->numbers, so that no
 *            QP is made and no service bound: report all QP numbers, services and multicast groups
 *            to the broker. Under the shards' locks: send frames to QPs of others by the broker's
 *            TAP device. Attach the broker's program, then admit other processes.
 *   joined   The broker has hung up. Under port->numbers: attach this process's own program. Under
 *            the shards' locks: loop frames to the interface's own address again.
 *
 * The data path waits only for the shards' locks, and no packet is lost: with either program,
 * packets to this process's QPs reach its sockets.
 */
#include "../attach/spawn.h"
#include "../os/kernel.h"
#include "../run/shard.h"
#include "port_object.h"

/* Only one thread answers a visitor, and none once the process exits. */
enum share_turn { SHARE_IDLE, SHARE_BEGINS, SHARE_LEAVES };

static void share_ready(void *arg);

/* The watch thread's input: visitors from resume_ns on, or the broker's hang-up. */
static struct link_watch_input share_input(struct port *port, u64 resume_ns)
{
	return (struct link_watch_input){ .fn = share_ready,
					  .arg = port,
					  .fd = first_fd(&port->made),
					  .until_hangup = port->made.first.joined,
					  .resume_ns = resume_ns };
}

/* least time between the starts of two brokers */
#define SHARE_PAUSE_NS NSEC_PER_SEC

/* Opens a sender for each shard, on copies of the TAP device's descriptor. */
static int share_open_senders(struct port *port)
{
	int err = 0;

	for (u32 i = 0; !err && i < port->shards.num; i++)
		err = attach_open_local(&port->dev, &port->made, i);
	return err;
}

static int share_connect(struct port *port)
{
	int err;

	port_lock(port);
	err = share_open_senders(port);
	if (!err) {
		port->shards.shared = true;
		xsk_join(&port->made.io[0].xsks, &port->made.first.local);
	}
	port_unlock(port);
	/* its service thread does not sleep on the new socket yet */
	worker_kick(&port->shards.shard[0]);
	return err;
}

static void share_disconnect(struct port *port)
{
	port_lock(port);
	port->shards.shared = false;
	for (u32 i = 0; i < port->shards.num; i++)
		attach_close_local(&port->made, i);
	port_unlock(port);
}

static void share_end(struct port *port)
{
	first_put_back(&port->made);
	share_disconnect(port);
	first_leave(&port->made);
}

/* If this step fails, the visitor may have been admitted or not. */
static const char share_last_step[] = "admit other processes";

/* Returns whether raw packet QPs exist: other processes would lose the frames of their flows. */
static bool share_is_taken(struct port *port)
{
	bool taken;

	port_lock(port);
	taken = raw_any(port_engine(port));
	port_unlock(port);
	return taken;
}

/* Converts to a shared port. 0, or -errno and the failed *step; NULL: without a message. */
static int share_begin(struct port *port, int visitor_fd, const char **step)
{
	struct attachment *m = &port->made;
	int err = share_is_taken(port) ? -EBUSY : first_join(&port->dev, m, visitor_fd, step);

	if (err == -EBUSY && !*step)
		return err;
	pthread_mutex_lock(&port->numbers);
	/* one may have been made before the lock */
	if (!err && share_is_taken(port)) {
		*step = NULL;
		err = -EBUSY;
	}
	if (!err) {
		*step = "report its QPs to the broker";
		err = first_tell_numbers(m);
	}
	if (!err) {
		*step = "report its services to the broker";
		err = services_tell(port);
	}
	if (!err) {
		*step = "report its multicast groups to the broker";
		err = port_tell_groups(port);
	}
	if (!err) {
		*step = "send to other processes";
		err = share_connect(port);
	}
	if (!err) {
		*step = "replace the XDP program";
		err = first_change_program(m);
	}
	if (!err) {
		*step = share_last_step;
		err = first_open(m);
	}
	if (err)
		share_end(port);
	pthread_mutex_unlock(&port->numbers);
	return err;
}

static void share_complain(struct port *port, const char *step, int err)
{
	/* EPIPE: the broker was stopped or killed; the next visitor gets another one */
	if (!port->share_told && step && err != -EPIPE)
		fprintf(stderr,
			"xroce: %s: cannot share the interface with another process: cannot %s: "
			"%s\n",
			port->shards.name, step,
			err == -ENOBUFS ? "the limit of locked memory (`ulimit -l`) is reached; "
					  "raise it, or run `xroce serve` first" :
					  strerror(-err));
	port->share_told = true;
}

static void share_watch(struct port *port, u64 resume_ns)
{
	const struct link_watch_input next = share_input(port, resume_ns);

	link_watch_input_change(port->watch, &next);
}

/*
 * Admits no more processes, as this one cannot start a broker: it has dropped its privileges, or
 * does not find the command. Others get the line that names the interface's owner.
 */
static void share_stop(struct port *port)
{
	const struct link_watch_input none = { .fd = -1 };

	link_watch_input_change(port->watch, &none);
	first_forbid(&port->made);
}

static bool share_is_over(int err)
{
	return err == -EPERM || err == -ENOENT;
}

static void share_let_in(struct port *port, u64 now_ns)
{
	const int fd = first_answer(&port->made);
	const char *step = NULL;
	int err;

	if (fd < 0)
		return;
	/* after a failure, refuse for SHARE_PAUSE_NS as if this process did not listen */
	err = port->share_failed && now_ns - port->share_ns < SHARE_PAUSE_NS ? -EBUSY : 0;
	if (!err) {
		port->share_ns = now_ns;
		err = share_begin(port, fd, &step);
		port->share_failed = err != 0;
		if (err)
			share_complain(port, step, err);
	}
	if (share_is_over(err))
		share_stop(port);
	if (err && step != share_last_step)
		first_refuse(fd);
	/* the broker has a copy; without a broker, the close ends the visitor's wait */
	kernel_close(fd);
	if (!err)
		share_watch(port, 0);
}

/* Answers a visitor, unless share_settle() has run, after which the socket may be closed. */
static void share_knock(struct port *port, u64 now_ns)
{
	u32 turn = SHARE_IDLE;

	if (!atomic_compare_exchange_strong_explicit(&port->share_turn, &turn, SHARE_BEGINS,
						     memory_order_relaxed, memory_order_relaxed))
		return;
	share_let_in(port, now_ns);
	/* release: pairs with the acquire in share_settle(), which sees the whole conversion */
	atomic_store_explicit(&port->share_turn, SHARE_IDLE, memory_order_release);
}

static void share_lost(struct port *port)
{
	pthread_mutex_lock(&port->numbers);
	share_end(port);
	pthread_mutex_unlock(&port->numbers);
	if (spawn_may())
		share_watch(port, port->share_ns + SHARE_PAUSE_NS);
	else
		share_stop(port);
}

static void share_ready(void *arg)
{
	struct port *port = arg;

	if (port->made.first.joined)
		share_lost(port);
	else
		share_knock(port, clock_now_ns());
}

bool share_settle(struct port *port)
{
	u32 turn = SHARE_IDLE;

	/* acquire: pairs with the release in share_knock() */
	return atomic_compare_exchange_strong_explicit(&port->share_turn, &turn, SHARE_LEAVES,
						       memory_order_acquire,
						       memory_order_relaxed) ||
	       turn == SHARE_LEAVES;
}

int share_start(struct port *port)
{
	port->share_input = share_input(port, 0);
	return link_watch_also(port->watch, &port->share_input);
}
