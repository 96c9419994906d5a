/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes in runs with sole clients. Each opens a port in several lives. Root's process has one
 * most of the time, alone or with others. With AF_XDP sockets it looks at its eventfd at intervals;
 * some intervals are longer than the broker lets others wait.
 */
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../user/engine/packet.h"

#define LIVES	 2
#define PIECE_MS 100u				 /* between looks */
#define SLOW_NS	 (HOLD_NS + 100 * NSEC_PER_MSEC) /* the longest wait for a port */

/* All in ms. */
struct life {
	u32 after; /* the end of the last one, or the run's start */
	u32 lasts;
	u32 deaf;  /* then, without a look */
	u32 more;  /* then */
	u32 raw;   /* with a raw packet QP, then */
	u32 rests; /* then */
};

/* Lives in the runs whose seeds are no draw. */
static const struct life LIVED[CLIENTS][LIVES] = {
	/*
	 * comes while the process with sockets looks; then while that has a raw packet QP, or has
	 * ended
	 */
	{ { .after = 110, .lasts = 60 }, { .after = 3400, .lasts = 100 } },
	/* comes while the process with sockets does not look */
	{ { .after = 1610, .lasts = 200 }, { .after = 3000, .lasts = 10 } },
	{ { .lasts = 1500, .deaf = 700, .more = 1300, .raw = 300, .rests = 300 },
	  { .after = 300, .lasts = 50 } },
};

/* The draws are statements, as their order matters to a replay. */
static struct life life_of(const struct process *p, u32 n)
{
	const bool root = !process_uid(p->index);
	struct life life = { 0 };

	if (run.seed < IN_TURNS)
		return LIVED[p->index][n];
	life.after = sim_random(root ? 300 : 4000);
	life.lasts = sim_random(root ? 2500 : 300);
	if (root && sim_random(2))
		life.deaf = 300 + sim_random(1200);
	if (root)
		life.more = sim_random(2500);
	if (root)
		life.raw = sim_random(600);
	if (sim_random(2))
		life.rests = sim_random(300);
	return life;
}

/* ---- others ---- */

/* Like others_change() (user/port/others.c). */
static void meet(struct process *p)
{
	struct attachment *m = &p->port.made;
	u64 added;
	int fd;

	actor_step();
	if (read(m->fd[ASK_FD_OTHERS], &added, sizeof(added)) != sizeof(added))
		return;
	p->meets = true;
	fd = ask_others(&m->asker);
	/* the second answer is in place of the first: the eventfd may be added to in between */
	if (fd >= 0 && p->meetings++ % 2) {
		close(fd);
		fd = ask_others(&m->asker);
	}
	must(fd >= 0 || fd == -ENOENT || fd == -ENOMEM || fd == -E2BIG || ask_is_over(fd));
	if (p->tap_fd >= 0)
		close(p->tap_fd);
	outcome.met += fd >= 0;
	outcome.parted += fd == -ENOENT;
	p->tap_fd = fd >= 0 ? fd : -1;
	p->tap = fd >= 0 ? faked_tap(fd) : 0;
	p->port.shards.shared = fd >= 0;
	p->met_nobody = fd < 0 && fd != -ENOENT;
	p->meets = false;
}

static void look(struct process *p)
{
	if (p->has_sockets && p->has_port)
		meet(p);
	process_look(p);
}

/* Sleeps for `ms` in all, and looks after each piece. */
static void rest(struct process *p, u32 ms, u32 piece_ms)
{
	while (ms && p->has_port) {
		const u32 now_ms = min_u32(ms, piece_ms);

		actor_sleep(now_ms * NSEC_PER_MSEC);
		look(p);
		ms -= now_ms;
	}
}

/* ---- a raw packet QP ---- */

static void make_raw(struct process *p)
{
	struct qp_init init = { .transport = XROCE_RAW,
				.max_send_wr = 1,
				.max_recv_wr = 1,
				.max_recv_sge = 1,
				.max_send_sge = 1,
				.send_cq = &p->cq,
				.recv_cq = &p->cq };
	int err;

	p->rests = false;
	err = port_create_qp(&p->port, p->shard.engine, &init, &p->raw_qp);
	/* EOPNOTSUPP: others have a port */
	must(!err || err == -EOPNOTSUPP || err == -ENOSPC || err == -EIO || err == -E2BIG);
	must(err || p->has_sockets);
	if (err)
		p->raw_qp = NULL;
	outcome.raws += !err;
	p->rests = true;
}

void process_sole_forget(struct process *p)
{
	if (p->raw_qp)
		port_destroy_qp(&p->port, p->raw_qp);
	p->raw_qp = NULL;
}

static void destroy_raw(struct process *p)
{
	const u32 qpn = p->raw_qp ? p->raw_qp->qpn : 0;

	if (!qpn)
		return;
	p->rests = false;
	process_sole_forget(p);
	port_release(&p->port, qpn);
	p->rests = true;
	look(p);
}

/* ---- the end ---- */

void process_sole_leave(struct process *p)
{
	struct asker *a = &p->port.made.asker;
	struct pollfd fd = { .fd = a->fd, .events = POLLIN };
	const struct broker *b;

	ask_leave(a);
	must(poll(&fd, 1, 1000) == 1 && fd.revents & POLLHUP);
	/* the broker has no more of it, and, if it ended, nothing at all */
	b = faked_broker();
	if (!b || p->generation != faked_generation())
		return;
	must(!b->ended || run.fault == FAULT_COPY);
	for (const struct client *c = b->clients; c; c = c->next)
		must(c->pid != process_pid(p->index));
}

/* ---- a life ---- */

static bool may_fail_with(int err)
{
	return err == -ENOENT || ask_is_over(err) ||
	       (run.fault &&
		(err == -ENOMEM || err == -E2BIG || err == -EMFILE || err == -ETOOMANYREFS));
}

/* Returns 0, or -errno if there is no port for now. */
static int open_in_time(struct process *p)
{
	const u64 from_ns = clock_now_ns();
	const int err = process_open(p);

	must(clock_now_ns() < from_ns + SLOW_NS);
	/* a sole client with raw packet QPs kept it out */
	if (err == -EBUSY)
		must(check_raw_ns() >= from_ns);
	else
		must(!err || may_fail_with(err));
	outcome.busy += err == -EBUSY;
	outcome.soles += !err && p->has_sockets;
	return err;
}

static void ask(struct process *p)
{
	struct asker *a = &p->port.made.asker;
	const struct gid group = { .raw = { 0xff, 0x15, [15] = 1 } };
	const struct ask_service service = { .id = 0x1060000 + 4000 + p->index,
					     .families = ASK_IPV4 };
	u32 slot;
	int fd = ask_ring(a, &slot), err;

	if (fd >= 0)
		close(fd);
	must(fd >= 0 || ask_is_over(fd) || fd == -ENOMEM);
	err = ask_bind(a, &service);
	must(!err || err == -E2BIG || ask_is_over(err));
	err = ask_claim(a, XROCE_CM_QPN);
	must(!err || err == -E2BIG || ask_is_over(err));
	err = ask_attach(a, &group);
	must(!err || err == -E2BIG || ask_is_over(err));
	look(p);
}

/* Returns true if the process has done all its work. */
static bool live(struct process *p, const struct life *life)
{
	int err = open_in_time(p);

	if (err) {
		actor_sleep((err == -EBUSY ? 20 : 1) * NSEC_PER_MSEC);
		return false;
	}
	process_make_qp(p);
	rest(p, life->lasts, PIECE_MS);
	if (p->has_port)
		ask(p);
	rest(p, life->deaf, life->deaf);
	rest(p, life->more, PIECE_MS);
	if (run.mode & MODE_RAW && p->has_port)
		make_raw(p);
	rest(p, run.mode & MODE_RAW ? life->raw : 0, PIECE_MS);
	if (p->has_port)
		destroy_raw(p);
	rest(p, life->rests, PIECE_MS);
	while (p->has_port && p->num_qps)
		process_destroy_qp(p);
	err = p->has_port ? 0 : -EIO;
	process_close(p);
	return !err;
}

void process_sole_main(struct process *p)
{
	for (u32 n = 0; n < LIVES; n++) {
		const struct life life = life_of(p, n);

		actor_sleep(life.after * NSEC_PER_MSEC);
		while (!live(p, &life))
			;
		/* the broker sees the last close */
		actor_step();
	}
}

/* ---- invariants ---- */

/* After a look at its eventfd the process has a TAP device exactly if there are others. */
static void check_meeting(const struct process *p, const struct broker *b, const struct client *c)
{
	const bool knows = b->sole.state == SOLE_ALONE ? !p->tap : p->tap && p->tap == c->tap[0];

	must(knows || p->meets || p->met_nobody || fd_is_written() ||
	     fd_is_ready(p->port.made.fd[ASK_FD_OTHERS]));
}

void process_sole_check(const struct process *p, const struct broker *b, const struct client *c)
{
	must(p->has_sockets == (b->sole.client == c));
	if (!p->has_sockets)
		return;
	must(p->port.made.maps.engine == c->readonly_maps.engine);
	/* no other process has a port then: check.c */
	must(!p->raw_qp || (c->readonly_maps.engine->raw && b->sole.state == SOLE_ALONE));
	check_meeting(p, b, c);
}
