/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <xroce/version.h>

#include "metrics.h"

/* ---- families ---- */

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

/*
 * Begins the family xroce_LEVEL_NAME. A name that ends in _bytes or _packets has that unit. name is
 * without the suffix of its type.
 */
static void metrics_family(struct text *t, enum text_type type, const char *level,
			   const char *name, const char *help)
{
	char base[64], whole[96];
	const char *unit = family_split(name, base, sizeof(base));

	snprintf(whole, sizeof(whole), "xroce_%s_%s", level, base);
	text_family(t, type, whole, unit, help);
}

struct count_field {
	const char *name, *text;
	size_t offset; /* of a u64 */
};

/* Fields of struct counts outside struct sums. */
static const struct count_field count_fields[] = {
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

/* Fields of struct objects_now. */
static const struct count_field object_fields[] = {
	{ "cqs", "completion queues that a queue pair uses", offsetof(struct objects_now, cqs) },
	{ "cq_entries", "entries of all completion queues",
	  offsetof(struct objects_now, cq_entries) },
	{ "cq_waiting", "completions not polled when the last one of each queue was written",
	  offsetof(struct objects_now, cq_waiting) },
	{ "srqs", "shared receive queues that a queue pair uses",
	  offsetof(struct objects_now, srqs) },
	{ "srq_entries", "entries of all shared receive queues",
	  offsetof(struct objects_now, srq_entries) },
	{ "srq_waiting", "receives posted and not consumed when one was last consumed",
	  offsetof(struct objects_now, srq_waiting) },
	{ "mrs", "memory regions", offsetof(struct objects_now, mrs) },
	{ "mr_bytes", "bytes of all memory regions", offsetof(struct objects_now, mr_bytes) },
	{ "mws", "memory windows", offsetof(struct objects_now, mws) },
};

static u64 count_at(const void *counts, size_t offset)
{
	return *(const u64 *)((const u8 *)counts + offset);
}

/* Names an index of objects_now.qps. */
static const char *qp_state_name(u32 state)
{
	return state < QP_STATES - 1 ? observe_options_state(state) : "unknown";
}

static const char drops_text[] = "packets that XDP or an engine dropped, by reason";
static const char lost_text[] = "frames dropped because a ring or socket was full";
static const char qps_text[] = "queue pairs by their state";
static const char fullest_text[] = "fill ratio of the fullest completion queue, 1: full";

/* Returns the reason of a drop: "icrc" for "drop_icrc" of struct sums. */
static const char *drop_reason(const struct counters_field *f)
{
	return f->name + strlen("drop_");
}

/* ---- exporter ---- */

static void metrics_plain(struct text *t, enum text_type type, const char *name, const char *unit,
			  const char *help, double value)
{
	text_family(t, type, name, unit, help);
	text_sample_real(t, NULL, 0, value);
}

static void metrics_http(struct text *t, const struct http_counts *http)
{
	char code[16];
	const struct text_label label = { "code", code };

	text_family(t, TEXT_COUNTER, "xroce_exporter_requests", NULL,
		    "requests answered, by HTTP status");
	for (u32 i = 0; i < HTTP_CODES; i++) {
		snprintf(code, sizeof(code), "%u", http_codes[i]);
		text_sample(t, &label, 1, http->requests[i]);
	}
	text_family(t, TEXT_GAUGE, "xroce_exporter_connections", NULL,
		    "connections, including this one");
	text_sample(t, NULL, 0, http->connections);
	text_family(t, TEXT_COUNTER, "xroce_exporter_connections_cut", NULL,
		    "connections closed because they took too long");
	text_sample(t, NULL, 0, http->cut);
}

static void metrics_self(struct text *t, const struct collector *c, const struct http_counts *http)
{
	static const char *const errors[] = { [COLLECT_INTERFACES] = "interfaces",
					      [COLLECT_BROKER] = "broker",
					      [COLLECT_MAPS] = "maps",
					      [COLLECT_MEMORY] = "memory" };
	struct text_label label = { "version", XROCE_VERSION };

	text_family(t, TEXT_GAUGE, "xroce_up", NULL, "1 if the interfaces could be read");
	text_sample(t, NULL, 0, c->is_up);
	text_family(t, TEXT_INFO, "xroce_build", NULL, "the exporter's version");
	text_sample(t, &label, 1, 1);
	metrics_plain(t, TEXT_GAUGE, "xroce_exporter_collect_duration", "seconds",
		      "duration of the collection of these metrics", (double)c->took_ns / 1e9);
	text_family(t, TEXT_COUNTER, "xroce_exporter_collections", NULL, "collections");
	text_sample(t, NULL, 0, c->collects);
	label.name = "what";
	text_family(t, TEXT_COUNTER, "xroce_exporter_errors", NULL,
		    "failed collections, by part");
	for (u32 i = 0; i < COLLECT_ERRORS; i++) {
		label.value = errors[i];
		text_sample(t, &label, 1, c->errors[i]);
	}
	if (http)
		metrics_http(t, http);
}

/* ---- devices ---- */

/* Calls fn for each shown device. */
static void metrics_devices(struct text *t, const struct collector *c,
			    void (*fn)(struct text *t, const struct device *d, const void *arg),
			    const void *arg)
{
	for (u32 i = 0; i < c->num_devices; i++)
		if (c->devices[i].is_shown)
			fn(t, &c->devices[i], arg);
}

static void device_info(struct text *t, const struct device *d, const void *arg)
{
	char name[IF_NAMESIZE + 8];
	const struct text_label labels[] = {
		{ "device", d->name },
		{ "ibdevice", name },
		{ "mode", d->is_silent ? "silent" : d->is_shared ? "shared" : "unused" },
	};

	snprintf(name, sizeof(name), "xroce_%s", d->name);
	text_sample(t, labels, ARRAY_SIZE(labels), 1);
}

static void device_u32(struct text *t, const struct device *d, const void *arg)
{
	const struct text_label label = { "device", d->name };

	text_sample(t, &label, 1, *(const u32 *)((const u8 *)d + *(const size_t *)arg));
}

static void device_bool(struct text *t, const struct device *d, const void *arg)
{
	const struct text_label label = { "device", d->name };

	text_sample(t, &label, 1, *(const bool *)((const u8 *)d + *(const size_t *)arg));
}

/* arg: the offset of a u64 in struct device. */
static void device_u64(struct text *t, const struct device *d, const void *arg)
{
	const struct text_label label = { "device", d->name };

	text_sample(t, &label, 1, count_at(d, *(const size_t *)arg));
}

static void device_sum(struct text *t, const struct device *d, const void *arg)
{
	const struct text_label label = { "device", d->name };

	text_sample(t, &label, 1, counters_get(&d->total.sums, arg));
}

static void device_drops(struct text *t, const struct device *d, const void *arg)
{
	struct text_label labels[] = { { "device", d->name }, { "reason", NULL } };

	for (u32 i = 0; i < counters_num_fields; i++) {
		if (!counters_fields[i].is_drop)
			continue;
		labels[1].value = drop_reason(&counters_fields[i]);
		text_sample(t, labels, ARRAY_SIZE(labels),
			    counters_get(&d->total.sums, &counters_fields[i]));
	}
}

static void device_lost(struct text *t, const struct device *d, const void *arg)
{
	const struct text_label label = { "device", d->name };

	text_sample(t, &label, 1, counters_lost(&d->total.sums));
}

static void device_states(struct text *t, const struct device *d, const void *arg)
{
	struct text_label labels[] = { { "device", d->name }, { "state", NULL } };

	for (u32 i = 0; i < QP_STATES; i++) {
		labels[1].value = qp_state_name(i);
		text_sample(t, labels, ARRAY_SIZE(labels), d->objects.qps[i]);
	}
}

static void device_fullest(struct text *t, const struct device *d, const void *arg)
{
	const struct text_label label = { "device", d->name };

	text_sample_real(t, &label, 1, d->objects.cq_fullest);
}

static void metrics_device_state(struct text *t, const struct collector *c)
{
	static const size_t up = offsetof(struct device, is_up),
			    mtu = offsetof(struct device, mtu),
			    hidden = offsetof(struct device, is_hidden),
			    lost = offsetof(struct device, is_lost),
			    ports = offsetof(struct device, ports);

	text_family(t, TEXT_INFO, "xroce_device", NULL,
		    "interfaces in use: name of the device, and how it is used");
	metrics_devices(t, c, device_info, NULL);
	metrics_family(t, TEXT_GAUGE, "device", "up", "1 if the link is up");
	metrics_devices(t, c, device_bool, &up);
	metrics_family(t, TEXT_GAUGE, "device", "mtu_bytes", "MTU of the link");
	metrics_devices(t, c, device_u32, &mtu);
	metrics_family(t, TEXT_GAUGE, "device", "hidden",
		       "1 if processes of other users are hidden from the exporter");
	metrics_devices(t, c, device_bool, &hidden);
	metrics_family(t, TEXT_GAUGE, "device", "broker_lost",
		       "1 if the broker was killed and no process has used the interface since");
	metrics_devices(t, c, device_bool, &lost);
	metrics_family(t, TEXT_GAUGE, "device", "processes", "processes that use the interface");
	metrics_devices(t, c, device_u32, &ports);
}

static void metrics_device_names(struct text *t, const struct collector *c)
{
	char level[32], help[160];

	for (u32 i = 0; i < counters_num_names && i < COLLECT_NAMES; i++) {
		const struct counters_name *n = &counters_names[i];
		const size_t at = offsetof(struct device, names) + i * sizeof(u64);
		const char *family = counters_family(n->family);

		/* port names already begin with "port_" */
		if (n->family == NAME_PORT)
			snprintf(level, sizeof(level), "device");
		else
			snprintf(level, sizeof(level), "device_%s", family);
		snprintf(help, sizeof(help), "%s (in %s)", n->text, n->unit);
		metrics_family(t, TEXT_COUNTER, level, n->name, help);
		metrics_devices(t, c, device_u64, &at);
	}
}

static void metrics_device(struct text *t, const struct collector *c)
{
	metrics_device_state(t, c);
	for (u32 i = 0; i < counters_num_fields; i++) {
		/* gauges of several engines cannot be added */
		if (counters_fields[i].is_drop || counters_fields[i].is_gauge)
			continue;
		metrics_family(t, TEXT_COUNTER, "device", counters_fields[i].name,
			       counters_fields[i].text);
		metrics_devices(t, c, device_sum, &counters_fields[i]);
	}
	metrics_family(t, TEXT_COUNTER, "device", "drops", drops_text);
	metrics_devices(t, c, device_drops, NULL);
	metrics_family(t, TEXT_COUNTER, "device", "lost_packets", lost_text);
	metrics_devices(t, c, device_lost, NULL);
	for (u32 i = 0; i < ARRAY_SIZE(count_fields); i++) {
		const size_t at = offsetof(struct device, total) + count_fields[i].offset;

		metrics_family(t, TEXT_COUNTER, "device", count_fields[i].name,
			       count_fields[i].text);
		metrics_devices(t, c, device_u64, &at);
	}
	metrics_device_names(t, c);
	metrics_family(t, TEXT_GAUGE, "device", "qps", qps_text);
	metrics_devices(t, c, device_states, NULL);
	for (u32 i = 0; i < ARRAY_SIZE(object_fields); i++) {
		const size_t at = offsetof(struct device, objects) + object_fields[i].offset;

		metrics_family(t, TEXT_GAUGE, "device", object_fields[i].name,
			       object_fields[i].text);
		metrics_devices(t, c, device_u64, &at);
	}
	metrics_family(t, TEXT_GAUGE, "device", "cq_fullest_ratio", fullest_text);
	metrics_devices(t, c, device_fullest, NULL);
}

/* Writes the number of processes and QPs in each rest. */
static void metrics_rests(struct text *t, const struct collector *c)
{
	static const char *const names[] = { "processes_other", "qps_other" };
	static const char *const texts[] = {
		"processes summed under pid=\"" METRICS_REST "\"",
		"queue pairs summed under qpn=\"" METRICS_REST "\"",
	};

	for (u32 k = 0; k < 2; k++) {
		metrics_family(t, TEXT_GAUGE, "device", names[k], texts[k]);
		for (u32 i = 0; i < c->num_devices; i++) {
			const struct device *d = &c->devices[i];
			const struct share_rest *rest = shares_rest(k ? &c->qps : &c->processes,
								    d->ifindex);
			const struct text_label label = { "device", d->name };

			if (d->is_shown)
				text_sample(t, &label, 1, rest ? rest->others : 0);
		}
	}
}

/* ---- shown processes and queue pairs, and the rest of each device ---- */

struct owner {
	struct text_label labels[5]; /* the last one is for the caller */
	u32 num;
	char pid[16], qpn[16];
};

static void owner_set(struct owner *o, const struct device *d, const struct share *s, bool is_qp)
{
	snprintf(o->pid, sizeof(o->pid), s ? "%u" : METRICS_REST, s ? s->key.pid : 0);
	snprintf(o->qpn, sizeof(o->qpn), s ? "0x%06x" : METRICS_REST, s ? s->key.qpn : 0);
	o->labels[0] = (struct text_label){ "device", d->name };
	o->labels[1] = (struct text_label){ "pid", o->pid };
	o->labels[2] = (struct text_label){ "command", s ? s->key.command : METRICS_REST };
	o->labels[3] = (struct text_label){ "qpn", o->qpn };
	o->num = is_qp ? 4 : 3;
}

typedef void owner_fn(struct text *t, const struct collector *c, struct owner *o, u32 nth,
		      const u64 *values, const void *arg);

#define REST ~0u /* as nth: the rest of a device */

/* Calls fn for each shown share and, if has_rest, for each rest. */
static void metrics_owners(struct text *t, const struct collector *c, const struct shares *s,
			   bool has_rest, owner_fn *fn, const void *arg)
{
	struct owner o;

	for (u32 i = 0; i < s->now.num; i++) {
		const struct share *item = &s->now.items[i];
		const struct device *d = collector_device(c, item->key.ifindex);

		if (!item->is_shown || !d)
			continue;
		owner_set(&o, d, item, s == &c->qps);
		fn(t, c, &o, item->nth, item->values, arg);
	}
	for (u32 i = 0; has_rest && i < c->num_devices; i++) {
		const struct share_rest *rest = shares_rest(s, c->devices[i].ifindex);

		if (!rest)
			continue;
		owner_set(&o, &c->devices[i], NULL, s == &c->qps);
		fn(t, c, &o, REST, rest->values, arg);
	}
}

/* arg: index of the counter in values. */
static void owner_value(struct text *t, const struct collector *c, struct owner *o, u32 nth,
			const u64 *values, const void *arg)
{
	text_sample(t, o->labels, o->num, values[*(const size_t *)arg]);
}

static void owner_sum(struct text *t, const struct collector *c, struct owner *o, u32 nth,
		      const u64 *values, const void *arg)
{
	/* struct counts begins with struct sums */
	text_sample(t, o->labels, o->num, counters_get((const struct sums *)values, arg));
}

/* Writes only nonzero reasons, as there may be many processes. */
static void owner_drops(struct text *t, const struct collector *c, struct owner *o, u32 nth,
			const u64 *values, const void *arg)
{
	for (u32 i = 0; i < counters_num_fields; i++) {
		const u64 n = counters_get((const struct sums *)values, &counters_fields[i]);

		if (!counters_fields[i].is_drop || !n)
			continue;
		o->labels[o->num] = (struct text_label){ "reason",
							 drop_reason(&counters_fields[i]) };
		text_sample(t, o->labels, o->num + 1, n);
	}
}

static void owner_lost(struct text *t, const struct collector *c, struct owner *o, u32 nth,
		       const u64 *values, const void *arg)
{
	text_sample(t, o->labels, o->num, counters_lost((const struct sums *)values));
}

/* Sums the objects of a process's ports on a device; a process may have several ports. */
static void process_objects(const struct collector *c, u32 nth, struct objects_now *o)
{
	const struct watched *first = c->ports[nth];

	memset(o, 0, sizeof(*o));
	for (u32 i = nth; i < c->num_ports; i++) {
		const struct watched *w = c->ports[i];

		if (w->ifindex == first->ifindex && w->port.pid == first->port.pid &&
		    !strcmp(w->command, first->command))
			objects_now_add(o, &w->objects);
	}
}

static void owner_states(struct text *t, const struct collector *c, struct owner *o, u32 nth,
			 const u64 *values, const void *arg)
{
	struct objects_now now;

	process_objects(c, nth, &now);
	for (u32 i = 0; i < QP_STATES; i++) {
		if (!now.qps[i])
			continue;
		o->labels[o->num] = (struct text_label){ "state", qp_state_name(i) };
		text_sample(t, o->labels, o->num + 1, now.qps[i]);
	}
}

static void owner_object(struct text *t, const struct collector *c, struct owner *o, u32 nth,
			 const u64 *values, const void *arg)
{
	struct objects_now now;

	process_objects(c, nth, &now);
	text_sample(t, o->labels, o->num, count_at(&now, *(const size_t *)arg));
}

static void owner_fullest(struct text *t, const struct collector *c, struct owner *o, u32 nth,
			  const u64 *values, const void *arg)
{
	struct objects_now now;

	process_objects(c, nth, &now);
	text_sample_real(t, o->labels, o->num, now.cq_fullest);
}

/* Writes one sample per shown process. */
static void metrics_process_info(struct text *t, const struct collector *c)
{
	static const char *const kinds[] = { [OBSERVED_SILENT] = "silent",
					     [OBSERVED_SOLE] = "sole",
					     [OBSERVED_CLIENT] = "client",
					     [OBSERVED_BROKER] = "broker" };

	text_family(t, TEXT_INFO, "xroce_process", NULL, "the processes that have metrics");
	for (u32 i = 0; i < c->processes.now.num; i++) {
		const struct share *s = &c->processes.now.items[i];
		const struct device *d = collector_device(c, s->key.ifindex);
		const struct watched *w = c->ports[s->nth];
		char program[16], uid[16];
		struct text_label labels[6];
		struct owner o;

		if (!s->is_shown || !d)
			continue;
		owner_set(&o, d, s, false);
		memcpy(labels, o.labels, 3 * sizeof(*labels));
		snprintf(program, sizeof(program), "%u", w->port.prog_id);
		snprintf(uid, sizeof(uid), w->port.uid == ~0u ? "?" : "%u", w->port.uid);
		labels[3] = (struct text_label){ "kind", kinds[w->port.kind] };
		labels[4] = (struct text_label){ "uid", uid };
		labels[5] = (struct text_label){ "program_id", program };
		text_sample(t, labels, ARRAY_SIZE(labels), 1);
	}
}

static void metrics_process(struct text *t, const struct collector *c)
{
	const struct shares *s = &c->processes;

	metrics_process_info(t, c);
	for (u32 i = 0; i < counters_num_fields; i++) {
		const struct counters_field *f = &counters_fields[i];

		if (f->is_drop)
			continue;
		metrics_family(t, f->is_gauge ? TEXT_GAUGE : TEXT_COUNTER, "process", f->name,
			       f->text);
		metrics_owners(t, c, s, !f->is_gauge, owner_sum, f);
	}
	metrics_family(t, TEXT_COUNTER, "process", "drops", drops_text);
	metrics_owners(t, c, s, true, owner_drops, NULL);
	metrics_family(t, TEXT_COUNTER, "process", "lost_packets", lost_text);
	metrics_owners(t, c, s, true, owner_lost, NULL);
	for (u32 i = 0; i < ARRAY_SIZE(count_fields); i++) {
		const size_t at = count_fields[i].offset / sizeof(u64);

		metrics_family(t, TEXT_COUNTER, "process", count_fields[i].name,
			       count_fields[i].text);
		metrics_owners(t, c, s, true, owner_value, &at);
	}
	metrics_family(t, TEXT_GAUGE, "process", "qps", qps_text);
	metrics_owners(t, c, s, false, owner_states, NULL);
	for (u32 i = 0; i < ARRAY_SIZE(object_fields); i++) {
		metrics_family(t, TEXT_GAUGE, "process", object_fields[i].name,
			       object_fields[i].text);
		metrics_owners(t, c, s, false, owner_object, &object_fields[i].offset);
	}
	metrics_family(t, TEXT_GAUGE, "process", "cq_fullest_ratio", fullest_text);
	metrics_owners(t, c, s, false, owner_fullest, NULL);
}

static const struct qp_view *qp_of(const struct collector *c, u32 nth)
{
	const struct qp_row *row = &c->qp_rows[nth];

	return &c->ports[row->port]->qps[row->nth];
}

static void metrics_qp_info(struct text *t, const struct collector *c)
{
	text_family(t, TEXT_INFO, "xroce_qp", NULL, "the queue pairs that have metrics");
	for (u32 i = 0; i < c->qps.now.num; i++) {
		const struct share *s = &c->qps.now.items[i];
		const struct device *d = collector_device(c, s->key.ifindex);
		const struct qp_view *v = qp_of(c, s->nth);
		char peer[46], peer_qpn[16];
		struct text_label labels[7];
		struct owner o;

		if (!s->is_shown || !d)
			continue;
		owner_set(&o, d, s, true);
		memcpy(labels, o.labels, 4 * sizeof(*labels));
		snprintf(peer_qpn, sizeof(peer_qpn), "0x%06x", v->stat.peer_qpn & 0xffffff);
		labels[4] = (struct text_label){
			"type", observe_options_transport(v->has_stat ? v->stat.transport :
									v->steer.transport)
		};
		labels[5] = (struct text_label){
			"peer",
			observe_options_gid(v->has_stat ? v->stat.peer : v->steer.peer, peer)
		};
		labels[6] = (struct text_label){ "peer_qpn", peer_qpn };
		text_sample(t, labels, ARRAY_SIZE(labels), 1);
	}
}

enum qp_now { QP_STATE, QP_OUTSTANDING, QP_WINDOW, QP_RTT, QP_RATE, QP_ERROR, QP_NOWS };

/* Omits queue pairs of older libraries, which have no engine state. */
static void owner_qp_now(struct text *t, const struct collector *c, struct owner *o, u32 nth,
			 const u64 *values, const void *arg)
{
	const struct qp_view *v = qp_of(c, nth);
	const struct xroce_qp_stat *s = &v->stat;

	if (!v->has_stat)
		return;
	switch (*(const enum qp_now *)arg) {
	case QP_STATE:
		text_sample(t, o->labels, o->num, s->state);
		break;
	case QP_OUTSTANDING:
		text_sample(t, o->labels, o->num, s->outstanding);
		break;
	case QP_WINDOW:
		text_sample(t, o->labels, o->num, s->window);
		break;
	case QP_RTT:
		text_sample_real(t, o->labels, o->num, (double)s->rtt_ns / 1e9);
		break;
	case QP_RATE:
		text_sample(t, o->labels, o->num, s->rate);
		break;
	case QP_ERROR:
		text_sample(t, o->labels, o->num, s->error_ns ? s->error_reason : 0);
		break;
	default:
		break;
	}
}

static void metrics_qp(struct text *t, const struct collector *c)
{
	static const struct {
		const char *name, *unit, *text;
	} nows[] = {
		[QP_STATE] = { "xroce_qp_state", NULL,
			       "0 reset, 1 init, 2 rtr, 3 rts, 4 sqd, 5 sqe, 6 err" },
		[QP_OUTSTANDING] = { "xroce_qp_outstanding", "packets",
				     "request packets in flight" },
		[QP_WINDOW] = { "xroce_qp_window", "packets",
				"limit of request packets in flight" },
		[QP_RTT] = { "xroce_qp_rtt", "seconds",
			     "smoothed round-trip time; 0: not measured" },
		[QP_RATE] = { "xroce_qp_rate", "bytes",
			      "rate limit per second set by congestion control; 0: no limit" },
		[QP_ERROR] = { "xroce_qp_error_reason", NULL,
			       "reason for the last error state, a vendor_err of a completion; 0: "
			       "none" },
	};
	char name[64];

	metrics_qp_info(t, c);
	for (size_t i = 0; i < qp_num_fields; i++) {
		snprintf(name, sizeof(name), "xroce_qp_%s", qp_fields[i].name);
		text_family(t, TEXT_COUNTER, name, qp_fields[i].unit,
			    qp_fields[i].text ? qp_fields[i].text :
						counters_text(qp_fields[i].sum));
		metrics_owners(t, c, &c->qps, true, owner_value, &i);
	}
	for (enum qp_now i = QP_STATE; i < QP_NOWS; i++) {
		text_family(t, TEXT_GAUGE, nows[i].name, nows[i].unit, nows[i].text);
		metrics_owners(t, c, &c->qps, false, owner_qp_now, &i);
	}
}

/* ---- all ---- */

void metrics_write(struct text *t, const struct collector *c, const struct http_counts *http)
{
	metrics_self(t, c, http);
	metrics_device(t, c);
	metrics_rests(t, c);
	metrics_process(t, c);
	metrics_qp(t, c);
}
