# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make            build everything (no root, nothing attached)
# make demo       as root: install what is needed, build, show it working between two namespaces
# make check      as root: install what is needed, build, run the core of the tests (a quarter of an
#                 hour on two processors)
# make check-all  the same, and the long tests: guests, frameworks, sanitizers, long runs
# make check-PART all tests of one part: tree portsim model unit sim cm san fuzz ship bpf verbs port
#                 netns vm
# make check-arch as root: cross compile for arm64 and s390x, their tests under emulation, an
#                 emulated arm64 machine; musl
# make bench      as root: measure against raw AF_XDP, UDP and TCP between two namespaces
#                 (scripts/bench.sh --quick: in 3 minutes; --sharing: processes that share one;
#                 --connecting: connections of librdmacm; --observing: what looking costs)
# make interop    as root: everything against the kernel's Soft-RoCE in virtual machines (half an
#                 hour)
# make bench-vm   as root: instructions an operation, beside Soft-RoCE and TCP, in a virtual machine
#                 (both: KERNELS=6.12 for one guest kernel of 6.1 and 6.12)
# make install    DESTDIR= PREFIX= LIBDIR=  install the library (in a directory of its own), the
#                 command, its completion, units, dashboard, alerts, manual pages, xroce.pc and the documents
# make portable   the same in BUILD/portable, with all that it needs but glibc 2.28 or later (x86_64)
# make uninstall  the same variables: take all of that away
#
# V=1 shows whole commands; WERROR=1 makes warnings errors; BUILD=dir builds elsewhere; SAN=1 builds
# with ASan and UBSan (for tests/unit and tests/sim), TSAN=1 with TSan (the mode `tsan` of tests). What a
# developer always wants can be in local.mk, which git ignores (WERROR := 1).

-include local.mk

PREFIX  ?= /usr/local
DESTDIR ?=
BUILD   ?= build
WERROR  ?=
V       ?=
ifeq ($(origin CC),default)
CC      := gcc
endif
CLANG   ?= clang
BPFTOOL ?= bpftool
PKG_CONFIG ?= pkg-config

PKGS      := libbpf libxdp libmnl libisal
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
PKG_LIBS   := $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null)
# Of the command alone: the libraries are not to bring them into programs.
TOOL_PKGS := fuse3 libmicrohttpd json-c smartcols ncursesw
TOOL_PKG_LIBS := $(shell $(PKG_CONFIG) --libs $(TOOL_PKGS) 2>/dev/null)
FUSE_CFLAGS := $(shell $(PKG_CONFIG) --cflags fuse3 2>/dev/null)

# A line a file: $(call say,CC,file) begins a command that is not echoed; with V=1 it is, and with
# make -s nothing is said.
ifneq ($(filter-out 0,$(V)),)
say =
Q   :=
else ifneq ($(findstring s,$(firstword -$(MAKEFLAGS))),)
say = @
Q   := @
else
say = @printf '  %-5s %s\n' $(1) '$(2)';
Q   := @
endif

# What the compiler says of itself: its name and version, byte order, and what a distribution has it
# define.
CC_SAYS := $(shell echo | $(CC) $(CPPFLAGS) $(CFLAGS) -dM -E - 2>/dev/null | \
	grep -E ' (__VERSION__|__clang__|__BYTE_ORDER__|_FORTIFY_SOURCE) ' | cut -d' ' -f2-)

CFLAGS   ?= -O2 -g
# An overrun of a buffer on the stack, and of one whose size the compiler knows, ends the program at
# once. _FORTIFY_SOURCE needs an optimised build, and its calls escape the sanitizers; a level that
# a distribution sets (in CPPFLAGS, CFLAGS or its compiler) stands.
HARDEN   := -fstack-protector-strong
ifneq ($(if $(SAN)$(TSAN),,$(filter -O1 -O2 -O3 -Os,$(CFLAGS))),)
HARDEN   += $(if $(filter _FORTIFY_SOURCE,$(CC_SAYS)),,-D_FORTIFY_SOURCE=2)
endif
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wno-unused-parameter
FATAL    := $(if $(filter-out 0,$(WERROR)),-Werror)
ALL_CFLAGS = -std=gnu11 $(CPPFLAGS) $(CFLAGS) $(HARDEN) $(WARNINGS) $(FATAL) -fPIC \
	-fvisibility=hidden -pthread -Iinclude -I$(BUILD)/gen -MMD -MP $(PKG_CFLAGS)
ALL_LDFLAGS = -pthread -Wl,-z,relro,-z,now $(LDFLAGS)
ifdef SAN
SANITIZE := -fsanitize=address,undefined
ALL_CFLAGS += $(SANITIZE) -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif
ifdef TSAN
# TSan does not know fences; none of ours orders anything but atomics.
SANITIZE := -fsanitize=thread
ALL_CFLAGS += $(SANITIZE) -fno-omit-frame-pointer $(if $(filter __clang__,$(CC_SAYS)),,-Wno-tsan)
endif
LIBS := $(PKG_LIBS) $(SANITIZE)

# The transport is many small functions in files of their own: optimised as one, and what is called
# once a packet put where it is called, it makes 6 % and another 7 % more messages a second. Not
# under a sanitizer, whose reports are to name what the source says, and by GCC alone, whose option
# makes an ordinary object of it.
ifeq ($(SANITIZE)$(filter __clang__,$(CC_SAYS)),)
AS_ONE := -flto -flto-partition=one --param max-inline-insns-auto=80 \
	--param inline-min-speedup=5
endif

objs = $(patsubst %,$(BUILD)/obj/%.o,$(basename $(1)))

ENGINE_SRC := $(wildcard user/engine/*.c user/engine/*.S)
# The rooms between the transport and the verbs, the lower ones first.
PORT_ROOMS    := fault os io run client host broker port
PORT_SRC      := $(wildcard $(PORT_ROOMS:%=user/%/*.c))
VERBS_SRC     := $(wildcard user/verbs/*.c)
CM_SRC        := $(wildcard user/cm/*.c)
RDMACM_SRC    := $(wildcard user/rdmacm/*.c user/rsocket/*.c)
RSPRELOAD_SRC := $(wildcard user/rspreload/*.c)
BENCH_SRC     := $(wildcard user/tools/bench/*.c)
TOOLS_SRC     := $(filter-out $(BENCH_SRC),$(wildcard user/tools/*.c user/tools/*/*.c))

LIB   := $(BUILD)/lib/libibverbs.so.1
RDMACM := $(BUILD)/lib/librdmacm.so.1
RSPRELOAD := $(BUILD)/lib/librspreload.so
TOOL  := $(BUILD)/bin/xroce
SKELS := $(addprefix $(BUILD)/gen/,xroce.skel.h xroce_tx.skel.h xroce_broker.skel.h \
	xroce_held.skel.h)

.PHONY: all engine objects texts deps demo check bench interop bench-vm portable install uninstall
.PHONY: clean FORCE
.SECONDARY:
all: $(LIB) $(BUILD)/lib/libibverbs.so $(RDMACM) $(BUILD)/lib/librdmacm.so $(RSPRELOAD) $(TOOL) \
	$(BUILD)/lib/bin/rdma

include tests/tests.mk

# The headers of the machine that is compiled for, which a cross compiler may have elsewhere.
CC_ROOT    := $(patsubst %/,%,$(shell $(CC) -print-sysroot 2>/dev/null))
BPF_TARGET := $(if $(filter __ORDER_BIG_ENDIAN__,$(CC_SAYS)),bpfeb,bpfel)
BPF_FLAGS   = -target $(BPF_TARGET) -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-parameter $(FATAL) \
	-Iinclude -I$(CC_ROOT)/usr/include/$(shell $(CC) -print-multiarch) -MMD -MP

# ---- what compiles differently is compiled again: the flags of the last build ----

FLAGS_NOW := $(strip $(CC) $(CC_SAYS) $(ALL_CFLAGS) | $(AS_ONE) | $(TEST_CFLAGS) | $(CLANG) \
	$(BPF_FLAGS) | $(FUZZ_FLAGS) | $(PORTSIM_CALLS) | $(ALL_LDFLAGS) $(LIBS) $(TOOL_PKG_LIBS))
ifneq ($(file <$(BUILD)/flags),$(FLAGS_NOW))
$(BUILD)/flags: FORCE
endif
$(BUILD)/flags: export FLAGS_NOW := $(FLAGS_NOW)
$(BUILD)/flags:
	@mkdir -p $(@D)
	@printf '%s\n' "$$FLAGS_NOW" >$@

# ---- BPF: objects of the byte order that is compiled for, embedded through their skeletons ----

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,BPF,$<)$(CLANG) $(BPF_FLAGS) -c $< -o $@

$(BUILD)/gen/%.skel.h: $(BUILD)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(call say,GEN,$@)$(BPFTOOL) gen skeleton $< name $*_bpf > $@.tmp && mv $@.tmp $@

# ---- C ----

$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -c $< -o $@

$(BUILD)/obj/%.o: %.S $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,AS,$<)$(CC) $(ALL_CFLAGS) -c $< -o $@

# The receiving BPF programs as functions of the broker's.
$(BUILD)/obj/user/host/program.o: ALL_CFLAGS := -Iuser/host/include $(ALL_CFLAGS) \
	-Wno-missing-prototypes -Wno-unused-function

# Which of them include a skeleton the compiler says (-MMD); a first build must have made them.
$(call objs,$(PORT_SRC)): | $(SKELS)

ifdef AS_ONE
$(call objs,$(ENGINE_SRC)): ALL_CFLAGS += $(AS_ONE)
$(BUILD)/obj/engine.o: $(call objs,$(ENGINE_SRC))
	$(call say,LINK,$@)$(CC) $(ALL_CFLAGS) $(AS_ONE) -flinker-output=nolto-rel -r -nostdlib $^ \
		-o $@
$(BUILD)/libengine.a: $(BUILD)/obj/engine.o
else
$(BUILD)/libengine.a: $(call objs,$(ENGINE_SRC))
endif
	$(call say,AR,$@)rm -f $@ && $(AR) qcs $@ $^
engine: $(BUILD)/libengine.a

$(BUILD)/libport.a: $(call objs,$(PORT_SRC))
	$(call say,AR,$@)rm -f $@ && $(AR) qcs $@ $^

$(BUILD)/libcm.a: $(call objs,$(CM_SRC))
	$(call say,AR,$@)rm -f $@ && $(AR) qcs $@ $^

$(BUILD)/librdmacm.a: $(call objs,$(RDMACM_SRC))
	$(call say,AR,$@)rm -f $@ && $(AR) qcs $@ $^

# $^ has objects before archives, and other prerequisites that are for make alone.
LINK = $(call say,LINK,$@)$(CC) $(ALL_LDFLAGS)
INPUTS = $(filter %.o,$^) $(filter %.a,$^)

# Its assembler directives name functions, which link time optimisation would move elsewhere.
$(BUILD)/obj/user/verbs/private.o: ALL_CFLAGS += -fno-lto

MAP := user/verbs/libibverbs.map
$(LIB): $(call objs,$(VERBS_SRC)) $(BUILD)/libport.a $(BUILD)/libengine.a $(MAP)
	@mkdir -p $(@D)
	$(LINK) -shared -Wl,-soname,libibverbs.so.1 -Wl,--version-script=$(MAP) -Wl,--no-undefined \
		-Wl,-z,nodelete $(INPUTS) $(LIBS) -o $@

# Compiled, not linked: for a C library that has not all that is linked (tests/ship/trial/musl.sh).
objects: $(BUILD)/libport.a $(BUILD)/libengine.a $(BUILD)/libcm.a \
	$(call objs,$(VERBS_SRC) $(RDMACM_SRC) $(TOOLS_SRC) $(BENCH_SRC))

$(BUILD)/lib/libibverbs.so: $(LIB)
	$(Q)ln -sf libibverbs.so.1 $@

# Of the rooms below it has what needs no port: os and the connection manager's core.
RDMACM_MAP := user/rdmacm/librdmacm.map
$(RDMACM): $(call objs,$(RDMACM_SRC)) $(BUILD)/libcm.a $(BUILD)/libport.a $(BUILD)/libengine.a \
		$(LIB) $(RDMACM_MAP)
	@mkdir -p $(@D)
	$(LINK) -shared -Wl,-soname,librdmacm.so.1 -Wl,--version-script=$(RDMACM_MAP) \
		-Wl,--no-undefined -Wl,-z,nodelete $(INPUTS) \
		-Wl,--no-as-needed $(LIB) -Wl,--as-needed $(LIBS) -o $@

$(BUILD)/lib/librdmacm.so: $(RDMACM)
	$(Q)ln -sf librdmacm.so.1 $@

# The sockets of a program become rsockets: loaded in front of everything by LD_PRELOAD.
RSPRELOAD_MAP := user/rspreload/librspreload.map
# The headers would define the very functions that it does.
$(call objs,$(RSPRELOAD_SRC)): ALL_CFLAGS += -U_FORTIFY_SOURCE
$(RSPRELOAD): $(call objs,$(RSPRELOAD_SRC)) $(RDMACM) $(LIB) $(RSPRELOAD_MAP)
	@mkdir -p $(@D)
	$(LINK) -shared -Wl,--version-script=$(RSPRELOAD_MAP) -Wl,--no-undefined -Wl,-z,nodelete \
		$(filter %.o,$^) $(RDMACM) $(LIB) $(SANITIZE) -ldl -o $@

# Of the command what measures: its pure files are tested alone (tests/measure).
$(BUILD)/libbench.a: $(call objs,$(BENCH_SRC))
	$(call say,AR,$@)rm -f $@ && $(AR) qcs $@ $^

$(BUILD)/obj/user/tools/run/sysfs_counters.o: ALL_CFLAGS += $(FUSE_CFLAGS)
$(TOOL): $(call objs,$(TOOLS_SRC)) $(BUILD)/libbench.a $(BUILD)/libport.a \
		$(BUILD)/libcm.a $(BUILD)/libengine.a
	@mkdir -p $(@D)
	$(LINK) $(INPUTS) $(LIBS) $(TOOL_PKG_LIBS) -ldl -lm -o $@

# The command's second name, in a directory that `xroce run` puts into PATH (user/tools/run/rdma.c).
$(BUILD)/lib/bin/rdma: $(TOOL)
	@mkdir -p $(@D)
	$(Q)ln -sf ../../bin/xroce $@

# ---- what to do with it ----

deps:
	scripts/deps.sh
demo: deps
	$(MAKE) all
	scripts/demo.sh $(BUILD)
# With LISTED_SKIPS=1 a skip that tests/skips.txt does not list is a failure, as in all runs of the
# long tier.
LISTED_SKIPS :=
SKIPS := --skips tests/skips.txt
check: deps
	scripts/check.sh --build $(BUILD) $(if $(LISTED_SKIPS),$(SKIPS))
# Programs of the long tier for LONG_SECONDS, shuffled by the hash of the commit.
LONG_SECONDS := 1500
check-turn: deps
	scripts/deps.sh vm
	scripts/check.sh --build $(BUILD) $(SKIPS) --tier long --turn $$(git rev-parse HEAD) \
		--seconds $(LONG_SECONDS)
check-all check-vm: deps
	scripts/deps.sh vm
	scripts/check.sh --build $(BUILD) $(SKIPS) $(if $(filter check-vm,$@),--part vm,--tier all)
CHECKS := $(addprefix check-,tree portsim model unit sim cm san fuzz ship bpf verbs port netns)
.PHONY: check-all check-turn check-vm check-arch $(CHECKS)
check-arch: deps
	scripts/deps.sh arch
	scripts/check.sh --build $(BUILD) --part arch
$(CHECKS): deps
	scripts/check.sh --build $(BUILD) --part $(@:check-%=%)

# A directory for any system with glibc 2.28 or later: BUILD/portable.
portable: deps
	scripts/portable.sh $(BUILD)

bench:
	scripts/deps.sh bench
	$(MAKE) all bench-tools
	scripts/bench.sh $(BUILD)

# With virtual machines: the whole matrix against Soft-RoCE, and instructions beside it and TCP.
interop: deps
	scripts/deps.sh vm
	$(MAKE) all tests
	tests/vm/interop.sh $(BUILD) $(KERNELS)
	tests/vm/broker.sh $(BUILD) $(KERNELS)
	tests/vm/cm.sh $(BUILD) $(KERNELS)
bench-vm: deps
	scripts/deps.sh vm
	$(MAKE) all vm-tools
	tests/vm/bench.sh $(BUILD) $(KERNELS)
	tests/vm/cmtime.sh $(BUILD) $(KERNELS)

# ---- installing: the library goes to a directory of its own, never where the system's libibverbs
# is found by default ----

VERSION := $(shell sed -n 's/.*define XROCE_VERSION "\(.*\)"/\1/p' include/xroce/version.h)
LIBDIR  ?= $(PREFIX)/lib
BINDIR  := $(PREFIX)/bin
OURS    := $(LIBDIR)/xroce
DOCDIR  := $(PREFIX)/share/doc/xroce
MANDIR  := $(PREFIX)/share/man
COMPDIR := $(PREFIX)/share/bash-completion/completions
UNITDIR := $(PREFIX)/lib/systemd/system
DATADIR := $(PREFIX)/share/xroce

# The command finds the library from where it lies itself, so an installation can be moved.
$(BUILD)/obj/user/client/spawn.o: ALL_CFLAGS += -DXROCE_BINDIR='"$(BINDIR)"'
$(BUILD)/obj/user/tools/run/run.o: ALL_CFLAGS += -DXROCE_LIBDIR='"$(OURS:$(PREFIX)/%=../%)"'
$(BUILD)/obj/user/tools/run/run.o: $(BUILD)/places

PLACES_NOW := $(VERSION) $(PREFIX) $(LIBDIR)
ifneq ($(file <$(BUILD)/places),$(PLACES_NOW))
$(BUILD)/places: FORCE
endif
$(BUILD)/places:
	@mkdir -p $(@D)
	@echo '$(PLACES_NOW)' >$@

# The lab's cases, found from the command's own place, here as where it is installed.
LAB_CASES := $(wildcard share/lab/*.toml)
$(BUILD)/share/xroce/lab/%.toml: share/lab/%.toml
	@mkdir -p $(@D)
	$(Q)cp $< $@
all: $(LAB_CASES:share/%=$(BUILD)/share/xroce/%)

# Texts with the version, the places, and lists as the sources have them: each is put where a page has
# its name, as in @DROP_REASONS@.
MAN7   := $(notdir $(wildcard man/*.7))
MAN8   := $(notdir $(wildcard man/*.8))
SHARED := $(addprefix $(BUILD)/share/,$(MAN7) $(MAN8) xroce.pc xroce@.service xroce-export.service \
	xroce-files.conf)
LISTS  := DROP_REASONS EVENTS VENDOR_ERRORS COUNTERS NAMES_MLX5 NAMES_RXE NAMES_PORT
$(BUILD)/share/DROP_REASONS: include/xroce/abi.h
	@mkdir -p $(@D)
	$(Q)sed -nE 's/^\tX\(([a-z_]+), "([^"]*)"\).*/.It Li \1\n\2/p' $< >$@
$(BUILD)/share/EVENTS: include/xroce/trace.h
	@mkdir -p $(@D)
	$(Q)sed -nE 's/^\tX\(([a-z_]+), "([^"]*)"\).*/.It Li \1\n\2/p' $< >$@
$(BUILD)/share/VENDOR_ERRORS: user/engine/cq.h
	@mkdir -p $(@D)
	$(Q)sed -nE 's/^\tX\([A-Z_]+, ([0-9]+), "([^"]*)"\).*/.It \1\n\2/p' $< >$@
$(BUILD)/share/COUNTERS: user/tools/counters.c
	@mkdir -p $(@D)
	$(Q)sed -nE -e 's/^\t(ENGINE|GAUGE)\(([a-z_]+), "(.*)"\),/.It Li \2\n\3/p' \
		-e 's/^\tXDP\(([a-z_]+), "(.*)"\),/.It Li xdp_\1\n\2/p' \
		-e 's/^\tSOCK\(([a-z_]+), "(.*)"\),/.It Li sock_\1\n\2/p' $< | \
		sed 's/\\"/"/g' >$@
$(BUILD)/share/NAMES_%: user/tools/counters.c
	@mkdir -p $(@D)
	$(Q)sed -nE '/\{ NAME_$*,/{N;s/.*, "([a-z_0-9]+)", "([^"]+)",\n\t  "(.*)",/.It Li \1\n\3\n.Pq \2/p}' $< | \
		sed 's/\\"/"/g' >$@
FILL_IN = sed $(foreach l,$(LISTS),-e '/@$l@/{r $(BUILD)/share/$l' -e 'd}') \
	$(foreach v,VERSION PREFIX LIBDIR,-e 's|@$v@|$($v)|')
$(BUILD)/share/%: man/% $(addprefix $(BUILD)/share/,$(LISTS)) $(BUILD)/places
	$(call say,GEN,$@)$(FILL_IN) $< >$@
# Pages of the command have its options from its help.
$(BUILD)/share/%.8: man/%.8 man/options.awk $(TOOL) $(addprefix $(BUILD)/share/,$(LISTS)) \
		$(BUILD)/places
	$(call say,GEN,$@)awk -v tool=$(TOOL) -f man/options.awk $< >$@.filled && \
		$(FILL_IN) $@.filled >$@ && rm $@.filled
$(BUILD)/share/%: share/%.in $(BUILD)/places
	@mkdir -p $(@D)
	$(call say,GEN,$@)sed $(foreach v,VERSION PREFIX LIBDIR,-e 's|@$v@|$($v)|') $< >$@

texts: $(SHARED)
install: all texts
	install -d $(addprefix $(DESTDIR),$(OURS)/bin $(LIBDIR)/pkgconfig $(BINDIR) $(COMPDIR) \
		$(UNITDIR) $(MANDIR)/man7 $(MANDIR)/man8 $(DOCDIR)/docs $(DOCDIR)/LICENSES \
		$(DATADIR)/grafana $(DATADIR)/prometheus $(DATADIR)/lab)
	install -m 755 $(LIB) $(DESTDIR)$(OURS)/libibverbs.so.1
	ln -sf libibverbs.so.1 $(DESTDIR)$(OURS)/libibverbs.so
	install -m 755 $(RDMACM) $(DESTDIR)$(OURS)/librdmacm.so.1
	ln -sf librdmacm.so.1 $(DESTDIR)$(OURS)/librdmacm.so
	install -m 755 $(RSPRELOAD) $(DESTDIR)$(OURS)/librspreload.so
	install -m 755 $(TOOL) $(DESTDIR)$(BINDIR)/xroce
	ln -srf $(DESTDIR)$(BINDIR)/xroce $(DESTDIR)$(OURS)/bin/rdma
	install -m 644 $(BUILD)/share/xroce.pc $(DESTDIR)$(LIBDIR)/pkgconfig/xroce.pc
	install -m 644 share/xroce.bash $(DESTDIR)$(COMPDIR)/xroce
	install -m 644 $(BUILD)/share/xroce@.service $(BUILD)/share/xroce-export.service \
		$(DESTDIR)$(UNITDIR)
	install -m 644 $(BUILD)/share/xroce-files.conf $(DESTDIR)$(DATADIR)/files.conf
	install -m 644 share/grafana/xroce.json $(DESTDIR)$(DATADIR)/grafana
	install -m 644 $(LAB_CASES) $(DESTDIR)$(DATADIR)/lab
	install -m 644 share/prometheus/xroce.rules.yml $(DESTDIR)$(DATADIR)/prometheus
	install -m 644 $(addprefix $(BUILD)/share/,$(MAN7)) $(DESTDIR)$(MANDIR)/man7
	install -m 644 $(addprefix $(BUILD)/share/,$(MAN8)) $(DESTDIR)$(MANDIR)/man8
	install -m 644 README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md $(DESTDIR)$(DOCDIR)
	install -m 644 $(wildcard docs/*.md docs/*.svg) $(DESTDIR)$(DOCDIR)/docs
	install -m 644 $(wildcard LICENSES/*.txt) $(DESTDIR)$(DOCDIR)/LICENSES

# The directories that are ours alone go whole; others may have files of others.
uninstall:
	rm -rf $(addprefix $(DESTDIR),$(OURS) $(DOCDIR) $(DATADIR))
	rm -f $(addprefix $(DESTDIR),$(BINDIR)/xroce $(LIBDIR)/pkgconfig/xroce.pc $(COMPDIR)/xroce \
		$(UNITDIR)/xroce@.service $(UNITDIR)/xroce-export.service $(addprefix $(MANDIR)/man7/,$(MAN7)) \
		$(addprefix $(MANDIR)/man8/,$(MAN8)))

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD)/obj $(BUILD)/bpf $(BUILD)/fuzz-obj $(BUILD)/unseen -name '*.d' 2>/dev/null)
