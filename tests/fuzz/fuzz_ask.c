/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=7 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: messages of a broker's clients, of any length and content, up to the broker's
 * decisions. Looks for memory errors, and compares numbers, services, groups and quotas with a
 * simple model: a number has one client, and none is drawn again soon, no two clients' services
 * overlap, a group has the members that entered, released resources return, no client exceeds its
 * limits.
 *
 * scripts/fuzz.sh BUILD ask SECONDS runs it. An input is a row of struct move, each with as many
 * bytes of a message as its length says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../../user/broker/bindings.h"
#include "../../user/broker/groups.h"
#include "../../user/broker/message.h"
#include "../../user/broker/numbers.h"
#include "../../user/broker/quota.h"
#include "../../user/engine/engine.h"

#define CLIENTS	 8u
#define USERS	 3u
#define CAPACITY 24u

/* Drawn numbers are of few slots and generations: the input may name them again. */
#define SLOTS	    32u
#define GENERATIONS 4u
#define SLOT_REST   16u /* this many others of its slot come before a number comes again */

struct move {
	u8 client;
	u8 length;
	u8 flags; /* 1: MSG_TRUNC, 2: MSG_CTRUNC, 4: the client hangs up after it */
	u8 pad;
};

struct client {
	struct quota_user *user; /* NULL: not connected */
	u32 list, num;
	bool has_port;
	u32 number[CAPACITY];
	u32 bound, services;
	struct ask_service service[CAPACITY];
	u32 groups;
	struct gid group[CAPACITY];
	u32 pieces; /* of rings, of its observer descriptors */
};

static struct bindings bindings;
static struct groups groups;
static struct numbers numbers;
static u32 drawn[SLOTS][SLOT_REST]; /* the last ones of each slot; 0: none */
static struct quota quota;
static struct client client[CLIENTS];

static const struct quota_limits limits = {
	.user = { [QUOTA_CONNECTIONS] = 4,
		  [QUOTA_CLIENTS] = 2,
		  [QUOTA_QPS] = 9,
		  [QUOTA_RINGS] = 2,
		  [QUOTA_SERVICES] = 6,
		  [QUOTA_GROUPS] = 5,
		  [QUOTA_TRACES] = 16 },
	.all = { [QUOTA_CONNECTIONS] = QUOTA_SPARE + 5,
		 [QUOTA_CLIENTS] = 5,
		 [QUOTA_QPS] = CAPACITY,
		 [QUOTA_RINGS] = 9,
		 [QUOTA_SERVICES] = CAPACITY,
		 [QUOTA_GROUPS] = CAPACITY,
		 [QUOTA_TRACES] = 40 },
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static bool account_has(const struct client *c, u32 qpn)
{
	for (u32 i = 0; i < c->num; i++)
		if (c->number[i] == qpn)
			return true;
	return false;
}

static const struct client *account_owner(u32 qpn)
{
	for (u32 i = 0; i < CLIENTS; i++)
		if (account_has(&client[i], qpn))
			return &client[i];
	return NULL;
}

static void connect_client(struct client *c)
{
	const u32 uid = (u32)(c - client) % USERS;
	struct quota_user *user = quota_find(&quota, uid, uid == 0);

	if (user && !quota_take(&quota, user, QUOTA_CONNECTIONS))
		*c = (struct client){ .user = user, .list = NUMBERS_NONE, .bound = BINDINGS_NONE };
}

static void end_client(struct client *c)
{
	struct binding_keys keys;
	struct gid group;
	u32 qpn, n = 0;

	while (groups_next(&groups, (u32)(c - client), &group)) {
		must(!groups_leave(&groups, &group, (u32)(c - client)));
		n++;
	}
	must(n == c->groups);
	quota_give(&quota, c->user, QUOTA_GROUPS, n);
	n = 0;
	for (; bindings_pop(&bindings, &c->bound, &keys); n++)
		must(keys.num <= 2);
	must(n == c->services);
	quota_give(&quota, c->user, QUOTA_SERVICES, n);
	n = 0;
	while (numbers_pop(&numbers, &c->list, &qpn)) {
		must(account_has(c, qpn));
		n++;
	}
	must(n == c->num);
	quota_give(&quota, c->user, QUOTA_QPS, n);
	quota_give(&quota, c->user, QUOTA_TRACES, c->pieces);
	if (c->has_port)
		quota_give(&quota, c->user, QUOTA_CLIENTS, 1);
	quota_give(&quota, c->user, QUOTA_CONNECTIONS, 1);
	*c = (struct client){ 0 };
}

static void claim(struct client *c, u32 qpn)
{
	const struct client *owner = account_owner(qpn);
	int err;

	if (c->user->uid || numbers_check(qpn) || quota_take(&quota, c->user, QUOTA_QPS))
		return;
	err = numbers_claim(&numbers, qpn, (u32)(c - client), &c->list);
	must(err == (owner == c ? -EALREADY : owner ? -EEXIST : 0));
	if (err)
		quota_give(&quota, c->user, QUOTA_QPS, 1);
	else
		c->number[c->num++] = qpn;
}

static u32 random_of(void *arg)
{
	u32 *seed = arg;
	u32 high;

	*seed = *seed * 1103515245 + 12345;
	high = *seed >> 16;
	return high / SLOTS % GENERATIONS * XROCE_MAX_QP + high % SLOTS;
}

/* It was not among the last ones of its slot, and is now. */
static void drawn_add(u32 qpn)
{
	u32 *last = drawn[qpn % XROCE_MAX_QP];

	for (u32 i = 0; i < SLOT_REST; i++)
		must(last[i] != qpn);
	memmove(last + 1, last, (SLOT_REST - 1) * sizeof(*last));
	last[0] = qpn;
}

static void draw(struct client *c, u32 seed)
{
	u32 qpn;

	if (quota_take(&quota, c->user, QUOTA_QPS))
		return;
	must(!numbers_draw(&numbers, random_of, &seed, (u32)(c - client), &c->list, &qpn));
	must(qpn > 1 && qpn <= ROCE_QPN_MASK && qpn % XROCE_MAX_QP < SLOTS && !account_owner(qpn));
	drawn_add(qpn);
	c->number[c->num++] = qpn;
}

static void release(struct client *c, u32 qpn)
{
	const bool mine = account_has(c, qpn);

	must(numbers_release(&numbers, qpn, (u32)(c - client), &c->list) == (mine ? 0 : -ENOENT));
	if (!mine)
		return;
	quota_give(&quota, c->user, QUOTA_QPS, 1);
	for (u32 i = 0; i < c->num; i++)
		if (c->number[i] == qpn) {
			c->number[i] = c->number[--c->num];
			return;
		}
}

static bool service_is(const struct ask_service *a, const struct ask_service *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static bool service_overlaps(const struct ask_service *a, const struct ask_service *b)
{
	static const u8 any[16];

	return a->id == b->id && a->families & b->families &&
	       (!memcmp(a->address, any, 16) || !memcmp(b->address, any, 16) ||
		!memcmp(a->address, b->address, 16));
}

static struct ask_service *account_service(struct client *c, const struct ask_service *s)
{
	for (u32 i = 0; i < c->services; i++)
		if (service_is(&c->service[i], s))
			return &c->service[i];
	return NULL;
}

static bool account_overlaps(const struct client *c, const struct ask_service *s)
{
	for (u32 n = 0; n < CLIENTS; n++)
		for (u32 i = 0; &client[n] != c && i < client[n].services; i++)
			if (service_overlaps(&client[n].service[i], s))
				return true;
	return false;
}

static void serve_bind(struct client *c, const struct ask_service *s)
{
	struct binding_keys keys;
	int err = quota_take(&quota, c->user, QUOTA_SERVICES);

	if (err)
		return;
	err = bindings_add(&bindings, s, (u32)(c - client), &c->bound, &keys);
	must(err == -EINVAL || (err == -EADDRINUSE) == account_overlaps(c, s));
	must(err == -EINVAL || err == -EADDRINUSE || (err == -EEXIST) == !!account_service(c, s));
	must(err != -ENOSPC);
	if (err) {
		quota_give(&quota, c->user, QUOTA_SERVICES, 1);
		return;
	}
	must(keys.num <= 2);
	c->service[c->services++] = *s;
}

static void serve_unbind(struct client *c, const struct ask_service *s)
{
	struct ask_service *mine = account_service(c, s);
	struct binding_keys keys;

	must(bindings_remove(&bindings, s, (u32)(c - client), &c->bound, &keys) ==
	     (mine ? 0 : -ENOENT));
	if (!mine)
		return;
	quota_give(&quota, c->user, QUOTA_SERVICES, 1);
	*mine = c->service[--c->services];
}

/* ---- groups: service.address, as in client_group.c ---- */

static struct gid *account_group(struct client *c, const struct gid *group)
{
	for (u32 i = 0; i < c->groups; i++)
		if (gid_equal(&c->group[i], group))
			return &c->group[i];
	return NULL;
}

/* The members are the model's, and the one called last is last. */
static void check_members(const struct gid *group, u32 last)
{
	struct xroce_members members = { 0 };
	const bool any = groups_members(&groups, group, last, &members);
	u32 n = 0;

	for (u32 i = 0; i < CLIENTS; i++)
		n += account_group(&client[i], group) != NULL;
	must(any == (n > 0) && members.num == n);
	for (u32 i = 0; i < n; i++) {
		must(members.client[i] < CLIENTS &&
		     account_group(&client[members.client[i]], group));
		for (u32 j = 0; j < i; j++)
			must(members.client[j] != members.client[i]);
	}
	must(!account_group(&client[last], group) || members.client[n - 1] == last);
}

static void serve_attach(struct client *c, const struct gid *group)
{
	int err;

	if (!group_is_address(group) || quota_take(&quota, c->user, QUOTA_GROUPS))
		return;
	err = groups_enter(&groups, group, (u32)(c - client));
	must(err == (account_group(c, group) ? -EEXIST : 0));
	if (err)
		quota_give(&quota, c->user, QUOTA_GROUPS, 1);
	else
		c->group[c->groups++] = *group;
}

static void serve_detach(struct client *c, const struct gid *group)
{
	struct gid *mine = account_group(c, group);

	must(groups_leave(&groups, group, (u32)(c - client)) == (mine ? 0 : -ENOENT));
	if (!mine)
		return;
	quota_give(&quota, c->user, QUOTA_GROUPS, 1);
	*mine = c->group[--c->groups];
}

/* All that is left can be had, and not one more. */
static void serve_trace(struct client *c, u32 pieces)
{
	const u32 left = quota_left(&quota, c->user, QUOTA_TRACES);
	const u32 used = c->user->used[QUOTA_TRACES];

	if (!pieces)
		return;
	must(!quota_take_some(&quota, c->user, QUOTA_TRACES, pieces) == (pieces <= left));
	must(c->user->used[QUOTA_TRACES] == used + (pieces <= left ? pieces : 0));
	c->pieces += pieces <= left ? pieces : 0;
}

static void serve_untrace(struct client *c, u32 pieces)
{
	const u32 n = min_u32(pieces, c->pieces);

	quota_give(&quota, c->user, QUOTA_TRACES, n);
	c->pieces -= n;
}

static void serve(struct client *c, const struct ask *ask)
{
	struct gid group;

	memcpy(group.raw, ask->service.address, sizeof(group.raw));
	switch (ask->what) {
	case ASK_HELLO:
		if (!c->has_port)
			c->has_port = !quota_take(&quota, c->user, QUOTA_CLIENTS);
		break;
	case ASK_DRAW:
		if (c->has_port)
			draw(c, ask->number);
		break;
	case ASK_CLAIM:
		if (c->has_port)
			claim(c, ask->number);
		break;
	case ASK_RELEASE:
		release(c, ask->number);
		break;
	case ASK_BIND:
		if (c->has_port)
			serve_bind(c, &ask->service);
		break;
	case ASK_UNBIND:
		serve_unbind(c, &ask->service);
		break;
	case ASK_ATTACH:
		if (c->has_port)
			serve_attach(c, &group);
		check_members(&group, ask->number % CLIENTS);
		break;
	case ASK_TRACE:
		must(!ask->trace.pad);
		serve_trace(c, ask->trace.ring_bytes);
		break;
	case ASK_UNTRACE:
		serve_untrace(c, ask->number);
		break;
	case ASK_DETACH:
		serve_detach(c, &group);
		check_members(&group, ask->number % CLIENTS);
		break;
	}
}

static void check_sums(void)
{
	u32 used[QUOTA_KINDS] = { 0 };

	for (u32 u = 0; u < QUOTA_USERS_MAX; u++)
		for (u32 k = 0; k < QUOTA_KINDS; k++) {
			used[k] += quota.user[u].used[k];
			must(!quota.user[u].uid ||
			     quota.user[u].used[k] <= limits.user[k]);
		}
	must(!memcmp(used, quota.used, sizeof(used)));
	for (u32 k = 0; k < QUOTA_KINDS; k++)
		must(used[k] <= limits.all[k]);
}

/* A message in a buffer of its length: a read beyond it is found. */
static void move(const struct move *m, const u8 *message, size_t len)
{
	struct client *c = &client[m->client % CLIENTS];
	struct ask *ask = malloc(len < sizeof(*ask) ? sizeof(*ask) : len);
	int err;

	must(ask);
	if (!c->user)
		connect_client(c);
	memcpy(ask, message, len);
	err = message_check(ask, len, (m->flags & 1 ? MSG_TRUNC : 0) |
					      (m->flags & 2 ? MSG_CTRUNC : 0));
	must(err <= 0 && (err || (len == sizeof(*ask) && ask->version == ASK_VERSION)));
	if (c->user && !err)
		serve(c, ask);
	if (c->user && (err || m->flags & 4))
		end_client(c);
	free(ask);
}

static void write_seed(const char *dir)
{
	static const struct ask asks[] = {
		{ ASK_VERSION, ASK_HELLO, 0, 0, { { 0 } } },
		{ ASK_VERSION, ASK_CLAIM, 5, 0, { { 0 } } },
		{ ASK_VERSION, ASK_CLAIM, 6, 0, { { 0 } } },
		{ ASK_VERSION, ASK_RELEASE, 5, 0, { { 0 } } },
		{ ASK_VERSION, ASK_CLAIM, 1, 0, { { 0 } } },
		{ ASK_VERSION, ASK_RING, 0, 0, { { 0 } } },
		{ ASK_VERSION, ASK_LIST, 0, 0, { { 0 } } },
		{ ASK_VERSION, ASK_DRAW, 7, 0, { { 0 } } },
		{ ASK_VERSION + 1, ASK_HELLO, 0, 0, { { 0 } } },
		{ ASK_VERSION, ASK_BIND, 0, 0, { { 0x01060010, { 0 }, 3, 0 } } },
		{ ASK_VERSION, ASK_UNBIND, 0, 0, { { 0x01060010, { 0 }, 3, 0 } } },
		{ ASK_VERSION, ASK_CLAIM, XROCE_MAX_QP + 7, 0, { { 0 } } },
		{ ASK_VERSION, ASK_ATTACH, 1, 0, { { .address = { 0xff, 0x15 } } } },
		{ ASK_VERSION, ASK_DETACH, 1, 0, { { .address = { 0xff, 0x15 } } } },
		{ ASK_VERSION, ASK_KIND, 0, 0, { { 0 } } },
		{ ASK_VERSION, ASK_MAPS, ASK_MAPS_OF(1, 15), 0, { { 0 } } },
		{ ASK_VERSION, ASK_TRACE, 0, 0, { .trace = { .ring_bytes = 5, .what = 15 } } },
		{ ASK_VERSION, ASK_TRACE, 1, 0,
		  { .trace = { .peer = { 10 }, .qpn = 7, .ring_bytes = ~0u, .has_peer = 1 } } },
		{ ASK_VERSION, ASK_UNTRACE, 2, 0, { { 0 } } },
	};
	char path[512];

	for (u8 clients = 1; clients <= CLIENTS; clients++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%u", dir, clients);
		f = fopen(path, "w");
		if (!f)
			abort();
		for (u32 i = 0; i < ARRAY_SIZE(asks); i++)
			for (u8 c = 0; c < clients; c++) {
				const struct move m = { .client = c, .length = sizeof(struct ask) };

				fwrite(&m, sizeof(m), 1, f);
				fwrite(&asks[i], sizeof(asks[i]), 1, f);
			}
		fclose(f);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *dir = getenv("XROCE_SEED_DIR");

	if (dir) {
		write_seed(dir);
		exit(0);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct move m;

	must(!numbers_make(&numbers, CAPACITY, 0x12345));
	must(!bindings_make(&bindings, CAPACITY, 0x123456789));
	quota_init(&quota, &limits);
	memset(drawn, 0, sizeof(drawn));
	memset(client, 0, sizeof(client));
	while (size >= sizeof(m)) {
		size_t len;

		memcpy(&m, data, sizeof(m));
		data += sizeof(m);
		size -= sizeof(m);
		len = m.length < size ? m.length : size;
		move(&m, data, len);
		data += len;
		size -= len;
	}
	check_sums();
	for (u32 i = 0; i < CLIENTS; i++)
		if (client[i].user)
			end_client(&client[i]);
	check_sums();
	must(!quota.used[QUOTA_CONNECTIONS] && !quota.used[QUOTA_QPS] &&
	     !quota.used[QUOTA_SERVICES] && !quota.used[QUOTA_TRACES] &&
	     !quota.used[QUOTA_GROUPS] && !groups.num);
	groups_free(&groups);
	bindings_unmake(&bindings);
	numbers_unmake(&numbers);
	return 0;
}
