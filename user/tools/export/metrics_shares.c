/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Metrics of shown processes and queue pairs, and of each device's rest. */
#include <stdio.h>
#include <string.h>

#include "families.h"
#include "metrics.h"

/* ---- owners ---- */

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
	static const char *const kinds[] = { [OBSERVED_ALONE] = "alone",
					     [OBSERVED_FIRST] = "first",
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

void metrics_process(struct text *t, const struct collector *c)
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
	for (u32 i = 0; i < count_num_fields; i++) {
		const size_t at = count_fields[i].offset / sizeof(u64);

		metrics_family(t, TEXT_COUNTER, "process", count_fields[i].name,
			       count_fields[i].text);
		metrics_owners(t, c, s, true, owner_value, &at);
	}
	metrics_family(t, TEXT_GAUGE, "process", "qps", qps_text);
	metrics_owners(t, c, s, false, owner_states, NULL);
	for (u32 i = 0; i < object_num_fields; i++) {
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

void metrics_qp(struct text *t, const struct collector *c)
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
		text_family(t, TEXT_COUNTER, name, qp_fields[i].unit, qp_fields[i].text);
		metrics_owners(t, c, &c->qps, true, owner_value, &i);
	}
	for (enum qp_now i = QP_STATE; i < QP_NOWS; i++) {
		text_family(t, TEXT_GAUGE, nows[i].name, nows[i].unit, nows[i].text);
		metrics_owners(t, c, &c->qps, false, owner_qp_now, &i);
	}
}
