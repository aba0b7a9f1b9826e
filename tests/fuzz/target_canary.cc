// Must crash within seconds: proof that the fuzzer, its instrumentation and the script that runs it find what they are for.
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size >= 4 && data[0] == 'f' && data[1] == 'i' && data[2] == 'n' && data[3] == 'd') {
    volatile const uint8_t* behind = data + size;
    static_cast<void>(behind[0]);  // one byte too many: AddressSanitizer's to report
  }
  return 0;
}
