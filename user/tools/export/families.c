/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "families.h"

/* Splits a unit from a name: "tx_bytes" is "tx" with the unit bytes. */
static const char *family_split(const char *name, char *base, size_t size)
{
	static const char *const units[] = { "bytes", "packets" };
	const size_t len = strlen(name);

	snprintf(base, size, "%s", name);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		const size_t n = strlen(units[i]);

		if (len <= n + 1 || strcmp(name + len - n, units[i]) || name[len - n - 1] != '_')
			continue;
		if (len - n - 1 < size)
			base[len - n - 1] = 0;
		return units[i];
	}
	return NULL;
}

void metrics_family(struct text *t, enum text_type type, const char *level,
			   const char *name, const char *help)
{
	char base[64], whole[96];
	const char *unit = family_split(name, base, sizeof(base));

	snprintf(whole, sizeof(whole), "xroce_%s_%s", level, base);
	text_family(t, type, whole, unit, help);
}

const struct count_field count_fields[] = {
	{ "cq_completions", "completions pushed to completion queues",
	  offsetof(struct counts, cq_completions) },
	{ "cq_events", "events raised on completion channels",
	  offsetof(struct counts, cq_events) },
	{ "cq_overflows", "completions that did not fit into a completion queue",
	  offsetof(struct counts, cq_overruns) },
	{ "srq_taken", "receives that messages consumed from shared receive queues",
	  offsetof(struct counts, srq_taken) },
	{ "srq_limit_events", "IBV_EVENT_SRQ_LIMIT_REACHED",
	  offsetof(struct counts, srq_limit_events) },
	{ "broker_refused_packets", "frames that the broker's program refused to send",
	  offsetof(struct counts, broker_refused) },
};

const u32 count_num_fields = ARRAY_SIZE(count_fields);

const struct count_field object_fields[] = {
	{ "cqs", "completion queues", offsetof(struct objects_now, cqs) },
	{ "cq_entries", "entries of all completion queues",
	  offsetof(struct objects_now, cq_entries) },
	{ "cq_waiting", "completions not polled when the last one of each queue was written",
	  offsetof(struct objects_now, cq_waiting) },
	{ "srqs", "shared receive queues", offsetof(struct objects_now, srqs) },
	{ "srq_entries", "entries of all shared receive queues",
	  offsetof(struct objects_now, srq_entries) },
	{ "srq_waiting", "receives posted and not consumed when one was last consumed",
	  offsetof(struct objects_now, srq_waiting) },
	{ "mrs", "memory regions", offsetof(struct objects_now, mrs) },
	{ "mr_bytes", "bytes of all memory regions", offsetof(struct objects_now, mr_bytes) },
	{ "mws", "memory windows", offsetof(struct objects_now, mws) },
};

const u32 object_num_fields = ARRAY_SIZE(object_fields);

const char *qp_state_name(u32 state)
{
	return state < QP_STATES - 1 ? observe_options_state(state) : "unknown";
}

const char drops_text[] = "packets that XDP or an engine dropped, by reason";
const char lost_text[] = "frames dropped because a ring or socket was full";
const char qps_text[] = "queue pairs by their state";
const char fullest_text[] = "fill ratio of the fullest completion queue, 1: full";
