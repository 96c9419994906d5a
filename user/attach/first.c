/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_tun.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../os/kernel.h"
#include "../os/options.h"
#include "attach.h"
#include "hook.h"
#include "spawn.h"

/* The longest wait for the first question of a connection. */
#define KNOCK_NS (20 * NSEC_PER_MSEC)

#define FIRST_MODE 0666 /* of the socket, as of a broker that is started on demand */

static void first_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int first_link_fd(const struct attachment *m)
{
	return atomic_load_explicit(&((struct attachment *)m)->link_fd, memory_order_relaxed);
}

/* ---- the door ---- */

void first_init(struct attachment *m)
{
	m->first = (struct first){ .door.fd = -1, .tap_fd = -1, .clients_fd = -1, .mux_fd = -1,
				   .hairpin_fd = -1, .alone_fd = -1 };
}

/* Called before the socket is closed, so that a process that finds none also finds the reason. */
static void first_stay_alone(struct attachment *m)
{
	if (m->holder_fd >= 0 && m->first.alone_fd < 0)
		m->first.alone_fd = netdev_say_alone(m->ifindex);
}

void first_listen(const struct netdev *dev, struct attachment *m)
{
	/* the broker needs the interface's name */
	const bool may = options_share() == SHARE_AUTO && m->holder_fd >= 0;

	if (!may || broker_socket_open(&m->first.door, dev->ifindex, FIRST_MODE, (gid_t)-1))
		first_stay_alone(m);
}

void first_forbid(struct attachment *m)
{
	first_stay_alone(m);
	broker_socket_close(&m->first.door);
}

int first_fd(const struct attachment *m)
{
	return m->first.joined ? m->asker.fd : m->first.door.fd;
}

/* Gets the question without reading it. Returns false if no valid one arrives in time. */
static bool first_hear(int fd, struct ask *ask)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return kernel_await(&p, 1, clock_now_ns() + KNOCK_NS) > 0 &&
	       recv(fd, ask, sizeof(*ask), MSG_PEEK | MSG_DONTWAIT) == sizeof(*ask) &&
	       ask->version == ASK_VERSION;
}

/* Reads the question and answers it. If it stayed unread, close() would reset the connection. */
static void first_say(int fd, const struct ask_answer *answer)
{
	struct ask ask;

	if (recv(fd, &ask, sizeof(ask), MSG_DONTWAIT) == sizeof(ask))
		send(fd, answer, sizeof(*answer), MSG_NOSIGNAL | MSG_DONTWAIT);
}

int first_answer(struct attachment *m)
{
	const struct ask_answer pkeys = { .version = ASK_VERSION, .what = ASK_PKEYS,
					  .pkeys = m->info.pkeys };
	struct visitor v;
	struct ask ask;
	bool heard;

	if (broker_socket_take(&m->first.door, &v))
		return -EAGAIN;
	heard = first_hear(v.fd, &ask);
	if (heard && (ask.what == ASK_HELLO || (ask.what == ASK_PROVE && ask.number)))
		return v.fd;
	/* only a broker answers other questions: the connection is closed */
	if (heard && ask.what == ASK_PKEYS)
		first_say(v.fd, &pkeys);
	close(v.fd);
	return -EAGAIN;
}

void first_refuse(int visitor_fd)
{
	struct ask_answer answer = { .version = ASK_VERSION, .err = -EBUSY };
	struct ask ask;

	if (!first_hear(visitor_fd, &ask))
		return;
	answer.what = ask.what;
	first_say(visitor_fd, &answer);
}

/* ---- joining a broker ---- */

static int first_spawn(const struct netdev *dev, struct attachment *m, int visitor_fd)
{
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return -errno;
	ask_begin(&m->asker, pair[0]);
	m->asker.ends_quietly = true;
	m->first.door_is_lent = true;
	err = spawn_heir(dev, &m->info.pkeys,
			 (const int[]){ [INHERIT_DOOR] = m->first.door.fd,
					[INHERIT_HOLDER] = m->holder_fd,
					[INHERIT_LINK] = first_link_fd(m),
					[INHERIT_PROGRAM] = hook_prog_fd(m),
					[INHERIT_FIRST] = pair[1],
					[INHERIT_VISITOR] = visitor_fd,
					[INHERIT_HAIRPIN] = m->first.hairpin_fd },
			 m->first.hairpin_fd < 0 ? INHERIT_HAIRPIN : INHERITS);
	close(pair[1]);
	return err;
}

static int first_ask_join(struct attachment *m)
{
	struct first *f = &m->first;
	struct ask_port port;
	int fd[ASK_JOIN_FDS], err = ask_join(&m->asker, m->info.native, &port, fd);

	if (err)
		return err;
	f->client = port.client;
	f->tap_fd = fd[ASK_JOIN_TAP];
	f->clients_fd = fd[ASK_JOIN_CLIENTS];
	f->mux_fd = fd[ASK_JOIN_MUX];
	if (f->hairpin_fd < 0)
		f->hairpin_fd = fd[ASK_JOIN_HAIRPIN];
	else
		close(fd[ASK_JOIN_HAIRPIN]);
	return 0;
}

/* Opens a socket on the hairpin, as a socket gets only packets of the interface it is bound to. */
static int first_open_local(struct attachment *m)
{
	const u32 slot = XROCE_LOCAL_XSK;
	struct xroce_sock *stats = &m->maps.sock[min_u32(m->info.queues, XROCE_MAX_QUEUE - 1)];
	struct first *f = &m->first;
	struct ifreq ifr = { 0 };
	int err;

	if (f->local.xsk)
		return 0;
	if (ioctl(f->hairpin_fd, TUNGETIFF, &ifr))
		return -errno;
	err = umem_create(&f->umem, SHARD_LOCAL_FRAMES, 1);
	if (err)
		return err;
	err = xsk_open(&f->local, &f->umem, ifr.ifr_name, 0, 1, 1, false, stats);
	if (!err) {
		err = bpf_map_update_elem(m->xsk_fd, &slot,
					  &f->local.xsk->fd, BPF_ANY);
		if (err)
			xsk_close(&f->local);
	}
	if (err)
		umem_destroy(&f->umem);
	return err;
}

int first_join(const struct netdev *dev, struct attachment *m, int visitor_fd, const char **step)
{
	int err = first_spawn(dev, m, visitor_fd);

	/* EIO: the broker has reported the reason */
	*step = err == -EIO ? NULL : "start a broker (`xroce serve`)";
	if (err)
		return err;
	*step = "join the broker";
	err = first_ask_join(m);
	if (err)
		return err;
	*step = "open a socket for packets of other processes";
	return first_open_local(m);
}

/* Claims the numbers of all QPs. The caller holds the port's `numbers`, so that none is added. */
int first_tell_numbers(struct attachment *m)
{
	int err = 0;

	for (u32 slot = 0; !err && slot < XROCE_MAX_QP; slot++) {
		const u32 qpn = atomic_load_explicit(shared_word(&m->maps.qp[slot].qpn),
						     memory_order_relaxed);

		if (qpn)
			err = ask_claim(&m->asker, qpn);
		if (err == -EALREADY)
			err = 0;
	}
	m->first.joined = !err;
	return err;
}

int first_change_program(struct attachment *m)
{
	LIBBPF_OPTS(bpf_link_update_opts, replace, .flags = BPF_F_REPLACE,
		    .old_prog_fd = (u32)hook_prog_fd(m));

	return bpf_link_update(first_link_fd(m), m->first.mux_fd, &replace);
}

int first_open(struct attachment *m)
{
	return ask_open(&m->asker);
}

/* ---- alone again ---- */

void first_put_program_back(struct attachment *m)
{
	/* replaces any program: ours may be attached still */
	bpf_link_update(first_link_fd(m), hook_prog_fd(m), NULL);
}

void first_put_back(struct attachment *m)
{
	m->first.joined = false;
	first_put_program_back(m);
}

static void first_close_gifts(struct first *f)
{
	first_close_fd(&f->tap_fd);
	first_close_fd(&f->clients_fd);
	first_close_fd(&f->mux_fd);
}

void first_leave(struct attachment *m)
{
	struct first *f = &m->first;

	first_close_gifts(f);
	/* without this the broker would take the hang-up for our end, and keep the interface */
	ask_leave(&m->asker);
	ask_close(&m->asker);
	ask_init(&m->asker);
	f->door_is_lent = false;
	/* name and socket report the broker's credentials: make them ours, if still privileged */
	if (spawn_may()) {
		netdev_take_over(m->holder_fd);
		broker_socket_listen(&f->door);
	}
}

static void first_leave_door(struct attachment *m)
{
	struct broker_socket *d = &m->first.door;

	if (d->fd < 0)
		return;
	if (!m->first.door_is_lent) {
		broker_socket_close(d);
		return;
	}
	broker_socket_leave(d);
	broker_socket_sweep(d, m->ifindex);
}

/* The last call of a process that exits without unmaking its port. */
void first_detach(struct attachment *m)
{
	if (m->first.joined)
		bpf_map_delete_elem(m->first.clients_fd, &m->first.client);
	first_leave_door(m);
}

void first_close(struct attachment *m)
{
	struct first *f = &m->first;

	first_leave_door(m);
	f->joined = false;
	first_close_gifts(&m->first);
	first_close_fd(&f->alone_fd);
	xsk_close(&f->local);
	umem_destroy(&f->umem);
	first_close_fd(&f->hairpin_fd);
}

void first_abandon(struct attachment *m)
{
	broker_socket_leave(&m->first.door);
	m->first.joined = false;
}
