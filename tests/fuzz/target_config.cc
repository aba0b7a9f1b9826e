// A configuration file: refused with one line that names the file, or within its bounds.
#include "app/config/config.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = program::parse_config("file.toml", std::string(as_text(fuzz::bytes_of(data, size))));
  if (!config) {
    const std::string& words = config.error().message;
    fuzz::must(config.error().kind == ErrorKind::usage && words.starts_with("file.toml:"));
    for (const char c : words) fuzz::must(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
    return 0;
  }
  for (const std::string& warning : config->warnings) {
    for (const char c : warning) fuzz::must(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
  return 0;
}
