/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the environment chooses: one table of the variables, with their words and bounds, for the
 * library that obeys them, `xroce run` that sets them, and its help. A variable is read when its
 * choice is asked for; text that is not valid is named once on standard error and counts as unset:
 * a program must not fail over a tuning variable.
 */
#ifndef OS_OPTIONS_H
#define OS_OPTIONS_H

#include <stddef.h>

#include "../engine/engine.h"
#include "../engine/pkey.h"

enum option_id {
	OPTION_SPIN_US,
	OPTION_YIELD,
	OPTION_VECTOR_CPUS,
	OPTION_SHARDS,
	OPTION_TX,
	OPTION_XDP,
	OPTION_ATTACH,
	OPTION_SHARE,
	OPTION_PKEY,
	OPTION_OFF,
	OPTION_ECN,
	OPTION_QUIET,
	OPTION_DEBUG,
	OPTION_COUNTERS,
	OPTION_PIN,
	NUM_OPTIONS,
};

enum option_kind {
	OPTION_IS_NUMBER,  /* least to most */
	OPTION_IS_WORD,	   /* one of words */
	OPTION_IS_WORDS,   /* any of words, commas between them */
	OPTION_IS_CPUS,	   /* numbers, commas between them */
	OPTION_IS_PKEYS,   /* as option_add_pkey() takes them, commas between them */
	OPTION_IS_FLAG,	   /* "1": on */
	OPTION_IS_PATH,	   /* the absolute name of a directory */
};

struct option_spec {
	const char *variable;
	const char *flag;	  /* of `xroce run`: the long option, NULL if it has none */
	char letter;		  /* the short one */
	const char *value;	  /* what the help calls its argument */
	enum option_kind kind;
	const char *const *words; /* up to NULL; the first is what an unset variable means */
	u32 least, most, fallback;
	const char *help;	  /* a line, without bounds and words */
};

extern const struct option_spec option_table[NUM_OPTIONS];

/* Would the library obey this text? */
bool option_is_valid(const struct option_spec *spec, const char *text);
/* What it takes, in words: "a number from 1 to 8". Returns text, of n bytes. */
char *option_wants(const struct option_spec *spec, char *text, size_t n);

/*
 * One more entry of a P_Key table: a number of len characters, in decimal, or in hexadecimal behind
 * 0x. 0xffff is there already, where it is to be. Returns 0 or -errno as pkey_table_add(); -EINVAL:
 * it is no such number.
 */
int option_add_pkey(struct pkey_table *pkeys, const char *text, size_t len);

/* XROCE_TX: the way that frames leave. */
enum tx_choice { TX_AUTO, TX_XSK, TX_TAP, TX_LIVE, TX_GSO };
enum tx_choice options_tx(void);
/* XROCE_XDP: how the receiving program is attached. */
enum xdp_choice { XDP_CHOICE_AUTO, XDP_CHOICE_NATIVE, XDP_CHOICE_GENERIC };
enum xdp_choice options_xdp(void);
/* XROCE_ATTACH: whether it shares the interface with other XDP programs. */
enum attach_choice { ATTACH_AUTO, ATTACH_DISPATCHER, ATTACH_EXCLUSIVE };
enum attach_choice options_attach(void);
/* XROCE_SHARE: whether it is used through a broker, with other processes. */
enum share_choice { SHARE_AUTO, SHARE_NEVER, SHARE_ALWAYS };
enum share_choice options_share(void);
/* XROCE_PKEY: the table of a process that has its interface alone. */
struct pkey_table options_pkeys(void);
/* XROCE_SHARDS, XROCE_SPIN_US, XROCE_YIELD. */
u32 options_number(enum option_id option);
/* XROCE_QUIET, XROCE_DEBUG, XROCE_COUNTERS: set to anything. */
bool options_is_set(enum option_id option);
/* XROCE_PIN: the directory; NULL: none, or it is not this user's to choose (secure_getenv(3)). */
const char *options_pin(void);
/* XROCE_VECTOR_CPUS: the n-th of its CPUs; -1: it has not so many, or is not set. */
int options_cpu(u32 n);
/* XROCE_OFF, XROCE_ECN: fill in what they choose of an engine. */
void options_engine(struct engine_config *config);

#endif
