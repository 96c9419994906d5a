/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client: a process that opens the interface, makes QPs, destroys some, and exits; if its broker
 * exits first, it starts again with the next. Its numbers, its port's end and its engine are the
 * library's code. Two of three clients are of one user, whose limit of QPs is less than both want;
 * one is root's, which may choose numbers.
 */
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/client/attach_error.h"
#include "../../user/engine/packet.h"

#define USER	 1000
#define POSTED	 2 /* on each QP */
#define SERVICES_ASKED 4
#define CHOSEN	 5 /* the first number that root chooses */

static struct process processes[CLIENTS];

static struct process *of_port(struct port *port)
{
	return container_of(port, struct process, port);
}

static void reset(u32 index)
{
	memset(&processes[index], 0, sizeof(processes[index]));
	processes[index].index = index;
	processes[index].tap_fd = -1;
}

void processes_begin(void)
{
	for (u32 i = 0; i < CLIENTS; i++)
		reset(i);
}

bool process_is_served(const struct process *p)
{
	const struct broker *b = faked_broker();

	return b && p->generation == faked_generation() && !b->ended;
}

u32 process_uid(u32 index)
{
	return index == CLIENTS - 1 || (!index && run.mode & MODE_ROOTS) ? 0 : USER;
}

u32 process_pid(u32 index)
{
	return 100 + index;
}

/* ---- functions of other folders that a port calls ---- */

void port_lock(struct port *port)
{
}

void shards_unlock(struct shards *all)
{
}

bool port_has_left(const struct port *port)
{
	return atomic_load_explicit(&((struct port *)port)->made.has_left, memory_order_relaxed);
}

void shards_steer(struct shards *all, const struct qp *qp)
{
}

void shards_unsteer(struct shards *all, u32 qpn)
{
}

void shards_catch_up(struct shards *all)
{
}

struct engine *port_engine(struct port *port)
{
	return port->shards.shard[0].engine;
}

/* No reader of the QP statistics here. */
struct xroce_qp_stat *port_take_qp_stat(struct port *port)
{
	return NULL;
}

void port_give_qp_stat(struct port *port, struct xroce_qp_stat *stat)
{
}

void port_show_srq(struct port *port, struct srq *srq)
{
}

void port_hide_srq(struct port *port, struct srq *srq)
{
}

bool shard_turn(struct shard *s)
{
	struct engine_event event;
	u8 frame[PACKET_FRAME_MAX];

	while (engine_output(s->engine, frame, sizeof(frame), clock_now_ns()))
		;
	while (engine_next_event(s->engine, &event))
		;
	return true;
}

/* No process has workers, or sockets of the kernel. */
void worker_kick(struct shard *s)
{
}

void xsk_lose(struct xsk_set *s)
{
}

int link_watch_start(const struct netdev *dev, bool urgent, link_watch_fn *fn, void *arg,
		     struct link_watch **out)
{
	struct process *p = of_port(arg);

	p->watch = (struct link_watch){ fn, arg };
	*out = &p->watch;
	fn(arg, NULL, dev);
	return 0;
}

int link_watch_until_hangup(struct link_watch *watch, int fd)
{
	struct process *p = container_of(watch, struct process, watch);

	must(fd >= 0 && fd == p->port.made.asker.fd);
	p->watches = true;
	return 0;
}

void link_watch_stop(struct link_watch *watch)
{
	if (watch)
		container_of(watch, struct process, watch)->watches = false;
}

int attach_draw(struct attachment *m, u32 *qpn)
{
	const int err = ask_draw(&m->asker, qpn);

	return ask_is_over(err) ? -EIO : err;
}

int attach_claim(struct attachment *m, u32 qpn)
{
	const int err = ask_claim(&m->asker, qpn);

	return ask_is_over(err) ? -EIO : err;
}

void attach_release(struct attachment *m, u32 qpn)
{
	outcome.in_vain += of_port(container_of(m, struct port, made))->draws;
	ask_release(&m->asker, qpn);
}

/* ---- the watch ---- */

static void take_completions(struct process *p)
{
	const struct cqe *e;

	for (; (e = cq_peek(&p->cq)); cq_pop(&p->cq)) {
		must(p->posted && e->status == CQE_WR_FLUSH_ERR);
		p->posted--;
	}
}

void process_look(struct process *p)
{
	struct pollfd fd = { .fd = p->port.made.asker.fd };

	if (!p->watches || poll(&fd, 1, 0) != 1 || !(fd.revents & POLLHUP))
		return;
	/* because the broker has ended, and not by this process's actions */
	must(!process_is_served(p));
	p->watches = p->has_port = false;
	p->watch.fn(p->watch.arg, &p->port.dev, NULL);
	outcome.lost++;
	for (u32 i = 0; i < p->num_qps; i++)
		must(qp_state(p->qp[i]) == QPS_ERR);
	take_completions(p);
	must(!p->posted);
}

/* ---- fork ---- */

/* What the child inherited belongs to the parent: the child sends nothing and receives nothing. */
static void in_child(struct process *p)
{
	struct asker *a = &p->port.made.asker;
	u32 qpn, slot;

	ask_abandon(a);
	if (ask_draw(a, &qpn) != -EPIPE || ask_release(a, 2) != -EPIPE ||
	    ask_ring(a, &slot) != -EPIPE)
		_exit(1);
	p->port.shards.dead = true;
	port_release(&p->port, 2);
	_exit(0);
}

void process_fork(u32 index)
{
	struct process *p = &processes[index];
	int status;
	pid_t pid;

	pid = fork();
	must(pid >= 0);
	if (!pid) {
		actors_stop();
		in_child(p);
	}
	must(waitpid(pid, &status, 0) == pid && status == 0);
	outcome.forked = true;
}

/* ---- actions of a client ---- */

int process_open(struct process *p)
{
	struct engine_config config = { .random = NULL, .stats = &p->stats, .drops = &p->drops };
	const struct netdev dev = { .ifindex = 1, .name = "sim0", .mtu = 4500 };
	const bool sockets = run.mode & MODE_SOLE && !process_uid(p->index);
	struct attachment *m = &p->port.made;
	struct ask_port port;
	int err = faked_connect(process_pid(p->index), process_uid(p->index)), fds[ASK_SOCKETS_FDS];

	if (err < 0)
		return err;
	p->generation = faked_generation();
	ask_init(&m->asker);
	ask_begin(&m->asker, err);
	m->asker.has_proved = false;
	err = ask_hello(&m->asker, sockets, &port, fds);
	if (err) {
		ask_close(&m->asker);
		return err;
	}
	must(!port.sockets || sockets);
	p->has_sockets = port.sockets;
	p->num_fds = port.sockets ? ASK_SOCKETS_FDS : ASK_FDS;
	must(port.privileged == !process_uid(p->index));
	must(!memcmp(&port.pkeys, &FAKED_PKEYS, sizeof(port.pkeys)));
	for (u32 i = 0; i < p->num_fds; i++) {
		must(fds[i] >= 0 && fds[i] < m->asker.fd);
		m->fd[i] = fds[i];
	}
	m->info.shared = !port.sockets;
	m->maps.engine = port.sockets ? faked_engine(port.prog_id) : &p->engine_word;
	p->port.shards = (struct shards){ .shard = &p->shard, .num = 1, .shared = !port.sockets };
	p->shard = (struct shard){ .all = &p->port.shards };
	atomic_store_explicit(&p->port.told_limit, false, memory_order_relaxed);
	must(!engine_create(&config, &p->shard.engine) && !cq_init(&p->cq, 64));
	p->has_port = p->rests = true;
	return follow_start(&p->port, &dev);
}

static void forget_port(struct process *p)
{
	if (!p->shard.engine)
		return;
	process_sole_forget(p);
	while (p->num_qps)
		qp_destroy(p->shard.engine, p->qp[--p->num_qps]);
	engine_destroy(p->shard.engine);
	cq_free(&p->cq);
	p->shard.engine = NULL;
	p->posted = 0;
	p->has_port = p->watches = false;
}

void process_forget(u32 index)
{
	struct process *p = &processes[index];

	/* engine->raw stays 1 until the broker ends the client */
	if (p->raw_qp)
		qp_destroy(p->shard.engine, p->raw_qp);
	p->raw_qp = NULL;
	forget_port(p);
	reset(index);
}

void process_close(struct process *p)
{
	p->has_port = p->rests = false;
	follow_stop(&p->port);
	if (p->has_sockets && run.mode & MODE_LEAVES)
		process_sole_leave(p);
	forget_port(p);
	for (u32 i = 0; i < p->num_fds; i++)
		close(p->port.made.fd[i]);
	if (p->tap_fd >= 0)
		close(p->tap_fd);
	p->tap_fd = -1;
	p->tap = 0;
	p->has_sockets = false;
	ask_close(&p->port.made.asker);
}

static void set_state(struct process *p, struct qp *qp, enum qp_state state, u32 mask)
{
	const struct qp_attr attr = { .state = state, .port = 1 };

	must(!qp_modify(p->shard.engine, qp, &attr, QP_ATTR_STATE | mask, clock_now_ns()));
}

/* Posts a receive and a datagram, which both stay, as no engine runs before the end. */
static void post(struct process *p, struct qp *qp)
{
	struct recv_wqe *recv;
	struct send_wqe *send;

	set_state(p, qp, QPS_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY);
	set_state(p, qp, QPS_RTR, 0);
	set_state(p, qp, QPS_RTS, QP_ATTR_SQ_PSN);
	recv = rq_slot(&qp->rq, 0);
	sq_begin(&qp->sq);
	send = sq_slot(&qp->sq, 0);
	must(recv && send);
	*recv = (struct recv_wqe){ .wr_id = qp->qpn };
	*send = (struct send_wqe){ .wr_id = qp->qpn, .opcode = WR_SEND };
	rq_publish(&qp->rq, 1);
	sq_publish(&qp->sq, 1);
	p->posted += POSTED;
}

/* Makes a QP, and returns as port_create_qp(). */
int process_make_qp(struct process *p)
{
	struct qp_init init = { .transport = XROCE_UD, .sq_sig_all = true, .max_send_wr = 1,
				.max_recv_wr = 1, .max_recv_sge = 1, .max_send_sge = 1,
				.send_cq = &p->cq, .recv_cq = &p->cq };
	struct qp *qp;
	int err;

	p->rests = false;
	p->draws = true;
	err = port_create_qp(&p->port, p->shard.engine, &init, &qp);
	if (!err) {
		must(qp->qpn == init.qpn && p->num_qps < ARRAY_SIZE(p->qp));
		post(p, qp);
		p->qp[p->num_qps++] = qp;
		/* the broker may have exited since: error the QP, as for one created just before */
		if (!p->watches)
			engine_qp_error(p->shard.engine, qp, 0);
	}
	p->draws = false;
	/* a limit is reported by a line, and root has none */
	must(err != -ENOSPC || (process_uid(p->index) && p->port.told_limit));
	/* ENOMEM, E2BIG: by a fault */
	must(!err || err == -ENOSPC || err == -EIO || err == -ENOMEM || err == -E2BIG);
	p->rests = true;
	process_look(p);
	return err;
}

void process_destroy_qp(struct process *p)
{
	struct qp *qp = p->qp[p->num_qps - 1];
	const u32 qpn = qp->qpn;

	p->num_qps--;
	p->posted -= p->watches ? POSTED : 0;
	qp_destroy(p->shard.engine, qp);
	/* the number is still counted until the broker reads this */
	p->rests = false;
	port_release(&p->port, qpn);
	p->rests = true;
	process_look(p);
}

/* The list has this process exactly once, however other clients come and go. */
static void ask_for_clients(struct process *p)
{
	const bool root = !process_uid(p->index);
	struct ask_client client;
	u32 from = 0, own = 0;
	int err;

	while (!(err = ask_list(&p->port.made.asker, from, &client))) {
		must(client.uid == process_uid(p->index) || root);
		own += client.pid == process_pid(p->index);
		from = client.client + 1;
	}
	must(ask_is_over(err) || (err == -ENOENT && own == 1));
}

/* Returns false if the broker has ended. */
static bool ask_for_more(struct process *p)
{
	struct asker *a = &p->port.made.asker;
	struct ask_kind kind;
	const bool root = !process_uid(p->index);
	u32 slot;
	int fd = ask_ring(a, &slot), err;

	if (fd >= 0)
		close(fd);
	must(fd >= 0 || ask_is_over(fd) || fd == -ENOMEM ||
	     (run.mode & MODE_HOARDS && !root && fd == -EDQUOT));
	ask_for_clients(p);
	err = ask_kind(a, &kind);
	must(err ? ask_is_over(err) :
		   !memcmp(&kind.pkeys, &FAKED_PKEYS, sizeof(kind.pkeys)) && !kind.udp &&
			   !kind.sole);
	process_look(p);
	/* a number chosen by the client */
	p->rests = false;
	err = ask_claim(a, CHOSEN);
	if (root)
		must(!err || err == -EEXIST || err == -EALREADY || err == -E2BIG ||
		     ask_is_over(err));
	else
		must(err == -EPERM || ask_is_over(err));
	if (!err)
		must(!ask_release(a, CHOSEN) || !process_is_served(p));
	p->rests = true;
	process_look(p);
	return p->has_port;
}

/* The process's own service, or an overlapping one, or one of a privileged port. */
static struct ask_service service_of(u32 n)
{
	static const struct ask_service services[] = {
		{ .id = 0x1060000 + 4000, .families = ASK_IPV4 | ASK_IPV6 },
		{ .id = 0x1060000 + 4000, .address = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		  .families = ASK_IPV4 },
		{ .id = 0x1060000 + 4000, .families = ASK_IPV6 },
		{ .id = 0x1060000 + 80, .families = ASK_IPV4 },
	};

	return services[n % ARRAY_SIZE(services)];
}

/* Asks for a QP 1 and services, some of them another client's. Returns false as above. */
static bool ask_for_cm(struct process *p)
{
	struct asker *a = &p->port.made.asker;
	bool has[SERVICES_ASKED] = { 0 };
	int err;

	err = ask_claim(a, XROCE_CM_QPN);
	must(!err || err == -E2BIG || ask_is_over(err));
	if (!err)
		must(ask_claim(a, XROCE_CM_QPN) == -EALREADY || !process_is_served(p));
	process_look(p);
	for (u32 i = 0; i < SERVICES_ASKED; i++) {
		const struct ask_service s = service_of(i + p->index);
		const bool low = (s.id & 0xffff) < 1024 && process_uid(p->index);

		err = ask_bind(a, &s);
		must(!err || err == -EADDRINUSE || err == -EDQUOT || err == -E2BIG ||
		     (err == -EACCES && low) || ask_is_over(err));
		must(err || !low);
		has[i] = !err;
		outcome.in_use += err == -EADDRINUSE;
		process_look(p);
	}
	for (u32 i = 0; i + 1 < SERVICES_ASKED; i++) {
		const struct ask_service s = service_of(i + p->index);

		err = ask_unbind(a, &s);
		must(err == (has[i] ? 0 : -ENOENT) || ask_is_over(err));
		process_look(p);
	}
	/* another QP 1 in the same place: the first one's remains are no longer reported */
	if (p->index == 0 && !ask_release(a, XROCE_CM_QPN)) {
		err = ask_claim(a, XROCE_CM_QPN);
		must(!err || err == -E2BIG || ask_is_over(err));
	}
	process_look(p);
	return p->has_port;
}

/* Asks for multicast groups: one shared by all, one of this process. Returns false as above. */
static bool ask_for_groups(struct process *p)
{
	struct asker *a = &p->port.made.asker;
	struct gid group[2] = { { .raw = { 0xff, 0x15, [15] = 1 } },
				{ .raw = { 0xff, 0x15, [14] = 1, [15] = (u8)p->index } } };
	const struct gid one = { .raw = { 0xfe, 0x80, [15] = 1 } };
	bool has[2];
	int err;

	must(ask_attach(a, &one) == -EINVAL || !process_is_served(p));
	for (u32 i = 0; i < 2; i++) {
		err = ask_attach(a, &group[i]);
		must(!err || err == -E2BIG || ask_is_over(err));
		has[i] = !err;
		if (!err)
			must(ask_attach(a, &group[i]) == -EEXIST || !process_is_served(p));
		process_look(p);
	}
	/* the last one detaches the others too */
	err = ask_detach(a, &group[1]);
	must(err == (has[1] ? 0 : -ENOENT) || ask_is_over(err));
	must(ask_detach(a, &group[1]) == -ENOENT || !process_is_served(p));
	process_look(p);
	return p->has_port;
}

/* Returns true if the process has done all its work. */
static bool live(struct process *p)
{
	const bool hoarded = run.mode & MODE_HOARDS && process_uid(p->index);
	int err;

	if (hoarded && p->index)
		process_hoard(p);
	err = process_open(p);
	if (err) {
		/* there is none yet, it ended, a fault, or the user's other process hoards */
		must(err == -ENOENT || ask_is_over(err) || err == -ENOMEM || err == -E2BIG ||
		     (hoarded && err == -EDQUOT));
		return false;
	}
	for (u32 i = 0; i < QPS; i++)
		process_make_qp(p);
	ask_for_more(p);
	ask_for_cm(p);
	ask_for_groups(p);
	for (u32 i = 0; i < 2 && p->num_qps; i++)
		process_destroy_qp(p);
	process_make_qp(p);
	actor_step();
	process_look(p);
	while (p->has_port && p->num_qps)
		process_destroy_qp(p);
	err = p->has_port ? 0 : -EIO;
	process_close(p);
	return !err;
}

void process_main(void *arg)
{
	struct process *p = arg ? &processes[(uintptr_t)arg - 1] : NULL;

	if (run.mode & MODE_SOLE)
		process_sole_main(p);
	else
		while (!live(p))
			actor_sleep(NSEC_PER_MSEC);
}

/* ---- invariants ---- */

static const struct client *broker_client(const struct broker *b, u32 pid)
{
	for (const struct client *c = b->clients; c; c = c->next)
		if (c->pid == pid && c->number != CLIENT_NONE)
			return c;
	return NULL;
}

void processes_check(struct broker *b)
{
	for (u32 i = 0; i < CLIENTS; i++) {
		const struct process *p = &processes[i];
		const struct client *c;

		if (!p->has_port || !actor_lives(i) || !process_is_served(p))
			continue;
		c = broker_client(b, process_pid(i));
		must(c);
		for (u32 k = 0; k < p->num_qps; k++) {
			u32 pid, owner = faked_owner(p->qp[k]->qpn, &pid);

			must(owner == c->number && pid == process_pid(i));
		}
		must(!p->rests || c->qps == p->num_qps + !!p->raw_qp);
		process_sole_check(p, b, c);
	}
}
