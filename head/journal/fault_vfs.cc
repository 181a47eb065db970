#include "head/journal/fault_vfs.h"

#ifdef TROUPE_WITH_FAULTS

#include <sqlite3.h>

#include <cstring>

#include "runtime/base/fault.h"

namespace troupe::head {
namespace {

constexpr char kName[] = "troupe-faults";

// SQLite's file lies right behind this one, in the room that szOsFile asks for.
struct File {
  sqlite3_file base;
  sqlite3_file* inner() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

sqlite3_file* Inner(sqlite3_file* file) { return reinterpret_cast<File*>(file)->inner(); }
sqlite3_vfs* Os(sqlite3_vfs* vfs) { return static_cast<sqlite3_vfs*>(vfs->pAppData); }

int Close(sqlite3_file* f) { return Inner(f)->pMethods->xClose(Inner(f)); }
int Read(sqlite3_file* f, void* to, int n, sqlite3_int64 at) {
  return Inner(f)->pMethods->xRead(Inner(f), to, n, at);
}
int Write(sqlite3_file* f, const void* from, int n, sqlite3_int64 at) {
  switch (FaultAt("journal.write")) {
    case Fault::kFull:
      return SQLITE_FULL;
    case Fault::kFail:
      return SQLITE_IOERR_WRITE;
    default:
      return Inner(f)->pMethods->xWrite(Inner(f), from, n, at);
  }
}
int Truncate(sqlite3_file* f, sqlite3_int64 size) {
  return Inner(f)->pMethods->xTruncate(Inner(f), size);
}
int Sync(sqlite3_file* f, int flags) {
  if (FaultAt("journal.sync.before") == Fault::kFail) return SQLITE_IOERR_FSYNC;
  const int code = Inner(f)->pMethods->xSync(Inner(f), flags);
  return FaultAt("journal.sync.after") == Fault::kFail ? SQLITE_IOERR_FSYNC : code;
}
int FileSize(sqlite3_file* f, sqlite3_int64* size) {
  return Inner(f)->pMethods->xFileSize(Inner(f), size);
}
int Lock(sqlite3_file* f, int level) { return Inner(f)->pMethods->xLock(Inner(f), level); }
int Unlock(sqlite3_file* f, int level) { return Inner(f)->pMethods->xUnlock(Inner(f), level); }
int CheckLock(sqlite3_file* f, int* held) {
  return Inner(f)->pMethods->xCheckReservedLock(Inner(f), held);
}
int Control(sqlite3_file* f, int op, void* argument) {
  return Inner(f)->pMethods->xFileControl(Inner(f), op, argument);
}
int SectorSize(sqlite3_file* f) { return Inner(f)->pMethods->xSectorSize(Inner(f)); }
int Traits(sqlite3_file* f) { return Inner(f)->pMethods->xDeviceCharacteristics(Inner(f)); }

// Version 1: no shared memory, which a database that is locked exclusively does not use.
constexpr sqlite3_io_methods kMethods = {1,       Close,      Read,  Write,  Truncate,
                                         Sync,    FileSize,   Lock,  Unlock, CheckLock,
                                         Control, SectorSize, Traits};

int OpenFile(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  const int code = Os(vfs)->xOpen(Os(vfs), name, Inner(file), flags, out_flags);
  if (Inner(file)->pMethods != nullptr) file->pMethods = &kMethods;
  return code;
}
int Delete(sqlite3_vfs* v, const char* name, int sync) { return Os(v)->xDelete(Os(v), name, sync); }
int Access(sqlite3_vfs* v, const char* name, int flags, int* out) {
  return Os(v)->xAccess(Os(v), name, flags, out);
}
int FullPath(sqlite3_vfs* v, const char* name, int n, char* out) {
  return Os(v)->xFullPathname(Os(v), name, n, out);
}

sqlite3_vfs* Make() {
  sqlite3_vfs* os = sqlite3_vfs_find(nullptr);
  static sqlite3_vfs made;
  made = *os;
  made.szOsFile = static_cast<int>(sizeof(File)) + os->szOsFile;
  made.zName = kName;
  made.pNext = nullptr;
  made.pAppData = os;
  made.xOpen = OpenFile;
  made.xDelete = Delete;
  made.xAccess = Access;
  made.xFullPathname = FullPath;
  sqlite3_vfs_register(&made, 0);
  return &made;
}

}  // namespace

const char* JournalVfs() {
  static const sqlite3_vfs* made = Make();
  return made->zName;
}

}  // namespace troupe::head

#else

namespace troupe::head {
const char* JournalVfs() { return nullptr; }
}  // namespace troupe::head

#endif  // TROUPE_WITH_FAULTS
