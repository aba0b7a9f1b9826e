// Runs the kept inputs of fuzz targets through them, without a fuzzer: in every preset, by ./do test.
// replay DIRECTORY NAME: every file of DIRECTORY/NAME, through target NAME. Exit 1: there is no such target, or nothing to run.
// replay canary: the input that the canary must crash at.
#include "tests/fuzz/replay.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>
#include <vector>

using ccixfer::fuzz::ReplayTarget;

namespace {

// From memory of just that length, so that AddressSanitizer sees a byte too many.
void run(const ReplayTarget& target, const std::vector<char>& input) {
  const std::unique_ptr<uint8_t[]> bytes(new uint8_t[input.size()]);
  if (!input.empty()) std::memcpy(bytes.get(), input.data(), input.size());
  static_cast<void>(target.run(bytes.get(), input.size()));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[argc - 1] : "";
  const auto targets = ccixfer::fuzz::replay_targets();
  const auto target = std::find_if(targets.begin(), targets.end(), [&](const ReplayTarget& each) { return each.name == name; });
  if (target == targets.end()) return std::fprintf(stderr, "usage: replay DIRECTORY TARGET\n"), 1;
  if (argc == 2) return run(*target, {'f', 'i', 'n', 'd'}), 0;
  run(*target, {});
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(argv[1]) / name)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::vector<char> input((std::istreambuf_iterator<char>(in)), {});
    std::printf("%s\n", entry.path().filename().c_str());  // the last one is the one that fails
    std::fflush(stdout);
    run(*target, input);
    ++files;
  }
  return files == 0 ? 1 : 0;
}
