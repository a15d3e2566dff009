# Thin: each target sets up what it needs and hands over to CMake, CTest or a script.
PREFIX ?= /usr/local
SF     ?= 1
DEVICE ?= auto
JOBS   ?= $(shell nproc)
# A GPU's driver starts one process after the other.
TEST_JOBS ?= $(if $(filter cuda,$(DEVICE)),4,$(JOBS))

STACHIO := build/release/stachio
TPCH    := data/tpch-sf$(SF)

# The TPC-H generator lives in .deps/venv; stachio looks for it on PATH.
export PATH := $(CURDIR)/.deps/venv/bin:$(PATH)

.PHONY: build demo test bench install format lint clean setup-build setup-demo setup-test setup-lint release

build: setup-build release

setup-build setup-demo setup-test setup-lint:
	@scripts/setup.sh $(@:setup-%=%)

release: | setup-build
	@mkdir -p build
	@cmake --preset release $(CMAKE_ARGS) >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	@cmake --build --preset release -j $(JOBS)

demo: setup-demo release
	@test -d $(TPCH) || { rm -rf $(TPCH).part && mkdir -p data && \
		$(STACHIO) tpch generate --sf $(SF) -o $(TPCH).part && mv $(TPCH).part $(TPCH); }
	@$(STACHIO) tpch run -d $(TPCH) --device $(DEVICE) --compare duckdb

test: setup-test release
	@STACHIO_DEVICE=$(DEVICE) ctest --preset release --output-on-failure -j $(TEST_JOBS) $(CTEST_ARGS)

bench: setup-test release
	@bench/run.sh

install: build
	@cmake --install build/release --prefix $(PREFIX)

format: setup-lint
	@scripts/lint.sh format-fix

lint: setup-lint release
	@scripts/lint.sh

clean:
	@rm -rf build
