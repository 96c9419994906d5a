/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The broker's programs and maps, and the program on the interface (user/broker/mux.c); its MADs,
 * and those without an owner.
 */
#include "faked.h"

#include <errno.h>

#include "../../user/broker/mad_sender.h"
#include "../../user/broker/mad_refuser.h"

#define QPS_MAX 16 /* fewer than there are numbers */

/* Where a number's owner stands. */
static u32 faked_at(u32 qpn)
{
	const u32 slot = qpn % XROCE_MAX_QP, generation = qpn / XROCE_MAX_QP;

	must(slot < NUMBERS && generation < GENERATIONS);
	return generation * NUMBERS + slot;
}

void faked_lose_mux(void)
{
	faked.hook = HOOK_EMPTY;
	memset(faked.owner, 0xff, sizeof(faked.owner));
	memset(faked.place, 0xff, sizeof(faked.place));
	memset(faked.service, 0, sizeof(faked.service));
	memset(faked.group, 0, sizeof(faked.group));
	memset(faked.program, 0, sizeof(faked.program));
	faked.programs = faked.places = 0;
	memset(faked.sender, 0, sizeof(faked.sender));
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
	return faked.places;
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
	return faked.programs;
}

/* ---- user/broker/mux.c ---- */

/* Others are served after the sole client has its TAP, or has had time to ask for it. */
static void check_way(const struct broker *b)
{
	const struct client *c = b->sole.client;

	if (!c || (c->tap[0] && faked_sender(c->tap[0]) == c->number))
		return;
	must(clock_now_ns() >= check_told_ns() + HOLD_NS - NSEC_PER_MSEC);
	outcome.unheard++;
}

int mux_make(struct mux *m, const struct netdev *dev, const struct pkey_table *pkeys)
{
	faked.broker = container_of(m, struct broker, mux);
	faked.generation++;
	faked.told = 0;
	m->bpf = (struct xroce_broker_bpf *)&faked;
	return 0;
}

int mux_put_on(struct mux *m)
{
	faked_step();
	if (m->is_on)
		return 0;
	if (faked_fails(FAULT_HOOK))
		return -ENOMEM;
	check_way(container_of(m, struct broker, mux));
	faked.hook = HOOK_MUX;
	m->is_on = true;
	return 0;
}

int mux_put_client_on(struct mux *m, int prog_fd)
{
	faked_step();
	if (faked_fails(FAULT_HOOK))
		return -ENOMEM;
	faked.hook = faked_prog_id(prog_fd);
	m->is_on = false;
	return 0;
}

int mux_put_new_client_on(struct mux *m, hook_open_fn *open, void *arg, struct xroce_bpf **bpf)
{
	*bpf = NULL;
	faked_step();
	if (faked_fails(FAULT_HOOK))
		return -ENOMEM;
	*bpf = open(arg);
	faked.hook = faked_prog_id(faked_prog_fd(*bpf));
	m->is_on = false;
	return 0;
}

/* Without a step: the broker decides in the same one whether it ends. */
void mux_take_off(struct mux *m)
{
	faked.hook = HOOK_EMPTY;
	m->is_on = false;
}

void hook_follow(const struct netdev *dev, struct hook *h)
{
}

u32 faked_hook(void)
{
	return faked.hook;
}

static void admit(u32 tap, u32 client)
{
	must(!tap || (faked.tap[tap] == TAP_THERE && !faked.sender[tap]));
	if (tap)
		faked.sender[tap] = client + 1;
}

int mux_add_tap(struct mux *m, const struct mux_client *c, u32 tap)
{
	must(faked.program[c->number]);
	if (faked_fails(FAULT_ADMIT))
		return -E2BIG;
	admit(tap, c->number);
	return 0;
}

void mux_remove_tap(struct mux *m, u32 tap)
{
	must(!tap || faked.sender[tap]);
	faked.sender[tap] = 0;
}

u32 faked_sender(u32 tap)
{
	return faked.sender[tap] - 1;
}

u32 faked_admitted(u32 client)
{
	u32 n = 0;

	for (u32 i = 1; i <= faked.taps; i++)
		n += faked.sender[i] && (client == ~0u || faked.sender[i] == client + 1);
	return n;
}

void mux_unmake(struct mux *m)
{
	m->bpf = NULL;
	faked.hook = HOOK_EMPTY;
	faked.broker = NULL;
	memset(faked.owner, 0xff, sizeof(faked.owner));
}

void mux_detach(struct mux *m)
{
	faked.hook = HOOK_LEFT;
}

int mux_publish(struct mux *m, const struct netdev *now)
{
	return 0;
}

int mux_follow_neighbours(struct mux *m)
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
	if (faked_fails(FAULT_ENTER))
		return -E2BIG;
	faked.program[c->number] = true;
	faked.programs++;
	for (u32 i = 0; i < INSTANCE_TAPS; i++)
		admit(tap[i], c->number);
	return 0;
}

void mux_leave(struct mux *m, u32 client, const u32 tap[INSTANCE_TAPS])
{
	must(faked.program[client]);
	faked.program[client] = false;
	faked.programs--;
	for (u32 i = 0; i < INSTANCE_TAPS; i++) {
		must(!tap[i] || faked.sender[tap[i]] == client + 1);
		faked.sender[tap[i]] = 0;
	}
}

int mux_own(struct mux *m, u32 qpn, u32 client, u32 pid)
{
	/* unowned until now; the client has its place */
	must(qpn && faked.owner[faked_at(qpn)].client == ~0u && faked.program[client]);
	if (faked_fails(FAULT_OWN))
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

int mux_put_place(struct mux *m, u32 place, const struct xroce_cm_client *p)
{
	must(place < PLACES && (!p || faked.program[p->client]));
	if (p && faked_fails(FAULT_PLACE))
		return -E2BIG;
	faked.places += !!p - mux_has_place(m, place);
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
	if (faked_fails(FAULT_BIND))
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
	u32 unused = FAKED_GROUPS;

	for (u32 i = 0; i < FAKED_GROUPS; i++) {
		if (faked.group[i].members.num && gid_equal(&faked.group[i].address, group))
			return &faked.group[i].members;
		if (!faked.group[i].members.num)
			unused = i;
	}
	must(unused < FAKED_GROUPS);
	faked.group[unused].address = *group;
	return &faked.group[unused].members;
}

int mux_put_members(struct mux *m, const struct gid *group, const struct xroce_members *members)
{
	for (u32 i = 0; members && i < members->num; i++)
		must(faked.program[members->client[i]]);
	if (members && faked_fails(FAULT_GROUP))
		return -E2BIG;
	*faked_group(group) = members ? *members : (struct xroce_members){ 0 };
	return 0;
}

u32 faked_members(u32 client)
{
	u32 n = 0;

	for (u32 g = 0; g < FAKED_GROUPS; g++)
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

void mux_take_dead_peers(struct mux *m, u64 serial, mux_dead_peer_fn *fn, void *arg)
{
	must(serial && serial <= container_of(m, struct broker, mux)->cm_serial);
	for (u32 i = 0; serial == 1 && i < ORPHANS; i++)
		fn(arg, &(struct mux_dead_peer){ .conn.serial = serial, .own_id = i });
}

/* ---- user/broker/mad_sender.c ---- */

void mad_sender_init(struct mad_sender *s, struct mux *mux, const struct instance_plan *plan)
{
	*s = (struct mad_sender){ .mux = mux, .plan = plan, .fd = -1 };
}

/* Checks that only the place's owner reports for it, and each peer in order. */
void mad_sender_tell(struct mad_sender *s, u32 place, const struct mux_dead_peer *o)
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

/* ---- user/broker/mad_refuser.c: no packet arrives here ---- */

int mad_refuser_open(struct broker *b)
{
	return 0;
}

void mad_refuser_begin_turn(struct broker *b)
{
}

void mad_refuser_close(struct broker *b)
{
}

u32 mux_read_first_port(void)
{
	return 1024;
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

