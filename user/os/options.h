/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Choices by environment variables: one table of the variables with their words and bounds, for the
 * library that obeys them, `xroce run` that sets them, and its help. A variable is read when its
 * value is needed, and never in a program with more privileges than its caller, as a set-user-ID
 * one or one with file capabilities (secure_getenv(3)). An invalid value is
 * reported once on standard error and treated as unset: a program must not fail because of a tuning
 * variable.
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
	OPTION_PORT,
	OPTION_PKEY,
	OPTION_OFF,
	OPTION_ECN,
	OPTION_QUIET,
	OPTION_DEBUG,
	OPTION_COUNTERS,
	OPTION_PIN,
	OPTION_TCP_PORTS, /* of librspreload (rspreload/config.c) */
	NUM_OPTIONS,
};

enum option_kind {
	OPTION_IS_NUMBER,  /* from least to most */
	OPTION_IS_WORD,	   /* one of words */
	OPTION_IS_WORDS,   /* any of words, separated by commas */
	OPTION_IS_CPUS,	   /* numbers, separated by commas */
	OPTION_IS_PORTS,   /* the same, of ports */
	OPTION_IS_PKEYS,   /* for option_add_pkey(), separated by commas */
	OPTION_IS_FLAG,	   /* "1": on */
	OPTION_IS_PATH,	   /* an absolute directory name */
};

struct option_spec {
	const char *variable;
	const char *flag;	  /* long option of `xroce run`, or NULL */
	const char *value;	  /* name of its argument in the help */
	enum option_kind kind;
	const char *const *words; /* NULL-terminated; the first is the default */
	u32 least, most, fallback;
	const char *help;	  /* one line, without bounds and words */
};

extern const struct option_spec option_table[NUM_OPTIONS];

/* Returns whether the library would accept this text. */
bool option_is_valid(const struct option_spec *spec, const char *text);
/* Describes the accepted values: "a number from 1 to 8". Returns text, of n bytes. */
char *option_wants(const struct option_spec *spec, char *text, size_t n);

/*
 * Adds an entry to a P_Key table: a number of len characters, decimal, or hexadecimal after 0x.
 * 0xffff is in the table already. Returns 0 or -errno as pkey_table_add(); -EINVAL if it is not a
 * number.
 */
int option_add_pkey(struct pkey_table *pkeys, const char *text, size_t len);

/*
 * Returns whether a process that this one starts inherits "NAME=VALUE": not an invalid value of
 * this library's variables, which is reported once, here.
 */
bool options_are_inherited(const char *assignment);

/* XROCE_TX: the way in which frames leave. */
enum tx_choice { TX_AUTO, TX_XSK, TX_TAP, TX_LIVE, TX_GSO };
enum tx_choice options_tx(void);
/* XROCE_XDP: how the receiving program is attached. */
enum xdp_choice { XDP_CHOICE_AUTO, XDP_CHOICE_NATIVE, XDP_CHOICE_GENERIC };
enum xdp_choice options_xdp(void);
/* XROCE_ATTACH: whether other XDP programs may be on the interface. */
enum attach_choice { ATTACH_AUTO, ATTACH_DISPATCHER, ATTACH_EXCLUSIVE };
enum attach_choice options_attach(void);
/* XROCE_SHARE: whether the interface is used through a broker, with other processes. */
enum share_choice { SHARE_AUTO, SHARE_NEVER, SHARE_ALWAYS };
enum share_choice options_share(void);
/*
 * XROCE_PORT: by what a broker that the process starts receives. PORT_AUTO: by XDP, or by UDP
 * sockets if that is impossible.
 */
enum port_choice { PORT_AUTO, PORT_XDP, PORT_SOCKETS };
enum port_choice options_port(void);
/* XROCE_PKEY: the P_Key table of a broker that the process starts. */
struct pkey_table options_pkeys(void);
/* XROCE_SHARDS, XROCE_SPIN_US, XROCE_YIELD. */
u32 options_number(enum option_id option);
/* XROCE_QUIET, XROCE_DEBUG, XROCE_COUNTERS: set to any value. */
bool options_is_set(enum option_id option);
/* XROCE_PIN: the directory; NULL if unset. */
const char *options_pin(void);
/* XROCE_VECTOR_CPUS: its n-th CPU; -1 if it is shorter or unset. */
int options_cpu(u32 n);
/* XROCE_OFF, XROCE_ECN: set the engine options that they choose. */
void options_engine(struct engine_config *config);

#endif
