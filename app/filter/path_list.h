// The names that --files-from gives, or --relative: paths below one directory, in the order of a walk.
// A walk goes from directory to directory and asks which of what is in it is meant; a destination asks
// whether a name may come. They travel to the other side as bytes.
// Errors: ErrorKind::usage for a list that is too long. decode: nullopt for bytes that are no list; they
// may be a peer's. Memory: the names.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"

namespace ccixfer::filter {

inline constexpr size_t path_list_bytes_max = 256u << 20;  // of a list that stays here
inline constexpr size_t path_list_travels_bytes_max = 32u << 10;

class PathList {
 public:
  struct Range {
    size_t begin = 0, end = 0;
    [[nodiscard]] bool empty() const { return begin >= end; }
  };
  // What the list says of one name of a directory.
  struct Child {
    std::string_view name;
    bool listed = false;   // itself; else only what is below it
    bool content = false;  // and what is in it, one level
    Range below;
  };

  // `whole`: with all that is below each name. Else a name stands for itself, and with a slash behind for what is in it too.
  explicit PathList(bool whole = false) : whole_(whole) {}
  // One name, as a user typed it: without `.` and with what `..` leads to; a slash in front means nothing.
  void add(std::string_view typed);
  // Names that end with a line, or with a zero byte. Lines that begin with # or ; are comments.
  [[nodiscard]] Result<void> add_lines(std::string_view text, bool ends_with_zero);
  void close();  // after the last name, before the questions

  [[nodiscard]] bool is_whole() const { return whole_; }
  [[nodiscard]] bool has_top() const {
    return !items_.empty() && items_.front().path.empty();
  }  // the directory and what is in it are meant
  // It has an entry of its own, though what is in it is not meant: a name begins with ./
  [[nodiscard]] bool names_top() const { return names_top_ || has_top(); }
  [[nodiscard]] Range all() const { return {has_top() ? size_t{1} : size_t{0}, items_.size()}; }
  // The first name in the directory at `directory` ("": the top), of whose names `in` is what is left; it is taken from `in`.
  [[nodiscard]] Child take(Range& in, std::string_view directory) const;
  [[nodiscard]] std::string_view take_path(Range& in) const { return items_[in.begin++].path; }  // the first one, however deep
  [[nodiscard]] Child find(Range in, std::string_view path) const;                               // of one level
  // A walk of it may come to that path.
  [[nodiscard]] bool allows(std::string_view path, bool is_directory) const;

  // usage: it cannot travel: it is too long, or one of its names is.
  [[nodiscard]] Result<void> check_travel() const;
  [[nodiscard]] std::vector<std::byte> encode() const;
  [[nodiscard]] static std::optional<PathList> decode(Bytes bytes);

 private:
  struct Item {
    std::string path;
    bool content = false;
  };
  [[nodiscard]] size_t first_not_before(Range in, std::string_view path) const;
  [[nodiscard]] size_t end_of_below(Range in, std::string_view path) const;
  bool whole_;
  bool names_top_ = false;
  std::vector<Item> items_;
};

}  // namespace ccixfer::filter
