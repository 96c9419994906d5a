/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The xroce command: selects the subcommand. Each subcommand has a file. */
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>

#include <bpf/libbpf.h>
#include <xroce/version.h>

#include "cli.h"

static const struct command *const commands[] = {
	&command_run, &command_serve, &command_stop, &command_list, &command_doctor,
	&command_ping, &command_bench, &command_stat, &command_top, &command_qp, &command_cq,
	&command_srq, &command_mr, &command_clients, &command_capture, &command_trace,
	&command_explain, &command_export,
};

static void print_help(FILE *out)
{
	fprintf(out, "usage: xroce COMMAND [ARGUMENT...]\n"
		     "\n"
		     "RDMA verbs on any Linux network interface: RoCEv2 in user space, over XDP "
		     "and\n"
		     "AF_XDP.\n"
		     "\n"
		     "Commands:\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
	fprintf(out,
		"\n"
		"'xroce COMMAND --help' describes a command; 'xroce --version' prints the\n"
		"version.\n"
		"\n"
		"Environment:\n"
		"  " NETDEV_ENV "     show only this interface to programs ('xroce run --dev' sets "
		"it)\n"
		"  XROCE_XDP     how to attach XDP: native (lowest latency), generic (highest\n"
		"                bandwidth on veth) or auto (generic on veth)\n"
		"  XROCE_ATTACH  whether other XDP programs can use the interface as well: auto,\n"
		"                dispatcher or exclusive\n"
		"  XROCE_SHARE   whether to use the interface through its broker: auto, never or\n"
		"                always\n"
		"  XROCE_TX      how to send frames: auto, xsk (only AF_XDP), tap, live or gso\n"
		"\n"
		"docs/port.md describes the other variables.\n"
		"\n"
		"Exit status: 0 success, 1 failure, 2 wrong usage or no such interface; see also\n"
		"'xroce run --help'.\n");
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

void command_help(const struct command *command)
{
	fputs(command->help, stdout);
	if (command->print_options)
		command->print_options();
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

int iface_arguments(const struct command *command, int argc, char **argv, const char **iface,
		    bool *json)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "help", no_argument, NULL, 'h' },
						 { NULL, 0, NULL, 0 } };
	int opt;

	opterr = 0;
	*json = false;
	while ((opt = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		switch (opt) {
		case 'j': *json = true; break;
		case 'h': command_help(command); exit(EXIT_OK);
		default: return usage_error(command, "unknown option '%s'", argv[optind - 1]);
		}
	}
	if (argc - optind > 1)
		return usage_error(command, "more than one interface");
	*iface = argv[optind];
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

static bool is_help(const char *arg)
{
	return !strcmp(arg, "--help") || !strcmp(arg, "-h");
}

static int unknown_command(const char *word)
{
	char name[OUTPUT_NAME];

	fprintf(stderr, "xroce: unknown command '%s'\n\n", output_name(word, name));
	print_help(stderr);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	const struct command *command;

	output_begin();
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (is_help(argv[1]) || !strcmp(argv[1], "help")) {
		command = argc > 2 ? find_command(argv[2]) : NULL;
		if (argc > 2 && !command && !is_help(argv[1]))
			return unknown_command(argv[2]);
		if (command)
			command_help(command);
		else
			print_help(stdout);
		return output_end(EXIT_OK);
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("xroce " XROCE_VERSION "\n");
		return output_end(EXIT_OK);
	}
	command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	if (argc > 2 && is_help(argv[2])) {
		command_help(command);
		return output_end(EXIT_OK);
	}
	/* doctor reports a failed probe itself, so libbpf's messages are suppressed */
	libbpf_set_print(NULL);
	return output_end(command->main(argc - 1, argv + 1));
}
