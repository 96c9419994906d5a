/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "client_group.h"

#include "../engine/engine.h"
#include "client.h"

static struct gid client_group_address(const struct ask_service *group)
{
	struct gid address;

	memcpy(address.raw, group->address, sizeof(address.raw));
	return address;
}

/*
 * Publishes the clients with members. The sole client is last, as its program redirects the packet
 * itself to a socket, after which no other program can take a copy. Returns 0 or -errno.
 */
static int client_group_publish(struct broker *b, const struct gid *address)
{
	struct xroce_members members;
	const u32 last = b->sole.client ? b->sole.client->number : CLIENT_NONE;
	const bool any = groups_members(&b->groups, address, last, &members);

	return mux_put_members(&b->mux, address, any ? &members : NULL);
}

/* Removes a client from a group, and publishes that. Returns 0 or -ENOENT. */
static int client_group_leave(struct client *c, const struct gid *address)
{
	struct broker *b = c->broker;
	int err = groups_leave(&b->groups, address, c->number);

	if (err)
		return err;
	quota_give(&b->quota, c->user, QUOTA_GROUPS, 1);
	c->groups--;
	client_group_publish(b, address);
	return 0;
}

static int client_group_enter(struct client *c, const struct gid *address)
{
	int err = quota_take(&c->broker->quota, c->user, QUOTA_GROUPS);

	if (err)
		return err;
	err = groups_enter(&c->broker->groups, address, c->number);
	if (err)
		quota_give(&c->broker->quota, c->user, QUOTA_GROUPS, 1);
	else
		c->groups++;
	return err;
}

int client_group_attach(struct client *c, const struct ask_service *group)
{
	const struct gid address = client_group_address(group);
	int err;

	if (c->number == CLIENT_NONE)
		return -ENOTCONN;
	if (group->id || group->families || !group_is_address(&address))
		return -EINVAL;
	err = client_group_enter(c, &address);
	if (err)
		return err;
	err = client_group_publish(c->broker, &address);
	if (err)
		client_group_leave(c, &address);
	return err;
}

int client_group_detach(struct client *c, const struct ask_service *group)
{
	const struct gid address = client_group_address(group);

	if (c->number == CLIENT_NONE || group->id || group->families)
		return -ENOENT;
	return client_group_leave(c, &address);
}

void client_group_end(struct client *c)
{
	struct gid address;

	while (c->groups && groups_next(&c->broker->groups, c->number, &address))
		client_group_leave(c, &address);
}
