/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command lines of subcommands: their options by one table each, for parsing and for help. */
#include <arpa/inet.h>
#include <ctype.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "cli.h"

/* Options of several subcommands, with one meaning each. */
static const struct cli_option common_options[] = {
	{ 'd', "dev", "IFACE", "select interface IFACE", NULL },
	{ 'p', "pid", "PID", "select process PID", "a number from 1 on" },
	{ 'q', "qpn", "QPN", "select queue pair QPN, decimal or hexadecimal (0x)",
	  "a number from 1 to 0xffffff" },
	{ 'P', "peer", "ADDR", "select peer ADDR", "an address" },
	{ 'Q', "direction", "D", "select packets: in (received) or out (sent)", "in or out" },
	{ 'S', "state", "STATE", "select STATE: reset, init, rtr, rts, sqd, sqe or err", NULL },
	{ 'i', "interval", "S", "take samples S seconds apart", "0.001 to 86400" },
	{ 'c', "count", "N", "stop after N repetitions", "a number from 1 on" },
	{ 'D', "duration", "S", "stop after S seconds", "seconds from 0.001 on" },
	{ 'o', "sort", "COLUMN", "sort by COLUMN, a field of JSON, largest first", NULL },
	{ 'V', "view", "VIEW", "show VIEW: qps (default), processes, cqs or interfaces", NULL },
	{ 'b', "batch", NULL, "print tables, even to a terminal", NULL },
	{ 'j', "json", NULL, "print JSON", NULL },
	{ 0 },
};

static const struct cli_option help_option = { 'h', "help", NULL, "print this help", NULL };

/* ---- the table ---- */

/* Lists the command's options: its own, common ones, and --help. Returns their number. */
static u32 options_of(const struct command *command, const struct cli_option *out[CLI_OPTIONS + 1])
{
	u32 n = 0;

	if (command->make_options)
		command->make_options();
	for (const struct cli_option *o = command->options; o && o->id; o++)
		if (n < CLI_OPTIONS)
			out[n++] = o;
	for (const struct cli_option *o = common_options; command->letters && o->id; o++)
		if (n < CLI_OPTIONS && strchr(command->letters, o->id))
			out[n++] = o;
	out[n++] = &help_option;
	return n;
}

static bool is_optional(const struct cli_option *o)
{
	return o->argument && *o->argument == '[';
}

/* ---- help ---- */

/* Writes "-c, --count N". Returns its length. */
static int option_left(const struct cli_option *o, char *text, size_t size)
{
	const char *argument = o->argument ? o->argument : "";
	const char *space = o->argument && !is_optional(o) ? " " : "";

	if (!o->name)
		return snprintf(text, size, "-%c%s%s", o->id, space, argument);
	if (o->id >= CLI_LONG)
		return snprintf(text, size, "--%s%s%s", o->name, space, argument);
	return snprintf(text, size, "-%c, --%s%s%s", o->id, o->name, space, argument);
}

static void print_option(const struct cli_option *o, int width)
{
	const char *line = o->text, *end;
	char left[64];

	option_left(o, left, sizeof(left));
	for (; (end = strchr(line, '\n')); line = end + 1, *left = 0)
		printf("  %-*s  %.*s\n", width, left, (int)(end - line), line);
	printf("  %-*s  %s\n", width, left, line);
}

void command_help(const struct command *command)
{
	const struct cli_option *options[CLI_OPTIONS + 1];
	const u32 n = options_of(command, options);
	char left[64];
	int width = 0;

	for (u32 i = 0; i < n; i++) {
		const int len = option_left(options[i], left, sizeof(left));

		if (options[i]->text && len > width)
			width = len;
	}
	fputs(command->help, stdout);
	for (u32 i = 0; i < n; i++)
		if (options[i]->text)
			print_option(options[i], width);
	if (command->help_end)
		fputs(command->help_end, stdout);
}

int usage_error(const struct command *command, const char *fmt, ...)
{
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	output_clean(why);
	fprintf(stderr, "xroce %s: %s\n"
			"%.*s\n"
			"Try 'xroce %s --help' for more information.\n", command->name, why,
		(int)strcspn(command->help, "\n"), command->help, command->name);
	return EXIT_USAGE;
}

/* ---- parsing ---- */

/* Converts the options to the form of getopt_long(). */
static void spell_options(const struct command *command, const struct cli_option *const *from,
			  u32 n, struct option *out, char *letters)
{
	if (command->is_wrapper)
		*letters++ = '+';
	*letters++ = ':';
	for (u32 i = 0; i < n; i++) {
		const struct cli_option *o = from[i];

		if (o->name)
			*out++ = (struct option){ o->name,
						  is_optional(o) ? optional_argument :
						  o->argument	 ? required_argument :
								   no_argument,
						  NULL, o->id };
		if (o->id >= CLI_LONG)
			continue;
		*letters++ = (char)o->id;
		if (o->argument)
			*letters++ = ':';
	}
	*out = (struct option){ 0 };
	*letters = 0;
}

static int option_refused(const struct command *command, const struct cli_option *o, bool is_long,
			  const char *value)
{
	char spelled[64];

	if (is_long)
		snprintf(spelled, sizeof(spelled), "--%s", o->name);
	else
		snprintf(spelled, sizeof(spelled), "-%c", o->id);
	return usage_error(command, "invalid argument '%s' of %s%s%s", value, spelled,
			   o->wants ? ": it takes " : "", o->wants ? o->wants : "");
}

static const struct cli_option *option_by_id(const struct cli_option *const *options, u32 n, int id)
{
	for (u32 i = 0; i < n; i++)
		if (options[i]->id == id)
			return options[i];
	return NULL;
}

/* Reports an option that getopt_long() refused; optopt is its id, or 0 if it has none. */
static int option_unknown(const struct command *command, const struct cli_option *known,
			  const char *word)
{
	const char letter[] = { '-', (char)optopt, 0 };

	if (known)
		return usage_error(command, "option '--%s' takes no argument", known->name);
	return usage_error(command, "unknown option '%s'", optopt ? letter : word);
}

int cli_parse(const struct command *command, int *argc, char ***argv,
	      int (*set)(void *arg, int id, char *value), void *arg)
{
	const struct cli_option *options[CLI_OPTIONS + 1];
	const u32 n = options_of(command, options);
	char letters[2 * (CLI_OPTIONS + 1) + 3];
	struct option spelled[CLI_OPTIONS + 2];
	int id, ret, index;

	spell_options(command, options, n, spelled, letters);
	opterr = 0;
	while (index = -1, (id = getopt_long(*argc, *argv, letters, spelled, &index)) != -1) {
		if (id == 'h') {
			command_help(command);
			exit(output_end(EXIT_OK));
		}
		if (id == ':')
			return usage_error(command, "option '%s' needs an argument",
					   (*argv)[optind - 1]);
		if (id == '?')
			return option_unknown(command, option_by_id(options, n, optopt),
					      (*argv)[optind - 1]);
		ret = set(arg, id, optarg);
		if (ret == CLI_REFUSED)
			return option_refused(command, option_by_id(options, n, id), index >= 0,
					      optarg);
		if (ret)
			return ret;
	}
	*argc -= optind;
	*argv += optind;
	return EXIT_OK;
}

bool cli_number(const char *text, u64 least, u64 most, u64 *out)
{
	const bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;

	if (is_hex ? !isxdigit((unsigned char)text[2]) : !isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*out = strtoull(text, &end, is_hex ? 16 : 10);
	return !errno && !*end && *out >= least && *out <= most;
}

bool cli_number32(const char *text, u32 least, u32 most, u32 *out)
{
	u64 number;

	if (!cli_number(text, least, most, &number))
		return false;
	*out = (u32)number;
	return true;
}

bool cli_seconds(const char *text, u64 least_ns, u64 most_ns, u64 *out_ns)
{
	double value;
	char *end;

	if (strspn(text, "0123456789.") != strlen(text))
		return false;
	value = strtod(text, &end) * 1e9;
	if (!*text || *end || !isfinite(value) || value < (double)least_ns ||
	    value > (double)most_ns)
		return false;
	*out_ns = (u64)value;
	return true;
}

bool cli_address(const char *text, struct gid *gid)
{
	*gid = (struct gid){ .raw = { [10] = 0xff, [11] = 0xff } };
	return inet_pton(AF_INET, text, gid->raw + 12) == 1 ||
	       inet_pton(AF_INET6, text, gid->raw) == 1;
}

/* ---- interfaces ---- */

static int set_json(void *arg, int id, char *value)
{
	*(bool *)arg = true;
	return EXIT_OK;
}

int iface_arguments(const struct command *command, int argc, char **argv, const char **iface,
		    bool *json)
{
	int ret;

	*json = false;
	ret = cli_parse(command, &argc, &argv, set_json, json);
	if (ret)
		return ret;
	if (argc > 1)
		return usage_error(command, "more than one interface");
	*iface = argv[0];
	return EXIT_OK;
}

int find_device(const struct command *command, const char *name, struct netdev *dev)
{
	const int ret = netdev_find(name, dev);
	char shown[OUTPUT_NAME];

	name = output_name(name, shown);
	switch (ret) {
	case 0:
		return EXIT_OK;
	case -ENODEV:
		fprintf(stderr,
			"xroce %s: no interface '%s' in this network namespace; 'xroce list' lists "
			"the interfaces\n",
			command->name, name);
		return EXIT_USAGE;
	case -EOPNOTSUPP:
		fprintf(stderr,
			"xroce %s: interface '%s' is not an Ethernet interface; 'xroce list' lists "
			"the interfaces\n",
			command->name, name);
		return EXIT_USAGE;
	default:
		fprintf(stderr, "xroce %s: cannot read interface '%s': %s\n", command->name, name,
			strerror(-ret));
		return EXIT_FAILED;
	}
}
