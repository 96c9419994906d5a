/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "../../os/clock.h"
#include "../json.h"
#include "../table.h"
#include "lab_each.h"

static const char *const results[] = {
	[LAB_NOT_RUN] = "not run",
	[LAB_SURVIVED] = "survived",
	[LAB_FAILED] = "failed",
	[LAB_NOT_REACHED] = "not reached",
};

static double seconds_of(const struct lab_case *c)
{
	return (double)c->time_ns / NSEC_PER_SEC;
}

static u32 count(const struct lab_cases *cases, enum lab_result result)
{
	u32 n = 0;

	for (u32 i = 0; i < cases->num; i++)
		n += cases->list[i].result == result;
	return n;
}

static double all_seconds(const struct lab_cases *cases)
{
	double sum = 0;

	for (u32 i = 0; i < cases->num; i++)
		sum += seconds_of(&cases->list[i]);
	return sum;
}

int lab_results_status(const struct lab_cases *cases)
{
	int status = count(cases, LAB_SURVIVED) ? EXIT_OK : EXIT_FAILED;

	for (u32 i = 0; i < cases->num; i++) {
		const struct lab_case *c = &cases->list[i];
		const int own = c->status ? c->status : EXIT_FAILED;

		if ((c->result == LAB_FAILED || c->result == LAB_NOT_RUN) && own > status)
			status = own;
	}
	return status;
}

/* ---- text ---- */

void lab_results_say(const struct lab_cases *cases, u32 i, FILE *out)
{
	const struct lab_case *c = &cases->list[i];

	fprintf(out, "%3u of %u  %-*s  %s%s%s", i + 1, cases->num, LAB_CASE_NAME / 2, c->name,
		c->result == LAB_FAILED ? "FAILED" : results[c->result], c->why[0] ? ": " : "",
		c->why);
	if (c->result == LAB_SURVIVED)
		fprintf(out, ", hit %u", c->hits);
	fprintf(out, "  (%.1f s)\n", seconds_of(c));
}

void lab_results_print(const struct lab_cases *cases, FILE *out)
{
	static const struct column columns[] = {
		COLUMN_TEXT("case", "NOT SURVIVED"),
		COLUMN_TEXT("why", "WHY"),
		COLUMN("hits", "HITS"),
		COLUMN("seconds", "SECONDS"),
		COLUMN_TEXT("description", "DESCRIPTION"),
	};
	struct table t;

	fprintf(out, "\n%u cases: %u survived, %u failed, %u not reached", cases->num,
		count(cases, LAB_SURVIVED), count(cases, LAB_FAILED),
		count(cases, LAB_NOT_REACHED));
	if (count(cases, LAB_NOT_RUN))
		fprintf(out, ", %u not run", count(cases, LAB_NOT_RUN));
	fprintf(out, ", in %.1f s\n", all_seconds(cases));
	if (!count(cases, LAB_SURVIVED) && !count(cases, LAB_FAILED))
		fprintf(out, "Nothing was tested: the rules of the cases select no packet of the "
			     "programs.\n");
	if (!count(cases, LAB_FAILED))
		return;
	table_begin(&t, columns, ARRAY_SIZE(columns));
	for (u32 i = 0; i < cases->num; i++) {
		const struct lab_case *c = &cases->list[i];

		if (c->result != LAB_FAILED)
			continue;
		table_text(&t, "%s", c->name);
		table_text(&t, "%s", c->why);
		table_number(&t, c->hits);
		table_real(&t, seconds_of(c));
		table_text(&t, "%s", c->description ? c->description : "");
	}
	fputc('\n', out);
	table_print(&t, out, 0, false);
	table_end(&t);
	fprintf(out, "\nTo run each of them again:\n");
	for (u32 i = 0; i < cases->num; i++)
		if (cases->list[i].result == LAB_FAILED && cases->list[i].replay)
			fprintf(out, "%s\n", cases->list[i].replay);
}

/* ---- JSON ---- */

void lab_results_json(const struct lab_cases *cases, FILE *out)
{
	struct json j;

	json_begin(&j, out);
	json_open_object(&j, NULL);
	json_text(&j, "file", cases->name);
	json_signed(&j, "status", lab_results_status(cases));
	json_number(&j, "survived", count(cases, LAB_SURVIVED));
	json_number(&j, "failed", count(cases, LAB_FAILED));
	json_number(&j, "not_reached", count(cases, LAB_NOT_REACHED));
	json_number(&j, "not_run", count(cases, LAB_NOT_RUN));
	json_open_array(&j, "cases");
	for (u32 i = 0; i < cases->num; i++) {
		const struct lab_case *c = &cases->list[i];

		json_open_object(&j, NULL);
		json_text(&j, "name", c->name);
		json_text(&j, "description", c->description ? c->description : "");
		json_text(&j, "result", results[c->result]);
		json_text(&j, "why", c->why);
		json_signed(&j, "status", c->status);
		json_number(&j, "hits", c->hits);
		json_real(&j, "seconds", seconds_of(c), 3);
		json_text(&j, "replay", c->replay ? c->replay : "");
		json_close(&j);
	}
	json_close(&j);
	json_close(&j);
	json_end(&j);
}

/* ---- JUnit ---- */

/* Prints text for XML; bytes that XML 1.0 forbids, and those beyond ASCII, become '?'. */
static void put_xml(const char *text, FILE *out)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		case '\n':
		case '\t':
			fputc(*text, out);
			break;
		default:
			fputc(*text >= ' ' && *text < 0x7f ? *text : '?', out);
		}
	}
}

static void put_case(const struct lab_cases *cases, const struct lab_case *c, FILE *out)
{
	fprintf(out, "    <testcase classname=\"xroce.lab.");
	put_xml(cases->name, out);
	fprintf(out, "\" name=\"%s\" time=\"%.3f\">\n", c->name, seconds_of(c));
	if (c->result == LAB_FAILED) {
		fputs("      <failure message=\"", out);
		put_xml(c->why, out);
		fputs("\">", out);
		put_xml(c->replay ? c->replay : "", out);
		fputs("</failure>\n", out);
	} else if (c->result != LAB_SURVIVED) {
		fputs("      <skipped message=\"", out);
		put_xml(c->why[0] ? c->why : results[c->result], out);
		fputs("\"/>\n", out);
	}
	if (c->output) {
		fputs("      <system-out>", out);
		put_xml(c->output, out);
		fputs("</system-out>\n", out);
	}
	fputs("    </testcase>\n", out);
}

void lab_results_junit(const struct lab_cases *cases, FILE *out)
{
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"xroce "
	      "lab ",
	      out);
	put_xml(cases->name, out);
	fprintf(out, "\" tests=\"%u\" failures=\"%u\" errors=\"0\" skipped=\"%u\" time=\"%.3f\">\n",
		cases->num, count(cases, LAB_FAILED),
		count(cases, LAB_NOT_REACHED) + count(cases, LAB_NOT_RUN), all_seconds(cases));
	for (u32 i = 0; i < cases->num; i++)
		put_case(cases, &cases->list[i], out);
	fputs("  </testsuite>\n</testsuites>\n", out);
}
