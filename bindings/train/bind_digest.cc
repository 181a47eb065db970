#include "bindings/train/bind_digest.h"

#include <memory>
#include <utility>

#include "actors/train/device_digest.h"
#include "bindings/control/control_convert.h"
#include "bindings/support/gil.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace troupe::bindings {
namespace {

/// The driver's library and the kernels of this process's devices, there until its end.
struct Devices {
  explicit Devices(std::unique_ptr<const train::CudaApi> api)
      : cuda(std::move(api)), digest(*cuda) {}
  std::unique_ptr<const train::CudaApi> cuda;
  train::DeviceDigest digest;
};

StatusOr<Devices*> Here() {
  static Mutex mutex;
  static Devices* devices = nullptr;
  MutexLock lock(mutex);
  if (!devices) {
    TROUPE_ASSIGN(auto cuda, train::CudaApi::Load());
    devices = new Devices(std::move(cuda));
  }
  return devices;
}

Status AddTo(std::uintptr_t sum, std::uintptr_t data, std::size_t bytes, int device,
             std::uintptr_t stream) {
  const GilReleased released;  // the driver may have to be loaded, and the kernel compiled
  TROUPE_ASSIGN(Devices* const devices, Here());
  return devices->digest.AddTo(sum, data, bytes, device,
                               reinterpret_cast<train::CudaStream>(stream));
}

}  // namespace

void bind_digest(nb::module_& m) {
  m.def(
      "device_digest",
      [](std::uintptr_t sum, std::uintptr_t data, std::size_t bytes, int device,
         std::uintptr_t stream) {
        const Status status = AddTo(sum, data, bytes, device, stream);
        if (!status.ok()) ThrowStatus(status);
      },
      "sum"_a, "data"_a, "bytes"_a, "device"_a, "stream"_a,
      "Adds the digest of so many bytes of a CUDA device's memory at the address `data` to the 64 "
      "bits at `sum`, in the order of `stream` (a cudaStream_t's address). Does not wait for it. "
      "Raises where there is no driver, or the kernel cannot be started.");
}

}  // namespace troupe::bindings
