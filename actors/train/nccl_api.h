// NCCL as a table of functions, loaded at run time, with what this version can do.
//
//   TROUPE_ASSIGN(auto nccl, NcclApi::Load());
//   nccl->call.all_reduce(...);
//   if (nccl->features().revoke) ...
//
// The functions follow NCCL's rules on threads, which are the caller's to keep (nccl_communicator.h
// does): one thread at a time in a communicator, and in a device.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "actors/train/dynamic_library.h"
#include "actors/train/nccl_types.h"
#include "runtime/base/status.h"

namespace troupe::train {

struct NcclFunctions {
#define TROUPE_NCCL_MEMBER(member, symbol, parameters) NcclResult(*member) parameters = nullptr;
#define TROUPE_NCCL_TEXT(member, symbol, parameters) const char*(*member)parameters = nullptr;
  TROUPE_NCCL_REQUIRED(TROUPE_NCCL_MEMBER)
  TROUPE_NCCL_OPTIONAL(TROUPE_NCCL_MEMBER)
  TROUPE_NCCL_TEXTS(TROUPE_NCCL_TEXT)
#undef TROUPE_NCCL_MEMBER
#undef TROUPE_NCCL_TEXT
};

/// The abilities of a version; callers ask for these and not for the version.
struct NcclFeatures {
  bool revoke = false;      // operations can be stopped without freeing what peers read
  bool shrink = false;      // a communicator without some of the ranks
  bool grow = false;  // a communicator with more ranks
  bool scalable = false;    // several unique ids for one communicator
  bool all_to_all = false;  // as one call
  bool multi_rank = false;  // two ranks may share a GPU, where NCCL_MULTI_RANK_GPU_ENABLE=1
};

/// Pure: what a library of this version with these functions can do.
NcclFeatures FeaturesOf(int version, const NcclFunctions& functions);
/// "2.28.9".
std::string VersionText(int version);

class NcclApi {
 public:
  /// The earliest version that is taken: communicators can be aborted together from then on.
  static constexpr int kVersionMin = NcclVersion(2, 22, 0);

  /// Loads libnccl.so.2: `file`, else TROUPE_NCCL_LIB, else the copy that the process has, else the
  /// loader's. kNotFound: there is none, or it lacks a function; kVersionMismatch: it is too old.
  static StatusOr<std::unique_ptr<const NcclApi>> Load(const std::string& file = "");

  NcclFunctions call;
  int version() const { return version_; }
  const std::string& path() const { return path_; }
  const NcclFeatures& features() const { return features_; }

  /// Ok for success, and for in progress; else what was being done, NCCL's words, and its last
  /// error: one for all communicators of the process, so this is called right after the failing
  /// call, with the device's mutex held.
  Status Check(NcclResult result, std::string_view doing) const;

 private:
  NcclApi() = default;

  int version_ = 0;
  std::string path_;
  NcclFeatures features_;
};

}  // namespace troupe::train
