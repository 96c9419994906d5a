/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "lab_options.h"

#define MTU_LEAST 1280
#define MTU_MOST  9216
#define MTU	  1500
#define SEED	  1
#define TIME_MOST (3600 * (u64)NSEC_PER_SEC)

enum {
	OPTION_HOSTS = CLI_LONG,
	OPTION_MTU,
	OPTION_SEED,
	OPTION_LOSS,
	OPTION_DELAY,
	OPTION_REORDER,
	OPTION_DUPLICATE,
	OPTION_CORRUPT,
	OPTION_MARK,
	OPTION_RATE,
	OPTION_AT,
	OPTION_SHARED,
	OPTION_PLAIN,
	OPTION_MISS,
	OPTION_REPORT,
	OPTION_WAIT,
	OPTION_DEADLINE,
	OPTION_CAPTURE,
	OPTION_RECORD,
	OPTION_REPLAY,
	OPTION_CASES,
	OPTION_CASE,
	OPTION_EACH,
	OPTION_JUNIT,
	OPTION_HOST
};

/* Prints a text and a mark where it is wrong. Returns EXIT_USAGE. */
static int say_error(const char *text, const struct lab_error *error)
{
	char shown[LAB_RULE_TEXT];

	snprintf(shown, sizeof(shown), "%s", text);
	output_clean(shown);
	fprintf(stderr, "xroce lab: %s\n           %*s^ %s\n", shown,
		(int)min_u32(error->at, LAB_RULE_TEXT - 1), "", error->why);
	return EXIT_USAGE;
}

/* Adds a rule, or prints where it is wrong. */
static int add_rule(struct lab *lab, const char *text)
{
	struct lab_wire *w = &lab->cable->wire;
	struct lab_error error;

	if (w->num_rules == LAB_RULES) {
		fprintf(stderr, "xroce lab: more than %d rules\n", LAB_RULES);
		return EXIT_USAGE;
	}
	if (lab_rule_parse(text, lab->num_hosts, &w->rules[w->num_rules], &error)) {
		output_clean(w->rules[w->num_rules++].text);
		return EXIT_OK;
	}
	return say_error(text, &error);
}

static int check_actions(struct lab *lab)
{
	struct lab_error error;

	for (u32 i = 0; i < lab->num_actions; i++)
		if (!lab_action_parse(lab->actions[i].text, lab->num_hosts, &lab->actions[i],
				      &error))
			return say_error(lab->actions[i].text, &error);
	return EXIT_OK;
}

/* Notes a rule with a share of the packets, as of tc-netem(8). */
static bool add_share(struct lab *lab, const char *verb, const char *share)
{
	u64 chance;

	if (!lab_chance_parse(share, strlen(share), &chance) || lab->num_texts == LAB_RULES)
		return false;
	return asprintf(&lab->texts[lab->num_texts++], "%s p=%s", verb, share) > 0;
}

static bool add_text(struct lab *lab, char *text)
{
	if (lab->num_texts == LAB_RULES)
		return false;
	lab->texts[lab->num_texts++] = text;
	return true;
}

/* Parses a rate of tc(8): 10gbit, 500mbit, 64kbit. */
static bool parse_rate(const char *text, u64 *bits)
{
	static const struct {
		const char *unit;
		double bits;
	} units[] = { { "gbit", 1e9 }, { "mbit", 1e6 }, { "kbit", 1e3 } };
	char *end;
	const double value = strtod(text, &end);

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(end, units[i].unit) && value * units[i].bits >= 1000 &&
		    value * units[i].bits <= 1e12) {
			*bits = (u64)(value * units[i].bits);
			return true;
		}
	return false;
}

static bool lab_set(struct lab *lab, int id, char *value)
{
	switch (id) {
	case OPTION_HOSTS:
		return cli_number32(value, 2, LAB_HOSTS, &lab->num_hosts);
	case 'f':
		return add_text(lab, value);
	case OPTION_DEADLINE:
		return cli_seconds(value, NSEC_PER_MSEC, TIME_MOST, &lab->timeout_ns);
	case OPTION_MTU:
		return cli_number32(value, MTU_LEAST, MTU_MOST, &lab->mtu);
	case OPTION_SEED:
		return cli_number(value, 0, UINT64_MAX, &lab->seed);
	case OPTION_LOSS:
		return add_share(lab, "drop", value);
	case OPTION_REORDER:
		return add_share(lab, "swap", value);
	case OPTION_DUPLICATE:
		return add_share(lab, "duplicate", value);
	case OPTION_CORRUPT:
		return add_share(lab, "corrupt", value);
	case OPTION_MARK:
		return add_share(lab, "mark", value);
	case OPTION_DELAY:
		return lab_time_parse(value, strlen(value), &lab->delay_ns);
	case OPTION_RATE:
		return parse_rate(value, &lab->bits_per_second);
	case OPTION_AT:
		if (lab->num_actions == LAB_ACTIONS)
			return false;
		lab->actions[lab->num_actions++].text = value;
		return true;
	case OPTION_WAIT:
		return cli_seconds(value, 0, TIME_MOST, &lab->wait_ns);
	case OPTION_REPORT:
		lab->json = value;
		return true;
	case OPTION_CAPTURE:
		lab->capture = value;
		return true;
	case OPTION_RECORD:
		lab->record = value;
		return true;
	case OPTION_REPLAY:
		lab->replay = value;
		return true;
	case OPTION_CASES:
		lab->cases = value;
		return true;
	case OPTION_CASE:
		lab->one_case = value;
		return true;
	case OPTION_EACH:
		lab->is_each = true;
		return true;
	case OPTION_JUNIT:
		lab->junit = value;
		return true;
	case OPTION_SHARED:
		lab->is_shared = true;
		return true;
	case OPTION_PLAIN:
		lab->is_plain = true;
		return true;
	case OPTION_MISS:
		lab->may_miss = true;
		return true;
	}
	lab->programs[id - OPTION_HOST].shell = value;
	return true;
}

bool lab_set_option(struct lab *lab, int id, char *value)
{
	if (!lab_set(lab, id, value) || lab->num_settings == LAB_SETTINGS)
		return false;
	lab->settings[lab->num_settings++] = (struct lab_setting){ id, value };
	return true;
}

int lab_option(void *lab, int id, char *value)
{
	return lab_set_option(lab, id, value) ? EXIT_OK : CLI_REFUSED;
}

#define WANTS_SHARE "a share of packets above 0 and up to 1, as 0.01 or 1%"
#define HOST_OPTION(n, text)                                                                       \
	{                                                                                          \
		OPTION_HOST + (n)-1, "h" #n, "COMMAND", text, NULL                                 \
	}

const struct cli_option lab_options[] = {
	{ OPTION_HOSTS, "hosts", "N", "make N hosts, 2 to 8; default 2", "2 to 8" },
	HOST_OPTION(1, "run COMMAND in host h1, by sh -c"),
	HOST_OPTION(2, "run COMMAND in host h2; so for --h3 to --h8"),
	HOST_OPTION(3, NULL),
	HOST_OPTION(4, NULL),
	HOST_OPTION(5, NULL),
	HOST_OPTION(6, NULL),
	HOST_OPTION(7, NULL),
	HOST_OPTION(8, NULL),
	{ 'f', "fault", "RULE", "do to packets what RULE says; can be repeated",
	  "at most 64 rules" },
	{ OPTION_LOSS, "loss", "P", "drop a share P of the packets, as 1%", WANTS_SHARE },
	{ OPTION_DUPLICATE, "duplicate", "P", "duplicate a share P", WANTS_SHARE },
	{ OPTION_REORDER, "reorder", "P", "swap a share P with the next packet", WANTS_SHARE },
	{ OPTION_CORRUPT, "corrupt", "P", "corrupt a share P", WANTS_SHARE },
	{ OPTION_MARK, "mark", "P", "mark a share P 'congestion experienced'", WANTS_SHARE },
	{ OPTION_DELAY, "delay", "T", "delay each frame by T, as 2ms", "a time, as 2ms" },
	{ OPTION_RATE, "rate", "R", "limit each link to R, as 1gbit",
	  "a rate, as 1gbit or 500mbit" },
	{ OPTION_SEED, "seed", "N", "choose other packets for shares; default 1", "a number" },
	{ OPTION_MTU, "mtu", "BYTES", "give links this MTU; default 1500", "1280 to 9216" },
	{ OPTION_AT, "at", "'T ACTION'",
	  "after T do ACTION: kill HOST, stop HOST T, link HOST T\n"
	  "(down for T), address HOST T (removed for T), mtu BYTES T\n"
	  "(drop longer packets for T), partition T",
	  "at most 32 actions" },
	{ OPTION_SHARED, "shared", NULL, "let programs share their interface by a broker", NULL },
	{ OPTION_PLAIN, "plain", NULL, "run programs without 'xroce run'", NULL },
	{ OPTION_WAIT, "wait", "S",
	  "wait up to S seconds for a host's program to listen before\n"
	  "the next host's starts; default 1",
	  "seconds" },
	{ OPTION_DEADLINE, "deadline", "S", "end after S seconds with status 124", "seconds" },
	{ OPTION_MISS, "allow-miss", NULL, "a rule that no packet matched is no failure", NULL },
	{ OPTION_CASES, "cases", "FILE",
	  "take cases from FILE, or from the library's file of that name:\n"
	  "wire, connect, host, endpoint. Without a program, list them",
	  NULL },
	{ OPTION_EACH, "each", NULL, "run the programs once for each case", NULL },
	{ OPTION_CASE, "case", "NAME", "run the case NAME alone", NULL },
	{ OPTION_JUNIT, "junit", "FILE", "write results of cases to FILE as JUnit's XML", NULL },
	{ OPTION_CAPTURE, "capture", "FILE",
	  "write the frames to FILE as pcapng, with the rules that hit a\n"
	  "packet as its comment; with --each to FILE.CASE, kept of\n"
	  "cases that fail",
	  NULL },
	{ OPTION_RECORD, "record", "FILE", "write all that decides to FILE, for --replay", NULL },
	{ OPTION_REPLAY, "replay", "FILE", "run what --record has written to FILE", NULL },
	{ OPTION_REPORT, "report", "FILE", "write the report to FILE as JSON as well", NULL },
	{ 0 }
};

int lab_capture_open(struct lab *lab, const char *path)
{
	if (lab->capture_fd >= 0)
		close(lab->capture_fd);
	/* its owner's alone, as it has the programs' data */
	lab->capture_fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	if (!path || lab->capture_fd >= 0)
		return EXIT_OK;
	fprintf(stderr, "xroce lab: cannot write '%s': %s\n", path, strerror(errno));
	return EXIT_FAILED;
}

int lab_take_command(struct lab *lab, int argc, char **argv)
{
	u32 n = 0;

	if (argc && lab->replay)
		return usage_error(&command_lab, "--replay has the command in its file");
	if (argc)
		lab->programs[0].argv = argv;
	if (lab->programs[0].shell && lab->programs[0].argv)
		return usage_error(&command_lab, "--h1 and a command are for the same host");
	for (u32 i = 0; i < LAB_HOSTS; i++)
		n += lab->programs[i].shell || lab->programs[i].argv;
	lab->is_alone = n == 1;
	if (lab->cases && (lab->record || lab->replay))
		return usage_error(&command_lab, "--record and --replay are for one run");
	if (!lab->cases && (lab->is_each || lab->one_case || lab->junit))
		return usage_error(&command_lab, "--each, --case and --junit need --cases");
	return n || lab->cases ? EXIT_OK : usage_error(&command_lab, "no command given");
}

/* Returns EXIT_OK or EXIT_USAGE after a message. */
static int check_hosts(const struct lab *lab)
{
	u32 most = 0;

	for (u32 i = 0; i < LAB_HOSTS; i++)
		if (lab->programs[i].shell || lab->programs[i].argv)
			most = i + 1;
	return most <= lab->num_hosts ? EXIT_OK :
					usage_error(&command_lab, "there is no host h%u", most);
}

int lab_check(struct lab *lab)
{
	int ret = EXIT_OK;

	memset(lab->cable, 0, sizeof(*lab->cable));
	memset(lab->shown, 0, sizeof(*lab->shown));
	lab->cable->wire.seed = lab->seed;
	for (u32 i = 0; !ret && i < lab->num_texts; i++)
		ret = add_rule(lab, lab->texts[i]);
	if (!ret)
		ret = check_actions(lab);
	return ret ? ret : check_hosts(lab);
}

/* ---- options of cases, and command lines of runs ---- */

/* Returns whether the option says how runs are made, not what one is. */
static bool is_of_cases(int id)
{
	return id == OPTION_CASES || id == OPTION_CASE || id == OPTION_EACH || id == OPTION_JUNIT ||
	       id == OPTION_REPORT || id == OPTION_RECORD || id == OPTION_REPLAY ||
	       id == OPTION_CAPTURE;
}

const struct cli_option *lab_run_option(const char *name)
{
	for (const struct cli_option *o = lab_options; o->id; o++)
		if (!strcmp(o->name, name))
			return is_of_cases(o->id) ? NULL : o;
	return NULL;
}

const struct cli_option *lab_option_by_id(int id)
{
	const struct cli_option *o = lab_options;

	while (o->id && o->id != id)
		o++;
	return o->id && !is_of_cases(id) ? o : NULL;
}

bool lab_option_is_list(int id)
{
	return id == 'f' || id == OPTION_AT;
}

bool lab_option_is_action(int id)
{
	return id == OPTION_AT;
}

const struct cli_option *lab_case_option(const char *name)
{
	static const int ids[] = {
		'f',	      OPTION_LOSS,  OPTION_DUPLICATE, OPTION_REORDER,  OPTION_CORRUPT,
		OPTION_MARK,  OPTION_DELAY, OPTION_RATE,      OPTION_SEED,     OPTION_MTU,
		OPTION_HOSTS, OPTION_AT,    OPTION_SHARED,    OPTION_DEADLINE, OPTION_MISS
	};

	for (const struct cli_option *o = lab_options; o->id; o++)
		for (u32 i = 0; !strcmp(o->name, name) && i < ARRAY_SIZE(ids); i++)
			if (ids[i] == o->id)
				return o;
	return NULL;
}

/* Prints a word, quoted for sh(1) if it needs that. */
static void print_word(const char *word, FILE *out)
{
	if (*word && word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789_-+=./,:%@")] == 0) {
		fprintf(out, " %s", word);
		return;
	}
	fputs(" '", out);
	for (; *word; word++)
		fputs(*word == '\'' ? "'\\''" : (char[]){ *word, 0 }, out);
	fputc('\'', out);
}

void lab_print_command(const struct lab *lab, FILE *out)
{
	fputs("xroce lab", out);
	for (u32 i = 0; i < lab->num_settings; i++) {
		const struct lab_setting *s = &lab->settings[i];
		const struct cli_option *o = lab_option_by_id(s->id);

		if (!o)
			continue;
		fprintf(out, " --%s", o->name);
		if (s->value)
			print_word(s->value, out);
	}
	if (lab->programs[0].argv)
		fputs(" --", out);
	for (char *const *word = lab->programs[0].argv; word && *word; word++)
		print_word(*word, out);
}

static void *shared_memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

bool lab_begin(struct lab *lab)
{
	*lab = (struct lab){
		.num_hosts = 2, .mtu = MTU, .wait_ns = NSEC_PER_SEC, .seed = SEED, .capture_fd = -1
	};
	lab->cable = shared_memory(sizeof(*lab->cable));
	lab->shown = shared_memory(sizeof(*lab->shown));
	if (!lab->cable || !lab->shown)
		return false;
	return true;
}
