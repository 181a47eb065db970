// A library that is looked for at run time: CUDA's and NCCL's are linked by nothing, so that one
// wheel runs with and without GPUs, and the copy that a process has already is what is used.
//
// Two copies of NCCL in one process do not know of each other's communicators, so the order is: the
// file that was asked for; the copy that is loaded (torch's); what the loader finds by the SONAME;
// the other files. A library is never unloaded: its threads go on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace troupe::train {

struct LibrarySearch {
  std::string soname;              // "libnccl.so.2"
  std::string file;                // only this one, where it is not empty
  std::vector<std::string> files;  // tried last: where packages have them
};

class DynamicLibrary {
 public:
  /// Loads, blocking as dlopen does. kNotFound: names every place that was tried, and why not.
  static StatusOr<DynamicLibrary> Open(const LibrarySearch& search);

  /// Null where it has no such function.
  void* Find(const char* symbol) const;
  /// The file that this function is of, with all links resolved as the loader did.
  const std::string& path() const { return path_; }

 private:
  DynamicLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_;
  std::string path_;
};

}  // namespace troupe::train
