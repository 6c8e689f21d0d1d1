# The two commands of the README are `make demo` and `make test`; each sets up what it needs.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test check docs-check format lock clean help

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## Show real brokers routing around a slow link and a dead broker; check all deliveries
	@$(BIN)/octopis demo

test: check ## Run every check and every test
	@$(BIN)/pytest -n 3 --dist worksteal  # of two cores, tests of processes that wait leave a part free

check: $(READY) ## Run the static checks alone
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs-check: $(READY) ## Run all that README and docs show: page by page, in one folder, on Spark Connect; all roles
	@$(BIN)/pytest -m "long or not long" tests/unit/test_docs.py tests/pipeline/test_page.py \
		tests/pipeline/test_examples.py tests/pipeline/test_connect.py \
		tests/integration/test_permission_matrix.py tests/pipeline/test_streaming_page.py \
		tests/pipeline/test_streaming_sink.py tests/pipeline/test_streaming_alerts.py

format: $(READY) ## Format the code and mend what can be mended
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock: $(READY) ## Make requirements.lock anew from pyproject.toml
	@$(BIN)/uv pip compile pyproject.toml --extra all --extra connect --extra dev --universal --python-version 3.11 \
		--upgrade --generate-hashes --no-header --quiet --output-file requirements.lock
	@echo "requirements.lock is new; the next make installs it."

clean: ## Remove everything that make has made
	rm -rf .venv out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Made again whenever what it is made from changes.
$(READY): requirements.lock pyproject.toml scripts/setup
	@PYTHON="$(PYTHON)" scripts/setup
