/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce cq, srq and mr: completion queues, shared receive queues, memory regions and windows. Each
 * kind has a map with one element per object (xroce/stat.h), shown as a row.
 */
#include "../../engine/mr.h"
#include "../observe/observe_options.h"

struct objects {
	const struct command *command;
	const char *map;
	size_t size; /* of an element, which begins with a PID; PID 0: free */
	const struct column *columns;
	u32 num_columns;
	const char *name, *what; /* name: plural, for JSON; what: singular, for messages */
	void (*add)(struct table *t, const void *element);
};

struct rows {
	const struct objects *objects;
	const struct observe_options *look;
	struct table table;
};

#define COLUMNS_OF_ALL                                                                             \
	COLUMN_TEXT("dev", "DEV"), COLUMN("pid", "PID"), COLUMN_TEXT("command", "COMMAND")

static void objects_add(void *arg, const struct observed *p, const void *key, const void *element)
{
	struct rows *rows = arg;
	struct table *t = &rows->table;
	u32 pid;

	memcpy(&pid, element, sizeof(pid));
	if (!pid)
		return;
	table_text(t, "%s", p->iface->name);
	/* the PID in this user's namespace, if known */
	table_number(t, p->pid ? p->pid : pid);
	table_text(t, "%s", p->command);
	rows->objects->add(t, element);
}

static void objects_of_port(void *arg, const struct observed *p)
{
	const struct rows *rows = arg;
	const struct objects *o = rows->objects;
	const u32 before = table_rows(&rows->table);

	observed_each(p, o->map, o->size, objects_add, arg);
	observe_options_note_full(rows->look, p, o->map, table_rows(&rows->table) - before,
				  o->name);
}

/* Adds a number, or none for 0. */
static void objects_add_number(struct table *t, u32 number)
{
	if (number)
		table_number(t, number);
	else
		table_none(t);
}

#define OBJECT_OPTIONS "dpoj"

static int objects_main(const struct objects *objects, int argc, char **argv)
{
	const struct command *command = objects->command;
	struct observe_options l;
	struct rows rows = { .objects = objects, .look = &l };
	int ret = observe_options_begin(&l, command, OBJECT_OPTIONS, &argc, &argv), column = 0;

	if (ret)
		return ret;
	if (argc)
		ret = usage_error(command, "unexpected argument '%s'", argv[0]);
	else if (l.sort)
		column = observe_options_column(&l, objects->columns, objects->num_columns);
	if (ret || column < 0) {
		observe_options_end(&l);
		return EXIT_USAGE;
	}
	table_begin(&rows.table, objects->columns, objects->num_columns);
	observe_options_each(&l, objects_of_port, &rows);
	if (l.sort)
		table_sort(&rows.table, (u32)column, true);
	observe_options_print(&l, &rows.table, objects->name);
	ret = observe_options_ends(&l, table_rows(&rows.table), objects->what);
	table_end(&rows.table);
	observe_options_end(&l);
	return ret;
}

static void objects_options(void)
{
	observe_options_print_options(OBJECT_OPTIONS);
}

/* ---- completion queues ---- */

static const struct column cq_columns[] = {
	COLUMNS_OF_ALL,
	COLUMN("cq", "CQ"),
	COLUMN("entries", "ENTRIES"),
	COLUMN("waiting", "WAITING"),
	COLUMN("most_waiting", "MOST"),
	COLUMN("completions", "COMPLETIONS"),
	COLUMN("events", "EVENTS"),
	COLUMN("vector", "VECTOR"),
	COLUMN_JSON("has_channel"),
	COLUMN("overruns", "OVERRUNS"),
};

static void cq_add_row(struct table *t, const void *element)
{
	const struct xroce_cq_stat *s = element;

	table_number(t, s->cq);
	table_number(t, s->entries);
	table_number(t, s->waiting);
	table_number(t, s->most_waiting);
	table_number(t, s->completions);
	table_number(t, s->events);
	table_number(t, s->vector);
	table_bool(t, s->has_channel);
	table_number(t, s->overruns);
	if (s->overruns)
		table_mark_bad(t);
}

static int cq_main(int argc, char **argv)
{
	static const struct objects cqs = { &command_cq,
					    XROCE_MAP_CQ_STAT,
					    sizeof(struct xroce_cq_stat),
					    cq_columns,
					    ARRAY_SIZE(cq_columns),
					    "cqs",
					    "completion queue",
					    cq_add_row };

	return objects_main(&cqs, argc, argv);
}

/* ---- shared receive queues ---- */

static const struct column srq_columns[] = {
	COLUMNS_OF_ALL,
	COLUMN("srq", "SRQ"),
	COLUMN("entries", "ENTRIES"),
	COLUMN("waiting", "WAITING"),
	COLUMN("taken", "TAKEN"),
	COLUMN("limit_events", "LIMIT-EVENTS"),
	COLUMN("pd", "PD"),
	COLUMN("xrcd", "XRCD"),
};

static void srq_add_row(struct table *t, const void *element)
{
	const struct xroce_srq_stat *s = element;

	objects_add_number(t, s->srq);
	table_number(t, s->entries);
	table_number(t, s->waiting);
	table_number(t, s->taken);
	table_number(t, s->limit_events);
	table_number(t, s->pd);
	objects_add_number(t, s->xrcd);
}

static int srq_main(int argc, char **argv)
{
	static const struct objects srqs = { &command_srq,
					     XROCE_MAP_SRQ_STAT,
					     sizeof(struct xroce_srq_stat),
					     srq_columns,
					     ARRAY_SIZE(srq_columns),
					     "srqs",
					     "shared receive queue",
					     srq_add_row };

	return objects_main(&srqs, argc, argv);
}

/* ---- memory regions and windows ---- */

static const struct column mr_columns[] = {
	COLUMNS_OF_ALL,
	COLUMN("key", "KEY"),
	COLUMN_TEXT("kind", "KIND"),
	COLUMN("addr", "ADDRESS"),
	COLUMN("length", "LENGTH"),
	COLUMN_JSON("iova"),
	COLUMN_JSON("access"),
	COLUMN_TEXT("rights", "RIGHTS"),
	COLUMN("pd", "PD"),
	COLUMN_JSON("qpn"),
};

static const char *const mr_kinds[] = { "region", "null", "window-1", "window-2" };

/* Indexed by access bit; NULL: no right. */
static const char *const mr_rights[] = { "write", "rwrite", "rread", "ratomic", "bind",
					 "zero",  "odp",    NULL,    "flush",	"pflush" };
_Static_assert(MR_FLUSH_PERSISTENT == 1 << 9, "the last one");

static void mr_add_rights(struct table *t, u32 access)
{
	char text[80] = "";

	for (u32 i = 0; i < ARRAY_SIZE(mr_rights); i++)
		if (mr_rights[i] && access >> i & 1) {
			strcat(text, *text ? "," : "");
			strcat(text, mr_rights[i]);
		}
	table_text(t, "%s", *text ? text : "read");
}

static void mr_add_row(struct table *t, const void *element)
{
	const struct xroce_mr_stat *s = element;
	const u32 kind = s->kind;

	table_number_as(t, s->key, "0x%08x", s->key);
	table_text(t, "%s", kind < ARRAY_SIZE(mr_kinds) ? mr_kinds[kind] : "?");
	table_number_as(t, s->addr, "0x%llx", (unsigned long long)s->addr);
	table_number(t, s->length);
	table_number(t, s->iova);
	table_number(t, s->access);
	mr_add_rights(t, s->access);
	table_number(t, s->pd);
	objects_add_number(t, s->qpn);
}

static int mr_main(int argc, char **argv)
{
	static const struct objects mrs = { &command_mr,
					    XROCE_MAP_MR_STAT,
					    sizeof(struct xroce_mr_stat),
					    mr_columns,
					    ARRAY_SIZE(mr_columns),
					    "mrs",
					    "memory region",
					    mr_add_row };

	return objects_main(&mrs, argc, argv);
}

/* ---- help ---- */

#define OBJECT_EXIT(what)                                                                          \
	"\nCOLUMN is a name that the JSON output has.\n\nExit status: 0; 1 if there is no such " \
	what "\nor it may not be inspected; 2 for wrong usage.\n"

const struct command command_cq = {
	.name = "cq",
	.summary = "list completion queues: fill level, overruns",
	.main = cq_main,
	.help = "usage: xroce cq [OPTION...]\n"
		"\n"
		"Prints a line for each completion queue of the processes that use interfaces of\n"
		"this network namespace.\n"
		"\n",
	.print_options = objects_options,
	.help_end =
		"\n"
		"  WAITING   completions not polled when the last one was written; they may\n"
		"            have been polled since\n"
		"  MOST      maximum of WAITING\n"
		"  EVENTS    events on the completion channel\n"
		"  OVERRUNS  completions that did not fit into the queue\n"
		OBJECT_EXIT("completion queue"),
};

const struct command command_srq = {
	.name = "srq",
	.summary = "list shared receive queues: receives posted and consumed",
	.main = srq_main,
	.help = "usage: xroce srq [OPTION...]\n"
		"\n"
		"Prints a line for each shared receive queue of the processes that use interfaces\n"
		"of this network namespace.\n"
		"\n",
	.print_options = objects_options,
	.help_end =
		"\n"
		"  WAITING       receives posted and not consumed when one was last consumed\n"
		"  TAKEN         receives that messages consumed\n"
		"  LIMIT-EVENTS  events IBV_EVENT_SRQ_LIMIT_REACHED\n"
		"  XRCD          XRC domain of an XRC SRQ\n"
		OBJECT_EXIT("shared receive queue"),
};

const struct command command_mr = {
	.name = "mr",
	.summary = "list memory regions and windows: address, length, access rights",
	.main = mr_main,
	.help = "usage: xroce mr [OPTION...]\n"
		"\n"
		"Prints a line for each memory region and memory window of the processes that use\n"
		"interfaces of this network namespace.\n"
		"\n",
	.print_options = objects_options,
	.help_end =
		"\n"
		"  KEY     L_Key and R_Key\n"
		"  RIGHTS  read: only local read; write: local write; rwrite, rread, ratomic,\n"
		"          flush, pflush: rights of peers; bind: windows can be bound; zero:\n"
		"          addresses start at 0; odp: on-demand paging\n"
		OBJECT_EXIT("memory region"),
};
