/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE /* qsort_r() */
#include <stdlib.h>
#include <strings.h>

#include "top_fields.h"

#define TEXT(name, title, kind, width, most, rank) \
	{ name, title, kind, 0, 1, width, most, true, rank }
#define RATE(name, title, counter, rank) \
	{ name "_per_second", title, FIELD_RATE, counter, 1, 6, 6, false, rank }
#define BITS(name, title, counter, rank) \
	{ name "_bits_per_second", title, FIELD_RATE, counter, 8, 6, 6, false, rank }
#define GAUGE(name, title, gauge, factor, rank) \
	{ name, title, FIELD_GAUGE, gauge, factor, 6, 6, false, rank }
#define TOTAL(name, counter) { name, NULL, FIELD_TOTAL, counter, 1, 0, 0, false, 0 }
#define SPARKS(title, trouble)                                           \
	{ "rate", title, FIELD_LOAD, 0, 1, 8, 32, true, 3 },             \
	{ "trouble", trouble, FIELD_TROUBLE, 0, 1, 8, 16, true, 12 }

#define DEV	TEXT("dev", "DEV", FIELD_DEV, 4, 15, 6)
#define PID	{ "pid", "PID", FIELD_PID, 0, 1, 7, 10, false, 7 }
#define COMMAND TEXT("command", "COMMAND", FIELD_COMMAND, 8, 15, 4)

#define RATES                                                    \
	BITS("rx", "RX-BPS", TOP_RX_BYTES, 1),                   \
	BITS("tx", "TX-BPS", TOP_TX_BYTES, 2),                   \
	RATE("rx_packets", "RX-PPS", TOP_RX_PACKETS, 13),        \
	RATE("tx_packets", "TX-PPS", TOP_TX_PACKETS, 14),        \
	RATE("retransmitted", "RETR/S", TOP_RETRANSMITTED, 5),   \
	RATE("rx_rnr_naks", "RNR/S", TOP_RNR, 18),               \
	RATE("dropped", "DROP/S", TOP_DROPPED, 8)

#define TOTALS                                          \
	TOTAL("rx_bytes", TOP_RX_BYTES),                \
	TOTAL("tx_bytes", TOP_TX_BYTES),                \
	TOTAL("rx_packets", TOP_RX_PACKETS),            \
	TOTAL("tx_packets", TOP_TX_PACKETS),            \
	TOTAL("retransmitted", TOP_RETRANSMITTED),      \
	TOTAL("rx_rnr_naks", TOP_RNR),                  \
	TOTAL("dropped", TOP_DROPPED)

static const struct top_field qp_fields[] = {
	DEV,
	{ "qpn", "QPN", FIELD_NUMBER, 0, 1, 8, 8, false, 0 },
	TEXT("type", "TYPE", FIELD_TYPE, 4, 4, 15),
	TEXT("state", "STATE", FIELD_STATE, 5, 5, 10),
	PID,
	COMMAND,
	TEXT("peer", "PEER", FIELD_PEER, 8, 45, 9),
	RATES,
	GAUGE("outstanding", "OUT", TOP_OUTSTANDING, 1, 17),
	GAUGE("rtt_us", "RTT-US", TOP_RTT_NS, 0.001f, 16),
	SPARKS("RATE", "RETRANS"),
	TOTALS,
};

static const struct top_field process_fields[] = {
	DEV,
	PID,
	COMMAND,
	GAUGE("qps", "QPS", TOP_NUM_QPS, 1, 9),
	RATES,
	RATE("lost", "LOST/S", TOP_LOST, 9),
	SPARKS("RATE", "RETRANS"),
	TOTALS,
	TOTAL("lost", TOP_LOST),
};

static const struct top_field cq_fields[] = {
	DEV,
	{ "cq", "CQ", FIELD_NUMBER, 0, 1, 6, 10, false, 0 },
	PID,
	COMMAND,
	RATE("completions", "COMP/S", TOP_COMPLETIONS, 1),
	RATE("events", "EVNT/S", TOP_EVENTS, 8),
	GAUGE("waiting", "WAIT", TOP_WAITING, 1, 5),
	GAUGE("most_waiting", "MOST", TOP_MOST_WAITING, 1, 10),
	GAUGE("entries", "ROOM", TOP_ENTRIES, 1, 9),
	RATE("overruns", "OVER/S", TOP_OVERRUNS, 2),
	SPARKS("COMPLETIONS", "OVERRUNS"),
	TOTAL("completions", TOP_COMPLETIONS),
	TOTAL("events", TOP_EVENTS),
	TOTAL("overruns", TOP_OVERRUNS),
};

static const struct top_field interface_fields[] = {
	DEV,
	GAUGE("processes", "PROCS", TOP_NUM_PROCESSES, 1, 7),
	GAUGE("qps", "QPS", TOP_NUM_QPS, 1, 9),
	RATES,
	RATE("lost", "LOST/S", TOP_LOST, 9),
	SPARKS("RATE", "RETRANS"),
	TOTALS,
	TOTAL("lost", TOP_LOST),
};

#define FIELDS(fields) (fields), ARRAY_SIZE(fields)
#define LOAD_IN(fields, behind) (ARRAY_SIZE(fields) - (behind) - 2)

const struct top_fields top_fields[TOP_VIEWS] = {
	[TOP_QPS] = { "qps", "queue pairs", FIELDS(qp_fields), LOAD_IN(qp_fields, 7) },
	[TOP_PROCESSES] = { "processes", "processes", FIELDS(process_fields),
			    LOAD_IN(process_fields, 8) },
	[TOP_CQS] = { "cqs", "completion queues", FIELDS(cq_fields), LOAD_IN(cq_fields, 3) },
	[TOP_INTERFACES] = { "interfaces", "interfaces", FIELDS(interface_fields),
			     LOAD_IN(interface_fields, 8) },
};
_Static_assert(ARRAY_SIZE(qp_fields) <= TOP_FIELDS_MAX, "a table has room for all");

/* ---- cells ---- */

static bool field_is_text(const struct top_field *f)
{
	return f->kind != FIELD_PID && f->kind <= FIELD_PEER;
}

static const char *field_text(const struct top_field *f, const struct top_entry *e)
{
	switch (f->kind) {
	case FIELD_DEV: return e->now.dev;
	case FIELD_TYPE: return e->now.type;
	case FIELD_STATE: return e->now.state;
	case FIELD_COMMAND: return e->now.command;
	case FIELD_PEER: return e->now.peer;
	default: return "";
	}
}

/* SPARK_NONE: unknown. */
static double field_value(const struct top_field *f, const struct top_entry *e)
{
	switch (f->kind) {
	case FIELD_PID: return e->now.pid ? e->now.pid : SPARK_NONE;
	case FIELD_NUMBER: return e->now.number;
	case FIELD_RATE:
		return e->rates[f->index] < 0 ? SPARK_NONE : e->rates[f->index] * (double)f->factor;
	case FIELD_TOTAL: return (double)e->now.counters[f->index];
	case FIELD_GAUGE: return (double)e->now.gauges[f->index] * (double)f->factor;
	case FIELD_LOAD: return top_entry_load(e);
	case FIELD_TROUBLE: return top_entry_trouble(e);
	default: return SPARK_NONE;
	}
}

const char *top_cell(const struct top_field *f, const struct top_entry *e, char text[TOP_CELL])
{
	const char *said = field_text(f, e);

	if (field_is_text(f))
		snprintf(text, TOP_CELL, "%s", said && *said ? said : "-");
	else if (f->kind == FIELD_NUMBER)
		snprintf(text, TOP_CELL, e->now.view == TOP_QPS ? "0x%06x" : "%u", e->now.number);
	else if (f->kind == FIELD_PID && e->now.pid)
		snprintf(text, TOP_CELL, "%u", e->now.pid);
	else
		spark_number(field_value(f, e), text);
	return text;
}

bool top_cell_is_bad(const struct top_field *f, const struct top_entry *e)
{
	if (f->kind == FIELD_STATE)
		return e->now.is_bad;
	return f->kind == FIELD_RATE && e->rates[f->index] > 0 &&
	       (f->index == TOP_RETRANSMITTED || f->index == TOP_RNR || f->index == TOP_DROPPED ||
		f->index == TOP_LOST || f->index == TOP_OVERRUNS);
}

int top_field_find(enum top_view view, const char *name)
{
	for (u32 i = 0; i < top_fields[view].num; i++)
		if (!strcmp(top_fields[view].fields[i].name, name))
			return (int)i;
	return -1;
}

static bool text_has(const char *text, const char *part)
{
	const size_t n = strlen(part);

	for (; *text; text++)
		if (!strncasecmp(text, part, n))
			return true;
	return !n;
}

bool top_entry_matches(const struct top_entry *e, const char *text)
{
	const struct top_fields *all = &top_fields[e->now.view];
	char cell[TOP_CELL];

	if (!*text)
		return true;
	for (u32 i = 0; i < all->num; i++)
		if (all->fields[i].kind <= FIELD_NUMBER &&
		    text_has(top_cell(&all->fields[i], e, cell), text))
			return true;
	return false;
}

/* ---- sorting ---- */

struct top_sorting {
	const struct top_field *field;
	bool is_reversed;
};

static int entry_compare(const void *a, const void *b, void *arg)
{
	const struct top_entry *x = *(const struct top_entry *const *)a;
	const struct top_entry *y = *(const struct top_entry *const *)b;
	const struct top_sorting *by = arg;
	int order;

	if (field_is_text(by->field)) {
		order = strcmp(field_text(by->field, x), field_text(by->field, y));
	} else {
		const double p = field_value(by->field, x), q = field_value(by->field, y);

		order = p > q ? -1 : p < q;
	}
	if (order)
		return by->is_reversed ? -order : order;
	/* entries of one list: in the list's order */
	return x < y ? -1 : x > y;
}

u32 top_sort(const struct top_model *m, enum top_view view, u32 field, bool is_reversed,
	     const char *text, const struct top_entry ***sorted)
{
	struct top_sorting by = { &top_fields[view].fields[field], is_reversed };
	const struct top_list *list = &m->lists[view];
	u32 n = 0;

	*sorted = calloc((size_t)list->num + 1, sizeof(**sorted));
	if (!*sorted)
		return 0;
	for (u32 i = 0; i < list->num; i++)
		if (top_entry_matches(&list->entries[i], text))
			(*sorted)[n++] = &list->entries[i];
	qsort_r(*sorted, n, sizeof(**sorted), entry_compare, &by);
	return n;
}

/* ---- tables ---- */

static bool field_is_in_tables(const struct top_field *f)
{
	return f->kind != FIELD_LOAD && f->kind != FIELD_TROUBLE;
}

u32 top_columns(enum top_view view, struct column columns[TOP_FIELDS_MAX])
{
	const struct top_fields *all = &top_fields[view];
	u32 n = 0;

	for (u32 i = 0; i < all->num; i++)
		if (field_is_in_tables(&all->fields[i]))
			columns[n++] = (struct column){ all->fields[i].name, all->fields[i].title,
							all->fields[i].is_left };
	return n;
}

/* JSON has exact numbers, tables have numbers that fit a column. */
static void top_row_cell(struct table *t, const struct top_field *f, const struct top_entry *e)
{
	char text[TOP_CELL];
	const double value = field_value(f, e);

	top_cell(f, e, text);
	if (field_is_text(f) && !strcmp(text, "-"))
		table_none(t);
	else if (field_is_text(f))
		table_text(t, "%s", text);
	else if (value < 0)
		table_none(t);
	else if (f->kind == FIELD_TOTAL)
		table_number(t, e->now.counters[f->index]);
	else if (f->kind == FIELD_PID || f->kind == FIELD_NUMBER)
		table_number_as(t, (u64)value, "%s", text);
	else
		table_real_as(t, value, "%s", text);
	if (top_cell_is_bad(f, e))
		table_mark_bad(t);
}

void top_row(struct table *t, enum top_view view, const struct top_entry *e)
{
	for (u32 i = 0; i < top_fields[view].num; i++)
		if (field_is_in_tables(&top_fields[view].fields[i]))
			top_row_cell(t, &top_fields[view].fields[i], e);
}
