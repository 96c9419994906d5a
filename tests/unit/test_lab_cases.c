/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* Files of cases, and the options that they set: user/tools/lab. */
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "../../user/tools/lab/lab_cases.h"
#include "../../user/tools/lab/lab_record.h"

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

static struct lab_cases cases;
static struct lab_toml_error error;

/* Parses the text from memory that ends with it. */
static bool parse(const char *text)
{
	const size_t len = strlen(text);
	char *copy = malloc(len ? len : 1);
	bool good;

	assert_non_null(copy);
	memcpy(copy, text, len);
	lab_cases_free(&cases);
	good = lab_cases_parse(copy, len, &cases, &error);
	free(copy);
	return good;
}

static void cases_have_what_they_say(void **state)
{
	if (!parse("# a comment\r\n"
		   "[[case]] # another one\n"
		   "name = \"first\"\n"
		   "\tdescription\t=  'C:\\'  # of one line\n"
		   "fault = [ \"drop rc.ack\", # with a comment\n"
		   "\n"
		   "\t'swap nth=2',\n"
		   "]\n"
		   "loss = \"1%\"\n"
		   "shared = false\n"
		   "\n"
		   "[[ case ]]\n"
		   "name = 'second'\n"
		   "expect = \"end\"\n"
		   "at = \"2s stop h2 500ms\"\n"
		   "seed = 7\n"
		   "deadline = 2.5\n"
		   "allow-miss = true"))
		fail_msg("%u:%u: %s", error.line, error.column, error.why);
	assert_int_equal(cases.num, 2);
	assert_string_equal(cases.list[0].name, "first");
	assert_string_equal(cases.list[0].description, "C:\\");
	assert_int_equal(cases.list[0].expect, LAB_EXPECT_SUCCESS);
	assert_int_equal(cases.list[0].num_settings, 3);
	assert_string_equal(cases.list[0].settings[1].value, "swap nth=2");
	assert_string_equal(cases.list[0].settings[2].value, "1%");
	assert_int_equal(cases.list[1].expect, LAB_EXPECT_END);
	assert_int_equal(cases.list[1].line, 12);
	assert_int_equal(cases.list[1].num_settings, 4);
	assert_string_equal(cases.list[1].settings[2].value, "2.5");
	assert_null(cases.list[1].settings[3].value);
}

static void strings_are_decoded(void **state)
{
	assert_true(parse("[[case]]\nname=\"a\"\nloss='1%'\n"
			  "description=\"a \\\"b\\\" \\\\ \xc3\xa4\""));
	/* for a terminal */
	assert_string_equal(cases.list[0].description, "a \"b\" \\ ??");
}

/* The place and the word of what is wrong. */
static void wrong_files_name_the_word(void **state)
{
#define CASE "[[case]]\nname = 'a'\n"
	static const struct {
		const char *text;
		u32 line, column;
		const char *word;
	} wrong[] = {
		{ "", 1, 1, "[[case]]" },
		{ "# nothing\n", 1, 1, "[[case]]" },
		{ "[[case]]\n", 1, 1, "name" },
		{ CASE, 1, 1, "rule" },
		{ "\n[[case]]\nloss='1%'", 2, 1, "name" },
		{ "[[case]]\nloss='1%'\n[[case]]\n", 3, 1, "line 1" },
		{ "name = 'a'", 1, 1, "'name'" },
		{ "[case]", 1, 1, "[[NAME]]" },
		{ "[[cases]]", 1, 1, "'cases'" },
		{ "[[case]", 1, 7, "]]" },
		{ "[[case", 1, 7, "]]" },
		{ "[[]]", 1, 3, "']]'" },
		{ "[[a.b]]", 1, 4, "]]" },
		{ "[[case]] x", 1, 10, "'x'" },
		{ "[[case]]\nname", 2, 5, "= is missing" },
		{ "[[case]]\nname 'a'", 2, 6, "= is missing" },
		{ "[[case]]\n'name' = 'a'", 2, 1, "''name''" },
		{ "[[case]]\na.b = 1", 2, 2, "= is missing" },
		{ "[[case]]\n= 1", 2, 1, "'='" },
		{ "[[case]]\nname = ", 2, 8, "value" },
		{ "[[case]]\nname = # a", 2, 8, "value" },
		{ "[[case]]\nname = a", 2, 8, "'a'" },
		{ "[[case]]\nname = 'a", 2, 8, "closing '" },
		{ "[[case]]\nname = \"a", 2, 8, "closing \"" },
		{ "[[case]]\nname = \"a\\", 2, 10, "'\\'" },
		{ "[[case]]\nname = \"\\u0041\"", 2, 9, "'\\u'" },
		{ "[[case]]\nname = '''a'''", 2, 8, "several lines" },
		{ "[[case]]\nname = \"\"\"a\"\"\"", 2, 8, "several lines" },
		{ "[[case]]\nname = 'a' 'b'", 2, 12, "'b'" },
		{ "[[case]]\nname = 'a'\nname = 'b'", 3, 1, "twice" },
		{ "[[case]]\nname = 'A'", 2, 8, "'A'" },
		{ "[[case]]\nname = ''", 2, 8, "''" },
		{ "[[case]]\nname = 'a b'", 2, 8, "'a b'" },
		{ "[[case]]\nname = 3", 2, 8, "'3'" },
		{ "[[case]]\nname = ['a']", 2, 9, "'a'" },
		{ CASE "loss='1%'\n" CASE, 5, 8, "another case" },
		{ CASE "lose = '1%'", 3, 1 + 7, "'lose'" },
		{ CASE "h1 = 'true'", 3, 6, "'h1'" },
		{ CASE "cases = 'a'", 3, 9, "'cases'" },
		{ CASE "plain = true", 3, 9, "'plain'" },
		{ CASE "report = '/etc/passwd'", 3, 10, "'report'" },
		{ CASE "allow_miss = true", 3, 14, "'allow_miss'" },
		{ CASE "loss = true", 3, 8, "'true'" },
		{ CASE "loss = ['1%']", 3, 9, "'1%'" },
		{ CASE "loss = '2'", 3, 8, "'2'" },
		{ CASE "loss = 0", 3, 8, "'0'" },
		{ CASE "loss = .5", 3, 8, "'.5'" },
		{ CASE "loss = 1e-3", 3, 8, "'1e-3'" },
		{ CASE "loss = nan", 3, 8, "'nan'" },
		{ CASE "loss = 1_0", 3, 8, "'1_0'" },
		{ CASE "seed = 010", 3, 8, "'010'" },
		{ CASE "seed = 0x10", 3, 8, "'0x10'" },
		{ CASE "seed = -1", 3, 8, "'-1'" },
		{ CASE "seed = 18446744073709551616", 3, 8, "'18446744073709551616'" },
		{ CASE "seed = 1979-05-27", 3, 8, "'1979-05-27'" },
		{ CASE "mtu = 1279", 3, 7, "'1279'" },
		{ CASE "mtu = 1.5", 3, 7, "'1.5'" },
		{ CASE "hosts = 1", 3, 9, "'1'" },
		{ CASE "hosts = 9", 3, 9, "'9'" },
		{ CASE "rate = '1g'", 3, 8, "'1g'" },
		{ CASE "rate = 'infgbit'", 3, 8, "'infgbit'" },
		{ CASE "delay = 2", 3, 9, "'2'" },
		{ CASE "delay = '61s'", 3, 9, "'61s'" },
		{ CASE "deadline = '-1'", 3, 12, "'-1'" },
		{ CASE "deadline = 3601", 3, 12, "'3601'" },
		{ CASE "allow-miss = 1", 3, 14, "'1'" },
		{ CASE "allow-miss = 'true'", 3, 14, "'true'" },
		{ CASE "shared = True", 3, 10, "'True'" },
		{ CASE "expect = 'succes'", 3, 10, "'succes'" },
		{ CASE "expect = true", 3, 10, "'true'" },
		{ CASE "expect = ['end']", 3, 11, "'end'" },
		{ CASE "description = 1", 3, 15, "'1'" },
		{ CASE "description = ['a']", 3, 16, "'a'" },
		{ CASE "fault = true", 3, 9, "'true'" },
		{ CASE "fault = 3", 3, 9, "'3'" },
		{ CASE "fault = ''", 3, 9, "empty" },
		{ CASE "fault = 'drop rc.sned'", 3, 9, "'rc.sned'" },
		{ CASE "fault = 'drop nth=0'", 3, 9, "'nth=0'" },
		{ CASE "fault = 'drop h1>h9'", 3, 9, "'h1>h9'" },
		{ CASE "fault = 'delay'", 3, 9, "'' in a rule or action" },
		{ CASE "fault = [", 3, 9, "closing ]" },
		{ CASE "fault = ['drop'", 3, 9, "closing ]" },
		{ CASE "fault = ['drop' 'drop']", 3, 17, "''drop']'" },
		{ CASE "fault = ['drop',, 'drop']", 3, 17, "','" },
		{ CASE "fault = [, 'drop']", 3, 10, "','" },
		{ CASE "fault = [1]", 3, 10, "'1]'" },
		{ CASE "fault = [['drop']]", 3, 10, "'['drop']]'" },
		{ CASE "fault = ['drop',\n'lose']", 4, 1, "'lose'" },
		{ CASE "fault = ['drop'] ]", 3, 18, "']'" },
		{ CASE "fault = { a = 1 }", 3, 9, "'{'" },
		{ CASE "at = 'stop h2'", 3, 6, "'stop'" },
		{ CASE "at = '2 stop h2 1s'", 3, 6, "'2'" },
		{ CASE "at = '2s stop h9 1s'", 3, 6, "h9" },
		{ CASE "at = '2s stop h2'", 3, 6, "'' in a rule" },
		{ CASE "at = '2s kill h2 1s'", 3, 6, "'1s'" },
		{ CASE "at = '2s mtu 1s'", 3, 6, "'1s'" },
		{ CASE "at = '2s mtu h1 600 1s'", 3, 6, "'h1'" },
		{ CASE "at = '2s mtu 0 1s'", 3, 6, "'0'" },
		{ CASE "at = '2s partition h1 1s'", 3, 6, "'h1'" },
		{ CASE "at = '2s address 1s'", 3, 6, "'1s'" },
		{ CASE "at = ['1s partition 1s', '']", 3, 26, "begins with a time" },
		{ "[[case]]\nname = 'a'\x01", 2, 11, "0x01" },
		{ "[[case]]\rname = 'a'", 1, 9, "0x0d" },
		{ "[[case]]\n# \x7f", 2, 3, "0x7f" },
		{ "# \xff", 1, 3, "UTF-8" },
		{ "# \xc3", 1, 3, "UTF-8" },
		{ "# \xc0\x80", 1, 3, "UTF-8" },
		{ "# \xed\xa0\x80", 1, 3, "UTF-8" },
		{ "# \xe0\x80\x80", 1, 3, "UTF-8" },
		{ "# \xf4\x90\x80\x80", 1, 3, "UTF-8" },
		{ "\n# \xf0\x80\x80\x80", 2, 3, "UTF-8" },
		{ "[[case]]\naaaaaaaaaabbbbbbbbbbccccccccccdd = 1", 2, 1, "31" },
	};

	for (u32 i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (parse(wrong[i].text))
			fail_msg("taken for a file of cases: %s", wrong[i].text);
		if (error.line != wrong[i].line || error.column != wrong[i].column ||
		    !strstr(error.why, wrong[i].word))
			fail_msg("'%s': %u:%u: %s", wrong[i].text, error.line, error.column,
				 error.why);
	}
}

static void actions_have_what_they_say(void **state)
{
	struct lab_error e;
	struct lab_action a;

	assert_true(lab_action_parse("2s stop h2 500ms", 3, &a, &e));
	assert_int_equal(a.act, LAB_STOP);
	assert_int_equal(a.host, 2);
	assert_int_equal(a.at_ns, 2000000000);
	assert_int_equal(a.for_ns, 500000000);
	assert_true(lab_action_parse("  1.5ms\tmtu  600 1s ", 3, &a, &e));
	assert_int_equal(a.bytes, 600);
	assert_true(lab_action_parse("1s kill h3", 3, &a, &e));
	assert_int_equal(a.for_ns, 0);
	assert_true(lab_action_parse("1s partition 1s", 3, &a, &e));
	assert_int_equal(a.host, 0);
}

/* The error is at the word that is wrong. */
static void wrong_actions_name_the_word(void **state)
{
	static const struct {
		const char *text;
		u32 at;
	} wrong[] = {
		{ "", 0 },
		{ " ", 1 },
		{ "kill h1", 0 },
		{ "1 kill h1", 0 },
		{ "1m kill h1", 0 },
		{ "61s kill h1", 0 },
		{ "-1s kill h1", 0 },
		{ "0s kill h1", 0 },
		{ "1s", 2 },
		{ "1s kil h1", 3 },
		{ "1s KILL h1", 3 },
		{ "1s kill", 7 },
		{ "1s kill 1", 8 },
		{ "1s kill h0", 8 },
		{ "1s kill h4", 8 },
		{ "1s kill h11", 8 },
		{ "1s kill h1 1s", 11 },
		{ "1s kill h1,h2", 8 },
		{ "1s stop h1", 10 },
		{ "1s stop 1s h1", 8 },
		{ "1s stop h1 2", 11 },
		{ "1s stop h1 1s h2", 14 },
		{ "1s link h1 down", 11 },
		{ "1s address h1", 13 },
		{ "1s mtu", 6 },
		{ "1s mtu 1s", 7 },
		{ "1s mtu 0 1s", 7 },
		{ "1s mtu 65536 1s", 7 },
		{ "1s mtu 4294967297 1s", 7 },
		{ "1s mtu -5 1s", 7 },
		{ "1s mtu 600", 10 },
		{ "1s partition", 12 },
		{ "1s partition h1 h2", 13 },
		{ "1s kill h1                                                        ", 0 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct lab_error e;
		struct lab_action a;

		if (lab_action_parse(wrong[i].text, 3, &a, &e))
			fail_msg("'%s' is taken for an action", wrong[i].text);
		if (e.at != wrong[i].at || strlen(e.why) < 10)
			fail_msg("'%s': at %u: %s", wrong[i].text, e.at, e.why);
	}
}

/* Tables, keys, cases and values are bounded. */
static void long_files_are_refused(void **state)
{
	char *text = malloc(1 << 20), *at = text;

	assert_non_null(text);
	for (u32 i = 0; i < LAB_CASES; i++)
		at += sprintf(at, "[[case]]\nname = 'c%u'\nloss = '1%%'\n", i);
	assert_true(parse(text));
	assert_int_equal(cases.num, LAB_CASES);
	strcpy(at, "[[case]]\nname = 'more'\nloss = '1%'\n");
	assert_false(parse(text));
	assert_int_equal(error.line, 3 * LAB_CASES + 1);
	at = text + sprintf(text, "[[case]]\nname = 'a'\nfault = [");
	for (u32 i = 0; i < LAB_CASE_SETTINGS; i++)
		at += sprintf(at, "'drop nth=%u',", i + 1);
	strcpy(at, "]");
	assert_true(parse(text));
	strcpy(at, "'drop']");
	assert_false(parse(text));
	memset(text, 'a', 1 << 19);
	memcpy(text, "[[case]]\nname = '", 17);
	strcpy(text + (1 << 19), "'");
	assert_false(parse(text));
	memset(text, '[', 1 << 19);
	text[1 << 19] = 0;
	assert_false(parse(text));
	free(text);
}

static void results_follow_from_the_end(void **state)
{
	static const struct {
		enum lab_expect expect;
		int status;
		bool missed, may_miss;
		u32 hits;
		enum lab_result result;
	} ends[] = {
		{ LAB_EXPECT_SUCCESS, 0, false, false, 1, LAB_SURVIVED },
		{ LAB_EXPECT_SUCCESS, 1, false, false, 1, LAB_FAILED },
		{ LAB_EXPECT_SUCCESS, 1, true, true, 0, LAB_FAILED },
		{ LAB_EXPECT_SUCCESS, LAB_TIMEOUT, false, true, 1, LAB_FAILED },
		{ LAB_EXPECT_SUCCESS, 0, true, false, 1, LAB_FAILED },
		{ LAB_EXPECT_SUCCESS, 0, true, true, 1, LAB_SURVIVED },
		{ LAB_EXPECT_SUCCESS, 0, true, true, 0, LAB_NOT_REACHED },
		{ LAB_EXPECT_FAILURE, 1, false, false, 1, LAB_SURVIVED },
		{ LAB_EXPECT_FAILURE, 0, false, false, 1, LAB_FAILED },
		{ LAB_EXPECT_FAILURE, 0, true, true, 0, LAB_NOT_REACHED },
		{ LAB_EXPECT_FAILURE, LAB_TIMEOUT, false, false, 1, LAB_FAILED },
		{ LAB_EXPECT_END, 0, false, false, 1, LAB_SURVIVED },
		{ LAB_EXPECT_END, 137, false, false, 1, LAB_SURVIVED },
		{ LAB_EXPECT_END, LAB_TIMEOUT, false, true, 1, LAB_FAILED },
	};

	for (u32 i = 0; i < ARRAY_SIZE(ends); i++) {
		const struct lab_case c = { .expect = ends[i].expect, .hits = ends[i].hits };
		char why[64];

		assert_int_equal(lab_case_judge(&c, ends[i].status, ends[i].missed,
						ends[i].may_miss, why, sizeof(why)),
				 ends[i].result);
		assert_int_equal(!why[0], ends[i].result == LAB_SURVIVED);
	}
}

/* ---- command lines ---- */

static char *command_of(struct lab *lab)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	lab_print_command(lab, out);
	fclose(out);
	return text;
}

/* A replay line is for sh(1): each word is one word there. */
static void command_lines_are_quoted(void **state)
{
	static char *words[] = { "./a b", "", "it's", "$HOME", "-x", NULL };
	static struct lab lab = { .num_hosts = 2 };
	const struct cli_option *fault = lab_case_option("fault");
	char *text;

	assert_true(lab_set_option(&lab, fault->id, "drop h2>h1 rc.ack"));
	assert_true(lab_set_option(&lab, lab_case_option("loss")->id, "1%"));
	assert_true(lab_set_option(&lab, lab_case_option("allow-miss")->id, NULL));
	lab.programs[0].argv = words;
	text = command_of(&lab);
	assert_string_equal(text, "xroce lab --fault 'drop h2>h1 rc.ack' --loss 1% --allow-miss -- "
				  "'./a b' '' 'it'\\''s' '$HOME' -x");
	free(text);
	free(lab.texts[1]);
}

/* ---- records ---- */

static bool parse_record(const char *text, struct lab *lab)
{
	const size_t len = strlen(text);
	char *copy = malloc(len ? len : 1);
	bool good;

	assert_non_null(copy);
	memcpy(copy, text, len);
	assert_true(lab_begin(lab));
	good = lab_record_parse(copy, len, lab, &error);
	free(copy);
	return good;
}

static char *record_of(const struct lab *lab)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	if (!lab_record_write(lab, out))
		fputs("(refused)", out);
	fclose(out);
	return text;
}

/* A run from a record is the run that was recorded. */
static void records_have_all_that_decides(void **state)
{
	static char *words[] = { "./a b", "", "it's \"\\", "two\nlines\t", NULL };
	/* each parsed once: their words are kept until the process exits */
	static struct lab lab, again, third, odd;
	const char *const set[][2] = {
		{ "fault", "drop h2>h1 rc.ack" },
		{ "loss", "1%" },
		{ "fault", "swap nth=2" },
		{ "seed", "3" },
		{ "seed", "7" },
		{ "at", "1s kill h2" },
		{ "h2", "echo \"$LAB_IP1\"" },
		{ "wait", "0.5" },
		{ "deadline", "5" },
		{ "allow-miss", NULL },
		{ "hosts", "3" },
		{ "mtu", "4200" },
		{ "rate", "1gbit" },
		{ "delay", "2ms" },
		{ "plain", NULL },
	};
	char *text, *commands[2];

	assert_true(lab_begin(&lab));
	for (u32 i = 0; i < ARRAY_SIZE(set); i++)
		assert_true(lab_set_option(&lab, lab_run_option(set[i][0])->id, (char *)set[i][1]));
	lab.programs[0].argv = words;
	text = record_of(&lab);
	if (!parse_record(text, &again))
		fail_msg("%u:%u: %s in %s", error.line, error.column, error.why, text);
	assert_int_equal(again.seed, 7);
	assert_int_equal(again.num_hosts, 3);
	assert_int_equal(again.num_actions, 1);
	assert_int_equal(again.num_texts, 3);
	assert_true(again.may_miss && again.is_plain);
	assert_int_equal(again.timeout_ns, lab.timeout_ns);
	assert_int_equal(again.wait_ns, lab.wait_ns);
	assert_int_equal(again.bits_per_second, lab.bits_per_second);
	for (u32 i = 0; words[i]; i++)
		assert_string_equal(again.programs[0].argv[i], words[i]);
	assert_null(again.programs[0].argv[4]);
	assert_string_equal(again.programs[1].shell, set[6][1]);
	free(text);
	/* and so is the record of that */
	commands[0] = record_of(&again);
	assert_true(parse_record(commands[0], &third));
	commands[1] = record_of(&third);
	assert_string_equal(commands[0], commands[1]);
	free(commands[0]);
	free(commands[1]);
	assert_true(lab_begin(&odd));
	words[0] = "\033[2J";
	odd.programs[0].argv = words;
	text = record_of(&odd);
	assert_non_null(strstr(text, "(refused)"));
	free(text);
}

static void wrong_records_name_the_word(void **state)
{
	static const struct {
		const char *text, *word;
	} wrong[] = {
		{ "", "[[run]]" },
		{ "[[case]]", "'case'" },
		{ "[[run]]\n[[run]]", "one table" },
		{ "[[run]]\ncases = 'wire'", "'cases'" },
		{ "[[run]]\nreport = 'a'", "'report'" },
		{ "[[run]]\ncapture = 'a'", "'capture'" },
		{ "[[run]]\nlose = '1%'", "'lose'" },
		{ "[[run]]\nseed = 'x'", "'x'" },
		{ "[[run]]\nseed = ['1']", "'1'" },
		{ "[[run]]\ncommand = 'a'", "'a'" },
	};
	static struct lab labs[ARRAY_SIZE(wrong)];

	for (u32 i = 0; i < ARRAY_SIZE(wrong); i++)
		if (parse_record(wrong[i].text, &labs[i]) || !strstr(error.why, wrong[i].word))
			fail_msg("'%s': %u:%u: %s", wrong[i].text, error.line, error.column,
				 error.why);
}

/* Each file of the library is one, with a description of each case. */
static void the_library_is_whole(void **state)
{
	static const char *const names[] = { "wire", "connect", "host", "endpoint" };
	u32 num = 0;

	for (u32 i = 0; i < ARRAY_SIZE(names); i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), XROCE_GOLDEN_DIR "/../../share/lab/%s.toml", names[i]);
		lab_cases_free(&cases);
		assert_int_equal(lab_cases_load(path, "", &cases), EXIT_OK);
		for (u32 k = 0; k < cases.num; k++)
			assert_non_null(cases.list[k].description);
		num += cases.num;
		lab_cases_free(&cases);
	}
	assert_in_range(num, 80, 500);
}

/* The library fails each call that a rule can name. */
static void each_call_has_a_case(void **state)
{
	static const char *const calls[] = {
#define X(name) #name,
		LAB_CALLS(X)
#undef X
	};
	const char *path = XROCE_GOLDEN_DIR "/../../share/lab/endpoint.toml";

	assert_int_equal(lab_cases_load(path, "", &cases), EXIT_OK);
	for (u32 i = 0; i < ARRAY_SIZE(calls); i++) {
		char rule[LAB_RULE_TEXT];
		bool found = false;

		snprintf(rule, sizeof(rule), "fail %s ENOMEM nth=1", calls[i]);
		for (u32 k = 0; k < cases.num; k++)
			for (u32 s = 0; s < cases.list[k].num_settings; s++)
				found |= cases.list[k].settings[s].value &&
					 !strcmp(cases.list[k].settings[s].value, rule);
		if (!found)
			fail_msg("no case has '%s'", rule);
	}
	lab_cases_free(&cases);
}

static int clean(void **state)
{
	lab_cases_free(&cases);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cases_have_what_they_say),
		cmocka_unit_test(strings_are_decoded),
		cmocka_unit_test(wrong_files_name_the_word),
		cmocka_unit_test(actions_have_what_they_say),
		cmocka_unit_test(wrong_actions_name_the_word),
		cmocka_unit_test(long_files_are_refused),
		cmocka_unit_test(results_follow_from_the_end),
		cmocka_unit_test(command_lines_are_quoted),
		cmocka_unit_test(records_have_all_that_decides),
		cmocka_unit_test(wrong_records_name_the_word),
		cmocka_unit_test(the_library_is_whole),
		cmocka_unit_test(each_call_has_a_case),
	};

	return cmocka_run_group_tests(tests, NULL, clean);
}
