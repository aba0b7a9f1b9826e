// A receipt as it is read: its lines in order, and whether they are what was signed. First check() all of it, then read the entries
// with next(), so that nothing is done with what nobody signed.
// Errors: usage: it is no receipt. integrity: it is torn, or its lines contradict one another. authentication: the signature is not
// of these lines. protocol: a later version. file_io: it cannot be read. interrupted: `stop` said so. One line each, which names
// the file. Memory: one line. Thread: one at a time.
#pragma once
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/receipt/format.h"
#include "core/trust/peer_id.h"

namespace ccixfer::receipt {

struct Checked {
  Header header;
  End end;
  std::optional<trust::PeerId> signer;  // none: nobody signed it
};

class Reader {
 public:
  // `in`: of the caller, from its beginning, and can be sought. `name` is for words. `stop`: asked before each line; empty: never.
  Reader(std::FILE* in, std::string name, std::function<bool()> stop = {})
      : in_(in), name_(std::move(name)), stop_(std::move(stop)) {}
  [[nodiscard]] Result<Checked> check();
  // After check(): the next entry; nothing: the last one was given. Each call may find that the file changed meanwhile: integrity.
  [[nodiscard]] Result<std::optional<Entry>> next();

 private:
  [[nodiscard]] Result<std::optional<Line>> read_line();
  [[nodiscard]] Result<std::optional<Line>> read_first();
  [[nodiscard]] tl::unexpected<Error> wrong(ErrorKind kind, std::string_view what) const;

  std::FILE* const in_;
  const std::string name_;
  const std::function<bool()> stop_;
  std::string line_;  // the last one, with its line feed
  uint64_t number_ = 0;
  bool started_ = false;                    // next() was called
  trust::Sha256 again_;                     // of what next() read
  std::optional<trust::Sha256Digest> sum_;  // of what check() read
};

}  // namespace ccixfer::receipt
