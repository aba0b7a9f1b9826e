#!/usr/bin/env bash
# The one script of ccixfer. Each command does all the set-up it needs by itself.
#   ./do deps     the Debian packages (apt; sudo where this is not root), and promtool, which two tests need
#   ./do build    the release binary, build/release/ccixfer
#   ./do install [PREFIX]   the binary, manual pages, completions for shells, systemd units and examples, below PREFIX (/usr/local)
#   ./do package  a Debian package of the commit that is checked out, build/package/ccixfer_*.deb, looked at by lintian
#   ./do package --twice   builds it again in another place and without a cache: both are equal to the byte
#   ./do package --test    installs it in a fresh root, uses, upgrades and purges it there (root, a Debian mirror; minutes)
#   ./do test     everything: unit and contract tests under ASan+UBSan, simulated seeds, end-to-end tests and a
#     comparison with rsync on the release build
#   ./do demo     a tree and a large file travel sender -> router -> router -> receiver over three subnets and arrive verified
#   ./do test-rdma [CASE...]   what needs an RDMA device, in an emulated machine with Soft-RoCE (qemu; no device, no KVM, no root)
#   ./do lint [--sample K]   clang-format, clang-tidy, the layer check; K: clang-tidy of what changed lately and each K-th other file
#   ./do bench [--only NAME,...]   ccixfer beside GridFTP, rsync, scp, iperf3 and socat, one run, interleaved; a table and JSON
#     NAME: file, changed, tree, crowd, million, team, team-million, disk, disk-tree, secured, secured-tree, handshakes, secured-latency, secured-router, latency, rma, udp, eth, shm, empty-turn, rvma, simulator, scaling, map, routers, workers, page, wan
#   ./do bench --before BUILD   the same figures beside an earlier version, a directory as build/release
#   ./do mutants [--room ROOM] [--count N] [--seed S]   small changes to the product, each alone: which do the tests notice?
#   ./do mutants --planted [NAME-PART | --sample N]   errors that were planted by hand: do the tests still catch each?
#   ./do fuzz [SECONDS]   every fuzz target for that long each (default 20), and the canary that must be found
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

# The only list of what the project needs from Debian.
build_packages=(g++ cmake ninja-build ccache pkg-config git ca-certificates
  libboost-dev libcli11-dev libtoml11-dev catch2 libfmt-dev libspdlog-dev libexpected-dev nlohmann-json3-dev libxxhash-dev libzstd-dev
  libsqlite3-dev libssl-dev libseccomp-dev
  libibverbs-dev librdmacm-dev)  # verbs; without them the program is built without it
test_packages=(python3 iproute2 rsync util-linux strace procps man-db systemd openssl faketime python3-jsonschema bindfs fusefat
  dosfstools e2fsprogs xfsprogs gnuplot-nox
  logrotate  # test_units: what our rules do to an audit log
  chromium  # test_page reads the status page as a browser has it
  slurmctld slurmd slurm-client munge)  # test_slurm sends by the tasks of a job step, and takes a node away
# The emulated machine: the emulator, what its programs and modules come from (kmod: depmod), and the stock programs for verbs.
rdma_packages=(qemu-system-x86 kmod busybox-static iproute2 python3 rdma-core ibverbs-providers ibverbs-utils rdmacm-utils perftest)
package_packages=(debhelper dpkg-dev lintian)
package_test_packages=(mmdebstrap python3 iproute2 util-linux)
lint_packages=(clang-format-14 clang-tidy-14 clang-14)
fuzz_packages=(clang-14 libclang-rt-14-dev)
mutants_packages=(python3-clang-14)
bench_packages=(iproute2 globus-gass-copy-progs globus-gridftp-server-progs rsync iperf3 socat openssh-server openssh-client python3 e2fsprogs xfsprogs)

need() {  # need PACKAGE...: installs those that are missing
  local missing=() p
  for p in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return
  local root=(); [ "$(id -u)" -eq 0 ] || root=(sudo)
  echo "installing: ${missing[*]}" >&2
  "${root[@]}" apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
}

# promtool judges metrics and rules. Its package brings a service that nobody needs here, so it is unpacked and not installed.
need_promtool() {
  if command -v promtool >/dev/null || [ -x build/prometheus/usr/bin/promtool ]; then return; fi
  echo 'unpacking: promtool of the package prometheus' >&2
  local root=(); [ "$(id -u)" -eq 0 ] || root=(sudo)
  mkdir -p build/prometheus
  (cd build/prometheus && { apt-get download -q prometheus >/dev/null 2>&1 ||
    { "${root[@]}" apt-get update -q && apt-get download -q prometheus; } >/dev/null; } && dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb)
}

jobs=$(nproc)
configure() {  # configure PRESET: once; later changes re-run cmake through ninja
  [ -f "build/$1/build.ninja" ] || cmake --preset "$1" >/dev/null
}
build() {  # build PRESET [TARGET...]
  configure "$1"
  local preset=$1; shift
  # ccache and ninja: a build that is fresh is not repeated
  cmake --build "build/$preset" -j "$jobs" -- --quiet "$@"
}

cmd_deps() { need "${build_packages[@]}" "${test_packages[@]}"; need_promtool; }
cmd_build() { need "${build_packages[@]}"; build release ccixfer; echo "build/release/ccixfer"; }

cmd_install() {
  local prefix=${1:-/usr/local}
  case $prefix in /*) ;; *) echo "not an absolute path: $prefix: ./do install [PREFIX]" >&2; return 1 ;; esac
  cmd_build >/dev/null
  cmake --install build/release --prefix "$prefix"
}

# The packaging stands in conf/debian: it takes its place beside the sources in a tree of the commit.
package_version() {
  local version; version=$(sed -n 's/^project(ccixfer VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  # What is not a release sorts before it, by the time of its commit.
  git describe --exact-match --match "v$version" HEAD >/dev/null 2>&1 ||
    version+="~$(TZ=UTC0 git log -1 --date=format-local:%Y%m%d%H%M%S --format=%cd.g%h --abbrev=10)"
  echo "$version-1"
}
build_package() {  # build_package DIRECTORY: its log and the .deb are there
  local tree=$1/ccixfer
  rm -rf "$1" && mkdir -p "$tree"
  git archive HEAD | tar -x -C "$tree"
  mv "$tree/conf/debian" "$tree/debian"
  # The commit's time is that of all files in the package (SOURCE_DATE_EPOCH).
  printf 'ccixfer (%s) bookworm; urgency=medium\n\n  * Commit %s.\n\n -- %s  %s\n' "$(package_version)" "$(git rev-parse HEAD)" \
    "$(sed -n 's/^Maintainer: //p' "$tree/debian/control")" "$(TZ=UTC0 git log -1 --date=rfc2822-local --format=%cd)" >"$tree/debian/changelog"
  # debhelper gives a build a home of its own, and the cache of compiled files is not in it.
  (cd "$tree" && CCACHE_DIR=$(ccache -k cache_dir) DEB_BUILD_OPTIONS="parallel=$jobs" dpkg-buildpackage -b -us -uc) >"$1/log" 2>&1 ||
    { tail -n 40 "$1/log" >&2; return 1; }
}

cmd_package() {
  need "${build_packages[@]}" "${package_packages[@]}"
  git diff --quiet HEAD || echo "changes that are not committed are not in the package" >&2
  build_package build/package
  lintian --fail-on error,warning build/package/ccixfer_*.changes
  echo build/package/ccixfer_*.deb
  case ${1:-} in
    '') ;;
    --twice)
      CCACHE_DISABLE=1 build_package build/package-again/elsewhere
      local deb
      for deb in build/package/*.deb; do cmp "$deb" "build/package-again/elsewhere/${deb##*/}"; done
      echo "package: two builds are equal" ;;
    --test)
      need "${package_test_packages[@]}"
      python3 tests/package/run.py build/package/ccixfer_*.deb ;;
    *) echo "./do package [--twice | --test]" >&2; return 1 ;;
  esac
}

cmd_demo() {
  need "${build_packages[@]}" "${test_packages[@]}"
  build release ccixfer
  python3 tests/e2e/demo.py
}

cmd_test() {
  need "${build_packages[@]}" "${test_packages[@]}" "${mutants_packages[@]}"
  local failed=()
  python3 tests/check_layers.py || failed+=(layers)
  /usr/bin/python3 tests/mutants/test_tool.py || failed+=('the mutants tool')
  python3 tests/rdma/test_machine.py || failed+=('the emulated machine')
  build dev unit_and_contract
  # One more than there are processors: the contract suite over sockets mostly waits.
  ctest --test-dir build/dev -L 'unit|contract' --output-on-failure -j "$((jobs + 1))" || failed+=('unit and contract')
  build release ccixfer sim sim_deadlock sim_power_cuts
  # The swarms compute and the end-to-end tests mostly wait: side by side, and these go first. In a group of their own, which ends as one.
  seeds_log=$(mktemp)
  CCIXFER_SIM_SEEDS=${CCIXFER_SIM_SEEDS:-100} setsid nice -n 19 ctest --test-dir build/release -L sim --output-on-failure -j "$jobs" >"$seeds_log" 2>&1 &
  seeds=$!
  trap 'kill -- -"$seeds" 2>/dev/null || true; rm -f "$seeds_log"' EXIT
  python3 tests/e2e/run.py --jobs "$jobs" || failed+=('end to end')
  python3 tests/differential/run.py --seeds "${CCIXFER_DIFFERENTIAL_SEEDS:-1000}" || failed+=(differential)
  wait "$seeds" || failed+=(swarms)
  cat "$seeds_log"
  [ ${#failed[@]} -eq 0 ] && { echo "all tests passed"; return; }
  # The last line, as who reads only the end of a long log should know where to look.
  local what
  printf -v what '%s, ' "${failed[@]}"
  echo "some tests FAILED: ${what%, }"
  return 1
}

cmd_test_rdma() {
  need "${build_packages[@]}" "${rdma_packages[@]}"
  local programs; read -ra programs <<<"$(python3 tests/rdma/run.py --programs "$@")"
  [ ${#programs[@]} -eq 0 ] || build release "${programs[@]}"
  python3 tests/rdma/run.py "$@"
}

# The product's sources; with `--sample K`, those of the last 20 commits and each K-th of the others, chosen by the commit: a submission
# has to be checked in bounded time, and what did not change was checked when it did.
lint_sources() {
  local sources; sources=$(git ls-files 'app/*.cc' 'core/*.cc' 'transports/*.cc' 'routing/*.cc')
  [ "${1:-}" = --sample ] || { echo "$sources"; return; }
  local commit=$((16#$(git rev-parse HEAD | cut -c1-6)))
  { git log -20 --name-only --format= | grep -Fx -f <(echo "$sources") || true
    echo "$sources" | awk -v k="$2" -v at="$commit" 'NR % k == at % k'; } | sort -u
}
cmd_lint() {
  case "${1:-} ${2:-}" in ' ' | --sample\ [1-9]*) ;; *) echo 'usage: ./do lint [--sample K]' >&2; return 1 ;; esac
  need "${build_packages[@]}" "${lint_packages[@]}" python3
  local files; mapfile -t files < <(git ls-files '*.cc' '*.h')
  clang-format-14 --dry-run --Werror "${files[@]}"
  python3 tests/check_layers.py
  configure lint  # without precompiled headers: each file includes what it uses
  lint_sources "$@" | xargs -P "$jobs" -n 4 clang-tidy-14 --quiet -p build/lint 2> >(grep -v 'warnings generated' >&2)
  echo "lint: clean"
}

cmd_bench() {
  need "${build_packages[@]}" "${bench_packages[@]}"
  build release ccixfer sim unit_map handshakes
  python3 tests/bench/run.py "$@"
}

cmd_mutants() {
  if [ "${1:-}" = --planted ]; then
    need "${build_packages[@]}" "${test_packages[@]}" "${rdma_packages[@]}"  # errors of verbs need the emulated machine
    shift
    python3 tests/mutants/planted.py "$@"
    return
  fi
  need "${build_packages[@]}" "${test_packages[@]}" "${mutants_packages[@]}"
  /usr/bin/python3 tests/mutants/mutants.py "$@"  # Debian's: it has libclang
}

cmd_fuzz() {
  need "${build_packages[@]}" "${fuzz_packages[@]}"
  build fuzz fuzz_targets
  bash tests/fuzz/run.sh build/fuzz "${1:-20}"
}

case ${1:-} in
  deps|build|install|package|demo|test|test-rdma|lint|bench|mutants|fuzz) command=cmd_${1//-/_}; shift; "$command" "$@" ;;
  *) sed -n '2,19p' "$0" | sed 's/^# \{0,1\}//'; exit 1 ;;
esac
