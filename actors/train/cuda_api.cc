#include "actors/train/cuda_api.h"

#include <cstdlib>

namespace troupe::train {
namespace {

Status NoDriver(const Status& why) {
  return MakeError(
      ErrorCode::kNotFound,
      "CUDA cannot be used: " + MessageOf(why) +
          "\n  libcuda.so.1 comes with NVIDIA's driver; in a container it is mounted by "
          "the NVIDIA container runtime (--gpus)");
}

}  // namespace

StatusOr<std::unique_ptr<const CudaApi>> CudaApi::Load(const std::string& file) {
  const char* chosen = std::getenv("TROUPE_CUDA_LIB");
  auto library = DynamicLibrary::Open({"libcuda.so.1", file.empty() && chosen ? chosen : file, {}});
  if (!library.ok()) return NoDriver(library.status());
  std::unique_ptr<CudaApi> api(new CudaApi);
  api->path_ = library->path();
  std::string missing;
#define TROUPE_CUDA_FIND(member, symbol, parameters)                                       \
  api->call.member = reinterpret_cast<decltype(api->call.member)>(library->Find(#symbol)); \
  if (!api->call.member) missing += " " #symbol;
  TROUPE_CUDA_FUNCTIONS(TROUPE_CUDA_FIND)
#undef TROUPE_CUDA_FIND
  if (!missing.empty())
    return MakeError(ErrorCode::kNotFound, api->path_ + " has no" + missing +
                                               ": a driver for CUDA 12 or later is needed");
  const auto started = api->call.init(0);
  if (started != CudaResult::kSuccess)
    return MakeError(ErrorCode::kInvalid,
                     MessageOf(api->Check(started, "initialising " + api->path_)) +
                         "\n  nvidia-smi says what the driver sees; CUDA_VISIBLE_DEVICES what this "
                         "process may; a process that was forked from one with CUDA has none");
  TROUPE_TRY(api->Check(api->call.device_count(&api->device_count_), "counting the GPUs"));
  {
    MutexLock lock(api->mutex_);
    api->contexts_.resize(static_cast<std::size_t>(api->device_count_));
  }
  return std::unique_ptr<const CudaApi>(std::move(api));
}

Status CudaApi::Check(CudaResult result, std::string_view doing) const {
  if (result == CudaResult::kSuccess) return absl::OkStatus();
  const char* name = nullptr;
  const char* words = nullptr;
  call.error_name(result, &name);
  call.error_string(result, &words);
  return MakeError(ErrorCode::kInternal,
                   std::string(doing) + ": " +
                       (name ? name : "CUDA error " + std::to_string(static_cast<int>(result))) +
                       (words ? std::string(": ") + words : std::string()));
}

StatusOr<CudaContext> CudaApi::ContextOf(int device) const {
  if (device < 0 || device >= device_count_)
    return MakeError(ErrorCode::kInvalid, "there is no CUDA device " + std::to_string(device) +
                                              ": this process sees " +
                                              std::to_string(device_count_));
  MutexLock lock(mutex_);
  auto& context = contexts_[static_cast<std::size_t>(device)];
  if (!context) {
    CudaDevice handle = 0;
    TROUPE_TRY(Check(call.device_get(&handle, device), "asking for a CUDA device"));
    TROUPE_TRY(Check(call.primary_retain(&context, handle), "opening a CUDA device"));
  }
  return context;
}

CudaScope::CudaScope(const CudaApi& cuda, int device) : cuda_(cuda) {
  const auto context = cuda.ContextOf(device);
  status_ = context.status();
  if (!status_.ok()) return;
  status_ = cuda.Check(cuda.call.get_current(&before_), "asking for the current CUDA device");
  if (status_.ok()) status_ = cuda.Check(cuda.call.set_current(*context), "choosing a CUDA device");
}

CudaScope::~CudaScope() {
  if (status_.ok()) cuda_.call.set_current(before_);
}

}  // namespace troupe::train
