/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The queue of events. A MAD that would make one is not looked at while there is no room. */
#include "internal.h"

bool event_has_room(const struct cm *cm)
{
	return cm->events_put - cm->events_got < CM_EVENTS;
}

struct cm_event *event_put(struct cm *cm, enum cm_event_kind kind, struct cm_conn *c,
			   const struct cm_mad *m)
{
	struct cm_event *e = &cm->event[cm->events_put % CM_EVENTS];

	if (c->closed)
		return NULL;
	cm->events_put++;
	c->events++;
	memset(e, 0, sizeof(*e));
	e->kind = kind;
	e->conn = c;
	e->context = c->context;
	e->path = c->path;
	if (m)
		e->mad = *m;
	return e;
}

void event_forget(struct cm *cm, struct cm_conn *c)
{
	for (u32 i = cm->events_got; c->events && i != cm->events_put; i++) {
		struct cm_event *e = &cm->event[i % CM_EVENTS];

		if (e->conn != c)
			continue;
		e->conn = NULL;
		c->events--;
	}
}

bool cm_next_event(struct cm *cm, struct cm_event *event)
{
	while (cm->events_got != cm->events_put) {
		const struct cm_event *e = &cm->event[cm->events_got++ % CM_EVENTS];

		if (!e->conn)
			continue;
		e->conn->events--;
		*event = *e;
		return true;
	}
	return false;
}
