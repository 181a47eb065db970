// The common part of the head's SQLite files: each is this user's alone, and a damaged one is set
// aside.
#pragma once

#include <string>

#include "runtime/base/status.h"

struct sqlite3;

namespace troupe::head {

/// Makes the file where there is none, and closes it to others. Before SQLite opens it, which would
/// take the mode from the umask, and give its log the file's. Not while it is open: closing any
/// descriptor of a file ends this process's locks of it.
Status MakePrivateFile(const std::string& path);

/// Returns true if the last operation of `db` failed because its file is damaged. null: it was not
/// opened.
bool IsDamaged(sqlite3* db);

/// Renames a damaged file to PATH.damaged, and removes SQLite's own files beside it. Not while it
/// is open.
Status SetAside(const std::string& path);

}  // namespace troupe::head
