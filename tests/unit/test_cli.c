/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* The command lines of subcommands: user/tools/cli.c. */
#include <getopt.h>

#include "unit.h"

#include "../../user/tools/cli.h"

int netdev_find(const char *name, struct netdev *dev)
{
	return -ENODEV;
}

/* ---- values ---- */

static void numbers_are_decimal_or_hexadecimal(void **state)
{
	static const struct {
		const char *text;
		u64 number;
	} good[] = { { "1", 1 }, { "010", 10 }, { "0x1f", 31 }, { "0XFF", 255 }, { "4096", 4096 } };
	static const char *const bad[] = { "", " 1", "+1", "-1", "1 ", "0x", "0xg", "x1", "1k", "0",
					   "4097", "18446744073709551616" };
	u64 number;

	for (u32 i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(cli_number(good[i].text, 1, 4096, &number));
		assert_int_equal(number, good[i].number);
	}
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		if (cli_number(bad[i], 1, 4096, &number))
			fail_msg("'%s' is taken for a number", bad[i]);
	assert_true(cli_number("18446744073709551615", 0, UINT64_MAX, &number));
	assert_true(number == UINT64_MAX);
}

static void seconds_have_fractions(void **state)
{
	static const char *const bad[] = { "",    "0",	"0.0009", "61",	   "1e1", "-1",
					   "inf", "nan", "0x1",	  "1.2.3", "." };
	u64 ns;

	assert_true(cli_seconds("0.25", NSEC_PER_MSEC, 60 * NSEC_PER_SEC, &ns));
	assert_int_equal(ns, NSEC_PER_SEC / 4);
	assert_true(cli_seconds("60", NSEC_PER_MSEC, 60 * NSEC_PER_SEC, &ns));
	assert_int_equal(ns, 60 * NSEC_PER_SEC);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		if (cli_seconds(bad[i], NSEC_PER_MSEC, 60 * NSEC_PER_SEC, &ns))
			fail_msg("'%s' is taken for seconds", bad[i]);
}

static void addresses_are_gids(void **state)
{
	static const u8 mapped[16] = { [10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 7 };
	static const u8 ipv6[16] = { 0xfd, [15] = 1 };
	static const char *const bad[] = { "", "192.0.2", "192.0.2.7 ", "fd00::1::", "host", "1" };
	struct gid gid;

	assert_true(cli_address("192.0.2.7", &gid));
	assert_memory_equal(gid.raw, mapped, sizeof(mapped));
	assert_true(cli_address("fd00::1", &gid));
	assert_memory_equal(gid.raw, ipv6, sizeof(ipv6));
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(cli_address(bad[i], &gid));
}

/* ---- options ---- */

enum { OPTION_LONG = CLI_LONG };

static const struct cli_option options[] = {
	{ 'n', "number", "N", "take N", "a number" },
	{ 'f', "flag", NULL, "set a flag", NULL },
	{ OPTION_LONG, "long", "[=X]", "take X, or nothing", NULL },
	{ '4', NULL, NULL, "has a letter alone", NULL },
	{ 0 },
};

static struct command command = { .name = "test",
				  .help = "usage: xroce test\n",
				  .letters = "dj",
				  .options = options };

static char said[256]; /* what set() was called with */

static int set(void *arg, int id, char *value)
{
	const size_t len = strlen(said);

	assert_ptr_equal(arg, said);
	snprintf(said + len, sizeof(said) - len, id < CLI_LONG ? "%c%s " : "%d%s ", id,
		 value ? value : "-");
	if (value && !strcmp(value, "bad"))
		return CLI_REFUSED;
	return value && !strcmp(value, "seven") ? 7 : EXIT_OK;
}

/* Parses the words of a line. The arguments that are left follow in said. */
static int parse(const char *line)
{
	char copy[256], *words[16], **argv = words, *rest = copy;
	int argc = 0, ret;

	snprintf(copy, sizeof(copy), "test %s", line);
	while (rest && argc < 15)
		words[argc++] = strsep(&rest, " ");
	words[argc] = NULL;
	*said = 0;
	optind = 0;
	ret = cli_parse(&command, &argc, &argv, set, said);
	for (int i = 0; !ret && i < argc; i++)
		snprintf(said + strlen(said), sizeof(said) - strlen(said), "<%s>", argv[i]);
	return ret;
}

static void takes_letters_and_names(void **state)
{
	assert_int_equal(parse("-n 3 a --number=4 --number 5 b -f -4 --fl"), EXIT_OK);
	assert_string_equal(said, "n3 n4 n5 f- 4- f- <a><b>");
	assert_int_equal(parse("-fn3 -- -f"), EXIT_OK);
	assert_string_equal(said, "f- n3 <-f>");
	/* of the common options those that it has */
	assert_int_equal(parse("-d eth0 -j --dev=eth1 --json"), EXIT_OK);
	assert_string_equal(said, "deth0 j- deth1 j- ");
}

static void a_wrapper_leaves_the_options_of_its_program(void **state)
{
	command.is_wrapper = true;
	assert_int_equal(parse("-f a -f --help"), EXIT_OK);
	command.is_wrapper = false;
	assert_string_equal(said, "f- <a><-f><--help>");
}

static void refuses_what_it_does_not_know(void **state)
{
	static const char *const bad[] = { "-x", "--other", "-p 1", "--pid=1", "-n", "--number",
					   "--flag=1", "-fx", "-n bad", "--number=bad", "-d" };

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse(bad[i]), EXIT_USAGE);
	assert_int_equal(parse("-n seven -f"), 7);
	assert_string_equal(said, "nseven ");
}

static void an_argument_in_brackets_may_be_left_out(void **state)
{
	assert_int_equal(parse("--long --long=3 a"), EXIT_OK);
	assert_string_equal(said, "256- 2563 <a>");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_decimal_or_hexadecimal),
		cmocka_unit_test(seconds_have_fractions),
		cmocka_unit_test(addresses_are_gids),
		cmocka_unit_test(takes_letters_and_names),
		cmocka_unit_test(a_wrapper_leaves_the_options_of_its_program),
		cmocka_unit_test(refuses_what_it_does_not_know),
		cmocka_unit_test(an_argument_in_brackets_may_be_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
