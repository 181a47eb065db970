#include "head/journal/sqlite_file.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/base/unique_fd.h"
#include "runtime/os/text.h"

namespace troupe::head {

Status MakePrivateFile(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid() || fchmod(file.get(), 0600) != 0) return os::SystemError(path);
  return absl::OkStatus();
}

bool IsDamaged(sqlite3* db) {
  const int code = db == nullptr ? SQLITE_OK : sqlite3_errcode(db) & 0xff;
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

Status SetAside(const std::string& path) {
  if (std::rename(path.c_str(), (path + ".damaged").c_str()) != 0) return os::SystemError(path);
  for (const char* beside : {"-wal", "-shm"}) unlink((path + beside).c_str());
  return absl::OkStatus();
}

}  // namespace troupe::head
