/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=1 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: files of cases of the lab. A refused file has a place in it and a reason. In an
 * accepted one names are distinct, and each value is accepted again when a run is made from it.
 *
 * scripts/fuzz.sh BUILD cases SECONDS runs it. An input is a file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/tools/lab/lab_cases.h"
#include "fuzz.h"

const struct command command_lab = { .name = "lab", .help = "", .options = lab_options };

/* For the lab's files that run nothing here. */
int lab_failed(const char *what, int err)
{
	return EXIT_FAILED;
}

int netdev_find(const char *name, struct netdev *dev)
{
	return -ENODEV;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const seeds[] = {
		"# a\r\n[[case]]\nname = \"a\"\nfault = [\"drop rc.ack\", # b\n 'swap nth=2',\n]\n",
		"[[case]]\nname = 'a-1'\nexpect = 'end'\nat = '2s stop h2 500ms'\nseed = 7\n"
		"deadline = 2.5\nallow-miss = true\n[[case]]\nname = 'b'\nloss = '1%'\n",
		"[[case]]\nname = 'a'\ndescription = \"\\\"\\\\ \\n\\t \xc3\xa4\"\nloss = 0.01\n"
		"corrupt = '1%'\nrate = '1gbit'\nmtu = 4200\nhosts = 3\nshared = false\n",
		"[[case]]\nname = 'a'\nat = ['1s mtu 600 1s', '1s address h1 1s', '1s kill h2']\n",
	};

	if (!fuzz_seed_dir())
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++)
		fuzz_seed("cases", i, NULL, 0, seeds[i], strlen(seeds[i]));
	exit(0);
}

static void check_refusal(const u8 *data, size_t size, const struct lab_toml_error *error)
{
	u32 lines = 1;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	REQUIRE(error->line >= 1 && error->line <= lines);
	REQUIRE(error->column >= 1 && error->column <= size + 1);
	REQUIRE(error->why[0]);
}

static void check_case(const struct lab_cases *cases, u32 at)
{
	const struct lab_case *c = &cases->list[at];
	static struct lab run;

	REQUIRE(c->name[0] && c->num_settings);
	for (u32 i = 0; i < at; i++)
		REQUIRE(strcmp(cases->list[i].name, c->name));
	run = (struct lab){ .num_hosts = LAB_HOSTS };
	for (u32 i = 0; i < c->num_settings; i++) {
		const u32 texts = run.num_texts;
		struct lab_error error;
		struct lab_rule rule;

		/* up to the limit of a run, which the command checks before the first one */
		if (texts == LAB_RULES || run.num_actions == LAB_ACTIONS)
			break;
		REQUIRE(lab_set_option(&run, c->settings[i].id, c->settings[i].value));
		if (run.num_texts == texts)
			continue;
		REQUIRE(lab_rule_parse(run.texts[texts], LAB_HOSTS, &rule, &error));
		if (c->settings[i].id != 'f')
			free(run.texts[texts]);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct lab_toml_error error = { 0 };
	struct lab_cases cases = { .num = 0 };
	char *text = malloc(size ? size : 1);

	REQUIRE(text);
	memcpy(text, data, size);
	if (!lab_cases_parse(text, size, &cases, &error))
		check_refusal(data, size, &error);
	else
		for (u32 i = 0; i < cases.num; i++)
			check_case(&cases, i);
	lab_cases_free(&cases);
	free(text);
	return 0;
}
