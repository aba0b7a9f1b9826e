// A file in the place of a descriptor; what was written to it.
#pragma once
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <vector>

namespace ccixfer {

class Written {
 public:
  Written() : file_(std::tmpfile()) { REQUIRE(file_ != nullptr); }
  ~Written() { std::fclose(file_); }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;
  [[nodiscard]] int fd() const { return fileno(file_); }
  [[nodiscard]] std::string all() const { return from(0); }
  // What was written since the last call.
  std::string take() {
    std::string text = from(read_);
    read_ += static_cast<off_t>(text.size());
    return text;
  }
  // The lines that have `part` in them.
  [[nodiscard]] std::vector<std::string> lines(const std::string& part = "") const {
    std::vector<std::string> found;
    std::string line;
    for (const char c : all()) {
      if (c != '\n') {
        line += c;
      } else {
        if (line.find(part) != std::string::npos) found.push_back(line);
        line.clear();
      }
    }
    return found;
  }
  [[nodiscard]] bool has(const std::string& part) const { return all().find(part) != std::string::npos; }

 private:
  [[nodiscard]] std::string from(off_t offset) const {
    const off_t end = lseek(fd(), 0, SEEK_END);
    REQUIRE(end >= offset);
    std::string text(static_cast<size_t>(end - offset), '\0');
    const ssize_t got = pread(fd(), text.data(), text.size(), offset);
    REQUIRE(got >= 0);
    text.resize(static_cast<size_t>(got));
    return text;
  }
  std::FILE* file_;
  off_t read_ = 0;
};

}  // namespace ccixfer
