/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=1 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: the rules of `xroce lab`, and a frame that they change. Looks for reads and
 * writes after the ends of text and frame. An error is in the text; a rule that was taken is taken
 * again from the text that it keeps; a change keeps the frame's length. The same text is an
 * endpoint's list of rules, of which calls, completions and answers are asked.
 *
 * scripts/fuzz.sh BUILD lab SECONDS runs it. An input is a rule, a zero byte and a frame.
 */
#include <stdlib.h>
#include <string.h>

#include "../../user/fault/endpoint.h"
#include "../../user/tools/lab/lab_wire.h"
#include "fuzz.h"

#define HOSTS 3

static struct lab_wire wire;
static struct fault_table table;
static struct fault_results results;

/* A copy whose end is the end of its memory. */
static u8 *copy_of(const u8 *data, size_t len)
{
	u8 *copy = malloc(len ? len : 1);

	REQUIRE(copy);
	memcpy(copy, data, len);
	return copy;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const seeds[] = {
		"drop h1>h2 rc.ack nth=3",
		"delay 1.5ms rc.send.middle qp=0x12 psn=+1..+9 round=2 times=3",
		"corrupt icrc first last only middle p=1%",
		"duplicate xrc cm.req ud.send cnp qp=1 psn=16777215",
		"swap rc.nak.sequence rc.rnr p=0.125",
		"fail ibv_post_send ENOMEM nth=5 h2; fail ibv_reg_mr EIO p=0.01",
		"complete RETRY_EXC_ERR send qp=1 nth=1..3; late 2ms recv; hold read write",
		"rnr timer=12 rc.send.first round=1; nak remote-access psn=+2; credits=0 times=4",
		"event PORT_ERR ibv_poll_cq nth=2\ncnp p=10%; ecn rc.write last",
		"reject cm.req reason=8 h1 nth=2..3; reject cm.req p=50%",
	};

	if (!fuzz_seed_dir())
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++)
		fuzz_seed("lab", i, NULL, 0, seeds[i], strlen(seeds[i]) + 1);
	exit(0);
}

static bool parse(const char *text, struct lab_rule *rule)
{
	struct lab_error error = { 0 };
	const size_t len = strlen(text);

	if (lab_rule_parse(text, HOSTS, rule, &error))
		return true;
	REQUIRE(error.at <= len && error.why[0]);
	REQUIRE(error.at == len || error.len <= len - error.at);
	return false;
}

/* The text as rules of an endpoint: questions about QP 17, with the frame's bytes as numbers. */
static void ask_endpoint(const char *text, const u8 *data, size_t len)
{
	static struct qp qp = { .qpn = 17 };
	const struct engine_faults *faults;
	char wrong[LAB_RULE_TEXT];
	struct fault_request request;
	struct lab_error error = { 0 };
	enum lab_event event;

	memset(&results, 0, sizeof(results));
	if (!fault_parse(&table, text, 3, &results, &error, wrong)) {
		const size_t at = strlen(wrong);

		REQUIRE(at < sizeof(wrong) && error.at <= at && error.why[0]);
		return;
	}
	REQUIRE(table.num <= FAULT_RULES);
	fault_know_qp(&table, qp.qpn);
	faults = fault_engine(&table);
	for (size_t i = 0; i < len && i < 64; i++) {
		const struct packet p = { .opcode = data[i],
					  .flags = opcode_flags(data[i]),
					  .psn = (u32)i };
		const struct cqe cqe = { .opcode = data[i], .qpn = qp.qpn };

		fault_call(&table, data[i] % LAB_NUM_CALLS, &event);
		fault_reject(&table);
		if (!faults)
			continue;
		faults->request(faults->arg, &qp, &p, i & 1, &request);
		REQUIRE(request.answer <= FAULT_RECEIVE);
		faults->sent(faults->arg, &qp, data[i]);
		faults->delay_ns(faults->arg, &cqe);
		REQUIRE(faults->credits(faults->arg, &qp) >= -1);
	}
	for (u32 i = 0; i < table.num; i++)
		REQUIRE(results.result[i].hits <= results.result[i].matched &&
			memchr(results.rule[i], 0, LAB_RULE_TEXT));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	const u8 *zero = memchr(data, 0, size);
	const size_t text_len = zero ? (size_t)(zero - data) + 1 : 0;
	struct lab_rule again;
	struct lab_fate fate;
	u8 *frame;
	char *text;

	if (!zero || size - text_len > 4096)
		return 0;
	text = (char *)copy_of(data, text_len);
	frame = copy_of(data + text_len, size - text_len);
	wire.num_rules = parse(text, &wire.rules[0]);
	if (wire.num_rules) {
		REQUIRE(parse(wire.rules[0].text, &again));
		REQUIRE(!memcmp(&again, &wire.rules[0], sizeof(again)));
	}
	if (lab_wire_decide(&wire, 1, 2, frame, (u32)(size - text_len), &fate)) {
		fate.corrupt |= text[0] & 63;
		fate.mark |= text[0] & 1;
		lab_wire_change(frame, (u32)(size - text_len), &fate);
	}
	lab_wire_free(&wire);
	ask_endpoint(text, frame, size - text_len);
	wire.seed++;
	free(frame);
	free(text);
	return 0;
}
