# A build must never fetch a Rust toolchain of its own.
export MATURIN_NO_INSTALL_RUST := "1"
# The build back end is maturin's, behind tcpwin/engine/build_backend.py.
export MATURIN_NO_MISSING_BUILD_BACKEND_WARNING := "1"

engine := "tcpwin/engine/Cargo.toml"
bin := justfile_directory() / ".venv" / "bin"

default:
    @just --list

# Make .venv with both distributions (editable) and every tool
setup:
    python3 -m venv .venv
    {{ bin }}/pip install -q -e '.[dev]' -e './web[test]'
    {{ bin }}/pre-commit install

# Compile the engine again after a change in Rust
build:
    {{ bin }}/maturin develop --profile editable --skip-install

# Generate Python types and JSON Schema from the engine's tables
model: build
    {{ bin }}/python .ci/model.py

# Write the page that puts tcpwin's numbers next to the articles'
articles:
    {{ bin }}/python .ci/articles.py

# Write every file in the house's format
fmt:
    cargo fmt --manifest-path {{ engine }}
    {{ bin }}/ruff check --fix-only .
    {{ bin }}/ruff format .

# Everything that CI checks without running tests
lint:
    cargo fmt --check --manifest-path {{ engine }}
    cargo clippy --all-targets --manifest-path {{ engine }} -- -D warnings
    {{ bin }}/ruff check .
    {{ bin }}/ruff format --check .
    {{ bin }}/mypy
    {{ bin }}/python tests/layers.py

# Draw the layers of the code into ARCHITECTURE.md; fails on a cycle
layers:
    {{ bin }}/python tests/layers.py --write

# The engine's own tests, then Python's
test *ARGS:
    cargo test -q --no-default-features --manifest-path {{ engine }}
    {{ bin }}/pytest {{ ARGS }}

# Speed and memory beside tshark, tcptrace and tcpdump
bench *ARGS:
    {{ bin }}/python tests/benchmark/run.py {{ ARGS }}

# Take the pictures that the documents show, all of them or those of figures and reports that are named
pictures *NAMES:
    {{ bin }}/python tests/report/pictures.py {{ NAMES }}
    {{ if NAMES == "" { bin / "python tests/web/screenshots.py" } else { "" } }}

# Run one fuzz target: segment, readers, analysis, conversation or pair (needs nightly and cargo-fuzz)
fuzz TARGET SECONDS="120":
    cd tcpwin/engine && cargo +nightly fuzz run {{ TARGET }} -- -max_total_time={{ SECONDS }}

# Build the lab's kernel, run every scenario, and one of them twice (hours of processor; goes on where it stopped)
lab-check FOLDER="lab-runs":
    {{ bin }}/tcpwin lab build
    {{ bin }}/tcpwin lab run --all -o {{ FOLDER }}
    # Both anew: what lies in the folder may be of another installation, whose runs begin microseconds apart.
    {{ bin }}/tcpwin lab run zero-window-5s --again -o {{ FOLDER }}/once
    {{ bin }}/tcpwin lab run zero-window-5s --again -o {{ FOLDER }}/twice
    cmp {{ FOLDER }}/once/zero-window-5s-stock.zip {{ FOLDER }}/twice/zero-window-5s-stock.zip

# Try the engine with the checks that a release leaves out: overflow, alignment, assertions (`just build` ends it)
checked *ARGS:
    {{ bin }}/maturin develop --profile checked --skip-install
    {{ bin }}/pytest {{ ARGS }}

# Write the documentation as a site with search
site FOLDER="dist/site":
    {{ bin }}/mkdocs build --strict -f .ci/site.yml -d {{ justfile_directory() }}/{{ FOLDER }}

# Build what is released: a wheel for any Linux, the dashboard's, and the sources of both (needs uv)
wheels FOLDER="dist":
    uvx --with ziglang 'maturin>=1.9,<2' build --release --zig --compatibility manylinux2014 --out {{ FOLDER }}
    uvx 'maturin>=1.9,<2' sdist --out {{ FOLDER }}
    uvx --from build pyproject-build --installer uv --outdir {{ FOLDER }} web
    uvx auditwheel show {{ FOLDER }}/*manylinux*.whl
    uvx twine check --strict {{ FOLDER }}/*

# Lock anew what CI and the container install (needs uv); `just lock --upgrade` takes the newest versions
lock *ARGS:
    .ci/lock {{ ARGS }}

# Open the dashboard
serve *CAPTURES:
    {{ bin }}/tcpwin serve {{ CAPTURES }}
