#include "worker/devices/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>
#include <string>
#include <utility>

#include "runtime/os/text.h"

namespace troupe::worker {
namespace {

// As nvml.h declares them; the structs' layouts are fixed by the versioned names.
using Result = int;
using Handle = void*;
struct Memory {
  unsigned long long total, free, used;
};
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
constexpr Result kSuccess = 0;

template <class Function>
bool Load(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

struct Api {
  Result (*init)();
  Result (*shutdown)();
  Result (*count)(unsigned*);
  Result (*handle)(unsigned, Handle*);
  Result (*name)(Handle, char*, unsigned);
  Result (*uuid)(Handle, char*, unsigned);
  Result (*memory)(Handle, Memory*);
  Result (*pci)(Handle, PciInfo*);

  bool LoadFrom(void* library) {
    return Load(library, "nvmlInit_v2", &init) && Load(library, "nvmlShutdown", &shutdown) &&
           Load(library, "nvmlDeviceGetCount_v2", &count) &&
           Load(library, "nvmlDeviceGetHandleByIndex_v2", &handle) &&
           Load(library, "nvmlDeviceGetName", &name) && Load(library, "nvmlDeviceGetUUID", &uuid) &&
           Load(library, "nvmlDeviceGetMemoryInfo", &memory) &&
           Load(library, "nvmlDeviceGetPciInfo_v3", &pci);
  }
};

// The NUMA node of a PCI function; -1 when the machine has but one or does not say.
std::int32_t NumaNodeOf(std::string bus_id) {
  std::transform(bus_id.begin(), bus_id.end(), bus_id.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (bus_id.size() > 12) bus_id.erase(0, bus_id.size() - 12);  // sysfs has a 4-digit domain
  const auto text = os::ReadText("/sys/bus/pci/devices/" + bus_id + "/numa_node");
  std::int32_t node = -1;
  if (text) std::from_chars(text->data(), text->data() + text->size(), node);
  return node;
}

wire::Device ReadOne(const Api& api, unsigned index, Handle handle) {
  wire::Device device;
  device.index = index;
  char text[96] = "";
  if (api.name(handle, text, sizeof text) == kSuccess) device.model = text;
  if (api.uuid(handle, text, sizeof text) == kSuccess) device.uuid = text;
  Memory memory{};
  if (api.memory(handle, &memory) == kSuccess) device.memory_mib = memory.total >> 20;
  PciInfo pci{};
  if (api.pci(handle, &pci) == kSuccess) {
    device.pci_bus_id = pci.bus_id;
    device.numa_node = NumaNodeOf(device.pci_bus_id);
  }
  return device;
}

}  // namespace

StatusOr<std::vector<wire::Device>> ReadNvml() {
  const std::unique_ptr<void, int (*)(void*)> library(
      dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL),
      [](void* handle) { return handle == nullptr ? 0 : dlclose(handle); });
  if (!library) return MakeError(ErrorCode::kNotFound, "no NVIDIA driver on this machine");
  Api api{};
  if (!api.LoadFrom(library.get())) {
    return MakeError(ErrorCode::kNotFound, "libnvidia-ml.so.1 is too old");
  }
  if (const Result result = api.init(); result != kSuccess) {
    return MakeError(ErrorCode::kNotFound, "the NVIDIA driver does not answer (NVML error " +
                                               std::to_string(result) + ")");
  }
  std::vector<wire::Device> devices;
  unsigned count = 0;
  if (api.count(&count) != kSuccess) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    Handle handle = nullptr;
    if (api.handle(i, &handle) != kSuccess) continue;
    devices.push_back(ReadOne(api, i, handle));
  }
  api.shutdown();
  return devices;
}

}  // namespace troupe::worker
