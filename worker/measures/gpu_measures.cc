#include "worker/measures/gpu_measures.h"

#include <dlfcn.h>

#include <string>
#include <utility>

namespace troupe::worker {
namespace {

using wire::MeasureKind;

// As nvml.h declares them; the structs' layouts are fixed by the versioned names.
using Result = int;
using Handle = void*;
using EventSet = void*;
struct Utilization {
  unsigned gpu, memory;  // percent
};
struct Memory {
  unsigned long long total, free, used;
};
struct EventData {
  Handle device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
constexpr Result kSuccess = 0;
constexpr unsigned kTemperatureOfGpu = 0;            // NVML_TEMPERATURE_GPU
constexpr unsigned kClockOfSm = 1;                   // NVML_CLOCK_SM
constexpr unsigned long long kXidCriticalError = 8;  // nvmlEventTypeXidCriticalError
constexpr int kEventsMax = 1000;  // events taken at once
constexpr std::size_t kXidsMax = 64;                 // different ones of a device

struct Api {
  Result (*init)();
  Result (*shutdown)();
  Result (*by_uuid)(const char*, Handle*);
  // Each may be null: the driver does not know it.
  Result (*utilization)(Handle, Utilization*);
  Result (*memory)(Handle, Memory*);
  Result (*power)(Handle, unsigned*);             // mW
  Result (*energy)(Handle, unsigned long long*);  // mJ
  Result (*temperature)(Handle, unsigned, unsigned*);
  Result (*clock)(Handle, unsigned, unsigned*);  // MHz
  Result (*replays)(Handle, unsigned*);
  Result (*make_events)(EventSet*);
  Result (*free_events)(EventSet);
  Result (*register_events)(Handle, unsigned long long, EventSet);
  Result (*next_event)(EventSet, EventData*, unsigned);

  bool LoadFrom(void* library) {
    const auto load = [library](const char* name, auto** function) {
      *function =
          reinterpret_cast<std::remove_reference_t<decltype(**function)>*>(dlsym(library, name));
      return *function != nullptr;
    };
    load("nvmlDeviceGetUtilizationRates", &utilization);
    load("nvmlDeviceGetMemoryInfo", &memory);
    load("nvmlDeviceGetPowerUsage", &power);
    load("nvmlDeviceGetTotalEnergyConsumption", &energy);
    load("nvmlDeviceGetTemperature", &temperature);
    load("nvmlDeviceGetClockInfo", &clock);
    load("nvmlDeviceGetPcieReplayCounter", &replays);
    load("nvmlEventSetCreate", &make_events);
    load("nvmlEventSetFree", &free_events);
    load("nvmlDeviceRegisterEvents", &register_events);
    load("nvmlEventSetWait_v2", &next_event);
    return load("nvmlInit_v2", &init) && load("nvmlShutdown", &shutdown) &&
           load("nvmlDeviceGetHandleByUUID", &by_uuid);
  }
  bool has_events() const {
    return make_events != nullptr && free_events != nullptr && register_events != nullptr &&
           next_event != nullptr;
  }
};

}  // namespace

class GpuMeasurer::Library {
 public:
  /// Null where there is no library, or no driver.
  static std::unique_ptr<Library> Open(const std::vector<wire::Device>& devices) {
    auto library = std::unique_ptr<Library>(new Library);
    library->handle_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library->handle_ == nullptr || !library->api_.LoadFrom(library->handle_) ||
        library->api_.init() != kSuccess)
      return nullptr;
    library->begun_ = true;
    library->Find(devices);
    return library;
  }
  ~Library() {
    if (events_ != nullptr) api_.free_events(events_);
    if (begun_) api_.shutdown();
    if (handle_ != nullptr) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  std::vector<wire::Measure> Read() {
    TakeEvents();
    std::vector<wire::Measure> measures;
    for (const auto& [gpu, handle] : gpus_) ReadOne(gpu, handle, measures);
    return measures;
  }

 private:
  Library() = default;

  void Find(const std::vector<wire::Device>& devices) {
    if (api_.has_events() && api_.make_events(&events_) != kSuccess) events_ = nullptr;
    for (const wire::Device& device : devices) {
      Handle handle = nullptr;
      if (device.uuid.empty() || api_.by_uuid(device.uuid.c_str(), &handle) != kSuccess) continue;
      gpus_[device.index] = handle;
      if (events_ != nullptr) api_.register_events(handle, kXidCriticalError, events_);
    }
  }

  void TakeEvents() {
    if (events_ == nullptr) return;
    EventData event{};
    for (int i = 0; i < kEventsMax && api_.next_event(events_, &event, 0) == kSuccess; ++i) {
      if ((event.type & kXidCriticalError) == 0) continue;
      auto& counts = xids_[event.device];
      if (counts.size() < kXidsMax || counts.count(event.data) > 0) ++counts[event.data];
      last_xid_[event.device] = event.data;
    }
  }

  void ReadOne(std::uint32_t gpu, Handle handle, std::vector<wire::Measure>& to) {
    const auto put = [&](MeasureKind kind, double value, std::string key = "") {
      to.push_back({kind, std::move(key), static_cast<std::int32_t>(gpu), value});
    };
    Utilization utilization{};
    if (api_.utilization != nullptr && api_.utilization(handle, &utilization) == kSuccess)
      put(MeasureKind::kGpuUtilizationRatio, utilization.gpu / 100.0);
    Memory memory{};
    if (api_.memory != nullptr && api_.memory(handle, &memory) == kSuccess) {
      put(MeasureKind::kGpuMemoryUsedBytes, static_cast<double>(memory.used));
      put(MeasureKind::kGpuMemoryTotalBytes, static_cast<double>(memory.total));
    }
    unsigned number = 0;
    if (api_.power != nullptr && api_.power(handle, &number) == kSuccess)
      put(MeasureKind::kGpuPowerWatts, number / 1000.0);
    unsigned long long millijoules = 0;
    if (api_.energy != nullptr && api_.energy(handle, &millijoules) == kSuccess)
      put(MeasureKind::kGpuEnergyJoules, static_cast<double>(millijoules) / 1000);
    if (api_.temperature != nullptr &&
        api_.temperature(handle, kTemperatureOfGpu, &number) == kSuccess)
      put(MeasureKind::kGpuTemperatureCelsius, number);
    if (api_.clock != nullptr && api_.clock(handle, kClockOfSm, &number) == kSuccess)
      put(MeasureKind::kGpuSmClockHertz, number * 1e6);
    if (api_.replays != nullptr && api_.replays(handle, &number) == kSuccess)
      put(MeasureKind::kGpuPcieReplays, number);
    for (const auto& [xid, count] : xids_[handle])
      put(MeasureKind::kGpuXidErrors, static_cast<double>(count), std::to_string(xid));
    if (events_ != nullptr) put(MeasureKind::kGpuLastXid, static_cast<double>(last_xid_[handle]));
  }

  void* handle_ = nullptr;
  bool begun_ = false;
  Api api_{};
  EventSet events_ = nullptr;
  std::map<std::uint32_t, Handle> gpus_;                           // by the node's ids
  std::map<Handle, std::map<std::uint64_t, std::uint64_t>> xids_;  // how often each came
  std::map<Handle, std::uint64_t> last_xid_;
};

GpuMeasurer::GpuMeasurer(std::vector<wire::Device> devices) : devices_(std::move(devices)) {}
GpuMeasurer::~GpuMeasurer() = default;

std::vector<wire::Measure> GpuMeasurer::Read() {
  if (devices_.empty()) return {};
  if (!std::exchange(looked_, true)) library_ = Library::Open(devices_);
  return library_ ? library_->Read() : std::vector<wire::Measure>();
}

}  // namespace troupe::worker
