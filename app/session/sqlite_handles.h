// Owners of what SQLite gives: a database is closed and a statement finalised with the object.
#pragma once
#include <memory>

struct sqlite3;
struct sqlite3_stmt;

namespace ccixfer::session {

struct CloseDatabase {
  void operator()(sqlite3* database) const;
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const;
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

}  // namespace ccixfer::session
