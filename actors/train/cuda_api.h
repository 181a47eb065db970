// CUDA's driver API as a table of functions, loaded at run time.
//
//   TROUPE_ASSIGN(const CudaApi* cuda, CudaApi::Load());
//   CudaScope scope(*cuda, 0);                        // device 0, while the scope lives
//   TROUPE_TRY(scope.status());
//   TROUPE_TRY(cuda->Check(cuda->call.event_record(event, stream), "recording an event"));
//
// A device's primary context is retained once and kept: torch and NCCL use the same one. Not usable
// in a child that was forked after the load: CUDA itself is not; the calls say so.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/train/cuda_types.h"
#include "actors/train/dynamic_library.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"

namespace troupe::train {

struct CudaFunctions {
#define TROUPE_CUDA_MEMBER(member, symbol, parameters) CudaResult(*member) parameters = nullptr;
  TROUPE_CUDA_FUNCTIONS(TROUPE_CUDA_MEMBER)
#undef TROUPE_CUDA_MEMBER
};

class CudaApi {
 public:
  /// Loads libcuda.so.1 (`file`, else TROUPE_CUDA_LIB, else the loader's) and initialises it.
  /// kNotFound: no driver, or one without a function that is needed; kInvalid: no GPU it can use.
  /// Blocks for as long as the driver takes, seconds at times.
  static StatusOr<std::unique_ptr<const CudaApi>> Load(const std::string& file = "");

  CudaFunctions call;
  const std::string& path() const { return path_; }
  int device_count() const { return device_count_; }

  /// Ok, or what was being done, CUDA's name and words for the result.
  Status Check(CudaResult result, std::string_view doing) const;
  /// The device's primary context, retained at the first question. Thread-safe.
  StatusOr<CudaContext> ContextOf(int device) const;

 private:
  CudaApi() = default;

  std::string path_;
  int device_count_ = 0;
  mutable Mutex mutex_;
  mutable std::vector<CudaContext> contexts_ ABSL_GUARDED_BY(mutex_);
};

/// A device is the thread's current one while this lives; then the one before is again.
class CudaScope {
 public:
  /// `cuda` must outlive it.
  CudaScope(const CudaApi& cuda, int device);
  ~CudaScope();
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;

  const Status& status() const { return status_; }

 private:
  const CudaApi& cuda_;
  CudaContext before_ = nullptr;
  Status status_;
};

}  // namespace troupe::train
