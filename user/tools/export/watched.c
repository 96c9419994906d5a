/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>

#include "shares.h"
#include "text.h"
#include "watched.h"

#define WATCHED_PARTS \
	(SNAPSHOT_COUNTERS | SNAPSHOT_QPS | SNAPSHOT_CQS | SNAPSHOT_SRQS | SNAPSHOT_MRS)

/* ---- maps ---- */

int watched_take(struct watched *w, struct observed *p)
{
	for (u32 i = 0; i < SNAPSHOT_SUMS; i++) {
		const u32 id = snapshot_sum_id(p, i);

		if (id != w->mark.ids[i])
			snapshot_sum_clear(&w->mark.seen.sums, i);
		w->mark.ids[i] = id;
	}
	snapshot_keep(p, WATCHED_PARTS);
	observed_close(&w->port);
	w->port = *p;
	w->port.iface = NULL;
	p->maps = NULL;
	p->num_maps = p->room = 0;
	return w->port.num_maps ? 0 : -ENOENT;
}

void watched_describe(struct watched *w, const struct observed *p)
{
	w->port.kind = p->kind;
	w->port.client = p->client;
	w->port.prog_id = p->prog_id;
	w->port.pid = p->pid;
	w->port.uid = p->uid;
	w->port.sent = p->sent;
	w->ifindex = p->iface->ifindex;
	/* zero-padded, as keys are compared whole */
	memset(w->command, 0, sizeof(w->command));
	text_clean(w->command, sizeof(w->command), p->command);
	w->is_listed = true;
}

void watched_come_back(struct watched *w, const struct watched_mark *m)
{
	w->mark = *m;
	w->now = m->seen;
	w->is_back = true;
}

u32 watched_mark_id(const struct watched_mark *m)
{
	/* a broker has no engine */
	return m->ids[SUM_ENGINE] ? m->ids[SUM_ENGINE] : m->ids[SUM_RX];
}

u32 watched_id_of(const struct observed *p)
{
	const u32 id = snapshot_sum_id(p, SUM_ENGINE);

	return id ? id : snapshot_sum_id(p, SUM_RX);
}

void watched_close(struct watched *w)
{
	observed_close(&w->port);
	free(w->qps);
	w->qps = NULL;
	w->num_qps = 0;
}

/* ---- objects ---- */

void objects_now_add(struct objects_now *to, const struct objects_now *o)
{
	for (u32 i = 0; i < QP_STATES; i++)
		to->qps[i] += o->qps[i];
	to->cqs += o->cqs;
	to->cq_entries += o->cq_entries;
	to->cq_waiting += o->cq_waiting;
	if (o->cq_fullest > to->cq_fullest)
		to->cq_fullest = o->cq_fullest;
	to->srqs += o->srqs;
	to->srq_entries += o->srq_entries;
	to->srq_waiting += o->srq_waiting;
	to->mrs += o->mrs;
	to->mr_bytes = counter_plus(to->mr_bytes, o->mr_bytes);
	to->mws += o->mws;
}

/*
 * Adds the growth of a map element since the last reading. Counts from 0 if the element has another
 * object, or a counter fell.
 */
static void slot_grow(const struct watched *w, struct watched_slot *slot, u32 number,
		      const u64 *now, u64 *const total[], u32 num)
{
	bool is_new = slot->number != number;

	for (u32 i = 0; i < num; i++)
		is_new |= now[i] < slot->last[i];
	if (is_new)
		*slot = (struct watched_slot){ .number = number };
	for (u32 i = 0; i < num; i++) {
		if (!w->is_back)
			*total[i] = counter_plus(*total[i], now[i] - slot->last[i]);
		slot->last[i] = now[i];
	}
}

static void watched_take_cq(struct watched *w, u32 nth, const struct xroce_cq_stat *s)
{
	const u64 now[] = { s->completions, s->events, s->overruns };
	u64 *const total[] = { &w->now.cq_completions, &w->now.cq_events, &w->now.cq_overruns };

	slot_grow(w, &w->cqs[nth], s->cq, now, total, ARRAY_SIZE(now));
	w->objects.cqs++;
	w->objects.cq_entries += s->entries;
	w->objects.cq_waiting += s->waiting;
	if (s->entries && (double)s->waiting / s->entries > w->objects.cq_fullest)
		w->objects.cq_fullest = (double)s->waiting / s->entries;
}

static void watched_take_srq(struct watched *w, u32 nth, const struct xroce_srq_stat *s)
{
	const u64 now[] = { s->taken, s->limit_events };
	u64 *const total[] = { &w->now.srq_taken, &w->now.srq_limit_events };

	slot_grow(w, &w->srqs[nth], s->srq, now, total, ARRAY_SIZE(now));
	w->objects.srqs++;
	w->objects.srq_entries += s->entries;
	w->objects.srq_waiting += s->waiting;
}

static void watched_take_mr(struct watched *w, const struct xroce_mr_stat *s)
{
	struct objects_now *o = &w->objects;

	if (s->kind == XROCE_MR_WINDOW_1 || s->kind == XROCE_MR_WINDOW_2) {
		o->mws++;
		return;
	}
	o->mrs++;
	/* a region without a length covers all addresses */
	if (s->kind == XROCE_MR_REGION)
		o->mr_bytes = counter_plus(o->mr_bytes, s->length);
}

/* ---- reading ---- */

/* Takes the QPs of the reading, which loses them. */
static void watched_take_qps(struct watched *w, struct snapshot *s)
{
	free(w->qps);
	w->qps = s->qps;
	w->num_qps = s->num_qps;
	s->qps = NULL;
	s->num_qps = 0;
	for (u32 i = 0; i < w->num_qps; i++) {
		const struct qp_view *v = &w->qps[i];
		const u32 state = v->has_stat ? v->stat.state : QP_STATES - 1;

		w->objects.qps[state < QP_STATES ? state : QP_STATES - 1]++;
	}
}

static void watched_take_objects(struct watched *w, const struct snapshot *s)
{
	const void *object;

	for (u32 i = 0; i < s->lists[SNAPSHOT_CQ].num && i < XROCE_CQ_STATS; i++)
		if ((object = snapshot_object(s, SNAPSHOT_CQ, i)))
			watched_take_cq(w, i, object);
	for (u32 i = 0; i < s->lists[SNAPSHOT_SRQ].num && i < XROCE_SRQ_STATS; i++)
		if ((object = snapshot_object(s, SNAPSHOT_SRQ, i)))
			watched_take_srq(w, i, object);
	for (u32 i = 0; i < s->lists[SNAPSHOT_MR].num; i++)
		if ((object = snapshot_object(s, SNAPSHOT_MR, i)))
			watched_take_mr(w, object);
	w->is_back = false;
}

int watched_read(struct watched *w, struct counts *total)
{
	u64 *seen = (u64 *)&w->mark.seen;
	const u64 *now = (const u64 *)&w->now;
	struct snapshot s;
	int err;

	memset(&w->objects, 0, sizeof(w->objects));
	err = snapshot_read(&s, &w->port, WATCHED_PARTS);
	w->now.sums = s.sums;
	watched_take_qps(w, &s);
	watched_take_objects(w, &s);
	snapshot_end(&s);
	w->now.broker_refused = w->port.sent.refused;
	counters_grow((u64 *)total, seen, now, COUNT_WORDS);
	for (size_t i = 0; i < COUNT_WORDS; i++)
		if (now[i] > seen[i])
			seen[i] = now[i];
	return err;
}
