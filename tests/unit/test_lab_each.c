/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* Runs by cases and their reports, with a lab that has neither namespaces nor a cable. */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/tools/lab/lab_capture.h"
#include "../../user/tools/lab/lab_each.h"
#include "../../user/tools/lab/lab_space.h"

const struct command command_lab = { .name = "lab", .help = "", .options = lab_options };
static char dir[] = "/tmp/xroce-test-lab.XXXXXX", text[1 << 20];

/* For user/tools/cli.c. */
int netdev_find(const char *name, struct netdev *dev)
{
	return -ENODEV;
}

int lab_failed(const char *what, int err)
{
	return EXIT_FAILED;
}

int lab_exit_status(int status)
{
	return WEXITSTATUS(status);
}

const int lab_signals[LAB_SIGNALS] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };

/* ---- the lab: a process that prints, and the status of the rules' words ---- */

static bool interrupted, never_begins;
static u32 runs;

bool lab_space_interrupted(void)
{
	return interrupted;
}

int lab_space_run(struct lab *lab)
{
	const struct lab_wire *w = &lab->cable->wire;
	const pid_t pid = fork();
	int status = 0;

	runs++;
	assert_false(lab->is_alone);
	if (!pid) {
		for (u32 i = 0; w->num_rules && i < 4000; i++)
			dprintf(i & 1 ? 1 : 2, "line %u of <h1> & \"h2\"\n", i);
		dprintf(1, "\033[2Jthe end\n");
		if (lab->capture_fd >= 0)
			dprintf(lab->capture_fd, "frames");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (never_begins)
		return EXIT_FAILED;
	lab->shown->began = true;
	for (u32 i = 0; i < w->num_rules; i++) {
		struct lab_rule *r = &lab->cable->wire.rules[i];

		r->hits = strstr(r->text, "cm.") ? 0 : 2;
		if (strstr(r->text, "rc.atomic"))
			status = 3;
		if (strstr(r->text, "rc.read"))
			status = LAB_TIMEOUT;
		interrupted |= strstr(r->text, "rc.rnr") != NULL;
	}
	return status;
}

/* ---- the runs ---- */

static const char *in_dir(const char *name)
{
	static char path[4][PATH_MAX];
	static u32 n;
	char *at = path[n++ % 4];

	snprintf(at, PATH_MAX, "%s/%s", dir, name);
	return at;
}

static const char *contents(const char *name)
{
	const int fd = open(in_dir(name), O_RDONLY);
	const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	assert_true(n >= 0);
	text[n] = 0;
	close(fd);
	return text;
}

static u32 count(const char *name, const char *word)
{
	u32 n = 0;

	for (const char *at = contents(name); (at = strstr(at, word)); at++)
		n++;
	return n;
}

static void write_cases(const char *words)
{
	FILE *out = fopen(in_dir("cases.toml"), "w");

	assert_non_null(out);
	fputs(words, out);
	fclose(out);
}

/* Runs the cases of the file. Returns the exit status; its output is in "out" and "err". */
static int each(const char *one_case, bool with_program)
{
	static struct lab lab;
	char path[4][PATH_MAX];
	int kept[2], ret;

	assert_true(lab_begin(&lab));
	for (u32 i = 0; i < 4; i++)
		strcpy(path[i],
		       in_dir((const char *[]){ "cases.toml", "junit", "json", "capture" }[i]));
	lab.cases = path[0];
	lab.junit = path[1];
	lab.json = path[2];
	lab.capture = path[3];
	lab.is_each = !one_case;
	lab.one_case = one_case;
	if (with_program)
		assert_true(lab_set_option(&lab, lab_run_option("h1")->id, "./a 'b'"));
	runs = 0;
	interrupted = false;
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		const int fd = open(in_dir(i ? "err" : "out"), O_WRONLY | O_CREAT | O_TRUNC, 0600);

		kept[i] = dup(i + 1);
		assert_int_equal(dup2(fd, i + 1), i + 1);
		close(fd);
	}
	ret = lab_each(&lab);
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		dup2(kept[i], i + 1);
		close(kept[i]);
	}
	return ret;
}

#define GOOD	"[[case]]\nname = 'good'\nfault = 'drop rc.send'\n"
#define FAILING "[[case]]\nname = 'failing'\ndescription = 'it <fails>'\nfault = 'drop rc.atomic'\n"
#define LATE	"[[case]]\nname = 'late'\nfault = 'drop rc.read'\ndeadline = 5\n"
#define MISSED	"[[case]]\nname = 'missed'\nfault = 'drop cm.req'\n"
#define MAY	"[[case]]\nname = 'may'\nfault = 'drop cm.req'\nallow-miss = true\n"

static void results_are_reported(void **state)
{
	write_cases(GOOD FAILING LATE MISSED MAY);
	assert_int_equal(each(NULL, true), LAB_TIMEOUT);
	/* one without a case */
	assert_int_equal(runs, 6);
	assert_int_equal(count("out", "1 of 5  good                      survived, hit 2  ("), 1);
	assert_int_equal(count("out", "FAILED: status 3  ("), 1);
	assert_int_equal(count("out", "FAILED: did not end before the deadline  ("), 1);
	assert_int_equal(count("out", "FAILED: a rule never hit  ("), 1);
	assert_int_equal(count("out", "not reached: "), 1);
	assert_int_equal(count("out", "\n5 cases: 1 survived, 3 failed, 1 not reached, in "), 1);
	/* of each failed case the last lines of its output, without escape sequences */
	assert_int_equal(count("out", "    | ?[2Jthe end\n"), 3);
	assert_in_range(count("out", "    | line "), 100, 1000);
	assert_int_equal(count("out", "\n    | xroce lab: hit 2 of 0: drop rc.atomic\n"), 1);
	assert_int_equal(count("out", "\nxroce lab --h1 './a '\\''b'\\''' --fault 'drop rc.atomic' "
				      "--deadline 60\n"),
			 1);
	assert_int_equal(count("out", "--fault 'drop rc.read' --deadline 5\n"), 1);
	assert_int_equal(count("err", "xroce lab"), 0);
}

static void junit_is_xml(void **state)
{
	write_cases(GOOD FAILING MAY);
	assert_int_equal(each(NULL, true), 3);
	assert_int_equal(count("junit", "tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""),
			 1);
	assert_int_equal(count("junit", "<testcase classname=\"xroce.lab.cases\" name=\"good\""),
			 1);
	assert_int_equal(count("junit", "<failure message=\"status 3\">xroce lab --h1 './a "), 1);
	assert_int_equal(count("junit", "<skipped message=\"nothing that it selects\"/>"), 1);
	assert_in_range(count("junit", "of &lt;h1&gt; &amp; &quot;h2&quot;\n"), 1000, 10000);
	assert_int_equal(count("junit", "?[2Jthe end\n"), 1);
	assert_int_equal(count("junit", "<"), count("junit", ">"));
	assert_int_equal(count("junit", "<h1>"), 0);
	assert_int_equal(count("junit", "</testsuites>\n"), 1);
}

static void json_has_all_cases(void **state)
{
	write_cases(GOOD FAILING MAY);
	assert_int_equal(each(NULL, true), 3);
	assert_int_equal(count("json", "\"result\""), 3);
	assert_int_equal(count("json", "it <fails>"), 1);
	assert_int_equal(count("json", "\"not_reached\": 1") + count("json", "\"not_reached\":1"),
			 1);
}

/* Captures of failed cases stay. */
static void captures_stay_after_failures(void **state)
{
	write_cases(GOOD FAILING);
	each(NULL, true);
	assert_string_equal(contents("capture.failing"), "frames");
	assert_int_equal(access(in_dir("capture.good"), F_OK), -1);
	unlink(in_dir("capture.failing"));
}

static void all_survived(void **state)
{
	write_cases(GOOD MAY);
	assert_int_equal(each(NULL, true), 0);
	assert_int_equal(count("out", "NOT SURVIVED"), 0);
	assert_int_equal(count("out", "To run each"), 0);
	/* nothing was shown */
	write_cases(MAY);
	assert_int_equal(each(NULL, true), 1);
	assert_int_equal(count("out", "\nNothing was tested: "), 1);
}

static void one_case_is_run(void **state)
{
	write_cases(GOOD FAILING);
	assert_int_equal(each("good", true), 0);
	assert_int_equal(runs, 2);
	assert_int_equal(each("other", true), 2);
	assert_int_equal(runs, 0);
	assert_int_equal(count("err", "no case 'other' in"), 1);
}

static void cases_are_listed(void **state)
{
	write_cases(GOOD FAILING);
	assert_int_equal(each(NULL, false), 0);
	assert_int_equal(runs, 0);
	assert_string_equal(contents("out"), "good                      \n"
					     "failing                   it <fails>\n");
}

/* The cases after a signal are not run, and reported as such. */
static void a_signal_ends_the_runs(void **state)
{
	write_cases(GOOD "[[case]]\nname = 'signal'\nfault = 'drop rc.rnr'\n" FAILING);
	assert_int_equal(each(NULL, true), 1);
	assert_int_equal(runs, 3);
	assert_int_equal(count("out", ", 1 not run, in "), 1);
	assert_int_equal(count("junit", "<skipped message=\"not run\"/>"), 1);
}

static void a_lab_that_fails_ends_the_runs(void **state)
{
	write_cases(GOOD);
	never_begins = true;
	assert_int_equal(each(NULL, true), 1);
	never_begins = false;
	assert_int_equal(runs, 1);
	assert_int_equal(count("out", "    | ?[2Jthe end\n"), 1);
}

/* All cases are checked before the first run. */
static void wrong_cases_run_nothing(void **state)
{
	write_cases(GOOD "[[case]]\nname = 'hosts'\nfault = 'drop h1>h3'\n");
	assert_int_equal(each(NULL, true), 2);
	assert_int_equal(runs, 0);
	assert_int_equal(count("err", "case hosts is refused"), 1);
	write_cases(GOOD "[[case]]\nname = 'hosts'\nfault = 'drop h1>h9'\n");
	assert_int_equal(each(NULL, true), 2);
	assert_int_equal(count("err", "cases.toml:6:9: 'h1>h9' in a rule"), 1);
}

/* ---- captures ---- */

static void captures_have_rules_as_comments(void **state)
{
	static struct lab_wire wire = { .num_rules = 3 };
	static const u8 frame[64] = { 2 };
	static const char comment[] =
		"xroce lab: h2>h1 rc.send.only qp 2 psn +7 round 3; drop rc; corrupt p=1%";
	struct lab_fate fate = { .rules = 5,
				 .id = { .order = 2, .step = 7, .kind = 4, .round = 3 } };
	struct lab_capture c;

	strcpy(wire.rules[0].text, "drop rc");
	strcpy(wire.rules[1].text, "mark");
	strcpy(wire.rules[2].text, "corrupt p=1%");
	lab_capture_begin(&c, open(in_dir("frames"), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
	assert_non_null(c.out.out);
	lab_capture_frame(&c, &wire, 2, 1, frame, sizeof(frame), &fate);
	fate.rules = 0;
	lab_capture_frame(&c, &wire, 1, 2, frame, sizeof(frame), &fate);
	lab_capture_frame(&c, &wire, 1, 2, frame, sizeof(frame), NULL);
	for (u32 i = 0; i < LAB_RULES; i++)
		memset(wire.rules[i].text, 'x', LAB_RULE_TEXT - 1);
	wire.num_rules = LAB_RULES;
	fate.rules = UINT64_MAX;
	lab_capture_frame(&c, &wire, 1, 2, frame, sizeof(frame), &fate);
	assert_int_equal(lab_capture_end(&c), 0);
	contents("frames");
	/* it is padded to a multiple of 4 bytes */
	assert_non_null(memmem(text, 1000, comment, sizeof(comment) - 1));
	/* a file that cannot be written, and none */
	lab_capture_begin(&c, open("/dev/full", O_WRONLY), 2);
	lab_capture_frame(&c, &wire, 1, 2, frame, sizeof(frame), NULL);
	assert_int_equal(lab_capture_end(&c), -ENOSPC);
	lab_capture_begin(&c, -1, 2);
	assert_null(c.out.out);
	assert_int_equal(lab_capture_end(&c), 0);
}

static int clean(void **state)
{
	static const char *const names[] = { "cases.toml",
					     "junit",
					     "json",
					     "out",
					     "err",
					     "frames",
					     "capture.failing",
					     "capture.late",
					     "capture.missed",
					     "capture.signal" };

	for (u32 i = 0; i < ARRAY_SIZE(names); i++)
		unlink(in_dir(names[i]));
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_are_reported),
		cmocka_unit_test(junit_is_xml),
		cmocka_unit_test(json_has_all_cases),
		cmocka_unit_test(captures_stay_after_failures),
		cmocka_unit_test(all_survived),
		cmocka_unit_test(one_case_is_run),
		cmocka_unit_test(cases_are_listed),
		cmocka_unit_test(a_signal_ends_the_runs),
		cmocka_unit_test(a_lab_that_fails_ends_the_runs),
		cmocka_unit_test(wrong_cases_run_nothing),
		cmocka_unit_test(captures_have_rules_as_comments),
	};

	if (!mkdtemp(dir))
		return 1;
	return cmocka_run_group_tests(tests, NULL, clean);
}
