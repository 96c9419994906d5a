/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Invariants after each step. */
#include "sim.h"

/* Returns whether client_end() has taken back what c had, and closes the rest. */
static bool is_ending(const struct client *c)
{
	return c == c->broker->sole.client && c->number == CLIENT_NONE && c->readonly_maps.engine;
}

static void check_numbers(const struct broker *b)
{
	u32 listed = 0, pid;

	for (const struct client *c = b->clients; c; c = c->next) {
		u32 n = 0;

		if (is_ending(c))
			continue;
		for (u32 i = c->qpns; i != NUMBERS_NONE; i = b->numbers.number[i].after, n++) {
			const struct number *x = &b->numbers.number[i];

			must(x->client == c->number);
			must(faked_owner(x->qpn, &pid) == c->number && pid == c->pid);
		}
		must(n == c->qps);
		listed += n;
	}
	must(listed == faked_owned() && listed == b->quota.used[QUOTA_QPS]);
}

/* Checks the clients with a QP 1, the client for unowned QPs, and the owners of services. */
static void check_cm(const struct broker *b)
{
	u32 places = 0, keys = 0;

	for (const struct client *c = b->clients; c; c = c->next) {
		const u32 place = XROCE_CM_PLACE_OF(c->number);
		u32 n = 0;

		must(!c->has_cm || c->number != CLIENT_NONE);
		must(c->number == CLIENT_NONE ||
		     faked_place(place) == (c->has_cm ? c->number : ~0u));
		places += c->has_cm;
		for (u32 i = c->bound; i != BINDINGS_NONE; i = b->bindings.binding[i].after, n++)
			must(b->bindings.binding[i].client == c->number);
		must(n == c->services && (!n || c->number != CLIENT_NONE));
		if (n) {
			must(faked_services(place) >= 1 && faked_services(place) <= 2 * n);
			keys += faked_services(place);
		}
		must(!b->refuser || b->refuser->rights.low_ports || !c->has_cm ||
		     !c->rights.low_ports);
	}
	must(keys == faked_services(0));
	must(!b->refuser ||
	     (b->refuser->has_cm && faked_place(XROCE_CM_PLACE_NONE) == b->refuser->number));
	must(faked_places() == places + !!b->refuser);
	must(b->refuser || !places || run.fault == FAULT_PLACE);
}

/* The programs know which groups have members, except where an update was made to fail. */
static void check_groups(const struct broker *b)
{
	u32 all = 0;

	for (const struct client *c = b->clients; c; c = c->next) {
		must(!c->groups || c->number != CLIENT_NONE);
		must(c->number == CLIENT_NONE || run.fault == FAULT_GROUP ||
		     faked_members(c->number) == c->groups);
		all += c->groups;
	}
	must(b->quota.used[QUOTA_GROUPS] == all);
	must(run.fault == FAULT_GROUP || faked_members(~0u) == all);
}

/* With sole clients the broker makes steps while it serves one: then its memory is counted. */
static bool awaits_port(const struct client *c)
{
	return (c->waiting && c->asked.what == ASK_HELLO) ||
	       (run.mode & MODE_SOLE && c->memory_kib);
}

static void check_user(const struct broker *b, const struct quota_user *u)
{
	u32 used[QUOTA_KINDS] = { 0 }, unread = 0;

	for (const struct client *c = b->clients; c; c = c->next) {
		if (c->user != u)
			continue;
		unread += c->unread_ns != NSEC_NEVER;
		if (is_ending(c))
			continue;
		must(c->uid == u->uid && c->rights.admin == u->admin);
		used[QUOTA_CONNECTIONS]++;
		used[QUOTA_CLIENTS] += c->number != CLIENT_NONE || awaits_port(c);
		used[QUOTA_MEMORY] += c->memory_kib;
		used[QUOTA_QPS] += c->qps;
		used[QUOTA_RINGS] += c->rings;
		used[QUOTA_SERVICES] += c->services;
		used[QUOTA_GROUPS] += c->groups;
	}
	for (const struct held *h = b->held; h; h = h->next)
		used[QUOTA_MEMORY] += h->user == u ? h->kib : 0;
	for (const struct unread_parked *p = b->parked; p; p = p->next)
		used[QUOTA_CONNECTIONS] += p->user == u;
	must(u->admin || u->parked <= 1);
	for (u32 k = 0; k < QUOTA_KINDS; k++)
		must(used[k] == u->used[k] && (u->admin || used[k] <= b->quota.limits.user[k]));
	/* the answer to ASK_OTHERS waits for no other */
	must(unread == u->unread &&
	     unread <= 1u + (b->sole.client && b->sole.client->unread_ns != NSEC_NEVER));
}

/* Answers with descriptors that are unread, of users without CAP_NET_ADMIN. */
static void check_unread(const struct broker *b)
{
	u32 unread = 0, parked = 0, listed = 0;

	for (u32 i = 0; i < QUOTA_USERS_MAX; i++) {
		const struct quota_user *u = &b->quota.user[i];

		if (u->used[QUOTA_CONNECTIONS] && !u->admin) {
			unread += u->unread;
			parked += u->parked;
		}
	}
	for (const struct unread_parked *p = b->parked; p; p = p->next)
		listed += p->has_fds && !p->user->admin;
	must(unread == b->unread && parked == b->num_parked && parked == listed);
}

static void check_quota(const struct broker *b)
{
	u32 used[QUOTA_KINDS] = { 0 };

	for (u32 i = 0; i < QUOTA_USERS_MAX; i++) {
		const struct quota_user *u = &b->quota.user[i];

		if (!u->used[QUOTA_CONNECTIONS] && !u->used[QUOTA_MEMORY])
			continue;
		check_user(b, u);
		for (u32 k = 0; k < QUOTA_KINDS; k++)
			used[k] += u->used[k];
	}
	must(!memcmp(used, b->quota.used, sizeof(used)));
	check_unread(b);
}

/* Frames are admitted from the devices of clients with a port, and from no other. */
static void check_taps(const struct broker *b)
{
	u32 all = 0;

	for (const struct client *c = b->clients; c; c = c->next) {
		for (u32 i = 0; c->number != CLIENT_NONE && i < INSTANCE_TAPS; i++) {
			must(!c->tap[i] || faked_sender(c->tap[i]) == c->number);
			all += c->tap[i] != 0;
		}
	}
	must(faked_admitted(~0u) == all);
}

/* ---- the sole client ---- */

static struct {
	bool is_alone; /* a sole client had its program on the hook */
	u64 told_ns, raw_ns;
	u64 left_ns; /* when the last other client ended, 0: some are there, or forgotten */
} before;

void check_begin(void)
{
	memset(&before, 0, sizeof(before));
}

u64 check_told_ns(void)
{
	return before.told_ns;
}

u64 check_raw_ns(void)
{
	return before.raw_ns;
}

/* The program on the interface. */
static void check_hook(const struct broker *b)
{
	const struct client *s = b->sole.client;
	const u32 hook = faked_hook();

	if (hook == HOOK_LEFT)
		return;
	must(b->mux.is_on == (hook == HOOK_MUX));
	/* it has no number while it begins and ends, and the broker no descriptor then */
	if (s && s->number != CLIENT_NONE && b->sole.state == SOLE_BESIDE)
		must(hook == HOOK_MUX);
	else if (s && s->number != CLIENT_NONE)
		must(hook == s->prog_id);
	if (b->sole.made.bpf)
		must(!s && hook == b->sole.made.prog_id);
	for (const struct client *c = b->clients; c; c = c->next)
		must(c->number == CLIENT_NONE || c == s || hook == HOOK_MUX);
}

/* The words that the broker and its sole client share. */
static void check_words(const struct broker *b, const struct xroce_engine *e)
{
	must(e->others == (b->sole.state != SOLE_ALONE));
	must(!e->raw || !e->others);
	if (!e->others)
		before.told_ns = 0;
	else if (!before.told_ns)
		before.told_ns = clock_now_ns();
	if (e->raw)
		before.raw_ns = clock_now_ns();
}

/* is_left: the others have ended, and the sole client has not its program on the hook. */
static void check_return(const struct broker *b, bool is_left)
{
	/* once more after a failure */
	const u64 most_ns = RETURN_NS * (run.fault == FAULT_HOOK ? 2 : 1) + 100 * NSEC_PER_MSEC;

	if (!is_left)
		before.left_ns = 0;
	else if (!before.left_ns)
		before.left_ns = clock_now_ns();
	must(!is_left || clock_now_ns() < before.left_ns + most_ns);
}

static void check_sole(const struct broker *b)
{
	const struct client *s = b->sole.client;
	const struct xroce_engine *e = s ? s->readonly_maps.engine : NULL;
	const u32 used = b->quota.used[QUOTA_CLIENTS];

	check_hook(b);
	if (e)
		check_words(b, e);
	else
		before.told_ns = 0;
	must(!s || b->sole.state != SOLE_ALONE || !s->tap[0]);
	/* the sole client ended, and no other process has or awaits a port */
	must(s || !before.is_alone || used || b->ended);
	must(!b->ended || !used || run_is_ending());
	must(!s || !s->tap[0] || !sole_holds_others(b, clock_now_ns()));
	check_return(b, e && used == 1 && b->sole.state != SOLE_ALONE);
	before.is_alone = e && b->sole.state != SOLE_BESIDE;
}

void check(void)
{
	struct broker *b = faked_broker();
	u32 places = 0;

	for (u32 i = 0; i < CLIENTS; i++)
		if (outcome.died[i] && !actor_lives(i))
			process_forget(i);
	if (!b || !b->numbers.number) {
		before.is_alone = false;
		before.left_ns = 0;
		return;
	}
	check_numbers(b);
	check_cm(b);
	check_groups(b);
	check_quota(b);
	for (const struct client *c = b->clients; c; c = c->next) {
		must(c->number == CLIENT_NONE || b->of[c->number] == c);
		places += c->number != CLIENT_NONE;
	}
	must(places == faked_programs());
	check_taps(b);
	if (run.mode & MODE_SOLE)
		check_sole(b);
	processes_check(b);
}

void check_quiet(void)
{
	const struct broker *b = faked_broker();

	for (u32 i = 0; i < CLIENTS; i++)
		must(!actor_lives(i));
	must(!faked_places());
	must(!faked_services(0));
	must(!faked_programs());
	/* it has ended, as it was not used any more */
	if (run.mode & MODE_SOLE) {
		must(!b && !actor_lives(BROKER) && !faked_instances() && !faked_taps());
		return;
	}
	must(b && actor_lives(BROKER) && !b->clients && !b->client_pool.num_doomed);
	must(!b->dead_peers && !b->parked && !b->unread && !b->held);
	for (u32 k = 0; k < QUOTA_KINDS; k++)
		must(!b->quota.used[k]);
	must(faked_instances() == CLIENT_POOL_SPARES &&
	     faked_taps() == CLIENT_POOL_SPARES * INSTANCE_TAPS);
}
