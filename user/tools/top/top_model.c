/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>

#include "../counters.h"
#include "top_model.h"

#define TOP_SAMPLES_MAX (1u << 18) /* more than the QP numbers of a broker; 256 MiB */

void top_model_end(struct top_model *m)
{
	for (u32 v = 0; v < TOP_VIEWS; v++)
		free(m->lists[v].entries);
	free(m->samples);
	*m = (struct top_model){ 0 };
}

struct top_sample *top_model_add(struct top_model *m, enum top_view view)
{
	struct top_sample *s;

	if (m->num_samples == m->room) {
		const u32 room = m->room ? 2 * m->room : 64;

		s = room <= TOP_SAMPLES_MAX ? reallocarray(m->samples, room, sizeof(*s)) : NULL;
		if (!s) {
			m->refused++;
			return NULL;
		}
		m->samples = s;
		m->room = room;
	}
	s = &m->samples[m->num_samples++];
	*s = (struct top_sample){ .view = view, .type = "", .state = "" };
	return s;
}

void top_model_keep(struct top_model *m, u32 ifindex)
{
	struct top_sample *s;

	for (u32 v = 0; v < TOP_INTERFACES; v++)
		for (u32 i = 0; i < m->lists[v].num; i++) {
			const struct top_sample *last = &m->lists[v].entries[i].now;

			s = last->ifindex == ifindex ? top_model_add(m, last->view) : NULL;
			if (!s)
				continue;
			*s = *last;
			s->is_kept = true;
		}
}

/* ---- keys ---- */

#define ORDER(x, y)               \
	do {                      \
		if ((x) != (y))   \
			return (x) < (y) ? -1 : 1; \
	} while (0)

static int sample_compare(const void *a, const void *b)
{
	const struct top_sample *x = a, *y = b;

	ORDER(x->view, y->view);
	ORDER(x->ifindex, y->ifindex);
	ORDER(x->owner, y->owner);
	ORDER(x->number, y->number);
	return 0;
}

/* Merges samples of the same key; a kept sample yields to a new one. */
static void samples_join(struct top_model *m)
{
	u32 n = 0;

	if (m->num_samples)
		qsort(m->samples, m->num_samples, sizeof(*m->samples), sample_compare);
	for (u32 i = 0; i < m->num_samples; i++) {
		struct top_sample *last = n ? &m->samples[n - 1] : NULL;

		if (!last || sample_compare(last, &m->samples[i])) {
			m->samples[n++] = m->samples[i];
		} else if (last->is_kept) {
			*last = m->samples[i];
		} else if (!m->samples[i].is_kept) {
			for (u32 c = 0; c < TOP_COUNTERS; c++)
				last->counters[c] += m->samples[i].counters[c];
		}
	}
	m->num_samples = n;
}

/* ---- a round ---- */

static u64 counter_since(u64 now, u64 before)
{
	return now > before ? now - before : 0;
}

static void entry_remember(struct top_entry *e)
{
	const u32 at = (e->oldest + e->num_history) % TOP_HISTORY;

	e->load[at] = (float)top_entry_load(e);
	e->trouble[at] = (float)top_entry_trouble(e);
	if (e->num_history < TOP_HISTORY)
		e->num_history++;
	else
		e->oldest = (e->oldest + 1) % TOP_HISTORY;
}

/*
 * Updates an entry; old NULL: new. An object made since the previous round has rates from 0; the
 * rates of an older one found only now are unknown.
 */
static void entry_update(struct top_entry *e, const struct top_entry *old,
			 const struct top_sample *s, const struct top_model *m)
{
	const bool is_known = old && old->now.made_ns == s->made_ns;
	const bool is_made = m->seconds > 0 && (!s->made_ns || s->made_ns >= m->previous_ns);
	const bool is_told = m->seconds > 0 && (is_known || is_made) && !s->is_kept &&
			     !(is_known && old->now.is_kept);

	if (is_known)
		*e = *old;
	else
		*e = (struct top_entry){ 0 };
	for (u32 c = 0; c < TOP_COUNTERS; c++) {
		const u64 before = is_known ? old->now.counters[c] : 0;

		e->rates[c] = is_told ? (double)counter_since(s->counters[c], before) / m->seconds :
					SPARK_NONE;
	}
	e->now = *s;
}

/*
 * Updates an interface from its processes. Its rates are unknown if one process's are. Its totals
 * keep the counts of processes that exited.
 */
static void interface_update(struct top_entry *e, const struct top_entry *old,
			     struct top_sample *s, const struct top_model *m,
			     const struct top_list *processes, const struct top_list *before)
{
	u64 since[TOP_COUNTERS] = { 0 }, all[TOP_COUNTERS] = { 0 };
	bool is_told = true;
	u32 b = 0;

	for (u32 i = 0; i < processes->num; i++) {
		const struct top_entry *p = &processes->entries[i];

		if (p->now.ifindex != s->ifindex)
			continue;
		while (b < before->num &&
		       sample_compare(&before->entries[b].now, &p->now) < 0)
			b++;
		is_told &= p->rates[0] >= 0;
		s->gauges[TOP_NUM_PROCESSES]++;
		s->gauges[TOP_NUM_QPS] += p->now.gauges[TOP_NUM_QPS];
		for (u32 c = 0; c < TOP_COUNTERS; c++) {
			const bool is_known =
				b < before->num &&
				!sample_compare(&before->entries[b].now, &p->now);

			all[c] = counter_plus(all[c], p->now.counters[c]);
			since[c] = counter_plus(
				since[c],
				counter_since(p->now.counters[c],
					      is_known ? before->entries[b].now.counters[c] : 0));
		}
	}
	for (u32 c = 0; c < TOP_COUNTERS; c++)
		s->counters[c] = old ? counter_plus(old->now.counters[c], since[c]) : all[c];
	entry_update(e, old, s, m);
	for (u32 c = 0; !is_told && c < TOP_COUNTERS; c++)
		e->rates[c] = SPARK_NONE;
}

/* Builds the new list of a view from samples sorted by key. */
static void list_update(struct top_list *to, const struct top_list *old, struct top_sample *samples,
			u32 num, const struct top_model *m, const struct top_list *processes,
			const struct top_list *processes_before)
{
	u32 o = 0;

	for (u32 i = 0; i < num; i++) {
		struct top_entry *e = &to->entries[to->num++];
		const struct top_entry *same = NULL;

		while (o < old->num && sample_compare(&old->entries[o].now, &samples[i]) < 0)
			o++;
		if (o < old->num && !sample_compare(&old->entries[o].now, &samples[i]))
			same = &old->entries[o];
		if (processes)
			interface_update(e, same, &samples[i], m, processes, processes_before);
		else
			entry_update(e, same, &samples[i], m);
		entry_remember(e);
	}
}

static u32 samples_of(const struct top_model *m, u32 from, u32 view)
{
	u32 n = 0;

	while (from + n < m->num_samples && m->samples[from + n].view == view)
		n++;
	return n;
}

/* Counts the QPs of each process. Both lists are sorted by interface and owner. */
static void processes_count_qps(struct top_model *m)
{
	const u32 qps = samples_of(m, 0, TOP_QPS);
	const u32 num = samples_of(m, qps, TOP_PROCESSES);
	u32 q = 0;

	for (u32 i = 0; i < num; i++) {
		struct top_sample *p = &m->samples[qps + i];

		while (q < qps && (m->samples[q].ifindex < p->ifindex ||
				   (m->samples[q].ifindex == p->ifindex &&
				    m->samples[q].owner < p->owner)))
			q++;
		for (p->gauges[TOP_NUM_QPS] = 0;
		     q < qps && m->samples[q].ifindex == p->ifindex &&
		     m->samples[q].owner == p->owner;
		     q++)
			p->gauges[TOP_NUM_QPS]++;
	}
}

int top_model_round(struct top_model *m, u64 now_ns)
{
	struct top_list lists[TOP_VIEWS] = { 0 };
	u32 at = 0, n;

	samples_join(m);
	for (u32 v = 0; v < TOP_VIEWS; at += n, v++) {
		n = samples_of(m, at, v);
		lists[v].entries = calloc((size_t)n + 1, sizeof(*lists[v].entries));
		if (lists[v].entries)
			continue;
		while (v--)
			free(lists[v].entries);
		m->num_samples = 0;
		return -ENOMEM;
	}
	m->left_out = m->refused;
	m->refused = 0;
	m->previous_ns = m->time_ns;
	m->time_ns = now_ns;
	m->seconds = m->rounds++ && now_ns > m->previous_ns ?
			     (double)(now_ns - m->previous_ns) / 1e9 :
			     0;
	processes_count_qps(m);
	at = 0;
	for (u32 v = 0; v < TOP_VIEWS; at += n, v++) {
		const bool is_sum = v == TOP_INTERFACES;

		n = samples_of(m, at, v);
		list_update(&lists[v], &m->lists[v], &m->samples[at], n, m,
			    is_sum ? &lists[TOP_PROCESSES] : NULL,
			    is_sum ? &m->lists[TOP_PROCESSES] : NULL);
	}
	for (u32 v = 0; v < TOP_VIEWS; v++) {
		free(m->lists[v].entries);
		m->lists[v] = lists[v];
	}
	m->num_samples = 0;
	return 0;
}

/* ---- derived values ---- */

double top_entry_load(const struct top_entry *e)
{
	if (e->now.view == TOP_CQS)
		return e->rates[TOP_COMPLETIONS];
	if (e->rates[TOP_RX_BYTES] < 0)
		return SPARK_NONE;
	return (e->rates[TOP_RX_BYTES] + e->rates[TOP_TX_BYTES]) * 8;
}

double top_entry_trouble(const struct top_entry *e)
{
	return e->rates[e->now.view == TOP_CQS ? TOP_OVERRUNS : TOP_RETRANSMITTED];
}

void top_entry_history(const struct top_entry *e, const float *ring, u32 n, float *values)
{
	for (u32 i = 0; i < n; i++) {
		const u32 back = n - i; /* 1: newest */

		values[i] = back > e->num_history ?
				    (float)SPARK_NONE :
				    ring[(e->oldest + e->num_history - back) % TOP_HISTORY];
	}
}
