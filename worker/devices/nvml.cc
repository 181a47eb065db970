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
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency_us;
  int value_type;
  Result result;
  union {
    double real;
    unsigned number;
    unsigned long long large;
  } value;
};
constexpr Result kSuccess = 0;
constexpr unsigned kLinksMax = 36;        // NVML_NVLINK_MAX_LINKS
constexpr unsigned kLinkSpeedOfAll = 90;  // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, in MB/s
constexpr int kUnsigned = 1;              // NVML_VALUE_TYPE_UNSIGNED_INT

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
  // null in drivers that know no NVLink
  Result (*link_state)(Handle, unsigned, unsigned*);
  Result (*fields)(Handle, int, FieldValue*);

  bool LoadFrom(void* library) {
    Load(library, "nvmlDeviceGetNvLinkState", &link_state);
    Load(library, "nvmlDeviceGetFieldValues", &fields);
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

GpuLinks ReadLinks(const Api& api, unsigned index, Handle handle) {
  GpuLinks gpu;
  gpu.index = index;
  if (api.link_state == nullptr || api.fields == nullptr) return gpu;
  for (unsigned link = 0; link < kLinksMax; ++link) {
    unsigned active = 0;
    if (api.link_state(handle, link, &active) == kSuccess && active != 0) ++gpu.links;
  }
  FieldValue speed{};
  speed.field = kLinkSpeedOfAll;
  if (gpu.links > 0 && api.fields(handle, 1, &speed) == kSuccess && speed.result == kSuccess &&
      speed.value_type == kUnsigned) {
    gpu.mbyte_s = speed.value.number;
  }
  return gpu;
}

}  // namespace

StatusOr<Gpus> ReadNvml() {
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
  Gpus gpus;
  unsigned count = 0;
  if (api.count(&count) != kSuccess) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    Handle handle = nullptr;
    if (api.handle(i, &handle) != kSuccess) continue;
    gpus.devices.push_back(ReadOne(api, i, handle));
    gpus.links.push_back(ReadLinks(api, i, handle));
  }
  api.shutdown();
  return gpus;
}

}  // namespace troupe::worker
