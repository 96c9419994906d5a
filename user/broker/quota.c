/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "quota.h"

void quota_init(struct quota *q, const struct quota_limits *limits)
{
	memset(q, 0, sizeof(*q));
	q->limits = *limits;
}

struct quota_user *quota_find(struct quota *q, u32 uid)
{
	struct quota_user *found = NULL;

	for (u32 i = 0; i < QUOTA_CONNECTIONS_MAX; i++) {
		struct quota_user *u = &q->user[i];

		if (u->used[QUOTA_CONNECTIONS] && u->uid == uid)
			return u;
		if (!u->used[QUOTA_CONNECTIONS] && !found)
			found = u;
	}
	if (found)
		*found = (struct quota_user){ .uid = uid };
	return found;
}

int quota_take(struct quota *q, struct quota_user *user, enum quota_kind kind)
{
	const bool is_root = user->uid == 0;
	u32 all = q->limits.all[kind];

	/* so that root can end a broker whose clients are all others' */
	if (kind == QUOTA_CONNECTIONS && !is_root)
		all -= min_u32(all, QUOTA_SPARE);
	if (q->used[kind] >= all)
		return -ENOSPC;
	if (!is_root && user->used[kind] >= q->limits.user[kind])
		return -EDQUOT;
	q->used[kind]++;
	user->used[kind]++;
	return 0;
}

void quota_give(struct quota *q, struct quota_user *user, enum quota_kind kind, u32 n)
{
	q->used[kind] -= n;
	user->used[kind] -= n;
}
