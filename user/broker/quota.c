/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "quota.h"

void quota_init(struct quota *q, const struct quota_limits *limits)
{
	memset(q, 0, sizeof(*q));
	q->limits = *limits;
}

static bool quota_is_free(const struct quota_user *u)
{
	return !u->used[QUOTA_CONNECTIONS] && !u->used[QUOTA_MEMORY];
}

struct quota_user *quota_find(struct quota *q, u32 uid, bool admin)
{
	struct quota_user *found = NULL;

	for (u32 i = 0; i < QUOTA_USERS_MAX; i++) {
		struct quota_user *u = &q->user[i];
		const bool is_free = quota_is_free(u);

		if (!is_free && u->uid == uid && u->admin == admin)
			return u;
		if (is_free && !found)
			found = u;
	}
	if (found)
		*found = (struct quota_user){ .uid = uid, .admin = admin };
	return found;
}

u32 quota_left(const struct quota *q, const struct quota_user *user, enum quota_kind kind)
{
	const u32 all = q->limits.all[kind] - min_u32(q->limits.all[kind], q->used[kind]);
	const u32 own = q->limits.user[kind] - min_u32(q->limits.user[kind], user->used[kind]);

	return user->admin ? all : min_u32(all, own);
}

int quota_take_some(struct quota *q, struct quota_user *user, enum quota_kind kind, u32 n)
{
	u32 all = q->limits.all[kind];

	/* kept so that root can always end the broker; by uid, as it has proved nothing yet */
	if (kind == QUOTA_CONNECTIONS && !user->admin && user->uid)
		all -= min_u32(all, QUOTA_SPARE);
	if (q->used[kind] >= all || all - q->used[kind] < n)
		return -ENOSPC;
	if (!user->admin && (user->used[kind] >= q->limits.user[kind] ||
			 q->limits.user[kind] - user->used[kind] < n))
		return -EDQUOT;
	q->used[kind] += n;
	user->used[kind] += n;
	return 0;
}

int quota_take(struct quota *q, struct quota_user *user, enum quota_kind kind)
{
	return quota_take_some(q, user, kind, 1);
}

void quota_give(struct quota *q, struct quota_user *user, enum quota_kind kind, u32 n)
{
	q->used[kind] -= n;
	user->used[kind] -= n;
}
