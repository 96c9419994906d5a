/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The xroce command: selects the subcommand. Each subcommand has a file. By the name of rdma(8) it
 * is the command of run/rdma.c.
 */
#define _GNU_SOURCE
#include <errno.h>

#include <xroce/version.h>

#include "../os/privilege.h"
#include "cli.h"

static const struct command *const commands[] = {
	&command_run, &command_serve, &command_stop, &command_list, &command_doctor,
	&command_ping, &command_bench, &command_lab, &command_stat, &command_top, &command_qp,
	&command_cq, &command_srq, &command_mr, &command_clients, &command_capture,
	&command_trace, &command_explain, &command_export,
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
		"  XROCE_SHARE   whether other processes may use the interface: auto, never or\n"
		"                always\n"
		"  XROCE_TX      how to send frames: auto, xsk (only AF_XDP), tap, live or gso\n"
		"\n"
		"xroce(7) describes all variables.\n"
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

static int too_many(const char *command, const char *word)
{
	char name[OUTPUT_NAME];

	fprintf(stderr, "xroce: unexpected argument '%s' of %s; see 'xroce --help'\n",
		output_name(word, name), command);
	return EXIT_USAGE;
}

static bool is_help(const char *arg)
{
	return !strcmp(arg, "--help") || !strcmp(arg, "-h");
}

/* Returns the number of letters to insert, delete or replace to make a of b. Both are short. */
static u32 edit_distance(const char *a, const char *b)
{
	u32 row[OUTPUT_NAME], n = (u32)strlen(b);

	for (u32 j = 0; j <= n; j++)
		row[j] = j;
	for (u32 i = 0; a[i]; i++) {
		u32 diagonal = row[0];

		row[0] = i + 1;
		for (u32 j = 0; j < n; j++) {
			const u32 replaced = diagonal + (a[i] != b[j]);

			diagonal = row[j + 1];
			row[j + 1] = min_u32(replaced, min_u32(row[j], row[j + 1]) + 1);
		}
	}
	return row[n];
}

/*
 * Returns the command whose name is most like word, or NULL if none is: at most half of the name's
 * letters differ, and at most two.
 */
static const struct command *command_like(const char *word)
{
	const struct command *best = NULL;
	u32 least = 3;

	if (strlen(word) >= OUTPUT_NAME)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		const char *name = commands[i]->name;
		const bool begins = strlen(word) > 1 && !strncmp(name, word, strlen(word));
		const u32 distance = begins ? 0 : edit_distance(word, name);

		if (distance < least && distance * 2 <= strlen(name)) {
			least = distance;
			best = commands[i];
		}
	}
	return best;
}

static int unknown_command(const char *word)
{
	const struct command *like = command_like(word);
	char name[OUTPUT_NAME];

	fprintf(stderr, "xroce: unknown command '%s'; ", output_name(word, name));
	if (like)
		fprintf(stderr, "did you mean '%s'?\n", like->name);
	else
		fprintf(stderr, "'xroce --help' lists the commands\n");
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	const struct command *command;

	output_begin();
	if (!strcmp(program_invocation_short_name, RDMA_NAME))
		return output_end(rdma_main(argc, argv));
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (is_help(argv[1]) || !strcmp(argv[1], "help")) {
		command = argc > 2 ? find_command(argv[2]) : NULL;
		if (argc > 2 && !command && !is_help(argv[1]))
			return unknown_command(argv[2]);
		if (argc > 3 && !is_help(argv[1]))
			return too_many(argv[1], argv[3]);
		if (command)
			command_help(command);
		else
			print_help(stdout);
		return output_end(EXIT_OK);
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		if (argc > 2)
			return too_many(argv[1], argv[2]);
		printf("xroce " XROCE_VERSION "\n");
		return output_end(EXIT_OK);
	}
	command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	/* the commands report failures themselves */
	privilege_hush_libbpf();
	return output_end(command->main(argc - 1, argv + 1));
}
