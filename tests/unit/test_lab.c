/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* The rules of `xroce lab`, and what they do to frames: user/tools/lab. */
#include "unit.h"

#include "../../user/fault/endpoint.h"
#include "../../user/tools/lab/lab_wire.h"

#define HOSTS 3

static struct lab_wire wire;

static struct lab_rule rule_of(const char *text)
{
	struct lab_error error;
	struct lab_rule rule;

	if (!lab_rule_parse(text, HOSTS, &rule, &error))
		fail_msg("'%s' at %u: %s", text, error.at, error.why);
	return rule;
}

/* ---- grammar ---- */

static void rules_have_what_they_say(void **state)
{
	struct lab_rule r = rule_of("drop h2>h1 rc.ack nth=3");
	struct lab_kinds none = { { 0 } };

	assert_int_equal(r.verb, LAB_DROP);
	assert_int_equal(r.from, 2);
	assert_int_equal(r.to, 1);
	assert_int_equal(r.nth.from, 3);
	assert_int_equal(r.nth.to, 3);
	assert_true(lab_kinds_has(&r.kinds, OPCODE(XROCE_RC, OP5_ACKNOWLEDGE)));
	assert_false(lab_kinds_has(&r.kinds, OPCODE(XROCE_RC, OP5_ATOMIC_ACKNOWLEDGE)));
	r = rule_of("  delay\t1.5ms h1>h3 rc.send qp=0x12 round=2 times=4 p=25% ");
	assert_int_equal(r.verb, LAB_DELAY);
	assert_int_equal(r.delay_ns, 1500000);
	assert_int_equal(r.qpn, 0x12);
	assert_int_equal(r.order, 0);
	assert_int_equal(r.round.from, 2);
	assert_int_equal(r.times, 4);
	assert_int_equal(r.chance >> 62, 1);
	assert_true(lab_kinds_has(&r.kinds, OPCODE(XROCE_RC, OP5_SEND_ONLY_INV)));
	assert_false(lab_kinds_has(&r.kinds, OPCODE(XROCE_RC, OP5_WRITE_ONLY)));
	r = rule_of("corrupt icrc psn=+10..+20 middle last");
	assert_int_equal(r.part, LAB_ICRC);
	assert_true(r.any_kind && r.has_psn && r.is_step);
	assert_int_equal(r.psn_from, 10);
	assert_int_equal(r.psn_to, 20);
	assert_int_equal(r.times, 0);
	assert_memory_equal(&r.kinds, &none, sizeof(none));
	r = rule_of("corrupt qp=2 psn=7");
	assert_int_equal(r.part, LAB_PAYLOAD);
	assert_int_equal(r.order, 2);
	/* one packet, not its retransmissions */
	assert_int_equal(r.times, 1);
	assert_int_equal(rule_of("drop psn=7 round=1..3").times, 0);
	assert_int_equal(rule_of("mark p=1").chance >> 63, 1);
}

/* The error is at the word that is wrong. */
static void wrong_rules_name_the_word(void **state)
{
	static const struct {
		const char *text, *word; /* NULL: at the end */
	} wrong[] = {
		{ "", NULL },
		{ "   ", NULL },
		{ "lose", "lose" },
		{ "DROP", "DROP" },
		{ "drop,", "drop," },
		{ "delay", NULL },
		{ "delay 2", "2" },
		{ "delay 0ms", "0ms" },
		{ "delay -1ms", "-1ms" },
		{ "delay 61s", "61s" },
		{ "delay 1e1s", "1e1s" },
		{ "delay ms", "ms" },
		{ "delay 2 ms", "2" },
		{ "delay rc.ack", "rc.ack" },
		{ "drop rc.sned", "rc.sned" },
		{ "drop rc.", "rc." },
		{ "drop r", "r" },
		{ "drop .send", ".send" },
		{ "drop rc.send.firs", "rc.send.firs" },
		{ "drop RC.SEND", "RC.SEND" },
		{ "drop cm.hello", "cm.hello" },
		{ "drop uc.read", "uc.read" },
		{ "drop payload", "payload" },
		{ "corrupt aeth", "aeth" },
		{ "drop h1>h1", "h1>h1" },
		{ "drop h0>h1", "h0>h1" },
		{ "drop h1>h4", "h1>h4" },
		{ "drop h1>", "h1>" },
		{ "drop >h1", ">h1" },
		{ "drop h1>2", "h1>2" },
		{ "drop h1>h2>h3", "h1>h2>h3" },
		{ "drop h1->h2", "h1->h2" },
		{ "drop host1>h2", "host1>h2" },
		{ "drop h4294967297>h2", "h4294967297>h2" },
		{ "drop nth", "nth" },
		{ "drop nth=", "nth=" },
		{ "drop nth=0", "nth=0" },
		{ "drop nth=x", "nth=x" },
		{ "drop nth=3..", "nth=3.." },
		{ "drop nth=5..3", "nth=5..3" },
		{ "drop nth=1,2", "nth=1,2" },
		{ "drop nth=4294967296", "nth=4294967296" },
		{ "drop nth=-1", "nth=-1" },
		{ "drop round=0", "round=0" },
		{ "drop psn=", "psn=" },
		{ "drop psn=+", "psn=+" },
		{ "drop psn=16777216", "psn=16777216" },
		{ "drop psn=-1", "psn=-1" },
		{ "drop qp=0", "qp=0" },
		{ "drop qp=0x", "qp=0x" },
		{ "drop qp=0x1000000", "qp=0x1000000" },
		{ "drop qp=a", "qp=a" },
		{ "drop p=0", "p=0" },
		{ "drop p=1.1", "p=1.1" },
		{ "drop p=101%", "p=101%" },
		{ "drop p=%", "p=%" },
		{ "drop p=0.1.2", "p=0.1.2" },
		{ "drop p=nan", "p=nan" },
		{ "drop p=-0.1", "p=-0.1" },
		{ "drop p=0x1p-3", "p=0x1p-3" },
		{ "drop times=0", "times=0" },
		{ "drop times=1..2", "times=1..2" },
		{ "drop nht=1", "nht" },
		{ "drop =1", "" },
		{ "drop 3", "3" },
		{ "drop rc.ack drop", "drop" },
		{ "drop rc.ack \xff", "\xff" },
		{ "drop a b c d e f g h i j k l m n o p", "p" },
	};

	for (u32 i = 0; i < ARRAY_SIZE(wrong); i++) {
		const char *text = wrong[i].text, *word = wrong[i].word;
		struct lab_error error = { 0 };
		struct lab_rule rule;

		if (lab_rule_parse(text, HOSTS, &rule, &error))
			fail_msg("'%s' is taken for a rule", text);
		assert_true(strlen(error.why) > 10);
		if (!word) {
			assert_int_equal(error.at, strlen(text));
			continue;
		}
		if (error.len != strlen(word) || strncmp(text + error.at, word, error.len))
			fail_msg("'%s': at %u, %u bytes: %s", text, error.at, error.len, error.why);
	}
}

/* The same of rules of an endpoint. A word that is there twice is meant at its last place. */
static void wrong_rules_of_endpoints_name_the_word(void **state)
{
	static const struct {
		const char *text, *word; /* NULL: at the end */
	} wrong[] = {
		{ "faill x", "faill" },
		{ "Fail x", "Fail" },
		{ "fails x", "fails" },
		{ "completes x", "completes" },
		{ "complet x", "complet" },
		{ "lates x", "lates" },
		{ "holdd x", "holdd" },
		{ "events x", "events" },
		{ "rnrs x", "rnrs" },
		{ "RNR x", "RNR" },
		{ "naks x", "naks" },
		{ "NAK x", "NAK" },
		{ "credit x", "credit" },
		{ "credits:0 x", "credits:0" },
		{ "cnps x", "cnps" },
		{ "ecns x", "ecns" },
		{ "refuse x", "refuse" },
		{ "fail, x", "fail," },
		{ "nack x", "nack" },
		{ "kill x", "kill" },
		{ "fail", NULL },
		{ "fail ENOMEM", "ENOMEM" },
		{ "fail post_send ENOMEM", "post_send" },
		{ "fail ibv_post_sent ENOMEM", "ibv_post_sent" },
		{ "fail ibv_post_send", NULL },
		{ "fail ibv_post_send ENOMM", "ENOMM" },
		{ "fail ibv_post_send enomem", "enomem" },
		{ "fail ibv_post_send 12", "12" },
		{ "fail ibv_post_send nth=1", "nth=1" },
		{ "fail IBV_POST_SEND ENOMEM", "IBV_POST_SEND" },
		{ "fail rdma_create_qp ENOMEM", "rdma_create_qp" },
		{ "fail ibv_reg_mr ENOMEM ENOMEM", "ENOMEM" },
		{ "fail ibv_reg_mr ENOMEM ibv_reg_mr", "ibv_reg_mr" },
		{ "fail ibv_reg_mr ENOMEM send", "send" },
		{ "fail ibv_reg_mr ENOMEM rc.send", "rc.send" },
		{ "fail ibv_reg_mr ENOMEM qp=1", "qp" },
		{ "fail ibv_reg_mr ENOMEM psn=1", "psn" },
		{ "fail ibv_reg_mr ENOMEM round=1", "round" },
		{ "fail ibv_reg_mr ENOMEM h1>h2", "h1>h2" },
		{ "fail ibv_reg_mr ENOMEM h0", "h0" },
		{ "fail ibv_reg_mr ENOMEM h4", "h4" },
		{ "fail ibv_reg_mr ENOMEM h", "h" },
		{ "fail ibv_reg_mr ENOMEM h1h2", "h1h2" },
		{ "fail ibv_reg_mr ENOMEM nth=0", "nth=0" },
		{ "fail ibv_reg_mr ENOMEM p=2", "p=2" },
		{ "fail ibv_reg_mr ENOMEM times=0", "times=0" },
		{ "fail ibv_reg_mr ENOMEM timer=1", "timer" },
		{ "fail ibv_reg_mr ENOMEM last", "last" },
		{ "fail ibv_reg_mr SUCCESS", "SUCCESS" },
		{ "fail ibv_get_device_name ENOMEM", "ibv_get_device_name" },
		{ "fail ibv_ack_cq_events EIO", "ibv_ack_cq_events" },
		{ "complete", NULL },
		{ "complete send", "send" },
		{ "complete SUCCESS", "SUCCESS" },
		{ "complete RETRY_EXC", "RETRY_EXC" },
		{ "complete IBV_WC_RETRY_EXC_ERR send", "IBV_WC_RETRY_EXC_ERR" },
		{ "complete retry_exc_err send", "retry_exc_err" },
		{ "complete 12 send", "12" },
		{ "complete ENOMEM send", "ENOMEM" },
		{ "complete FATAL_ERR sends", "sends" },
		{ "complete FATAL_ERR rc.send", "rc.send" },
		{ "complete FATAL_ERR SEND", "SEND" },
		{ "complete FATAL_ERR receive", "receive" },
		{ "complete FATAL_ERR recvs", "recvs" },
		{ "complete FATAL_ERR first", "first" },
		{ "complete FATAL_ERR h1>h2", "h1>h2" },
		{ "complete FATAL_ERR ibv_post_send", "ibv_post_send" },
		{ "complete FATAL_ERR rdma_read", "rdma_read" },
		{ "complete FATAL_ERR send psn=1", "psn" },
		{ "complete FATAL_ERR send round=2", "round" },
		{ "complete FATAL_ERR send timer=3", "timer" },
		{ "complete FATAL_ERR send after=1", "after" },
		{ "complete FATAL_ERR send rate=1k", "rate" },
		{ "complete FATAL_ERR recv qp=0", "qp=0" },
		{ "complete FATAL_ERR recv qp=x", "qp=x" },
		{ "complete FATAL_ERR recv nth=5..4", "nth=5..4" },
		{ "complete FATAL_ERR recv p=0", "p=0" },
		{ "complete FATAL_ERR recv times=x", "times=x" },
		{ "complete FATAL_ERR recv nth=1.5", "nth=1.5" },
		{ "late", NULL },
		{ "late send", "send" },
		{ "late 2", "2" },
		{ "late 61s send", "61s" },
		{ "late 0us", "0us" },
		{ "late 2ms 2ms", "2ms" },
		{ "late 2ms rc.ack", "rc.ack" },
		{ "late 1m send", "1m" },
		{ "late -2ms", "-2ms" },
		{ "late 2ms psn=+1", "psn" },
		{ "late 2ms h1>h2", "h1>h2" },
		{ "late 2ms RETRY_EXC_ERR", "RETRY_EXC_ERR" },
		{ "hold 2ms", "2ms" },
		{ "hold rc.send", "rc.send" },
		{ "hold psn=1", "psn" },
		{ "hold send recv rcv", "rcv" },
		{ "hold timer=1", "timer" },
		{ "hold h5", "h5" },
		{ "event", NULL },
		{ "event PORT_DOWN", "PORT_DOWN" },
		{ "event port_err", "port_err" },
		{ "event IBV_EVENT_PORT_ERR", "IBV_EVENT_PORT_ERR" },
		{ "event QP_FATAL", "QP_FATAL" },
		{ "event PORT_ERR post_send", "post_send" },
		{ "event PORT_ERR send", "send" },
		{ "event PORT_ERR ENOMEM", "ENOMEM" },
		{ "event PORT_ERR 2s", "2s" },
		{ "event PORT_ERR qp=1", "qp" },
		{ "event PORT_ERR nth=x", "nth=x" },
		{ "event PORT_ERR h1>h2", "h1>h2" },
		{ "event ibv_post_send", "ibv_post_send" },
		{ "rnr timer=", "timer=" },
		{ "rnr timer=32", "timer=32" },
		{ "rnr timer=-1", "timer=-1" },
		{ "rnr timer=x", "timer=x" },
		{ "rnr timer=1..2", "timer=1..2" },
		{ "rnr timer=0x20", "timer=0x20" },
		{ "rnr timer=12ms", "timer=12ms" },
		{ "rnr h1>h2", "h1>h2" },
		{ "rnr h0", "h0" },
		{ "rnr h4", "h4" },
		{ "rnr hx", "hx" },
		{ "rnr send", "send" },
		{ "rnr rc.snd", "rc.snd" },
		{ "rnr 12", "12" },
		{ "rnr ENOMEM", "ENOMEM" },
		{ "rnr remote-access", "remote-access" },
		{ "rnr qp=0x1000000", "qp=0x1000000" },
		{ "rnr psn=16777216", "psn=16777216" },
		{ "rnr round=0", "round=0" },
		{ "rnr times=1..3", "times=1..3" },
		{ "rnr p=200%", "p=200%" },
		{ "rnr timr=12", "timr" },
		{ "rnr credits=1", "credits" },
		{ "nak", NULL },
		{ "nak rc.send", "rc.send" },
		{ "nak access", "access" },
		{ "nak remote_access", "remote_access" },
		{ "nak remote-acces", "remote-acces" },
		{ "nak sequence", "sequence" },
		{ "nak rnr", "rnr" },
		{ "nak 2", "2" },
		{ "nak Remote-Access", "Remote-Access" },
		{ "nak operational remote-access", "remote-access" },
		{ "nak operational h1>h2", "h1>h2" },
		{ "nak operational recv", "recv" },
		{ "nak operational ibv_post_send", "ibv_post_send" },
		{ "nak operational xyz", "xyz" },
		{ "nak operational timer=1", "timer" },
		{ "nak invalid-request nth=", "nth=" },
		{ "nak invalid-request p=1.5", "p=1.5" },
		{ "credits", "credits" },
		{ "credits 0", "credits" },
		{ "credits=", "credits=" },
		{ "credits=-1", "credits=-1" },
		{ "credits=x", "credits=x" },
		{ "credits=32769", "credits=32769" },
		{ "credits=4294967296", "credits=4294967296" },
		{ "credits=1..2", "credits=1..2" },
		{ "credits=0 rc.send", "rc.send" },
		{ "credits=0 psn=1", "psn" },
		{ "credits=0 h1>h2", "h1>h2" },
		{ "credits=0 send", "send" },
		{ "credits=0 timer=2", "timer" },
		{ "credits=0 credits=1", "credits" },
		{ "cnp h2>h1", "h2>h1" },
		{ "cnp rate=1k", "rate" },
		{ "cnp send", "send" },
		{ "cnp timer=1", "timer" },
		{ "ecn 20%", "20%" },
		{ "ecn p=", "p=" },
		{ "ecn h1>h2", "h1>h2" },
		{ "ecn recv", "recv" },
		{ "reject", NULL },
		{ "reject cm.rep", "cm.rep" },
		{ "reject cm", "cm" },
		{ "reject h1", "h1" },
		{ "reject cm.req cm.req", "cm.req" },
		{ "reject cm.req h1>h2", "h1>h2" },
		{ "reject cm.req reason=0", "reason=0" },
		{ "reject cm.req reason=65536", "reason=65536" },
		{ "reject cm.req reason=28x", "reason=28x" },
		{ "reject cm.req reason=", "reason=" },
		{ "reject cm.req qp=1", "qp" },
		{ "reject cm.req psn=1", "psn" },
		{ "reject cm.req timer=1", "timer" },
		{ "nak operational reason=8", "reason" },
		{ "drop h1", "h1" },
		{ "drop timer=1", "timer" },
		{ "drop send", "send" },
		{ "drop ibv_post_send", "ibv_post_send" },
		{ "mark h2 p=1%", "h2" },
	};

	for (u32 i = 0; i < ARRAY_SIZE(wrong); i++) {
		const char *text = wrong[i].text, *word = wrong[i].word;
		struct lab_error error = { 0 };
		struct lab_rule rule;
		size_t at;

		if (lab_rule_parse(text, HOSTS, &rule, &error))
			fail_msg("'%s' is taken for a rule", text);
		assert_true(strlen(error.why) > 10);
		if (!word) {
			assert_int_equal(error.at, strlen(text));
			continue;
		}
		for (at = strlen(text) - strlen(word); strncmp(text + at, word, strlen(word)); at--)
			assert_true(at);
		if (error.at != at || error.len != strlen(word))
			fail_msg("'%s': at %u, %u bytes: %s", text, error.at, error.len, error.why);
	}
}

/* A word that is nearly right is answered by the right one. */
static void similar_words_are_suggested(void **state)
{
	static const struct {
		const char *text, *name;
	} like[] = {
		{ "fail ibv_post_sned ENOMEM", "did you mean ibv_post_send?" },
		{ "fail post_srq_recv ENOMEM", "did you mean ibv_post_srq_recv?" },
		{ "fail ibv_create_qpex EIO", "did you mean ibv_create_qp_ex?" },
		{ "fail reg_mr EIO", "did you mean ibv_reg_mr?" },
		{ "fail ibv_reg_mr ENOMME", "did you mean ENOMEM?" },
		{ "complete RETRY_EXC send", "did you mean RETRY_EXC_ERR?" },
		{ "event PORT_ERROR", "did you mean PORT_ERR?" },
		{ "nak remote_acess", "did you mean remote-access?" },
		{ "nak invalid", "did you mean invalid-request?" },
	};

	for (u32 i = 0; i < ARRAY_SIZE(like); i++) {
		struct lab_error error = { 0 };
		struct lab_rule rule;

		assert_false(lab_rule_parse(like[i].text, HOSTS, &rule, &error));
		if (!strstr(error.why, like[i].name))
			fail_msg("'%s': %s", like[i].text, error.why);
	}
}

static void rules_of_endpoints_have_what_they_say(void **state)
{
	struct lab_rule r = rule_of("fail ibv_reg_mr ENOMEM h2 nth=5 p=0.5");

	assert_int_equal(r.verb, LAB_FAIL);
	assert_int_equal(lab_rule_place(&r), LAB_AT_CALLS);
	assert_int_equal(r.call, CALL_ibv_reg_mr);
	assert_int_equal(r.err, ENOMEM);
	assert_int_equal(r.host, 2);
	assert_int_equal(r.nth.from, 5);
	assert_true(r.has_chance);
	r = rule_of("complete RETRY_EXC_ERR send write qp=2 nth=1000");
	assert_int_equal(lab_rule_place(&r), LAB_AT_COMPLETIONS);
	assert_int_equal(r.status, 12);
	assert_int_equal(r.works, 1u << LAB_WORK_send | 1u << LAB_WORK_write);
	assert_int_equal(r.order, 2);
	r = rule_of("late 2ms recv");
	assert_int_equal(r.delay_ns, 2000000);
	assert_int_equal(r.works, 1u << LAB_WORK_recv);
	assert_int_equal(rule_of("hold").works, 0);
	r = rule_of("event PORT_ERR");
	assert_int_equal(r.event, LAB_EVENT_PORT_ERR);
	assert_int_equal(r.call, CALL_ibv_post_send);
	assert_int_equal(rule_of("event PORT_ERR ibv_poll_cq").call, CALL_ibv_poll_cq);
	r = rule_of("rnr rc.send.first h1 timer=0 round=1..2");
	assert_int_equal(lab_rule_place(&r), LAB_AT_RESPONDER);
	assert_true(r.has_timer && !r.value && !r.any_kind);
	assert_int_equal(r.round.to, 2);
	assert_false(rule_of("rnr").has_timer);
	assert_int_equal(rule_of("nak remote-access").value, NAK_REMOTE_ACCESS);
	assert_int_equal(rule_of("nak invalid-request").value, NAK_INVALID_REQUEST);
	assert_int_equal(rule_of("nak operational").value, NAK_REMOTE_OPERATION);
	r = rule_of("credits=7 h3");
	assert_int_equal(lab_rule_place(&r), LAB_AT_ANSWERS);
	assert_int_equal(r.value, 7);
	assert_int_equal(r.host, 3);
	r = rule_of("reject cm.req h2 nth=3 reason=8");
	assert_int_equal(lab_rule_place(&r), LAB_AT_CM);
	assert_int_equal(r.value, 8);
	assert_int_equal(r.host, 2);
	assert_int_equal(r.nth.from, 3);
	assert_int_equal(rule_of("reject cm.req").value, 28);
	r = rule_of("drop rc.ack");
	assert_int_equal(lab_rule_place(&r), LAB_AT_CABLE);
}

/* ---- an endpoint's table ---- */

static struct fault_table table;
static struct fault_results results;

static void table_begin(const char *rules, u64 seed)
{
	char wrong[LAB_RULE_TEXT];
	struct lab_error error;

	memset(&results, 0, sizeof(results));
	if (!fault_parse(&table, rules, seed, &results, &error, wrong))
		fail_msg("'%s': %s", wrong, error.why);
}

static int call(enum lab_call which)
{
	enum lab_event event;

	return fault_call(&table, which, &event);
}

static void tables_are_lists_of_rules(void **state)
{
	char text[FAULT_RULES * 16] = "", wrong[LAB_RULE_TEXT];
	struct lab_error error;

	table_begin(" fail ibv_reg_mr EIO;;\n rnr ; ", 1);
	assert_int_equal(table.num, 2);
	assert_int_equal(results.num, 2);
	assert_int_equal(results.magic, FAULT_RESULTS_MAGIC);
	assert_string_equal(results.rule[0], "fail ibv_reg_mr EIO");
	assert_string_equal(results.rule[1], "rnr ");
	assert_non_null(fault_engine(&table));
	table_begin("fail ibv_reg_mr EIO", 1);
	assert_null(fault_engine(&table));
	/* the error is in the rule that is wrong */
	assert_false(fault_parse(&table, "rnr; rnr timer=40 nth=1; rnr", 1, &results, &error,
				 wrong));
	assert_string_equal(wrong, " rnr timer=40 nth=1");
	assert_int_equal(error.at, 5);
	assert_int_equal(error.len, 8);
	assert_false(fault_parse(&table, "rnr;  drop rc.ack", 1, &results, &error, wrong));
	assert_int_equal(error.at, 2);
	assert_int_equal(error.len, 4);
	for (u32 i = 0; i < FAULT_RULES; i++)
		strcat(text, "rnr;");
	assert_true(fault_parse(&table, text, 1, &results, &error, wrong));
	strcat(text, "rnr");
	assert_false(fault_parse(&table, text, 1, &results, &error, wrong));
	memset(text, 'x', LAB_RULE_TEXT);
	text[LAB_RULE_TEXT] = 0;
	assert_false(fault_parse(&table, text, 1, &results, &error, wrong));
	assert_int_equal(strlen(wrong), LAB_RULE_TEXT - 1);
}

static void calls_fail_by_their_number(void **state)
{
	enum lab_event event;

	table_begin("fail ibv_reg_mr ENOMEM nth=2..3; fail ibv_reg_mr EIO nth=3..4; "
		    "event PORT_ERR ibv_create_qp nth=2", 1);
	assert_int_equal(call(CALL_ibv_reg_mr), 0);
	assert_int_equal(call(CALL_ibv_dereg_mr), 0);
	assert_int_equal(call(CALL_ibv_reg_mr), ENOMEM);
	assert_int_equal(call(CALL_ibv_reg_mr), ENOMEM); /* the first rule's */
	assert_int_equal(call(CALL_ibv_reg_mr), EIO);
	assert_int_equal(call(CALL_ibv_reg_mr), 0);
	assert_int_equal(results.result[0].matched, 5);
	assert_int_equal(results.result[0].hits, 2);
	assert_int_equal(results.result[1].hits, 2);
	assert_string_equal(results.result[0].shown[0], "ibv_reg_mr, call 2");
	assert_string_equal(results.result[1].shown[1], "ibv_reg_mr, call 4");
	assert_int_equal(fault_call(&table, CALL_ibv_create_qp, &event), 0);
	assert_int_equal(event, LAB_NUM_EVENTS);
	assert_int_equal(fault_call(&table, CALL_ibv_create_qp, &event), 0);
	assert_int_equal(event, LAB_EVENT_PORT_ERR);
	assert_int_equal(fault_call(&table, CALL_ibv_create_qp, &event), 0);
	assert_int_equal(event, LAB_NUM_EVENTS);
}

static void requests_are_rejected_by_their_number(void **state)
{
	table_begin("reject cm.req nth=2..3; reject cm.req reason=8 nth=3..4", 1);
	assert_null(fault_engine(&table));
	assert_int_equal(call(CALL_ibv_create_qp), 0);
	assert_int_equal(fault_reject(&table), 0);
	assert_int_equal(fault_reject(&table), 28);
	assert_int_equal(fault_reject(&table), 28); /* the first rule's */
	assert_int_equal(fault_reject(&table), 8);
	assert_int_equal(fault_reject(&table), 0);
	assert_int_equal(results.result[0].matched, 5);
	assert_int_equal(results.result[0].hits, 2);
	assert_int_equal(results.result[1].hits, 2);
	assert_string_equal(results.result[1].shown[1], "cm.req 4");
	table_begin("fail ibv_reg_mr EIO; rnr", 1);
	assert_int_equal(fault_reject(&table), 0);
	assert_int_equal(results.result[0].matched, 0);
}

/* A share depends on seed, rule and the call's number, not on other rules' calls. */
static void calls_fail_by_chance(void **state)
{
	u32 hits[3] = { 0 }, others = 0;
	bool first[1000];

	table_begin("fail ibv_reg_mr ENOMEM p=10%; fail ibv_post_send ENOMEM p=10%", 7);
	for (u32 i = 0; i < ARRAY_SIZE(first); i++)
		hits[0] += first[i] = call(CALL_ibv_reg_mr);
	assert_in_range(hits[0], 60, 140);
	table_begin("fail ibv_reg_mr ENOMEM p=10%; fail ibv_post_send ENOMEM p=10%", 7);
	for (u32 i = 0; i < ARRAY_SIZE(first); i++) {
		const bool fails = call(CALL_ibv_reg_mr);

		assert_int_equal(fails, first[i]);
		hits[1] += (bool)call(CALL_ibv_post_send);
		others += call(CALL_ibv_post_recv) != 0;
	}
	assert_int_equal(others, 0);
	assert_in_range(hits[1], 60, 140);
	table_begin("fail ibv_reg_mr ENOMEM p=10%", 8);
	for (u32 i = 0; i < ARRAY_SIZE(first); i++)
		hits[2] += (bool)call(CALL_ibv_reg_mr) != first[i];
	assert_in_range(hits[2], 100, 280);
	assert_int_equal(results.result[0].num_shown, LAB_RULE_SHOWN);
}

static void long_rules_are_refused(void **state)
{
	struct lab_error error = { 0 };
	struct lab_rule rule;
	char text[400];

	memset(text, ' ', sizeof(text));
	memcpy(text, "drop", 4);
	text[sizeof(text) - 1] = 0;
	assert_false(lab_rule_parse(text, HOSTS, &rule, &error));
	text[LAB_RULE_TEXT - 1] = 0;
	assert_true(lab_rule_parse(text, HOSTS, &rule, &error));
}

/* Each kind has a name of its own, by which a rule selects it. */
static void kinds_are_selected_by_their_names(void **state)
{
	u32 num = 0;

	for (u32 opcode = 0; opcode < 256; opcode++) {
		struct lab_kinds kinds = { { 0 } };
		char name[LAB_KIND_NAME];
		u32 others = 0;

		if (!(opcode_flags((u8)opcode) & OP_VALID))
			continue;
		lab_kind_name(opcode, name);
		assert_true(lab_kinds_add(&kinds, name, strlen(name)));
		assert_true(lab_kinds_has(&kinds, opcode));
		for (u32 kind = 0; kind < LAB_KINDS_MAX; kind++)
			others += kind != opcode && lab_kinds_has(&kinds, kind);
		/* rc.send.last also has rc.send.last.imm and .inv */
		assert_in_range(others, 0, 2);
		num++;
	}
	assert_in_range(num, 60, 200);
}

/* ---- packets ---- */

static const struct gid addresses[] = {
	{ .raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 } },
	{ .raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 } },
	{ .raw = { 0xfd, [15] = 1 } },
	{ .raw = { 0xfd, [15] = 2 } },
};

static u32 make(u8 *frame, u8 opcode, u32 qpn, u32 psn, u8 syndrome, bool ipv6)
{
	const struct path path = { .is_ipv6 = ipv6,
				   .hop_limit = 64,
				   .udp_sport = 0xc000,
				   .tos = 2,
				   .local = addresses[ipv6 ? 2 : 0],
				   .peer = addresses[ipv6 ? 3 : 1] };
	const bool has_data = opcode_flags(opcode) & OP_PAYLOAD;
	const struct packet p = { .opcode = opcode,
				  .pkey = 0xffff,
				  .dest_qpn = qpn,
				  .psn = psn,
				  .syndrome = syndrome,
				  .payload_len = has_data ? 64 : 0 };
	u8 *payload = packet_put_headers(frame, &path, &p);

	memset(payload, 0x5a, p.payload_len);
	return packet_seal(frame, payload, p.payload_len);
}

static void wire_begin(const char *const *rules, u64 seed)
{
	lab_wire_free(&wire);
	memset(&wire, 0, sizeof(wire));
	wire.seed = seed;
	while (*rules)
		wire.rules[wire.num_rules++] = rule_of(*rules++);
}
#define WIRE(seed, ...) wire_begin((const char *const[]){ __VA_ARGS__, NULL }, seed)

static bool passes(u32 from, u32 to, u8 opcode, u32 qpn, u32 psn, u8 syndrome)
{
	u8 frame[PACKET_FRAME_MAX];
	struct lab_fate fate;

	assert_true(lab_wire_decide(&wire, from, to, frame,
				    make(frame, opcode, qpn, psn, syndrome, false), &fate));
	return !fate.drop;
}

enum {
	SEND = OPCODE(XROCE_RC, OP5_SEND_ONLY),
	MIDDLE = OPCODE(XROCE_RC, OP5_SEND_MIDDLE),
	ACK = OPCODE(XROCE_RC, OP5_ACKNOWLEDGE)
};

static void nth_counts_what_other_selectors_leave(void **state)
{
	WIRE(1, "drop h2>h1 rc.ack nth=2..3");
	assert_true(passes(2, 1, ACK, 5, 0, AETH_ACK));
	assert_true(passes(1, 2, ACK, 5, 0, AETH_ACK));
	assert_true(passes(2, 1, SEND, 5, 0, 0));
	/* neither is an ACK */
	assert_true(passes(2, 1, ACK, 5, 1, AETH_RNR_NAK | 12));
	assert_true(passes(2, 1, ACK, 5, 1, AETH_NAK | NAK_PSN_SEQUENCE));
	assert_false(passes(2, 1, ACK, 5, 1, AETH_ACK | AETH_CREDIT_NONE));
	assert_false(passes(2, 1, ACK, 6, 2, AETH_ACK));
	assert_true(passes(2, 1, ACK, 5, 3, AETH_ACK));
	assert_int_equal(wire.rules[0].hits, 2);
}

/* Without a direction each one is counted by itself. */
static void directions_are_apart(void **state)
{
	WIRE(1, "drop nth=1");
	assert_false(passes(1, 2, SEND, 5, 0, 0));
	assert_false(passes(2, 1, SEND, 5, 0, 0));
	assert_false(passes(3, 1, SEND, 5, 0, 0));
	assert_true(passes(1, 2, SEND, 5, 1, 0));
	assert_int_equal(wire.rules[0].hits, 3);
}

static void syndromes_are_kinds(void **state)
{
	WIRE(1, "drop rc.nak.sequence", "drop rc.rnr", "drop xrc.nak.remote_access");
	assert_false(passes(1, 2, ACK, 5, 0, AETH_NAK | NAK_PSN_SEQUENCE));
	assert_true(passes(1, 2, ACK, 5, 0, AETH_NAK | NAK_REMOTE_ACCESS));
	assert_true(passes(1, 2, ACK, 5, 0, AETH_NAK | 0x1f));
	assert_true(passes(1, 2, ACK, 5, 0, AETH_NAK | 5));
	assert_false(passes(1, 2, ACK, 5, 0, AETH_RNR_NAK));
	assert_false(passes(1, 2, OPCODE(XROCE_XRC, OP5_ACKNOWLEDGE), 5, 0,
			    AETH_NAK | NAK_REMOTE_ACCESS));
}

/* PSNs count from the first one of a QP, also beyond 2^24. */
static void steps_count_from_the_first_psn(void **state)
{
	WIRE(1, "drop qp=2 psn=+3");
	for (u32 i = 0; i < 6; i++) {
		assert_true(passes(1, 2, SEND, 40, (0xfffffe + i) & ROCE_PSN_MASK, 0));
		assert_int_equal(passes(1, 2, SEND, 41, (0xfffffe + i) & ROCE_PSN_MASK, 0), i != 3);
	}
	/* the retransmission passes */
	assert_true(passes(1, 2, SEND, 41, 1, 0));
	assert_int_equal(wire.rules[0].hits, 1);
}

static void rounds_are_transmissions(void **state)
{
	WIRE(1, "drop h1>h2 psn=+1 round=1..2");
	assert_true(passes(1, 2, SEND, 5, 100, 0));
	assert_false(passes(1, 2, SEND, 5, 101, 0));
	assert_true(passes(1, 2, SEND, 5, 102, 0));
	assert_false(passes(1, 2, SEND, 5, 101, 0));
	assert_true(passes(1, 2, SEND, 5, 101, 0));
	/* another QP's are its own */
	assert_true(passes(1, 2, SEND, 6, 100, 0));
	assert_false(passes(1, 2, SEND, 6, 101, 0));
}

enum { READ_RESPONSE = OPCODE(XROCE_RC, OP5_READ_RESPONSE_ONLY) };

/* Requests and responses to a QP have PSNs of their own, and the QP one place in the order. */
static void responses_are_apart(void **state)
{
	WIRE(1, "drop qp=2 psn=+1", "drop rc.ack round=2 psn=+0");
	assert_true(passes(1, 2, SEND, 5, 100, 0));
	assert_true(passes(1, 2, READ_RESPONSE, 6, 500, 0));
	assert_true(passes(1, 2, SEND, 6, 900, 0));
	assert_false(passes(1, 2, SEND, 6, 901, 0));
	assert_true(passes(1, 2, READ_RESPONSE, 6, 501, 0));
	assert_true(passes(1, 2, READ_RESPONSE, 5, 501, 0));
	/* an acknowledgement of a PSN that a response has as well */
	assert_true(passes(2, 1, ACK, 7, 40, AETH_ACK));
	assert_true(passes(2, 1, READ_RESPONSE, 7, 40, 0));
	assert_false(passes(2, 1, ACK, 7, 40, AETH_ACK));
}

static void numbers_are_of_the_packet(void **state)
{
	WIRE(1, "drop qp=0x29 psn=101");
	assert_true(passes(1, 2, SEND, 0x28, 101, 0));
	assert_true(passes(1, 2, SEND, 0x29, 100, 0));
	assert_false(passes(1, 2, SEND, 0x29, 101, 0));
	assert_true(passes(1, 2, SEND, 0x29, 102, 0));
}

/* Returns whether a MAD of the class, with this attribute and transaction, passes. */
static bool mad_passes(u8 class, u8 attribute, u8 transaction, u32 psn)
{
	const struct path path = {
		.hop_limit = 64, .udp_sport = 0xc000, .local = addresses[0], .peer = addresses[1]
	};
	const struct packet p = { .opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY),
				  .pkey = 0xffff,
				  .dest_qpn = 1,
				  .src_qpn = 1,
				  .psn = psn,
				  .payload_len = 256 };
	u8 frame[PACKET_FRAME_MAX], *mad = packet_put_headers(frame, &path, &p);
	struct lab_fate fate;

	memset(mad, 0, 256);
	mad[1] = class;
	mad[15] = transaction;
	mad[17] = attribute;
	assert_true(lab_wire_decide(&wire, 1, 2, frame, packet_seal(frame, mad, 256), &fate));
	return !fate.drop;
}

/* A repeated MAD has another PSN: its transaction counts. */
static void mads_are_known_by_their_transactions(void **state)
{
	WIRE(1, "drop cm.req round=2", "drop cm.sidr_rep", "drop ud");
	assert_true(mad_passes(7, 0x10, 1, 5));
	assert_true(mad_passes(7, 0x10, 2, 6));
	assert_true(mad_passes(7, 0x13, 1, 7));
	assert_false(mad_passes(7, 0x10, 1, 8));
	assert_true(mad_passes(7, 0x10, 1, 9));
	assert_false(mad_passes(7, 0x18, 1, 10));
	/* of other classes */
	assert_true(mad_passes(3, 0x18, 3, 11));
	assert_true(mad_passes(7, 0x30, 3, 12));
	assert_int_equal(wire.rules[2].hits, 0);
}

static void positions_are_in_messages(void **state)
{
	WIRE(1, "drop middle", "drop only times=1");
	assert_false(passes(1, 2, MIDDLE, 5, 0, 0));
	assert_false(passes(1, 2, SEND, 5, 1, 0));
	assert_true(passes(1, 2, SEND, 5, 2, 0));
	assert_true(passes(1, 2, OPCODE(XROCE_RC, OP5_SEND_FIRST), 5, 3, 0));
}

/* Which packets of two QPs and both directions a share hits, in a given order of arrival. */
static void hit_by_share(u64 seed, const char *other, bool mixed, u64 hits[4][8])
{
	memset(hits, 0, 4 * 8 * sizeof(u64));
	if (other)
		WIRE(seed, "drop p=0.1", other);
	else
		WIRE(seed, "drop p=0.1");
	/* the order of the QPs is that of their first packets */
	for (u32 flow = 0; flow < 4; flow++)
		if (!passes(1 + flow / 2, 2 - flow / 2, SEND, 7 + flow % 2, 9, 0))
			hits[flow][0] |= 1;
	for (u32 i = 0; i < 4 * 511; i++) {
		const u32 flow = mixed ? i % 4 : i / 511, n = mixed ? i / 4 + 1 : i % 511 + 1;

		if (!passes(1 + flow / 2, 2 - flow / 2, SEND, 7 + flow % 2, 9 + n, 0))
			hits[flow][n / 64] |= 1ull << n % 64;
	}
}

/* The same packets, whatever comes between, and whichever other rules there are. */
static void shares_hit_the_same_packets(void **state)
{
	static u64 first[4][8], again[4][8];
	u32 num = 0, same = 0;

	hit_by_share(42, NULL, true, first);
	hit_by_share(42, NULL, false, again);
	assert_memory_equal(first, again, sizeof(first));
	hit_by_share(42, "duplicate p=0.5", true, again);
	assert_memory_equal(first, again, sizeof(first));
	hit_by_share(43, NULL, true, again);
	for (u32 i = 0; i < 4; i++)
		for (u32 k = 0; k < 8; k++) {
			num += (u32)__builtin_popcountll(first[i][k]);
			same += (u32)__builtin_popcountll(first[i][k] & again[i][k]);
		}
	/* a tenth of 2048, five standard deviations around it; a tenth of those by chance */
	assert_in_range(num, 137, 273);
	assert_in_range(same, 1, 45);
	assert_memory_not_equal(first[0], first[1], sizeof(first[0]));
	assert_memory_not_equal(first[0], first[2], sizeof(first[0]));
}

/* The same share in two rules: each has packets of its own. */
static void rules_choose_by_themselves(void **state)
{
	u32 both = 0;

	WIRE(1, "drop p=0.5", "drop p=0.5");
	for (u32 i = 0; i < 256; i++) {
		const u32 before = wire.rules[0].hits + wire.rules[1].hits;

		passes(1, 2, SEND, 5, i, 0);
		both += wire.rules[0].hits + wire.rules[1].hits == before + 2;
	}
	assert_in_range(both, 32, 96);
}

/* A dropped packet is not always dropped again. */
static void rounds_are_decided_by_themselves(void **state)
{
	u32 passed = 0;

	WIRE(1, "drop p=0.5");
	for (u32 i = 0; i < 64; i++)
		passed += passes(1, 2, SEND, 5, 77, 0);
	assert_in_range(passed, 12, 52);
}

static void verbs_are_fates(void **state)
{
	u8 frame[PACKET_FRAME_MAX];
	const u32 len = make(frame, SEND, 5, 0, 0, true);
	struct lab_fate fate;

	WIRE(1, "duplicate", "duplicate", "delay 1ms", "delay 2ms", "swap", "corrupt psn", "mark");
	assert_true(lab_wire_decide(&wire, 1, 2, frame, len, &fate));
	assert_false(fate.drop);
	assert_int_equal(fate.copies, 3);
	assert_int_equal(fate.delay_ns, 3000000);
	assert_int_equal(fate.corrupt, 1u << LAB_PSN);
	assert_true(fate.swap && fate.mark);
	/* not RoCEv2: untouched */
	frame[12] = 8;
	frame[13] = 6;
	assert_false(lab_wire_decide(&wire, 1, 2, frame, len, &fate));
	assert_true(!fate.drop && fate.copies == 1 && !fate.corrupt && !fate.mark && !fate.swap);
	for (u32 n = 0; n < len; n++)
		lab_wire_decide(&wire, 1, 2, frame, n, &fate);
}

/* ---- changes ---- */

static u32 sum(const u8 *at, u32 len, u32 start)
{
	for (u32 i = 0; i < len; i++)
		start += i & 1 ? at[i] : (u32)at[i] << 8;
	while (start >> 16)
		start = (start & 0xffff) + (start >> 16);
	return start;
}

/* Returns whether the checksums of the IP header and of UDP are right, or UDP's is absent. */
static bool checksums_are_right(const struct packet *p)
{
	const u8 *udp = p->ip + (p->is_ipv6 ? 40 : 20);
	const u32 len = (u32)(p->end - udp);
	const u32 start = sum(p->ip + (p->is_ipv6 ? 8 : 12), p->is_ipv6 ? 32 : 8, 17 + len);

	return (p->is_ipv6 || sum(p->ip, 20, 0) == 0xffff) &&
	       ((!udp[6] && !udp[7]) || sum(udp, len, start) == 0xffff);
}

static void put_udp_checksum(u8 *frame, u32 len, bool ipv6)
{
	u8 *ip = frame + 14, *udp = ip + (ipv6 ? 40 : 20);
	const u32 bytes = (u32)(frame + len - udp);
	const u32 start = sum(ip + (ipv6 ? 8 : 12), ipv6 ? 32 : 8, 17 + bytes);
	u32 value;

	udp[6] = udp[7] = 0;
	value = ~sum(udp, bytes, start) & 0xffff;
	value = value ? value : 0xffff;
	udp[6] = (u8)(value >> 8);
	udp[7] = (u8)value;
}

static void corrupted_packets_pass_udp_and_fail_the_icrc(void **state)
{
	for (u32 i = 0; i < 24; i++) {
		const bool ipv6 = i & 1, whole = i & 2;
		const struct lab_fate fate = { .corrupt = 1u << i / 4, .copies = 1 };
		u8 frame[PACKET_FRAME_MAX], before[PACKET_FRAME_MAX];
		const u32 len = make(frame, SEND, 0x1234, 0x77, 0, ipv6);
		const struct rx_frame f = { .data = frame, .len = len };
		struct packet p;

		if (whole)
			put_udp_checksum(frame, len, ipv6);
		assert_int_equal(packet_parse(&p, &f), XROCE_DROP_none);
		assert_true(packet_icrc_ok(&p) && checksums_are_right(&p));
		memcpy(before, frame, len);
		lab_wire_change(frame, len, &fate);
		assert_memory_not_equal(before, frame, len);
		/* another opcode may be no packet */
		if (packet_parse(&p, &f) != XROCE_DROP_none) {
			assert_int_equal(i / 4, LAB_OPCODE);
			continue;
		}
		assert_false(packet_icrc_ok(&p));
		assert_true(checksums_are_right(&p));
		/* an absent checksum stays absent */
		assert_true(whole == (p.ip[p.is_ipv6 ? 46 : 26] || p.ip[p.is_ipv6 ? 47 : 27]));
		assert_true((p.dest_qpn != 0x1234) == (i / 4 == LAB_QPN));
		assert_true((p.psn != 0x77) == (i / 4 == LAB_PSN));
		assert_true((p.pkey != 0xffff) == (i / 4 == LAB_PKEY));
	}
}

/* A checksum of 0 would mean that there is none. */
static void checksums_are_never_zero(void **state)
{
	const struct lab_fate fate = { .corrupt = 1u << LAB_PSN, .copies = 1 };
	u8 frame[PACKET_FRAME_MAX];

	for (u32 psn = 0; psn < 1 << 17; psn += 2) {
		const u32 len = make(frame, ACK, 0x1234, psn, 0, false);

		put_udp_checksum(frame, len, false);
		lab_wire_change(frame, len, &fate);
		assert_true(frame[40] || frame[41]);
	}
}

static void marked_packets_are_right(void **state)
{
	const struct lab_fate fate = { .mark = true, .copies = 1 };

	for (u32 i = 0; i < 4; i++) {
		const bool ipv6 = i & 1, capable = i & 2;
		u8 frame[PACKET_FRAME_MAX];
		const u32 len = make(frame, SEND, 0x1234, 0x77, 0, ipv6);
		const struct rx_frame f = { .data = frame, .len = len };
		struct packet p;

		if (!capable) {
			frame[15] &= (u8) ~(ipv6 ? 0x30 : 3);
			if (!ipv6)
				frame[25] = (u8)(frame[25] + 2);
		}
		put_udp_checksum(frame, len, ipv6);
		lab_wire_change(frame, len, &fate);
		assert_int_equal(packet_parse(&p, &f), XROCE_DROP_none);
		assert_int_equal(p.tos & 3, capable ? 3 : 0);
		assert_true(packet_icrc_ok(&p) && checksums_are_right(&p));
	}
}

/* A removed rule hits nothing, and shares of the rules after it hit the same packets. */
static void removed_rules_leave_others_alone(void **state)
{
	u64 hits[2] = { 0, 0 };

	for (u32 run = 0; run < 2; run++) {
		WIRE(9, "duplicate", "drop p=0.5");
		if (run)
			wire.rules[0].text[0] = 0;
		for (u32 i = 0; i < 64; i++) {
			u8 frame[PACKET_FRAME_MAX];
			struct lab_fate fate;

			assert_true(lab_wire_decide(&wire, 1, 2, frame,
						    make(frame, SEND, 5, i, 0, false), &fate));
			assert_int_equal(fate.copies, run ? 1 : 2);
			assert_int_equal(fate.rules, (run ? 0 : 1) | (u64)fate.drop << 1);
			assert_int_equal(fate.id.step, i);
			hits[run] |= (u64)fate.drop << i;
		}
	}
	assert_true(hits[0] && hits[0] == hits[1]);
}

/* More QPs than the table holds: all pass, and are counted. */
static void many_qps_are_not_forgotten(void **state)
{
	WIRE(1, "drop round=2");
	for (u32 i = 0; i < LAB_FLOWS + 10; i++)
		assert_true(passes(1, 2, SEND, 2 + i, 0, 0));
	assert_int_equal(wire.untold, 11);
	assert_int_equal(wire.num_flows, LAB_FLOWS - 1);
	assert_false(passes(1, 2, SEND, 2, 0, 0));
	lab_wire_free(&wire);
}

static int clean(void **state)
{
	lab_wire_free(&wire);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_have_what_they_say),
		cmocka_unit_test(wrong_rules_name_the_word),
		cmocka_unit_test(wrong_rules_of_endpoints_name_the_word),
		cmocka_unit_test(similar_words_are_suggested),
		cmocka_unit_test(rules_of_endpoints_have_what_they_say),
		cmocka_unit_test(tables_are_lists_of_rules),
		cmocka_unit_test(calls_fail_by_their_number),
		cmocka_unit_test(requests_are_rejected_by_their_number),
		cmocka_unit_test(calls_fail_by_chance),
		cmocka_unit_test(long_rules_are_refused),
		cmocka_unit_test(kinds_are_selected_by_their_names),
		cmocka_unit_test(nth_counts_what_other_selectors_leave),
		cmocka_unit_test(directions_are_apart),
		cmocka_unit_test(syndromes_are_kinds),
		cmocka_unit_test(steps_count_from_the_first_psn),
		cmocka_unit_test(rounds_are_transmissions),
		cmocka_unit_test(responses_are_apart),
		cmocka_unit_test(numbers_are_of_the_packet),
		cmocka_unit_test(mads_are_known_by_their_transactions),
		cmocka_unit_test(positions_are_in_messages),
		cmocka_unit_test(shares_hit_the_same_packets),
		cmocka_unit_test(rules_choose_by_themselves),
		cmocka_unit_test(rounds_are_decided_by_themselves),
		cmocka_unit_test(verbs_are_fates),
		cmocka_unit_test(corrupted_packets_pass_udp_and_fail_the_icrc),
		cmocka_unit_test(checksums_are_never_zero),
		cmocka_unit_test(marked_packets_are_right),
		cmocka_unit_test(removed_rules_leave_others_alone),
		cmocka_unit_test(many_qps_are_not_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, clean);
}
