/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stddef.h>
#include <stdio.h>

#include <xroce/version.h>

#include "families.h"
#include "metrics.h"

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
		{ "mode", d->is_alone ? "alone" : d->is_shared ? "shared" : "unused" },
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
		metrics_family(t, TEXT_COUNTER, "device", counters_fields[i].name, counters_fields[i].text);
		metrics_devices(t, c, device_sum, &counters_fields[i]);
	}
	metrics_family(t, TEXT_COUNTER, "device", "drops", drops_text);
	metrics_devices(t, c, device_drops, NULL);
	metrics_family(t, TEXT_COUNTER, "device", "lost_packets", lost_text);
	metrics_devices(t, c, device_lost, NULL);
	for (u32 i = 0; i < count_num_fields; i++) {
		const size_t at = offsetof(struct device, total) + count_fields[i].offset;

		metrics_family(t, TEXT_COUNTER, "device", count_fields[i].name,
			       count_fields[i].text);
		metrics_devices(t, c, device_u64, &at);
	}
	metrics_device_names(t, c);
	metrics_family(t, TEXT_GAUGE, "device", "qps", qps_text);
	metrics_devices(t, c, device_states, NULL);
	for (u32 i = 0; i < object_num_fields; i++) {
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

void metrics_write(struct text *t, const struct collector *c, const struct http_counts *http)
{
	metrics_self(t, c, http);
	metrics_device(t, c);
	metrics_rests(t, c);
	metrics_process(t, c);
	metrics_qp(t, c);
}
