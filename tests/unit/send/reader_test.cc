// Files into buffers: what a reader says of each file, what stands in the buffer then, and that nothing stays open.
#include "app/send/reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

using send::Follow;
using send::Listed;
using send::ReadOutcome;
using send::SourcePlace;
using session::SourceOutcome;

constexpr uint64_t mib = 1u << 20;

// A directory with what a reader needs to read a file of it.
struct Shelf {
  Shelf() : pool(session::segment_bytes_max, 1) { fd = ::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY); }
  ~Shelf() {
    ::close(fd);
    CHECK(files.open_now == 0);
  }
  Shelf(const Shelf&) = delete;
  Shelf& operator=(const Shelf&) = delete;
  [[nodiscard]] Listed listed(const std::string& name) {
    ports::FileStat stat;
    REQUIRE(files.stat_at(ports::FileSystem::no_directory, dir.path(name), stat, true) >= 0);
    return {stat.size_bytes, stat.mtime, send::version_of(stat)};
  }
  void plan(const std::string& name, const Listed& as, Follow follow = Follow::none) {
    send::PackItem item;
    item.index = 100 + pack.items.size();
    item.directory = fd;
    item.follow = follow;
    item.name_at = static_cast<uint32_t>(pack.names.size());
    item.name_bytes = static_cast<uint32_t>(name.size());
    item.listed = as;
    pack.names += name;
    pack.planned_bytes += as.size_bytes + session::pack_record_bytes;
    pack.items.push_back(item);
  }
  [[nodiscard]] ports::FileTime change(const std::string& name) {
    ports::FileStat stat;
    REQUIRE(files.stat_at(ports::FileSystem::no_directory, dir.path(name), stat, true) >= 0);
    return stat.ctime;
  }
  // A new mode, and so a new change time (which has the grain of a tick): another version of the same size and time.
  void touch(const std::string& name) {
    const uint64_t before = listed(name).version;
    for (unsigned i = 0; listed(name).version == before; ++i) {
      std::filesystem::permissions(dir.path(name),
                                   i % 2 == 0 ? std::filesystem::perms::owner_all : std::filesystem::perms::owner_read);
    }
  }
  [[nodiscard]] ReadOutcome opened(const std::string& name, const Listed& as, Follow follow = Follow::none) {
    ReadOutcome result;
    const int file = send::open_listed(files, {fd, name, follow}, as, result);
    CHECK((file >= 0) == (result.outcome == SourceOutcome::ok));
    if (file >= 0) files.close(file);
    return result;
  }

  TempDir dir;
  int fd = -1;
  WatchedFiles files;
  memory::Pool pool;
  send::Pack pack;
};

TEST_CASE("read_pack__some_cannot_be_read__the_others_stand_one_behind_the_other") {
  Shelf shelf;
  for (const char* name : {"a", "gone", "c", "empty"}) shelf.dir.file(name, std::string(name) == "empty" ? "" : name);
  for (const char* name : {"a", "gone", "c", "empty"}) shelf.plan(name, shelf.listed(name));
  std::filesystem::remove(shelf.dir.path("gone"));
  memory::Loan loan = shelf.pool.lend();
  std::atomic<uint64_t> steps{0};
  send::read_pack(shelf.files, shelf.pack, loan.bytes(), &steps);
  CHECK(steps == 4);
  CHECK(shelf.pack.items[1].result.outcome == SourceOutcome::vanished);
  CHECK(shelf.pack.count == 3);
  CHECK(shelf.pack.content_bytes == 2);
  CHECK(shelf.pack.data_bytes == 3 * session::pack_record_bytes + 2);
  Bytes data = loan.bytes().first(shelf.pack.data_bytes);
  CHECK(shelf.pack.hash == xxh3_128(data));
  for (const auto& [index, content] : std::vector<std::pair<uint64_t, std::string>>{{100, "a"}, {102, "c"}, {103, ""}}) {
    session::PackRecord record;
    REQUIRE(session::next_pack_record(data, record));
    CHECK(record.index == index);
    CHECK(as_text(record.content) == content);
    CHECK(record.hash == xxh3_128(as_bytes(content)));
  }
  CHECK(data.empty());
}

TEST_CASE("read_pack__nothing_in_the_first_place__the_next_one_is_read") {
  Shelf shelf;
  shelf.dir.file("there", "there");
  shelf.plan("absent", shelf.listed("there"));
  shelf.pack.items.back().others = {{shelf.fd, "absent too"}, {shelf.fd, "there"}};
  memory::Loan loan = shelf.pool.lend();
  send::read_pack(shelf.files, shelf.pack, loan.bytes());
  CHECK(shelf.pack.items.front().result.outcome == SourceOutcome::ok);
  CHECK(shelf.pack.count == 1);
}

TEST_CASE("read_pack__exact__another_version_is_changed_though_size_and_time_are_the_same") {
  Shelf shelf;
  for (const char* name : {"a", "b"}) shelf.dir.file(name, name);
  Listed exact = shelf.listed("a");
  exact.exact = true;
  shelf.plan("a", shelf.listed("a"));
  shelf.plan("a", exact);
  Listed other = shelf.listed("b");
  other.exact = true;
  shelf.plan("b", other);
  shelf.touch("a");
  memory::Loan loan = shelf.pool.lend();
  send::read_pack(shelf.files, shelf.pack, loan.bytes());
  CHECK(shelf.pack.items[0].result.outcome == SourceOutcome::ok);
  CHECK(shelf.pack.items[1].result.outcome == SourceOutcome::changed);
  CHECK(shelf.pack.items[2].result.outcome == SourceOutcome::ok);
}

TEST_CASE("reader__errors_of_a_file__vanished_changed_or_unreadable_with_the_error") {
  struct Row {
    int error;
    SourceOutcome outcome;
    int told;
  };
  const Row row =
      GENERATE(Row{ENOENT, SourceOutcome::vanished, 0}, Row{ENOTDIR, SourceOutcome::vanished, 0},
               Row{ESTALE, SourceOutcome::changed, 0}, Row{ELOOP, SourceOutcome::changed, 0}, Row{EXDEV, SourceOutcome::changed, 0},
               Row{EACCES, SourceOutcome::unreadable, EACCES}, Row{EIO, SourceOutcome::unreadable, EIO});
  const std::string where = GENERATE("open", "fstat", "second fstat", "pread");
  CAPTURE(row.error, where);
  Shelf shelf;
  shelf.dir.file("f", "content");
  const Listed listed = shelf.listed("f");
  shelf.plan("f", listed);
  int calls = 0;
  shelf.files.hook = [&](std::string_view call, std::string_view) {
    if (call != (where == "second fstat" ? "fstat" : where)) return 0;
    return where == "second fstat" && ++calls == 1 ? 0 : -row.error;
  };
  memory::Loan loan = shelf.pool.lend();
  send::read_pack(shelf.files, shelf.pack, loan.bytes());
  CHECK(shelf.pack.items[0].result.outcome == row.outcome);
  CHECK(shelf.pack.items[0].result.error == row.told);
  CHECK(shelf.pack.count == 0);
  CHECK(shelf.pack.data_bytes == 0);
  if (where == "open" || where == "fstat") {
    const ReadOutcome result = shelf.opened("f", listed);
    CHECK(result.outcome == row.outcome);
    CHECK(result.error == row.told);
  }
  if (where == "pread") {
    const int file = ::open(shelf.dir.path("f").c_str(), O_RDONLY);
    const send::PieceRead read = send::read_piece(shelf.files, file, 0, listed.size_bytes, loan.bytes());
    CHECK(read.result.outcome == row.outcome);
    CHECK(read.result.error == row.told);
    ::close(file);
  }
}

TEST_CASE("read_pack__a_file_that_is_never_still__is_tried_four_times") {
  Shelf shelf;
  shelf.dir.file("f", "content");
  shelf.plan("f", shelf.listed("f"));
  uint32_t reads = 0;
  const uint32_t still_from = GENERATE(4u, 5u);
  CAPTURE(still_from);
  shelf.files.after_pread = [&](int) {
    if (++reads < still_from) shelf.touch("f");
  };
  memory::Loan loan = shelf.pool.lend();
  send::read_pack(shelf.files, shelf.pack, loan.bytes());
  CHECK(reads == 4);
  CHECK(shelf.pack.items[0].result.outcome == (still_from == 4 ? SourceOutcome::ok : SourceOutcome::changed));
}

TEST_CASE("reader__attributes_that_the_host_keeps_for_a_while__the_look_behind_the_last_byte_asks_the_server") {
  Shelf shelf;
  shelf.files.keeps_attributes = true;
  shelf.dir.file("f", "content");
  const Listed listed = shelf.listed("f");
  shelf.plan("f", listed);
  uint32_t reads = 0;
  shelf.files.after_pread = [&](int) {
    if (++reads == 1) shelf.touch("f");
  };
  memory::Loan loan = shelf.pool.lend();
  send::read_pack(shelf.files, shelf.pack, loan.bytes());
  CHECK(reads == 2);
  CHECK(shelf.pack.items[0].result.outcome == SourceOutcome::ok);

  ReadOutcome result;
  const Listed again = shelf.listed("f");
  const int file = send::open_listed(shelf.files, {shelf.fd, "f"}, again, result);
  REQUIRE(file >= 0);
  CHECK(send::check_listed(shelf.files, file, again).outcome == SourceOutcome::ok);
  shelf.touch("f");
  CHECK(send::check_listed(shelf.files, file, again).outcome == SourceOutcome::changed);
  shelf.files.close(file);
}

TEST_CASE("reader__a_file_that_is_not_what_was_listed__changed") {
  Shelf shelf;
  shelf.dir.file("f", "content");
  shelf.dir.directory("d");
  Listed listed = shelf.listed("f");
  CHECK(shelf.opened("f", listed).outcome == SourceOutcome::ok);
  bool matters_to_packs = true;
  std::string name = "f";
  SECTION("another size") { ++listed.size_bytes; }
  SECTION("another second") { ++listed.mtime.seconds; }
  SECTION("another nanosecond") { ++listed.mtime.nanoseconds; }
  SECTION("a directory by now") {
    name = std::string("d");
    listed = shelf.listed("d");
  }
  SECTION("another version") {
    ++listed.version;
    matters_to_packs = false;  // its size and its time are what the other end will give it
  }
  CHECK(shelf.opened(name, listed).outcome == SourceOutcome::changed);
  shelf.plan(name, listed);
  memory::Loan loan = shelf.pool.lend();
  send::read_pack(shelf.files, shelf.pack, loan.bytes());
  CHECK(shelf.pack.items[0].result.outcome == (matters_to_packs ? SourceOutcome::changed : SourceOutcome::ok));
}

TEST_CASE("reader__links_on_the_way__followed_where_they_are_followed") {
  Shelf shelf;
  shelf.dir.file("real/in/f", "content");
  std::filesystem::create_symlink("real", shelf.dir.path("link"));
  std::filesystem::create_symlink("f", shelf.dir.path("real/in/last"));
  std::filesystem::create_symlink("in", shelf.dir.path("real/second"));
  const Listed listed = shelf.listed("real/in/f");
  for (const char* name : {"link/in/f", "link/in/last", "link/second/f", "real/second/last", "real/in/last"}) {
    CAPTURE(name);
    CHECK(shelf.opened(name, listed, Follow::all).outcome == SourceOutcome::ok);
    CHECK(shelf.files.open_now == 0);
    CHECK(shelf.opened(name, listed).outcome == SourceOutcome::changed);
  }
  CHECK(shelf.opened("link/none/f", listed, Follow::all).outcome == SourceOutcome::vanished);
  CHECK(shelf.opened("link/in/f/g", listed, Follow::all).outcome == SourceOutcome::vanished);
  CHECK(shelf.files.open_now == 0);
  CHECK(shelf.files.open_most == 2);
}

// A list leads through a link to a directory; what is listed is the file that stands there.
TEST_CASE("reader__links_on_the_way_only__no_link_that_took_the_place_of_a_file_is_followed") {
  Shelf shelf;
  shelf.dir.file("real/in/f", "content");
  std::filesystem::create_symlink("real", shelf.dir.path("link"));
  std::filesystem::create_symlink("f", shelf.dir.path("real/in/last"));
  const Listed listed = shelf.listed("real/in/f");
  CHECK(shelf.opened("link/in/f", listed, Follow::on_the_way).outcome == SourceOutcome::ok);
  for (const char* name : {"link/in/last", "real/in/last"}) {
    CHECK(shelf.opened(name, listed, Follow::on_the_way).outcome == SourceOutcome::changed);
    shelf.plan(name, listed, Follow::on_the_way);
  }
  memory::Loan loan = shelf.pool.lend();
  send::read_pack(shelf.files, shelf.pack, loan.bytes());
  for (const auto& item : shelf.pack.items) CHECK(item.result.outcome == SourceOutcome::changed);
  CHECK(shelf.pack.count == 0);
}

TEST_CASE("read_pack__over_a_link__another_file_is_changed_though_size_and_time_are_the_same") {
  Shelf shelf;
  shelf.dir.file("own/f", "content");
  shelf.dir.file("others/f", "secret!");
  const Listed listed = shelf.listed("own/f");
  std::filesystem::last_write_time(shelf.dir.path("others/f"), std::filesystem::last_write_time(shelf.dir.path("own/f")));
  REQUIRE(shelf.listed("others/f").mtime == listed.mtime);
  std::filesystem::create_symlink("own", shelf.dir.path("there"));
  std::filesystem::create_symlink("others", shelf.dir.path("led"));
  std::filesystem::create_symlink("others/f", shelf.dir.path("file"));
  shelf.plan("there/f", listed, Follow::on_the_way);
  shelf.plan("there/f", listed, Follow::all);
  shelf.plan("led/f", listed, Follow::on_the_way);
  shelf.plan("led/f", listed, Follow::all);
  shelf.plan("file", listed, Follow::all);
  memory::Loan loan = shelf.pool.lend();
  send::read_pack(shelf.files, shelf.pack, loan.bytes());
  for (size_t i = 0; i < shelf.pack.items.size(); ++i) {
    CAPTURE(i);
    CHECK(shelf.pack.items[i].result.outcome == (i < 2 ? SourceOutcome::ok : SourceOutcome::changed));
  }
}

// Times have a grain: a write right behind the first look leaves them as they were, so the look has to be older than that.
TEST_CASE("reader__file_changed_a_moment_ago__is_looked_at_anew_before_it_is_read") {
  Shelf shelf;
  shelf.dir.file("f", "before");
  const Listed listed = shelf.listed("f");
  const auto time = std::filesystem::last_write_time(shelf.dir.path("f"));
  int waits = 0;
  bool goes_on = false;
  shelf.files.waits_out = [&](ports::FileTime change) {
    CHECK(change == shelf.change("f"));
    shelf.dir.file("f", "behind");  // of the same size and time
    std::filesystem::last_write_time(shelf.dir.path("f"), time);
    return ++waits == 1 || goes_on;
  };
  memory::Loan loan = shelf.pool.lend();
  shelf.plan("f", listed);
  SECTION("a small file") {
    std::string read;
    shelf.files.after_pread = [&](int) { read = "read"; };
    shelf.files.waits_out = [&](ports::FileTime) {
      CHECK(read.empty());
      if (++waits > 1) return false;
      shelf.dir.file("f", "behind");
      std::filesystem::last_write_time(shelf.dir.path("f"), time);
      return true;
    };
    send::read_pack(shelf.files, shelf.pack, loan.bytes());
    CHECK(waits == 2);
    CHECK(shelf.pack.items[0].result.outcome == SourceOutcome::ok);
    CHECK(as_text(loan.bytes().subspan(session::pack_record_bytes, 6)) == "behind");
  }
  SECTION("a small file that goes on changing") {
    goes_on = true;
    send::read_pack(shelf.files, shelf.pack, loan.bytes());
    CHECK(waits == send::read_tries_max);
    CHECK(shelf.pack.items[0].result.outcome == SourceOutcome::changed);
  }
  SECTION("a file that is the listed version or none") {
    CHECK(shelf.opened("f", listed).outcome == SourceOutcome::changed);
    CHECK(waits == 1);
  }
}

TEST_CASE("read_piece__whole_last_and_cut_short__its_bytes_and_hash_or_changed") {
  Shelf shelf;
  shelf.dir.file_of("f", 9 * mib);
  const std::string content = pattern(9 * mib);
  const int file = ::open(shelf.dir.path("f").c_str(), O_RDONLY);
  memory::Loan loan = shelf.pool.lend();
  for (uint64_t piece = 0; piece < 3; ++piece) {
    const std::string expected = content.substr(piece * 4 * mib, 4 * mib);
    const send::PieceRead read = send::read_piece(shelf.files, file, piece, 9 * mib, loan.bytes());
    CHECK(read.result.outcome == SourceOutcome::ok);
    CHECK(read.data_bytes == expected.size());
    CHECK(read.hash == xxh3_128(as_bytes(expected)));
    CHECK((as_text(loan.bytes().first(read.data_bytes)) == expected));
  }
  for (const uint64_t there : {9 * mib - 1, 8 * mib, 6 * mib}) {
    std::filesystem::resize_file(shelf.dir.path("f"), there);
    CHECK(send::read_piece(shelf.files, file, 2, 9 * mib, loan.bytes()).result.outcome == SourceOutcome::changed);
  }
  ::close(file);
}

TEST_CASE("read_piece__can_be_shown__the_file_stands_in_the_buffer_but_for_its_last_page") {
  Shelf shelf;
  const uint64_t size = GENERATE(8 * mib, 8 * mib + 1);
  shelf.dir.file_of("f", size);
  const int file = ::open(shelf.dir.path("f").c_str(), O_RDONLY);
  shelf.files.after_show = [](int) {};
  for (uint64_t piece = 0; piece < send::pieces_of(size); ++piece) {
    memory::Loan loan = shelf.pool.lend();
    const std::string expected = pattern(size).substr(piece * 4 * mib, 4 * mib);
    const send::PieceRead read = send::show_or_read_piece(shelf.files, file, piece, size, loan);
    CHECK(read.result.outcome == SourceOutcome::ok);
    CHECK(loan.shows_file() == (piece < 2));
    CHECK(read.data_bytes == expected.size());
    CHECK(read.hash == xxh3_128(as_bytes(expected)));
    CHECK((as_text(loan.bytes().first(read.data_bytes)) == expected));
  }
  ::close(file);
}

TEST_CASE("read_piece__into_buffers_that_keep_their_pages__is_read_and_not_shown") {
  Shelf shelf;
  shelf.dir.file_of("f", 8 * mib);
  const int file = ::open(shelf.dir.path("f").c_str(), O_RDONLY);
  shelf.pool.keep_pages();
  memory::Loan loan = shelf.pool.lend();
  const send::PieceRead read = send::show_or_read_piece(shelf.files, file, 0, 8 * mib, loan);
  CHECK(read.result.outcome == SourceOutcome::ok);
  CHECK_FALSE(loan.shows_file());
  CHECK((as_text(loan.bytes().first(read.data_bytes)) == pattern(8 * mib).substr(0, 4 * mib)));
  ::close(file);
}

TEST_CASE("read_piece__cut_short_while_it_is_shown__not_shown_and_changed") {
  Shelf shelf;
  shelf.dir.file_of("f", 8 * mib);
  const int file = ::open(shelf.dir.path("f").c_str(), O_RDONLY);
  shelf.files.after_show = [&](int) { std::filesystem::resize_file(shelf.dir.path("f"), mib); };
  memory::Loan loan = shelf.pool.lend();
  const send::PieceRead read = send::show_or_read_piece(shelf.files, file, 0, 8 * mib, loan);
  CHECK(read.result.outcome == SourceOutcome::changed);
  CHECK_FALSE(loan.shows_file());
  ::close(file);
}

TEST_CASE("digest_file__of_more_pieces_than_a_digest_is_kept_of__nothing_is_opened") {
  Shelf shelf;
  memory::Loan loan = shelf.pool.lend();
  Hash128 digest;
  std::atomic<uint64_t> steps{0};
  bool is_opened = false;
  shelf.files.hook = [&](std::string_view call, std::string_view) {
    is_opened = is_opened || call == "open";
    return 0;
  };
  Listed listed;
  listed.size_bytes = send::digest_pieces_max * session::piece_bytes;
  CHECK_FALSE(send::digest_file(shelf.files, {shelf.fd, "absent"}, listed, loan.bytes(), digest, steps));
  CHECK(is_opened);
  is_opened = false;
  ++listed.size_bytes;
  CHECK_FALSE(send::digest_file(shelf.files, {shelf.fd, "absent"}, listed, loan.bytes(), digest, steps));
  CHECK_FALSE(is_opened);
}

TEST_CASE("digest_file__of_one_version_only__and_a_step_each_piece") {
  Shelf shelf;
  shelf.dir.file_of("f", 9 * mib);
  const Listed listed = shelf.listed("f");
  const std::string content = pattern(9 * mib);
  std::vector<Hash128> hashes;
  for (uint64_t at = 0; at < content.size(); at += 4 * mib) hashes.push_back(xxh3_128(as_bytes(content.substr(at, 4 * mib))));
  memory::Loan loan = shelf.pool.lend();
  std::atomic<uint64_t> steps{0};
  Hash128 digest{};
  const auto digested = [&] { return send::digest_file(shelf.files, {shelf.fd, "f"}, listed, loan.bytes(), digest, steps); };
  SECTION("it stays") {
    CHECK(digested());
    CHECK(digest == session::file_digest(hashes));
    CHECK(steps == 3);
  }
  SECTION("it is not there") {
    std::filesystem::remove(shelf.dir.path("f"));
    CHECK_FALSE(digested());
  }
  SECTION("it is touched while it is read") {
    int reads = 0;
    shelf.files.after_pread = [&](int) {
      if (++reads == 2) shelf.touch("f");
    };
    CHECK_FALSE(digested());
    CHECK(steps == 3);
  }
  SECTION("its second piece cannot be read") {
    shelf.files.hook = [&](std::string_view call, std::string_view) { return call == "pread" && steps == 1 ? -EIO : 0; };
    CHECK_FALSE(digested());
    CHECK(steps == 2);  // and nothing behind it
  }
}

}  // namespace
}  // namespace ccixfer::send_test
