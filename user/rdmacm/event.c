/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Creating, counting and naming events. */
#include "event.h"

#include <stdlib.h>

#include "id.h"

struct rdmacm_event *event_new(struct rdmacm_id *id, enum rdma_cm_event_type type, int status)
{
	struct rdmacm_event *ev = calloc(1, sizeof(*ev));

	if (!ev)
		return NULL;
	ev->id = id;
	ev->pub.id = &id->pub;
	ev->pub.event = type;
	ev->pub.status = status;
	return ev;
}

void event_set_conn_data(struct rdmacm_event *ev, const void *data, u32 len)
{
	memcpy(ev->private_data, data, len);
	ev->pub.param.conn.private_data = ev->private_data;
	ev->pub.param.conn.private_data_len = (u8)len;
}

void event_set_ud_data(struct rdmacm_event *ev, const void *data, u32 len)
{
	memcpy(ev->private_data, data, len);
	ev->pub.param.ud.private_data = ev->private_data;
	ev->pub.param.ud.private_data_len = (u8)len;
}

void event_post(struct rdmacm_event *ev)
{
	if (ev->id->state != ID_DESTROYING) {
		channel_append(to_channel(ev->id->pub.channel), ev);
		return;
	}
	if (ev->discard)
		ev->discard(ev);
	free(ev);
}

void event_tell(struct rdmacm_id *id, enum rdma_cm_event_type type, int status)
{
	struct rdmacm_event *ev = event_new(id, type, status);

	if (ev)
		event_post(ev);
}

EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	CANCEL_HELD;
	struct rdmacm_event *ev;

	if (!event)
		return rdmacm_report(-EINVAL);
	ev = container_of(event, struct rdmacm_event, pub);
	rdmacm_enter();
	ev->id->acked++;
	channel_acked(to_channel(ev->id->pub.channel));
	if (ev->mc)
		multicast_acked(ev->mc);
	pthread_cond_broadcast(&ev->id->all_acked);
	rdmacm_leave();
	free(ev);
	return 0;
}

EXPORT const char *rdma_event_str(enum rdma_cm_event_type event)
{
#define NAME(event) [event] = #event
	static const char *const names[] = {
		NAME(RDMA_CM_EVENT_ADDR_RESOLVED),   NAME(RDMA_CM_EVENT_ADDR_ERROR),
		NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),  NAME(RDMA_CM_EVENT_ROUTE_ERROR),
		NAME(RDMA_CM_EVENT_CONNECT_REQUEST), NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
		NAME(RDMA_CM_EVENT_CONNECT_ERROR),   NAME(RDMA_CM_EVENT_UNREACHABLE),
		NAME(RDMA_CM_EVENT_REJECTED),	     NAME(RDMA_CM_EVENT_ESTABLISHED),
		NAME(RDMA_CM_EVENT_DISCONNECTED),    NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
		NAME(RDMA_CM_EVENT_MULTICAST_JOIN),  NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
		NAME(RDMA_CM_EVENT_ADDR_CHANGE),     NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
	};
#undef NAME

	return (unsigned int)event < ARRAY_SIZE(names) ? names[event] : "UNKNOWN EVENT";
}
