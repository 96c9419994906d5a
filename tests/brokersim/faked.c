/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a broker has of the kernel and of the network: programs and maps (mux.c, instance.c), TAP
 * devices (tap.c), its socket's place (broker_socket.c), the interface; and what a port asks of its
 * room. All of it is the broker's and goes with it.
 */
#include "sim.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../user/attach/attach_error.h"
#include "../../user/attach/iface_lock.h"
#include "../../user/attach/trace_slot.h"
#include "../../user/attach/prove.h"
#include "../../user/os/kernel.h"
#include "../../user/os/process.h"
#include "../../user/broker/pinned.h"
#include "../../user/broker/readonly_maps.h"
#include "../../user/broker/first.h"
#include "../../user/broker/proof.h"
#include "../../user/broker/dead_peers.h"
#include "../../user/broker/tap.h"
#include "../../user/os/netdev.h"

#define WAITING_MAX 16
#define QPS_MAX	    16 /* fewer than there are numbers */
#define TAPS_MAX    4096
#define GROUPS	    4
#define SERVICES    64

/* Where a number's owner stands. */
static u32 faked_at(u32 qpn)
{
	const u32 slot = qpn % XROCE_MAX_QP, generation = qpn / XROCE_MAX_QP;

	must(slot < NUMBERS && generation < GENERATIONS);
	return generation * NUMBERS + slot;
}

static struct {
	struct broker *broker;
	u32 generation;
	struct {
		u32 client, pid;
	} owner[NUMBERS * GENERATIONS];
	u32 owner_end; /* no later one has been written in this run */
	bool program[XROCE_MAX_CLIENT];
	struct {
		struct gid address;
		struct xroce_members members; /* num 0: unused */
	} group[GROUPS];
	u32 place[PLACES]; /* the client; ~0u: unused */
	struct faked_service {
		struct xroce_service_key key;
		u32 place; /* 0: unused */
	} service[SERVICES];
	/* the listening socket: connections not accepted yet */
	int door_fd; /* -1: no listener */
	struct visitor waiting[WAITING_MAX];
	u32 num_waiting;
	u32 told; /* orphans */
	u32 instances;
	u32 taps;
	bool tap_is[TAPS_MAX];
	enum fault fault;
	u32 nth;
} faked;

static bool fails(enum fault fault)
{
	const bool now = ++outcome.calls[fault] == faked.nth && faked.fault == fault;

	outcome.faults += now;
	return now;
}

void faked_begin(enum fault fault, u32 nth)
{
	memset(&faked, 0, sizeof(faked));
	memset(faked.owner, 0xff, sizeof(faked.owner));
	memset(faked.place, 0xff, sizeof(faked.place));
	faked.door_fd = -1;
	faked.fault = fault;
	faked.nth = nth;
}

/* Its memory, too. */
void faked_lose_broker(void)
{
	struct broker *b = faked.broker;

	for (u32 i = 0; i < faked.num_waiting; i++)
		fd_close(faked.waiting[i].fd);
	faked.num_waiting = 0;
	faked.door_fd = -1;
	faked.told = 0;
	faked.instances = 0;
	memset(faked.owner, 0xff, sizeof(faked.owner));
	memset(faked.place, 0xff, sizeof(faked.place));
	memset(faked.service, 0, sizeof(faked.service));
	memset(faked.group, 0, sizeof(faked.group));
	memset(faked.program, 0, sizeof(faked.program));
	memset(faked.tap_is, 0, sizeof(faked.tap_is));
	faked.broker = NULL;
	if (!b)
		return;
	numbers_unmake(&b->numbers);
	bindings_unmake(&b->bindings);
	groups_free(&b->groups);
	dead_peers_free(b);
	for (struct client *c = b->clients, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(b);
}

struct broker *faked_broker(void)
{
	return faked.broker;
}

u32 faked_generation(void)
{
	return faked.generation;
}

u32 faked_owned(void)
{
	u32 n = 0;

	for (u32 i = 0; i < faked.owner_end; i++)
		n += faked.owner[i].client != ~0u;
	return n;
}

u32 faked_owner(u32 qpn, u32 *pid)
{
	*pid = faked.owner[faked_at(qpn)].pid;
	return faked.owner[faked_at(qpn)].client;
}

u32 faked_place(u32 place)
{
	return faked.place[place];
}

u32 faked_places(void)
{
	u32 n = 0;

	for (u32 i = 0; i < PLACES; i++)
		n += faked.place[i] != ~0u;
	return n;
}

u32 faked_services(u32 place)
{
	u32 n = 0;

	for (u32 i = 0; i < SERVICES; i++)
		n += faked.service[i].place && (!place || faked.service[i].place == place);
	return n;
}

u32 faked_programs(void)
{
	u32 n = 0;

	for (u32 i = 0; i < XROCE_MAX_CLIENT; i++)
		n += faked.program[i];
	return n;
}

u32 faked_instances(void)
{
	return faked.instances;
}

u32 faked_taps(void)
{
	u32 n = 0;

	for (u32 i = 0; i < TAPS_MAX; i++)
		n += faked.tap_is[i];
	return n;
}

/* ---- user/broker/mux.c ---- */

int mux_make(struct mux *m, const struct netdev *dev, const struct pkey_table *pkeys,
	     const struct mux_heirloom *heirloom)
{
	faked.broker = container_of(m, struct broker, mux);
	faked.generation++;
	m->bpf = (struct xroce_broker_bpf *)&faked;
	return 0;
}

void mux_unmake(struct mux *m)
{
	m->bpf = NULL;
	faked.broker = NULL;
	memset(faked.owner, 0xff, sizeof(faked.owner));
}

void mux_detach(struct mux *m)
{
}

int mux_publish(struct mux *m, const struct netdev *now)
{
	return 0;
}

int mux_follow_near(struct mux *m)
{
	return 0;
}

int mux_clients_fd(const struct mux *m)
{
	return -1;
}

int mux_gids_fd(const struct mux *m)
{
	return -1;
}

int mux_turn_fd(const struct mux *m)
{
	return -1;
}

int mux_tap_ingress_fd(const struct mux *m)
{
	return -1;
}

int mux_tap_egress_fd(const struct mux *m)
{
	return -1;
}

int mux_tap_single_fd(const struct mux *m)
{
	return -1;
}

u32 mux_max_qps(const struct mux *m)
{
	return QPS_MAX;
}

int mux_enter(struct mux *m, const struct mux_client *c, int prog_fd,
	      const u32 tap[INSTANCE_TAPS])
{
	must(!faked.program[c->number]);
	if (fails(FAULT_ENTER))
		return -E2BIG;
	faked.program[c->number] = true;
	return 0;
}

void mux_leave(struct mux *m, u32 client, const u32 tap[INSTANCE_TAPS])
{
	must(faked.program[client]);
	faked.program[client] = false;
}

int mux_own(struct mux *m, u32 qpn, u32 client, u32 pid)
{
	/* unowned until now; the client has its place */
	must(qpn && faked.owner[faked_at(qpn)].client == ~0u && faked.program[client]);
	if (fails(FAULT_OWN))
		return -E2BIG;
	faked.owner_end = faked_at(qpn) < faked.owner_end ? faked.owner_end : faked_at(qpn) + 1;
	faked.owner[faked_at(qpn)].client = client;
	faked.owner[faked_at(qpn)].pid = pid;
	return 0;
}

void mux_disown(struct mux *m, const u32 *qpn, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		const u32 at = faked_at(qpn[i]);

		must(faked.owner[at].client != ~0u);
		faked.owner[at].client = faked.owner[at].pid = ~0u;
	}
}

int mux_put_place(struct mux *m, u32 place, const struct xroce_place *p)
{
	must(place < PLACES && (!p || faked.program[p->client]));
	if (p && fails(FAULT_PLACE))
		return -E2BIG;
	faked.place[place] = p ? p->client : ~0u;
	return 0;
}

/* Returns the entry of the service, or an unused one. */
static u32 *faked_service(const struct xroce_service_key *key)
{
	struct faked_service *unused = NULL;

	for (u32 i = 0; i < SERVICES; i++) {
		struct faked_service *s = &faked.service[i];

		if (s->place && !memcmp(&s->key, key, sizeof(*key)))
			return &s->place;
		if (!s->place)
			unused = s;
	}
	must(unused);
	unused->key = *key;
	return &unused->place;
}

int mux_bind(struct mux *m, const struct binding_keys *keys, u32 place, u32 pid)
{
	for (u32 i = 0; i < keys->num; i++)
		must(!*faked_service(&keys->key[i]));
	if (fails(FAULT_BIND))
		return -E2BIG;
	for (u32 i = 0; i < keys->num; i++)
		*faked_service(&keys->key[i]) = place;
	return 0;
}

void mux_unbind(struct mux *m, const struct binding_keys *keys)
{
	for (u32 i = 0; i < keys->num; i++) {
		must(*faked_service(&keys->key[i]));
		*faked_service(&keys->key[i]) = 0;
	}
}

/* Returns the entry of a group, or an unused one. */
static struct xroce_members *faked_group(const struct gid *group)
{
	u32 unused = GROUPS;

	for (u32 i = 0; i < GROUPS; i++) {
		if (faked.group[i].members.num && gid_equal(&faked.group[i].address, group))
			return &faked.group[i].members;
		if (!faked.group[i].members.num)
			unused = i;
	}
	must(unused < GROUPS);
	faked.group[unused].address = *group;
	return &faked.group[unused].members;
}

int mux_put_members(struct mux *m, const struct gid *group, const struct xroce_members *members)
{
	for (u32 i = 0; members && i < members->num; i++)
		must(faked.program[members->client[i]]);
	if (members && fails(FAULT_GROUP))
		return -E2BIG;
	*faked_group(group) = members ? *members : (struct xroce_members){ 0 };
	return 0;
}

u32 faked_members(u32 client)
{
	u32 n = 0;

	for (u32 g = 0; g < GROUPS; g++)
		for (u32 i = 0; i < faked.group[g].members.num; i++)
			n += client == ~0u || faked.group[g].members.client[i] == client;
	return n;
}

bool mux_has_place(const struct mux *m, u32 place)
{
	return faked.place[place] != ~0u;
}

/* Orphans of a broker's first QP 1: more than one turn reports. */
#define ORPHANS 100u

void mux_take_orphans(struct mux *m, u64 serial, mux_orphan_fn *fn, void *arg)
{
	must(serial && serial <= container_of(m, struct broker, mux)->cm_serial);
	for (u32 i = 0; serial == 1 && i < ORPHANS; i++)
		fn(arg, &(struct mux_orphan){ .conn.serial = serial, .own_id = i });
}

/* ---- user/broker/mad_sender.c ---- */

void mad_sender_init(struct mad_sender *s, struct mux *mux, const struct instance_plan *plan)
{
	*s = (struct mad_sender){ .mux = mux, .plan = plan, .fd = -1 };
}

/* Checks that only the place's owner reports for it, and each peer in order. */
void mad_sender_tell(struct mad_sender *s, u32 place, const struct mux_orphan *o)
{
	must(!mux_has_place(s->mux, place));
	/* all of them, and then all again */
	must(o->own_id == faked.told % ORPHANS);
	faked.told++;
	outcome.told++;
}

void mad_sender_close(struct mad_sender *s)
{
}

/* ---- user/broker/nobody.c: no packet arrives here ---- */

int nobody_open(struct broker *b)
{
	return 0;
}

void nobody_close(struct broker *b)
{
}

u32 mux_first_port(const struct mux *m)
{
	return 1024;
}

void mux_sent(const struct mux *m, const u32 tap[INSTANCE_TAPS], struct xroce_tap *sent)
{
}

bool neighbours_concerns(const struct nlmsghdr *nlh)
{
	return false;
}

/* ---- user/broker/instance.c, tap.c ---- */

static u32 tap_new(void)
{
	must(faked.taps + 1 < TAPS_MAX);
	faked.tap_is[++faked.taps] = true;
	return faked.taps;
}

int instance_make(struct instance *i, const struct instance_plan *plan, const char **step)
{
	*step = "make an instance";
	if (fails(FAULT_INSTANCE))
		return -ENOMEM;
	*i = (struct instance){ .bpf = (struct xroce_bpf *)&faked,
				.wake_fd = fd_nothing(),
				.rings = INSTANCE_RINGS_NONE,
				.tap_fd = fd_nothing(),
				.single_fd = fd_nothing(),
				.single_link_fd = fd_nothing(),
				.tap = tap_new(),
				.single = tap_new() };
	faked.instances++;
	return 0;
}

void instance_fds(const struct instance *i, int fd[ASK_FDS])
{
	for (u32 k = 0; k < ASK_FDS; k++)
		fd[k] = i->wake_fd;
	fd[ASK_FD_TAP] = i->tap_fd;
	fd[ASK_FD_SINGLE] = i->single_fd;
}

bool instance_ring_is_ahead(const struct instance_rings *r, u32 n)
{
	return n < INSTANCE_RINGS;
}

int instance_ring(struct instance_rings *r, u32 n)
{
	must(n < XROCE_MAX_RING);
	return fails(FAULT_RING) ? -ENOMEM : fd_nothing();
}

void instance_rings_close(struct instance_rings *r)
{
}

int instance_prog_fd(const struct instance *i)
{
	return i->wake_fd;
}

void instance_close(struct instance *i)
{
	must(i->bpf && faked.instances);
	fd_close(i->wake_fd);
	fd_close(i->tap_fd);
	fd_close(i->single_fd);
	if (i->single_link_fd >= 0) {
		fd_close(i->single_link_fd);
		/* no client got them: these were the last descriptors of the devices */
		faked.tap_is[i->tap] = faked.tap_is[i->single] = false;
	}
	i->bpf = NULL;
	faked.instances--;
}

/* ---- user/broker/pinned.c: nothing is pinned ---- */

int pinned_begin(struct broker *b)
{
	return 0;
}

void pinned_end(struct broker *b)
{
}

void pinned_client(struct client *c, const struct instance *i)
{
}

void pinned_client_end(struct client *c)
{
}

/* ---- user/broker/readonly_maps.c: no reader of a client's maps here ---- */

const struct readonly_maps shown_none;

void readonly_maps_close(struct readonly_maps *s)
{
}

/* ---- user/attach/trace_slot.c: no reader of packets either ---- */

const struct trace_slot place_none = { .rings_fd = -1, .number = XROCE_TRACERS };

int trace_slot_use(struct trace_slot *p, const struct trace_slot_maps *maps)
{
	return -ENOENT;
}

int trace_slot_take(struct trace_slot *p, u32 owner, bool for_user, u64 lease_ns)
{
	return -EBUSY;
}

int trace_slot_begin(struct trace_slot *p, const struct ask_trace *want, int ring_fd, u64 lease_ns)
{
	return -ENOENT;
}

bool trace_slot_renew(struct trace_slot *p, u64 lease_ns)
{
	return false;
}

u64 trace_slot_lost(const struct trace_slot *p)
{
	return 0;
}

void trace_slot_stop(struct trace_slot *p)
{
}

u64 trace_slot_leave(struct trace_slot *p)
{
	return 0;
}

int trace_slot_make_ring(u32 bytes)
{
	return -ENOMEM;
}

/* Each once. */
int tap_delete(const u32 *tap, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		must(faked.tap_is[tap[i]]);
		faked.tap_is[tap[i]] = false;
	}
	return 0;
}

/* ---- user/broker/door.c ---- */

int broker_socket_holder(u32 ifindex, pid_t *pid)
{
	return -ENOENT;
}

int broker_socket_open(struct broker_socket *d, u32 ifindex, mode_t mode, gid_t group)
{
	must(faked.door_fd < 0);
	d->fd = faked.door_fd = fd_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE));
	return 0;
}

void broker_socket_close(struct broker_socket *d)
{
	if (d->fd < 0)
		return;
	while (faked.num_waiting)
		fd_close(faked.waiting[--faked.num_waiting].fd);
	fd_close(d->fd);
	d->fd = faked.door_fd = -1;
}

/* No broker here inherits it. */
void broker_socket_leave(struct broker_socket *d)
{
	must(!"left");
}

void broker_socket_sweep(const struct broker_socket *d, u32 ifindex)
{
	must(!"swept");
}

int broker_socket_take(const struct broker_socket *d, struct visitor *v)
{
	u64 one;

	if (!faked.num_waiting)
		return -EAGAIN;
	must(read(d->fd, &one, sizeof(one)) == sizeof(one));
	*v = faked.waiting[0];
	faked.num_waiting--;
	memmove(faked.waiting, faked.waiting + 1, faked.num_waiting * sizeof(*v));
	fd_own(v->fd);
	return 0;
}

int faked_connect(u32 pid, u32 uid)
{
	const u64 one = 1;
	int pair[2];

	actor_step();
	if (faked.door_fd < 0)
		return -ENOENT;
	must(faked.num_waiting < WAITING_MAX &&
	     !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	/* until it is taken it is no process's */
	faked.waiting[faked.num_waiting++] = (struct visitor){ pair[1], pid, uid };
	must(write(faked.door_fd, &one, sizeof(one)) == sizeof(one));
	return fd_own(pair[0]);
}

/* ---- user/attach/prove.c, user/broker/proof.c: uid 0 has all capabilities, others none ---- */

int prove_open(const struct ask_challenge *challenge, u32 *port)
{
	must(challenge->nonce && challenge->first_port == 1024);
	*port = 1 + challenge->nonce % 1000 + (process_uid((u32)actor_self()) ? 1024 : 0);
	return fd_nothing();
}

int proof_possible(void)
{
	return 0;
}

int proof_read(const struct ask_challenge *challenge, u32 port, struct rights *rights)
{
	const bool root = port < 1024;

	must(challenge->nonce && port % 1024 == 1 + challenge->nonce % 1000);
	*rights = (struct rights){ true, root, root, root };
	return 0;
}

/* ---- user/broker/first.c: no process has the interface alone before ---- */

int first_begin(struct broker *b)
{
	return -EPERM;
}

int first_welcome(struct broker *b)
{
	return -EPERM;
}

int first_answer_join(struct client *c, bool native, struct ask_port *port, int fd[ASK_JOIN_FDS])
{
	return -EPERM;
}

int first_answer_open(struct client *c)
{
	return -EPERM;
}

bool first_has_left(int fd)
{
	must(!"first");
	return false;
}

void first_gone(struct broker *b)
{
}

/* ---- user/os ---- */

int link_events_open(struct link_events *n)
{
	n->fd = fd_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	return 0;
}

void link_events_close(struct link_events *n)
{
	if (n->fd >= 0)
		fd_close(n->fd);
	n->fd = -1;
}

void link_events_take(struct link_events *n, link_events_fn *fn, void *arg)
{
}

u64 netdev_netns(void)
{
	return NETNS;
}

int netdev_refresh(struct netdev *dev)
{
	return 0;
}

/* The interface has no owner before a broker starts. */
void iface_lock_begin(struct iface_lock *h, u32 ifindex)
{
}

void iface_lock_end(struct iface_lock *h)
{
}

int iface_lock_take(struct iface_lock *h)
{
	return fd_nothing();
}

void iface_lock_await(struct iface_lock *h)
{
	must(!"held");
}

int netdev_holder(u32 ifindex, pid_t *pid, char *comm, size_t n)
{
	return -ENOENT;
}

u32 netdev_path_mtu(u32 link_mtu, bool multibuffer)
{
	return 4096;
}

void process_name(pid_t pid, char *comm, size_t n)
{
	snprintf(comm, n, "sim");
}

bool process_is_own_uid(uid_t uid)
{
	return true;
}

bool process_is_outside_uid(uid_t uid)
{
	return false;
}

void attach_complain(const struct netdev *dev, const char *format, ...)
{
}

int attach_failed(const struct netdev *dev, const char *step, int err)
{
	return err;
}

int attach_limited(const char *name, const char *what, const char *option, int err)
{
	outcome.refused += err == -EDQUOT;
	return err == -EDQUOT ? -ENOSPC : err;
}

void kernel_random(void *to, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(u32); i++)
		((u32 *)to)[i] = sim_random(NUMBERS) | sim_random(256) << 24;
}

int kernel_map_put(int map_fd, const void *key, const void *value)
{
	return 0;
}

void kernel_map_remove(int map_fd, const void *key)
{
}
