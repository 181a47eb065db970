#include "actors/train/nccl_api.h"

#include <cstdlib>

namespace troupe::train {
namespace {

ErrorCode CodeOf(NcclResult result) {
  switch (result) {
    case NcclResult::kSystemError:
    case NcclResult::kRemoteError:
      return ErrorCode::kConnection;
    case NcclResult::kInvalidArgument:
    case NcclResult::kInvalidUsage:
      return ErrorCode::kInvalid;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

std::string VersionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

NcclFeatures FeaturesOf(int version, const NcclFunctions& functions) {
  NcclFeatures features;
  features.revoke = functions.revoke != nullptr;
  features.shrink = functions.shrink != nullptr;
  features.grow = functions.grow != nullptr && functions.comm_unique_id != nullptr;
  features.scalable = functions.init_scalable != nullptr;
  features.all_to_all = functions.all_to_all != nullptr;
  features.multi_rank = version >= NcclVersion(2, 30, 3);
  return features;
}

StatusOr<std::unique_ptr<const NcclApi>> NcclApi::Load(const std::string& file) {
  const char* chosen = std::getenv("TROUPE_NCCL_LIB");
  auto library = DynamicLibrary::Open({"libnccl.so.2", file.empty() && chosen ? chosen : file, {}});
  if (!library.ok())
    return MakeError(ErrorCode::kNotFound,
                     "NCCL cannot be used: " + MessageOf(library.status()) +
                         "\n  import torch before (its CUDA wheels bring NCCL), install "
                         "nvidia-nccl-cu13, or name the file by TROUPE_NCCL_LIB");
  std::unique_ptr<NcclApi> api(new NcclApi);
  api->path_ = library->path();
  std::string missing;
#define TROUPE_NCCL_FIND(member, symbol, parameters) \
  api->call.member = reinterpret_cast<decltype(api->call.member)>(library->Find(#symbol));
#define TROUPE_NCCL_NEED(member, symbol, parameters) \
  TROUPE_NCCL_FIND(member, symbol, parameters)       \
  if (!api->call.member) missing += " " #symbol;
  TROUPE_NCCL_REQUIRED(TROUPE_NCCL_NEED)
  TROUPE_NCCL_TEXTS(TROUPE_NCCL_NEED)
  TROUPE_NCCL_OPTIONAL(TROUPE_NCCL_FIND)
#undef TROUPE_NCCL_NEED
#undef TROUPE_NCCL_FIND
  if (!missing.empty())
    return MakeError(ErrorCode::kNotFound, api->path_ + " has no" + missing +
                                               ": it is no NCCL, or one before " +
                                               VersionText(kVersionMin));
  TROUPE_TRY(api->Check(api->call.get_version(&api->version_), "asking NCCL for its version"));
  if (api->version_ < kVersionMin)
    return MakeError(ErrorCode::kVersionMismatch,
                     api->path_ + " is NCCL " + VersionText(api->version_) + ", and " +
                         VersionText(kVersionMin) +
                         " is the earliest that can abort communicators together: install a later "
                         "nvidia-nccl-cu12 or -cu13");
  api->features_ = FeaturesOf(api->version_, api->call);
  return std::unique_ptr<const NcclApi>(std::move(api));
}

Status NcclApi::Check(NcclResult result, std::string_view doing) const {
  if (result == NcclResult::kSuccess || result == NcclResult::kInProgress) return absl::OkStatus();
  const char* last = call.last_error(nullptr);
  return MakeError(CodeOf(result), std::string(doing) + ": NCCL " + VersionText(version_) + ": " +
                                       call.error_string(result) +
                                       (last && *last ? std::string(": ") + last : std::string()));
}

}  // namespace troupe::train
