/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * The commands that read maps, while a process lies in its own: maps of any bytes and of any size
 * of value. Whatever maps hold, a command ends with 0, 1 or 3, prints printable
 * characters or valid JSON, and prints the rows of an honest process as before.
 */
#include <getopt.h>
#include <unistd.h>

#include "unit.h"

#include "../../user/os/process.h"

#define RECORDED_WITH_LOOK
#include "recorded_maps.h"

/* ---- in the places of main.c and of what asks the kernel ---- */

int netdev_find(const char *name, struct netdev *dev)
{
	*dev = (struct netdev){ .is_enabled = true, .is_up = true, .mtu = 4500 };
	return 0;
}

u32 netdev_link_mtu_for(u32 path_mtu)
{
	return path_mtu + 88;
}

/* ---- a command and its output ---- */

static char said[1 << 20];
static size_t said_len;

/* Runs `command` with the words of `line`; its standard output is in said. */
static int run(const struct command *command, const char *line)
{
	FILE *file = tmpfile();
	const int to = file ? fileno(file) : -1, out = dup(STDOUT_FILENO);
	char words[128], *argv[8], *rest = words;
	int argc = 0, status;
	ssize_t n;

	snprintf(words, sizeof(words), "%s", line);
	while ((argv[argc] = strtok_r(rest, " ", &rest)))
		argc++;
	assert_true(to >= 0 && out >= 0);
	fflush(stdout);
	assert_true(dup2(to, STDOUT_FILENO) >= 0);
	optind = 0;
	status = command->main(argc, argv);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	n = pread(to, said, sizeof(said) - 1, 0);
	fclose(file);
	assert_true(n >= 0 && n < (ssize_t)sizeof(said) - 1);
	said_len = (size_t)n;
	said[n] = 0;
	return status;
}

/* ---- JSON ---- */

static const char *json_value_end(const char *at, u32 depth);

static const char *json_space_end(const char *at)
{
	return at + strspn(at, " \n");
}

/* The characters after a string; control characters must be escaped. */
static const char *json_string_end(const char *at)
{
	if (*at++ != '"')
		return NULL;
	for (; *at != '"'; at++) {
		if ((u8)*at < ' ' || (u8)*at >= 0x7f)
			return NULL;
		if (*at == '\\' && !strchr("\"\\/bfnrtu", *++at))
			return NULL;
	}
	return at + 1;
}

/* The characters after the members of an object or array, whose first character is at[0]. */
static const char *json_members_end(const char *at, u32 depth)
{
	const bool is_object = *at == '{';
	const char close = is_object ? '}' : ']';

	at = json_space_end(at + 1);
	if (*at == close)
		return at + 1;
	for (;; at = json_space_end(at + 1)) {
		if (is_object) {
			at = json_string_end(at);
			if (!at || *at++ != ':')
				return NULL;
			at = json_space_end(at);
		}
		at = json_value_end(at, depth + 1);
		if (!at)
			return NULL;
		at = json_space_end(at);
		if (*at == close)
			return at + 1;
		if (*at != ',')
			return NULL;
	}
}

static const char *json_value_end(const char *at, u32 depth)
{
	static const char *const words[] = { "true", "false", "null" };
	char *end;

	if (depth > 16)
		return NULL;
	if (*at == '{' || *at == '[')
		return json_members_end(at, depth);
	if (*at == '"')
		return json_string_end(at);
	for (u32 i = 0; i < ARRAY_SIZE(words); i++)
		if (!strncmp(at, words[i], strlen(words[i])))
			return at + strlen(words[i]);
	/* no "nan" and no "inf" */
	if (*at != '-' && (*at < '0' || *at > '9'))
		return NULL;
	strtod(at, &end);
	return end;
}

static void need_json(const char *line)
{
	const char *end = json_value_end(said, 0);

	if (!end || *json_space_end(end))
		fail_msg("%s: no JSON: %.200s", line, said);
}

static void need_printable(const char *line)
{
	for (size_t i = 0; i < said_len; i++)
		if (said[i] != '\n' && ((u8)said[i] < ' ' || (u8)said[i] >= 0x7f))
			fail_msg("%s: byte 0x%02x at %zu", line, (u8)said[i], i);
}

/* ---- the commands ---- */

static const struct {
	const struct command *command;
	const char *name;
} commands[] = {
	{ &command_qp, "qp" },	     { &command_cq, "cq" },	{ &command_srq, "srq" },
	{ &command_mr, "mr" },	     { &command_stat, "stat" },
	{ &command_explain, "explain --interval 0.001" },
};

#define HONEST 3202 /* the pid of kernel_pingpong() */
#define LIAR   4711

static int begin(void **state)
{
	struct fake_port *liar;

	kernel_begin();
	kernel_pingpong();
	liar = kernel_port("vc", LIAR, 500);
	port_qps(liar, 32);
	map_size(&liar->maps[MAP_CQ_STAT], 32, sizeof(struct xroce_cq_stat));
	map_size(&liar->maps[MAP_SRQ_STAT], 32, sizeof(struct xroce_srq_stat));
	map_size(&liar->maps[MAP_MR_STAT], 32, sizeof(struct xroce_mr_stat));
	return 0;
}

static int end(void **state)
{
	kernel_end();
	return 0;
}

static void lie(u64 seed)
{
	if (seed % 4 == 3)
		kernel_resize(&fake.ports[1], seed / 4);
	kernel_mutate(&fake.ports[1], seed);
}

static void need_status(const char *line, int status)
{
	if (status != EXIT_OK && status != EXIT_FAILED && status != 3)
		fail_msg("%s ends with %d", line, status);
}

static void hostile__text_is_printable(void **state)
{
	for (u32 n = 0; n < 100; n++) {
		lie(n);
		for (u32 i = 0; i < ARRAY_SIZE(commands); i++) {
			need_status(commands[i].name, run(commands[i].command, commands[i].name));
			need_printable(commands[i].name);
		}
	}
}

static void hostile__json_is_valid(void **state)
{
	for (u32 n = 0; n < 100; n++) {
		lie(1000 + n);
		for (u32 i = 0; i < ARRAY_SIZE(commands); i++) {
			char line[64];

			snprintf(line, sizeof(line), "%s --json", commands[i].name);
			need_status(line, run(commands[i].command, line));
			need_json(line);
		}
	}
}

/* Each row has the process whose maps these are, whatever the maps say of that. */
static void hostile__rows_are_of_their_processes(void **state)
{
	static char honest[ARRAY_SIZE(commands)][8192];

	for (u32 n = 0; n <= 50; n++) {
		/* explain prints times of looks */
		for (u32 i = 0; i + 1 < ARRAY_SIZE(commands); i++) {
			const char *rows;
			char line[64];

			snprintf(line, sizeof(line), "%s --json --pid %u", commands[i].name,
				 HONEST);
			run(commands[i].command, line);
			/* after the time */
			rows = strchr(said, '[');
			assert_non_null(rows);
			assert_true(strlen(rows) < sizeof(honest[i]));
			if (!n)
				strcpy(honest[i], rows);
			assert_string_equal(rows, honest[i]);
			snprintf(line, sizeof(line), "%s --json", commands[i].name);
			run(commands[i].command, line);
			for (const char *at = said; (at = strstr(at, "\"pid\":"));) {
				const unsigned long pid = strtoul(at += 6, NULL, 10);

				assert_true(pid == HONEST || pid == LIAR);
			}
		}
		lie(2000 + n);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hostile__text_is_printable),
		TEST(hostile__json_is_valid),
		TEST(hostile__rows_are_of_their_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
