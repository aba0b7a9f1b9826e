#include "app/session/sqlite_handles.h"

#include <sqlite3.h>

namespace ccixfer::session {

void CloseDatabase::operator()(sqlite3* database) const { sqlite3_close_v2(database); }
void FinalizeStatement::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

}  // namespace ccixfer::session
