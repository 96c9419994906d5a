/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* Metrics as text: families and samples in both formats, and labels of any bytes. */
#include <errno.h>

#include "unit.h"

#include "../../user/tools/export/text.h"

static void need_text(struct text *t, const char *want)
{
	char *got;

	assert_int_equal(text_end(t), 0);
	got = strndup(t->at ? t->at : "", t->len);
	assert_string_equal(got, want);
	free(got);
	free(t->at);
}

static void write_families(struct text *t)
{
	const struct text_label labels[] = { { "device", "eth0" }, { "pid", "7" } };

	text_family(t, TEXT_COUNTER, "a_tx", "bytes", "sent, \"all\" of \\ it");
	text_sample(t, labels, 2, ~0ull);
	text_sample(t, labels, 1, 0);
	text_family(t, TEXT_GAUGE, "a_up", NULL, "two\nlines");
	text_sample(t, NULL, 0, 1);
	text_family(t, TEXT_INFO, "a_build", NULL, "which");
	text_sample(t, labels, 1, 1);
	text_family(t, TEXT_GAUGE, "a_rtt", "seconds", "time");
	text_sample_real(t, labels, 1, 0.000125);
}

static void text__openmetrics(void **state)
{
	struct text t;

	text_begin(&t, TEXT_OPENMETRICS);
	write_families(&t);
	need_text(&t, "# HELP a_tx_bytes sent, \\\"all\\\" of \\\\ it\n"
		      "# TYPE a_tx_bytes counter\n"
		      "# UNIT a_tx_bytes bytes\n"
		      "a_tx_bytes_total{device=\"eth0\",pid=\"7\"} 18446744073709551615\n"
		      "a_tx_bytes_total{device=\"eth0\"} 0\n"
		      "# HELP a_up two\\nlines\n"
		      "# TYPE a_up gauge\n"
		      "a_up 1\n"
		      "# HELP a_build which\n"
		      "# TYPE a_build info\n"
		      "a_build_info{device=\"eth0\"} 1\n"
		      "# HELP a_rtt_seconds time\n"
		      "# TYPE a_rtt_seconds gauge\n"
		      "# UNIT a_rtt_seconds seconds\n"
		      "a_rtt_seconds{device=\"eth0\"} 0.000125\n"
		      "# EOF\n");
}

/* Families are named as their samples; there are no units, no info, and no end. */
static void text__prometheus(void **state)
{
	struct text t;

	text_begin(&t, TEXT_PROMETHEUS);
	write_families(&t);
	need_text(&t, "# HELP a_tx_bytes_total sent, \"all\" of \\\\ it\n"
		      "# TYPE a_tx_bytes_total counter\n"
		      "a_tx_bytes_total{device=\"eth0\",pid=\"7\"} 18446744073709551615\n"
		      "a_tx_bytes_total{device=\"eth0\"} 0\n"
		      "# HELP a_up two\\nlines\n"
		      "# TYPE a_up gauge\n"
		      "a_up 1\n"
		      "# HELP a_build_info which\n"
		      "# TYPE a_build_info gauge\n"
		      "a_build_info{device=\"eth0\"} 1\n"
		      "# HELP a_rtt_seconds time\n"
		      "# TYPE a_rtt_seconds gauge\n"
		      "a_rtt_seconds{device=\"eth0\"} 0.000125\n");
}

#define BAD "\xef\xbf\xbd" /* U+FFFD */

/* What a process may be called, what a label is of it, and how that is written. */
static const struct name {
	const char *name, *clean, *written;
} names[] = {
	{ "", "", "" },
	{ "plain", "plain", "plain" },
	{ "a\"b", "a\"b", "a\\\"b" },
	{ "a\\b\\", "a\\b\\", "a\\\\b\\\\" },
	{ "a\nb", "a\nb", "a\\nb" },
	{ "\"} 1\nevil 2", "\"} 1\nevil 2", "\\\"} 1\\nevil 2" },
	{ "a\tb\r\x01\x1b[2J\x7f", "a" BAD "b" BAD BAD BAD "[2J" BAD, NULL },
	{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", NULL },
	{ "\xc2\x80\xc2\x9f\xc2\xa0", BAD BAD "\xc2\xa0", NULL },		/* C1 controls */
	{ "\x80x\xff\xfe", BAD "x" BAD BAD, NULL },				/* no first byte */
	{ "\xc3", BAD, NULL }, { "\xe2\x82", BAD BAD, NULL },			/* cut off */
	{ "\xf0\x9f\x98", BAD BAD BAD, NULL },
	{ "\xc0\xaf\xc1\xbf", BAD BAD BAD BAD, NULL },				/* too long */
	{ "\xe0\x80\xaf", BAD BAD BAD, NULL }, { "\xf0\x80\x80\xaf", BAD BAD BAD BAD, NULL },
	{ "\xed\xa0\x80", BAD BAD BAD, NULL },					/* a surrogate */
	{ "\xf4\x90\x80\x80", BAD BAD BAD BAD, NULL },				/* U+110000 */
	{ "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf", NULL },
};

static void text_clean__any_bytes(void **state)
{
	char clean[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *copy = exact_copy(names[i].name, strlen(names[i].name) + 1);

		text_clean(clean, sizeof(clean), copy);
		assert_string_equal(clean, names[i].clean);
		free(copy);
		/* clean text stays unchanged */
		copy = strdup(clean);
		text_clean(clean, sizeof(clean), copy);
		assert_string_equal(clean, names[i].clean);
		free(copy);
	}
}

static void text_clean__cuts_whole_characters(void **state)
{
	char clean[8];

	memset(clean, 'x', sizeof(clean));
	text_clean(clean, 5, "ab\xe2\x82\xac");
	assert_string_equal(clean, "ab");
	assert_int_equal(clean[5], 'x');
	text_clean(clean, 6, "ab\xe2\x82\xac");
	assert_string_equal(clean, "ab\xe2\x82\xac");
	text_clean(clean, 3, "\xff");
	assert_string_equal(clean, "");
	text_clean(clean, 1, "abc");
	assert_string_equal(clean, "");
}

static void text_sample__escapes_any_bytes(void **state)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct text_label label = { "c", names[i].name };
		const char *written = names[i].written ? names[i].written : names[i].clean;
		char want[128];
		struct text t;

		text_begin(&t, TEXT_PROMETHEUS);
		strcpy(t.name, "m");
		text_sample(&t, &label, 1, 3);
		snprintf(want, sizeof(want), "m{c=\"%s\"} 3\n", written);
		need_text(&t, want);
	}
}

/* Far more than the first piece of memory. */
static void text_sample__many(void **state)
{
	struct text t;

	text_begin(&t, TEXT_OPENMETRICS);
	text_family(&t, TEXT_GAUGE, "m", NULL, "h");
	for (u32 i = 0; i < 100000; i++)
		text_sample(&t, NULL, 0, 12345);
	assert_int_equal(text_end(&t), 0);
	assert_int_equal(t.len, strlen("# HELP m h\n# TYPE m gauge\n# EOF\n") + 800000);
	assert_memory_equal(t.at + t.len - 14, "m 12345\n# EOF\n", 14);
	free(t.at);
}

/* ---- which format ---- */

enum { NONE = -1 };

static const struct accept {
	const char *header;
	int format;
} accepts[] = {
	{ NULL, TEXT_PROMETHEUS }, { "", TEXT_PROMETHEUS }, { " ", TEXT_PROMETHEUS },
	{ "*/*", TEXT_PROMETHEUS }, { "text/*", TEXT_PROMETHEUS },
	{ "text/plain", TEXT_PROMETHEUS }, { "TEXT/Plain; Version=0.0.4", TEXT_PROMETHEUS },
	{ "text/plain;version=0.0.3", NONE },
	{ "application/openmetrics-text", TEXT_OPENMETRICS },
	{ "application/openmetrics-text; version=1.0.0; charset=utf-8", TEXT_OPENMETRICS },
	{ "application/openmetrics-text;version=\"1.0.0\"", TEXT_OPENMETRICS },
	{ "application/openmetrics-text;version=2.0.0", NONE },
	{ "application/*", TEXT_OPENMETRICS },
	{ "application/openmetrics-text,*/*;q=0.1", TEXT_OPENMETRICS },
	/* of Prometheus 2.42 and 3 */
	{ "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
	  "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", TEXT_OPENMETRICS },
	{ "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding="
	  "delimited;q=0.7,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", TEXT_PROMETHEUS },
	{ "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
	  "text/plain;version=1.0.0;q=0.4,text/plain;version=0.0.4;q=0.3", TEXT_OPENMETRICS },
	{ "text/plain;q=0.9,application/openmetrics-text;q=0.8", TEXT_PROMETHEUS },
	{ "text/plain;q=0.5,application/openmetrics-text;q=0.5", TEXT_OPENMETRICS },
	{ "text/plain;q=0.500 , application/openmetrics-text;q=0.501", TEXT_OPENMETRICS },
	/* refused, and the narrower range decides */
	{ "text/plain;q=0", NONE }, { "*/*;q=0", NONE },
	{ "text/plain;q=0, */*", TEXT_OPENMETRICS },
	{ "application/openmetrics-text;q=0,*/*;q=0.2", TEXT_PROMETHEUS },
	{ "image/png", NONE }, { "text/html,application/xhtml+xml", NONE },
	{ "text/html,*/*;q=0.8", TEXT_PROMETHEUS },
	/* nonsense */
	{ ",", NONE }, { ";;;", NONE }, { "text/plain;q=", NONE }, { "text/plain;q=2", NONE },
	{ "text/plain;q=1.001", NONE }, { "text/plain;q=0.0001", NONE }, { "text/plain;q=x", NONE },
	{ "text/plain;q=-1", NONE }, { "text", NONE }, { "\"text/plain\"", NONE },
	{ "a;b=\"text/plain", NONE }, { "a;b=\"\\", NONE },
	{ "a;b=\",text/plain,\"", NONE }, { "a;b=\"\\\",\",text/plain", TEXT_PROMETHEUS },
};

static void text_accept__headers(void **state)
{
	for (size_t i = 0; i < sizeof(accepts) / sizeof(accepts[0]); i++) {
		const char *header = accepts[i].header;
		char *copy = header ? exact_copy(header, strlen(header) + 1) : NULL;
		enum text_format format;
		const int got = text_accept(copy, &format) ? (int)format : NONE;

		if (got != accepts[i].format)
			fail_msg("'%s': %d", header, got);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text__openmetrics),
		cmocka_unit_test(text__prometheus),
		cmocka_unit_test(text_clean__any_bytes),
		cmocka_unit_test(text_clean__cuts_whole_characters),
		cmocka_unit_test(text_sample__escapes_any_bytes),
		cmocka_unit_test(text_sample__many),
		cmocka_unit_test(text_accept__headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
