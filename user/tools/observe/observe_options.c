/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "../../os/clock.h"
#include "../../os/gid_text.h"
#include "../../os/kernel.h"
#include "observe_options.h"
#include "../output.h"

/* Descriptors for one process: its maps and the command's own files. */
#define OBSERVE_OPTIONS_FDS 64u

/* ---- options ---- */

/* Indexed by enum ibv_qp_state. */
static const char *const states[] = { "reset", "init", "rtr", "rts", "sqd", "sqe", "err" };

const char *observe_options_state(u32 state)
{
	return state < ARRAY_SIZE(states) ? states[state] : "?";
}

static bool observe_options_find_state(const char *text, u32 *state)
{
	for (u32 i = 0; i < ARRAY_SIZE(states); i++)
		if (!strcasecmp(text, states[i])) {
			*state = i;
			return true;
		}
	return false;
}

const char *observe_options_transport(u32 transport)
{
	switch (transport) {
	case XROCE_RC:
		return "RC";
	case XROCE_UC:
		return "UC";
	case XROCE_UD:
		return "UD";
	case XROCE_XRC:
		return "XRC";
	default:
		return "?";
	}
}

const char *observe_options_gid(const u8 raw[16], char text[46])
{
	static const u8 none[16];

	return memcmp(raw, none, sizeof(none)) ? gid_text(raw, text) : "-";
}

static int observe_options_set(void *arg, int letter, char *text)
{
	struct observe_options *l = arg;
	bool good = true;
	u64 ns = 0;

	switch (letter) {
	case 'd':
		l->dev = text;
		break;
	case 'p':
		l->has_pid = good = cli_number32(text, 1, INT_MAX, &l->pid);
		break;
	case 'q':
		l->has_qpn = good = cli_number32(text, 0, ROCE_QPN_MASK, &l->qpn);
		break;
	case 'P':
		l->has_peer = good = cli_address(text, &l->peer);
		break;
	case 'S':
		l->has_state = good = observe_options_find_state(text, &l->state);
		break;
	case 'i':
		good = cli_seconds(text, NSEC_PER_MSEC, 86400 * NSEC_PER_SEC, &ns);
		l->interval_ms = (u32)((ns + NSEC_PER_MSEC / 2) / NSEC_PER_MSEC);
		break;
	case 'c':
		good = cli_number32(text, 1, UINT_MAX, &l->count);
		break;
	case 'o':
		l->sort = text;
		break;
	case 'V':
		l->view = text;
		break;
	case 'b':
		l->is_batch = true;
		break;
	case 'j':
		l->json = true;
		break;
	}
	return good ? EXIT_OK : CLI_REFUSED;
}

int observe_options_raise_limit(const struct command *command)
{
	struct rlimit limit;

	kernel_raise_limit(RLIMIT_NOFILE);
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_max >= OBSERVE_OPTIONS_FDS)
		return EXIT_OK;
	fprintf(stderr,
		"xroce %s: too few file descriptors to inspect processes: the limit is %llu; raise "
		"`ulimit -n` to %u\n",
		command->name, (unsigned long long)limit.rlim_max, OBSERVE_OPTIONS_FDS);
	return EXIT_FAILED;
}

static int observe_options_observe(struct observe_options *l)
{
	struct netdev dev;
	int err;

	if (observe_options_raise_limit(l->command))
		return EXIT_FAILED;
	err = observer_begin(&l->observer, l->dev);
	l->observer.ask_ns = OBSERVE_ASK_NS;
	l->observer.silent_ns = OBSERVE_SILENT_NS;
	/* prints the message that all subcommands share */
	if (err && l->dev)
		return find_device(l->command, l->dev, &dev);
	if (err) {
		fprintf(stderr, "xroce %s: cannot read the network interfaces: %s\n",
			l->command->name, strerror(-err));
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

int observe_options_begin(struct observe_options *l, const struct command *command, int *argc,
			  char ***argv)
{
	int ret;

	*l = (struct observe_options){ .command = command };
	ret = cli_parse(command, argc, argv, observe_options_set, l);
	return ret ? ret : observe_options_observe(l);
}

void observe_options_end(struct observe_options *l)
{
	observer_end(&l->observer);
}

/* ---- ports ---- */

static void observe_options_list_ports(struct observe_options *l)
{
	struct observer *o = &l->observer;

	observer_list(o);
	l->time_ns = clock_now_ns();
	l->is_hidden = l->is_partial = false;
	*l->silent = 0;
	l->err = 0;
	for (u32 i = 0; i < o->num_ifaces; i++) {
		l->is_hidden |= o->ifaces[i].is_hidden;
		l->is_partial |= o->ifaces[i].is_partial;
		if (o->ifaces[i].is_silent)
			snprintf(l->silent, sizeof(l->silent), "%s", o->ifaces[i].name);
	}
}

int observe_options_list(struct observe_options *l)
{
	const int err = observer_renew(&l->observer, l->dev);

	if (!err)
		observe_options_list_ports(l);
	return err;
}

void observe_options_ports(struct observe_options *l, u32 parts, observe_fn *fn, void *arg)
{
	struct observer *o = &l->observer;
	struct snapshot s = { 0 };

	for (u32 i = 0; i < o->num; i++) {
		struct observed *p = &o->ports[i];
		int err;

		if (l->has_pid && p->pid != l->pid)
			continue;
		err = observed_open(p);
		if (!err)
			err = snapshot_read(&s, p, parts);
		if (!err)
			fn(arg, p, &s);
		else if (ask_is_over(err))
			snprintf(l->silent, sizeof(l->silent), "%s", p->iface->name);
		else if (err == -EPERM || err == -EACCES)
			l->is_hidden = true;
		else if (err != -ENOENT)
			l->err = err;
		snapshot_end(&s);
		observed_close(p);
	}
}

void observe_options_each(struct observe_options *l, u32 parts, observe_fn *fn, void *arg)
{
	observe_options_list_ports(l);
	observe_options_ports(l, parts, fn, arg);
}

bool observe_options_has_qp(const struct observe_options *l, const struct qp_view *v)
{
	const u8 *peer = v->has_stat ? v->stat.peer : v->steer.peer;

	return (!l->has_qpn || v->qpn == l->qpn) &&
	       (!l->has_peer || !memcmp(peer, l->peer.raw, sizeof(l->peer.raw))) &&
	       (!l->has_state || (v->has_stat && v->stat.state == l->state));
}

void observe_options_note_full(const struct observe_options *l, const struct observed *p, u32 used,
			       u32 num, const char *what)
{
	char iface[OUTPUT_NAME];

	if (num && used >= num)
		fprintf(stderr,
			"xroce %s: %s: pid %u (%s): only %u %s of the process are visible; it may "
			"have more\n",
			l->command->name, output_name(p->iface->name, iface), p->pid, p->command,
			num, what);
}

int observe_options_ends(const struct observe_options *l, u32 found, const char *what)
{
	const char *name = l->command->name;
	char iface[OUTPUT_NAME];

	if (*l->silent) {
		fprintf(stderr,
			"xroce %s: the broker of %s does not answer: it is stopped or gets no CPU "
			"time\n",
			name, output_name(l->silent, iface));
		return EXIT_FAILED;
	}
	if (l->err) {
		fprintf(stderr, "xroce %s: cannot read the maps of some processes: %s\n", name,
			strerror(-l->err));
		return EXIT_FAILED;
	}
	if (found)
		return EXIT_OK;
	if (l->is_hidden) {
		fprintf(stderr, "xroce %s: permission denied for some processes; run as root to "
				"inspect them\n",
			name);
		return EXIT_FAILED;
	}
	if (l->is_partial)
		fprintf(stderr, "xroce %s: other users' processes, if any, are not shown\n", name);
	if (!l->has_pid && !l->has_qpn && !l->has_peer && !l->has_state)
		return EXIT_OK;
	fprintf(stderr, "xroce %s: no such %s\n", name, what);
	return EXIT_FAILED;
}

int observe_options_column(const struct observe_options *l, const struct column *columns, u32 num)
{
	for (u32 i = 0; i < num; i++)
		if (!strcmp(columns[i].name, l->sort))
			return (int)i;
	usage_error(l->command, "no such column '%s'", l->sort);
	return -1;
}

void observe_options_print(const struct observe_options *l, const struct table *t, const char *name)
{
	struct json j;
	u32 width, lines;

	if (l->json) {
		json_begin(&j, stdout);
		json_open_object(&j, NULL);
		table_json(t, &j, name);
		json_close(&j);
		json_end(&j);
		return;
	}
	terminal_size(stdout, &width, &lines);
	table_print(t, stdout, width, terminal_is_coloured(stdout));
}
