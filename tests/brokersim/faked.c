/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a broker has of the kernel and of the network: programs and maps (mux.c, instance.c), TAP
 * devices (tap.c), its socket's place (broker_socket.c), the interface; and what a port asks of its
 * room. All of it is the broker's and goes with it.
 */
#include "faked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../user/client/attach_error.h"
#include "../../user/broker/hook.h"
#include "../../user/broker/iface_lock.h"
#include "../../user/broker/trace_slot.h"
#include "../../user/client/prove.h"
#include "../../user/client/spawn.h"
#include "../../user/os/kernel.h"
#include "../../user/os/privilege.h"
#include "../../user/os/process.h"
#include "../../user/broker/proof.h"
#include "../../user/broker/dead_peers.h"
#include "../../user/os/netdev.h"

struct faked faked;

bool faked_fails(enum fault fault)
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
	faked.hook = HOOK_EMPTY;
	faked.door_fd = -1;
	faked.fault = fault;
	faked.nth = nth;
}

void faked_step(void)
{
	if (run.mode & MODE_SOLE)
		actor_step();
}

/* Its memory, too. */
void faked_lose_broker(void)
{
	struct broker *b = faked.broker;

	for (u32 i = 0; i < faked.num_waiting; i++)
		fd_close(faked.waiting[i].fd);
	faked.num_waiting = 0;
	faked.door_fd = -1;
	faked_lose_mux();
	faked_lose_instances();
	faked.broker = NULL;
	if (!b)
		return;
	numbers_unmake(&b->numbers);
	bindings_unmake(&b->bindings);
	groups_free(&b->groups);
	dead_peers_free(b);
	for (struct client *c = b->clients, *next; c; c = next) {
		next = c->next;
		free(c->maps.id);
		free(c);
	}
	for (struct held *h = b->held, *next; h; h = next) {
		next = h->next;
		free(h->maps.id);
		free(h);
	}
	for (struct unread_parked *p = b->parked, *next; p; p = next) {
		next = p->next;
		free(p);
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

/* ---- user/broker/trace_slot.c: no reader of packets either ---- */

const struct trace_slot trace_slot_none = { .rings_fd = -1, .number = XROCE_TRACERS };

int trace_slot_use(struct trace_slot *p, const struct trace_slot_maps *maps)
{
	return -ENOENT;
}

int trace_slot_use_host(struct trace_slot *p, const struct trace_slot_maps *maps,
			struct host_ring **rings, struct host_ring *ring)
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

/* ---- user/broker/map_ids.c: maps exist until the second look ---- */

u32 map_ids_of(int map_fd)
{
	return 1;
}

int map_ids_read(struct map_ids *m)
{
	m->num++;
	return 0;
}

bool map_ids_has(const struct map_ids *m, u32 id)
{
	return m->num % 2;
}

void map_ids_free(struct map_ids *m)
{
}

u32 file_ids_add(struct file_ids *f, int fd)
{
	must(!"a file of a broker with UDP sockets");
	return 0;
}

void file_ids_read(struct file_ids *f)
{
}

bool file_ids_has(const struct file_ids *f, u32 id)
{
	return false;
}

void file_ids_free(struct file_ids *f)
{
}

/* ---- user/client/broker_socket.c ---- */

int broker_socket_holder(u32 ifindex, pid_t *pid)
{
	return -ENOENT;
}

int broker_socket_open(struct broker_socket *d, u32 ifindex, mode_t mode, gid_t group)
{
	must(faked.door_fd < 0);
	faked.wanted = false;
	d->at.sun_path[0] = '/'; /* not an abstract address, which serves one user */
	d->fd = faked.door_fd = fd_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE));
	return 0;
}

/* No broker has UDP sockets here. */
int broker_socket_open_abstract(struct broker_socket *d, u32 ifindex)
{
	must(!"a broker of a user");
	return -EINVAL;
}

/* Nothing listens there. */
socklen_t broker_socket_abstract(u32 ifindex, u32 uid, struct sockaddr_un *at)
{
	*at = (struct sockaddr_un){ .sun_family = AF_UNIX, .sun_path = "\0xroce/brokersim" };
	return sizeof(*at);
}

int mux_make_udp(struct mux *m, const struct netdev *dev)
{
	must(!"a broker with UDP sockets");
	return -EINVAL;
}

bool host_receive_take(struct host_receive *r)
{
	must(!"packets of UDP sockets");
	return false;
}

void host_receive_take_all(struct host_receive *r, u32 least)
{
	must(!"all packets of UDP sockets");
}

u32 host_receive_room(const struct host_receive *r)
{
	must(!"the room of UDP sockets");
	return 0;
}

int host_ring_make(struct host_ring *r, const char *name, u32 bytes, bool wakes)
{
	must(false);
	return -ENOMEM;
}

void host_ring_free(struct host_ring *r)
{
}

int host_report(struct host *h, struct host_client *c, struct xroce_trace_report *report)
{
	must(false);
	return 0;
}

void host_client_given(struct host_client *c)
{
	must(!c);
}

void host_client_free(struct host_client *c)
{
	must(!c);
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

int broker_socket_visitor(int fd, struct visitor *v)
{
	must(!"a first client");
	return -EINVAL;
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

bool faked_take_wanted(void)
{
	const bool wanted = faked.wanted;

	faked.wanted = false;
	return wanted;
}

int faked_connect(u32 pid, u32 uid)
{
	const u64 one = 1;
	int pair[2];

	actor_step();
	if (faked.door_fd < 0) {
		faked.wanted = true;
		return -ENOENT;
	}
	must(faked.num_waiting < WAITING_MAX &&
	     !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	/* until it is taken it is no process's */
	faked.waiting[faked.num_waiting++] = (struct visitor){ pair[1], pid, uid };
	must(write(faked.door_fd, &one, sizeof(one)) == sizeof(one));
	return fd_own(pair[0]);
}

/* ---- user/client/prove.c, user/broker/proof.c: uid 0 has all capabilities, others none ---- */

int prove_open(const struct ask_challenge *challenge, u32 *port)
{
	must(challenge->nonce && challenge->first_port == 1024);
	*port = 1 + challenge->nonce % 1000 + (process_uid((u32)actor_self()) ? 1024 : 0);
	return fd_nothing();
}

int proof_find_way(void)
{
	return PROOF_BY_DIAG;
}

u32 proof_first_port(enum proof_way way, u32 first_port)
{
	return first_port;
}

int proof_of_starter(struct rights *rights)
{
	*rights = (struct rights){ 0 };
	return -ENOSYS;
}

int proof_read(enum proof_way way, const struct ask_challenge *challenge, u32 port,
	       struct rights *rights)
{
	const bool root = port < 1024;

	must(way == PROOF_BY_DIAG);
	must(challenge->nonce && port % 1024 == 1 + challenge->nonce % 1000);
	*rights = (struct rights){ true, root, root, root };
	return 0;
}

/* ---- user/broker/hook.c, user/client/spawn.c, user/os/options.c: XDP always works ---- */

bool hook_has_ours(const struct netdev *dev)
{
	return false;
}

bool spawn_may(void)
{
	return true;
}

enum xdp_choice options_xdp(void)
{
	return XDP_CHOICE_AUTO;
}

enum attach_choice options_attach(void)
{
	return ATTACH_AUTO;
}

bool options_is_set(enum option_id option)
{
	return false;
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

int netdev_say_alone(u32 ifindex)
{
	return fd_nothing();
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
void iface_lock_begin(struct iface_lock *h, u32 ifindex, bool without_privileges)
{
}

void iface_lock_end(struct iface_lock *h)
{
}

/* The name gets no connection. */
int iface_lock_take(struct iface_lock *h)
{
	return fd_own(eventfd(0, EFD_CLOEXEC));
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

bool process_is_roots_dir(const char *dir)
{
	return false;
}

void attach_complain(const struct netdev *dev, const char *format, ...)
{
}

bool attach_complain_of_mount(const struct netdev *dev)
{
	return false;
}

int attach_failed_random(const struct netdev *dev, int err)
{
	must(!"a random number that the kernel refuses");
	return err;
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

void kernel_event_raise(int fd)
{
	const u64 one = 1;

	must(write(fd, &one, sizeof(one)) == sizeof(one));
}

int kernel_random(void *to, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(u32); i++)
		((u32 *)to)[i] = sim_random(NUMBERS) | sim_random(256) << 24;
	return 0;
}

void kernel_raise_limit(int resource)
{
}

bool privilege_verifies_fast(void)
{
	return true;
}

/* No client reports by a socket. */
int kernel_program_run(int program, void *context, u32 bytes)
{
	must(false);
	return -1;
}

int kernel_map_put(int map_fd, const void *key, const void *value)
{
	return 0;
}

void kernel_map_remove(int map_fd, const void *key)
{
}
