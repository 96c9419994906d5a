/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libFuzzer target: what clients of a broker send, of any length and content, up to what the broker
 * decides of it. Looks for memory errors, and holds numbers and quotas to a plain account of their
 * own: a number is one client's, what is given comes back, nobody has more than it may.
 *
 * scripts/fuzz.sh BUILD ask SECONDS runs it. An input is a row of struct move, each with as many
 * bytes of a message as its length says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../../user/broker/message.h"
#include "../../user/broker/numbers.h"
#include "../../user/broker/quota.h"

#define CLIENTS	 8u
#define USERS	 3u
#define CAPACITY 24u

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
};

static struct numbers numbers;
static struct quota quota;
static struct client client[CLIENTS];

static const struct quota_limits limits = {
	.user = { [QUOTA_CONNECTIONS] = 4,
		  [QUOTA_CLIENTS] = 2,
		  [QUOTA_QPS] = 9,
		  [QUOTA_RINGS] = 2 },
	.all = { [QUOTA_CONNECTIONS] = QUOTA_SPARE + 5,
		 [QUOTA_CLIENTS] = 5,
		 [QUOTA_QPS] = CAPACITY,
		 [QUOTA_RINGS] = 9 },
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
	struct quota_user *user = quota_find(&quota, uid);

	if (user && !quota_take(&quota, user, QUOTA_CONNECTIONS))
		*c = (struct client){ .user = user, .list = NUMBERS_NONE };
}

static void end_client(struct client *c)
{
	u32 qpn, n = 0;

	while (numbers_pop(&numbers, &c->list, &qpn)) {
		must(account_has(c, qpn));
		n++;
	}
	must(n == c->num);
	quota_give(&quota, c->user, QUOTA_QPS, n);
	if (c->has_port)
		quota_give(&quota, c->user, QUOTA_CLIENTS, 1);
	quota_give(&quota, c->user, QUOTA_CONNECTIONS, 1);
	*c = (struct client){ 0 };
}

static void claim(struct client *c, u32 qpn)
{
	const struct client *owner = account_owner(qpn);
	int err;

	if (numbers_check(qpn, c->user->uid == 0) || quota_take(&quota, c->user, QUOTA_QPS))
		return;
	err = numbers_claim(&numbers, qpn, (u32)(c - client), &c->list);
	must(err == (owner == c ? -EALREADY : owner ? -EEXIST : 0));
	if (err)
		quota_give(&quota, c->user, QUOTA_QPS, 1);
	else
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

static void serve(struct client *c, const struct ask *ask)
{
	switch (ask->what) {
	case ASK_HELLO:
		if (!c->has_port)
			c->has_port = !quota_take(&quota, c->user, QUOTA_CLIENTS);
		break;
	case ASK_CLAIM:
		if (c->has_port)
			claim(c, ask->number);
		break;
	case ASK_RELEASE:
		release(c, ask->number);
		break;
	}
}

static void check_sums(void)
{
	u32 used[QUOTA_KINDS] = { 0 };

	for (u32 u = 0; u < QUOTA_CONNECTIONS_MAX; u++)
		for (u32 k = 0; k < QUOTA_KINDS; k++) {
			used[k] += quota.user[u].used[k];
			must(!quota.user[u].uid ||
			     quota.user[u].used[k] <= limits.user[k]);
		}
	must(!memcmp(used, quota.used, sizeof(used)));
	for (u32 k = 0; k < QUOTA_KINDS; k++)
		must(used[k] <= limits.all[k]);
}

/* A message in a buffer of its length: what is read beyond it is found. */
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
		{ ASK_VERSION, ASK_HELLO, 0, 0 },    { ASK_VERSION, ASK_CLAIM, 5, 0 },
		{ ASK_VERSION, ASK_CLAIM, 6, 0 },    { ASK_VERSION, ASK_RELEASE, 5, 0 },
		{ ASK_VERSION, ASK_CLAIM, 1, 0 },    { ASK_VERSION, ASK_RING, 0, 0 },
		{ ASK_VERSION, ASK_LIST, 0, 0 },     { ASK_VERSION + 1, ASK_HELLO, 0, 0 },
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
	quota_init(&quota, &limits);
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
	must(!quota.used[QUOTA_CONNECTIONS] && !quota.used[QUOTA_QPS]);
	numbers_unmake(&numbers);
	return 0;
}
